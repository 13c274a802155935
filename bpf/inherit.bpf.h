/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inherit: what a priority task waits for runs at its level.
 *
 * Problem: a priority task is only as quick as the slowest thing that it waits
 * for, and the owner of a lock or a server may wait behind everybody else.
 *
 * How: who waits names one other task (an edge, task_ctx.waits): whoever knows
 * of the wait calls inherit_begin(), the wake-up ends it. The edges of all tasks
 * are kept, so that a chain is known when a priority task comes to its end; it
 * is active where somebody above gives a boost, and the one below then counts
 * it. Who is boosted has the tier, weight, slice and cap of its giver's class.
 * A boosted task that sleeps or runs takes its level over where it next enters a
 * queue. One that waits in a queue is called (cpu_ctx.calls) by the CPU that the giver
 * leaves, else by one that runs something less important, and moved there; while all run
 * what is as important, by the first CPU of the domain that looks for its next task.
 * An edge by a wake-up also ends when the one below sleeps: it has served, or
 * waits for something that nobody knows.
 *
 * Limits: one edge for each task, chains of INHERIT_CHAIN. A server that is asked again
 * before it sleeps is not woken, and gets no boost by a wake-up. With several givers
 * the class of the heaviest holds until none is left. After INHERIT_SPENT_NS of
 * CPU time a boost is over, though the wait goes on. Who gets its class while it waits gives from
 * then on, unless that is the moment in which the wait begins, or a boost that it passed on ends.
 * Who waits for its cgroup's cpu.max is not moved. A start time is kept to 2^20 ms: a tid that is
 * reused in the same ms of one of these would be taken for the old one.
 */

#define INHERIT_CHAIN 8
#define INHERIT_SPENT_NS 1000000000ULL
#define INHERIT_GONE (-(1 << 30)) /* task_ctx.held of one that has ended */
/* What a walk down a chain does. */
#define INHERIT_TAKE 0
#define INHERIT_GIVE 1
#define INHERIT_LEAVE 2 /* gives, and its CPU, where it is about to sleep */
#define INHERIT_WAKERS (1 << ROTA_WAKE | 1 << ROTA_BINDER) /* who want to know who wakes whom */

/* An edge: tid, flags, reason, start and, of a wake-up, the sleeps of the one below. */
#define INHERIT_TID(edge) ((s32)((edge) & ((1 << 22) - 1)))
#define INHERIT_ACTIVE (1ULL << 22)
#define INHERIT_SERVES (1ULL << 23)
#define INHERIT_REASON(edge) ((edge) >> 24 & 7)
#define INHERIT_START(edge) ((edge) >> 27 & ((1 << 20) - 1))
#define INHERIT_SLEEPS(edge) ((edge) >> 47)
#define INHERIT_SLEEPS_MASK ((1 << 17) - 1)

/* Does a count of givers say that the task has ended? Some may have counted since it did. */
static __always_inline bool inherit_gone(s32 held)
{
	return held <= INHERIT_GONE / 2;
}

static __always_inline bool inherit_by(u32 reason)
{
	return knobs.inherit & 1 << reason;
}

/* What an edge says of a task's start, to tell it from another of the same tid. */
static __always_inline u64 inherit_start(const struct task_struct *p)
{
	return p->start_boottime >> 20 & ((1 << 20) - 1);
}

/* An edge to this task, not active yet. */
static __always_inline u64 inherit_edge(const struct task_struct *p, u32 reason)
{
	return (u64)p->pid | (u64)reason << 24 | inherit_start(p) << 27;
}

/* The task at the end of an edge, to be released; NULL: it is no more. */
static __always_inline struct task_struct *inherit_target(u64 edge)
{
	struct task_struct *p = bpf_get_current_task_btf();

	/* Who answers is most often at the end of the edge that this ends. */
	p = p->pid == INHERIT_TID(edge) ? bpf_task_acquire(p)
					: bpf_task_from_pid(INHERIT_TID(edge));
	if (p && inherit_start(p) != INHERIT_START(edge)) {
		bpf_task_release(p);
		return NULL;
	}
	return p;
}

/* Does it give what it has to whom it waits for? */
static __always_inline bool inherit_gives(const struct task_ctx *taskc)
{
	if (task_boosted(taskc))
		return true;
	return task_class(taskc)->tier == ROTA_PRIORITY && task_class(taskc)->inherit;
}

/* One try of inherit_count(): 1: counted, 0: the task has slept since, -1: somebody was quicker. */
static __always_inline s32 inherit_try(struct task_ctx *taskc, u64 edge, s32 one)
{
	u64 seen = READ_ONCE(taskc->serves);

	if ((seen >> 32 & INHERIT_SLEEPS_MASK) != INHERIT_SLEEPS(edge) || (one < 0 && !(u32)seen))
		return 0;
	return __sync_val_compare_and_swap(&taskc->serves, seen, seen + one) == seen ? 1 : -1;
}

/*
 * One giver more or less; false: it does not count, because the task has slept since, or
 * has ended. A boost may be taken back before it is given: then the count is -1 meanwhile.
 */
static bool inherit_count(struct task_ctx *taskc, u64 edge, s32 one)
{
	s32 counted;

	if (!(edge & INHERIT_SERVES))
		return !inherit_gone(__sync_fetch_and_add(&taskc->held, one));
	counted = inherit_try(taskc, edge, one);
	if (counted < 0)
		counted = inherit_try(taskc, edge, one);
	if (counted < 0)
		counted = inherit_try(taskc, edge, one);
	return counted > 0;
}

/* This CPU is to fetch the task where it next looks for work. */
static __always_inline void inherit_note_call(u32 cpu, u32 tid)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 slot = __sync_fetch_and_add(&cpuc->called, 1);

	WRITE_ONCE(cpuc->calls[slot & (CPU_CALLS - 1)], tid);
}

/* May the task have this CPU, which is about to look for another one? */
static __always_inline bool inherit_vacant(struct task_struct *p, u32 own, u32 cpu)
{
	return cpu_find(cpu)->owner == own && cpu_allows(p, cpu);
}

/* On whose CPUs it belongs. */
static __always_inline u32 inherit_own(struct task_struct *p)
{
	const struct task_ctx *taskc = task_try(p);

	if (!taskc)
		return 0;
	return task_own_at(task_boosted(taskc) ? taskc->lent : taskc->class);
}

/*
 * Makes a CPU look for this task: this one if it is about to look in any case, an idle one,
 * or where the least important runs; while all run what is as important, the first of its
 * domain that looks for its next task. Not static, as queue_join; the next one neither.
 */
__noinline int inherit_call(u32 tid, u32 cpu, bool leaves)
{
	struct task_struct *p = bpf_task_from_pid(tid);
	s32 at = bpf_get_smp_processor_id();
	u32 own, size, n;
	u64 kick = 0;

	if (!p)
		return 0;
	own = inherit_own(p);
	if (cpu_find(cpu)->owner != own && place_home(p, own, cpu) < 0)
		own = cpu_find(cpu)->owner; /* it may run nowhere else */
	if (own && cpu_find(cpu)->owner != own)
		cpu = task_class_at(own - 1)->own_first;
	if (!leaves || !inherit_vacant(p, own, at)) {
		at = own_pick_idle(p, own);
		kick = KICK_IDLE;
	}
	if (at < 0) {
		at = priority_victim(p, own, cpu, false); /* who is fetched is not held to a cap */
		kick = KICK_PREEMPT;
	}
	bpf_task_release(p);
	if (at >= 0) {
		inherit_note_call(at, tid);
		if (kick)
			scx_bpf_kick_cpu(at, kick);
		return 0;
	}
	size = llc_scan(cpu_find(cpu)->llc);
	kernel_for(n, 0, size)
	{
		inherit_note_call(cpu_beside(cpu, n), tid);
	}
	return 0;
}

/* A task that was boosted: if it waits in a queue it is called, if it runs it goes on. */
static __always_inline void inherit_raise(struct task_struct *p, struct task_ctx *taskc,
					  bool leaves)
{
	struct cpu_ctx *cpuc = cpu_find(p->thread_info.cpu);
	s32 joined = READ_ONCE(taskc->joined), at = bpf_get_smp_processor_id();

	/* It may have stopped just now: as in inherit_lower(). */
	if (READ_ONCE(cpuc->curr_tid) == p->pid)
		WRITE_ONCE(cpuc->curr_raised, 1);
	else if (leaves && joined == at && cpu_find(at)->owner == task_own_at(taskc->lent))
		inherit_note_call(at, p->pid); /* as inherit_call() would, for less */
	else if (joined >= 0)
		inherit_call(p->pid, joined, leaves);
}

/* A task whose boost has ended: it may be preempted, and if somebody waits, is. */
static __always_inline void inherit_lower(const struct task_struct *p)
{
	u32 cpu = p->thread_info.cpu;
	struct cpu_ctx *cpuc = cpu_find(cpu);

	if (READ_ONCE(cpuc->curr_tid) != p->pid)
		return;
	/* It may have stopped just now; the next to run then is shown so until it stops. */
	WRITE_ONCE(cpuc->curr_demoted, 1);
	WRITE_ONCE(cpuc->curr_raised, 0);
	if (priority_others_wait(cpuc))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* So many boosts are over. Atomic, partner: itself, from an interrupt on the same CPU. */
static __always_inline void inherit_over(s64 boosts)
{
	__sync_fetch_and_add(&cpu_counters(bpf_get_smp_processor_id())->ended, boosts);
}

/* It has a level of its own from now on. */
static __always_inline void inherit_promote(const struct task_ctx *taskc)
{
	inherit_over((s64)READ_ONCE(taskc->held) + (u32)READ_ONCE(taskc->serves));
}

/*
 * Who waits for it may not find it any more to take his boost back: it has ended
 * (INHERIT_GONE), or has another tid (0).
 */
static __always_inline void inherit_lose(struct task_ctx *taskc, s32 now)
{
	s64 held = __sync_lock_test_and_set(&taskc->held, now);
	u64 served = __sync_lock_test_and_set(&taskc->serves, ((taskc->serves >> 32) + 1) << 32);

	if (task_class(taskc)->tier != ROTA_PRIORITY)
		inherit_over(held + (u32)served);
}

/*
 * Is the boost just counted its only one? Its level does not say so alone: that is old where
 * its class has changed since it last entered a queue.
 */
static __always_inline bool inherit_first(const struct task_ctx *taskc)
{
	return taskc->level == taskc->class ||
	       READ_ONCE(taskc->held) + (s32)READ_ONCE(taskc->serves) <= 1;
}

/*
 * Boosts the task at the end of an edge. Returns the edge that becomes active by it, or
 * 0. An edge that nobody would follow must not become active.
 */
static u64 inherit_give(struct task_struct *p, u64 edge, u32 class, bool leaves, bool last)
{
	struct rota_cpu_stats *counters = cpu_counters(bpf_get_smp_processor_id());
	struct task_ctx *taskc = task_try(p);
	u32 reason;
	u64 next;

	if (!taskc || !inherit_count(taskc, edge, 1))
		return 0;
	if (inherit_first(taskc)) {
		taskc->boosted_ns = 0;
		taskc->spent = 0;
		taskc->lent = class;
	} else if (task_class_at(taskc->lent)->tier != ROTA_PRIORITY ||
		   task_class_at(class)->weight > task_class_at(taskc->lent)->weight) {
		taskc->lent = class;
	}
	/* It needs none, unless its class is another one before the wait is over. */
	if (task_class(taskc)->tier == ROTA_PRIORITY)
		return 0;
	task_outdate(taskc);
	reason = INHERIT_REASON(edge) < ROTA_REASONS ? INHERIT_REASON(edge) : 0;
	__sync_fetch_and_add(&counters->boosts[reason], 1); /* as in inherit_over() */
	inherit_raise(p, taskc, leaves);
	next = READ_ONCE(taskc->waits);
	/* It may have been taken back already, by who was quicker. */
	if (!next || next & INHERIT_ACTIVE || last || !task_awaited(taskc))
		return 0;
	counters->chained++;
	/* Whoever wins this exchange counts; who ends the edge meanwhile saw it inactive. */
	return __sync_val_compare_and_swap(&taskc->waits, next, next | INHERIT_ACTIVE) == next
		       ? next | INHERIT_ACTIVE
		       : 0;
}

/*
 * Takes a boost back. Returns the edge that is not active any more by it, or 0. An edge
 * that nobody would follow stays active until its own wait ends.
 */
static u64 inherit_take(struct task_struct *p, u64 edge, bool last)
{
	struct task_ctx *taskc = task_try(p);
	u64 next;

	if (!taskc || !inherit_count(taskc, edge, -1) || task_class(taskc)->tier == ROTA_PRIORITY)
		return 0;
	inherit_over(1);
	if (task_awaited(taskc))
		return 0;
	task_outdate(taskc);
	inherit_lower(p);
	next = READ_ONCE(taskc->waits);
	if (!(next & INHERIT_ACTIVE) || last)
		return 0;
	return __sync_val_compare_and_swap(&taskc->waits, next, next & ~INHERIT_ACTIVE) == next
		       ? next
		       : 0;
}

/* One task down the chain. Returns the next edge, or 0. */
__noinline u64 inherit_step(u64 edge, u32 class, u32 what, bool last)
{
	struct task_struct *p = inherit_target(edge);

	if (!p)
		return 0;
	edge = what ? inherit_give(p, edge, class, what == INHERIT_LEAVE, last)
		    : inherit_take(p, edge, last);
	bpf_task_release(p);
	return edge;
}

/* Down the chain from an edge that has become active, or is no more. */
__noinline int inherit_follow(u64 edge, u32 class, u32 what)
{
	u32 n;

	/* Most chains are of one: no loop for these. */
	edge = inherit_step(edge, class, what, false);
	if (!edge)
		return 0;
	kernel_for(n, 1, INHERIT_CHAIN)
	{
		if (!edge)
			break;
		edge = inherit_step(edge, class, what, n == INHERIT_CHAIN - 1);
	}
	return 0;
}

/* The wait of a task is over. Returns its edge. */
static __always_inline u64 inherit_end(struct task_ctx *taskc)
{
	u64 edge = __sync_lock_test_and_set(&taskc->waits, 0);

	if (edge & INHERIT_ACTIVE)
		inherit_follow(edge, 0, INHERIT_TAKE);
	return edge;
}

/* Gives a task's level to the one at the end of its new edge, if the edge gives. */
static __always_inline void inherit_lend(const struct task_ctx *taskc, u64 edge, u32 how)
{
	if (edge & INHERIT_ACTIVE)
		inherit_follow(edge, task_boosted(taskc) ? taskc->lent : taskc->class, how);
}

/*
 * A task waits for this owner of a lock, and gives what it has: who is woken before it
 * when the owner gives the lock back will be the next owner.
 */
static __always_inline void inherit_note_owner(struct task_struct *owner, u32 giver)
{
	struct task_ctx *ownerc = task_try(owner);

	if (ownerc)
		ownerc->giver = giver;
}

/* Does it wait, and not give what it did not have when the wait began? */
static __always_inline bool inherit_late(const struct task_ctx *taskc)
{
	u64 edge = READ_ONCE(taskc->waits);

	return edge && !(edge & INHERIT_ACTIVE) && inherit_gives(taskc) &&
	       inherit_by(INHERIT_REASON(edge));
}

/*
 * It gives from now on. As with a guess it is counted before the edge says so: who says the
 * same, and answers at once, has its level already.
 */
static void inherit_catch_up(const struct task_struct *p, struct task_ctx *taskc)
{
	u64 edge = READ_ONCE(taskc->waits), active = edge | INHERIT_ACTIVE;
	u32 reason = INHERIT_REASON(edge);
	struct task_struct *owner;

	if (!edge || edge == active)
		return;
	inherit_lend(taskc, active, INHERIT_GIVE);
	if (__sync_val_compare_and_swap(&taskc->waits, edge, active) != edge) {
		inherit_follow(active, 0, INHERIT_TAKE);
		return;
	}
	owner = reason == ROTA_LOCK || reason == ROTA_FUTEX ? inherit_target(edge) : NULL;
	if (owner) {
		inherit_note_owner(owner, p->pid);
		bpf_task_release(owner);
	}
}

/*
 * A task waits, or is about to, for the one at the end of this edge and no longer for
 * another. Any task may say so; INHERIT_LEAVE only itself. Returns whether it gives its level.
 */
static __always_inline bool inherit_begin(struct task_ctx *taskc, u64 edge, u32 how)
{
	u64 before;

	if (inherit_gives(taskc))
		edge |= INHERIT_ACTIVE;
	if (READ_ONCE(taskc->waits) != edge) {
		taskc->waits_at_ns = clock_now();
		before = __sync_lock_test_and_set(&taskc->waits, edge);
		inherit_lend(taskc, edge, how);
		if (before & INHERIT_ACTIVE)
			inherit_follow(before, 0, INHERIT_TAKE);
	}
	return edge & INHERIT_ACTIVE;
}

/*
 * The same as a guess: who knows better, and says so at the same time, wins. Who says the
 * same finds the edge and leaves it at that, so it is counted before it can be found.
 */
static __always_inline void inherit_guess(struct task_ctx *taskc, u64 edge, u32 how)
{
	if (inherit_gives(taskc))
		edge |= INHERIT_ACTIVE;
	taskc->waits_at_ns = clock_now();
	inherit_lend(taskc, edge, how);
	if (__sync_val_compare_and_swap(&taskc->waits, 0, edge) && edge & INHERIT_ACTIVE)
		inherit_follow(edge, 0, INHERIT_TAKE);
}

/*
 * The task that runs, an owner of this lock, wakes the next in line, at the end of the
 * edge. Who gave the owner a boost for that lock waits for the next one from now on.
 * Not static, as queue_join.
 */
__noinline int inherit_pass_on(u64 edge, u64 lock)
{
	struct task_struct *owner = bpf_get_current_task_btf(), *giver, *next;
	struct task_ctx *ownerc = task_try(owner), *giverc;
	u64 before;

	if (!ownerc || !ownerc->giver || ownerc->giver == INHERIT_TID(edge))
		return 0;
	giver = bpf_task_from_pid(ownerc->giver);
	if (!giver)
		return 0;
	giverc = task_try(giver);
	before = giverc ? READ_ONCE(giverc->waits) : 0;
	/* Whose wait ends at the same time takes the boost back that it finds. */
	if (giverc && giverc->lock == lock && before & INHERIT_ACTIVE &&
	    INHERIT_TID(before) == owner->pid &&
	    __sync_val_compare_and_swap(&giverc->waits, before, edge | INHERIT_ACTIVE) == before) {
		next = inherit_target(edge);
		if (next) {
			inherit_note_owner(next, giver->pid);
			bpf_task_release(next);
		}
		inherit_lend(giverc, edge | INHERIT_ACTIVE, INHERIT_GIVE);
		inherit_follow(before, 0, INHERIT_TAKE);
	}
	bpf_task_release(giver);
	return 0;
}

/*
 * Does who calls over binder wake before the answer? Any sleep may end so, and goes on: a
 * thread that woke it for its last sleep may have been late. Who waits on is not
 * seen again; the end of the ioctl is. Only who serves the call answers it. Where the wake-up
 * is done by an interrupt nobody knows who woke: at worst a boost ends with the ioctl.
 */
static __always_inline bool inherit_wakes_early(const struct task_ctx *taskc)
{
	u64 edge = READ_ONCE(taskc->waits);

	return taskc->asks && INHERIT_REASON(edge) == ROTA_BINDER &&
	       INHERIT_TID(edge) != (s32)bpf_get_current_pid_tgid();
}

/* The wait of a task that wakes is over: for a lock, if it was one, or otherwise. */
static __always_inline void inherit_wake(struct task_struct *p, struct task_ctx *taskc)
{
	u32 reason;

	if (inherit_wakes_early(taskc))
		return;
	reason = INHERIT_REASON(inherit_end(taskc));

	if (reason == ROTA_LOCK || reason == ROTA_FUTEX)
		inherit_pass_on(inherit_edge(p, reason), taskc->lock);
}

/* Can what runs on this CPU give anything? A real-time task, not ours, in a binder call only. */
static __always_inline bool inherit_may_give(const struct cpu_ctx *cpuc)
{
	if (!cpuc->curr_tid)
		return inherit_by(ROTA_BINDER);
	return cpuc->curr_tier == ROTA_PRIORITY || READ_ONCE(cpuc->curr_raised);
}

/*
 * A priority task wakes another one: if it sleeps next, that is whom it waits for.
 * Returns who wakes; NULL: nobody who gives anything.
 */
static __always_inline struct task_ctx *inherit_note_wake(const struct task_struct *p,
							  struct task_ctx *taskc)
{
	struct cpu_ctx *cpuc = cpu_find(bpf_get_smp_processor_id());
	struct task_ctx *wakerc;

	if (!inherit_may_give(cpuc))
		return NULL;
	wakerc = task_try(bpf_get_current_task_btf());
	if (!wakerc || wakerc == taskc || !inherit_gives(wakerc))
		return NULL;
	/* What is delivered on its time, as over a local socket, is a soft interrupt. */
	if (context_is_interrupt())
		return NULL;
	/* One of the tier has its level already, and gives it on by itself to whom it waits for. */
	if (task_class(taskc)->tier == ROTA_PRIORITY && !wakerc->called) {
		wakerc->woke = 0;
		return wakerc;
	}
	taskc->noted = 1;
	wakerc->woke = inherit_edge(p, ROTA_WAKE) | INHERIT_SERVES |
		       (taskc->serves >> 32 & INHERIT_SLEEPS_MASK) << 47;
	return wakerc;
}

/* A task goes to sleep: it waits for whom it woke, and serves nobody any more. */
static __always_inline void inherit_sleep(struct task_ctx *taskc)
{
	/* Another CPU may stop it for a moment, to change it. */
	bool leaves = taskc->tid == (u32)bpf_get_current_pid_tgid();
	u64 woke = taskc->woke, served;

	taskc->woke = 0;
	if (woke && !taskc->waits && inherit_by(ROTA_WAKE) && inherit_gives(taskc))
		inherit_begin(taskc, woke, leaves ? INHERIT_LEAVE : INHERIT_GIVE);
	if (!taskc->noted || taskc->waits)
		return;
	taskc->noted = 0;
	/* Who counts at the same time sees other sleeps next time, or was before us. */
	served = __sync_lock_test_and_set(&taskc->serves, ((taskc->serves >> 32) + 1) << 32);
	if (task_class(taskc)->tier != ROTA_PRIORITY)
		inherit_over((u32)served);
	if (taskc->level != taskc->class)
		task_outdate(taskc);
}

/* Counts what a boosted task uses, up to where its boost is spent. */
static __always_inline void inherit_charge(struct task_ctx *taskc, u32 cpu, u64 delta_ns)
{
	taskc->boosted_ns += delta_ns;
	cpu_counters(cpu)->boosted_ns += delta_ns;
	if (taskc->spent || taskc->boosted_ns < INHERIT_SPENT_NS)
		return;
	taskc->spent = 1;
	cpu_counters(cpu)->spent++;
	task_outdate(taskc);
}

/* Moves a boosted task from the queue where it waits to this CPU. */
static bool inherit_move(struct task_struct *p, u64 dsq, u32 cpu)
{
	struct task_struct *first;

	kernel_for_waiting(it, first, dsq)
	{
		/* The kernel refuses a task that has left, or was changed, since it was opened. */
		return place_may_move(p, cpu) && kernel_move(&it, p, DSQ_LOCAL, 0);
	}
	return false;
}

/* It runs here next, at its level. */
static void inherit_arrive(struct task_struct *p, struct task_ctx *taskc, u32 cpu)
{
	queue_leave(taskc, cpu, false);
	task_rank(p, taskc);
	task_reweigh(taskc, task_wanted_weight(taskc));
	/* Its boost may have ended just now: then it comes with what it is owed. */
	if (taskc->tier == ROTA_PRIORITY)
		priority_place(taskc, llc_find(cpu_find(cpu)->llc), priority_slice(taskc));
	kernel_set_slice(p, taskc->slice_ns);
	cpu_counters(cpu)->fetched++;
}

/*
 * Is it about to enter its queue? The kernel puts it there after our enqueue is over, and
 * until then nobody finds it.
 */
static __always_inline bool inherit_on_its_way(const struct task_struct *p)
{
	return !kernel_plain(p)->scx.dsq &&
	       READ_ONCE(cpu_find(p->thread_info.cpu)->curr_tid) != p->pid;
}

/* Not found: this CPU looks again as soon as it has chosen what to run meanwhile (running, keep). */
static __always_inline void inherit_miss(const struct task_struct *p, u32 cpu)
{
	if (!inherit_on_its_way(p))
		return;
	inherit_note_call(cpu, p->pid);
	scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

__noinline bool inherit_fetch(struct task_struct *p __trusted, u32 cpu)
{
	struct task_ctx *taskc = task_try(p);
	struct cpu_queue *queue;
	u32 from, tier;
	bool moved;

	if (taskc && inherit_late(taskc))
		inherit_catch_up(p, taskc);
	if (!taskc || !task_boosted(taskc) || taskc->joined < 0)
		return false;
	if (cpu_find(cpu)->owner != task_own_at(taskc->lent) &&
	    place_home(p, task_own_at(taskc->lent), cpu) >= 0)
		return false;
	from = taskc->joined;
	tier = taskc->tier;
	queue = cpu_queue(cpu_find(from), tier);
	place_begin_pull(queue, p->pid);
	moved = inherit_move(p, queue_id(tier, from), cpu) ||
		inherit_move(p, queue_parked_id(tier, from), cpu);
	place_end_pull(queue, p->pid, moved);
	if (moved)
		inherit_arrive(p, taskc, cpu);
	else
		inherit_miss(p, cpu);
	return moved;
}

/* Fetches the boosted tasks for which this CPU was called. Not static, as queue_join. */
__noinline bool inherit_answer(u32 cpu)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 called = READ_ONCE(cpuc->called), n;
	struct task_struct *p;
	bool moved = false;

	if (called - cpuc->answered > CPU_CALLS)
		cpuc->answered = called - CPU_CALLS;
	kernel_for(n, 0, CPU_CALLS)
	{
		if (cpuc->answered == called)
			break;
		p = bpf_task_from_pid(READ_ONCE(cpuc->calls[cpuc->answered++ & (CPU_CALLS - 1)]));
		if (!p)
			continue;
		moved |= inherit_fetch(p, cpu);
		bpf_task_release(p);
	}
	return moved;
}
