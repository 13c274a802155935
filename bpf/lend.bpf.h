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
 * Limits: a task of the owner that came just when the timer looked has the CPUs back at the end
 * of its turn.
 */

#define LEND_CPU (1 << 16)   /* in cpu_owner: this CPU is lent */
#define LEND_LOOK_NS 1000000 /* while the owner runs the timer looks no more often */

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

/* 1: the class has not used its CPUs for long enough. Written by any CPU. */
u32 lend_begun[ROTA_MAX_CLASSES];

static __always_inline const struct rota_class *lend_class(u32 owner)
{
	return task_class_at(owner - 1);
}

static __always_inline u32 *lend_begun_of(u32 owner)
{
	return &lend_begun[(owner - 1) & (ROTA_MAX_CLASSES - 1)];
}

/* May a CPU that has an owner run others' tasks now, while it would be idle? */
static __always_inline bool lend_now(const struct cpu_ctx *cpuc)
{
	u32 owner = READ_ONCE(cpuc->owner);

	if (!READ_ONCE(cpuc->lends))
		return false;
	return !lend_class(owner)->lend_after_ns || READ_ONCE(*lend_begun_of(owner));
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

static void lend_watch(u32 owner)
{
	u32 class = owner - 1;
	struct lend_timer *timer = bpf_map_lookup_elem(&lend_timers, &class);

	if (timer)
		bpf_timer_start(&timer->timer, lend_class(owner)->lend_after_ns, 0);
}

/* A timer that could not be started, or was lost, is to look again. */
static void lend_look_again(u32 owner)
{
	u32 class = owner - 1;
	struct lend_timer *timer = bpf_map_lookup_elem(&lend_timers, &class);

	if (timer && lend_class(owner)->lend_after_ns && !READ_ONCE(*lend_begun_of(owner)))
		bpf_timer_start(&timer->timer, 0, 0);
}

/* The owner wants its CPUs back: who is a guest there leaves. Not static, as queue_join. */
__noinline int lend_end(u32 owner)
{
	const struct rota_class *class = lend_class(owner);
	struct bpf_cpumask *shared = lend_mask();
	u32 cpu;

	if (!__sync_lock_test_and_set(lend_begun_of(owner), 0))
		return 0; /* another CPU was quicker */
	kernel_for(cpu, class->own_first, class->own_end)
	{
		struct cpu_ctx *cpuc = cpu_find(cpu);

		if (cpuc->owner != owner)
			continue;
		lend_mark(shared, cpu);
		if (READ_ONCE(cpuc->curr_tid) && READ_ONCE(cpuc->curr_own) != owner)
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
	lend_watch(owner);
	return 0;
}

/* A task wakes, or runs, that belongs on the CPUs of this owner, 0: nobody's. */
static __always_inline void lend_wake(u32 owner)
{
	if (owner && READ_ONCE(*lend_begun_of(owner)))
		lend_end(owner);
}

/* The CPUs of this owner are lent, and look for work. */
static void lend_begin(u32 owner)
{
	const struct rota_class *class = lend_class(owner);
	struct bpf_cpumask *shared = lend_mask();
	u32 cpu;

	WRITE_ONCE(*lend_begun_of(owner), 1);
	kernel_for(cpu, class->own_first, class->own_end)
	{
		if (cpu_find(cpu)->owner != owner)
			continue;
		lend_mark(shared, cpu);
		WRITE_ONCE(cpu_find(cpu)->sent_for, 1);
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
	}
}

static int lend_look(void *map, u32 *key, struct lend_timer *timer)
{
	u32 owner = *key + 1;
	u64 after_ns = lend_class(owner)->lend_after_ns, now_ns = kernel_now(), used_ns;
	s64 left_ns;

	if (!after_ns)
		return 0;
	used_ns = lend_used_ns(owner, now_ns);
	left_ns = used_ns + after_ns - now_ns;
	if (used_ns == now_ns && left_ns < LEND_LOOK_NS)
		left_ns = LEND_LOOK_NS;
	if (left_ns > 0) {
		bpf_timer_start(&timer->timer, left_ns, 0);
		return 0;
	}
	/* To the verifier this is a part of a program that may sleep. */
	bpf_rcu_read_lock();
	lend_begin(owner);
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
	WRITE_ONCE(*lend_begun_of(class + 1), 0);
	if (!lend_class(class + 1)->lend_after_ns)
		return 0;
	err = bpf_timer_init(&timer->timer, &lend_timers, CLOCK_MONOTONIC);
	if (err && err != -EBUSY) /* which is: it was before */
		return err;
	return bpf_timer_set_callback(&timer->timer, lend_look);
}
