/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lend: CPUs of a class that others may use while it does not.
 *
 * Problem: dedicated CPUs are idle most of the time. Lent whenever they are idle they are
 * busy with others' tasks at each step of a chain of tasks, which then pays for a switch and
 * a colder cache every time.
 *
 * How: a class says after how long without any task of its own it lends its CPUs. The first
 * that wakes after that takes all of them back at once, also those that it does not need
 * itself: whom it wakes finds them free. A timer for each class looks when the time is over.
 * Where that is 0 a CPU is lent whenever it is idle, and each is taken back alone. Which CPUs
 * may take anybody is a mask, for the kernel's own search for idle ones.
 *
 * A class that comes back at even intervals (pause) has its CPUs a little before that: who is
 * a guest there leaves while nobody waits for it. If the class is late its CPUs are lent again.
 *
 * Limits: a task of the owner that came just when the timer looked has the CPUs back at the end
 * of its turn.
 */

#define LEND_CPU (1 << 16)   /* in cpu_owner: this CPU is lent */
#define LEND_LOOK_NS 1000000 /* while the owner runs the timer looks no more often */
#define LEND_WORTH_NS 200000 /* for less than that guests do not move in */

struct lend_masks {
	struct bpf_cpumask __kptr *shared; /* CPUs that may take anybody while they are idle */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct lend_masks);
	__uint(max_entries, 1);
} lend_masks SEC(".maps");

struct lend_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32); /* the class */
	__type(value, struct lend_timer);
	__uint(max_entries, ROTA_MAX_CLASSES);
} lend_timers SEC(".maps");

enum lend_state {
	LEND_KEPT,    /* the class uses its CPUs, or did just now */
	LEND_LENT,    /* others may have them */
	LEND_AWAITED, /* nobody has them: the class is expected */
};

struct lend {
	u32 state;   /* enum lend_state, written by any CPU */
	u32 lent;    /* they were lent since the class last used them */
	u64 used_ns; /* when the class last used its CPUs, while they are not kept */
	struct pause pause;
};

static struct lend lends[ROTA_MAX_CLASSES];

static __always_inline const struct rota_class *lend_class(u32 owner)
{
	return task_class_at(owner - 1);
}

static __always_inline struct lend *lend_of(u32 owner)
{
	return &lends[(owner - 1) & (ROTA_MAX_CLASSES - 1)];
}

/* May a CPU that has an owner run others' tasks now, while it would be idle? */
static __always_inline bool lend_now(const struct cpu_ctx *cpuc)
{
	u32 owner = READ_ONCE(cpuc->owner);

	if (!READ_ONCE(cpuc->lends))
		return false;
	return !lend_class(owner)->lend_after_ns || READ_ONCE(lend_of(owner)->state) == LEND_LENT;
}

/* The CPUs that may take anybody while they are idle. To be read inside an RCU section. */
static __always_inline struct bpf_cpumask *lend_mask(void)
{
	struct lend_masks *masks;
	u32 zero = 0;

	masks = bpf_map_lookup_elem(&lend_masks, &zero);
	return masks ? masks->shared : NULL;
}

/* Puts another mask in the place of that one. */
static s32 lend_set_mask(struct bpf_cpumask *shared)
{
	struct lend_masks *masks;
	u32 zero = 0;

	masks = bpf_map_lookup_elem(&lend_masks, &zero);
	if (masks)
		shared = bpf_kptr_xchg(&masks->shared, shared);
	if (shared)
		bpf_cpumask_release(shared);
	return masks ? 0 : -ENOMEM;
}

static __always_inline void lend_mark_once(struct bpf_cpumask *shared, u32 cpu)
{
	const struct cpu_ctx *cpuc = cpu_find(cpu);

	if (!READ_ONCE(cpuc->owner) || lend_now(cpuc))
		bpf_cpumask_set_cpu(cpu, shared);
	else
		bpf_cpumask_clear_cpu(cpu, shared);
}

/* Whether this CPU may take anybody is another now. Twice: that may change just then. */
static void lend_mark(struct bpf_cpumask *shared, u32 cpu)
{
	if (!shared)
		return;
	lend_mark_once(shared, cpu);
	lend_mark_once(shared, cpu);
}

/* When one of the owner's CPUs was last used by a task of its; now, if one runs. */
static u64 lend_used_ns(u32 owner, u64 now_ns)
{
	const struct rota_class *class = lend_class(owner);
	u64 last_ns = 0;
	u32 cpu;

	kernel_for(cpu, class->own_first, class->own_end)
	{
		const struct cpu_ctx *cpuc = cpu_find(cpu);
		u64 used_ns = READ_ONCE(cpuc->owned_at_ns);

		if (cpuc->owner != owner)
			continue;
		if (READ_ONCE(cpuc->curr_tid) && READ_ONCE(cpuc->curr_own) == owner)
			return now_ns;
		if (!last_ns || eevdf_before(last_ns, used_ns))
			last_ns = used_ns;
	}
	return last_ns;
}

/* The timer of the class is to look in so many ns. */
static void lend_watch(u32 owner, u64 in_ns)
{
	u32 class = owner - 1;
	struct lend_timer *timer = bpf_map_lookup_elem(&lend_timers, &class);

	if (timer)
		bpf_timer_start(&timer->timer, in_ns, 0);
}

/* A timer that could not be started, or was lost, is to look again. */
static void lend_look_again(u32 owner)
{
	if (lend_class(owner)->lend_after_ns && READ_ONCE(lend_of(owner)->state) != LEND_LENT)
		lend_watch(owner, 0);
}

/* Nobody else may have the CPUs of this owner any more: who is a guest there leaves. */
static void lend_take_back(u32 owner)
{
	const struct rota_class *class = lend_class(owner);
	struct bpf_cpumask *shared = lend_mask();
	u32 cpu;

	kernel_for(cpu, class->own_first, class->own_end)
	{
		struct cpu_ctx *cpuc = cpu_find(cpu);

		if (cpuc->owner != owner)
			continue;
		lend_mark(shared, cpu);
		if (READ_ONCE(cpuc->curr_tid) && READ_ONCE(cpuc->curr_own) != owner)
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
}

/* The CPUs of this owner are lent, and look for work. */
static void lend_give(u32 owner)
{
	const struct rota_class *class = lend_class(owner);
	struct bpf_cpumask *shared = lend_mask();
	u32 cpu;

	kernel_for(cpu, class->own_first, class->own_end)
	{
		if (cpu_find(cpu)->owner != owner)
			continue;
		lend_mark(shared, cpu);
		WRITE_ONCE(cpu_find(cpu)->sent_for, 1);
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
	}
}

/* The owner wants its CPUs. Not static, as queue_join. */
__noinline int lend_end(u32 owner)
{
	struct lend *lend = lend_of(owner);
	u32 was = __sync_lock_test_and_set(&lend->state, LEND_KEPT);
	struct rota_class_stats *stats = stats_class(owner - 1);

	if (was == LEND_KEPT)
		return 0; /* another CPU was quicker */
	if (stats && lend->lent) {
		stats->returns++;
		stats->expected += was == LEND_AWAITED;
	}
	lend->lent = 0;
	pause_learn(&lend->pause, clock_now() - READ_ONCE(lend->used_ns));
	if (was == LEND_LENT)
		lend_take_back(owner);
	lend_watch(owner, lend_class(owner)->lend_after_ns);
	return 0;
}

/* A task wakes, or runs, that belongs on the CPUs of this owner, 0: nobody's. */
static __always_inline void lend_wake(u32 owner)
{
	if (owner && READ_ONCE(lend_of(owner)->state) != LEND_KEPT)
		lend_end(owner);
}

/*
 * The class has not used its CPUs for long enough: others may have them, but for the time when
 * it is expected. The timer looks again when that is otherwise.
 */
static void lend_go_on(u32 owner, u32 was, u64 now_ns)
{
	struct lend *lend = lend_of(owner);
	/* What lend_end() writes just now: then the class is here, and the state another. */
	u64 near_ns = pause_near(&lend->pause), late_ns = pause_late(&lend->pause);
	u64 rests_ns = now_ns - lend->used_ns;
	u32 state = LEND_LENT;

	if (near_ns && rests_ns + LEND_WORTH_NS >= near_ns && rests_ns < late_ns)
		state = LEND_AWAITED;
	if (__sync_val_compare_and_swap(&lend->state, was, state) != was)
		return; /* it came just now */
	if (state == LEND_LENT) {
		lend->lent = 1;
		lend_give(owner);
	} else if (was == LEND_LENT) {
		lend_take_back(owner);
	}
	if (near_ns && rests_ns < late_ns)
		lend_watch(owner, (state == LEND_LENT ? near_ns : late_ns) - rests_ns);
	/* It came meanwhile, and the timer that it started was started once more. */
	if (READ_ONCE(lend->state) == LEND_KEPT)
		lend_watch(owner, lend_class(owner)->lend_after_ns);
}

/* How long a class that has its CPUs has them still, in ns; 0: it has not used them for long. */
static u64 lend_kept(u32 owner, u64 now_ns)
{
	u64 after_ns = lend_class(owner)->lend_after_ns, used_ns = lend_used_ns(owner, now_ns);
	s64 left_ns = used_ns + after_ns - now_ns;

	if (used_ns == now_ns && left_ns < LEND_LOOK_NS)
		left_ns = LEND_LOOK_NS;
	if (left_ns > 0)
		return left_ns;
	WRITE_ONCE(lend_of(owner)->used_ns, used_ns);
	return 0;
}

static int lend_look(void *map, u32 *key, struct lend_timer *timer)
{
	u32 owner = *key + 1;
	u64 now_ns = clock_now(), left_ns = 0;
	u32 state = READ_ONCE(lend_of(owner)->state);

	if (!lend_class(owner)->lend_after_ns)
		return 0;
	if (state == LEND_KEPT)
		left_ns = lend_kept(owner, now_ns);
	if (left_ns) {
		bpf_timer_start(&timer->timer, left_ns, 0);
		return 0;
	}
	/* To the verifier this is a part of a program that may sleep. */
	bpf_rcu_read_lock();
	lend_go_on(owner, state, now_ns);
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * The daemon has said which CPUs the class has: nothing is lent until it has not used them. The
 * timer is started when the owners are known and the mask is made.
 */
static s32 lend_reset(u32 class)
{
	struct lend_timer *timer = bpf_map_lookup_elem(&lend_timers, &class);
	s32 err;

	if (!timer)
		return -EINVAL;
	bpf_timer_cancel(&timer->timer);
	/* It may be another class than before: nothing is known of its pauses. */
	lend_of(class + 1)->pause = (struct pause){};
	WRITE_ONCE(lend_of(class + 1)->state, LEND_KEPT);
	if (!lend_class(class + 1)->lend_after_ns)
		return 0;
	err = bpf_timer_init(&timer->timer, &lend_timers, CLOCK_MONOTONIC);
	if (err && err != -EBUSY) /* which is: it was before */
		return err;
	return bpf_timer_set_callback(&timer->timer, lend_look);
}
