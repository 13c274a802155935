/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * class: puts one live task into a class, at the daemon's word.
 *
 * Problem: a PID may have been reused between the daemon's look at a task
 * and its answer, and the answer must reach a task that runs or waits.
 *
 * How: a program that the daemon runs by system call. It finds the task by
 * tid, compares the start time if the daemon knows it, writes the class into
 * the task and marks its copies as old. A running task that changes its tier, or where
 * it belongs, is put through the scheduler at once, or at the next tick if it changes
 * itself; a waiting one is when it next runs.
 * Hooks write the class of a task that is known (known) by themselves. Each change of a
 * task has a number, which is taken before its class is written: an answer that was
 * overtaken by a later change is looked for again, so that none about an old name stays.
 *
 * Limits: one task per call.
 */

static void class_count(u32 class, s64 delta)
{
	struct rota_class_stats *stats = stats_class(class);

	/* Hooks may be preempted in the midst of it. */
	if (stats)
		__sync_fetch_and_add(&stats->tasks, delta);
}

/*
 * A child starts in its parent's class; if that may be an old one, or the parent has it for
 * what it does itself, the daemon is asked.
 */
static __always_inline void class_inherit(struct task_ctx *taskc, const struct task_ctx *parentc,
					  u32 answered)
{
	taskc->class = READ_ONCE(parentc->class);
	taskc->asked = READ_ONCE(parentc->asked) != answered || parentc->alone;
}

static void class_change(struct task_struct *p, struct task_ctx *taskc, u32 class)
{
	u32 old = __sync_lock_test_and_set(&taskc->class, class);
	u32 before = task_class_at(old)->tier, cpu = p->thread_info.cpu;

	class_count(old, -1);
	class_count(class, 1);
	if (before != ROTA_PRIORITY && task_class(taskc)->tier == ROTA_PRIORITY)
		inherit_promote(taskc);
	taskc->fair_weight = 0;
	/* Only a tag: a reader sees the old class or the new one, both whole. */
	task_outdate(taskc);
	/* What runs and changes itself goes on with the hook first: it is stopped at the next tick. */
	if (p == bpf_get_current_task_btf())
		return;
	if ((task_class(taskc)->tier != taskc->tier || task_own_at(class) != taskc->own) &&
	    cpu < topology.nr_cpus && READ_ONCE(cpu_find(cpu)->curr_tid) == p->pid)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/*
 * A task that waits has something to give now. This CPU is called as for one that is boosted,
 * as only who looks for tasks may search all CPUs; it looks at once where it has many calls.
 */
static void class_give(const struct task_struct *p, u32 cpu)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);

	inherit_note_call(cpu, p->pid);
	if (READ_ONCE(cpuc->called) - READ_ONCE(cpuc->answered) >= CPU_CALLS / 2)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

static void class_put(struct task_struct *p, struct task_ctx *taskc, u32 class)
{
	/* From 6.19 on one that has ended is found until it is reaped. */
	if (inherit_gone(READ_ONCE(taskc->held)))
		return;
	if (taskc->class != class)
		class_change(p, taskc, class);
	if (inherit_late(taskc))
		class_give(p, bpf_get_smp_processor_id());
}

/* Takes the next number for a change, or an answer, of this task. */
static __always_inline u32 class_next(struct task_ctx *taskc)
{
	return __sync_fetch_and_add(&taskc->asked, 1) + 1;
}

/* The class that tasks have which are known by the same, and by what; NULL: ask the daemon. */
static __always_inline u32 *class_known(struct task_struct *p, struct known_who *who,
					struct rota_known *key)
{
	*who = known_read(p);
	*key = known_key(p, who);
	return key->epoch ? bpf_map_lookup_elem(&known_classes, key) : NULL;
}

/*
 * Puts a task whose like is known into its class; false: the daemon must be asked, as
 * nobody knows, or because the task, or the rules, changed meanwhile.
 */
static __always_inline bool class_follow(struct task_struct *p, struct task_ctx *taskc)
{
	struct known_who who;
	struct rota_known key, now;
	u32 *class = class_known(p, &who, &key), asked;

	if (!class)
		return false;
	/* Before the class: a child that is born meanwhile asks, and so does class_set(). */
	asked = class_next(taskc);
	class_put(p, taskc, *class);
	known_note(taskc, &who);
	who = known_read(p);
	now = known_key(p, &who);
	if (!known_same(&key, &now))
		return false;
	/* If there is a later change, its answer says so. */
	if (READ_ONCE(taskc->asked) == asked)
		WRITE_ONCE(taskc->answered, asked);
	return true;
}

/* What the daemon answers; -EAGAIN: the task has changed since it looked. */
static s32 class_set(struct task_struct *p, struct rota_set_class *args)
{
	struct known_who who;
	struct rota_known key;
	struct task_ctx *taskc;
	u32 asked, *class;

	if (args->start_ns && args->start_ns != p->start_boottime)
		return -ESRCH;
	taskc = task_try(p);
	if (!taskc)
		return -ESRCH;
	/* With an order: who sees a number sees the name that it is about. */
	asked = __sync_fetch_and_add(&taskc->asked, 0);
	/* A later change has its answer already. */
	if (args->asked && args->asked != asked && READ_ONCE(taskc->answered) == asked)
		return 0;
	taskc->alone = args->alone;
	class_put(p, taskc, args->class);
	if (args->asked) {
		/* After the class: a child that is born meanwhile has the new one, or asks. */
		WRITE_ONCE(taskc->answered, args->asked);
	} else {
		/* Nobody asked: a hook may have known better since the daemon looked. */
		class = class_known(p, &who, &key);
		if (class)
			class_put(p, taskc, *class);
		args->asked = asked;
	}
	asked = __sync_fetch_and_add(&taskc->asked, 0);
	if (args->asked == asked)
		return 0;
	args->asked = asked;
	return -EAGAIN;
}

SEC("syscall")
int rota_set_class(struct rota_set_class *args)
{
	struct task_struct *p;

	args->result = -EINVAL;
	if (args->class >= knobs.nr_classes || args->class >= ROTA_MAX_CLASSES)
		return 0;
	args->result = -ESRCH;
	p = bpf_task_from_pid(args->tid);
	if (!p)
		return 0;
	args->result = class_set(p, args);
	bpf_task_release(p);
	return 0;
}

/* The daemon has changed knobs or classes: every task takes them over. */
SEC("syscall")
int rota_reconfigured(void *args)
{
	task_outdate_all();
	return 0;
}

/* For tests of what happens on failure: ends the scheduler as a bug of ours would. */
SEC("syscall")
int rota_debug_fault(void *args)
{
	scx_bpf_error("debug: fault %d was asked for", 1);
	return 0;
}
