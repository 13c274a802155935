/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * limit: cpu.max, the CPU time that a cgroup may take in a period.
 *
 * Problem: all CPUs draw on one budget, and who has used it up must stop, wait
 * and go on, none of which may cost those who have no limit.
 *
 * How: a limited group has a pool that is filled once per period by whoever
 * comes first. A CPU takes up to 2 ms from it at a time and charges
 * what runs to that. Who finds nothing left, in its group or in one above,
 * waits in a queue of its CPU, ordered by the end of the period, and competes
 * for nothing meanwhile. A tick or, on an idle CPU, a timer looks at that queue
 * when a period has ended; if neither can, another CPU does.
 *
 * Limits: time is charged at ticks and switches; what was taken too much is
 * owed by the next periods, ten at most. Who waits for 10 s runs
 * all the same, for a tick, so that the kernel's watchdog finds nobody: thousands of
 * tasks that never sleep get more than the limit of their group. A
 * task can be stopped while it holds a lock of the kernel. Up to a chunk per CPU
 * of one period may be used in a later one, even without cpu.max.burst.
 */

#define LIMIT_CHUNK_NS 2000000
#define LIMIT_MIN_CHUNK_NS 100000
#define LIMIT_LOOKS 64 /* tasks that one pass looks at */
#define LIMIT_LONGEST_NS 10000000000ULL
#define LIMIT_NONE_US (1ULL << 40) /* a quota of so much is none */

#define LIMIT_DEBTS 10		/* periods that a group may be in debt */
#define LIMIT_AGAIN_NS 10000000 /* a timer whose CPU did not look fires again */
#define LIMIT_LATE_NS 50000000	/* for so long others look for who waits on such a CPU */
#define LIMIT_JUST_NS 200000	/* after so long all CPUs have seen a refill */
#define LIMIT_TURNS 8

u32 limit_groups;  /* atomic add; limited groups; 0: nobody is slowed down by this part */
u32 limit_changes; /* atomic add; partner: limit_find_nearest() */
u64 limit_late_ns; /* when a CPU was last seen that does not look at those who wait there */

struct limit_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROTA_MAX_CPUS);
	__type(key, u32);
	__type(value, struct limit_timer);
} limit_timers SEC(".maps");

/* Fills the pool if a period has ended. Whoever wins the exchange does it. */
static void limit_refill(struct group *group, u64 now_ns)
{
	u64 end_ns = READ_ONCE(group->period_end_ns), next_ns = end_ns + group->period_ns;
	s64 add_ns = group->quota_ns, least_ns = -LIMIT_DEBTS * add_ns, room_ns;
	/* Before the others see that the period has ended: what they take for a moment is no debt. */
	s64 pool_ns = READ_ONCE(group->pool_ns);
	u64 missed = 0;

	if (eevdf_before(now_ns, end_ns))
		return;
	if (!eevdf_before(now_ns, next_ns)) {
		missed = kernel_since(now_ns, end_ns) / group->period_ns;
		next_ns = now_ns + group->period_ns;
	}
	if (__sync_val_compare_and_swap(&group->period_end_ns, end_ns, next_ns) != end_ns)
		return;
	if (pool_ns < least_ns) {
		__sync_fetch_and_add(&group->pool_ns, least_ns - pool_ns);
		pool_ns = least_ns;
	}
	/* Periods in which nobody ran have paid what was owed, and no more than that. */
	if (pool_ns < 0) {
		u64 paid_ns = (missed < LIMIT_DEBTS ? missed : LIMIT_DEBTS) * add_ns;

		add_ns += paid_ns < -pool_ns ? paid_ns : -pool_ns;
	}
	room_ns = group->quota_ns + group->burst_ns - pool_ns;
	__sync_fetch_and_add(&group->pool_ns, add_ns < room_ns ? add_ns : room_ns);
}

/* How much a CPU takes at a time. */
static __always_inline s64 limit_chunk(const struct group *group)
{
	u64 chunk_ns = group->quota_ns / 8;

	if (chunk_ns > LIMIT_CHUNK_NS)
		return LIMIT_CHUNK_NS;
	return chunk_ns < LIMIT_MIN_CHUNK_NS ? LIMIT_MIN_CHUNK_NS : chunk_ns;
}

/* Gets this CPU something to spend; false: there is nothing, and its debt is the pool's. */
static bool limit_take(struct group *group, struct group_cell *cell, u64 now_ns)
{
	s64 want_ns = limit_chunk(group) - cell->budget_ns, had_ns, got_ns;

	limit_refill(group, now_ns);
	had_ns = __sync_fetch_and_add(&group->pool_ns, -want_ns);
	got_ns = had_ns <= 0 ? 0 : had_ns < want_ns ? had_ns : want_ns;
	if (got_ns < want_ns)
		__sync_fetch_and_add(&group->pool_ns, want_ns - got_ns);
	cell->budget_ns += got_ns;
	if (cell->budget_ns > 0)
		return true;
	__sync_fetch_and_add(&group->pool_ns, cell->budget_ns);
	cell->budget_ns = 0;
	return false;
}

/* When to ask again: at the end of the period, or at once if another CPU has just begun it. */
static __always_inline u64 limit_until(const struct group *group, u64 now_ns)
{
	u64 end_ns = READ_ONCE(group->period_end_ns);

	if (kernel_since(now_ns, end_ns - group->period_ns) < LIMIT_JUST_NS)
		return now_ns + LIMIT_JUST_NS;
	return end_ns;
}

/*
 * Charges CPU time to a group and those above it. Returns 0 if it may go on,
 * else the time in ns at which to ask again.
 */
__noinline u64 limit_charge(u32 index, u64 delta_ns, u64 now_ns)
{
	u64 until_ns = 0;
	u32 level;

	kernel_for(level, 0, GROUP_DEPTH)
	{
		struct group *group;
		struct group_cell *cell;

		index = group_find(index)->limit;
		if (!index)
			break;
		group = group_find(index);
		cell = group_cell(index);
		index = group->parent;
		if (!cell || !group->quota_ns)
			continue;
		cell->budget_ns -= delta_ns;
		if (cell->budget_ns <= 0 && !limit_take(group, cell, now_ns)) {
			u64 end_ns = limit_until(group, now_ns);

			if (eevdf_before(until_ns, end_ns))
				until_ns = end_ns;
		}
	}
	return until_ns;
}

/*
 * Has the group of this task, or one above, used up its time? Until when it has
 * to wait, 0: it need not. Who dies gives back more than it takes.
 */
static __always_inline u64 limit_over(const struct task_struct *p, const struct task_ctx *taskc,
				      u64 now_ns)
{
	if (!limit_groups || !taskc->group)
		return 0;
	if ((p->flags & PF_EXITING) || (p->pending.signal.sig[0] & SIGKILL_BIT))
		return 0;
	return limit_charge(taskc->group, 0, now_ns);
}

/* Looks at those who wait here at that time, also if the CPU is idle then. */
static void limit_look_at(struct cpu_ctx *cpuc, u32 cpu, u64 at_ns, u64 now_ns)
{
	struct limit_timer *timer = bpf_map_lookup_elem(&limit_timers, &cpu);
	s64 left_ns = at_ns - now_ns;

	cpuc->limited_at_ns = at_ns;
	if (!timer || bpf_timer_start(&timer->timer, left_ns > 0 ? left_ns : 0, 0))
		scx_bpf_kick_cpu(cpu, 0);
}

/* A task is about to wait for its group. It has not gone to sleep: it keeps what it owes. */
static void limit_stop(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 until_ns,
		       u64 now_ns)
{
	if (taskc->joined >= 0)
		queue_leave(taskc, cpu, false);
	if (!taskc->limited_ns)
		taskc->limited_ns = now_ns;
	cpu_counters(cpu)->limited++;
	if (!cpuc->queued_limited || eevdf_before(until_ns, cpuc->limited_at_ns))
		limit_look_at(cpuc, cpu, until_ns, now_ns);
	cpuc->queued_limited = 1;
}

/* Makes a task that is ready wait until its group may run again. */
static void limit_park(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu,
		       u64 until_ns, u64 now_ns)
{
	limit_stop(taskc, cpuc, cpu, until_ns, now_ns);
	kernel_insert_vtime(p, QUEUE_LIMITED(cpu), taskc->slice_ns, until_ns, 0);
}

/*
 * Takes those out of a queue whose groups have no time left: they would gain on
 * those who stopped already. The first few, more at the next pick.
 */
__noinline int limit_sweep(u64 dsq, u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_struct *p;

	cpuc->limited_looks = 0;
	kernel_for_waiting(it, p, dsq)
	{
		struct task_ctx *taskc = task_try(p);
		u64 until_ns;

		if (++cpuc->limited_looks > LIMIT_LOOKS)
			break;
		until_ns = taskc ? limit_over(p, taskc, now_ns) : 0;
		if (!until_ns || taskc->overdue ||
		    !kernel_move_vtime(&it, p, QUEUE_LIMITED(cpu), until_ns))
			continue;
		/* Of the parked there may be as many as before: the count is a bound. */
		cpu_queue(cpuc, taskc->tier)->queued--;
		limit_stop(taskc, cpuc, cpu, until_ns, now_ns);
	}
	return 0;
}

/* Puts a task that waited here among those who compete. Its wait for a CPU begins now. */
static void limit_readmit(struct bpf_iter_scx_dsq *it, struct task_struct *p,
			  struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	taskc->ready_at_ns = now_ns;
	if (taskc->tier == ROTA_PRIORITY) {
		priority_place(taskc, llc_find(cpuc->llc), taskc->slice_ns);
		cpu_note_priority(cpuc, now_ns);
		kernel_move_vtime(it, p, cpu_priority_queue(cpuc), taskc->deadline_vt);
	} else {
		if (taskc->joined < 0)
			queue_join(taskc, cpu, now_ns);
		pick_admit(taskc, cpuc, cpu, now_ns);
		kernel_move_vtime(it, p, queue_id(taskc->tier, cpu), taskc->deadline_vt);
	}
	own_kick_idle(p, taskc->own);
}

/* Lets those go on whose groups have time again. */
__noinline int limit_release(u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u64 next_ns = 0;
	struct task_struct *p;

	/* Not a variable: the verifier would walk the loop for each of its values. */
	cpuc->limited_looks = 0;
	kernel_for_waiting(it, p, QUEUE_LIMITED(cpu))
	{
		struct task_ctx *taskc = task_try(p);
		u64 until_ns;

		if (eevdf_before(now_ns, p->scx.dsq_vtime) || ++cpuc->limited_looks > LIMIT_LOOKS) {
			if (!next_ns || eevdf_before(p->scx.dsq_vtime, next_ns))
				next_ns = p->scx.dsq_vtime;
			break;
		}
		if (!taskc)
			continue;
		until_ns = limit_over(p, taskc, now_ns);
		taskc->overdue = kernel_since(now_ns, taskc->limited_ns) > LIMIT_LONGEST_NS;
		if (!until_ns || taskc->overdue)
			limit_readmit(&it, p, taskc, cpuc, cpu, now_ns);
		else if (kernel_move_vtime(&it, p, QUEUE_LIMITED(cpu), until_ns) &&
			 (!next_ns || eevdf_before(until_ns, next_ns)))
			next_ns = until_ns;
	}
	cpuc->queued_limited = !!next_ns;
	if (next_ns)
		limit_look_at(cpuc, cpu, next_ns, now_ns);
	return 0;
}

/* A task runs, unless others of its group used up the time while it waited. */
static void limit_running(struct task_struct *p, struct task_ctx *taskc, u32 cpu, u64 now_ns)
{
	if (!limit_over(p, taskc, now_ns) || taskc->overdue)
		taskc->limited_ns = 0;
	else
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Is it time to? */
static __always_inline bool limit_due(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return cpuc->queued_limited && !eevdf_before(now_ns, cpuc->limited_at_ns);
}

/*
 * A CPU whose time to look was long ago cannot: a higher scheduling class has it, or
 * it goes offline. Takes one of those who wait there; whether it may run is looked
 * at when it does.
 */
__noinline bool limit_adopt(u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 n, nr = topology.nr_cpus;

	if (eevdf_before(now_ns, cpuc->adopt_at_ns))
		return false;
	cpuc->adopt_at_ns = now_ns + LIMIT_AGAIN_NS;
	kernel_for(n, 1, nr)
	{
		u32 other = (cpu + n) % (nr ?: 1);
		struct cpu_ctx *otherc = cpu_find(other);

		if (READ_ONCE(otherc->queued_limited) &&
		    kernel_since(now_ns, READ_ONCE(otherc->limited_at_ns)) > 2 * LIMIT_AGAIN_NS &&
		    kernel_move_to_local(QUEUE_LIMITED(other)))
			return true;
	}
	return false;
}

/* Is there such a CPU? */
static __always_inline bool limit_late(u64 now_ns)
{
	return kernel_since(now_ns, READ_ONCE(limit_late_ns)) < LIMIT_LATE_NS;
}

/* Wakes an idle CPU that may take this task. */
static void limit_send_for(struct task_struct *p, u32 cpu)
{
	u32 n, nr = topology.nr_cpus;

	kernel_for(n, 1, nr)
	{
		u32 other = (cpu + n) % (nr ?: 1);

		if (own_closed(cpu_find(other)) || !cpu_allows(p, other) ||
		    !scx_bpf_test_and_clear_cpu_idle(other))
			continue;
		cpu_send_for(other);
		break;
	}
}

/* The CPU does not look: others are to, and an idle one is woken for it. */
static void limit_call(u32 cpu, u64 now_ns)
{
	struct task_struct *p;

	/* The timer's function is verified as part of a program that may sleep. */
	bpf_rcu_read_lock();
	kernel_for_waiting(it, p, QUEUE_LIMITED(cpu))
	{
		if (p->nr_cpus_allowed == 1)
			continue;
		WRITE_ONCE(limit_late_ns, now_ns);
		limit_send_for(p, cpu);
		break;
	}
	bpf_rcu_read_unlock();
}

/* Makes the CPU look, and others if it did not. The clocks need not agree. */
static int limit_timer_fired(void *map, u32 *key, struct limit_timer *timer)
{
	struct cpu_ctx *cpuc = cpu_find(*key);
	u64 now_ns = clock_now();
	s64 left_ns = READ_ONCE(cpuc->limited_at_ns) - now_ns;

	if (!READ_ONCE(cpuc->queued_limited))
		return 0;
	if (left_ns > 0) {
		bpf_timer_start(&timer->timer, left_ns + 1000, 0);
		return 0;
	}
	scx_bpf_kick_cpu(*key, KICK_IDLE);
	if (left_ns < -2 * LIMIT_AGAIN_NS)
		limit_call(*key, now_ns);
	bpf_timer_start(&timer->timer, LIMIT_AGAIN_NS, 0);
	return 0;
}

static s32 limit_create(u32 cpu)
{
	struct limit_timer *timer = bpf_map_lookup_elem(&limit_timers, &cpu);
	s32 err;

	if (!timer)
		return -EINVAL;
	err = bpf_timer_init(&timer->timer, &limit_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&timer->timer, limit_timer_fired);
}

/* A group finds the nearest limited one from itself up. */
static void limit_find(u32 index)
{
	u32 level, at = index;

	kernel_for(level, 0, GROUP_DEPTH)
	{
		if (!at || group_find(at)->quota_ns)
			break;
		at = group_find(at)->parent;
	}
	group_find(index)->limit = at;
}

/* The same for these, again if the tree or a limit has changed meanwhile. */
__noinline int limit_find_nearest(u32 first, u32 end)
{
	u32 turn, index;

	__sync_fetch_and_add(&limit_changes, 1);
	kernel_for(turn, 0, LIMIT_TURNS)
	{
		u32 seen = READ_ONCE(limit_changes);

		kernel_for(index, first, end) limit_find(index);
		if (READ_ONCE(limit_changes) == seen)
			break;
	}
	return 0;
}

/* A group's cpu.max is set or taken away. */
__noinline int limit_set(u32 index, u64 period_us, u64 quota_us, u64 burst_us)
{
	struct group *group = group_find(index);
	u64 quota_ns = quota_us < LIMIT_NONE_US ? quota_us * 1000 : 0, was_ns;

	if (!index || (!quota_ns && !group->quota_ns))
		return 0;
	group->period_ns = period_us * 1000;
	group->burst_ns = burst_us * 1000;
	group->period_end_ns = 0;
	group->pool_ns = 0;
	/* Others may write the same file now: each counts what it really changed. */
	was_ns = __sync_lock_test_and_set(&group->quota_ns, quota_ns);
	if (!!quota_ns != !!was_ns)
		__sync_fetch_and_add(&limit_groups, quota_ns ? 1 : -1);
	limit_find_nearest(1, group_end);
	return 0;
}
