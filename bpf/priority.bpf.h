/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * priority: the tier that runs first, inside its cap.
 *
 * Problem: what matters must have a CPU at once, but a class that runs away
 * must not take the machine with it.
 *
 * How: a waking priority task takes an idle CPU, else the CPU of the least
 * important running task, which it preempts; when all CPUs of its cache
 * domain run priority tasks, or the tier had its part of them, it waits in the
 * domain's queue, ordered by deadline (virtual time by weight, as in the fair
 * tier, but with one floor for the domain in place of a mean), the one of them that is due last
 * gives way if it is due later, and CPUs of other domains look there before they run anything
 * less important. Each CPU counts the tier's time per window of 100 ms, of each class and of all; who is over waits
 * in the CPU's capped queue until the window ends or nobody else wants the CPU.
 *
 * Limits: the cap is per CPU and window, not exact below one slice. A task that wakes
 * passes by CPUs where the tier is over, not those where its class alone is. The
 * floor is written by several CPUs without a lock: a lost update leaves it
 * one request behind, which the next switch repairs.
 */

#define PRIORITY_WINDOW_NS 100000000ULL
#define PRIORITY_RECENT_NS 200000000ULL
#define PRIORITY_STALE_NS 50000000ULL
#define PRIORITY_NOTE_NS 1000000 /* how exact priority_far_ns is kept */
#define PRIORITY_LOOKS 16	 /* capped tasks that one dispatch looks at */

u64 priority_cap_ns; /* of all classes together per window; set by the daemon */
u64 priority_far_ns; /* when a task last waited for whom its domain had no CPU */

/*
 * What a task that wakes asks for: what it lately used, where its class has dynamic
 * slices, so that short bursts run before long ones; its slice if it uses more, or has
 * asked for one itself.
 */
static __always_inline u64 priority_slice(const struct task_ctx *taskc)
{
	if (!task_class_at(taskc->level)->dynamic || taskc->custom_ns)
		return taskc->slice_ns;
	return task_brief(taskc) ?: taskc->slice_ns;
}

/* Gives the task its place among its like: not further back than one request. */
static void priority_place(struct task_ctx *taskc, struct llc_ctx *llcc, u64 slice_ns)
{
	u64 request_vt =
		slice_ns == taskc->slice_ns ? taskc->request_vt : eevdf_vt(slice_ns, taskc->weight);
	u64 floor_vt = READ_ONCE(llcc->floor_vt) - taskc->request_vt;

	if (eevdf_before(taskc->vt, floor_vt))
		taskc->vt = floor_vt;
	taskc->deadline_vt = taskc->vt + request_vt;
}

/* Opens a new window when the last one has ended. */
static __always_inline u64 priority_used(u64 *start_ns, u64 *used_ns, u64 now_ns)
{
	if (kernel_since(now_ns, *start_ns) >= PRIORITY_WINDOW_NS) {
		*start_ns = now_ns;
		*used_ns = 0;
	}
	return *used_ns;
}

/* Has the whole tier used up its part of this CPU? */
static __always_inline bool priority_tier_over(struct cpu_ctx *cpuc, u64 now_ns)
{
	return priority_used(&cpuc->window_start_ns, &cpuc->window_used_ns, now_ns) >=
	       priority_cap_ns;
}

/* The same of any CPU: only it opens its windows. Mostly without a reading of the clock. */
static __always_inline bool priority_spent(const struct cpu_ctx *cpuc)
{
	return READ_ONCE(cpuc->window_used_ns) >= priority_cap_ns &&
	       kernel_since(clock_now(), READ_ONCE(cpuc->window_start_ns)) < PRIORITY_WINDOW_NS;
}

/* Has this class, or the whole tier? A boost counts for who gave it, and holds nobody back. */
static bool priority_over(const struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct rota_class_stats *stats = stats_class_on(taskc->level, cpu);

	if (priority_tier_over(cpuc, now_ns))
		return true;
	if (taskc->level != taskc->class)
		return false;
	return stats && priority_used(&stats->window_start_ns, &stats->window_used_ns, now_ns) >=
				task_class_at(taskc->level)->cap_ns;
}

/* Counts CPU time against the windows of this CPU. */
static void priority_charge(const struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu,
			    u64 delta_ns)
{
	struct rota_class_stats *stats = stats_class_on(taskc->level, cpu);

	cpuc->window_used_ns += delta_ns;
	if (stats)
		stats->window_used_ns += delta_ns;
}

/* Do others wait for this CPU, so that the cap counts? */
static __always_inline bool priority_others_wait(const struct cpu_ctx *cpuc)
{
	return cpu_waiting(&cpuc->queues[0]) || cpu_waiting(&cpuc->queues[1]) || cpuc->aside;
}

/*
 * Does a task of a lower tier come next here: one that runs, or one that goes
 * on as soon as a higher scheduling class gives the CPU back?
 */
static __always_inline bool priority_outranks(const struct cpu_ctx *cpuc)
{
	u32 tier = READ_ONCE(cpuc->curr_tier);

	if (READ_ONCE(cpuc->curr_raised))
		return false;
	return tier == ROTA_FAIR || tier == ROTA_BACKGROUND || READ_ONCE(cpuc->curr_demoted);
}

/* Does a task of a lower tier run here or wait, or is it about to run in place of who was put back? */
static __always_inline bool priority_others_want(const struct cpu_ctx *cpuc)
{
	return priority_outranks(cpuc) || priority_others_wait(cpuc) || cpuc->lower_next ||
	       cpuc->local_taken;
}

/*
 * May a priority task take this CPU at once? Not from a higher scheduling class; nor, where
 * it would wait there in the capped queue, when the tier had its part of this CPU.
 */
static __always_inline bool priority_may_take(const struct cpu_ctx *cpuc, bool capped)
{
	return READ_ONCE(cpuc->curr_tid) && priority_outranks(cpuc) &&
	       !(capped && priority_spent(cpuc));
}

/* A background task has this CPU: searches for one may find it. */
static __always_inline void priority_note_background(const struct cpu_ctx *cpuc, u64 now_ns)
{
	struct llc_ctx *llcc = llc_find(cpuc->llc);

	if (kernel_since(now_ns, READ_ONCE(llcc->background_ns)) > PRIORITY_RECENT_NS / 2)
		WRITE_ONCE(llcc->background_ns, now_ns);
}

/*
 * Can another CPU of the domain run something that matters less than what runs here? By the time
 * of the last tick here, which is exact enough and costs nothing.
 */
static __always_inline bool priority_may_find_less(const struct cpu_ctx *cpuc)
{
	u64 last_ns = READ_ONCE(llc_find(cpuc->llc)->background_ns);

	return last_ns && cpuc->curr_tier != ROTA_BACKGROUND && !READ_ONCE(cpuc->curr_demoted) &&
	       kernel_since(READ_ONCE(cpuc->load_at_ns), last_ns) <= PRIORITY_RECENT_NS;
}

/*
 * The CPU of this owner whose running task matters least: prev when that is not priority,
 * else the lowest tier in the cache domain. -1: all run priority tasks, or, where the caps
 * count, had enough of the tier.
 * The tiers are hints: a CPU that has switched meanwhile is seen as busy by
 * priority_enqueue, which then queues the task.
 */
static s32 priority_victim(struct task_struct *p, u32 own, s32 prev_cpu, bool capped)
{
	struct cpu_ctx *prevc = cpu_find(prev_cpu);
	u32 size = llc_scan(prevc->llc);
	u32 lowest = ROTA_PRIORITY;
	s32 victim = -1;
	u32 n;

	if (priority_may_take(prevc, capped) && prevc->owner == own && cpu_allows(p, prev_cpu)) {
		victim = prev_cpu;
		lowest = prevc->curr_tier;
	}
	/* Whose boost has just ended is mostly the one that wakes this task: near and unimportant. */
	if (victim >= 0 && !priority_may_find_less(prevc))
		return victim;
	kernel_for(n, 0, size)
	{
		u32 cpu = cpu_beside(prev_cpu, n);
		struct cpu_ctx *cpuc = cpu_find(cpu);
		u32 tier = READ_ONCE(cpuc->curr_tier);

		if (!priority_may_take(cpuc, capped) || tier <= lowest || cpuc->owner != own)
			continue;
		if (!cpu_allows(p, cpu))
			continue;
		victim = cpu;
		lowest = tier;
	}
	return victim;
}

/* A task that waits may run in other domains: these look into the queues of all for a while. */
static __always_inline void priority_note_far(u64 now_ns)
{
	if (kernel_since(now_ns, READ_ONCE(priority_far_ns)) > PRIORITY_NOTE_NS)
		WRITE_ONCE(priority_far_ns, now_ns);
}

/*
 * The same in another cache domain: better a cold cache than behind others of the tier while a CPU
 * runs something less important. Not where there are more CPUs than one search may look at.
 */
static s32 priority_far(struct task_struct *p, u32 near_cpu, u64 now_ns)
{
	u32 llc = cpu_find(near_cpu)->llc, n, nr = topology.nr_cpus, lowest = ROTA_PRIORITY;
	u32 size = nr < CPU_SCAN ? nr : CPU_SCAN;
	s32 victim = -1;

	if (p->nr_cpus_allowed == 1 || kernel_pinned(p))
		return -1;
	kernel_for(n, 1, size)
	{
		u32 cpu = (near_cpu + n) % (nr ?: 1);
		const struct cpu_ctx *cpuc = cpu_find(cpu);

		if (cpuc->llc == llc || cpuc->owner || !cpu_allows(p, cpu))
			continue;
		priority_note_far(now_ns);
		if (!priority_may_take(cpuc, true) || READ_ONCE(cpuc->curr_tier) <= lowest)
			continue;
		victim = cpu;
		lowest = cpuc->curr_tier;
	}
	return victim;
}

/* Does a priority task run here that is due later than this one, and got no less? */
static __always_inline bool priority_due_later(const struct cpu_ctx *cpuc,
					       const struct task_ctx *taskc)
{
	return READ_ONCE(cpuc->curr_tier) == ROTA_PRIORITY &&
	       eevdf_before(taskc->deadline_vt, READ_ONCE(cpuc->curr_deadline_vt)) &&
	       !eevdf_before(READ_ONCE(cpuc->curr_vt), taskc->vt);
}

/* The CPU of the cache domain whose priority task is due last, after this one; else -1. */
static s32 priority_rival(struct task_struct *p, const struct task_ctx *taskc, u32 near_cpu)
{
	u32 size = llc_scan(cpu_find(near_cpu)->llc), n;
	u64 last_vt = 0;
	s32 rival = -1;

	kernel_for(n, 0, size)
	{
		u32 cpu = cpu_beside(near_cpu, n);
		const struct cpu_ctx *cpuc = cpu_find(cpu);

		if (!priority_due_later(cpuc, taskc) || cpuc->owner != taskc->own ||
		    !cpu_allows(p, cpu))
			continue;
		if (rival >= 0 && !eevdf_before(last_vt, cpuc->curr_deadline_vt))
			continue;
		rival = cpu;
		last_vt = cpuc->curr_deadline_vt;
	}
	return rival;
}

/* Puts the task where the CPUs of its cache domain, or of its class, find it. */
static void priority_share(struct task_struct *p, const struct task_ctx *taskc,
			   const struct cpu_ctx *cpuc, u64 slice_ns, u64 enq_flags)
{
	cpu_note_priority(cpuc, clock_now_locked());
	kernel_insert_vtime(p, cpu_priority_queue(cpuc), slice_ns, taskc->deadline_vt, enq_flags);
}

/* The same, and tells a CPU that is to take it. */
static void priority_queue(struct task_struct *p, struct task_ctx *taskc, u32 cpu, u64 slice_ns,
			   u64 enq_flags)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	s32 victim;

	priority_share(p, taskc, cpuc, slice_ns, enq_flags);
	victim = own_pick_idle(p, cpuc->owner);
	if (victim >= 0) {
		scx_bpf_kick_cpu(victim, KICK_IDLE);
		return;
	}
	victim = priority_victim(p, cpuc->owner, cpu, true);
	if (victim < 0 && topology.nr_llcs > 1 && !cpuc->owner)
		victim = priority_far(p, cpu, clock_now_locked());
	if (victim < 0 && enq_flags & ENQ_WAKEUP)
		victim = priority_rival(p, taskc, cpu);
	if (victim >= 0)
		scx_bpf_kick_cpu(victim, KICK_PREEMPT);
}

/* It has had its part of this CPU: an idle one takes it, or it waits for the window to end. */
static void priority_hold(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			  u32 cpu, u64 slice_ns, u64 enq_flags)
{
	s32 idle = own_pick_idle(p, cpuc->owner);
	struct rota_class_stats *stats;

	if (idle >= 0) {
		priority_share(p, taskc, cpuc, slice_ns, enq_flags);
		scx_bpf_kick_cpu(idle, KICK_IDLE);
		return;
	}
	cpuc->queued_capped = 1;
	cpu_counters(cpu)->cap_hits++;
	stats = stats_class(taskc->level);
	if (stats)
		stats->cap_hits++;
	kernel_insert_vtime(p, QUEUE_CAPPED(cpu), slice_ns, taskc->deadline_vt, enq_flags);
}

/* A priority task is ready on this CPU. */
static void priority_enqueue(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			     u32 cpu, u64 enq_flags, u64 now_ns)
{
	u64 slice_ns = enq_flags & ENQ_WAKEUP ? priority_slice(taskc) : taskc->slice_ns;

	priority_place(taskc, llc_find(cpuc->llc), slice_ns);
	if (priority_others_want(cpuc) && priority_over(taskc, cpuc, cpu, now_ns)) {
		priority_hold(p, taskc, cpuc, cpu, slice_ns, enq_flags);
		return;
	}
	/* Interrupted, mostly for a moment: who comes to choose takes it, and nobody is called. */
	if (enq_flags & ENQ_REENQ) {
		priority_share(p, taskc, cpuc, slice_ns, enq_flags);
		return;
	}
	/* Below a higher class select_cpu found nothing better: first in line, where others find it. */
	if (!priority_outranks(cpuc) || !cpuc->curr_tid) {
		priority_queue(p, taskc, cpu, slice_ns, enq_flags);
		return;
	}
	task_note_taking(taskc, cpuc);
	aside_note(taskc, cpuc);
	/* Claimed: the next wake-up must look for another CPU. */
	cpuc->curr_tier = ROTA_PRIORITY;
	kernel_insert(p, DSQ_LOCAL, slice_ns, enq_flags | ENQ_PREEMPT);
}

/* A priority task starts to run: nobody of its like is placed far behind it. */
static __always_inline void priority_running(const struct task_ctx *taskc,
					     const struct cpu_ctx *cpuc)
{
	struct llc_ctx *llcc = llc_find(cpuc->llc);

	if (eevdf_before(READ_ONCE(llcc->floor_vt), taskc->vt))
		WRITE_ONCE(llcc->floor_vt, taskc->vt);
}

/* May the priority task that ran have another slice? */
static bool priority_may_go_on(const struct task_ctx *prevc, struct cpu_ctx *cpuc, u32 cpu,
			       u64 now_ns)
{
	return !priority_others_wait(cpuc) || !priority_over(prevc, cpuc, cpu, now_ns);
}

/*
 * Of the capped tasks of this CPU one runs again whose class is not over: a new window. Not
 * static, as queue_join.
 */
__noinline bool priority_release(u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_struct *p;
	u32 looks = 0;

	kernel_for_waiting(it, p, QUEUE_CAPPED(cpu))
	{
		struct task_ctx *taskc = task_try(p);

		if (++looks > PRIORITY_LOOKS)
			break;
		if (taskc && cpu_allows(p, cpu) && !priority_over(taskc, cpuc, cpu, now_ns) &&
		    kernel_move(&it, p, DSQ_LOCAL, 0))
			return true;
	}
	if (!looks)
		cpuc->queued_capped = 0;
	return false;
}

/* The capped tasks of this CPU run again, whatever they had: nobody else wants it. */
static bool priority_dispatch_capped(struct cpu_ctx *cpuc, u32 cpu)
{
	if (!cpuc->queued_capped)
		return false;
	if (kernel_move_to_local(QUEUE_CAPPED(cpu)))
		return true;
	cpuc->queued_capped = scx_bpf_dsq_nr_queued(QUEUE_CAPPED(cpu)) > 0;
	return false;
}

/* Was the queue of a domain lately in use? */
static __always_inline bool priority_recent(u32 llc, u64 now_ns)
{
	return kernel_since(now_ns, READ_ONCE(llc_find(llc)->priority_ns)) <= PRIORITY_RECENT_NS;
}

/*
 * May somebody wait in the queue of this CPU? Where it was not in use lately, who came before
 * may still be there, behind others who went on or below a higher scheduling class: who finds
 * him says so, and each CPU looks now and then. That of an owner may be of several domains.
 */
static __always_inline bool priority_may_wait(struct cpu_ctx *cpuc, u64 now_ns)
{
	if (cpuc->owner || priority_recent(cpuc->llc, now_ns))
		return true;
	if (kernel_since(now_ns, cpuc->priority_look_ns) <= PRIORITY_STALE_NS)
		return false;
	cpuc->priority_look_ns = now_ns;
	return true;
}

/*
 * A CPU that has nothing as important to do takes who waits in another cache domain. Now and then
 * it looks also where nobody was queued lately, as in priority_may_wait().
 */
static bool priority_steal(struct cpu_ctx *cpuc, u64 now_ns)
{
	bool look = kernel_since(now_ns, cpuc->far_look_ns) > PRIORITY_STALE_NS;
	u32 llc;

	if (topology.nr_llcs < 2 || own_closed(cpuc))
		return false;
	if (look)
		cpuc->far_look_ns = now_ns;
	kernel_for(llc, 0, topology.nr_llcs)
	{
		if (llc != cpuc->llc && (look || priority_recent(llc, now_ns)) &&
		    kernel_move_to_local(QUEUE_PRIORITY(llc)))
			return true;
	}
	return false;
}

/* Do tasks of the tier wait in other domains that have too few CPUs for them? */
static __always_inline bool priority_far_waits(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return topology.nr_llcs > 1 && !cpuc->owner &&
	       kernel_since(now_ns, READ_ONCE(priority_far_ns)) <= PRIORITY_RECENT_NS;
}

/* Does a priority task wait that this CPU would take if it looked? */
static __always_inline bool priority_waits(struct cpu_ctx *cpuc, u64 now_ns)
{
	if (!priority_may_wait(cpuc, now_ns) ||
	    scx_bpf_dsq_nr_queued(cpu_priority_queue(cpuc)) <= 0)
		return false;
	cpu_note_priority(cpuc, now_ns);
	return true;
}

/* Does somebody wait who is due before the priority task that ran? */
static bool priority_due_before(struct cpu_ctx *cpuc, const struct task_ctx *prevc, u64 now_ns)
{
	u64 head_vt;

	if (!pick_head(cpu_priority_queue(cpuc), &head_vt))
		return false;
	cpu_note_priority(cpuc, now_ns);
	return eevdf_before(head_vt, prevc->deadline_vt);
}

/*
 * Finds a priority task for this CPU; prev as in pick_dispatch. A lower one that ran and may go on
 * wants it as one that waits does.
 */
static bool priority_dispatch(struct cpu_ctx *cpuc, u32 cpu, struct task_struct *prev,
			      struct task_ctx *prevc, u64 now_ns)
{
	bool others = priority_others_wait(cpuc) || (prev && prevc->tier != ROTA_PRIORITY);

	if (others && priority_tier_over(cpuc, now_ns))
		return false;
	if (cpuc->queued_capped &&
	    (others ? priority_release(cpu, now_ns) : priority_dispatch_capped(cpuc, cpu)))
		return true;
	if (prev && prevc->tier == ROTA_PRIORITY &&
	    (!priority_may_wait(cpuc, now_ns) || !priority_due_before(cpuc, prevc, now_ns)))
		return false;
	if (priority_may_wait(cpuc, now_ns) && kernel_move_to_local(cpu_priority_queue(cpuc))) {
		cpu_note_priority(cpuc, now_ns);
		return true;
	}
	return (!prev || prevc->tier != ROTA_PRIORITY) && priority_far_waits(cpuc, now_ns) &&
	       priority_steal(cpuc, now_ns);
}
