/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clock: what time it is where no run queue is locked.
 *
 * Problem: scx_bpf_now() spares a reading of the hardware where the clock of this CPU's run
 * queue is up to date, which a flag says. The flag is set whenever that clock is, and cleared
 * when who locked the queue unpins it. Who takes a task from a queue of another CPU does not
 * unpin (the kernel's move_remote_task_to_local_dsq()): until that CPU switches or ticks, if it
 * is idle for long, scx_bpf_now() is the time of then. Timers would wait for what is over, and
 * waits begin before the wake-up.
 *
 * How: without a lock the flag must not be set. Where it is, the time is taken from the
 * monotonic clock, which differs by what it did at the last tick of this CPU. So it is with the
 * lock of another CPU's queue, before 6.18 said whose is locked; and for who has that of its
 * own it is as good.
 *
 * Limits: that difference drifts by the corrections of the monotonic clock, some us a second
 * since the last tick with a task of ours; before the first one time may be old. So it may
 * where a fair task does not name its run queue (without CONFIG_FAIR_GROUP_SCHED).
 */

/* The kernel's word: right where the clock of this CPU's run queue is up to date. */
static __always_inline u64 clock_kernel(void)
{
	if (bpf_ksym_exists(scx_bpf_now))
		return scx_bpf_now();
	return bpf_ktime_get_ns();
}

/* Is the time that scx_bpf_now() gives not to be trusted, as no run queue is locked? */
static __always_inline bool clock_old(void)
{
	const struct task_struct *curr = kernel_plain(bpf_get_current_task_btf());

	if (!bpf_core_field_exists(curr->se.cfs_rq->rq))
		return false;
	return curr->se.cfs_rq->rq->scx.flags & RQ_CLK_VALID;
}

/* The time of this very moment, by the clock of this CPU's run queue; 0: not known. */
static __always_inline u64 clock_exact(const struct cpu_ctx *cpuc)
{
	return cpuc->clock_ahead_ns ? bpf_ktime_get_ns() + cpuc->clock_ahead_ns : 0;
}

/* The time in ns, whatever is locked. */
static __always_inline u64 clock_now(void)
{
	if (!bpf_ksym_exists(scx_bpf_now) || !clock_old())
		return clock_kernel();
	return clock_exact(cpu_find(bpf_get_smp_processor_id())) ?: clock_kernel();
}

/* The same for callbacks that hold the lock of a run queue, mostly without a call. */
static __always_inline u64 clock_now_locked(void)
{
	struct rq *rq;

	if (!bpf_ksym_exists(scx_bpf_locked_rq))
		return clock_now();
	rq = scx_bpf_locked_rq();
	return rq ? rq->clock : clock_now();
}

/* By how much this CPU's clock differs from the monotonic one. At a tick: it is up to date. */
static __always_inline void clock_note(struct cpu_ctx *cpuc)
{
	cpuc->clock_ahead_ns = clock_kernel() - bpf_ktime_get_ns();
}
