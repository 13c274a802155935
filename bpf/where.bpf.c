// SPDX-License-Identifier: GPL-2.0-only
/*
 * where: who executes a function of the kernel. An object of its own, for
 * "rota where"; the scheduler has nothing of it.
 *
 * Problem: what runs a function may be a task, or an interrupt that happens to
 * run above some task which has nothing to do with it. A hot function must not
 * become slower by being watched.
 *
 * How: one program at the entry of the function, by fentry or by kprobe, counts
 * in a table by task, or by interrupt, and CPU. The kernel's preempt count says
 * which of both it is; which interrupt, four programs on the beginning and the end
 * of interrupts note. The CPU is a part of the key: nobody else writes to an
 * entry, and memory is taken for tasks on the CPUs where they run only. It is
 * taken beforehand, since the function may hold any lock. Each CPU remembers a few
 * tasks and counts their further calls beside the table, which costs half as much as
 * looking into it. Nothing is sent.
 *
 * Limits: at most MAX_SEEN pairs of a task or interrupt and a CPU; calls beyond
 * are counted as lost. Calls from within this program itself are not seen, nor
 * those of other tasks of a CPU while one is preempted in it; the kernel counts
 * them. Interrupts without an action of a driver (the local timer,
 * calls of other CPUs) are counted without a name. On PREEMPT_RT a soft interrupt
 * that another one preempts may get the other's name.
 */
#include "kernel.h"
#include "context.h"

#define MAX_SEEN 16384

/* How a function was executed; Context in internal/where is its mirror. */
enum context {
	CONTEXT_TASK,
	CONTEXT_SOFTIRQ,
	CONTEXT_HARDIRQ,
	CONTEXT_NMI,
};

struct task_struct___where {
	struct css_set___where *cgroups;
} CORE;

struct css_set___where {
	struct cgroup___where *dfl_cgrp;
} CORE;

struct cgroup___where {
	struct kernfs_node___where *kn;
} CORE;

struct kernfs_node___where {
	u64 id;
} CORE;

/* Who; seenKey in internal/where is its mirror. */
struct seen_key {
	u64 started_ns; /* with tid: which task; 0 in an interrupt */
	u32 tid;
	u32 cpu;
	u32 context;
	u32 source; /* of an interrupt: its number plus 1; 0: not known */
};

/* What of it; seenValue in internal/where is its mirror. */
struct seen {
	u64 count;
	u64 cgroup;
	u64 comm[2];
	u32 tgid;
	u32 flags;
	u32 uid;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct seen_key);
	__type(value, struct seen);
	__uint(max_entries, MAX_SEEN);
} seen SEC(".maps");

#define RECENT_TASKS 8 /* a power of 2 */

/*
 * A task that called lately, and its calls since it was last looked for in the table;
 * recent in internal/where is its mirror.
 */
struct recent {
	struct seen_key key;
	u64 count;
	u64 era; /* as of the variable: else it was read and forgotten */
	/* As long as these are the same, so are its names. */
	u64 task;
	u64 cgroups;
	u64 cred;
	u64 comm[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct recent);
	__uint(max_entries, RECENT_TASKS);
} recent SEC(".maps");

u64 era = 1; /* counted up by who has read what there is, and forgets it */

/* What a CPU serves: numbers plus 1, 0 for none; and the calls without room. */
struct serving {
	u32 hardirq;
	u32 softirq;
	u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct serving);
	__uint(max_entries, 1);
} serving SEC(".maps");

static __always_inline struct serving *served(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&serving, &zero);
}

/* Blindly, what the tracepoints say is believed. */
static __always_inline void note_interrupt(struct seen_key *key, u32 count)
{
	bool blind = count_place == COUNT_NOWHERE;
	struct serving *now = served();

	if (!now)
		return;
	if (count & NMI_BITS) {
		key->context = CONTEXT_NMI;
	} else if (count & HARDIRQ_BITS || (blind && now->hardirq)) {
		key->context = CONTEXT_HARDIRQ;
		key->source = now->hardirq;
	} else if (count & SOFTIRQ_SERVED || (blind && now->softirq)) {
		key->context = CONTEXT_SOFTIRQ;
		key->source = now->softirq;
	}
}

/* A new entry; the other one, that somebody above us made meanwhile, is as good. */
static __always_inline struct seen *add_entry(struct seen_key *key)
{
	struct seen empty = {}, *entry;
	struct serving *now;

	bpf_map_update_elem(&seen, key, &empty, BPF_NOEXIST);
	entry = bpf_map_lookup_elem(&seen, key);
	if (entry)
		return entry;
	now = served();
	if (now)
		now->lost++;
	return NULL;
}

static __always_inline const u64 *comm_of(struct task_struct *task)
{
	return (void *)__builtin_preserve_access_index(&task->comm);
}

/* Names change by exec and by hand, cgroups by hand: the last ones count. */
static __always_inline void describe(struct seen *entry, struct task_struct *task)
{
	struct task_struct___where *more = (void *)task;
	const u64 *comm = comm_of(task);

	entry->comm[0] = comm[0];
	entry->comm[1] = comm[1];
	entry->cgroup = more->cgroups->dfl_cgrp->kn->id;
	entry->tgid = task->tgid;
	entry->flags = task->flags;
	entry->uid = task->real_cred->euid.val;
}

static __always_inline bool is_recent(const struct recent *last, struct task_struct *task)
{
	struct task_struct___where *more = (void *)task;
	const u64 *comm = comm_of(task);

	return last->task == (u64)task && last->key.started_ns == task->start_boottime &&
	       last->era == era && last->cgroups == (u64)more->cgroups &&
	       last->cred == (u64)task->real_cred && last->comm[0] == comm[0] &&
	       last->comm[1] == comm[1];
}

/* Its place goes to another task: what was counted beside the table goes into it. */
static __always_inline void put_back(const struct recent *last)
{
	struct seen *entry;

	if (!last->count || last->era != era)
		return;
	entry = bpf_map_lookup_elem(&seen, &last->key);
	if (entry)
		entry->count += last->count;
}

static __always_inline void remember(struct recent *last, const struct seen_key *key,
				     struct task_struct *task)
{
	struct task_struct___where *more = (void *)task;
	const u64 *comm = comm_of(task);

	put_back(last);
	last->key = *key;
	last->count = 0;
	last->era = era;
	last->task = (u64)task;
	last->cgroups = (u64)more->cgroups;
	last->cred = (u64)task->real_cred;
	last->comm[0] = comm[0];
	last->comm[1] = comm[1];
}

/* Not atomic: this CPU only, and the kernel keeps this from nesting. */
static __always_inline struct seen *count_call(struct seen_key *key)
{
	struct seen *entry = bpf_map_lookup_elem(&seen, key);

	if (!entry)
		entry = add_entry(key);
	if (entry)
		entry->count++;
	return entry;
}

static __always_inline void note_task(struct task_struct *task, struct seen_key *key)
{
	u32 place = task->pid & (RECENT_TASKS - 1);
	struct recent *last = bpf_map_lookup_elem(&recent, &place);
	struct seen *entry;

	if (!last)
		return;
	if (is_recent(last, task)) {
		last->count++;
		return;
	}
	key->started_ns = task->start_boottime;
	key->tid = task->pid;
	entry = count_call(key);
	if (!entry)
		return;
	describe(entry, task);
	remember(last, key, task);
}

static __always_inline int note_call(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct seen_key key = {};
	u32 count = context_count();

	key.cpu = bpf_get_smp_processor_id();
	if (count_place == COUNT_NOWHERE || count & INTERRUPT_BITS)
		note_interrupt(&key, count);
	if (key.context == CONTEXT_TASK)
		note_task(task, &key);
	else
		count_call(&key);
	return 0;
}

/* The function's name is filled in when this is loaded. */
SEC("fentry")
int where_fentry(void *ctx)
{
	return note_call();
}

SEC("kprobe")
int where_kprobe(void *ctx)
{
	return note_call();
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(where_hardirq, int irq)
{
	struct serving *now = served();

	if (now)
		now->hardirq = irq + 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(where_hardirq_end)
{
	struct serving *now = served();

	if (now)
		now->hardirq = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(where_softirq, u32 vector)
{
	struct serving *now = served();

	if (now)
		now->softirq = vector + 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(where_softirq_end)
{
	struct serving *now = served();

	if (now)
		now->softirq = 0;
	return 0;
}

char _license[] SEC("license") = "GPL";
