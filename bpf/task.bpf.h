/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task: what rota knows of one task, and which class it is in.
 *
 * Problem: a class must stick to a live task, never to a number that the
 * next process may get; children must start in their parent's class; and a
 * new configuration must reach tasks that run, wait and sleep.
 *
 * How: task storage, made in init_task, freed by the kernel with the task.
 * The daemon decides which rule matches and names the class by index through
 * the program rota_set_class; what the class means is copied into the task
 * when the generation of the knobs has changed (task_refresh).
 * The weight is nice (the kernel's own table) x class x the scale of its
 * cgroup (group).
 *
 * Limits: a weight or a scale that changes reaches a task where it next enters
 * a queue.
 */

struct task_ctx {
	u64 vt;		 /* virtual time; while outside all queues: lag (signed) */
	u64 deadline_vt; /* end of the current request */
	u64 exec_ns;	 /* sum_exec_runtime up to which it is charged */
	u64 ready_at_ns; /* when it became ready; 0: it runs or sleeps */
	u64 waited_ns;	 /* for the CPU that it has, see count_arrival() */
	u64 slice_ns;
	u64 request_ns; /* what it asks for at a time: the slice, or less, see queue_ask() */
	u64 request_vt; /* the same in its virtual time */
	u64 limit_vt;	/* how much lag it may take along */
	u64 rest_vt;	/* what is left of its request when it moves, 0: a new request */
	u64 custom_ns;	/* the slice that it asked for itself, 0: none */
	u64 used_ns;	/* what it was charged for since it last slept */
	u64 brief_ns;	/* what it uses between two sleeps, a moving mean, 0: not known */
	u64 said_ns;	/* when it said that it would sleep, 0: it slept since */
	struct counter_mean counted; /* its work, see counter.bpf.h */
	u64 name[2];		     /* p->comm by which its class was asked for, or known */
	u32 weight;		     /* 1024: nice 0 in a class of weight 100 */
	u32 generation;		     /* of the knobs that these copies came from */
	s32 joined;		     /* the CPU in whose queue it competes, -1: none */
	s32 left;		     /* the CPU in whose queue it fell asleep, -1: none */
	u32 left_emptied;	     /* that queue's count then, see queue_lapsed() */
	u32 ghost;		     /* place of its ghost there, from 1 on, 0: none */
	u32 user;		     /* whose rights it had then */
	u32 asked;		     /* how often its class was asked for, or known; atomic add */
	u32 answered; /* the latest of these that has an answer; partner: init_task */
	u32 tid;
	/* Inheritance, see inherit.bpf.h. */
	u64 waits;	 /* for whom it waits; atomic exchange, partner: inherit_follow() */
	u64 waits_at_ns; /* since when */
	u64 lock;	 /* the lock for which it waits, or did: its address */
	u64 serves;	 /* its sleeps << 32 | those it serves; atomic, partner: inherit_count() */
	u64 woke;	 /* whom it woke last since it woke itself */
	u64 boosted_ns;	 /* CPU time since it was boosted */
	u64 fair_vt;	 /* its lag below priority while it is boosted */
	u32 fair_weight; /* and its weight then, 0: it is not */
	u32 fair_tier;	 /* the tier that owes it, or that it owes */
	s32 held;	 /* those who wait for a lock that it has; atomic add */
	u16 lent;	 /* the class of the latest who gave it a boost */
	u16 level;	 /* the class at whose level it runs: its own, or lent */
	u16 own;	 /* it belongs on CPUs with this owner, see own.bpf.h */
	u32 giver;	 /* the latest who gave it a boost for a lock that it has: a tid */
	u32 called;	 /* who serves its binder call: a tid, or a process, see called_any */
	u8 called_any;	 /* no thread of that process has taken the call yet */
	u8 binder;	 /* enum binder_role, 0: none */
	u8 asks;	 /* it waits in the driver for the answer to a call */
	u8 spent;	 /* it has used up the time of a boost */
	u8 noted;	 /* somebody will wait for it if it does not sleep first */
	u64 given;	 /* binder calls that it answered, of callers that give their level */
	u64 lifted;	 /* of these, served at that level; both written by itself alone */
	u64 limited_ns;	 /* since when it waits for its group's cpu.max, 0: it ran since */
	u32 own_weight;	 /* without its group's scale */
	u32 group_epoch; /* of the scale in its weight */
	u16 group;	 /* its cgroup, see group.bpf.h */
	u32 counter_epoch; /* of the counters that bound is from */
	u32 turn_ns;	   /* what it had of the turn that was interrupted */
	u32 class;	   /* atomic exchange: hooks and the daemon change it */
	u16 bound;    /* how much of its work waits for memory, of PACE_FULL; COUNTER_UNKNOWN */
	u16 took;     /* the class of the task from which it took the CPU, + 1; 0: from nobody */
	u16 arrived;  /* its class, + 1, when it came to a CPU; 0: that is counted */
	u8 tier;      /* that it competes in; may lag behind its class until refreshed */
	u8 aside;     /* it goes on where who took its CPU has left, see aside.bpf.h */
	u8 any_slice; /* nobody asked for its slice: it has the default */
	u8 rescued;   /* it was moved forward by the starvation bound */
	u8 fresh;     /* new: its first request is half as long (eevdf: PLACE_DEADLINE_INITIAL) */
	u8 overdue;   /* it runs although its group has used up its cpu.max */
	u8 arrives;   /* it has not run since it came from another scheduling class */
	u8 alone;     /* its class is not for its children, see class_inherit() */
	u8 owes;      /* such calls that it has taken and not answered, see given */
	u8 finishes;  /* it exits and went on without a choice, see finish_exit() */
	struct belief said; /* was it true that it would sleep? */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct rota_class classes[ROTA_MAX_CLASSES]; /* set by the daemon */

#define TASK_TICK_NS 4000000	  /* a turn may be longer than its slice by this */
#define TASK_BRIEF_NS 100000	  /* no request is shorter: as in sched_setattr() */
#define TASK_MIN_WEIGHT 3	  /* the weight of SCHED_IDLE */
#define TASK_MAX_WEIGHT (1 << 23) /* keeps w * vt within 64 bits, see eevdf.h */

/* The kernel's weights for nice -20..19 (kernel/sched/core.c, sched_prio_to_weight). */
static const u32 task_nice_weight[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
};

/* NULL for a task that is not ours; the caller does the nearest harmless thing. */
static __always_inline struct task_ctx *task_try(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static __always_inline struct task_ctx *task_find(struct task_struct *p)
{
	struct task_ctx *taskc = task_try(p);

	if (unlikely(!taskc))
		scx_bpf_error("task %d: no context", p->pid);
	return taskc;
}

static __always_inline struct rota_class *task_class_at(u32 class)
{
	return &classes[class & (ROTA_MAX_CLASSES - 1)];
}

static __always_inline struct rota_class *task_class(const struct task_ctx *taskc)
{
	return task_class_at(taskc->class);
}

/* The owner of the CPUs where tasks at the level of this class belong. */
static __always_inline u32 task_own_at(u32 level)
{
	return task_class_at(level)->own_end ? level + 1 : 0;
}

/* Does somebody who gives a boost wait for it? */
static __always_inline bool task_awaited(const struct task_ctx *taskc)
{
	return READ_ONCE(taskc->held) > 0 || (u32)READ_ONCE(taskc->serves);
}

/* And may it still run at that level, which is higher than its own? */
static __always_inline bool task_boosted(const struct task_ctx *taskc)
{
	return task_awaited(taskc) && !taskc->spent && task_class(taskc)->tier != ROTA_PRIORITY;
}

/* By its nice value and policy; with a boost it has not less than others at that level. */
static u32 task_own_weight(const struct task_struct *p, bool boosted)
{
	u32 nice = p->static_prio - MAX_RT_PRIO;

	if (boosted && (p->policy == SCHED_IDLE || nice > 20))
		return EEVDF_NICE0_WEIGHT;
	if (p->policy == SCHED_IDLE)
		return TASK_MIN_WEIGHT;
	return task_nice_weight[nice < 40 ? nice : 20];
}

/* The task's copies are old: it takes over the knobs where it enters a queue. */
static __always_inline void task_outdate(struct task_ctx *taskc)
{
	taskc->generation = READ_ONCE(generation) - 1;
}

/* The same for all tasks. */
static __always_inline void task_outdate_all(void)
{
	__sync_fetch_and_add(&generation, 1);
}

/* A weight within the bounds that eevdf.h needs. */
static __always_inline u32 task_bounded(u64 weight)
{
	if (weight < TASK_MIN_WEIGHT)
		return TASK_MIN_WEIGHT;
	return weight > TASK_MAX_WEIGHT ? TASK_MAX_WEIGHT : weight;
}

/*
 * The weight as the task and its group have it now, whatever it competes with. Who has a boost
 * does not have the little of its group.
 */
static __always_inline u32 task_wanted_weight(const struct task_ctx *taskc)
{
	u64 scale = group_find(taskc->group)->scale;

	if (taskc->level != taskc->class && scale < 1 << GROUP_SCALE_SHIFT)
		scale = 1 << GROUP_SCALE_SHIFT;
	return task_bounded((taskc->own_weight * scale + (1 << (GROUP_SCALE_SHIFT - 1))) >>
			    GROUP_SCALE_SHIFT);
}

/* The slice that the task asked for with sched_setattr(), 0: none. */
static __always_inline u64 task_custom_ns(const struct task_struct *p)
{
	if (!bpf_core_field_exists(p->se.custom_slice) || !p->se.custom_slice)
		return 0;
	return p->se.slice;
}

static __always_inline bool task_stale(const struct task_struct *p, const struct task_ctx *taskc)
{
	return taskc->generation != generation || taskc->custom_ns != task_custom_ns(p) ||
	       (taskc->group && taskc->group_epoch != group_find(taskc->group)->epoch);
}

/* Has it changed its class, and competes, or belongs, where it did before? */
static __always_inline bool task_misplaced(const struct task_ctx *taskc)
{
	return taskc->generation != generation &&
	       (task_class(taskc)->tier != taskc->tier || task_own_at(taskc->class) != taskc->own);
}

/* It takes the CPU from the task that runs: to be counted, see count_arrival(). */
static __always_inline void task_note_taking(struct task_ctx *taskc, const struct cpu_ctx *cpuc)
{
	taskc->took = cpuc->curr_class + 1;
}

/* What a task uses between two sleeps: the mean moves by a quarter of what is new. */
static __always_inline void task_note_use(struct task_ctx *taskc)
{
	u64 used_ns = taskc->used_ns;

	taskc->used_ns = 0;
	taskc->brief_ns = taskc->brief_ns ? (3 * taskc->brief_ns + used_ns) / 4 : used_ns;
}

/*
 * A request by what the task does, if that is less than its slice, else 0: twice
 * what it lately used, so that most of its wake-ups end within it.
 */
static __always_inline u64 task_brief(const struct task_ctx *taskc)
{
	u64 brief_ns = 2 * taskc->brief_ns;

	if (!brief_ns)
		return 0;
	if (brief_ns < TASK_BRIEF_NS)
		brief_ns = TASK_BRIEF_NS;
	return brief_ns < taskc->slice_ns ? brief_ns : 0;
}

/* Does it ask for the least there is, if preset and slice leave it that? */
static __always_inline bool task_momentary(const struct task_ctx *taskc)
{
	return taskc->brief_ns && 2 * taskc->brief_ns <= TASK_BRIEF_NS;
}

/* So much it asks for at a time from now on. */
static __always_inline void task_ask(struct task_ctx *taskc, u64 request_ns, u32 weight)
{
	taskc->request_ns = request_ns;
	taskc->request_vt = eevdf_vt(request_ns, weight);
	taskc->limit_vt = eevdf_vt(request_ns + TASK_TICK_NS, weight);
}

/* Takes over a weight. The lag is worth the same time at another one. */
static void task_reweigh(struct task_ctx *taskc, u32 weight)
{
	task_ask(taskc, taskc->slice_ns, weight);
	if (taskc->tier != ROTA_PRIORITY && weight != taskc->weight) {
		taskc->vt = eevdf_clamp(eevdf_rescale(taskc->vt, taskc->weight, weight),
					taskc->limit_vt);
		taskc->rest_vt = eevdf_rescale(taskc->rest_vt, taskc->weight, weight);
	}
	taskc->weight = weight;
}

/*
 * Between tiers, which have clocks of their own, lag is lost; but who is boosted
 * comes back to what it was owed or owes, and to what was left of its request, unless its
 * class has another tier by then.
 */
static void task_change_tier(struct task_ctx *taskc, u32 tier)
{
	if (taskc->level != taskc->class && !taskc->fair_weight) {
		taskc->fair_vt = taskc->vt;
		taskc->fair_weight = taskc->weight;
		taskc->fair_tier = taskc->tier;
	} else if (taskc->level == taskc->class && taskc->fair_weight && tier == taskc->fair_tier) {
		taskc->vt = taskc->fair_vt;
		taskc->weight = taskc->fair_weight;
		taskc->fair_weight = 0;
		taskc->tier = tier;
		return;
	} else {
		taskc->ghost = 0;
		taskc->rest_vt = 0;
		taskc->fair_weight = 0;
	}
	taskc->vt = 0;
	taskc->tier = tier;
}

/* Copies the knobs of its class, or of the one at whose level it runs for now. */
static void task_rank(const struct task_struct *p, struct task_ctx *taskc)
{
	struct rota_class *class;
	u32 tier, own;

	taskc->generation = READ_ONCE(generation);
	taskc->level = task_boosted(taskc) ? taskc->lent : taskc->class;
	class = task_class_at(taskc->level);
	taskc->own = task_own_at(taskc->level);
	tier = class->tier < ROTA_NONE ? class->tier : ROTA_FAIR;
	own = task_own_weight(p, taskc->level != taskc->class);
	taskc->own_weight = task_bounded((u64)own * class->weight / 100);
	taskc->custom_ns = task_custom_ns(p);
	taskc->slice_ns = taskc->custom_ns ?: class->slice_ns ?: knobs.slice_ns;
	taskc->any_slice = !taskc->custom_ns && !class->slice_ns;
	if (tier != taskc->tier)
		task_change_tier(taskc, tier);
	else if (taskc->level == taskc->class)
		taskc->fair_weight = 0; /* its class has the tier now to which it was boosted */
}

/* The same for one whose cgroup may have changed as well. */
static void task_reconfigure(struct task_struct *p, struct task_ctx *taskc)
{
	taskc->group = group_of_task(p);
	task_rank(p, taskc);
}

/* Brings a task that competes in no queue up to date. */
static void task_refresh(struct task_struct *p, struct task_ctx *taskc)
{
	if (taskc->generation != generation || taskc->custom_ns != task_custom_ns(p))
		task_reconfigure(p, taskc);
	taskc->group_epoch = group_find(taskc->group)->epoch;
	task_reweigh(taskc, task_wanted_weight(taskc));
}
