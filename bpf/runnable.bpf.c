// SPDX-License-Identifier: GPL-2.0-only
/*
 * runnable: how long tasks wait for a CPU, from ready to running. An object of
 * its own, for "rota bench runnable"; the scheduler has nothing of it.
 *
 * Problem: how long who is ready waits must be counted the same way under any
 * scheduler, also on kernels without sched_ext.
 *
 * How: a task becomes ready when it is woken, when it is born, and when it is
 * taken off a CPU while it could have gone on. That moment is noted under its
 * number until it gets a CPU; the time between goes into a histogram of the
 * CPU. Only ready tasks are noted, so nothing must be tidied up: who is ready
 * cannot end without running first. The notes lie in memory that is taken
 * beforehand, because the hooks hold the lock of a run queue, where taking
 * memory could wake somebody.
 *
 * Limits: who is ready when counting begins is counted from its next readiness.
 * At most MAX_READY tasks are noted at a time; those beyond are counted as
 * lost. A cgroup is found among the first MAX_LEVELS above a task. What a task
 * is kept waiting for by its cgroup's cpu.max is a wait, too.
 */
#include "kernel.h"

#define MAX_READY 16384
#define MAX_LEVELS 64
#define BUCKETS 32

/* Set before loading: the one of these that is not 0 says who is counted. */
const volatile u32 wanted_process;
const volatile u64 wanted_cgroup;

/* Set when all hooks are there: with some of them, waits would have no end. */
u32 begun;

struct task_struct___runnable {
	unsigned int __state;
	int on_cpu;
	struct css_set___runnable *cgroups;
} CORE;

struct css_set___runnable {
	struct cgroup___runnable *dfl_cgrp;
} CORE;

struct kernfs_node___runnable {
	u64 id;
} CORE;

struct cgroup___runnable {
	int level;
	struct kernfs_node___runnable *kn;
	struct cgroup___runnable *ancestors[]; /* from the root to itself */
} CORE;

/* What one CPU counted; countedWaits in bench/runnable is its mirror. */
struct waits {
	u64 histogram[BUCKETS]; /* i: [2^(i-1), 2^i) us; 0: below 1 us */
	u64 total_ns;
	u64 longest_ns;
	u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct waits);
	__uint(max_entries, 1);
} waits SEC(".maps");

/* Thread number to when it became ready, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, MAX_READY);
} ready SEC(".maps");

static __always_inline struct waits *counters(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&waits, &zero);
}

static __always_inline bool in_cgroup(struct task_struct *p)
{
	struct task_struct___runnable *task = (void *)p;
	struct cgroup___runnable *cgroup = task->cgroups->dfl_cgrp, *above;
	int level = cgroup->level;

	for (int i = 0; i < MAX_LEVELS; i++) {
		if (i > level)
			break;
		if (bpf_core_read(&above, sizeof(above), &cgroup->ancestors[i]))
			break;
		if (BPF_CORE_READ(above, kn, id) == wanted_cgroup)
			return true;
	}
	return false;
}

static __always_inline bool counted(struct task_struct *p)
{
	if (!begun || !p->pid) /* 0: the idle tasks */
		return false;
	if (wanted_process)
		return p->tgid == wanted_process;
	return in_cgroup(p);
}

/* Notes that p is ready, unless it was already. */
static __always_inline void note_ready(struct task_struct *p)
{
	u64 now = bpf_ktime_get_ns();
	u32 pid = p->pid;
	struct waits *cpu;

	if (!bpf_map_update_elem(&ready, &pid, &now, BPF_NOEXIST))
		return;
	if (bpf_map_lookup_elem(&ready, &pid))
		return; /* woken, but preempted on its way to sleep: it waits since then */
	cpu = counters();
	if (cpu)
		cpu->lost++;
}

static __always_inline u32 bucket_of(u64 ns)
{
	u64 us = ns / 1000;
	u32 bucket = 0;

	for (int i = 0; i < BUCKETS - 1; i++) {
		if (!us)
			break;
		us >>= 1;
		bucket++;
	}
	return bucket;
}

/* p has a CPU. */
static __always_inline void end_wait(struct task_struct *p)
{
	struct waits *cpu;
	u32 pid = p->pid, bucket;
	u64 *since, wait;

	since = bpf_map_lookup_elem(&ready, &pid);
	if (!since)
		return;
	wait = kernel_since(bpf_ktime_get_ns(), *since);
	bpf_map_delete_elem(&ready, &pid);
	cpu = counters();
	bucket = bucket_of(wait);
	if (!cpu || bucket >= BUCKETS)
		return;
	cpu->histogram[bucket]++;
	cpu->total_ns += wait;
	if (wait > cpu->longest_ns)
		cpu->longest_ns = wait;
}

/* Who is woken before it has left its CPU runs on: it was never ready. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(runnable_wakeup, struct task_struct *p)
{
	struct task_struct___runnable *task = (void *)p;

	if (!counted(p))
		return 0;
	/* A byte since 7.2: a bitfield is read in the size that it has. */
	if (!BPF_CORE_READ_BITFIELD(task, on_cpu))
		note_ready(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(runnable_new, struct task_struct *p)
{
	if (counted(p))
		note_ready(p);
	return 0;
}

/*
 * The state is read from the task: where a signal keeps a task from going to
 * sleep, the one in the arguments of some kernels is still that of a sleeper.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(runnable_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_struct___runnable *task = (void *)prev;

	if (counted(prev) && (preempt || !task->__state))
		note_ready(prev);
	if (next->pid)
		end_wait(next);
	return 0;
}

char _license[] SEC("license") = "GPL";
