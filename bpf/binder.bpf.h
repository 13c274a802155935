/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * binder: who waits for the answer to a binder call.
 *
 * Problem: a call goes to a process; which of its threads takes it, and when, is
 * known only then. Under load a server goes from call to call without sleep, so
 * that no wake-up tells who serves whom; and a real-time caller is not ours.
 *
 * How: by tracepoints of the driver. A call is noted (transaction); the thread
 * that takes it is whom the caller waits for from then on (received). A caller
 * that goes to sleep before that (wait_for_work) waits for the thread that it
 * woke; if it woke none, for the one that can take the call first. The end of the
 * ioctl ends the wait, whatever came of it; a wake-up of a task of ours does so
 * before. A thread that its caller wakes runs on the caller's CPU, which is free as
 * soon as the caller sleeps: nobody needs to be preempted elsewhere.
 *
 * Limits: who asks by poll() whether the answer is there gives no boost while he
 * sleeps. Of a process without a free thread one of its first BINDER_THREADS is
 * boosted, not all. A caller that gives nothing when it begins to wait, and is
 * boosted itself or gets its class later, gives only when its call has been taken. A thread
 * that is called back while it waits, and itself calls then, gives none for the rest
 * of its first wait. One-way calls have nobody who waits.
 */

#define BINDER_ONE_WAY 1 /* TF_ONE_WAY */
#define BINDER_THREADS 256

struct binder_proc {
	int pid;
} CORE;

struct binder_thread {
	int pid;
} CORE;

struct binder_transaction {
	struct binder_thread *from;
	struct binder_proc *to_proc;
	struct binder_thread *to_thread;
	unsigned int flags;
} CORE;

/* What a thread has to do with calls, task_ctx.binder. */
enum binder_role {
	BINDER_LOOPS = 1,  /* it has been waiting for calls */
	BINDER_SERVES = 2, /* and has taken one that it has not answered */
};

/*
 * How soon a thread can take a call: ready before asleep, on its way to the next call
 * before in the middle of one. 0: it takes none, or is woken for it.
 */
static __always_inline u32 binder_rank(const struct task_struct *p, const struct task_ctx *taskc)
{
	/* Woken while its CPU was still leaving it, it gets to its queue by an interrupt there. */
	bool waking = p->__state == KERNEL_WAKING;
	bool ready = !p->__state || waking || READ_ONCE(taskc->joined) >= 0;

	if (!taskc->binder)
		return 0;
	if (taskc->binder == BINDER_SERVES)
		return ready ? 2 : 1;
	return ready ? 3 : 0;
}

/* The best of the first threads of a process, with the iterator that finds them. */
static __always_inline u32 binder_best(struct bpf_iter_task *it)
{
	u32 tids[4] = {}, n, rank;
	struct task_struct *p;
	struct task_ctx *taskc;

	kernel_for(n, 0, BINDER_THREADS)
	{
		p = bpf_iter_task_next(it);
		if (!p)
			break;
		taskc = task_try(p);
		rank = taskc ? binder_rank(p, taskc) & 3 : 0;
		if (rank == 3)
			return p->pid;
		tids[rank] = p->pid;
	}
	return tids[2] ?: tids[1];
}

/* The thread of this process that can take a call first, 0: none. Not static, as queue_join. */
__noinline u32 binder_find_taker(u32 tgid)
{
	struct task_struct *leader = bpf_task_from_pid(tgid);
	struct bpf_iter_task it;
	u32 tid;

	if (!leader)
		return 0;
	bpf_iter_task_new(&it, leader, KERNEL_PROCESS_THREADS);
	tid = binder_best(&it);
	bpf_iter_task_destroy(&it);
	bpf_task_release(leader);
	return tid;
}

/* The thread of this process that was woken for the call, 0: none. */
static u32 binder_woken(const struct task_ctx *taskc, u32 tgid)
{
	struct task_struct *p = taskc->woke ? inherit_target(taskc->woke) : NULL;
	u32 tid = 0;

	if (!p)
		return 0;
	if (p->tgid == tgid)
		tid = p->pid;
	bpf_task_release(p);
	return tid;
}

/*
 * A caller wakes the thread that is to take its call. It will sleep, so the thread has
 * its level from now on and may have its CPU. false: it wakes somebody else.
 */
static bool binder_hand_over(struct task_struct *p, struct task_ctx *callerc)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_ctx *cpuc = cpu_find(cpu);

	if (!callerc->called || callerc->waits ||
	    callerc->called != (callerc->called_any ? p->tgid : p->pid))
		return false;
	callerc->woke = 0;
	inherit_guess(callerc, inherit_edge(p, ROTA_BINDER), INHERIT_GIVE);
	/* Also before the one that the caller took the CPU from, but not for long. */
	return cpu_allows(p, cpu) && cpuc->owner == inherit_own(p) &&
	       scx_bpf_dsq_nr_queued(DSQ_LOCAL) <= cpuc->aside && !aside_late(cpuc, clock_now());
}

/* A caller is about to sleep. */
static void binder_wait(struct task_ctx *taskc)
{
	struct task_struct *p;
	u32 tid = taskc->called;

	if (taskc->called_any && inherit_gives(taskc))
		tid = binder_woken(taskc, tid) ?: binder_find_taker(tid);
	else if (taskc->called_any)
		tid = 0;
	taskc->woke = 0;
	p = tid ? bpf_task_from_pid(tid) : NULL;
	if (!p)
		return;
	inherit_guess(taskc, inherit_edge(p, ROTA_BINDER), INHERIT_LEAVE);
	bpf_task_release(p);
}

/*
 * The task that runs answers a call. Whether it has the caller's level counts now: the
 * caller still waits, and a boost that was not kept until here is none.
 */
static __always_inline void binder_answer(struct task_ctx *taskc)
{
	if (!taskc->owes)
		return;
	taskc->owes--;
	taskc->given++;
	if (task_boosted(taskc) || task_class(taskc)->tier == ROTA_PRIORITY)
		taskc->lifted++;
}

SEC("tp_btf/binder_transaction")
int BPF_PROG(rota_on_binder_call, bool reply, struct binder_transaction *t)
{
	struct task_ctx *taskc;

	if (!inherit_by(ROTA_BINDER) || !t || t->flags & BINDER_ONE_WAY)
		return 0;
	taskc = task_try(bpf_get_current_task_btf());
	if (!taskc)
		return 0;
	if (reply) {
		binder_answer(taskc);
		return 0;
	}
	taskc->woke = 0;
	/* Who waits himself is called back on the thread that waits. */
	taskc->called_any = !t->to_thread;
	taskc->called = t->to_thread ? t->to_thread->pid : t->to_proc->pid;
	return 0;
}

/* The task that runs takes a call of this client, which waits for it from now on. */
static __always_inline void binder_take(struct task_struct *p, struct task_ctx *taskc,
					struct task_struct *client)
{
	struct task_ctx *clientc = task_try(client);

	/* Nothing would end the wait of one that dies. */
	if (!clientc || clientc == taskc || client->flags & PF_EXITING)
		return;
	clientc->called = p->pid;
	clientc->called_any = 0;
	if (inherit_begin(clientc, inherit_edge(p, ROTA_BINDER), INHERIT_GIVE))
		taskc->owes++;
}

SEC("tp_btf/binder_transaction_received")
int BPF_PROG(rota_on_binder_received, struct binder_transaction *t)
{
	struct task_struct *p = bpf_get_current_task_btf(), *client;
	struct task_ctx *taskc;

	if (!inherit_by(ROTA_BINDER) || !t)
		return 0;
	taskc = task_try(p);
	if (!taskc)
		return 0;
	if (t->from || t->flags & BINDER_ONE_WAY)
		taskc->binder = BINDER_SERVES;
	if (!t->from) { /* an answer, one-way, or the caller has died */
		taskc->called = 0;
		return 0;
	}
	client = bpf_task_from_pid(t->from->pid);
	if (!client)
		return 0;
	binder_take(p, taskc, client);
	bpf_task_release(client);
	return 0;
}

SEC("tp_btf/binder_wait_for_work")
int BPF_PROG(rota_on_binder_wait, bool proc_work, bool calls)
{
	struct task_ctx *taskc;

	if (!inherit_by(ROTA_BINDER))
		return 0;
	taskc = task_try(bpf_get_current_task_btf());
	if (!taskc)
		return 0;
	if (!calls) {
		/* Who only calls takes no calls. */
		if (proc_work || taskc->binder)
			taskc->binder = BINDER_LOOPS;
		taskc->called = 0;
		taskc->owes = 0; /* the callers of those calls have died */
		return 0;
	}
	taskc->asks = 1;
	if (taskc->called && !taskc->waits)
		binder_wait(taskc);
	return 0;
}

SEC("tp_btf/binder_ioctl_done")
int BPF_PROG(rota_on_binder_done, int ret)
{
	struct task_ctx *taskc = task_try(bpf_get_current_task_btf());

	if (!taskc)
		return 0;
	taskc->asks = 0;
	if (taskc->waits && INHERIT_REASON(taskc->waits) == ROTA_BINDER)
		inherit_end(taskc);
	return 0;
}
