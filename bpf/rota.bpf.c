// SPDX-License-Identifier: GPL-2.0-only
/*
 * rota: a CPU scheduler that knows what matters.
 *
 * Life of a task
 *   init_task    gets its context, in its parent's class (task).
 *   select_cpu   takes an idle CPU, or that of a waker that is about to sleep (hand), and is
 *                done; else a priority task takes the CPU of the least important one that
 *                runs (place, priority).
 *   enqueue      waits by tier: priority in the queue of its cache domain,
 *                fair and background in queues of its CPU (pick); or preempts (preempt).
 *   dispatch     a CPU looks for work: who is called for a boost, a starved task, priority
 *                inside its cap, fair, what ran before, others' tasks, background.
 *   running      its wait is over; if it came from another CPU it competes
 *                here from now on.
 *   stopping     is charged: virtual time by weight, time against the cap; when
 *                it sleeps it leaves its queue and takes its lag along. Whose CPU a
 *                brief one takes goes on after it, if it is due before the others (aside). A task
 *                that is taken out while it waits is put back at once, by the
 *                kernel's rules, so it stays in the sums.
 *
 * Ideas
 *   - Three tiers. A higher tier runs first; caps and the starvation bound
 *     keep that from hurting.
 *   - Below priority, EEVDF: weights give shares. Debts survive sleep, and claims do
 *     while the queue that owes them has somebody.
 *   - What a priority task waits for runs at its level, and what that waits
 *     for, until the wait ends (inherit, wait, binder).
 *   - State per CPU and per cache domain only. A switch takes no lock of ours,
 *     no shared atomic, no allocation.
 *   - Which rule matches a task is decided in user space, once per exec or
 *     rename, or once for all that are known by the same (known), never while a
 *     task waits. If the daemon is slow the task runs in the class it had.
 *
 * What happens on failure
 *   If the daemon dies its link closes and the kernel's own scheduler has
 *   every task at once. If a callback finds what must not be, it ends the
 *   scheduler with an error that names the object; the kernel writes a dump.
 *   If a task waits too long after all, the kernel's watchdog does the same.
 *
 * What it does not do
 *   It does not run real-time or deadline tasks, which the kernel runs first.
 *   It does not choose frequencies; it can take them into account (pace).
 *
 * The parts, each using only parts above it:
 */
#include "kernel.h"
#include "context.h"
#include "rota.h"
#include "eevdf.h"
#include "pace.h"
#include "pause.h"
#include "belief.h"
#include "counter.h"
#include "cpu.bpf.h"
#include "clock.bpf.h"
#include "stats.bpf.h"
#include "group.bpf.h"
#include "task.bpf.h"
#include "pace.bpf.h"
#include "record.bpf.h"
#include "timer.bpf.h"
#include "ghost.bpf.h"
#include "aside.bpf.h"
#include "queue.bpf.h"
#include "preempt.bpf.h"
#include "pick.bpf.h"
#include "lend.bpf.h"
#include "own.bpf.h"
#include "priority.bpf.h"
#include "limit.bpf.h"
#include "place.bpf.h"
#include "hand.bpf.h"
#include "inherit.bpf.h"
#include "wait.bpf.h"
#include "binder.bpf.h"
#include "rescue.bpf.h"
#include "known.bpf.h"
#include "class.bpf.h"
#include "event.bpf.h"
#include "explain.bpf.h"
#include "dump.bpf.h"
#include "counter.bpf.h"

char _license[] SEC("license") = "GPL";

#define ROTA_OP(name, args...) BPF_PROG(rota_##name, ##args)

/*
 * What a wake-up that the waker will sleep after says about waits; true: the task may
 * have the waker's CPU.
 */
static bool wake_sync(struct task_struct *p, struct task_ctx *taskc)
{
	struct task_ctx *wakerc = inherit_note_wake(p, taskc);

	return wakerc && binder_hand_over(p, wakerc);
}

/* The search for an idle CPU; idle: it is, and it is taken. */
static s32 choose_idle(struct task_struct *p, u32 own, s32 prev_cpu, u64 wake_flags, bool *idle)
{
	if (own_cpus)
		return place_select(p, own, prev_cpu, wake_flags, idle);
	/* Spares most of what the search costs where there is nothing to find. */
	if (READ_ONCE(cpu_find(prev_cpu)->curr_tid) && kernel_all_busy())
		return prev_cpu;
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, idle);
}

/*
 * The CPU for a task that wakes; taken: for this one. The kernel's search shall not believe every
 * waker that it will sleep: whom it puts on the CPU of one that does not waits there to a
 * tick, though others are idle.
 */
static s32 choose_cpu(struct task_struct *p, struct task_ctx *taskc, s32 prev_cpu, u64 wake_flags,
		      bool *taken)
{
	s32 cpu;

	if (wake_flags & WAKE_SYNC && knobs.fair & ROTA_HAND_OVER &&
	    hand_over(p, taskc, prev_cpu)) {
		*taken = true;
		return bpf_get_smp_processor_id();
	}
	cpu = choose_idle(p, taskc->own, prev_cpu, wake_flags & ~WAKE_SYNC, taken);
	if (*taken)
		cpu_counters(cpu)->direct++;
	return cpu;
}

SEC("struct_ops/rota_select_cpu")
s32 ROTA_OP(select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *taskc = task_find(p);
	bool here = false, taken = false;
	s32 cpu;

	if (!taskc)
		return prev_cpu;
	if (taskc->waits)
		inherit_wake(p, taskc);
	if (knobs.inherit & INHERIT_WAKERS && wake_flags & WAKE_SYNC)
		here = wake_sync(p, taskc);
	if (task_stale(p, taskc) && taskc->joined < 0)
		task_refresh(p, taskc);
	if (limit_groups && limit_over(p, taskc, clock_now()))
		return prev_cpu;
	cpu = here ? bpf_get_smp_processor_id()
		   : choose_cpu(p, taskc, prev_cpu, wake_flags, &taken);
	if (here || taken) {
		taskc->ready_at_ns = clock_now();
		/* Who is called goes before who is aside. */
		kernel_insert(p, DSQ_LOCAL, taskc->slice_ns, here ? ENQ_HEAD : 0);
		return cpu;
	}
	if (taskc->tier == ROTA_PRIORITY) {
		s32 victim = priority_victim(p, taskc->own, cpu, true);

		return victim >= 0 ? victim : cpu;
	}
	return place_wake(p, taskc, cpu, wake_flags);
}

/* Takes over what has changed about a task that enters a queue. */
static void update(struct task_struct *p, struct task_ctx *taskc, u32 cpu, u64 now_ns)
{
	if (!taskc->ready_at_ns)
		taskc->ready_at_ns = now_ns;
	taskc->rescued = 0; /* a turn that was interrupted goes on without a queue */
	taskc->turn_ns = 0;
	taskc->took = 0; /* it was taken out before it had that CPU */
	aside_drop(taskc, cpu_find(cpu));
	if (!task_stale(p, taskc))
		return;
	if (taskc->joined >= 0)
		queue_leave(taskc, cpu, false);
	task_refresh(p, taskc);
}

/* Puts a task of the fair or background tier among its like. */
static void compete(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu,
		    u64 enq_flags, u64 now_ns)
{
	pick_enqueue(p, taskc, cpuc, cpu, enq_flags, now_ns);
	/* Boosted on the way into the queue: whoever did it saw no task that waits. */
	if (taskc->generation != generation && task_boosted(taskc))
		inherit_call(p->pid, cpu, false);
	/* Whom a real-time task interrupts mostly goes on after a moment: see timer_watch_held(). */
	if (!(enq_flags & (ENQ_WAKEUP | ENQ_REENQ)))
		own_kick_idle(p, taskc->own);
}

/*
 * A higher scheduling class has the CPU, for who knows how long, and who was in the local queue
 * for it is back: nobody is about to run here, and nobody goes on. From 7.2 on he may be back only when
 * somebody of ours runs again. A turn by the starvation bound is still due.
 */
static void give_up(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	cpuc->local_taken = 0;
	cpuc->lower_next = 0;
	cpuc->took_head = 0;
	if (taskc->rescued)
		taskc->ready_at_ns = now_ns - knobs.starvation_ns / 2;
	if (cpuc->curr_tid)
		return;
	cpuc->curr_tier = ROTA_NONE;
	timer_watch_held(cpuc, cpu, now_ns);
}

/* For who may run on one CPU only select_cpu is not asked, and nobody says who wakes to sleep. */
static void wake_unasked(struct task_struct *p, struct task_ctx *taskc)
{
	if (taskc->waits)
		inherit_wake(p, taskc);
	if (own_cpus)
		lend_wake(taskc->own);
	if (p->nr_cpus_allowed == 1 && knobs.inherit & INHERIT_WAKERS && !(p->flags & PF_KTHREAD))
		inherit_note_wake(p, taskc);
}

SEC("struct_ops/rota_enqueue")
void ROTA_OP(enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpu = p->thread_info.cpu;
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_ctx *taskc = task_find(p);
	u64 now_ns = clock_now_locked(), until_ns;

	if (!taskc)
		return;
	if (enq_flags & ENQ_WAKEUP)
		wake_unasked(p, taskc);
	else if (enq_flags & ENQ_REENQ)
		give_up(taskc, cpuc, cpu, now_ns);
	update(p, taskc, cpu, now_ns);
	until_ns = limit_over(p, taskc, now_ns);
	if (until_ns) {
		limit_park(p, taskc, cpuc, cpu, until_ns, now_ns);
		return;
	}
	if (cpuc->owner != taskc->own && place_send(p, taskc, cpu, enq_flags))
		return;
	/* Its time has come back just now, and nobody else makes this CPU look. */
	if (enq_flags & ENQ_LAST)
		scx_bpf_kick_cpu(cpu, 0);
	if (taskc->tier == ROTA_PRIORITY) {
		priority_enqueue(p, taskc, cpuc, cpu, enq_flags, now_ns);
		return;
	}
	compete(p, taskc, cpuc, cpu, enq_flags, now_ns);
}

/*
 * What is counted of a task that has come to a CPU: when it leaves, or at a tick, as others may
 * wait for what it does there. stats are the counters of its class, which may be another since.
 */
static __always_inline void count_arrival(struct task_ctx *taskc, u32 cpu,
					  struct rota_class_stats *stats)
{
	if (!taskc->arrived)
		return;
	if (taskc->arrived - 1 != taskc->class)
		stats = stats_class(taskc->arrived - 1);
	taskc->arrived = 0;
	if (!stats)
		return;
	cpu_counters(cpu)->dispatches[taskc->tier < ROTA_NONE ? taskc->tier : ROTA_FAIR]++;
	stats_wait(stats, taskc->waited_ns);
	if (taskc->took)
		stats_preemption(taskc->took - 1, stats, cpu);
	taskc->took = 0;
}

/* Charges what runs, wherever its time counts. */
static void charge(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	u64 delta_ns = p->se.sum_exec_runtime - taskc->exec_ns;
	u64 spared_ns = queue_least(cpuc->curr_spared_ns, delta_ns);
	u32 bound = pace_bound(taskc);
	u64 done_ns = queue_done(cpuc, delta_ns - spared_ns, bound, cpu);
	struct rota_class_stats *stats = stats_class(taskc->class);

	cpuc->curr_spared_ns = 0;
	taskc->exec_ns += delta_ns;
	taskc->used_ns += taskc->tier == ROTA_PRIORITY ? delta_ns : done_ns;
	queue_charge(taskc, cpuc, done_ns);
	if (cpuc->owner && cpuc->owner != taskc->own)
		place_count(p, taskc, cpuc, cpu, delta_ns);
	else if (cpuc->owner)
		WRITE_ONCE(cpuc->owned_at_ns, clock_now_locked());
	if (limit_groups && taskc->group)
		limit_charge(taskc->group, delta_ns, clock_now_locked());

	if (stats) {
		stats->runtime_ns += delta_ns;
		stats->progress_ns += done_ns + pace_ns(spared_ns, bound, cpu);
	}
	count_arrival(taskc, cpu, stats);
	if (taskc->tier != ROTA_PRIORITY)
		return;
	priority_charge(taskc, cpuc, cpu, delta_ns);
	/* Not by what it had before: a class that changes while it is boosted takes that away. */
	if (task_class(taskc)->tier != ROTA_PRIORITY)
		inherit_charge(taskc, cpu, delta_ns);
}

/* Notes for others what runs here from now on. */
static __always_inline void note_running(struct task_struct *p, struct task_ctx *taskc,
					 struct cpu_ctx *cpuc, u64 now_ns)
{
	cpuc->curr_tid = p->pid;
	cpuc->curr_class = taskc->class;
	cpuc->curr_own = taskc->own;
	timer_note(taskc, cpuc);
	cpuc->curr_weight = taskc->weight;
	cpuc->curr_bound = pace_bound(taskc);
	cpuc->curr_at_ns = now_ns;
	cpuc->curr_since_ns = now_ns;
	cpuc->curr_end_ns = now_ns + p->scx.slice;
	cpuc->curr_vt = taskc->vt;
	cpuc->curr_deadline_vt = taskc->deadline_vt;
	cpuc->curr_slice_ns = taskc->slice_ns;
	cpuc->curr_tier = taskc->tier;
	if (taskc->tier == ROTA_BACKGROUND)
		priority_note_background(cpuc, now_ns);
}

/* Sees to it that a turn that has begun, or goes on, ends in time for who waits. */
static __always_inline void watch_turn(struct cpu_ctx *cpuc, u32 tier, u32 cpu, u64 now_ns,
				       bool chosen)
{
	if (chosen)
		cpuc->put_off = 0;
	else if (cpuc->put_off)
		preempt_end_in_time(cpuc);
	if (!cpu_waiting(cpu_queue(cpuc, tier)))
		return;
	if (cpuc->heavy_weight && preempt_may_end(cpuc, ROTA_FAIR))
		preempt_end_for_heavy(cpuc, chosen);
	if (cpuc->moment_tid)
		preempt_end_for_moment(cpuc, now_ns);
	if (cpuc->curr_hog && cpuc->queues[0].briefs && preempt_cut_begun(cpu, now_ns)) {
		if (!chosen) {
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
			return;
		}
		/* It came from another CPU: it is to do something first. */
		preempt_end_by(cpuc, preempt_quantum_end(cpuc));
	}
	if (timer_wanted(cpuc))
		timer_start(cpuc, cpu, now_ns);
}

/* The task that ran may go on: another slice for it. */
static void keep(struct task_struct *prev, struct task_ctx *prevc, struct cpu_ctx *cpuc, u64 now_ns)
{
	cpuc->curr_rescued = 0;
	cpuc->local_taken = 0;
	cpuc->lower_next = 0;
	cpuc->asked = 0;
	pick_note_waiting(cpuc, prevc->tier, now_ns);
	if (prevc->tier != ROTA_PRIORITY)
		queue_ask(cpu_queue(cpuc, prevc->tier), prevc);
	record_pick(ROTA_PICK_KEEP, prevc, cpuc, prev->thread_info.cpu);
	if (cpu_waiting(cpu_queue(cpuc, prevc->tier)))
		cpuc->curr_safe_vt = preempt_safe(prevc, cpu_queue(cpuc, prevc->tier));
	kernel_set_slice(prev, prevc->request_ns);
	note_running(prev, prevc, cpuc, now_ns);
	if (own_cpus)
		lend_wake(prevc->own);
	watch_turn(cpuc, prevc->tier, prev->thread_info.cpu, now_ns, true);
	/* A boosted task is on its way into a queue, see inherit_miss(). */
	if (cpuc->called != cpuc->answered && prevc->tier != ROTA_PRIORITY)
		scx_bpf_kick_cpu(prev->thread_info.cpu, KICK_PREEMPT);
}

/*
 * Who exits is taken out of its autogroup moments before its parent is woken, and the kernel asks for a
 * choice there: it goes on, as turns do to the tick where nobody ends them (docs/decisions/0028). Being taken
 * out has begun its turn anew. Once for each task: what else it does while it exits may take long.
 */
static bool finish_exit(struct task_struct *prev, struct task_ctx *prevc, struct cpu_ctx *cpuc,
			u64 now_ns)
{
	if (!(prev->flags & PF_EXITING) || prevc->finishes || cpuc->curr_rescued ||
	    cpuc->called != cpuc->answered || !eevdf_before(now_ns, preempt_quantum_end(cpuc)))
		return false;
	prevc->finishes = 1;
	cpuc->asked = 0;
	kernel_set_slice(prev, PREEMPT_QUANTUM_NS);
	return true;
}

/* Does the task that ran go on before the fair tier has a choice? */
static bool keep_first(struct task_struct *prev, struct task_ctx *prevc, struct cpu_ctx *cpuc,
		       u32 cpu, u64 now_ns)
{
	if (prevc->tier == ROTA_FAIR)
		return finish_exit(prev, prevc, cpuc, now_ns);
	if (prevc->tier != ROTA_PRIORITY || !priority_may_go_on(prevc, cpuc, cpu, now_ns))
		return false;
	keep(prev, prevc, cpuc, now_ns);
	return true;
}

/* The task that ran, charged, if it may go on. */
static struct task_ctx *charge_prev(struct task_struct *prev, struct cpu_ctx *cpuc, u32 cpu,
				    u64 now_ns)
{
	struct task_ctx *prevc;

	if (!prev || !(prev->scx.flags & TASK_QUEUED))
		return NULL;
	prevc = task_try(prev);
	if (!prevc)
		return NULL;
	charge(prev, prevc, cpuc, cpu);
	cpuc->curr_at_ns = now_ns;
	cpuc->curr_vt = prevc->vt;
	/* A boost that has ended: it must enter a queue, at its own level. */
	if (prevc->fair_weight && !task_boosted(prevc))
		return NULL;
	/* Whose class may have changed, or where it belongs: only a queue tells. */
	if (task_misplaced(prevc) || (own_cpus && prevc->generation != generation))
		return NULL;
	if (place_astray(prev, prevc, cpuc, cpu))
		return NULL;
	if (!limit_over(prev, prevc, now_ns))
		return prevc;
	limit_sweep(QUEUE_FAIR(cpu), cpu, now_ns);
	limit_sweep(QUEUE_FAIR_PARKED(cpu), cpu, now_ns);
	return NULL;
}

/* Lets those go on who waited here for cpu.max, or takes one over from a CPU that can't look. */
static bool dispatch_limited(struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	if (limit_due(cpuc, now_ns))
		limit_release(cpu, now_ns);
	return limit_late(now_ns) && !own_closed(cpuc) && limit_adopt(cpu, now_ns);
}

/* Nothing in the fair tier here: others' tasks, those over their cap, background. */
static bool dispatch_rest(struct cpu_ctx *cpuc, u32 cpu, struct task_struct *prev,
			  struct task_ctx *prevc, u64 now_ns)
{
	return priority_steal(cpuc, now_ns) || place_steal(cpuc, cpu, ROTA_FAIR, now_ns) ||
	       priority_dispatch_capped(cpuc, cpu) ||
	       pick_next(cpuc, ROTA_BACKGROUND, cpu, prevc) ||
	       (!prev && place_steal(cpuc, cpu, ROTA_BACKGROUND, now_ns));
}

/* Priority had its part: the fair tier, what ran, and the rest. */
static __always_inline void dispatch_lower(struct cpu_ctx *cpuc, u32 cpu, struct task_struct *prev,
					   struct task_ctx *prevc, u64 now_ns)
{
	cpuc->lower_next = 1; /* if the kernel puts back one of priority now, it is over its cap */
	if ((place_due(cpuc, now_ns) && place_balance(cpu, now_ns)) ||
	    pick_next(cpuc, ROTA_FAIR, cpu, prevc))
		return;
	if (prev && prevc->tier == ROTA_FAIR) {
		keep(prev, prevc, cpuc, now_ns);
		return;
	}
	if (dispatch_rest(cpuc, cpu, prev, prevc, now_ns))
		return;
	cpuc->lower_next = 0;
	if (prev)
		keep(prev, prevc, cpuc, now_ns);
}

SEC("struct_ops/rota_dispatch")
void ROTA_OP(dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u64 now_ns = clock_now_locked();
	struct task_ctx *prevc = charge_prev(prev, cpuc, cpu, now_ns);

	cpuc->asked = 1;
	cpuc->unheard = 0;
	cpuc->aside = 0; /* the local queue is empty */
	if (!prevc)
		prev = NULL;
	if (dispatch_limited(cpuc, cpu, now_ns))
		return;
	place_clear(cpuc, cpu);
	if (cpuc->called != cpuc->answered && inherit_answer(cpu))
		return;
	if (rescue(cpuc, cpu, now_ns) || priority_dispatch(cpuc, cpu, prev, prevc, now_ns))
		return;
	if (prev && keep_first(prev, prevc, cpuc, cpu, now_ns))
		return;
	dispatch_lower(cpuc, cpu, prev, prevc, now_ns);
}

/* Must what runs stop for cpu.max, or is it time to look at those who wait for it? */
static bool limited(struct task_struct *p, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct task_ctx *taskc = task_try(p);

	if (limit_due(cpuc, now_ns))
		return true;
	if (!taskc || !taskc->group)
		return false;
	taskc->overdue = 0;
	charge(p, taskc, cpuc, cpu);
	cpuc->curr_at_ns = now_ns;
	cpuc->curr_vt = taskc->vt;
	cpuc->curr_deadline_vt = taskc->deadline_vt;
	return limit_over(p, taskc, now_ns);
}

/* Is a turn over at this tick: beside shorter slices, or because it gives way? */
static bool outran(struct cpu_ctx *cpuc, u32 tier, u64 now_ns)
{
	if (tier != ROTA_FAIR && tier != ROTA_BACKGROUND)
		return false;
	if (!cpu_waiting(cpu_queue(cpuc, tier)) && !cpuc->aside)
		return false;
	if (kernel_since(now_ns, cpuc->curr_since_ns) >= queue_shortest(cpu_queue(cpuc, tier)))
		return true;
	queue_charge_ahead(cpuc, now_ns);
	return preempt_gives_way(cpuc, tier);
}

SEC("struct_ops/rota_tick")
void ROTA_OP(tick, struct task_struct *p)
{
	u32 cpu = p->thread_info.cpu;
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_ctx *taskc = task_try(p);
	u64 now_ns = clock_now_locked();

	clock_note(cpuc); /* first: what passes until then is missing in it */
	if (taskc) {
		event_follow(p, taskc);
		count_arrival(taskc, cpu, stats_class(taskc->class));
	}
	group_tick(now_ns);
	place_note_load(cpuc, now_ns);
	if ((limit_groups && limited(p, cpuc, cpu, now_ns)) || aside_late(cpuc, now_ns) ||
	    outran(cpuc, cpuc->curr_tier, now_ns) || (taskc && task_misplaced(taskc)))
		kernel_set_slice(p, 0);
}

/* A turn is no longer than what it would ask for now: others may have come since it did. */
static void shorten(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	queue_ask(cpu_queue(cpuc, taskc->tier), taskc);
	if (p->scx.slice > taskc->request_ns && !taskc->rescued)
		kernel_set_slice(p, taskc->request_ns);
}

/* Makes sure that a task competes where it runs. */
static void compete_here(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			 u32 cpu, u64 now_ns)
{
	if (taskc->tier == ROTA_PRIORITY) {
		priority_running(taskc, cpuc);
	} else {
		if (taskc->joined != cpu && taskc->joined >= 0)
			queue_leave(taskc, cpu, false);
		if (taskc->joined < 0) {
			queue_join(taskc, cpu, now_ns);
			record_pick(ROTA_PICK_COME, taskc, cpuc, cpu);
		}
		shorten(p, taskc, cpuc);
	}
	if (cpuc->took_head) {
		cpuc->took_head = 0;
		/* Not one that went to the local queue directly meanwhile. */
		if (taskc->tier != ROTA_PRIORITY && p->scx.dsq_vtime == taskc->deadline_vt)
			cpu_queue(cpuc, taskc->tier)->floor_vt = taskc->deadline_vt;
	}
	cpuc->local_taken = 0;
}

/*
 * It comes from another scheduling class. If it ran there it was never enqueued here: it has
 * the kernel's slice, and may be where it does not belong.
 */
static void settle_in(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	taskc->arrives = 0;
	if (p->scx.slice > taskc->slice_ns)
		kernel_set_slice(p, taskc->slice_ns);
	if (place_astray(p, taskc, cpuc, cpu))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/*
 * However it came here: lent CPUs come back, and a guest whose time is over leaves. After what
 * runs was noted: who takes them back just then looks at that.
 */
static void own_running(struct task_struct *p, const struct task_ctx *taskc,
			const struct cpu_ctx *cpuc, u32 cpu)
{
	lend_wake(taskc->own);
	if (cpuc->owner && place_astray(p, taskc, cpuc, cpu))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* A task is about to run here, however it came. */
static void arrive(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu,
		   u64 now_ns)
{
	compete_here(p, taskc, cpuc, cpu, now_ns);
	if (taskc->arrives)
		settle_in(p, taskc, cpuc, cpu);
}

/* The kernel has it go on where it was, without a choice, in the same turn. */
static void go_on(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	cpuc->curr_since_ns -= taskc->turn_ns;
	pick_go_on(cpu_queue(cpuc, taskc->tier), taskc);
	if (taskc->aside)
		aside_go_on(taskc, cpuc, cpu);
}

/*
 * Is somebody of priority, or boosted, to run here in place of a lower one? He may have come while
 * that was in the local queue: from there the kernel takes who is next unasked. Others may be there
 * still, so it may take some kicks; but a CPU that goes offline does not ask any more, and what runs
 * there has to come to something.
 */
static bool outranked(struct cpu_ctx *cpuc, u64 now_ns)
{
	if (cpuc->unheard >= CPU_KICKS)
		return false;
	return cpuc->called != cpuc->answered || (!cpuc->asked && priority_waits(cpuc, now_ns));
}

/* It has a CPU. */
static __always_inline void end_wait(struct task_ctx *taskc, u64 now_ns)
{
	taskc->waited_ns = taskc->ready_at_ns ? kernel_since(now_ns, taskc->ready_at_ns) : 0;
	taskc->ready_at_ns = 0;
	taskc->arrived = taskc->class + 1;
}

/* The turn of a task below priority: how far it is safe, and when it ends for others. */
static __always_inline void begin_turn(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu,
				       u64 now_ns)
{
	cpuc->curr_raised = task_boosted(taskc);
	cpuc->curr_safe_vt = preempt_safe(taskc, cpu_queue(cpuc, taskc->tier));
	if (!cpuc->asked)
		go_on(taskc, cpuc, cpu);
	if (cpuc->moment_tid == taskc->tid)
		cpuc->moment_tid = 0;
	watch_turn(cpuc, taskc->tier, cpu, now_ns, cpuc->asked);
	if (outranked(cpuc, now_ns)) {
		cpuc->unheard++;
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
	queue_spare(taskc, cpuc, now_ns);
}

SEC("struct_ops/rota_running")
void ROTA_OP(running, struct task_struct *p)
{
	u32 cpu = p->thread_info.cpu;
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_ctx *taskc = task_find(p);
	u64 now_ns = clock_now_locked();

	if (!taskc)
		return;
	arrive(p, taskc, cpuc, cpu, now_ns);
	cpuc->curr_rescued = taskc->rescued;
	taskc->rescued = 0;
	note_running(p, taskc, cpuc, now_ns);
	if (own_cpus)
		own_running(p, taskc, cpuc, cpu);
	cpuc->curr_demoted = 0;
	cpuc->curr_raised = 0;
	cpuc->lower_next = 0;
	end_wait(taskc, now_ns);
	if (taskc->tier != ROTA_PRIORITY)
		begin_turn(taskc, cpuc, cpu, now_ns);
	else if (cpuc->asked)
		cpuc->put_off = 0;
	record_note(ROTA_RECORD_RUN, 0, taskc, cpu, 0);
	cpuc->asked = 0;
	if (limit_groups)
		limit_running(p, taskc, cpu, now_ns);
}

/* It is ready still: it waits in a queue from now on, or goes on after a moment. */
static void make_room(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	s32 queued;

	taskc->ready_at_ns = clock_now_locked();
	taskc->turn_ns = cpuc->curr_hog || cpuc->put_off
				 ? kernel_since(taskc->ready_at_ns, cpuc->curr_since_ns)
				 : 0;
	if (p->scx.slice || (cpuc->asked && !cpuc->brief_next))
		return;
	queued = scx_bpf_dsq_nr_queued(DSQ_LOCAL);
	/* A CPU that goes offline does not ask, and keeps nobody by itself: it must look again. */
	if (!cpuc->asked && !queued)
		scx_bpf_kick_cpu(cpu, 0);
	if (cpuc->brief_next && !limit_groups)
		aside_put(p, taskc, cpuc, taskc->ready_at_ns, queued);
}

/* It falls asleep, or its CPUs, its nice value or its policy are changed while it runs. */
static void leave(struct task_struct *p, struct task_ctx *taskc, u32 cpu)
{
	bool sleeps = p->__state;

	taskc->turn_ns = 0;
	if (sleeps)
		task_note_use(taskc);
	if (sleeps && taskc->said_ns)
		hand_learn(taskc, clock_now_locked());
	if (taskc->joined >= 0)
		queue_leave(taskc, cpu, sleeps);
	if (sleeps && (taskc->woke || taskc->noted))
		inherit_sleep(taskc);
}

/*
 * With some slice left it only makes room for a higher scheduling class. The kernel keeps it in the
 * local queue, where no other CPU finds it: so it is enqueued anew, before 6.19 by
 * cpu_release. And so is who has just taken this CPU, and waits there, where a real-time task came next.
 */
static void make_way(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
		     bool runnable)
{
	cpuc->curr_tid = 0;
	if (!runnable || !p->scx.slice) {
		cpuc->curr_tier = ROTA_NONE;
		kernel_reenqueue_below(p);
		return;
	}
	taskc->rescued = cpuc->curr_rescued;
	WRITE_ONCE(cpuc->curr_at_ns, clock_now_locked());
	kernel_reenqueue();
}

SEC("struct_ops/rota_stopping")
void ROTA_OP(stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = p->thread_info.cpu;
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_ctx *taskc = task_find(p);

	if (!taskc)
		return;
	/* First: the verifier looks at it once for each way through what is before it. */
	if (!runnable || !cpuc->brief_next)
		event_follow(p, taskc); /* who is interrupted for a moment is looked at later */
	charge(p, taskc, cpuc, cpu);
	make_way(p, taskc, cpuc, runnable);
	if (runnable)
		make_room(p, taskc, cpuc, cpu);
	else
		leave(p, taskc, cpu);
	cpuc->brief_next = 0;
}

/* Gives up the rest of the request: the next deadline is one request later. */
SEC("struct_ops/rota_yield")
bool ROTA_OP(yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *taskc = task_find(from);

	if (taskc && eevdf_before(taskc->deadline_vt, taskc->vt + 2 * taskc->request_vt)) {
		taskc->deadline_vt += taskc->request_vt;
		record_note(ROTA_RECORD_YIELD, 0, taskc, from->thread_info.cpu, 0);
	}
	kernel_set_slice(from, 0);
	return false;
}

SEC("struct_ops/rota_set_weight")
void ROTA_OP(set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *taskc = task_find(p);

	/* The weight is taken over where the task enters a queue again. */
	if (taskc)
		task_outdate(taskc);
}

SEC("struct_ops/rota_cpu_release")
void ROTA_OP(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

SEC("struct_ops.s/rota_init_task")
s32 ROTA_OP(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *parentc = args->fork ? task_try(bpf_get_current_task_btf()) : NULL;
	struct task_ctx *taskc =
		bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* In the other order than class_follow(), class_set() and event_ask() write. */
	u32 answered = parentc ? READ_ONCE(parentc->answered) : 0;

	if (!taskc)
		return -ENOMEM;
	event_inherit(p, taskc, parentc);
	if (parentc)
		class_inherit(taskc, parentc, answered);
	taskc->joined = taskc->left = -1;
	taskc->fresh = args->fork;
	taskc->tid = p->pid;
	taskc->tier = ROTA_FAIR;
	taskc->bound = COUNTER_UNKNOWN;
	task_outdate(taskc);
	class_count(taskc->class, 1);
	return 0;
}

SEC("struct_ops/rota_exit_task")
void ROTA_OP(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *taskc = task_try(p);

	if (!taskc)
		return;
	if (taskc->waits)
		inherit_end(taskc);
	inherit_lose(taskc, INHERIT_GONE);
	class_count(taskc->class, -1); /* after that nobody changes it, see class_put() */
}

/* The task comes to us from another scheduling class, or is new. */
SEC("struct_ops/rota_enable")
void ROTA_OP(enable, struct task_struct *p)
{
	struct task_ctx *taskc = task_find(p);

	if (!taskc)
		return;
	taskc->exec_ns = p->se.sum_exec_runtime;
	taskc->ready_at_ns = 0;
	taskc->arrives = 1;
	/* At once: while the kernel attaches us tasks run that were never enqueued. */
	task_refresh(p, taskc);
	if (taskc->asked != taskc->answered)
		event_ask(ROTA_EVENT_FORK, p, taskc);
}

/* The task goes to another scheduling class. */
SEC("struct_ops/rota_disable")
void ROTA_OP(disable, struct task_struct *p)
{
	struct task_ctx *taskc = task_find(p);

	if (!taskc)
		return;
	taskc->ready_at_ns = 0;
	if (taskc->joined >= 0) {
		/* As if it fell asleep. */
		task_note_use(taskc);
		queue_leave(taskc, p->thread_info.cpu, true);
	}
	if (taskc->waits)
		inherit_end(taskc);
}

SEC("struct_ops/rota_dump_cpu")
void ROTA_OP(dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);

	if (idle)
		return;
	scx_bpf_dump("  rota: tid=%d tier=%d class=%d weight=%d llc=%d capped=%d", cpuc->curr_tid,
		     cpuc->curr_tier, cpuc->curr_class, cpuc->curr_weight, cpuc->llc,
		     cpuc->queued_capped);
	dump_queue("fair", &cpuc->queues[0]);
	dump_queue("background", &cpuc->queues[1]);
}

SEC("struct_ops/rota_dump_task")
void ROTA_OP(dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	struct task_ctx *taskc = task_try(p);

	if (!taskc)
		return;
	scx_bpf_dump("  rota: class=%d tier=%d weight=%d vt=%llu deadline=%llu cpu=%d",
		     taskc->class, taskc->tier, taskc->weight, taskc->vt, taskc->deadline_vt,
		     taskc->joined);
}

SEC("struct_ops.s/rota_cgroup_init")
s32 ROTA_OP(cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_ctx *cgroupc =
		bpf_cgrp_storage_get(&cgroup_ctxs, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!cgroupc)
		return -ENOMEM;
	group_make(cgrp, cgroupc, args->weight);
	if (!cgroupc->own)
		return 0;
	limit_find_nearest(cgroupc->group, cgroupc->group + 1);
	if (bpf_core_field_exists(args->bw_quota_us))
		limit_set(cgroupc->group, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

SEC("struct_ops.s/rota_cgroup_exit")
void ROTA_OP(cgroup_exit, struct cgroup *cgrp)
{
	u32 group = group_own(cgrp);

	if (!group)
		return;
	limit_set(group, 0, LIMIT_NONE_US, 0);
	group_leave(group);
}

SEC("struct_ops/rota_cgroup_move")
void ROTA_OP(cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_ctx *taskc = task_find(p);

	if (taskc) {
		task_outdate(taskc);
		/* What runs does not enter a queue: at least its limit is the new one. */
		if (taskc->joined < 0)
			taskc->group = group_of(to);
	}
	event_ask(ROTA_EVENT_CGROUP, p, taskc);
}

SEC("struct_ops/rota_cgroup_set_weight")
void ROTA_OP(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	u32 group = group_own(cgrp);

	/* The next visit makes a scale of it. */
	if (group)
		group_find(group)->weight = weight;
}

SEC("struct_ops/rota_cgroup_set_bandwidth")
void ROTA_OP(cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u32 group = group_own(cgrp);

	if (group)
		limit_set(group, period_us, quota_us, burst_us);
}

/* CPUs come and go; their queues stay. */
SEC("struct_ops.s/rota_cpu_online")
void ROTA_OP(cpu_online, s32 cpu)
{
	own_take_over(cpu);
	bpf_rcu_read_lock();
	lend_mark(lend_mask(), cpu);
	bpf_rcu_read_unlock();
	cpus_came++;
}

SEC("struct_ops/rota_cpu_offline")
void ROTA_OP(cpu_offline, s32 cpu)
{
	cpu_find(cpu)->curr_tier = ROTA_NONE;
	own_offline(cpu_find(cpu));
	rescue_hand_over_all(cpu, true);
	rescue_hand_over_priority(QUEUE_PRIORITY(cpu_find(cpu)->llc), cpu, true);
	rescue_hand_over(QUEUE_LIMITED(cpu), cpu, true);
	/* From now on the kernel asks nothing about what is ready here: its timer may end. */
	cpu_find(cpu)->queued_limited = 0;
}

static s32 create_queues(u32 cpu)
{
	s32 err = scx_bpf_create_dsq(QUEUE_FAIR(cpu), -1);

	err = err ?: scx_bpf_create_dsq(QUEUE_FAIR_PARKED(cpu), -1);
	err = err ?: scx_bpf_create_dsq(QUEUE_BACKGROUND(cpu), -1);
	err = err ?: scx_bpf_create_dsq(QUEUE_BACKGROUND_PARKED(cpu), -1);
	err = err ?: scx_bpf_create_dsq(QUEUE_LIMITED(cpu), -1);
	return err ?: scx_bpf_create_dsq(QUEUE_CAPPED(cpu), -1);
}

SEC("struct_ops.s/rota_init")
s32 ROTA_OP(init)
{
	u32 cpu, llc;
	s32 err;

	group_init();
	kernel_for(cpu, 0, topology.nr_cpus)
	{
		struct cpu_ctx *cpuc = cpu_find(cpu);

		cpuc->llc = llc_of[cpu & (ROTA_MAX_CPUS - 1)];
		cpuc->place = llc_place[cpu & (ROTA_MAX_CPUS - 1)];
		cpuc->curr_tier = ROTA_NONE;
		queue_init(&cpuc->queues[0], ROTA_FAIR, cpu);
		queue_init(&cpuc->queues[1], ROTA_BACKGROUND, cpu);
		err = create_queues(cpu);
		err = err ?: timer_create(cpu);
		err = err ?: limit_create(cpu);
		if (err)
			return err;
	}
	kernel_for(llc, 0, topology.nr_llcs)
	{
		err = scx_bpf_create_dsq(QUEUE_PRIORITY(llc), -1);
		if (err)
			return err;
	}
	return 0;
}

SEC("struct_ops.s/rota_exit")
void ROTA_OP(exit, struct scx_exit_info *info)
{
	dump_exit(info);
	event_send(ROTA_EVENT_EXIT, NULL, 0);
}

SEC(".struct_ops.link")
struct sched_ext_ops rota_ops = {
	.select_cpu = (void *)rota_select_cpu,
	.enqueue = (void *)rota_enqueue,
	.dispatch = (void *)rota_dispatch,
	.tick = (void *)rota_tick,
	.running = (void *)rota_running,
	.stopping = (void *)rota_stopping,
	.yield = (void *)rota_yield,
	.set_weight = (void *)rota_set_weight,
	.cpu_release = (void *)rota_cpu_release,
	.init_task = (void *)rota_init_task,
	.exit_task = (void *)rota_exit_task,
	.enable = (void *)rota_enable,
	.disable = (void *)rota_disable,
	.dump_cpu = (void *)rota_dump_cpu,
	.dump_task = (void *)rota_dump_task,
	.cgroup_init = (void *)rota_cgroup_init,
	.cgroup_exit = (void *)rota_cgroup_exit,
	.cgroup_move = (void *)rota_cgroup_move,
	.cgroup_set_weight = (void *)rota_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)rota_cgroup_set_bandwidth,
	.cpu_online = (void *)rota_cpu_online,
	.cpu_offline = (void *)rota_cpu_offline,
	.init = (void *)rota_init,
	.exit = (void *)rota_exit,
	.timeout_ms = 30000,
	.name = "rota",
};
