/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * own: CPUs that belong to a class.
 *
 * Problem: beside any other task, even one that gives way at once, work that matters
 * pays for the switch and for a colder cache; some classes want CPUs to themselves.
 *
 * How: the daemon chooses the CPUs and names the owner of each (rota_own). A task
 * belongs on the CPUs of the class at whose level it runs, so whom an owner waits for
 * comes to its CPU; who has no CPUs of its own belongs on those without an owner. Every
 * choice of a CPU compares the two numbers, which are both 0 where no class owns any. Priority
 * tasks of an owner wait in a queue of their class in place of that of a domain. A task that
 * is on a CPU where it does not belong is sent elsewhere where it enters a queue, and an owned
 * CPU clears its queues before it takes from them (place).
 *
 * A CPU that is lent (lend) runs others' tasks while it would be idle, and leaves them when a
 * task of its owner wakes: those of tier priority when their turn ends, all others at once; with
 * a time after which it is lent, all of them at once.
 *
 * Limits: who may run nowhere else stays, and is counted: tasks bound to the CPU and the
 * kernel's own threads of that CPU. On a kernel without scx_bpf_select_cpu_and (before
 * 6.16) no CPU can be owned.
 */

u32 cpu_owner[ROTA_MAX_CPUS]; /* set by the daemon: class + 1, LEND_CPU; 0: everybody's */
u32 own_cpus;		      /* how many CPUs belong to classes; 0: nothing of this is asked */

/* Does a CPU pull no tasks from others because they would not belong here? */
static __always_inline bool own_closed(const struct cpu_ctx *cpuc)
{
	return READ_ONCE(cpuc->owner) && !lend_now(cpuc);
}

/* An idle CPU of a class, which is idle no more for others; -1: none. */
static s32 own_find_idle(struct task_struct *p, u32 own)
{
	const struct rota_class *class = task_class_at(own - 1);
	u32 cpu, first = own ? class->own_first : 0;
	u32 end = own ? class->own_end : topology.nr_cpus;

	kernel_for(cpu, first, end)
	{
		if (READ_ONCE(cpu_find(cpu)->owner) == own && cpu_allows(p, cpu) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return -1;
}

static __always_inline const struct cpumask *own_shared(void)
{
	return (const struct cpumask *)lend_mask();
}

/* The same by the kernel's rule for what wakes, for who owns none. */
static s32 own_select_shared(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct cpumask *shared = own_shared();

	if (!shared || !bpf_ksym_exists(scx_bpf_select_cpu_and))
		return -1;
	return scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, shared, 0);
}

/* An idle CPU of the task's mask. Looked at by the verifier once: see kernel_plain(). */
__noinline s32 own_pick_allowed(struct task_struct *p __trusted)
{
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* An idle CPU where the task belongs, which is idle no more for others; -1: none. */
static s32 own_pick_idle(struct task_struct *p, u32 own)
{
	const struct cpumask *shared;

	if (!own_cpus)
		return own_pick_allowed(p);
	if (own || p->nr_cpus_allowed < topology.nr_cpus)
		return own_find_idle(p, own);
	shared = own_shared();
	return shared ? scx_bpf_pick_idle_cpu(shared, 0) : -1;
}

/* Does a CPU look into this queue on which the task may run? */
static bool own_served(struct task_struct *p, u64 dsq)
{
	u32 cpu;

	kernel_for(cpu, 0, topology.nr_cpus)
	{
		if (cpu_priority_queue(cpu_find(cpu)) == dsq && cpu_in_mask(p, cpu))
			return true;
	}
	return false;
}

/* Moves who waits in a queue into which none of its CPUs looks to that of its last CPU. */
static void own_move_lost(u64 dsq)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		u32 cpu = p->thread_info.cpu;

		if (own_served(p, dsq))
			continue;
		kernel_move_vtime(&it, p, cpu_priority_queue(cpu_find(cpu)), p->scx.dsq_vtime);
		cpu_note_priority(cpu_find(cpu), clock_now());
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
}

__noinline int own_rehome(u64 dsq)
{
	/* For the programs that may sleep. */
	bpf_rcu_read_lock();
	own_move_lost(dsq);
	bpf_rcu_read_unlock();
	return 0;
}

static void own_rehome_all(void)
{
	u32 n;

	kernel_for(n, 1, ROTA_MAX_CLASSES + 1)
	{
		if (scx_bpf_dsq_nr_queued(QUEUE_OWNED(n)) > 0)
			own_rehome(QUEUE_OWNED(n));
	}
	kernel_for(n, 0, topology.nr_llcs)
	{
		if (scx_bpf_dsq_nr_queued(QUEUE_PRIORITY(n)) > 0)
			own_rehome(QUEUE_PRIORITY(n));
	}
}

static void own_take_over(u32 cpu)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 owner = cpu_owner[cpu & (ROTA_MAX_CPUS - 1)];

	/* It came online before rota_own() has made the queue of this class: that looks again. */
	if (owner && scx_bpf_dsq_nr_queued(QUEUE_OWNED(owner & ~LEND_CPU)) < 0)
		owner = 0;
	WRITE_ONCE(cpuc->lends, owner & LEND_CPU);
	WRITE_ONCE(cpuc->owner, owner & ~LEND_CPU);
}

/* What the classes need that have CPUs: a queue, and a timer if they lend them. */
static s32 own_prepare(void)
{
	s32 err = 0;
	u32 n;

	kernel_for(n, 1, ROTA_MAX_CLASSES + 1)
	{
		if (!task_own_at(n - 1))
			continue;
		err = scx_bpf_create_dsq(QUEUE_OWNED(n), -1);
		if (!err || err == -EEXIST)
			err = lend_reset(n - 1);
		if (err)
			break;
	}
	return err;
}

/* A CPU goes offline: who waits for its owner's CPUs may have none any more. */
static void own_offline(struct cpu_ctx *cpuc)
{
	u32 own = cpuc->owner;

	cpuc->owner = 0;
	cpuc->lends = 0;
	lend_mark(lend_mask(), cpuc->queues[0].cpu);
	if (own)
		own_rehome(QUEUE_OWNED(own));
}

/* The daemon has written cpu_owner, and the ranges of the classes. 0 or a negative errno. */
SEC("syscall")
int rota_own(void *args)
{
	struct bpf_cpumask *shared = bpf_cpumask_create();
	s32 err;
	u32 n;

	if (!shared)
		return -ENOMEM;
	err = own_prepare();
	if (err) {
		bpf_cpumask_release(shared);
		return err;
	}
	/* All of them before any looks: who must leave one is not to go to the next. */
	kernel_for(n, 0, topology.nr_cpus)
	{
		own_take_over(n);
		lend_mark(shared, n);
	}
	err = lend_set_mask(shared);
	if (err)
		return err;
	kernel_for(n, 1, ROTA_MAX_CLASSES + 1)
	{
		if (task_own_at(n - 1) && lend_class(n)->lend_after_ns)
			lend_watch(n, lend_class(n)->lend_after_ns);
	}
	task_outdate_all();
	kernel_for(n, 0, topology.nr_cpus)
	{
		scx_bpf_kick_cpu(n, KICK_PREEMPT);
	}
	own_rehome_all();
	return 0;
}

/*
 * Again and again: who entered a queue at the moment when it lost its CPUs, and what could not
 * be lent.
 */
SEC("syscall")
int rota_own_sweep(void *args)
{
	u32 n;

	own_rehome_all();
	kernel_for(n, 1, ROTA_MAX_CLASSES + 1)
	{
		if (task_own_at(n - 1))
			lend_look_again(n);
	}
	return 0;
}

/* Sends for an idle CPU that could pull this task. */
static void own_kick_idle(struct task_struct *p, u32 own)
{
	s32 cpu;

	if (p->nr_cpus_allowed == 1)
		return;
	cpu = own_pick_idle(p, own);
	if (cpu >= 0)
		cpu_send_for(cpu);
}
