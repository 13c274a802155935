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
 * it belongs, is put through the scheduler at once; a waiting one is when it next runs.
 * Hooks write the class of a task that is known (known) by themselves. What is known comes
 * last in both, so that an answer about its old name does not stay.
 *
 * Limits: one task per call.
 */

static void class_count(u32 class, s64 delta)
{
	struct rota_class_stats *stats = stats_class(class);

	if (stats)
		stats->tasks += delta;
}

/*
 * A child starts in its parent's class; if that may be an old one, or the parent has it for
 * what it does itself, the daemon is asked.
 */
static __always_inline void class_inherit(struct task_ctx *taskc, const struct task_ctx *parentc)
{
	/* In the other order than class_set() and event_ask() write, after the name. */
	u32 answered = READ_ONCE(parentc->answered);

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
	if (taskc->class != class)
		class_change(p, taskc, class);
	if (inherit_late(taskc))
		class_give(p, bpf_get_smp_processor_id());
}

/*
 * Puts a task whose like is known into its class; false: the daemon must be asked. Where the
 * task, or the rules, change meanwhile, its noted name is another one: it is looked at again
 * where it next stops.
 */
static __always_inline bool class_follow(struct task_struct *p, struct task_ctx *taskc)
{
	struct known_who who = known_read(p);
	struct rota_known key = known_key(p, &who), now;
	u32 asked = READ_ONCE(taskc->asked), *class;

	if (!key.epoch)
		return false;
	class = bpf_map_lookup_elem(&known_classes, &key);
	if (!class)
		return false;
	class_put(p, taskc, *class);
	/* After the class, as event_ask() does. */
	known_note(taskc, &who);
	who = known_read(p);
	now = known_key(p, &who);
	if (!known_same(&key, &now))
		return false;
	WRITE_ONCE(taskc->answered, asked);
	return true;
}

static s32 class_set(struct task_struct *p, const struct rota_set_class *args)
{
	struct task_ctx *taskc;

	if (args->start_ns && args->start_ns != p->start_boottime)
		return -ESRCH;
	taskc = task_try(p);
	if (!taskc)
		return -ESRCH;
	taskc->alone = args->alone;
	class_put(p, taskc, args->class);
	/* After the class: a child that is born meanwhile has the new one, or asks. */
	if (args->asked)
		WRITE_ONCE(taskc->answered, args->asked);
	/* It may have changed since the daemon looked, and nobody asked. */
	class_follow(p, taskc);
	return 0;
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
