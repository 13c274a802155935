/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait: who waits for the owner of a lock.
 *
 * Problem: the kernel knows that a task waits for a lock, and seldom for whom.
 *
 * How: where a wait begins the owner is read from the lock. In user space: the
 * word of a PI or robust futex is its owner's tid and a bit for waiters; a mutex
 * of glibc has the word 2 when somebody waits, and the owner 8 bytes on. In the
 * kernel: mutex and rw_semaphore hold a pointer to their owner and some bits.
 * Where a wait ends without sleep, or times out, the exit ends the edge; otherwise
 * the wake-up does (select_cpu, enqueue). An owner that gives the lock back wakes the
 * first in line: of those behind, the one that gave the owner a boost last then waits for
 * that one (inherit_pass_on). The kernel leaves a program on a function out while a task
 * of this CPU is preempted in that same program; so each of these has a twin that sees what it
 * has missed.
 *
 * Limits: locks of other forms have no owner that we know: normal mutexes of musl
 * and bionic, Go's and Java's own, condition variables, semaphores, readers. A
 * word that looks like a mutex and is none may name a wrong thread, though only
 * of the same process: the owner may be of another one where the lock is shared
 * and PI or robust, as its word is then the kernel's own form. The tid is that of
 * the namespace of whoever waits; before 6.14 it must be the first one.
 */

#define WAIT_FUTEX_WAITERS 0x80000000U /* FUTEX_WAITERS */
#define WAIT_FUTEX_TID 0x3fffffffU     /* FUTEX_TID_MASK */
#define WAIT_SHARED 0x10	       /* FLAGS_SHARED: other processes may have the lock */
#define WAIT_CONTENDED 2	       /* glibc: locked, and somebody waits */
#define WAIT_SPIN (1 | 16)	       /* LCB_F_SPIN, LCB_F_PERCPU */
#define WAIT_RT 8		       /* LCB_F_RT */
#define WAIT_RWSEM (2 | 4)	       /* LCB_F_READ, LCB_F_WRITE */
#define WAIT_MUTEX 32		       /* LCB_F_MUTEX */
#define WAIT_READERS 1		       /* RWSEM_READER_OWNED */
#define WAIT_OWNER_BITS 7UL

/* The task that runs waits for the owner of a lock, which is at this address. */
static void wait_begin(struct task_struct *p, struct task_struct *owner, u32 reason, u64 lock)
{
	struct task_ctx *taskc = task_try(p);

	if (!taskc || owner->pid == p->pid)
		return;
	taskc->lock = lock;
	if (inherit_begin(taskc, inherit_edge(owner, reason), INHERIT_LEAVE))
		inherit_note_owner(owner, p->pid);
}

/* The twin of this program has just said the same: saves the search, nothing else. */
static bool wait_known(u32 tid, u32 *uaddr)
{
	struct task_ctx *taskc = task_try(bpf_get_current_task_btf());
	u64 edge = taskc ? READ_ONCE(taskc->waits) : 0;

	return edge && INHERIT_TID(edge) == tid && INHERIT_REASON(edge) == ROTA_FUTEX &&
	       taskc->lock == (u64)uaddr;
}

/* The lock in user space for which this task waits is some thread's of its process, or any. */
static void wait_for_thread(u32 tid, bool any, u32 *uaddr)
{
	struct task_struct *p = bpf_get_current_task_btf(), *owner;

	if (!tid || wait_known(tid, uaddr))
		return;
	if (bpf_ksym_exists(bpf_task_from_vpid))
		owner = bpf_task_from_vpid(tid);
	else
		owner = bpf_task_from_pid(tid);
	if (!owner)
		return;
	if (any || owner->tgid == p->tgid)
		wait_begin(p, owner, ROTA_FUTEX, (u64)uaddr);
	bpf_task_release(owner);
}

/*
 * The wait for this reason is over: another may go on beside it, as where a wait for
 * a call takes a lock. Also where the reason boosts no more, for waits from before.
 */
static void wait_ends(u32 reason)
{
	struct task_ctx *taskc = task_try(bpf_get_current_task_btf());

	if (taskc && taskc->waits && INHERIT_REASON(taskc->waits) == reason)
		inherit_end(taskc);
}

/* May a futex with this word be a lock whose owner is known? Others are left alone. */
static __always_inline bool wait_for_owner(u32 val)
{
	return val & WAIT_FUTEX_WAITERS || val == WAIT_CONTENDED;
}

static __always_inline int wait_ended(u32 val)
{
	if (wait_for_owner(val))
		wait_ends(ROTA_FUTEX);
	return 0;
}

static int wait_for_futex(u32 *uaddr, u32 flags, u32 val)
{
	bool robust = val & WAIT_FUTEX_WAITERS;
	u32 owner = 0;

	if (!wait_for_owner(val) || !inherit_by(ROTA_FUTEX))
		return 0;
	if (robust)
		owner = val & WAIT_FUTEX_TID;
	else if (bpf_probe_read_user(&owner, sizeof(owner), uaddr + 2))
		return 0;
	wait_for_thread(owner, robust && flags & WAIT_SHARED, uaddr);
	return 0;
}

SEC("fentry/__futex_wait")
int BPF_PROG(rota_on_futex_wait, u32 *uaddr, unsigned int flags, u32 val)
{
	return wait_for_futex(uaddr, flags, val);
}

SEC("fentry/__futex_wait")
int BPF_PROG(rota_on_futex_wait_twin, u32 *uaddr, unsigned int flags, u32 val)
{
	return wait_for_futex(uaddr, flags, val);
}

SEC("fexit/__futex_wait")
int BPF_PROG(rota_on_futex_waited, u32 *uaddr, unsigned int flags, u32 val)
{
	return wait_ended(val);
}

SEC("fexit/__futex_wait")
int BPF_PROG(rota_on_futex_waited_twin, u32 *uaddr, unsigned int flags, u32 val)
{
	return wait_ended(val);
}

static int wait_for_pi(u32 *uaddr, u32 flags)
{
	u32 word = 0;

	if (inherit_by(ROTA_FUTEX) && !bpf_probe_read_user(&word, sizeof(word), uaddr))
		wait_for_thread(word & WAIT_FUTEX_TID, flags & WAIT_SHARED, uaddr);
	return 0;
}

SEC("fentry/futex_lock_pi")
int BPF_PROG(rota_on_futex_lock, u32 *uaddr, unsigned int flags)
{
	return wait_for_pi(uaddr, flags);
}

SEC("fentry/futex_lock_pi")
int BPF_PROG(rota_on_futex_lock_twin, u32 *uaddr, unsigned int flags)
{
	return wait_for_pi(uaddr, flags);
}

SEC("fexit/futex_lock_pi")
int BPF_PROG(rota_on_futex_locked)
{
	wait_ends(ROTA_FUTEX);
	return 0;
}

SEC("fexit/futex_lock_pi")
int BPF_PROG(rota_on_futex_locked_twin)
{
	wait_ends(ROTA_FUTEX);
	return 0;
}

/* The owner's pointer and bits, 0: nobody is known. */
static u64 wait_lock_owner(void *lock, u32 flags)
{
	u64 owner = 0;

	if (flags & WAIT_RT)
		return 0;
	if (flags & WAIT_MUTEX) {
		owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
		return owner & ~WAIT_OWNER_BITS;
	}
	/* A semaphore says nothing of itself, and has no owner. */
	if (!(flags & WAIT_RWSEM))
		return 0;
	owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	return owner & WAIT_READERS ? 0 : owner & ~WAIT_OWNER_BITS;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(rota_on_lock_wait, void *lock, unsigned int flags)
{
	struct task_struct *owner;
	u64 at;
	s32 tid;

	if (flags & WAIT_SPIN || !inherit_by(ROTA_LOCK))
		return 0;
	at = wait_lock_owner(lock, flags);
	if (!at)
		return 0;
	tid = BPF_CORE_READ((struct task_struct *)at, pid);
	owner = bpf_task_from_pid(tid);
	if (!owner)
		return 0;
	wait_begin(bpf_get_current_task_btf(), owner, ROTA_LOCK, (u64)lock);
	bpf_task_release(owner);
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(rota_on_lock_waited, void *lock, int ret)
{
	wait_ends(ROTA_LOCK);
	return 0;
}
