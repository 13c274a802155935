/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the kernel that rota touches: the fields it reads, the kfuncs
 * it calls, and the tests that tell kernels apart. Structs hold only what is
 * used; offsets, sizes and enum values come from the running kernel by CO-RE,
 * because they move between releases (6.19 renumbered the enqueue flags, 7.2
 * reordered the ops). Nothing here decides anything.
 */
#ifndef ROTA_KERNEL_H
#define ROTA_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#ifndef bpf_ksym_exists
#define bpf_ksym_exists(sym) (!!(sym))
#endif
#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif

#define CORE __attribute__((preserve_access_index))
/* An argument of a function that is verified once: a pointer that the kernel vouches for. */
#define __trusted __attribute__((btf_decl_tag("arg:trusted")))
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) ((*(volatile typeof(x) *)&(x)) = (v))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Since 6.2; the headers of older distributions do not have it. */
#define BPF_MAP_TYPE_CGRP_STORAGE 32

#define EINVAL 22
#define ESRCH 3
#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17

#define CLOCK_MONOTONIC 1

#define SCHED_IDLE 5
#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x4
#define SIGKILL_BIT (1UL << 8)
#define MAX_RT_PRIO 100

/* --- fields --------------------------------------------------------------- */

struct cpumask {
	unsigned long bits[1];
} CORE;

struct thread_info {
	u32 cpu;
} CORE;

struct rq;

struct cfs_rq {
	struct rq *rq; /* where tasks are in groups */
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* that of its CPU, whatever class it is in */
	u64 sum_exec_runtime;
	u64 slice;
	unsigned char custom_slice; /* since 6.12: the task asked for its slice */
} CORE;

struct scx_dispatch_q;

struct sched_ext_entity {
	struct scx_dispatch_q *dsq; /* the queue where it is; NULL: it runs or is on its way */
	u32 flags;
	u64 slice;
	u64 dsq_vtime;
} CORE;

struct sigset {
	unsigned long sig[1];
};

struct sigpending {
	struct sigset signal;
} CORE;

struct css_set;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state; /* 0: it runs or is ready */
	unsigned int flags;
	int static_prio;
	struct sched_entity se;
	struct sched_ext_entity scx;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	int rcu_read_lock_nesting; /* where the kernel preempts read sections */
	int pid;
	int tgid;
	u64 start_boottime;
	struct sigpending pending;
	const struct cred *real_cred; /* not what override_creds() lends for a while */
	struct css_set *cgroups;
	char comm[16];
} CORE;

struct bpf_cpumask {
	char opaque;
} CORE;

struct kernfs_node {
	u64 id;
} CORE;

struct cgroup {
	int level;
	struct kernfs_node *kn;
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp; /* in the v2 tree */
} CORE;

typedef struct {
	s64 counter;
} CORE atomic64_t;

struct mutex {
	atomic64_t owner;
} CORE;

struct rw_semaphore {
	atomic64_t owner;
} CORE;

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
} CORE;

struct scx_exit_task_args {
	bool cancelled;
} CORE;

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us; /* since 6.17 */
} CORE;

struct scx_cpu_release_args {
	char opaque;
} CORE;

struct scx_dump_ctx {
	u64 at_ns;
} CORE;

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
} CORE;

struct linux_binprm;

struct kuid {
	u32 val;
};

struct cred {
	struct kuid euid;
} CORE;

struct scx_rq {
	u32 flags;
} CORE;

struct rt_rq {
	unsigned int rt_nr_running;
} CORE;

struct dl_rq {
	unsigned int dl_nr_running;
} CORE;

struct rq {
	u64 clock;
	struct rt_rq rt;
	struct dl_rq dl;
	struct scx_rq scx;
} CORE;

/* Only the callbacks that rota has: the loader places members by name. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us); /* since 6.17 */
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* --- enums: the values are the kernel's, taken at load --------------------- */

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1LLU,
	SCX_ENQ_HEAD = 16LLU,
	SCX_ENQ_PREEMPT = 1LLU << 32,
	SCX_ENQ_REENQ = 1LLU << 40,
	SCX_ENQ_LAST = 1LLU << 41,
};
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 1LLU << 63 | 2,
	SCX_DSQ_LOCAL_ON = 1LLU << 63 | 1LLU << 62,
};
enum scx_kick_flags {
	SCX_KICK_IDLE = 1LLU,
	SCX_KICK_PREEMPT = 2LLU,
};
enum scx_wake_flags {
	SCX_WAKE_FORK = 4,
	SCX_WAKE_SYNC = 16,
};
enum scx_rq_flags {
	SCX_RQ_CLK_VALID = 32,
};
enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};

#define KERNEL_ENUM(type, name) bpf_core_enum_value(enum type, name)
#define ENQ_WAKEUP KERNEL_ENUM(scx_enq_flags, SCX_ENQ_WAKEUP)
#define ENQ_HEAD KERNEL_ENUM(scx_enq_flags, SCX_ENQ_HEAD)
#define ENQ_PREEMPT KERNEL_ENUM(scx_enq_flags, SCX_ENQ_PREEMPT)
#define ENQ_REENQ KERNEL_ENUM(scx_enq_flags, SCX_ENQ_REENQ)
#define ENQ_LAST KERNEL_ENUM(scx_enq_flags, SCX_ENQ_LAST)
#define DSQ_LOCAL KERNEL_ENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define DSQ_LOCAL_ON KERNEL_ENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define KICK_IDLE KERNEL_ENUM(scx_kick_flags, SCX_KICK_IDLE)
#define KICK_PREEMPT KERNEL_ENUM(scx_kick_flags, SCX_KICK_PREEMPT)
#define WAKE_FORK KERNEL_ENUM(scx_wake_flags, SCX_WAKE_FORK)
#define WAKE_SYNC KERNEL_ENUM(scx_wake_flags, SCX_WAKE_SYNC)
#define RQ_CLK_VALID KERNEL_ENUM(scx_rq_flags, SCX_RQ_CLK_VALID)
#define TASK_QUEUED KERNEL_ENUM(scx_ent_flags, SCX_TASK_QUEUED)

/* --- kfuncs ----------------------------------------------------------------- */

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
/* Since 6.16: the kernel's rule for a wake-up, among these CPUs only. */
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *allowed, u64 flags) __ksym __weak;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym;
bool bpf_cpumask_empty(const struct cpumask *mask) __ksym;
void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym;
struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym;
void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
/* Enqueues anew who is in the local queue: in cpu_release only, and since 6.19 anywhere. */
u32 scx_bpf_reenqueue_local(void) __ksym __weak;
void scx_bpf_reenqueue_local___v2(void) __ksym __weak;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym __weak;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym __weak;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym __weak;
struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
/* Only where cgroups take part in scheduling (CONFIG_EXT_GROUP_SCHED). */
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym __weak;
struct bpf_iter_task {
	u64 __opaque[3];
} __attribute__((aligned(8)));
#define KERNEL_WAKING 0x200	 /* TASK_WAKING: woken, and not yet in a queue */
#define KERNEL_PROCESS_THREADS 2 /* BPF_TASK_ITER_PROC_THREADS */
int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *p, u32 flags) __ksym;
struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
/* Since 6.14: by the number that the task's own PID namespace gives. */
struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
void *bpf_rdonly_cast(const void *obj, u32 type) __ksym;

/* 6.13 renamed these; 6.17 dropped the old names. */
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_dispatch(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime,
			      u64 flags) __ksym __weak;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime,
			    u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
		      u64 flags) __ksym __weak;
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
			       u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
			    u64 flags) __ksym __weak;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym __weak;
bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
				     u64 flags) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym __weak;
/* Since 6.14: a clock that the run queue has read already. */
u64 scx_bpf_now(void) __ksym __weak;
/* Since 6.18: the run queue whose lock this CPU holds in this callback, or NULL. */
struct rq *scx_bpf_locked_rq(void) __ksym __weak;
/* Since 6.19, when direct writes to the slice became deprecated. */
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;

/*
 * for (i = from; i < to; i++), counted by the kernel: the verifier then looks
 * at the body once and not once per turn, which keeps loading quick.
 */
#define kernel_for(i, from, to)                                                             \
	for (struct bpf_iter_num ___it __attribute__((cleanup(bpf_iter_num_destroy))),      \
	     *___once                                                                       \
	     __attribute__((unused)) = (bpf_iter_num_new(&___it, (from), (to)), (void *)0); \
	     ({                                                                             \
		     int *___n = bpf_iter_num_next(&___it);                                 \
		     (i) = ___n ? *___n : 0;                                                \
		     ___n;                                                                  \
	     });)

/*
 * For each task that waits in a dispatch queue, in its order; it is the name of
 * the iterator, for kernel_move(). The kernel allows next() and destroy() also
 * where new() found no queue.
 */
#define kernel_for_waiting(it, p, dsq)                                                            \
	for (struct bpf_iter_scx_dsq it __attribute__((cleanup(bpf_iter_scx_dsq_destroy))),       \
	     *___once __attribute__((unused)) = (bpf_iter_scx_dsq_new(&it, (dsq), 0), (void *)0); \
	     ((p) = bpf_iter_scx_dsq_next(&it));)

/* Is no CPU idle? */
static __always_inline bool kernel_all_busy(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool none = bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return none;
}

/* Whoever is in the local queue is enqueued anew; nothing where that is for cpu_release() to do. */
static __always_inline void kernel_reenqueue(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___v2))
		scx_bpf_reenqueue_local___v2();
}

static __always_inline bool kernel_idle(u32 cpu)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool is = bpf_cpumask_test_cpu(cpu, idle);

	scx_bpf_put_idle_cpumask(idle);
	return is;
}

/*
 * Must the task stay on its CPU for now? Where the kernel preempts read sections of RCU,
 * our own programs disable the migration of the task on whose time they run: that one
 * does not count.
 */
static __always_inline bool kernel_pinned(const struct task_struct *p)
{
	return p->migration_disabled >
	       (p == bpf_get_current_task_btf() && bpf_core_field_exists(p->rcu_read_lock_nesting));
}

/* Was the waiting task preempted where grace periods of RCU wait for it? */
static __always_inline bool kernel_reads(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_lock_nesting) && p->rcu_read_lock_nesting > 0;
}

/*
 * The same task, for fields that are pointers. Wherever one of those of a task that is known to
 * be alive is followed the verifier searches all types of the kernel, four times, for whether the
 * pointer can be trusted. Through this one nothing can, and loads that fail give 0.
 */
static __always_inline const struct task_struct *kernel_plain(const struct task_struct *p)
{
	return bpf_rdonly_cast(p, bpf_core_type_id_kernel(struct task_struct));
}

/* As kernel_reenqueue(), if a real-time task has the CPU that this one leaves and somebody is in its queue. */
static __always_inline void kernel_reenqueue_below(const struct task_struct *p)
{
	const struct rq *rq;

	if (!bpf_ksym_exists(scx_bpf_reenqueue_local___v2) ||
	    !bpf_core_field_exists(p->se.cfs_rq->rq))
		return;
	rq = kernel_plain(p)->se.cfs_rq->rq;
	if (!rq->rt.rt_nr_running && !rq->dl.dl_nr_running)
		return;
	/* Another CPU may be the one that takes it out, to change it. */
	if (p->thread_info.cpu == bpf_get_smp_processor_id() && scx_bpf_dsq_nr_queued(DSQ_LOCAL))
		scx_bpf_reenqueue_local___v2();
}

static __always_inline void kernel_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq, slice, flags);
	else
		scx_bpf_dispatch(p, dsq, slice, flags);
}

static __always_inline void kernel_insert_vtime(struct task_struct *p, u64 dsq, u64 slice,
						u64 vtime, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime))
		scx_bpf_dsq_insert_vtime(p, dsq, slice, vtime, flags);
	else
		scx_bpf_dispatch_vtime(p, dsq, slice, vtime, flags);
}

static __always_inline bool kernel_move_to_local(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local))
		return scx_bpf_dsq_move_to_local(dsq);
	return scx_bpf_consume(dsq);
}

static __always_inline bool kernel_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
					u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move))
		return scx_bpf_dsq_move(it, p, dsq, flags);
	return scx_bpf_dispatch_from_dsq(it, p, dsq, flags);
}

static __always_inline bool kernel_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					      u64 dsq, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_vtime) &&
	    bpf_ksym_exists(scx_bpf_dsq_move_set_vtime)) {
		scx_bpf_dsq_move_set_vtime(it, vtime);
		return scx_bpf_dsq_move_vtime(it, p, dsq, 0);
	}
	scx_bpf_dispatch_from_dsq_set_vtime(it, vtime);
	return scx_bpf_dispatch_vtime_from_dsq(it, p, dsq, 0);
}

/* The task's cgroup, to be released; NULL where cgroups take no part. */
static __always_inline struct cgroup *kernel_task_cgroup(struct task_struct *p)
{
	if (bpf_ksym_exists(scx_bpf_task_cgroup))
		return scx_bpf_task_cgroup(p);
	return NULL;
}

/*
 * Time from then to now in ns, at least 0: the clock of a CPU may be a little
 * behind that of the CPU that noted the time.
 */
static __always_inline u64 kernel_since(u64 now_ns, u64 then_ns)
{
	return (s64)(now_ns - then_ns) > 0 ? now_ns - then_ns : 0;
}

static __always_inline void kernel_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

#define kernel_bstr(call, fmt, args...)                                                 \
	({                                                                              \
		static char ___fmt[] = fmt;                                             \
		unsigned long long ___param[___bpf_narg(args)] = {};                    \
		_Pragma("GCC diagnostic push")                                          \
			_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")          \
				___bpf_fill(___param, args);                            \
		_Pragma("GCC diagnostic pop") call(___fmt, ___param, sizeof(___param)); \
	})
/* Ends the scheduler; the text reaches the user: name the object. */
#define scx_bpf_error(fmt, args...) kernel_bstr(scx_bpf_error_bstr, fmt, ##args)
#define scx_bpf_dump(fmt, args...) kernel_bstr(scx_bpf_dump_bstr, fmt, ##args)

#endif
