/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stats: counters per class and per CPU.
 *
 * Problem: an operator wants to know who waited how long and why, without
 * paying for it on every switch.
 *
 * How: plain increments in per-CPU memory; user space adds them up. Waits go
 * into a histogram of powers of two, which costs nothing below 1 us, the
 * common case.
 *
 * Limits: a reader may see one counter of a switch and not yet the other. That a task came to a
 * CPU, for how long it had waited and whom it preempted is counted when it leaves it, or at a tick.
 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct rota_class_stats);
	__uint(max_entries, ROTA_MAX_CLASSES); /* the loader shrinks it */
} class_stats SEC(".maps");

/* The class's counters on the CPU that executes this. */
static __always_inline struct rota_class_stats *stats_class(u32 class)
{
	return bpf_map_lookup_elem(&class_stats, &class);
}

/* The class's counters of one CPU; only its cap window is written from afar. */
static __always_inline struct rota_class_stats *stats_class_on(u32 class, u32 cpu)
{
	/* Mostly this one, and that is looked up without a call. */
	if (cpu == bpf_get_smp_processor_id())
		return stats_class(class);
	return bpf_map_lookup_percpu_elem(&class_stats, &class, cpu);
}

/* A task of one class took the CPU from one of another, or of the same. */
static __always_inline void stats_preemption(u32 class, struct rota_class_stats *by, u32 cpu)
{
	struct rota_class_stats *stats = stats_class(class);

	if (stats)
		stats->preempted++;
	by->preempting++;
	cpu_counters(cpu)->preemptions++;
}

/* How many bits a number below 16 has. */
static const u8 stats_bits[16] = { 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4 };

/* Most waits are short: by four bits at a time, from the lowest. */
static __always_inline u32 stats_bucket(u64 wait_ns)
{
	u64 us = wait_ns / 1000;
	u32 bucket = 0;

	for (; us >> 4 && bucket < ROTA_WAIT_BUCKETS; bucket += 4)
		us >>= 4;
	bucket += stats_bits[us & 15];
	return bucket < ROTA_WAIT_BUCKETS ? bucket : ROTA_WAIT_BUCKETS - 1;
}

static __always_inline void stats_wait(struct rota_class_stats *stats, u64 wait_ns)
{
	u32 bucket = stats_bucket(wait_ns);

	stats->dispatches++;
	if (wait_ns > stats->wait_max_ns)
		stats->wait_max_ns = wait_ns;
	if (bucket < ROTA_WAIT_BUCKETS)
		stats->wait_hist[bucket]++;
}
