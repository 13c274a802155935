/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hand: who wakes another and then sleeps hands its CPU over.
 *
 * Problem: of two tasks that take turns, as at the ends of a pipe, each finds an idle CPU for the
 * other and leaves its own idle. The way there, out of idleness, takes longer than their work.
 *
 * How: the kernel knows where a waker will probably sleep (WAKE_SYNC), and is often wrong. A task
 * that slept soon after saying so, each of the last times, is believed (see belief.h): whom it
 * wakes is next on its CPU, if nobody else waits there. If it works on the timer ends its turn,
 * and it must earn belief again.
 *
 * Limits: the fair tier only, inside a cache domain. What an interrupt wakes above a task tells
 * nothing of that task; where it is not known whether it is one nobody hands over.
 */

#define HAND_SOON_NS 10000  /* who sleeps within this after saying so was right */
#define HAND_NEAR_NS 50000  /* who does so within this was nearly: interrupts may have come */
#define HAND_LATE_NS 200000 /* nobody waits for longer for who does not sleep after all */

/* A task sleeps that said that it would. */
static __always_inline void hand_learn(struct task_ctx *taskc, u64 now_ns)
{
	u64 after_ns = kernel_since(now_ns, taskc->said_ns);

	taskc->said_ns = 0;
	if (after_ns < HAND_SOON_NS)
		belief_right(&taskc->said);
	else if (after_ns < HAND_NEAR_NS)
		belief_nearly(&taskc->said);
	else
		belief_wrong(&taskc->said);
}

/* A task says that it will sleep. Is it believed? Who has not slept since it last said so is not. */
static __always_inline bool hand_says(struct task_ctx *taskc, u64 now_ns)
{
	if (taskc->said_ns)
		belief_wrong(&taskc->said);
	taskc->said_ns = now_ns;
	return belief_given(&taskc->said);
}

/*
 * May a task that wakes be next on the CPU of its waker? Not when that CPU is to look at what
 * the others have to do: it does so only where it has to choose. Nor on one that is lent to the
 * waker: who has it back takes the others, too.
 */
static __always_inline bool hand_fits(struct task_struct *p, const struct task_ctx *taskc,
				      const struct cpu_ctx *cpuc, u32 cpu, u32 llc, u64 now_ns)
{
	return taskc->tier == ROTA_FAIR && cpuc->owner == taskc->own &&
	       cpuc->curr_own == taskc->own && cpuc->llc == llc && !cpuc->local_taken &&
	       !cpuc->aside && !cpuc->curr_rescued && !cpu_waiting(&cpuc->queues[0]) &&
	       !place_due(cpuc, now_ns) && cpu_allows(p, cpu) && !scx_bpf_dsq_nr_queued(DSQ_LOCAL);
}

/* What runs here wakes a task: is that one to have the CPU as soon as its waker sleeps? */
static bool hand_over(struct task_struct *p, const struct task_ctx *taskc, s32 prev_cpu)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_ctx *wakerc;
	u64 now_ns;

	if (cpuc->curr_tier != ROTA_FAIR || cpuc->curr_tid != waker->pid || !context_is_task())
		return false;
	wakerc = task_try(waker);
	now_ns = clock_now();
	if (!wakerc || !hand_says(wakerc, now_ns) ||
	    !hand_fits(p, taskc, cpuc, cpu, cpu_find(prev_cpu)->llc, now_ns))
		return false;
	/* Whoever is put into a queue here meanwhile sees that the CPU is promised. */
	cpuc->local_taken = 1;
	cpuc->curr_exact = 1;
	cpuc->curr_end_ns = now_ns + HAND_LATE_NS;
	timer_start(cpuc, cpu, now_ns);
	cpu_counters(cpu)->handed++;
	return true;
}
