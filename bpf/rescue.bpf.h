/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rescue: nobody starves (guarantee G1).
 *
 * Problem: a nice 19 task under nice -20 hogs, a background task under fair
 * ones and a fair task under priority hogs would wait for seconds.
 *
 * How: four times per starvation bound each CPU looks through its queues
 * for tasks that have waited half the bound, and runs the first it finds
 * next, but for who is called for a boost. While there are more, every other dispatch
 * serves one of them. Then it looks at the CPUs that schedule no more: one that
 * goes offline stops to dispatch before the kernel tells us, and before it waits
 * for a grace period of RCU that may need those very tasks (fixed in 7.2).
 *
 * A rescued turn is not part of anybody's share, so it is short and ended by the
 * timer. Turns of a tick for 40 light tasks, each twice a second, were a quarter
 * of the CPU; and what the light had too much all others had as lag, more than
 * who moves may take along.
 *
 * Limits: with so many starved tasks on a CPU that one turn for each, and one of
 * somebody else after each, take longer than half the bound, it cannot hold.
 */

#define RESCUE_TURN_NS 200000	    /* two a second for each of 64 that starve: 2.6 % of the CPU */
#define RESCUE_SILENCE_NS 150000000 /* longer than any slice */

/*
 * Moves the first task that has waited too long to this CPU's local queue. Not
 * static: the verifier then looks at it once, and not for each queue again.
 */
__noinline bool rescue_from(u64 dsq, u32 cpu, u64 now_ns)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		struct task_ctx *taskc = task_try(p);
		struct rota_class_stats *stats;

		if (!taskc || kernel_since(now_ns, taskc->ready_at_ns) < knobs.starvation_ns / 2)
			continue;
		/* The priority queue is the domain's: who waits there need not be allowed here. */
		if (!cpu_allows(p, cpu))
			continue;
		if (!kernel_move(&it, p, DSQ_LOCAL, 0))
			continue;
		taskc->rescued = 1;
		/* A grace period is not to wait for several of such turns. */
		if (kernel_reads(p))
			kernel_set_slice(p, taskc->slice_ns);
		else if (p->scx.slice > RESCUE_TURN_NS)
			kernel_set_slice(p, RESCUE_TURN_NS);
		record_note(ROTA_RECORD_PICK, ROTA_PICK_RESCUE, taskc, cpu, 0);
		cpu_counters(cpu)->rescues++;
		stats = stats_class(taskc->class);
		if (stats)
			stats->rescues++;
		return true;
	}
	return false;
}

/*
 * Hands those of a queue to the CPU itself, past our queues, who may run nowhere else, or all: it is
 * going offline, and the kernel pushes to other CPUs what it finds there. Not from there if it is a
 * real-time task that has the CPU: who may run elsewhere is left for others to pull.
 */
__noinline int rescue_hand_over(u64 dsq, u32 cpu, bool all)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		if (all || place_elsewhere(p, cpu_find(cpu)->owner, cpu) < 0)
			kernel_move(&it, p, DSQ_LOCAL_ON | cpu, 0);
	}
	return 0;
}

/* The same for all queues of a CPU but that of cpu.max, which others adopt. */
static void rescue_hand_over_all(u32 cpu, bool all)
{
	rescue_hand_over(QUEUE_FAIR(cpu), cpu, all);
	rescue_hand_over(QUEUE_FAIR_PARKED(cpu), cpu, all);
	rescue_hand_over(QUEUE_BACKGROUND(cpu), cpu, all);
	rescue_hand_over(QUEUE_BACKGROUND_PARKED(cpu), cpu, all);
	rescue_hand_over(QUEUE_CAPPED(cpu), cpu, all);
}

/*
 * The same for those in the queue of a domain, or of an owner, who wait for this CPU: all, or those
 * who may run nowhere else. Not static, as rescue_from.
 */
__noinline int rescue_hand_over_priority(u64 dsq, u32 cpu, bool all)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		/* Of another CPU's the kernel would end rota for it. */
		if (p->thread_info.cpu == cpu &&
		    (all || place_elsewhere(p, cpu_find(cpu)->owner, cpu) < 0))
			kernel_move(&it, p, DSQ_LOCAL_ON | cpu, 0);
	}
	return 0;
}

static bool rescue_waiting(struct cpu_ctx *cpuc, u32 tier, u32 cpu, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, tier);

	if (!cpu_waiting(queue))
		return false;
	if (!rescue_from(queue_id(tier, cpu), cpu, now_ns) &&
	    (!queue->parked || !rescue_from(queue_parked_id(tier, cpu), cpu, now_ns)))
		return false;
	queue->queued--;
	return true;
}

/* Has the CPU switched nothing for so long that nobody there will look at its queues? */
static __always_inline bool rescue_silent(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return kernel_since(now_ns, READ_ONCE(cpuc->curr_at_ns)) > RESCUE_SILENCE_NS;
}

/* Takes over a task of a tier that waits on such a CPU. */
static bool rescue_abandoned(u32 cpu, u32 tier, u32 from, u64 now_ns)
{
	return cpu_waiting(cpu_queue(cpu_find(from), tier)) && place_pull(cpu, tier, from, now_ns);
}

/* Does anybody wait in a queue of that CPU? */
static __always_inline bool rescue_stranded(const struct cpu_ctx *cpuc)
{
	return priority_others_wait(cpuc) || READ_ONCE(cpuc->queued_capped);
}

/*
 * Takes over a task from a CPU that schedules no more. Who may run nowhere else is handed to
 * that CPU itself: it still runs what it was given. One that a higher scheduling class
 * keeps looks the same, and one that is idle, where nobody waits, or should not. Not
 * static, as rescue_from.
 */
__noinline bool rescue_orphan(u32 cpu, u64 now_ns)
{
	u32 n, nr = topology.nr_cpus, llc = cpu_find(cpu)->llc;

	if (own_closed(cpu_find(cpu)))
		return false;
	kernel_for(n, 1, nr)
	{
		u32 from = (cpu + n) % (nr ?: 1);
		struct cpu_ctx *fromc = cpu_find(from);

		if (!rescue_silent(fromc, now_ns))
			continue;
		if ((fromc->llc != llc || fromc->owner) &&
		    kernel_move_to_local(cpu_priority_queue(fromc)))
			return true;
		if (scx_bpf_dsq_nr_queued(cpu_priority_queue(fromc)) > 0)
			rescue_hand_over_priority(cpu_priority_queue(fromc), from, false);
		if (!rescue_stranded(fromc))
			continue;
		if (rescue_abandoned(cpu, ROTA_FAIR, from, now_ns) ||
		    rescue_abandoned(cpu, ROTA_BACKGROUND, from, now_ns) ||
		    kernel_move_to_local(QUEUE_CAPPED(from)))
			return true;
		rescue_hand_over_all(from, false);
	}
	return false;
}

/* Runs a starved task next, if there is one and it is time to look. */
static bool rescue(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	if (eevdf_before(now_ns, cpuc->rescue_at_ns))
		return false;
	if (cpuc->rescue_pause) {
		cpuc->rescue_pause = 0;
		return false;
	}
	if (rescue_waiting(cpuc, ROTA_FAIR, cpu, now_ns) ||
	    rescue_waiting(cpuc, ROTA_BACKGROUND, cpu, now_ns) ||
	    (cpuc->queued_capped && rescue_from(QUEUE_CAPPED(cpu), cpu, now_ns)) ||
	    rescue_from(cpu_priority_queue(cpuc), cpu, now_ns) || rescue_orphan(cpu, now_ns)) {
		cpuc->rescue_pause = 1;
		return true;
	}
	cpuc->rescue_at_ns = now_ns + knobs.starvation_ns / 4;
	return false;
}
