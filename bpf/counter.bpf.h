/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * counter: how much each task waits for memory, and how fast its CPU is, as counted.
 *
 * Problem: shares of progress (pace.bpf.h) need for each task how much of its time does not
 * depend on the frequency, and frequencies as they are, not as they were asked for.
 *
 * How: the daemon opens counters on each CPU. Where a CPU goes from one task to another
 * they are read, and what was counted belongs to the task that ran (counter.h). It is
 * charged by the mean of what was counted before.
 *
 * Limits: who goes on and on alone is read when somebody else runs. On kernels that do not
 * let the scheduler itself read counters a tracepoint must; it is there only while wanted.
 */

#define COUNTER_SPEED_NS 4000000 /* of running: less says too little about the frequency */

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, ROTA_MAX_CPUS);
} counter_waits SEC(".maps"), counter_cycles SEC(".maps");

u32 cpus_came;		    /* how often a CPU came online: its counters have ended before */
u32 cpu_khz[ROTA_MAX_CPUS]; /* set by the daemon: cycles in 1 ms at full speed, 0: not known */

struct counter_cpu {
	struct counter_value waits, cycles;
	u64 at_ns;		/* when they were read, 0: not yet */
	u64 ran_ns, ran_cycles; /* since its frequency was last known */
	u32 epoch;		/* of the counters that were read */
} counter_cpus[ROTA_MAX_CPUS];

/* Reads a counter of this CPU. false: there is none, or it did not count. */
static __always_inline bool counter_read(void *map, struct counter_value *last, u64 *n)
{
	struct bpf_perf_event_value now;
	struct counter_value value;
	bool counted;

	if (bpf_perf_event_read_value(map, BPF_F_CURRENT_CPU, &now, sizeof(now)))
		return false;
	value.counter = now.counter;
	value.enabled = now.enabled;
	value.running = now.running;
	*n = counter_delta(last, &value, &counted);
	*last = value;
	return counted;
}

/* The frequency of this CPU, after ns more in which cycles passed; only it writes this then. */
static __always_inline u32 counter_pace(struct counter_cpu *cpuc, u32 cpu, u64 ns, u64 cycles)
{
	u32 *speed = &cpu_speed[cpu & (ROTA_MAX_CPUS - 1)];
	u32 khz = cpu_khz[cpu & (ROTA_MAX_CPUS - 1)];

	if (khz) {
		cpuc->ran_ns += ns;
		cpuc->ran_cycles += cycles;
	}
	if (cpuc->ran_ns >= COUNTER_SPEED_NS) {
		*speed = counter_speed(cpuc->ran_ns, cpuc->ran_cycles, khz);
		cpuc->ran_ns = cpuc->ran_cycles = 0;
	}
	return *speed ?: PACE_FULL;
}

/* What was counted while this task ran: so much of its time waited. */
static __always_inline void counter_note(struct task_ctx *taskc, u64 ns, u64 waited_ns, u32 speed)
{
	struct rota_class_stats *stats = stats_class(taskc->class);
	u64 full_ns = counter_full(ns, waited_ns, speed);

	if (taskc->counter_epoch != counters.epoch) {
		taskc->counter_epoch = counters.epoch;
		taskc->counted.waited_ns = taskc->counted.full_ns = 0;
	}
	taskc->bound = counter_learn(&taskc->counted, waited_ns, full_ns);
	if (!stats)
		return;
	stats->waited_ns += waited_ns;
	stats->counted_ns += full_ns;
}

/* Is what this CPU counts from now on to be compared with another reading? */
static __always_inline bool counter_begins(struct counter_cpu *cpuc)
{
	if (cpuc->epoch == counters.epoch && cpuc->at_ns)
		return false;
	cpuc->epoch = counters.epoch;
	cpuc->ran_ns = cpuc->ran_cycles = 0;
	return true;
}

/* This CPU goes from one task to another. */
static void counter_switch(struct task_struct *prev, u32 cpu)
{
	struct counter_cpu *cpuc = &counter_cpus[cpu & (ROTA_MAX_CPUS - 1)];
	u64 now_ns = clock_kernel(), ns = now_ns - cpuc->at_ns, waits = 0, cycles = 0;
	u64 enabled = cpuc->cycles.enabled;
	bool begins = counter_begins(cpuc), waited, passed;
	struct task_ctx *taskc;
	u32 speed;

	cpuc->at_ns = now_ns;
	waited = counters.waits && counter_read(&counter_waits, &cpuc->waits, &waits);
	passed = counters.cycles && counter_read(&counter_cycles, &cpuc->cycles, &cycles);
	if (begins || ns > COUNTER_LONGEST_NS || !prev->pid)
		return;
	/* By the counter's own clock: the scheduler's stood still while it waited for locks. */
	if (passed)
		ns = cpuc->cycles.enabled - enabled;
	speed = counter_pace(cpuc, cpu, passed ? ns : 0, passed ? cycles : 0);
	taskc = task_try(prev);
	if (taskc && waited && (passed || counters.latency_ps))
		counter_note(taskc, ns, counter_waited(ns, waits, cycles, counters.latency_ps),
			     speed);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(rota_on_switch, bool preempt, struct task_struct *prev)
{
	if (knobs.frequency && (counters.waits || counters.cycles))
		counter_switch(prev, bpf_get_smp_processor_id());
	return 0;
}
