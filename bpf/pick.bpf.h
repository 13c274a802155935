/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pick: who waits in the fair and background tiers, and who is next.
 *
 * Problem: the pick must be the earliest deadline among the eligible, without looking at all
 * who wait.
 *
 * How: ready tasks wait in a dispatch queue of the kernel, ordered by deadline. Those
 * that would be picked but are not eligible are passed over; where they are
 * many they are parked in a second one, ordered by virtual time, until V has
 * reached them: each request is parked once at most, so a pick costs O(log n)
 * on average. While all deadlines are
 * equally far ahead of their tasks and V has passed no ghost, the first by deadline
 * is the first by virtual time, hence eligible, and nothing of that is needed.
 *
 * Limits: a count of those who wait may be too high for a moment, when the kernel has taken one
 * out or another CPU pulls.
 */

#define PICK_SKIPS 4	   /* tasks that a choice passes over before it parks others */
#define PICK_TURNS 8	   /* of a choice among ghosts */
#define PICK_NOTE_NS 20000 /* how exact llc_ctx.waiting_ns is kept */

/* The deadline of the first waiting task; false: none waits. */
static bool pick_head(u64 dsq, u64 *deadline_vt)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		*deadline_vt = p->scx.dsq_vtime;
		return true;
	}
	return false;
}

/*
 * Corrects the count by tasks that the kernel took out. Not while another CPU
 * pulls: it may have taken a task that it has not counted yet, and a count
 * that is too low would hide the next task for ever.
 */
static void pick_check_empty(struct cpu_queue *queue, u32 tier, u32 cpu)
{
	u32 done = CPU_ADD_ORDERED(queue->gone.pull_done, 0), pulled;

	if (scx_bpf_dsq_nr_queued(queue_id(tier, cpu)))
		return;
	if (queue->parked && scx_bpf_dsq_nr_queued(queue_parked_id(tier, cpu)))
		return;
	queue->parked = 0;
	pulled = READ_ONCE(queue->gone.pulled);
	if (CPU_ADD_ORDERED(queue->gone.pull_begun, 0) == done)
		queue->queued = pulled;
}

/* Makes ready again whom V has reached. */
static void pick_unpark(struct cpu_queue *queue, u32 tier, u32 cpu, u64 now_vt)
{
	struct task_struct *p;
	u32 moved = 0;
	bool more = false;

	kernel_for_waiting(it, p, queue_parked_id(tier, cpu))
	{
		struct task_ctx *taskc = task_try(p);

		if (!taskc)
			continue;
		if (eevdf_before(now_vt, taskc->vt)) {
			queue->parked_vt = taskc->vt;
			more = true;
			break;
		}
		if (!kernel_move_vtime(&it, p, queue_id(tier, cpu), taskc->deadline_vt))
			continue;
		if (eevdf_before(taskc->deadline_vt, queue->floor_vt))
			queue->floor_vt = taskc->deadline_vt;
		moved++;
	}
	queue->parked = more && queue->parked > moved ? queue->parked - moved : more;
	queue->mixed = 1;
}

/* Puts a ready task, at which an iterator is, among the parked. */
static __always_inline void pick_park(struct cpu_queue *queue, struct bpf_iter_scx_dsq *it,
				      struct task_struct *p, const struct task_ctx *taskc)
{
	if (!kernel_move_vtime(it, p, queue_parked_id(queue->tier, queue->cpu), taskc->vt))
		return;
	if (!queue->parked || eevdf_before(taskc->vt, queue->parked_vt))
		queue->parked_vt = taskc->vt;
	queue->parked++;
}

/* How far its deadline is ahead of a task: a whole request, or what is left of one. */
static __always_inline u64 pick_span(const struct task_ctx *taskc)
{
	return taskc->deadline_vt - taskc->vt;
}

/* Tells the CPUs of the domain that somebody waits in it. */
static __always_inline void pick_note_waiting(struct cpu_ctx *cpuc, u32 tier, u64 now_ns)
{
	struct llc_ctx *llcc = llc_find(cpuc->llc);

	if (cpu_waiting(cpu_queue(cpuc, tier)) &&
	    kernel_since(now_ns, READ_ONCE(llcc->waiting_ns)) > PICK_NOTE_NS)
		WRITE_ONCE(llcc->waiting_ns, now_ns);
}

/* A task is about to be put among those who wait. */
static void pick_admit(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);

	if (!cpu_waiting(queue)) {
		queue->floor_vt = taskc->deadline_vt;
		queue->span_vt = pick_span(taskc);
		queue->mixed = 0;
	} else {
		if (eevdf_before(taskc->deadline_vt, queue->floor_vt))
			queue->floor_vt = taskc->deadline_vt;
		queue->mixed |= pick_span(taskc) != queue->span_vt;
	}
	queue_note_slice(queue, taskc->slice_ns, now_ns);
	/* It may be due before the head that was taken and has not run yet. */
	cpuc->took_head = 0;
	queue->queued++;
	record_note(ROTA_RECORD_WAIT, 0, taskc, cpu, 0);
	pick_note_waiting(cpuc, taskc->tier, now_ns);
}

/*
 * Has the mask of a task that waits lost this CPU? Then the kernel puts it back into the queue
 * once more and at once afterwards where it may run. It leaves here, where V is that of
 * now; from there it is that of the last switch.
 */
static bool pick_departs(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			 u32 cpu, u64 now_ns)
{
	if (taskc->joined != cpu || cpu_allows(p, cpu))
		return false;
	queue_charge_ahead(cpuc, now_ns);
	queue_leave(taskc, cpu, false);
	return true;
}

/*
 * May a task that wakes take the direct way, which needs no dispatch? When nothing else waits
 * and it cannot be pulled, because it may run nowhere else, or need not be: one that wakes while
 * its CPU is still leaving it is put there unasked, and that CPU is idle by then.
 */
static __always_inline bool pick_direct(const struct task_struct *p, const struct task_ctx *taskc,
					const struct cpu_ctx *cpuc, u32 cpu)
{
	if (taskc->tier != ROTA_FAIR || cpuc->local_taken || cpu_waiting(&cpuc->queues[0]))
		return false;
	if (!cpuc->curr_tid && scx_bpf_test_and_clear_cpu_idle(cpu)) {
		cpu_counters(cpu)->direct++;
		return true;
	}
	return p->nr_cpus_allowed == 1;
}

/* A task of the fair or background tier is ready on this CPU. */
static void pick_enqueue(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			 u32 cpu, u64 enq_flags, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	bool wakes = enq_flags & ENQ_WAKEUP, comes, may, put_off, preempts;

	if (pick_departs(p, taskc, cpuc, cpu, now_ns)) {
		queue->queued++;
		kernel_insert_vtime(p, queue_id(taskc->tier, cpu), taskc->request_ns,
				    taskc->deadline_vt, enq_flags);
		return;
	}
	if (taskc->joined >= 0 && taskc->joined != cpu)
		queue_leave(taskc, cpu, false);
	/* New, or from another CPU, or with another weight: not who was only interrupted. */
	comes = wakes || taskc->rest_vt || taskc->fresh;
	if (taskc->joined < 0)
		queue_join(taskc, cpu, now_ns);
	else
		queue_charge_ahead(cpuc, now_ns);

	may = comes && preempt_allowed(taskc, cpuc, cpu);
	put_off = may && knobs.fair & ROTA_LAZY_PREEMPTION && preempt_defers(taskc, cpu, now_ns);
	preempts = may && !put_off;
	if (preempts && !cpuc->local_taken) {
		/* Claimed: whoever wakes next waits in the queue. */
		cpuc->local_taken = 1;
		task_note_taking(taskc, cpuc);
		record_preempt(taskc, cpuc, cpu);
		aside_note(taskc, cpuc);
		kernel_insert(p, DSQ_LOCAL, taskc->request_ns, enq_flags | ENQ_PREEMPT);
		return;
	}
	if (wakes && !put_off && pick_direct(p, taskc, cpuc, cpu)) {
		cpuc->local_taken = 1;
		record_at(ROTA_RECORD_PICK, ROTA_PICK_DIRECT, taskc, cpu, 0);
		kernel_insert(p, DSQ_LOCAL, taskc->request_ns, enq_flags);
	} else {
		pick_admit(taskc, cpuc, cpu, now_ns);
		kernel_insert_vtime(p, queue_id(taskc->tier, cpu), taskc->request_ns,
				    taskc->deadline_vt, enq_flags);
	}
	if (wakes)
		preempt_note_moment(taskc, cpuc, now_ns);
	/* Second in line, after one that went to the local queue, or out of turn. */
	if (preempts || preempt_gives_way(cpuc, taskc->tier) ||
	    (comes && !may && preempt_hurries(taskc, cpuc, cpu, wakes, now_ns)) ||
	    (wakes && preempt_cut_turn(taskc, cpuc, now_ns)))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	else if (timer_wanted(cpuc))
		timer_start(cpuc, cpu, now_ns);
}

/* The first task of a dispatch queue that may run on this CPU, for the record. */
static u32 pick_first_tid(u64 dsq, u32 cpu)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		if (cpu_allows(p, cpu))
			return p->pid;
	}
	return 0;
}

/* Takes the first task of a dispatch queue of this CPU. */
static bool pick_take(struct cpu_queue *queue, u64 dsq, u32 how)
{
	u32 tid = record_capacity ? pick_first_tid(dsq, queue->cpu) : 0;

	if (!kernel_move_to_local(dsq))
		return false;
	record_take(how, queue, tid);
	queue->queued--;
	return true;
}

/*
 * All spans are alike and V has passed no ghost: the first by deadline is eligible. Not always
 * where who ran is ready still and may not go on here, which a choice would see no better.
 */
static bool pick_alike(struct cpu_queue *queue, u32 tier, struct cpu_ctx *cpuc, u32 cpu,
		       struct task_ctx *prevc)
{
	u64 dsq = queue_id(tier, cpu), head_vt;

	if (prevc) {
		if (!eevdf_before(queue->floor_vt, prevc->deadline_vt))
			return false;
		if (!pick_head(dsq, &head_vt)) {
			pick_check_empty(queue, tier, cpu);
			return false;
		}
		queue->floor_vt = head_vt;
		if (!eevdf_before(head_vt, prevc->deadline_vt))
			return false;
	}
	if (pick_take(queue, dsq, ROTA_PICK_DISPATCH)) {
		cpuc->took_head = 1;
		return true;
	}
	pick_check_empty(queue, tier, cpu);
	return false;
}

/* Lets the ghosts go that come before this deadline, unless it is the last look. */
static __always_inline bool pick_make_way(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt,
					  bool last)
{
	return !last && ghost_release(queue, now_vt, deadline_vt);
}

enum pick_choice {
	PICK_NOBODY, /* is eligible, or another CPU was quicker */
	PICK_PREV,   /* who ran goes on */
	PICK_TAKEN,
	PICK_AGAIN, /* a ghost came first, and V is another without it */
};

/*
 * Chooses the earliest deadline among the eligible. Those who are not and come before it are
 * passed over, or parked where they are many. The last look is at who is there, whatever ghosts
 * come before. Not static, as queue_join.
 */
__noinline int pick_choose(u32 tier, u32 cpu, struct task_ctx *prevc, bool last)
{
	struct cpu_queue *queue = cpu_queue(cpu_find(cpu), tier);
	u64 now_vt = eevdf_now(&queue->tree), until_vt = now_vt + GHOST_NEVER_VT;
	bool goes_on = prevc && !eevdf_before(now_vt, prevc->vt), first = true;
	bool alone = !prevc && queue->queued - READ_ONCE(queue->gone.pulled) == 1, due;
	struct task_struct *p;
	u32 skips = 0;

	if (goes_on)
		until_vt = prevc->deadline_vt;
	if (queue->parked && !eevdf_before(now_vt, queue->parked_vt))
		pick_unpark(queue, tier, cpu, now_vt);
	if (goes_on && !eevdf_before(queue->floor_vt, until_vt))
		return pick_make_way(queue, now_vt, until_vt, last) ? PICK_AGAIN : PICK_PREV;
	kernel_for_waiting(it, p, queue_id(tier, cpu))
	{
		struct task_ctx *taskc = task_try(p);

		if (!taskc)
			continue;
		if (first)
			queue->floor_vt = taskc->deadline_vt;
		first = false;
		if (!eevdf_before(taskc->deadline_vt, until_vt))
			break;
		due = !eevdf_before(now_vt, taskc->vt);
		/* Who is not due may be once those ghosts have gone that come before. */
		if ((due || skips == PICK_SKIPS) && !alone &&
		    pick_make_way(queue, now_vt, taskc->deadline_vt, last))
			return PICK_AGAIN;
		/* Nobody else waits whose turn it could be when ghosts have made way. */
		if (alone &&
		    pick_make_way(queue, now_vt, due ? taskc->deadline_vt : until_vt, last))
			due = !eevdf_before(eevdf_now(&queue->tree), taskc->vt);
		if (!due) {
			if (skips >= PICK_SKIPS)
				pick_park(queue, &it, p, taskc);
			/* A count without an end would have the verifier look at each turn. */
			if (skips <= PICK_SKIPS)
				skips++;
			continue;
		}
		if (!cpu_allows(p, cpu) || !kernel_move(&it, p, DSQ_LOCAL, 0))
			continue;
		record_take(ROTA_PICK_DISPATCH, queue, record_capacity ? p->pid : 0);
		queue->queued--;
		return PICK_TAKEN;
	}
	if (pick_make_way(queue, now_vt, until_vt, last))
		return PICK_AGAIN;
	return goes_on ? PICK_PREV : PICK_NOBODY;
}

/* The same, once no ghost comes first any more. */
static bool pick_fair(struct cpu_queue *queue, u32 tier, u32 cpu, struct task_ctx *prevc)
{
	int choice = PICK_AGAIN;

	for (u32 turn = 1; turn <= PICK_TURNS && choice == PICK_AGAIN; turn++)
		choice = pick_choose(tier, cpu, prevc, turn == PICK_TURNS);
	if (choice == PICK_TAKEN || choice == PICK_PREV)
		return choice == PICK_TAKEN;
	pick_check_empty(queue, tier, cpu);
	if (prevc)
		return false;
	/* Somebody always is eligible, but for the rounding of V and who just left. */
	if (pick_take(queue, queue_id(tier, cpu), ROTA_PICK_LAST))
		return true;
	if (!queue->parked || !pick_take(queue, queue_parked_id(tier, cpu), ROTA_PICK_LAST))
		return false;
	queue->parked -= !!queue->parked;
	return true;
}

/*
 * Lets the ghosts go that come before all who are ready, and before who ran; true: V has
 * passed no other one, so that there is nothing to choose among those whose spans are alike.
 */
static bool pick_clear_way(struct cpu_queue *queue, const struct task_ctx *prevc)
{
	u64 deadline_vt = queue->floor_vt, now_vt = eevdf_now(&queue->tree);

	if (prevc && eevdf_before(prevc->deadline_vt, deadline_vt))
		deadline_vt = prevc->deadline_vt;
	if (ghost_release(queue, now_vt, deadline_vt)) {
		/* Once more: V has gone on by that. */
		ghost_release(queue, eevdf_now(&queue->tree), deadline_vt);
		now_vt = eevdf_now(&queue->tree);
	}
	return !queue->ghosts || ghost_none_passed(queue, now_vt);
}

/* Who runs was not compared with ghosts: it comes after those of an earlier deadline still. */
static __always_inline void pick_go_on(struct cpu_queue *queue, const struct task_ctx *taskc)
{
	if (!queue->ghosts)
		return;
	queue_settle_gone(queue);
	ghost_release(queue, eevdf_now(&queue->tree), taskc->deadline_vt);
}

/*
 * Finds the next task of the tier for this CPU. prevc is not NULL when the
 * task that ran may go on: then it competes with those who wait. Not static, as
 * queue_join.
 */
__noinline bool pick_dispatch(u32 tier, u32 cpu, struct task_ctx *prevc)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct cpu_queue *queue = cpu_queue(cpuc, tier);

	if (prevc && prevc->tier != tier)
		prevc = NULL;
	if (!cpu_waiting(queue)) {
		if (prevc)
			pick_go_on(queue, prevc);
		return false;
	}
	queue_settle_gone(queue);
	if (queue->parked || queue->mixed || (prevc && pick_span(prevc) != queue->span_vt) ||
	    (queue->ghosts && !pick_clear_way(queue, prevc)))
		return pick_fair(queue, tier, cpu, prevc);
	return pick_alike(queue, tier, cpuc, cpu, prevc);
}

/* The same, without a call where there is nobody: on its way to idle a CPU asks both tiers. */
static __always_inline bool pick_next(struct cpu_ctx *cpuc, u32 tier, u32 cpu,
				      struct task_ctx *prevc)
{
	return (prevc || cpu_waiting(cpu_queue(cpuc, tier))) && pick_dispatch(tier, cpu, prevc);
}
