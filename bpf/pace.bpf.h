/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pace: shares of progress, where CPUs run below their top frequency.
 *
 * Problem: on a slow CPU who computes loses more than who waits for memory, and equal
 * time is no longer equal progress.
 *
 * How: virtual time runs by the time that the work would have taken at full speed
 * (pace.h), so that shares of progress follow the weights, also between CPUs of
 * different speed. How much a task waits for memory is counted (counter.bpf.h), else what
 * its class declares; how fast a CPU runs is counted too, or comes from the daemon, which
 * reads it a few times a second.
 *
 * Limits: caps, cpu.max and the length of turns stay in CPU time. What counts
 * is the last speed that the daemon read.
 */

struct rota_counters counters; /* set by the daemon */
u32 cpu_speed[ROTA_MAX_CPUS];  /* 1..PACE_FULL, 0: not known; set by the daemon, or as counted */

/* How much of the task's work waits for memory, of PACE_FULL; 0 where nobody asks. */
static __always_inline u32 pace_bound(const struct task_ctx *taskc)
{
	if (!knobs.frequency)
		return 0;
	if (counters.waits && taskc->counter_epoch == counters.epoch &&
	    taskc->bound != COUNTER_UNKNOWN)
		return taskc->bound;
	return task_class(taskc)->memory_bound;
}

/* The time that ns of work, of which bound waits, would have taken at full speed. */
static __always_inline u64 pace_ns(u64 ns, u32 bound, u32 cpu)
{
	u32 speed;

	if (!knobs.frequency)
		return ns;
	speed = READ_ONCE(cpu_speed[cpu & (ROTA_MAX_CPUS - 1)]);
	if (!speed || speed >= PACE_FULL)
		return ns;
	return pace_scale(ns, bound, speed);
}
