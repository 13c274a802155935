/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event: tells the daemon which tasks to classify again.
 *
 * Problem: rules name cgroups, programs and users, which only user space can
 * match; but asking it must never hold up a task.
 *
 * How: hooks for exec, rename, cgroup moves and changes of user put a small
 * record into a ring buffer. A child starts in its parent's class without any
 * event, unless the daemon has yet to answer for the parent: then it asks about
 * the child too. A full ring sets a flag and the daemon looks at every task.
 *
 * Limits: until the daemon has answered the task runs in the class it had.
 */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

u64 events_lost; /* atomic add; partner: the daemon compares it with what it saw */

static void event_send(u32 kind, const struct task_struct *p, u32 asked)
{
	struct rota_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&events_lost, 1);
		return;
	}
	event->kind = kind;
	event->tid = p ? p->pid : 0;
	event->tgid = p ? p->tgid : 0;
	event->start_ns = p ? p->start_boottime : 0;
	event->asked = asked;
	bpf_ringbuf_submit(event, 0);
}

/* Asks the daemon for the class of a task. */
static void event_ask(u32 kind, struct task_struct *p)
{
	struct task_ctx *taskc;
	u32 asked = 0;

	if (!knobs.watch)
		return;
	taskc = task_try(p);
	if (taskc)
		asked = __sync_fetch_and_add(&taskc->asked, 1) + 1;
	event_send(kind, p, asked);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rota_on_exec, struct task_struct *p, int old_pid, struct linux_binprm *bprm)
{
	event_ask(ROTA_EVENT_EXEC, p);
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
		event_ask(ROTA_EVENT_COMM, p);
	return 0;
}

/* There is no tracepoint for it. Afterwards as well. */
SEC("fexit/commit_creds")
int BPF_PROG(rota_on_credentials, struct cred *new)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *taskc = task_try(p);
	u32 user = new->euid.val;

	if (!taskc || taskc->user == user)
		return 0;
	taskc->user = user;
	event_ask(ROTA_EVENT_USER, p);
	return 0;
}
