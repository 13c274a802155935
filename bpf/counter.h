/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counter: how much of its time a task waited for memory, by counters of the processor.
 *
 * Problem: how much a task waits is what it keeps of its speed on a slow CPU (pace.h), and
 * no task says so.
 *
 * How: one counter has the cycles that passed while the CPU waited for memory, another all
 * cycles: their ratio is the share of the time at this frequency, the paper's phi. Where
 * only accesses are counted each is taken to last as long (the USTC paper's estimator:
 * T_ns = N * L). At full speed the waiting lasts as long and the rest is shorter:
 * T(fmax) = T_ns + (T - T_ns) * r. The share of that is a property of the program
 * (docs/decisions/0012), and a moving mean of it is kept, weighted by time.
 *
 * Limits: what waited and could have done something else meanwhile is counted as the
 * counter counts it. Pure functions: the file also compiles on the host.
 */
#ifndef ROTA_COUNTER_H
#define ROTA_COUNTER_H

#define COUNTER_WINDOW_NS 16000000ULL /* the mean is over about twice as much work */
#define COUNTER_LEAST_NS 500000ULL    /* of work, before it says anything */
#define COUNTER_UNKNOWN 0xffff
#define COUNTER_LEAST_TURNS \
	64 /* who counted for less of the time than one in so many says nothing */
#define COUNTER_LONGEST_NS (1ULL << 31) /* between two readings */

/* A counter, and for how long in ns it was wanted and was counting. */
struct counter_value {
	u64 counter, enabled, running;
};

/* The work of a task: so much of it waited. */
struct counter_mean {
	u64 waited_ns, full_ns;
};

/*
 * What was counted between two readings; where counters take turns on too few registers,
 * what would have been. counted: false if this one had no turn.
 */
static inline u64 counter_delta(const struct counter_value *from, const struct counter_value *to,
				bool *counted)
{
	u64 n = to->counter - from->counter;
	u64 enabled = to->enabled - from->enabled, running = to->running - from->running;

	*counted = running > enabled / COUNTER_LEAST_TURNS;
	if (!*counted || running >= enabled)
		return n;
	return n * ((enabled << 10) / running) >> 10;
}

/* Of ns, at most COUNTER_LONGEST_NS, waited: accesses that take so long each, or cycles. */
static inline u64 counter_waited(u64 ns, u64 waits, u64 cycles, u64 latency_ps)
{
	u64 waited;

	if (latency_ps)
		waited = waits * latency_ps / 1000;
	else
		waited = waits < cycles ? ns * ((waits << 16) / cycles) >> 16 : ns;
	return waited < ns ? waited : ns;
}

/* What ns of CPU time at this speed (of 1024), of which so much waited, take at full speed. */
static inline u64 counter_full(u64 ns, u64 waited_ns, u32 speed)
{
	return waited_ns + ((ns - waited_ns) * speed >> 10);
}

/*
 * Takes so much work, in time at full speed, into the mean. Returns the share of it that waits,
 * of 1024, or COUNTER_UNKNOWN.
 */
static inline u32 counter_learn(struct counter_mean *mean, u64 waited_ns, u64 full_ns)
{
	u32 share;

	mean->waited_ns += waited_ns;
	mean->full_ns += full_ns;
	if (mean->full_ns < COUNTER_LEAST_NS)
		return COUNTER_UNKNOWN;
	share = (mean->waited_ns << 10) / mean->full_ns;
	if (mean->full_ns >= 2 * COUNTER_WINDOW_NS) {
		mean->waited_ns >>= 1;
		mean->full_ns >>= 1;
	}
	return share;
}

/* The speed of 1024 that so many cycles in ns mean, where full speed is khz. */
static inline u32 counter_speed(u64 ns, u64 cycles, u32 khz)
{
	u64 full = ns * (khz >> 4) / 62500; /* cycles in ns at full speed */
	u64 speed = full ? (cycles << 10) / full : 0;

	if (!speed)
		return 1;
	return speed < 1024 ? speed : 1024;
}

#endif
