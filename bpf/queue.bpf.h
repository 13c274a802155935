/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: the fair and background tiers, one queue each per CPU.
 *
 * Problem: tasks must get CPU time in the ratio of their weights, sleepers
 * must neither lose nor gain by sleeping, and the pick must be the earliest
 * deadline among the eligible without looking at all who wait.
 *
 * How: EEVDF (see eevdf.h). A task joins the queue of a CPU when it becomes
 * ready there and leaves it when it sleeps or migrates, taking its lag along.
 * A turn ends with its request: where the next task is put into the queue, or at a tick.
 * Beside a shorter slice it ends so after that slice, though the request
 * goes on: otherwise who asks for 100 us would wait for 100 ms.
 * Ready tasks wait in a dispatch queue of the kernel, ordered by deadline. Those
 * that would be picked but are not eligible are passed over; where they are
 * many they are parked in a second one, ordered by virtual time, until V has
 * reached them: each request is parked once at most, so a pick costs O(log n)
 * on average. While all deadlines are
 * equally far ahead of their tasks and V has passed no ghost, the first by deadline
 * is the first by virtual time, hence eligible, and nothing of that is needed.
 * The running task's progress is added to V ahead of its charge, so that a
 * waking task is placed at the V of now, not of the last switch.
 * A task that another CPU pulled away is settled later: that CPU leaves a
 * note (cpu_departures), because it must not touch sums that are guarded by
 * our run queue lock.
 *
 * Limits: a task that wakes is compared with the running one, the first few by
 * deadline and the first few of the parked; when it is none of theirs to decide
 * it has to wait for the next pick.
 */

/* Ids of dispatch queues: kind and CPU or cache domain. */
#define QUEUE_ID(kind, index) ((u64)(kind) << 32 | (u32)(index))
#define QUEUE_FAIR(cpu) QUEUE_ID(1, cpu)
#define QUEUE_BACKGROUND(cpu) QUEUE_ID(2, cpu)
#define QUEUE_CAPPED(cpu) QUEUE_ID(3, cpu)
#define QUEUE_PRIORITY(llc) QUEUE_ID(4, llc)
#define QUEUE_FAIR_PARKED(cpu) QUEUE_ID(5, cpu)
#define QUEUE_BACKGROUND_PARKED(cpu) QUEUE_ID(6, cpu)
#define QUEUE_LIMITED(cpu) QUEUE_ID(7, cpu)
#define QUEUE_OWNED(owner) QUEUE_ID(8, owner)

#define QUEUE_TIE_VT 16000	 /* 1 us at nice 0: closer than this is level */
#define QUEUE_BRIEF_PART 8	 /* of a slice, at most, is a brief request */
#define QUEUE_QUANTUM_NS 350000	 /* for so long a turn is safe from brief requests, too */
#define QUEUE_LOOKS 8		 /* tasks that a wake-up looks at to see whether it is the next */
#define QUEUE_SKIPS 4		 /* tasks that a choice passes over before it parks others */
#define QUEUE_TURNS 8		 /* of a choice among ghosts */
#define QUEUE_NOTE_NS 20000	 /* how exact llc_ctx.waiting_ns is kept */
#define QUEUE_SHORT_NS 256000000 /* for so long, and once more, a short slice is remembered */

static __always_inline u64 queue_id(u32 tier, u32 cpu)
{
	return tier == ROTA_BACKGROUND ? QUEUE_BACKGROUND(cpu) : QUEUE_FAIR(cpu);
}

static __always_inline u64 queue_parked_id(u32 tier, u32 cpu)
{
	return tier == ROTA_BACKGROUND ? QUEUE_BACKGROUND_PARKED(cpu) : QUEUE_FAIR_PARKED(cpu);
}

static void queue_init(struct cpu_queue *queue, u32 tier, u32 cpu)
{
	queue->tier = tier;
	queue->cpu = cpu;
	queue->short_ns = queue->short_before_ns = ~0ULL;
}

/* Takes the departures into the sums. Called under the run queue lock. */
static void queue_settle(struct cpu_queue *queue)
{
	u64 done = READ_ONCE(queue->gone.done);
	u64 w = READ_ONCE(queue->gone.w) - queue->seen_w;
	u64 wv = READ_ONCE(queue->gone.wv) - queue->seen_wv;

	/* Between the two additions of a departure: take both next time. */
	if (READ_ONCE(queue->gone.begun) != done || !w)
		return;
	record_settle(queue, w, wv);
	queue->seen_w += w;
	queue->seen_wv += wv;
	queue->tree.sum_w -= w;
	queue->tree.sum_wv -= wv - queue->tree.zero_vt * w;
	if (!queue->tree.sum_w)
		queue->tree.sum_wv = 0;
}

/* The same where mostly there are none. */
static __always_inline void queue_settle_gone(struct cpu_queue *queue)
{
	if (READ_ONCE(queue->gone.w) != queue->seen_w)
		queue_settle(queue);
}

/* Adds what the running task has done since it was last looked at. */
static __always_inline void queue_charge_ahead(struct cpu_ctx *cpuc, u64 now_ns)
{
	s64 elapsed_ns = now_ns - cpuc->curr_at_ns;
	u64 vt, done_ns;

	if (cpuc->curr_tier != ROTA_FAIR && cpuc->curr_tier != ROTA_BACKGROUND)
		return;
	if (elapsed_ns <= 0 || !cpuc->curr_tid || !cpuc->curr_weight)
		return;
	done_ns = pace_ns(elapsed_ns, cpuc->curr_bound, cpuc->queues[0].cpu);
	vt = eevdf_vt(done_ns, cpuc->curr_weight);
	record_ahead(cpuc, done_ns);
	if (knobs.frequency) {
		cpuc->ahead_ns += elapsed_ns;
		cpuc->ahead_done_ns += done_ns;
	}
	cpuc->curr_at_ns = now_ns;
	cpuc->curr_vt += vt;
	cpuc->ahead_wv += vt * cpuc->curr_weight;
	cpu_queue(cpuc, cpuc->curr_tier)->tree.sum_wv += vt * cpuc->curr_weight;
}

/* The last task leaves: V stays where that was, for whoever comes next. */
static void queue_reset(struct cpu_queue *queue, u64 vt)
{
	ghost_clear(queue);
	queue->tree.zero_vt = vt;
	WRITE_ONCE(queue->tree.sum_w, 0);
	queue->tree.sum_wv = 0;
}

/*
 * Its first request, by what it lately used, if that is brief beside its slice, else 0: tasks
 * that keep each other busy, as hackbench's, would only take turns more often.
 */
static __always_inline u64 queue_brief(const struct task_ctx *taskc)
{
	u64 brief_ns = knobs.fair & ROTA_BRIEF_REQUESTS ? task_brief(taskc) : 0;

	return brief_ns * QUEUE_BRIEF_PART <= taskc->slice_ns ? brief_ns : 0;
}

/*
 * How far the deadline is ahead of a task that wakes: what it is owed and its brief request,
 * or a whole one if that is less. A brief request alone, from where the task is, would be due
 * before V by all that it is owed, and go before who weighs more and is due from now on.
 */
static __always_inline u64 queue_waking_span(const struct task_ctx *taskc, u64 now_vt,
					     u64 *brief_ns)
{
	u64 span_vt;

	*brief_ns = queue_brief(taskc);
	if (!*brief_ns)
		return taskc->request_vt;
	span_vt = eevdf_vt(*brief_ns, taskc->weight);
	if (eevdf_before(taskc->vt, now_vt))
		span_vt += now_vt - taskc->vt;
	if (span_vt < taskc->request_vt)
		return span_vt;
	*brief_ns = 0;
	return taskc->request_vt;
}

/*
 * The deadline of a task that joins at this V: a whole request away or a brief one, what was
 * left of it when the task moved while it wanted to run, or half of one for a new
 * task, which has so far been no burden to anybody. Returns the brief request, for
 * the record.
 */
static __always_inline u64 queue_first_deadline(struct task_ctx *taskc, u64 now_vt)
{
	u64 span_vt = taskc->rest_vt, brief_ns = 0;

	if (!span_vt || span_vt > taskc->request_vt)
		span_vt = taskc->fresh ? taskc->request_vt / 2
				       : queue_waking_span(taskc, now_vt, &brief_ns);
	taskc->rest_vt = 0;
	taskc->fresh = 0;
	taskc->deadline_vt = taskc->vt + span_vt;
	return brief_ns;
}

/*
 * The same for one that goes on where its ghost was: its old request may be a whole slice,
 * because it had used up a brief one when it fell asleep.
 */
static __always_inline u64 queue_hasten(struct task_ctx *taskc)
{
	u64 brief_ns = queue_brief(taskc);
	u64 deadline_vt;

	if (!brief_ns)
		return 0;
	deadline_vt = taskc->vt + eevdf_vt(brief_ns, taskc->weight);
	if (!eevdf_before(deadline_vt, taskc->deadline_vt))
		return 0;
	taskc->deadline_vt = deadline_vt;
	return brief_ns;
}

/*
 * V went back while the task slept, because others came who are owed: it owes more than
 * when it fell asleep, and has had nothing. With brief requests it does not pay for that.
 */
static __always_inline bool queue_debt_grew(const struct cpu_ghost *ghost,
					    const struct task_ctx *taskc, u64 now_vt)
{
	return knobs.fair & ROTA_BRIEF_REQUESTS && ghost->weight == taskc->weight &&
	       (s64)(now_vt - ghost->vt) < (s64)taskc->vt;
}

/*
 * The lag with which a task joins. A debt on this CPU is paid when V has passed its ghost,
 * which is all that tells of a debt that a new weight has rounded to nothing.
 */
static s64 queue_lag(struct cpu_queue *queue, const struct task_ctx *taskc, u32 place, u64 now_vt)
{
	const struct cpu_ghost *ghost = ghost_at(queue, place);
	s64 lag_vt = taskc->vt;

	if (!place)
		return lag_vt < 0 && taskc->left == queue->cpu ? 0 : lag_vt;
	if (!queue_debt_grew(ghost, taskc, now_vt))
		lag_vt = now_vt - ghost->vt;
	ghost_look_again(queue, ghost, now_vt);
	ghost_end(queue, place);
	return lag_vt >= 0 ? 0 : eevdf_rescale(lag_vt, ghost->weight, taskc->weight);
}

/* Is the task back before V has passed its ghost? Then it goes on where it was. */
static bool queue_take_back(struct cpu_queue *queue, struct task_ctx *taskc, u32 place, u64 now_vt)
{
	const struct cpu_ghost *ghost = ghost_at(queue, place);

	if (!place || ghost->weight != taskc->weight || eevdf_before(ghost->vt, now_vt) ||
	    queue_debt_grew(ghost, taskc, now_vt))
		return false;
	taskc->vt = ghost->vt;
	taskc->deadline_vt = ghost->deadline_vt;
	ghost_look_again(queue, ghost, now_vt);
	ghost_forget(queue, place);
	return true;
}

/* Gives a task its place among those who compete; returns how, for the record. */
static u32 queue_place(struct cpu_queue *queue, struct task_ctx *taskc, u64 *now_vt)
{
	s64 lag_vt;
	u32 place;

	if (queue->tree.sum_w)
		queue_settle(queue);
	if (queue->tree.sum_w == queue->ghost_w) {
		/* Alone: there is nobody to owe or to be owed. */
		queue_reset(queue, eevdf_now(&queue->tree));
		*now_vt = taskc->vt = queue->tree.zero_vt;
		queue->tree.sum_w = taskc->weight;
		return ROTA_JOIN_EMPTY;
	}
	*now_vt = eevdf_rebase(&queue->tree);
	place = ghost_of(queue, taskc);
	if (queue_take_back(queue, taskc, place, *now_vt))
		return ROTA_JOIN_GHOST;
	lag_vt = queue_lag(queue, taskc, place, *now_vt);
	*now_vt = eevdf_now(&queue->tree);
	/* A hair ahead: of equals the newcomer is the one to run, as in the kernel. */
	taskc->vt = eevdf_place(&queue->tree, *now_vt, lag_vt, taskc->weight) - 1;
	eevdf_join(&queue->tree, taskc->vt, taskc->weight);
	return 0;
}

/*
 * The task competes on this CPU from now on. Not static, nor is the next one: the
 * verifier then looks at them once and not again at each of their callers.
 */
__noinline int queue_join(struct task_ctx *taskc, u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct cpu_queue *queue;
	u64 now_vt = 0, brief_ns;
	u32 how;

	if (!taskc)
		return 0;
	queue = cpu_queue(cpuc, taskc->tier);
	how = taskc->fresh ? ROTA_JOIN_NEW : 0;
	taskc->joined = cpu;
	if (taskc->group)
		group_count(taskc->group, 1, taskc->own_weight);
	if (queue->tree.sum_w)
		queue_charge_ahead(cpuc, now_ns);
	how |= queue_place(queue, taskc, &now_vt);
	taskc->ghost = 0;
	brief_ns =
		how & ROTA_JOIN_GHOST ? queue_hasten(taskc) : queue_first_deadline(taskc, now_vt);
	record_join(how, taskc, cpu, now_vt, brief_ns);
	return 0;
}

/*
 * The task no longer competes where it did; its lag goes with it, and if it
 * only moves, so does what is left of its request.
 */
__noinline int queue_leave(struct task_ctx *taskc, u32 cpu, bool sleeps)
{
	struct cpu_queue *queue;
	u64 vt, w, now_vt;

	if (!taskc)
		return 0;
	queue = cpu_queue(cpu_find(taskc->joined), taskc->tier);
	vt = taskc->vt;
	w = taskc->weight;
	if (taskc->group)
		group_count(taskc->group, -1, -(s64)taskc->own_weight);
	taskc->rest_vt =
		!sleeps && eevdf_before(vt, taskc->deadline_vt) ? taskc->deadline_vt - vt : 0;

	if (taskc->joined == cpu && queue->tree.sum_w == w + queue->ghost_w) {
		record_leave(ROTA_LEAVE_LAST | (sleeps ? ROTA_LEAVE_SLEEP : 0), taskc, cpu, vt, 0);
		taskc->joined = -1;
		taskc->vt = 0;
		queue_reset(queue, vt);
		return 0;
	}
	/* From afar V may be one switch old: the lag is off by less than the clamp. */
	now_vt = eevdf_now(&queue->tree);
	taskc->vt = eevdf_clamp(now_vt - vt, taskc->limit_vt);
	/* Who only moves has paid nothing by sleeping. */
	taskc->left = sleeps ? taskc->joined : -1;
	if (taskc->joined == cpu && sleeps && (s64)taskc->vt < 0) {
		ghost_make(queue, taskc, vt, now_vt);
		record_leave(ROTA_LEAVE_SLEEP | ROTA_LEAVE_GHOST, taskc, cpu, now_vt - taskc->vt,
			     now_vt);
	} else if (taskc->joined == cpu) {
		eevdf_leave(&queue->tree, vt, w);
		record_leave(sleeps ? ROTA_LEAVE_SLEEP : 0, taskc, cpu, vt, now_vt);
	} else {
		record_leave(ROTA_LEAVE_AFAR | (sleeps ? ROTA_LEAVE_SLEEP : 0), taskc,
			     taskc->joined, vt, now_vt);
		__sync_fetch_and_add(&queue->gone.begun, 1);
		__sync_fetch_and_add(&queue->gone.w, w);
		__sync_fetch_and_add(&queue->gone.wv, w * vt);
		__sync_fetch_and_add(&queue->gone.done, 1);
	}
	taskc->joined = -1;
	return 0;
}

/*
 * What so much CPU time of the task that runs counts for: what was charged ahead by the speed
 * of then, the rest by that of now.
 */
static __always_inline u64 queue_done(struct cpu_ctx *cpuc, u64 delta_ns, u32 bound, u32 cpu)
{
	u64 ahead_ns = cpuc->ahead_ns, done_ns = cpuc->ahead_done_ns;

	if (!knobs.frequency)
		return delta_ns;
	cpuc->ahead_ns = cpuc->ahead_done_ns = 0;
	if (delta_ns >= ahead_ns)
		return done_ns + pace_ns(delta_ns - ahead_ns, bound, cpu);
	/* An interrupt took a part of the time, for which the task does not pay. */
	return done_ns * delta_ns / ahead_ns;
}

/* Charges a running task for what it did, in time at full speed, since it was last charged. */
static void queue_charge(struct task_ctx *taskc, struct cpu_ctx *cpuc, u64 done_ns)
{
	u64 vt = eevdf_vt(done_ns, taskc->weight);

	taskc->vt += vt;
	if (!eevdf_before(taskc->vt, taskc->deadline_vt))
		taskc->deadline_vt = taskc->vt + taskc->request_vt;
	if (taskc->joined < 0)
		return;
	cpu_queue(cpuc, taskc->tier)->tree.sum_wv += (s64)(vt * taskc->weight) - cpuc->ahead_wv;
	cpuc->ahead_wv = 0;
	record_note(ROTA_RECORD_CHARGE, 0, taskc, taskc->joined, done_ns);
}

/* The deadline of the first waiting task; false: none waits. */
static bool queue_head(u64 dsq, u64 *deadline_vt)
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
static void queue_check_empty(struct cpu_queue *queue, u32 tier, u32 cpu)
{
	u32 done = READ_ONCE(queue->gone.pull_done), pulled;

	if (scx_bpf_dsq_nr_queued(queue_id(tier, cpu)))
		return;
	if (queue->parked && scx_bpf_dsq_nr_queued(queue_parked_id(tier, cpu)))
		return;
	queue->parked = 0;
	pulled = READ_ONCE(queue->gone.pulled);
	if (READ_ONCE(queue->gone.pull_begun) == done)
		queue->queued = pulled;
}

/* Makes ready again whom V has reached. */
static void queue_unpark(struct cpu_queue *queue, u32 tier, u32 cpu, u64 now_vt)
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
static __always_inline void queue_park(struct cpu_queue *queue, struct bpf_iter_scx_dsq *it,
				       struct task_struct *p, const struct task_ctx *taskc)
{
	if (!kernel_move_vtime(it, p, queue_parked_id(queue->tier, queue->cpu), taskc->vt))
		return;
	if (!queue->parked || eevdf_before(taskc->vt, queue->parked_vt))
		queue->parked_vt = taskc->vt;
	queue->parked++;
}

/*
 * The shortest slice among those who wait, about: it is forgotten when nobody
 * with it has been queued for one to two spans of time and others have, and
 * who has been picked since still counts.
 */
static __always_inline u64 queue_shortest(const struct cpu_queue *queue)
{
	u64 ns = queue->short_ns, before_ns = queue->short_before_ns;

	return ns < before_ns ? ns : before_ns;
}

/*
 * How far a task that was just picked keeps the CPU: for its request, or as
 * long as the shortest among those who wait is.
 */
static __always_inline u64 queue_safe(const struct task_ctx *taskc, const struct cpu_queue *queue)
{
	u64 shortest_ns = queue_shortest(queue);

	if (shortest_ns >= taskc->slice_ns)
		return taskc->deadline_vt;
	return taskc->vt + eevdf_vt(shortest_ns, taskc->weight);
}

/* When what runs here has had so much that a switch is worth its price. */
static __always_inline u64 queue_quantum_end(const struct cpu_ctx *cpuc)
{
	return cpuc->curr_since_ns + QUEUE_QUANTUM_NS;
}

/* Does a brief request go before what runs, which has longer to go? */
static __always_inline bool queue_brief_first(const struct task_ctx *taskc,
					      const struct cpu_ctx *cpuc)
{
	u64 brief_ns;

	if (eevdf_before(cpuc->curr_at_ns, queue_quantum_end(cpuc)))
		return false;
	brief_ns = queue_brief(taskc);
	return brief_ns &&
	       eevdf_vt(brief_ns, taskc->weight) < cpuc->curr_deadline_vt - cpuc->curr_vt;
}

/*
 * Does the running task, which is eligible, keep the CPU? For a slice since it
 * was picked, and not against a task that weighs more or asks for less.
 * Who went on because nobody waited was not picked again.
 */
static __always_inline bool queue_protected(const struct task_ctx *taskc,
					    const struct cpu_ctx *cpuc)
{
	if (!(knobs.fair & ROTA_RUN_TO_PARITY) || taskc->weight > cpuc->curr_weight)
		return false;
	if (!eevdf_before(cpuc->curr_vt, cpuc->curr_safe_vt))
		return false;
	return !(knobs.fair & ROTA_PREEMPT_SHORT) ||
	       (taskc->slice_ns >= cpuc->curr_slice_ns && !queue_brief_first(taskc, cpuc));
}

/* Has V reached a parked task that would be picked before this one? */
static bool queue_parked_wins(const struct task_ctx *taskc, struct cpu_queue *queue, u32 cpu,
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
		if (++turns > QUEUE_LOOKS ||
		    (other && eevdf_before(other->deadline_vt, taskc->deadline_vt)))
			return true;
	}
	return false;
}

/*
 * Would this task, which is eligible, be picked of all who wait? Not static, as
 * queue_join.
 */
__noinline bool queue_wins(const struct task_ctx *taskc, u32 cpu, u64 now_vt)
{
	struct cpu_queue *queue;
	struct task_struct *p;
	u32 turns = 0;

	if (!taskc)
		return false;
	queue = cpu_queue(cpu_find(cpu), taskc->tier);
	if (!cpu_waiting(queue))
		return true;
	if (queue_parked_wins(taskc, queue, cpu, now_vt))
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
		if (++turns > QUEUE_LOOKS || (other && !eevdf_before(now_vt, other->vt)))
			return false;
	}
	return true;
}

/* May a task that wakes, or comes from another CPU, take the CPU from the one that runs? */
static bool queue_preempts(const struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 now_vt;

	if (cpuc->curr_rescued || READ_ONCE(cpuc->curr_raised))
		return false;
	if (cpuc->curr_tier != taskc->tier)
		return cpuc->curr_tier == ROTA_BACKGROUND;
	now_vt = eevdf_now(&queue->tree);
	if (eevdf_before(now_vt + QUEUE_TIE_VT, taskc->vt))
		return false; /* not eligible */
	/* Has the running task had its share? Else it may keep the CPU. */
	if (eevdf_before(cpuc->curr_vt + QUEUE_TIE_VT, now_vt) &&
	    (queue_protected(taskc, cpuc) ||
	     !eevdf_before(taskc->deadline_vt, cpuc->curr_deadline_vt)))
		return false;
	return queue_wins(taskc, cpu, now_vt);
}

/*
 * Is it time to look who else is due, though a tick may be far? What runs has used its request,
 * or has become ineligible and that is to be a reason.
 */
static __always_inline bool queue_gives_way(struct cpu_ctx *cpuc, u32 tier)
{
	if (cpuc->curr_tier != tier || !cpuc->curr_tid || cpuc->curr_rescued ||
	    READ_ONCE(cpuc->curr_raised))
		return false;
	if (!eevdf_before(cpuc->curr_vt, cpuc->curr_safe_vt))
		return true;
	return (knobs.fair & ROTA_ELIGIBILITY_CHECK) &&
	       eevdf_before(eevdf_now(&cpu_queue(cpuc, tier)->tree) + QUEUE_TIE_VT, cpuc->curr_vt);
}

/*
 * When a choice will fall on a task that waits, if nobody comes or goes and there is only what
 * runs: V has reached it, and that one is due later.
 */
static __always_inline u64 queue_chosen_at(const struct task_ctx *taskc, const struct cpu_ctx *cpuc,
					   u64 now_ns)
{
	const struct eevdf_queue *tree = &cpuc->queues[0].tree;
	u64 now_vt = eevdf_now(tree), wait_ns = 0, due_ns = 0;

	if (eevdf_before(now_vt, taskc->vt))
		wait_ns = eevdf_ns(taskc->vt - now_vt, tree->sum_w);
	if (!eevdf_before(taskc->deadline_vt, cpuc->curr_deadline_vt) &&
	    eevdf_before(cpuc->curr_vt, cpuc->curr_deadline_vt))
		due_ns = eevdf_ns(cpuc->curr_deadline_vt - cpuc->curr_vt, cpuc->curr_weight);
	return now_ns + (wait_ns > due_ns ? wait_ns : due_ns);
}

/*
 * A brief request that has to wait, because a turn has just begun or by EEVDF's rule: the
 * turn ends when it need not any more, and not at the next tick. Returns whether that is now,
 * because it waits for another one which could have the CPU.
 */
static __always_inline bool queue_cut_turn(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
					   u64 now_ns)
{
	u64 end_ns = queue_quantum_end(cpuc), chosen_ns;

	if (!cpuc->curr_hog || !cpuc->curr_tid || cpuc->curr_tier != ROTA_FAIR ||
	    taskc->tier != ROTA_FAIR || cpuc->curr_rescued || !(knobs.fair & ROTA_PREEMPT_SHORT) ||
	    !queue_brief(taskc))
		return false;
	chosen_ns = queue_chosen_at(taskc, cpuc, now_ns);
	if (eevdf_before(end_ns, chosen_ns))
		end_ns = chosen_ns;
	if (!eevdf_before(now_ns, end_ns))
		return true;
	if (eevdf_before(end_ns, cpuc->curr_end_ns)) {
		cpuc->curr_end_ns = end_ns;
		cpuc->curr_exact = 1;
	}
	return false;
}

/* How far its deadline is ahead of a task: a whole request, or what is left of one. */
static __always_inline u64 queue_span(const struct task_ctx *taskc)
{
	return taskc->deadline_vt - taskc->vt;
}

static __always_inline void queue_note_slice(struct cpu_queue *queue, u64 slice_ns, u64 now_ns)
{
	if (!eevdf_before(now_ns, queue->short_until_ns)) {
		queue->short_until_ns = now_ns + QUEUE_SHORT_NS;
		queue->short_before_ns = queue->short_ns;
		queue->short_ns = slice_ns;
	} else if (slice_ns < queue->short_ns) {
		queue->short_ns = slice_ns;
	}
}

/* Tells the CPUs of the domain that somebody waits in it. */
static __always_inline void queue_note_waiting(struct cpu_ctx *cpuc, u32 tier, u64 now_ns)
{
	struct llc_ctx *llcc = llc_find(cpuc->llc);

	if (cpu_waiting(cpu_queue(cpuc, tier)) &&
	    kernel_since(now_ns, READ_ONCE(llcc->waiting_ns)) > QUEUE_NOTE_NS)
		WRITE_ONCE(llcc->waiting_ns, now_ns);
}

/* A task is about to be put among those who wait. */
static void queue_admit(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);

	if (!cpu_waiting(queue)) {
		queue->floor_vt = taskc->deadline_vt;
		queue->span_vt = queue_span(taskc);
		queue->mixed = 0;
	} else {
		if (eevdf_before(taskc->deadline_vt, queue->floor_vt))
			queue->floor_vt = taskc->deadline_vt;
		queue->mixed |= queue_span(taskc) != queue->span_vt;
	}
	queue_note_slice(queue, taskc->slice_ns, now_ns);
	/* It may be due before the head that was taken and has not run yet. */
	cpuc->took_head = 0;
	queue->queued++;
	record_note(ROTA_RECORD_WAIT, 0, taskc, cpu, 0);
	queue_note_waiting(cpuc, taskc->tier, now_ns);
}

/*
 * Has the mask of a task that waits lost this CPU? Then the kernel puts it back into the queue
 * once more and at once afterwards where it may run. It leaves here, where V is that of
 * now; from there it is that of the last switch.
 */
static bool queue_departs(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
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
static __always_inline bool queue_direct(const struct task_struct *p, const struct task_ctx *taskc,
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
static void queue_enqueue(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			  u32 cpu, u64 enq_flags, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	bool wakes = enq_flags & ENQ_WAKEUP, comes, preempts;

	if (queue_departs(p, taskc, cpuc, cpu, now_ns)) {
		queue->queued++;
		kernel_insert_vtime(p, queue_id(taskc->tier, cpu), taskc->slice_ns,
				    taskc->deadline_vt, enq_flags);
		return;
	}
	if (taskc->joined >= 0 && taskc->joined != cpu)
		queue_leave(taskc, cpu, false);
	comes = wakes || taskc->rest_vt; /* from another CPU */
	if (taskc->joined < 0)
		queue_join(taskc, cpu, now_ns);
	else
		queue_charge_ahead(cpuc, now_ns);

	preempts = comes && queue_preempts(taskc, cpuc, cpu);
	if (preempts && !cpuc->local_taken) {
		/* Claimed: whoever wakes next waits in the queue. */
		cpuc->local_taken = 1;
		stats_preemption(cpuc->curr_class, taskc->class, cpu);
		record_preempt(taskc, cpuc, cpu);
		aside_note(taskc, cpuc);
		kernel_insert(p, DSQ_LOCAL, taskc->slice_ns, enq_flags | ENQ_PREEMPT);
		return;
	}
	if (wakes && queue_direct(p, taskc, cpuc, cpu)) {
		cpuc->local_taken = 1;
		record_at(ROTA_RECORD_PICK, ROTA_PICK_DIRECT, taskc, cpu, 0);
		kernel_insert(p, DSQ_LOCAL, taskc->slice_ns, enq_flags);
	} else {
		queue_admit(taskc, cpuc, cpu, now_ns);
		kernel_insert_vtime(p, queue_id(taskc->tier, cpu), taskc->slice_ns,
				    taskc->deadline_vt, enq_flags);
	}
	/* Second in line, after one that went to the local queue, or out of turn. */
	if (preempts || queue_gives_way(cpuc, taskc->tier) ||
	    (wakes && queue_cut_turn(taskc, cpuc, now_ns)))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	else if (timer_wanted(cpuc))
		timer_start(cpuc, cpu, now_ns);
}

/* The first task of a dispatch queue that may run on this CPU, for the record. */
static u32 queue_first_tid(u64 dsq, u32 cpu)
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
static bool queue_take(struct cpu_queue *queue, u64 dsq, u32 how)
{
	u32 tid = record_capacity ? queue_first_tid(dsq, queue->cpu) : 0;

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
static bool queue_pick_alike(struct cpu_queue *queue, u32 tier, struct cpu_ctx *cpuc, u32 cpu,
			     struct task_ctx *prevc)
{
	u64 dsq = queue_id(tier, cpu), head_vt;

	if (prevc) {
		if (!eevdf_before(queue->floor_vt, prevc->deadline_vt))
			return false;
		if (!queue_head(dsq, &head_vt)) {
			queue_check_empty(queue, tier, cpu);
			return false;
		}
		queue->floor_vt = head_vt;
		if (!eevdf_before(head_vt, prevc->deadline_vt))
			return false;
	}
	if (queue_take(queue, dsq, ROTA_PICK_DISPATCH)) {
		cpuc->took_head = 1;
		return true;
	}
	queue_check_empty(queue, tier, cpu);
	return false;
}

/* Lets the ghosts go that come before this deadline, unless it is the last look. */
static __always_inline bool queue_make_way(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt,
					   bool last)
{
	return !last && ghost_release(queue, now_vt, deadline_vt);
}

enum queue_choice {
	QUEUE_NOBODY, /* is eligible, or another CPU was quicker */
	QUEUE_PREV,   /* who ran goes on */
	QUEUE_TAKEN,
	QUEUE_AGAIN, /* a ghost came first, and V is another without it */
};

/*
 * Chooses the earliest deadline among the eligible. Those who are not and come before it are
 * passed over, or parked where they are many. The last look is at who is there, whatever ghosts
 * come before. Not static, as queue_join.
 */
__noinline int queue_choose(u32 tier, u32 cpu, struct task_ctx *prevc, bool last)
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
		queue_unpark(queue, tier, cpu, now_vt);
	if (goes_on && !eevdf_before(queue->floor_vt, until_vt))
		return queue_make_way(queue, now_vt, until_vt, last) ? QUEUE_AGAIN : QUEUE_PREV;
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
		if ((due || skips == QUEUE_SKIPS) && !alone &&
		    queue_make_way(queue, now_vt, taskc->deadline_vt, last))
			return QUEUE_AGAIN;
		/* Nobody else waits whose turn it could be when ghosts have made way. */
		if (alone &&
		    queue_make_way(queue, now_vt, due ? taskc->deadline_vt : until_vt, last))
			due = !eevdf_before(eevdf_now(&queue->tree), taskc->vt);
		if (!due) {
			if (skips >= QUEUE_SKIPS)
				queue_park(queue, &it, p, taskc);
			/* A count without an end would have the verifier look at each turn. */
			if (skips <= QUEUE_SKIPS)
				skips++;
			continue;
		}
		if (!cpu_allows(p, cpu) || !kernel_move(&it, p, DSQ_LOCAL, 0))
			continue;
		record_take(ROTA_PICK_DISPATCH, queue, record_capacity ? p->pid : 0);
		queue->queued--;
		return QUEUE_TAKEN;
	}
	if (queue_make_way(queue, now_vt, until_vt, last))
		return QUEUE_AGAIN;
	return goes_on ? QUEUE_PREV : QUEUE_NOBODY;
}

/* The same, once no ghost comes first any more. */
static bool queue_pick(struct cpu_queue *queue, u32 tier, u32 cpu, struct task_ctx *prevc)
{
	int choice = QUEUE_AGAIN;

	for (u32 turn = 1; turn <= QUEUE_TURNS && choice == QUEUE_AGAIN; turn++)
		choice = queue_choose(tier, cpu, prevc, turn == QUEUE_TURNS);
	if (choice == QUEUE_TAKEN || choice == QUEUE_PREV)
		return choice == QUEUE_TAKEN;
	queue_check_empty(queue, tier, cpu);
	if (prevc)
		return false;
	/* Somebody always is eligible, but for the rounding of V and who just left. */
	if (queue_take(queue, queue_id(tier, cpu), ROTA_PICK_LAST))
		return true;
	if (!queue->parked || !queue_take(queue, queue_parked_id(tier, cpu), ROTA_PICK_LAST))
		return false;
	queue->parked -= !!queue->parked;
	return true;
}

/*
 * Lets the ghosts go that come before all who are ready, and before who ran; true: V has
 * passed no other one, so that there is nothing to choose among those whose spans are alike.
 */
static bool queue_clear_way(struct cpu_queue *queue, const struct task_ctx *prevc)
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
static __always_inline void queue_go_on(struct cpu_queue *queue, const struct task_ctx *taskc)
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
__noinline bool queue_dispatch(u32 tier, u32 cpu, struct task_ctx *prevc)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	struct cpu_queue *queue = cpu_queue(cpuc, tier);

	if (prevc && prevc->tier != tier)
		prevc = NULL;
	if (!cpu_waiting(queue)) {
		if (prevc)
			queue_go_on(queue, prevc);
		return false;
	}
	queue_settle_gone(queue);
	if (queue->parked || queue->mixed || (prevc && queue_span(prevc) != queue->span_vt) ||
	    (queue->ghosts && !queue_clear_way(queue, prevc)))
		return queue_pick(queue, tier, cpu, prevc);
	return queue_pick_alike(queue, tier, cpuc, cpu, prevc);
}

/* The same, without a call where there is nobody: on its way to idle a CPU asks both tiers. */
static __always_inline bool queue_next(struct cpu_ctx *cpuc, u32 tier, u32 cpu,
				       struct task_ctx *prevc)
{
	return (prevc || cpu_waiting(cpu_queue(cpuc, tier))) && queue_dispatch(tier, cpu, prevc);
}
