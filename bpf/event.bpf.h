/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event: tells the daemon which tasks to classify again.
 *
 * Problem: rules name cgroups, programs and users, which only user space can
 * match; but asking it must never hold up a task.
 *
 * How: hooks for exec, rename, cgroup moves and changes of user put a small record
 * into a ring buffer; the first two only if the class of such a task is not known
 * (known). A child starts in its parent's class without any event, unless the daemon
 * has yet to answer for the parent: then it asks about the child too. A full ring
 * sets a flag and the daemon looks at every task.
 * The kernel leaves a hook out, without a word, while another task of that CPU is
 * preempted in the same hook: where many rename themselves at once that is every
 * third. So a task's name and user are compared again where it stops to run, but for a moment's
 * interruption, and at each tick while it runs.
 *
 * Limits: until the daemon has answered the task runs in the class it had; where
 * the hook was left out that is a tick more.
 */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

u64 events_lost; /* atomic add; partner: the daemon compares it with what it saw */

static void event_send(u32 kind, const struct task_struct *p, u32 asked)
{
	struct rota_event event = {
		.kind = kind,
		.tid = p ? p->pid : 0,
		.tgid = p ? p->tgid : 0,
		.asked = asked,
		.start_ns = p ? p->start_boottime : 0,
	};

	/* In one go: nobody reads beyond a record that a preempted task has not written yet. */
	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		__sync_fetch_and_add(&events_lost, 1);
}

/* Asks the daemon for the class of a task. */
static void event_ask(u32 kind, struct task_struct *p, struct task_ctx *taskc)
{
	struct known_who who = known_read(p);
	u32 asked = 0;

	if (taskc && knobs.watch) {
		asked = class_next(taskc);
		cpu_counters(bpf_get_smp_processor_id())->asked++;
	}
	/* After that: a child that is known by the new name asks, or has the new class. */
	if (taskc)
		known_note(taskc, &who);
	if (knobs.watch)
		event_send(kind, p, asked);
}

/* The same, if the class is not known. */
static void event_find(u32 kind, struct task_struct *p, struct task_ctx *taskc)
{
	if (taskc && knobs.watch && class_follow(p, taskc))
		cpu_counters(bpf_get_smp_processor_id())->known++;
	else
		event_ask(kind, p, taskc);
}

/* Asks about a task whose new name, or user, the hooks have missed. */
static __always_inline void event_follow(struct task_struct *p, struct task_ctx *taskc)
{
	if (!knobs.watch)
		return;
	if (known_name(p, 0) != taskc->name[0] || known_name(p, 1) != taskc->name[1])
		event_ask(ROTA_EVENT_COMM, p, taskc);
	else if (kernel_plain(p)->real_cred->euid.val != taskc->user)
		event_ask(ROTA_EVENT_USER, p, taskc);
}

/* A child is known by what its parent is known by, as it then gets its parent's class. */
static __always_inline void event_inherit(struct task_struct *p, struct task_ctx *taskc,
					  const struct task_ctx *parentc)
{
	struct known_who who;

	if (parentc)
		who = (struct known_who){ { parentc->name[0], parentc->name[1] }, parentc->user };
	else
		who = known_read(p);
	known_note(taskc, &who);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rota_on_exec, struct task_struct *p, int old_pid, struct linux_binprm *bprm)
{
	struct task_ctx *taskc = task_try(p);

	/* A thread other than the first takes over the number of that one. */
	if (taskc && taskc->tid != p->pid) {
		taskc->tid = p->pid;
		inherit_lose(taskc, 0);
		task_outdate(taskc);
	}
	event_find(ROTA_EVENT_EXEC, p, taskc);
	return 0;
}

/*
 * Afterwards: the tracepoint fires while the task still has its old name, and the daemon
 * that it wakes may read that at once. A new program has an event of its own.
 */
SEC("fexit/__set_task_comm")
int BPF_PROG(rota_on_rename, struct task_struct *p, const char *comm, bool exec)
{
	if (!exec)
		event_find(ROTA_EVENT_COMM, p, task_try(p));
	return 0;
}

/* There is no tracepoint for it. Afterwards as well. */
SEC("fexit/commit_creds")
int BPF_PROG(rota_on_credentials, struct cred *new)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *taskc = task_try(p);

	if (taskc && taskc->user != new->euid.val)
		event_ask(ROTA_EVENT_USER, p, taskc);
	return 0;
}
