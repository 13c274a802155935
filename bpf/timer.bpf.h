/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timer: turns that end between two ticks.
 *
 * Problem: the kernel looks for the end of a slice at its timer tick only, so
 * that a slice of 700 us becomes a turn of 4 ms.
 *
 * How: one timer per CPU. It is started when a turn begins that ends before
 * the next tick while somebody waits, or when somebody begins to wait, unless
 * it already fires early enough. When it fires too early, because turns were
 * given up in between, it is started again: it costs something once per slice
 * and not once per switch. It preempts what runs, and the pick decides.
 *
 * Whatever the slice is, it also ends rescued turns (see rescue), those of hogs for whom a
 * brief request waits (see preempt_cut_turn) and of others for whom the briefest does (see
 * preempt_note_moment), those that put somebody off (see preempt_defers), or that somebody far
 * heavier waits for (see preempt_end_for_heavy),
 * those of who asks for less than a slice (see queue_ask) or has promised its CPU (see
 * hand_over), and where weights differ those of who has not slept for a slice: beside a heavy
 * task a light one's turn of a tick is two of its turns, and all others wait for it.
 *
 * Where a real-time task has the CPU it calls others for who waits there.
 *
 * Limits: as exact as the kernel's timers. Else slices of half a tick (at 250 Hz) or
 * more are left to the next wake-up or tick, as the kernel's own are: under hackbench the timer
 * would take 5 % of the work to make turns of 2.8 ms out of those of 4.
 */

#define TIMER_LONGEST_NS 2000000
#define TIMER_LOST_NS 10000000 /* one that is so long overdue was lost */
#define TIMER_NEAR_NS 20000    /* an end so near is now */
#define TIMER_HOG_SLICES 32    /* who has used so many since it slept is a hog */
#define TIMER_UNEVEN_TURNS 8   /* so many turns of one weight, and weights differ no more */
#define TIMER_HELD_NS 1000000  /* a real-time task that has a CPU for so long keeps it */
#define TIMER_AGAIN_NS 4000000 /* so often another CPU is called then */

struct cpu_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROTA_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpu_timer);
} cpu_timers SEC(".maps");

/* Sees to it that the turn of what runs here ends in time. */
static __always_inline void timer_start(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct cpu_timer *timer;
	s64 left_ns = cpuc->curr_end_ns - now_ns;

	if (cpuc->timer_at_ns && !eevdf_before(cpuc->curr_end_ns, cpuc->timer_at_ns) &&
	    kernel_since(now_ns, cpuc->timer_at_ns) < TIMER_LOST_NS)
		return;
	timer = bpf_map_lookup_elem(&cpu_timers, &cpu);
	if (!timer)
		return;
	cpuc->timer_at_ns = cpuc->curr_end_ns;
	bpf_timer_start(&timer->timer, left_ns > 0 ? left_ns : 0, 0);
}

/* Has it not slept for long? */
static __always_inline bool timer_hog(const struct task_ctx *taskc)
{
	return taskc->used_ns >= TIMER_HOG_SLICES * taskc->slice_ns;
}

/*
 * A task begins a turn: is it one that ends with its slice? That is so where the weights of those
 * who have not slept for a slice differ, by more than a cgroup's share does from look to look.
 */
static __always_inline void timer_note(const struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	u32 weight = taskc->weight, least = cpuc->hog_weight - cpuc->hog_weight / 16;

	cpuc->curr_exact = taskc->request_ns < taskc->slice_ns;
	cpuc->curr_hog = timer_hog(taskc);
	if (taskc->used_ns < taskc->slice_ns || taskc->tier == ROTA_PRIORITY)
		return;
	if (weight < least || weight - least > cpuc->hog_weight / 8)
		cpuc->uneven = TIMER_UNEVEN_TURNS;
	else if (cpuc->uneven)
		cpuc->uneven--;
	cpuc->hog_weight = weight;
	if (cpuc->uneven)
		cpuc->curr_exact = 1;
}

/* Does a task run here whose turn is for the timer to end when somebody of its tier waits? */
static __always_inline bool timer_wanted(const struct cpu_ctx *cpuc)
{
	return (cpuc->curr_slice_ns < TIMER_LONGEST_NS || cpuc->curr_rescued || cpuc->curr_exact) &&
	       cpuc->curr_tid &&
	       (cpuc->curr_tier == ROTA_FAIR || cpuc->curr_tier == ROTA_BACKGROUND);
}

/* A higher scheduling class has the CPU: who waits is looked after if that takes long. */
static __always_inline void timer_watch_held(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	cpuc->curr_end_ns = now_ns + TIMER_HELD_NS;
	timer_start(cpuc, cpu, now_ns);
}

/* An idle CPU of the domain is to search for who waits here. */
static void timer_call_idle(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	u32 n, size = llc_scan(cpuc->llc);

	if (kernel_idle(cpu) || (!cpu_waiting(&cpuc->queues[0]) && !cpu_waiting(&cpuc->queues[1]) &&
				 scx_bpf_dsq_nr_queued(cpu_priority_queue(cpuc)) <= 0))
		return;
	kernel_for(n, 1, size)
	{
		u32 other = cpu_beside(cpu, n);

		if (cpu_find(other)->owner != cpuc->owner ||
		    !scx_bpf_test_and_clear_cpu_idle(other))
			continue;
		cpu_send_for(other);
		break;
	}
	cpuc->curr_end_ns = now_ns + TIMER_AGAIN_NS;
	timer_start(cpuc, cpu, now_ns);
}

static int timer_fired(void *map, u32 *key, struct cpu_timer *timer)
{
	u32 cpu = *key;
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u64 now_ns = clock_now();

	/* Not under the run queue lock: who starts it meanwhile does so once more. */
	cpuc->timer_at_ns = 0;
	if (!cpuc->curr_tid)
		timer_call_idle(cpuc, cpu, now_ns);
	if (!timer_wanted(cpuc))
		return 0;
	if (!cpu_waiting(cpu_queue(cpuc, cpuc->curr_tier)) && !cpuc->local_taken)
		return 0;
	if (!eevdf_before(now_ns + TIMER_NEAR_NS, cpuc->curr_end_ns))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	else
		timer_start(cpuc, cpu, now_ns);
	return 0;
}

static s32 timer_create(u32 cpu)
{
	struct cpu_timer *timer = bpf_map_lookup_elem(&cpu_timers, &cpu);
	s32 err;

	if (!timer)
		return -EINVAL;
	err = bpf_timer_init(&timer->timer, &cpu_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&timer->timer, timer_fired);
}
