/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * preempt: who wakes may take the CPU, or have a turn ended.
 *
 * Problem: EEVDF chooses when a turn ends, and a turn may be long. Who wakes and is due
 * sooner should not wait for that; yet turns that everybody interrupts get nothing done.
 *
 * How: a task that wakes, or comes from another CPU, is compared with the one that runs:
 * by the choice that would be made now, and by how far that one is protected (runToParity,
 * preemptShort). Where it is to have the CPU later, and long before a tick, the
 * timer ends the turn then. Who weighs far more has the turn end even where others are first, and
 * these go on for no more than their requests.
 *
 * Limits: it is compared with what runs, the first few by deadline and the first few of the
 * parked; when it is none of theirs to decide it has to wait for the next choice.
 */

#define PREEMPT_TIE_VT 16000  /* 1 us at nice 0: closer than this is level */
#define PREEMPT_SAFE_VT 64000 /* 4 us: what a switch is charged to one of two and not the other */
#define PREEMPT_QUANTUM_NS 350000 /* a turn but a hog's is safe so long from brief requests, too */
#define PREEMPT_DEFER_NS 2000000  /* when a turn has lasted so long, who was put off is looked at */
#define PREEMPT_HEAVY 2		  /* who weighs more than so many times as much is far heavier */
#define PREEMPT_MOMENT_NS 20000000 /* who still waits for a moment then is taken to be elsewhere */
#define PREEMPT_LOOKS 8		   /* tasks that a wake-up looks at to see whether it is the next */

/* Is who has this virtual time eligible, or level with V? */
static __always_inline bool preempt_is_due(u64 vt, u64 now_vt)
{
	return !eevdf_before(now_vt + PREEMPT_TIE_VT, vt);
}

/* Is what runs owed more than this, so that it may keep the CPU? */
static __always_inline bool preempt_is_owed(const struct cpu_ctx *cpuc, u64 now_vt, u64 more_vt)
{
	return eevdf_before(cpuc->curr_vt + more_vt, now_vt);
}

/*
 * How far a task that was just picked keeps the CPU: for its request, or as
 * long as the shortest among those who wait is.
 */
static __always_inline u64 preempt_safe(const struct task_ctx *taskc, const struct cpu_queue *queue)
{
	u64 shortest_ns = queue_shortest(queue);

	if (shortest_ns >= taskc->request_ns)
		return taskc->deadline_vt;
	return taskc->vt + eevdf_vt(shortest_ns, taskc->weight);
}

/* When what runs here has had so much that a switch is worth its price. */
static __always_inline u64 preempt_quantum_end(const struct cpu_ctx *cpuc)
{
	return cpuc->curr_since_ns + PREEMPT_QUANTUM_NS;
}

/*
 * Does a brief request go before what runs, which has longer to go? Not where the turn has just
 * begun, unless it is a hog's: that goes on afterwards, so there are as many switches at any time.
 */
static __always_inline bool preempt_brief_first(const struct task_ctx *taskc,
						const struct cpu_ctx *cpuc)
{
	u64 brief_ns;

	if (!cpuc->curr_hog && eevdf_before(cpuc->curr_at_ns, preempt_quantum_end(cpuc)))
		return false;
	brief_ns = taskc->used_ns ? 0 : queue_brief(taskc);
	return brief_ns &&
	       eevdf_vt(brief_ns, taskc->weight) < cpuc->curr_deadline_vt - cpuc->curr_vt;
}

/*
 * Does the running task, which is eligible, keep the CPU? For a slice since it
 * was picked, and not against a task that weighs more or asks for less.
 * Who went on because nobody waited was not picked again.
 */
static __always_inline bool preempt_protected(const struct task_ctx *taskc,
					      const struct cpu_ctx *cpuc)
{
	if (!(knobs.fair & ROTA_RUN_TO_PARITY) || taskc->weight > cpuc->curr_weight)
		return false;
	if (!eevdf_before(cpuc->curr_vt, cpuc->curr_safe_vt))
		return false;
	return !(knobs.fair & ROTA_PREEMPT_SHORT) ||
	       (taskc->slice_ns >= cpuc->curr_slice_ns && !preempt_brief_first(taskc, cpuc));
}

/* Has V reached a parked task that would be picked before this one? */
static bool preempt_parked_wins(const struct task_ctx *taskc, struct cpu_queue *queue, u32 cpu,
				u64 now_vt)
{
	struct task_struct *p;
	u32 turns = 0;

	if (!queue->parked || eevdf_before(now_vt, queue->parked_vt))
		return false;
	kernel_for_waiting(it, p, queue_parked_id(taskc->tier, cpu))
	{
		struct task_ctx *other = task_try(p);

		if (other && eevdf_before(now_vt, other->vt))
			break;
		if (++turns > PREEMPT_LOOKS ||
		    (other && eevdf_before(other->deadline_vt, taskc->deadline_vt)))
			return true;
	}
	return false;
}

/*
 * Would this task, which is eligible, be picked of all who wait? Not static, as
 * queue_join.
 */
__noinline bool preempt_wins(const struct task_ctx *taskc, u32 cpu, u64 now_vt)
{
	struct cpu_queue *queue;
	struct task_struct *p;
	u32 turns = 0;

	if (!taskc)
		return false;
	queue = cpu_queue(cpu_find(cpu), taskc->tier);
	if (!cpu_waiting(queue))
		return true;
	if (preempt_parked_wins(taskc, queue, cpu, now_vt))
		return false;
	if (eevdf_before(taskc->deadline_vt, queue->floor_vt))
		return true;
	if (!queue->mixed)
		return false;
	kernel_for_waiting(it, p, queue_id(taskc->tier, cpu))
	{
		struct task_ctx *other = task_try(p);

		if (eevdf_before(taskc->deadline_vt, p->scx.dsq_vtime))
			break;
		if (++turns > PREEMPT_LOOKS || (other && !eevdf_before(now_vt, other->vt)))
			return false;
	}
	return true;
}

/* May a task that wakes, or comes from another CPU, take the CPU from the one that runs? */
static bool preempt_allowed(const struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 now_vt;

	if (cpuc->curr_rescued || READ_ONCE(cpuc->curr_raised))
		return false;
	if (cpuc->curr_tier != taskc->tier)
		return cpuc->curr_tier == ROTA_BACKGROUND;
	now_vt = eevdf_now(&queue->tree);
	if (!preempt_is_due(taskc->vt, now_vt))
		return false;
	if (preempt_is_owed(cpuc, now_vt, PREEMPT_TIE_VT) &&
	    !eevdf_before(taskc->deadline_vt, cpuc->curr_deadline_vt))
		return false;
	/*
	 * Its turn is safe, but not if it is owed by so little that the costs of switches decide:
	 * those whom it wakes one after another, and who hardly work, would have the CPU at once or
	 * wait for its whole turn, by the build.
	 */
	if (preempt_is_owed(cpuc, now_vt, PREEMPT_SAFE_VT) && preempt_protected(taskc, cpuc))
		return false;
	return preempt_wins(taskc, cpu, now_vt);
}

/* Does a task of this tier run here, by its own right? Else others of the tier don't end its turn. */
static __always_inline bool preempt_may_end(const struct cpu_ctx *cpuc, u32 tier)
{
	return cpuc->curr_tier == tier && cpuc->curr_tid && !cpuc->curr_rescued &&
	       !READ_ONCE(cpuc->curr_raised);
}

/*
 * Is it time to look who else is due, though a tick may be far? What runs has used its request,
 * or has become ineligible and that is to be a reason.
 */
static __always_inline bool preempt_gives_way(struct cpu_ctx *cpuc, u32 tier)
{
	if (!preempt_may_end(cpuc, tier))
		return false;
	if (!eevdf_before(cpuc->curr_vt, cpuc->curr_safe_vt))
		return true;
	return (knobs.fair & ROTA_ELIGIBILITY_CHECK) &&
	       !preempt_is_due(cpuc->curr_vt, eevdf_now(&cpu_queue(cpuc, tier)->tree));
}

/*
 * Does what runs here wake it, as these two did the last time here? Then one mostly answers the
 * other, and a switch at once spares one of them falling asleep: the answer is there before the
 * question's end.
 */
static __always_inline bool preempt_are_partners(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
						 u32 cpu)
{
	u32 a = taskc->tid, b = cpuc->curr_tid, before = cpuc->waking_pair;

	if (cpu != bpf_get_smp_processor_id() || b != (u32)bpf_get_current_pid_tgid())
		return false;
	cpuc->waking_pair = (a ^ b) * 0x9e3779b1 + a + b; /* neighbours have the same a ^ b */
	return cpuc->waking_pair == before;
}

/* The turn of what runs ends then, at the latest, and exactly so. */
static __always_inline void preempt_end_by(struct cpu_ctx *cpuc, u64 end_ns)
{
	if (eevdf_before(end_ns, cpuc->curr_end_ns))
		cpuc->curr_end_ns = end_ns;
	cpuc->curr_exact = 1;
}

/* A turn that has put somebody off ends in time for a choice. */
static __always_inline void preempt_end_in_time(struct cpu_ctx *cpuc)
{
	preempt_end_by(cpuc, cpuc->curr_since_ns + PREEMPT_DEFER_NS);
}

/*
 * With lazyPreemption a turn that has just begun comes to something, though what runs has had its
 * share: its like do not end it yet when a task wakes or sends them, as opposed to an interrupt
 * (docs/decisions/0020). Not static, as queue_join.
 */
__noinline bool preempt_defers(const struct task_ctx *taskc, u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);

	if (!taskc || !preempt_may_end(cpuc, taskc->tier) ||
	    !eevdf_before(now_ns, preempt_quantum_end(cpuc)) ||
	    preempt_gives_way(cpuc, taskc->tier))
		return false;
	if (taskc->weight > cpuc->curr_weight || taskc->slice_ns < cpuc->curr_slice_ns)
		return false;
	if (!context_is_task() || preempt_are_partners(taskc, cpuc, cpu))
		return false;
	cpuc->put_off = 1;
	preempt_end_in_time(cpuc);
	return true;
}

/*
 * A far heavier one waits behind others from now on: the heaviest is remembered, and of several of
 * that weight the one due last.
 */
static __always_inline void preempt_note_heavy(const struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	if (cpuc->heavy_weight > taskc->weight ||
	    (cpuc->heavy_weight == taskc->weight &&
	     !eevdf_before(cpuc->heavy_vt, taskc->deadline_vt)))
		return;
	cpuc->heavy_vt = taskc->deadline_vt;
	cpuc->heavy_weight = taskc->weight;
}

/*
 * A turn has begun, or goes on, while somebody far heavier may wait: it ends with its request. Who
 * was chosen though due later shows that none does any more, or that it owes.
 */
static __always_inline void preempt_end_for_heavy(struct cpu_ctx *cpuc, bool chosen)
{
	u64 left_ns = 0;

	if (chosen && !eevdf_before(cpuc->curr_deadline_vt, cpuc->heavy_vt))
		cpuc->heavy_weight = 0;
	if (cpuc->heavy_weight <= PREEMPT_HEAVY * cpuc->curr_weight)
		return;
	if (eevdf_before(cpuc->curr_vt, cpuc->curr_deadline_vt))
		left_ns = eevdf_ns(cpuc->curr_deadline_vt - cpuc->curr_vt, cpuc->curr_weight);
	preempt_end_by(cpuc, cpuc->curr_at_ns + TIMER_NEAR_NS + left_ns);
}

/*
 * Would it have taken the CPU, were it not for somebody who waits and is due sooner? That is a
 * reason to end the turn where that one was put off, and for a far heavier one that wakes: turns that
 * end at ticks would have it wait for the whole slices of all who are due sooner, and they need go on
 * for their requests only. If what runs is owed and due sooner it goes on for its request, too, and
 * the end of that is set here.
 */
static bool preempt_hurries(const struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, bool wakes,
			    u64 now_ns)
{
	bool heavy = wakes && taskc->tier == ROTA_FAIR &&
		     taskc->weight > PREEMPT_HEAVY * cpuc->curr_weight;
	u64 now_vt;

	if (!(heavy || cpuc->put_off) || !preempt_may_end(cpuc, taskc->tier))
		return false;
	now_vt = eevdf_now(&cpu_queue(cpuc, taskc->tier)->tree);
	if (!preempt_is_due(taskc->vt, now_vt))
		return false;
	if (!heavy)
		return !preempt_defers(taskc, cpu, now_ns);
	preempt_note_heavy(taskc, cpuc);
	if (!preempt_is_owed(cpuc, now_vt, PREEMPT_TIE_VT) ||
	    eevdf_before(taskc->deadline_vt, cpuc->curr_deadline_vt))
		return true;
	preempt_end_for_heavy(cpuc, false);
	return cpuc->put_off;
}

/*
 * When a choice will fall on a task that waits, if nobody comes or goes and there is only what
 * runs: V has reached it, and that one is due later or has had too much. That is seen a little later.
 */
static __always_inline u64 preempt_chosen_at(const struct task_ctx *taskc,
					     const struct cpu_ctx *cpuc, u64 now_ns)
{
	const struct eevdf_queue *tree = &cpuc->queues[0].tree;
	u64 now_vt = eevdf_now(tree), wait_ns = 0, due_ns = 0;

	if (eevdf_before(now_vt, taskc->vt))
		wait_ns = eevdf_ns(taskc->vt - now_vt, tree->sum_w);
	if (!eevdf_before(taskc->deadline_vt, cpuc->curr_deadline_vt) &&
	    eevdf_before(cpuc->curr_vt, cpuc->curr_deadline_vt) &&
	    !eevdf_before(now_vt, cpuc->curr_vt))
		due_ns = eevdf_ns(cpuc->curr_deadline_vt - cpuc->curr_vt, cpuc->curr_weight);
	if (due_ns > wait_ns)
		wait_ns = due_ns;
	return wait_ns ? now_ns + wait_ns + TIMER_NEAR_NS : now_ns;
}

/*
 * Who asks for the least there is waits, or may: a turn that has begun, or goes on, ends with its
 * slice and not at a tick after that (docs/decisions/0008). A hog's ends as for any brief request.
 */
static __always_inline void preempt_end_for_moment(struct cpu_ctx *cpuc, u64 now_ns)
{
	if (cpuc->curr_hog || !preempt_may_end(cpuc, ROTA_FAIR))
		return;
	if (kernel_since(now_ns, cpuc->moment_at_ns) > PREEMPT_MOMENT_NS)
		cpuc->moment_tid = 0;
	else
		cpuc->curr_exact = 1;
}

/* Somebody has to wait: if he asks for so little, turns end so until he runs. Of several the last. */
static __always_inline void preempt_note_moment(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
						u64 now_ns)
{
	/* For every brief request it would cost hackbench 3 % of its work. */
	if (!task_momentary(taskc) || taskc->tier != ROTA_FAIR ||
	    !(knobs.fair & ROTA_PREEMPT_SHORT) || !queue_brief(taskc))
		return;
	cpuc->moment_tid = taskc->tid;
	cpuc->moment_at_ns = now_ns;
	preempt_end_for_moment(cpuc, now_ns);
}

/*
 * A brief request that has to wait, by EEVDF's rule or because preemption is lazy: a hog's turn ends
 * when it need not any more, and not at the next tick. Returns whether that is now, because it
 * waits for another one which could have the CPU.
 */
static __always_inline bool preempt_cut_turn(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
					     u64 now_ns)
{
	u64 end_ns;

	if (!cpuc->curr_hog || taskc->tier != ROTA_FAIR || !preempt_may_end(cpuc, ROTA_FAIR) ||
	    !(knobs.fair & ROTA_PREEMPT_SHORT) || !queue_brief(taskc))
		return false;
	end_ns = preempt_chosen_at(taskc, cpuc, now_ns);
	if (knobs.fair & ROTA_LAZY_PREEMPTION && eevdf_before(end_ns, preempt_quantum_end(cpuc)))
		end_ns = preempt_quantum_end(cpuc);
	if (!eevdf_before(now_ns, end_ns))
		return true;
	/* A turn that lasts already beyond its slice, to the tick, too. */
	if (eevdf_before(end_ns, cpuc->curr_end_ns) || eevdf_before(cpuc->curr_end_ns, now_ns)) {
		cpuc->curr_end_ns = end_ns;
		cpuc->curr_exact = 1;
	}
	return false;
}

/*
 * The same for those who wait already when a hog's turn begins, or goes on after an interruption:
 * the first few. Not static, as queue_join.
 */
__noinline int preempt_cut_begun(u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct task_struct *p;
	struct cpu_queue *queue = &cpuc->queues[0];
	u32 turns = 0, briefs = queue->parked;
	bool now = false;

	kernel_for_waiting(it, p, QUEUE_FAIR(cpu))
	{
		struct task_ctx *taskc = task_try(p);

		if (++turns > PREEMPT_LOOKS) {
			briefs = 1; /* who is behind them was not looked at */
			break;
		}
		if (!taskc || taskc->used_ns >= queue_brief(taskc))
			continue;
		briefs = 1;
		now |= preempt_cut_turn(taskc, cpuc, now_ns);
	}
	queue->briefs = !!briefs;
	return now;
}
