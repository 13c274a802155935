/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: the fair and background tiers, one queue each per CPU.
 *
 * Problem: tasks must get CPU time in the ratio of their weights, and sleepers
 * must neither lose nor gain by sleeping.
 *
 * How: EEVDF (see eevdf.h). A task joins the queue of a CPU when it becomes
 * ready there and leaves it when it sleeps or migrates, taking its lag along;
 * a sleeper's ends when the queue has been empty since.
 * A turn ends with its request: where the next task is put into the queue, at a tick, or by
 * the timer (see timer).
 * Beside a shorter slice it ends so after that slice, though the request
 * goes on: otherwise who asks for 100 us would wait for 100 ms.
 * The running task's progress is added to V ahead of its charge, so that a
 * waking task is placed at the V of now, not of the last switch.
 * A task that another CPU pulled away is settled later: that CPU leaves a
 * note (cpu_departures), because it must not touch sums that are guarded by
 * our run queue lock.
 * Who is put among those who wait, and who is next: pick. Who need not wait: preempt.
 *
 * Limits: from afar V is that of the last switch, so that the lag of who is pulled is off
 * by what has run since.
 */

#define QUEUE_BRIEF_PART 8	   /* of a slice, at most, is a brief request */
#define QUEUE_LEAST_NS 200000	   /* a request that nobody chose is not shorter */
#define QUEUE_SPARE_NS 50000	   /* what takes longer is no choice */
#define QUEUE_SPARE_PART 32	   /* of the time, at most, nobody is charged for */
#define QUEUE_SPARE_LEFT_NS 500000 /* and no more than this at once */
#define QUEUE_SHORT_NS 256000000   /* for so long, and once more, a short slice is remembered */

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
	u64 done = CPU_ADD_ORDERED(queue->gone.done, 0);
	u64 w = READ_ONCE(queue->gone.w) - queue->seen_w;
	u64 wv = READ_ONCE(queue->gone.wv) - queue->seen_wv;

	/* Between the two additions of a departure: take both next time. */
	if (!w || CPU_ADD_ORDERED(queue->gone.begun, 0) != done)
		return;
	record_settle(queue, w, wv);
	queue->members -= done - queue->seen;
	queue->seen = done;
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

static __always_inline u64 queue_least(u64 a_ns, u64 b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/*
 * Who works for a moment is not charged for the choice that gave it the CPU, and that takes longer than
 * in the kernel's own class: for each us that it owes it waits until all others have had as much.
 * But for no more than a 32nd of the time of a CPU: those who wake each other all the time would
 * have far more than their share.
 */
static __always_inline void queue_spare(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
					u64 now_ns)
{
	u64 exact_ns, spared_ns, left_ns;

	if (!task_momentary(taskc) || taskc->used_ns > TASK_BRIEF_NS ||
	    !(knobs.fair & ROTA_BRIEF_REQUESTS))
		return;
	if (!cpuc->aside && !cpu_waiting(cpu_queue(cpuc, taskc->tier)))
		return;
	exact_ns = clock_exact(cpuc);
	if (!eevdf_before(now_ns, exact_ns))
		return;
	spared_ns = queue_least(exact_ns - now_ns, QUEUE_SPARE_NS);
	left_ns = cpuc->spare_ns + kernel_since(now_ns, cpuc->spare_at_ns) / QUEUE_SPARE_PART;
	left_ns = queue_least(left_ns, QUEUE_SPARE_LEFT_NS);
	spared_ns = queue_least(spared_ns, left_ns);
	cpuc->spare_ns = left_ns - spared_ns;
	cpuc->spare_at_ns = now_ns;
	cpuc->curr_spared_ns = spared_ns;
	cpuc->curr_at_ns += spared_ns;
}

/*
 * The last task leaves: V stays where that was, for whoever comes next. What sleepers owe is
 * forgotten, and so is what they are owed, see queue_lapsed().
 */
static void queue_reset(struct cpu_queue *queue, u64 vt)
{
	ghost_clear(queue);
	WRITE_ONCE(queue->emptied, queue->emptied + 1);
	queue->tree.zero_vt = vt;
	queue->members = 0;
	WRITE_ONCE(queue->tree.sum_w, 0);
	queue->tree.sum_wv = 0;
}

/*
 * How much the task asks for from now on, if nobody said: less than a slice where it weighs less
 * than half the mean. A whole one would be more than its share of a second, or of a minute: a debt
 * that all others have as lag so long, and take along when they move.
 */
static __always_inline void queue_ask(const struct cpu_queue *queue, struct task_ctx *taskc)
{
	u64 ns;

	if (!taskc->any_slice)
		return;
	ns = eevdf_request(taskc->slice_ns, QUEUE_LEAST_NS, taskc->weight, queue->members,
			   queue->tree.sum_w - queue->ghost_w);
	if (ns != taskc->request_ns)
		task_ask(taskc, ns, taskc->weight);
}

/*
 * A brief request, by what it lately used, if that is brief beside its slice and less than it
 * asks for else, or 0: tasks that keep each other busy, as hackbench's, would only take turns
 * more often.
 */
static __always_inline u64 queue_brief(const struct task_ctx *taskc)
{
	u64 brief_ns = knobs.fair & ROTA_BRIEF_REQUESTS ? task_brief(taskc) : 0;

	if (brief_ns * QUEUE_BRIEF_PART > taskc->slice_ns || brief_ns >= taskc->request_ns)
		return 0;
	return brief_ns;
}

/*
 * How far the deadline is ahead of a task that asks for this brief request: what it is owed and
 * that, or a whole one if that is less. A brief request alone, from where the task is, would
 * be due before V by all that it is owed, and go before who weighs more and is due from now on.
 */
static __always_inline u64 queue_brief_span(const struct task_ctx *taskc, u64 now_vt, u64 brief_ns)
{
	u64 span_vt;

	if (!brief_ns)
		return taskc->request_vt;
	span_vt = eevdf_vt(brief_ns, taskc->weight);
	if (eevdf_before(taskc->vt, now_vt))
		span_vt += now_vt - taskc->vt;
	return span_vt < taskc->request_vt ? span_vt : taskc->request_vt;
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

	if (!span_vt || span_vt > taskc->request_vt) {
		brief_ns = taskc->fresh ? 0 : queue_brief(taskc);
		span_vt = taskc->fresh ? taskc->request_vt / 2
				       : queue_brief_span(taskc, now_vt, brief_ns);
	}
	taskc->rest_vt = 0;
	taskc->fresh = 0;
	taskc->deadline_vt = taskc->vt + span_vt;
	return span_vt < taskc->request_vt ? brief_ns : 0;
}

/*
 * The same for one that goes on where its ghost was: its old request may be a whole slice,
 * because it had used an eighth of its slice when it fell asleep.
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
 * Has the queue that owes a sleeper something been empty since? Then those who had had its time
 * have been let off, and who is here now would pay for them. Another CPU may empty it just now:
 * then either answer is right.
 */
static __always_inline bool queue_lapsed(const struct task_ctx *taskc, u32 tier)
{
	s32 cpu = taskc->left;

	return cpu >= 0 &&
	       READ_ONCE(cpu_queue(cpu_find(cpu), tier)->emptied) != taskc->left_emptied;
}

/*
 * The lag with which a task joins. A debt on this CPU is paid when V has passed its ghost,
 * which is all that tells of a debt that a new weight has rounded to nothing. A claim may have lapsed.
 */
static s64 queue_lag(struct cpu_queue *queue, const struct task_ctx *taskc, u32 place, u64 now_vt)
{
	const struct cpu_ghost *ghost = ghost_at(queue, place);
	s64 lag_vt = taskc->vt;

	if (!place && lag_vt < 0)
		return taskc->left == queue->cpu ? 0 : lag_vt;
	if (!place)
		return lag_vt && queue_lapsed(taskc, queue->tier) ? 0 : lag_vt;
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
		queue_settle_gone(queue);
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
	queue->members++;
	queue_ask(queue, taskc);
	taskc->ghost = 0;
	brief_ns =
		how & ROTA_JOIN_GHOST ? queue_hasten(taskc) : queue_first_deadline(taskc, now_vt);
	if (brief_ns)
		queue->briefs = 1;
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
	bool here;

	if (!taskc)
		return 0;
	here = taskc->joined == cpu;
	queue = cpu_queue(cpu_find(taskc->joined), taskc->tier);
	vt = taskc->vt;
	w = taskc->weight;
	if (taskc->group)
		group_count(taskc->group, -1, -(s64)taskc->own_weight);
	taskc->rest_vt =
		!sleeps && eevdf_before(vt, taskc->deadline_vt) ? taskc->deadline_vt - vt : 0;

	if (here)
		queue_settle_gone(queue);
	if (here && queue->tree.sum_w == w + queue->ghost_w) {
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
	taskc->left_emptied = READ_ONCE(queue->emptied);
	if (here && sleeps && (s64)taskc->vt < 0) {
		ghost_make(queue, taskc, vt, now_vt);
		queue->members--;
		record_leave(ROTA_LEAVE_SLEEP | ROTA_LEAVE_GHOST, taskc, cpu, now_vt - taskc->vt,
			     now_vt);
	} else if (here) {
		eevdf_leave(&queue->tree, vt, w);
		queue->members--;
		record_leave(sleeps ? ROTA_LEAVE_SLEEP : 0, taskc, cpu, vt, now_vt);
	} else {
		record_leave(ROTA_LEAVE_AFAR | (sleeps ? ROTA_LEAVE_SLEEP : 0), taskc,
			     taskc->joined, vt, now_vt);
		CPU_ADD_ORDERED(queue->gone.begun, 1);
		__sync_fetch_and_add(&queue->gone.w, w);
		__sync_fetch_and_add(&queue->gone.wv, w * vt);
		CPU_ADD_ORDERED(queue->gone.done, 1);
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

/*
 * The next request of who has used one up: a brief one again while all that it has used since it
 * slept is brief. Else who needs a little longer once, for an interrupt or a fault, would wait for
 * the whole requests of all others. Returns V if it was looked at, for the record.
 */
static __always_inline u64 queue_renew(struct task_ctx *taskc, struct cpu_queue *queue)
{
	u64 now_vt;

	queue_ask(queue, taskc);
	if (taskc->used_ns * QUEUE_BRIEF_PART > taskc->slice_ns) {
		taskc->deadline_vt = taskc->vt + taskc->request_vt;
		return 0;
	}
	now_vt = eevdf_now(&queue->tree);
	taskc->deadline_vt = taskc->vt + queue_brief_span(taskc, now_vt, queue_brief(taskc));
	return now_vt;
}

/* Charges a running task for what it did, in time at full speed, since it was last charged. */
static void queue_charge(struct task_ctx *taskc, struct cpu_ctx *cpuc, u64 done_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 vt = eevdf_vt(done_ns, taskc->weight), now_vt = 0;

	taskc->vt += vt;
	if (taskc->joined < 0) {
		if (!eevdf_before(taskc->vt, taskc->deadline_vt))
			taskc->deadline_vt = taskc->vt + taskc->request_vt;
		return;
	}
	queue->tree.sum_wv += (s64)(vt * taskc->weight) - cpuc->ahead_wv;
	cpuc->ahead_wv = 0;
	if (!eevdf_before(taskc->vt, taskc->deadline_vt))
		now_vt = queue_renew(taskc, queue);
	record_charge(taskc, done_ns, now_vt);
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
