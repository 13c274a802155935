/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pace: how fast a task gets on, compared with a CPU at full speed.
 *
 * Problem: below its top frequency a CPU takes longer for what it computes, but
 * hardly longer for what waits for memory. Equal time is no longer equal progress:
 * who computes loses more than who waits for memory.
 *
 * How: virtual time runs by the time that the work would have taken at full speed.
 * Of the CPU time of a task a part phi does not change with the frequency; the rest
 * would be shorter by r = f / fmax. So time counts P = phi + (1 - phi) * r of what
 * it is, and shares of progress follow the weights, also between CPUs of different
 * speed. (Formula A2 of the USTC paper, solved for what is charged: no epochs, and
 * no weights that lag one behind.) phi is what the class of the task declares, r
 * comes from the daemon, which reads it a few times a second.
 *
 * Limits: caps, cpu.max and the length of turns stay in CPU time. A turn during
 * which the speed changes is charged by the speed at its end.
 */

#define PACE_SHIFT 10
#define PACE_FULL (1U << PACE_SHIFT)

u32 cpu_speed[ROTA_MAX_CPUS]; /* set by the daemon: r, 1..PACE_FULL; 0: not known */

/* What of its time a task of this class gets on at full speed, 1..PACE_FULL. */
static __always_inline u32 pace_at(u32 class, u32 cpu)
{
	u32 speed = READ_ONCE(cpu_speed[cpu & (ROTA_MAX_CPUS - 1)]), bound;

	if (!speed || speed >= PACE_FULL)
		return PACE_FULL;
	bound = task_class_at(class)->memory_bound;
	return bound + (((PACE_FULL - bound) * speed) >> PACE_SHIFT);
}

/* The time that ns of work on this CPU would have taken at full speed. */
static __always_inline u64 pace_ns(u64 ns, u32 class, u32 cpu)
{
	if (!knobs.frequency)
		return ns;
	return (ns * pace_at(class, cpu)) >> PACE_SHIFT;
}
