/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * place: which CPU a task should run on, and how idle CPUs find work.
 *
 * Problem: queues are per CPU, so a task can wait on one CPU while another
 * is idle or has fewer tasks.
 *
 * How: a wake-up takes an idle CPU by the kernel's own rule (previous CPU,
 * its core, its cache domain; sync wake-ups stay close); a new task starts on
 * the least loaded CPU of the domain. A CPU that runs dry pulls the first
 * task of another queue, in its domain before elsewhere. Every few
 * milliseconds a busy CPU pulls one task if another has at least two tasks'
 * weight more, so that hogs spread evenly.
 *
 * Limits: the weights of other CPUs are read without their locks; a stale
 * value makes one pull too many or too few, which the next period repairs.
 */

#define PLACE_BALANCE_NS 8000000
#define PLACE_SCAN_CPUS 64

/* Load of a CPU: the weights that compete for it, departures not yet settled left out. */
static __always_inline u64 place_load(const struct cpu_ctx *cpuc)
{
	const struct cpu_queue *queue = &cpuc->queues[0];

	return READ_ONCE(queue->tree.sum_w) - (READ_ONCE(queue->gone.w) - READ_ONCE(queue->seen_w));
}

/* How many CPUs of a domain a search looks at. */
static __always_inline u32 place_scan(u32 llc)
{
	u32 size = llc_size[llc & (ROTA_MAX_LLCS - 1)];

	return size < PLACE_SCAN_CPUS ? size : PLACE_SCAN_CPUS;
}

/* The least loaded CPU of the domain for a new task. */
static s32 place_fork(struct task_struct *p, s32 prev_cpu)
{
	u32 llc = cpu_find(prev_cpu)->llc, size = place_scan(llc);
	u64 least = place_load(cpu_find(prev_cpu));
	s32 best = prev_cpu;
	u32 n;

	kernel_for (n, 1, size) {
		u32 cpu = cpu_in_llc(llc, prev_cpu + n);
		u64 load = place_load(cpu_find(cpu));

		if (load >= least || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		least = load;
		best = cpu;
	}
	return best;
}

/* Wakes an idle CPU that could pull this task. */
static void place_kick_idle(struct task_struct *p)
{
	s32 cpu;

	if (p->nr_cpus_allowed == 1)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/* Pulls from the queue of one other CPU. */
static bool place_pull(u32 cpu, u32 tier, u32 from)
{
	if (!kernel_move_to_local(queue_id(tier, from)))
		return false;
	cpu_counters(cpu)->steals++;
	return true;
}

/* An idle CPU looks for a task of the tier in its own cache domain. */
static bool place_steal_llc(struct cpu_ctx *cpuc, u32 cpu, u32 tier)
{
	u32 n, size = place_scan(cpuc->llc);

	kernel_for (n, 1, size) {
		u32 from = cpu_in_llc(cpuc->llc, cpu + n);

		if (from == cpu || !READ_ONCE(cpu_queue(cpu_find(from), tier)->queued))
			continue;
		if (place_pull(cpu, tier, from))
			return true;
	}
	return false;
}

/* The same on all CPUs, when the domain has nothing. */
static bool place_steal_far(struct cpu_ctx *cpuc, u32 cpu, u32 tier)
{
	u32 n, nr = topology.nr_cpus;

	if (topology.nr_llcs < 2)
		return false;
	kernel_for (n, 1, nr) {
		u32 from = (cpu + n) % nr;
		struct cpu_ctx *fromc = cpu_find(from);

		if (fromc->llc == cpuc->llc || !READ_ONCE(cpu_queue(fromc, tier)->queued))
			continue;
		if (place_pull(cpu, tier, from))
			return true;
	}
	return false;
}

static bool place_steal(struct cpu_ctx *cpuc, u32 cpu, u32 tier)
{
	return place_steal_llc(cpuc, cpu, tier) || place_steal_far(cpuc, cpu, tier);
}

/* A busy CPU takes over a task from one that has two tasks' weight more. */
static bool place_balance(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	u32 n, size = place_scan(cpuc->llc);
	u64 own = place_load(cpuc), most = own;
	s32 from = -1;
	u32 waiting;

	if (eevdf_before(now_ns, cpuc->balance_at_ns))
		return false;
	cpuc->balance_at_ns = now_ns + PLACE_BALANCE_NS;
	kernel_for (n, 1, size) {
		u32 other = cpu_in_llc(cpuc->llc, cpu + n);
		u64 load = place_load(cpu_find(other));

		if (load <= most || !READ_ONCE(cpu_find(other)->queues[0].queued))
			continue;
		most = load;
		from = other;
	}
	if (from < 0)
		return false;
	waiting = scx_bpf_dsq_nr_queued(QUEUE_FAIR(from));
	if (!waiting || (most - own) * (waiting + 1) < 2 * most)
		return false;
	return place_pull(cpu, ROTA_FAIR, from);
}
