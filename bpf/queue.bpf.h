/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: the fair and background tiers, one queue each per CPU.
 *
 * Problem: tasks must get CPU time in the ratio of their weights, sleepers
 * must neither lose nor gain by sleeping, and a wake-up must know at once
 * whether it may preempt.
 *
 * How: EEVDF (see eevdf.h). A task joins the queue of a CPU when it becomes
 * ready there and leaves it when it sleeps or migrates, taking its lag along.
 * Ready tasks wait in a dispatch queue of the kernel, ordered by deadline.
 * The running task's progress is added to V ahead of its charge, so that a
 * waking task is placed at the V of now, not of the last switch.
 * A task that another CPU pulled away is settled later: that CPU leaves a
 * note (cpu_departures), because it must not touch sums that are guarded by
 * our run queue lock.
 *
 * Limits: the pick is the earliest deadline, without the eligibility test on
 * picking; wake-up preemption does test it.
 */

/* Ids of dispatch queues: kind and CPU or cache domain. */
#define QUEUE_ID(kind, index) ((u64)(kind) << 32 | (u32)(index))
#define QUEUE_FAIR(cpu) QUEUE_ID(1, cpu)
#define QUEUE_BACKGROUND(cpu) QUEUE_ID(2, cpu)
#define QUEUE_CAPPED(cpu) QUEUE_ID(3, cpu)
#define QUEUE_PRIORITY(llc) QUEUE_ID(4, llc)

#define QUEUE_TIE_VT 16000    /* 1 us at nice 0: closer than this is level */
#define QUEUE_NOTE_NS 4000000 /* how exact llc_ctx.waiting_ns is kept */

static __always_inline u64 queue_id(u32 tier, u32 cpu)
{
	return tier == ROTA_BACKGROUND ? QUEUE_BACKGROUND(cpu) : QUEUE_FAIR(cpu);
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
	queue->seen_w += w;
	queue->seen_wv += wv;
	queue->tree.sum_w -= w;
	queue->tree.sum_wv -= wv - queue->tree.zero_vt * w;
	if (!queue->tree.sum_w)
		queue->tree.sum_wv = 0;
}

/* Adds what the running task has done since it was last looked at. */
static __always_inline void queue_charge_ahead(struct cpu_ctx *cpuc, u64 now_ns)
{
	s64 elapsed_ns = now_ns - cpuc->curr_at_ns;
	u64 vt;

	if (cpuc->curr_tier != ROTA_FAIR && cpuc->curr_tier != ROTA_BACKGROUND)
		return;
	if (elapsed_ns <= 0 || !cpuc->curr_tid || !cpuc->curr_weight)
		return;
	vt = eevdf_vt(elapsed_ns, cpuc->curr_weight);
	cpuc->curr_at_ns = now_ns;
	cpuc->curr_vt += vt;
	cpuc->ahead_wv += vt * cpuc->curr_weight;
	cpu_queue(cpuc, cpuc->curr_tier)->tree.sum_wv += vt * cpuc->curr_weight;
}

/*
 * A sleeper that had more than its share pays by waiting until V has caught
 * up, not for ever: the kernel leaves it in the queue until then and so do we,
 * in effect. On another CPU V says nothing about that, so it keeps its debt.
 */
static __always_inline s64 queue_decay(const struct task_ctx *taskc, u32 cpu, u64 now_vt)
{
	s64 lag_vt = taskc->vt;

	if (lag_vt >= 0 || taskc->left != cpu)
		return lag_vt;
	lag_vt += now_vt - taskc->left_vt;
	return lag_vt < 0 ? lag_vt : 0;
}

/* The task competes on this CPU from now on. */
static void queue_join(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 now_vt;

	taskc->joined = cpu;
	if (!queue->tree.sum_w) {
		/* Alone: there is nobody to owe or to be owed. */
		taskc->vt = queue->tree.zero_vt;
		taskc->deadline_vt = taskc->vt + taskc->request_vt;
		queue->tree.sum_w = taskc->weight;
		return;
	}
	queue_charge_ahead(cpuc, now_ns);
	queue_settle(queue);
	now_vt = eevdf_rebase(&queue->tree);
	taskc->vt =
		eevdf_place(&queue->tree, now_vt, queue_decay(taskc, cpu, now_vt), taskc->weight);
	taskc->deadline_vt = taskc->vt + taskc->request_vt;
	eevdf_join(&queue->tree, taskc->vt, taskc->weight);
}

/* The task no longer competes where it did; its lag goes with it. */
static void queue_leave(struct task_ctx *taskc, u32 cpu)
{
	struct cpu_ctx *cpuc = cpu_find(taskc->joined);
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 vt = taskc->vt, w = taskc->weight;

	if (taskc->joined == cpu && queue->tree.sum_w == w) {
		taskc->joined = -1;
		taskc->vt = 0;
		queue->tree.zero_vt = vt;
		queue->tree.sum_w = 0;
		queue->tree.sum_wv = 0;
		return;
	}
	/* From afar V may be one switch old: the lag is off by less than the clamp. */
	taskc->left_vt = eevdf_now(&queue->tree);
	taskc->left = taskc->joined;
	taskc->vt = eevdf_clamp(taskc->left_vt - vt, taskc->limit_vt);
	if (taskc->joined == cpu) {
		eevdf_leave(&queue->tree, vt, w);
	} else {
		__sync_fetch_and_add(&queue->gone.begun, 1);
		__sync_fetch_and_add(&queue->gone.w, w);
		__sync_fetch_and_add(&queue->gone.wv, w * vt);
		__sync_fetch_and_add(&queue->gone.done, 1);
	}
	taskc->joined = -1;
}

/* Charges a running task for what it did since it was last charged. */
static u64 queue_charge(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	u64 delta_ns = p->se.sum_exec_runtime - taskc->exec_ns;
	u64 vt = eevdf_vt(delta_ns, taskc->weight);

	taskc->exec_ns += delta_ns;
	taskc->vt += vt;
	if (!eevdf_before(taskc->vt, taskc->deadline_vt))
		taskc->deadline_vt = taskc->vt + taskc->request_vt;
	if (taskc->joined < 0)
		return delta_ns;
	cpu_queue(cpuc, taskc->tier)->tree.sum_wv += (s64)(vt * taskc->weight) - cpuc->ahead_wv;
	cpuc->ahead_wv = 0;
	return delta_ns;
}

/* The deadline of the first waiting task; false: none waits. */
static bool queue_head(u64 dsq, u64 *deadline_vt)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p = NULL;
	bool found = false;

	if (!bpf_iter_scx_dsq_new(&it, dsq, 0)) {
		p = bpf_iter_scx_dsq_next(&it);
		if (p) {
			*deadline_vt = p->scx.dsq_vtime;
			found = true;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/*
 * Corrects the count by tasks that the kernel took out. Not while another CPU
 * pulls: it may have taken a task that it has not counted yet, and a count
 * that is too low would hide the next task for ever.
 */
static void queue_check_empty(struct cpu_queue *queue, u64 dsq)
{
	u32 done = READ_ONCE(queue->gone.pull_done), pulled;

	if (scx_bpf_dsq_nr_queued(dsq))
		return;
	pulled = READ_ONCE(queue->gone.pulled);
	if (READ_ONCE(queue->gone.pull_begun) == done)
		queue->queued = pulled;
}

/* May a task that wakes take the CPU from the one that runs? */
static bool queue_preempts(const struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);
	u64 now_vt;

	if (cpuc->curr_tier != taskc->tier)
		return cpuc->curr_tier == ROTA_BACKGROUND;
	now_vt = eevdf_now(&queue->tree);
	if (eevdf_before(now_vt + QUEUE_TIE_VT, taskc->vt))
		return false; /* not eligible */
	if (cpu_waiting(queue) && !eevdf_before(taskc->deadline_vt, queue->floor_vt))
		return false; /* somebody else would be picked */
	if (!eevdf_before(cpuc->curr_vt + QUEUE_TIE_VT, now_vt))
		return true; /* the running task has had its share */
	return eevdf_before(taskc->deadline_vt +
				    eevdf_vt(knobs.slice_ns, cpuc->curr_weight ?: 1) / 2,
			    cpuc->curr_deadline_vt);
}

static void queue_insert(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			 u32 cpu, u64 enq_flags, u64 now_ns)
{
	struct cpu_queue *queue = cpu_queue(cpuc, taskc->tier);

	if (!cpu_waiting(queue) || eevdf_before(taskc->deadline_vt, queue->floor_vt))
		queue->floor_vt = taskc->deadline_vt;
	queue->queued++;
	if (kernel_since(now_ns, READ_ONCE(llc_find(cpuc->llc)->waiting_ns)) > QUEUE_NOTE_NS)
		WRITE_ONCE(llc_find(cpuc->llc)->waiting_ns, now_ns);
	kernel_insert_vtime(p, queue_id(taskc->tier, cpu), taskc->slice_ns, taskc->deadline_vt,
			    enq_flags);
}

/* A task of the fair or background tier is ready on this CPU. */
static void queue_enqueue(struct task_struct *p, struct task_ctx *taskc, struct cpu_ctx *cpuc,
			  u32 cpu, u64 enq_flags, u64 now_ns)
{
	if (taskc->joined >= 0 && taskc->joined != cpu)
		queue_leave(taskc, cpu);
	if (taskc->joined < 0)
		queue_join(taskc, cpuc, cpu, now_ns);
	else
		queue_charge_ahead(cpuc, now_ns);

	if ((enq_flags & ENQ_WAKEUP) && queue_preempts(taskc, cpuc)) {
		stats_preemption(cpuc->curr_class, taskc->class, cpu);
		kernel_insert(p, DSQ_LOCAL, taskc->slice_ns, enq_flags | ENQ_PREEMPT);
		return;
	}
	/*
	 * A task that may run nowhere else cannot be pulled: when nothing else
	 * waits it may take the direct way, which needs no dispatch.
	 */
	if ((enq_flags & ENQ_WAKEUP) && p->nr_cpus_allowed == 1 && !cpuc->local_taken &&
	    !cpu_waiting(cpu_queue(cpuc, taskc->tier)) && taskc->tier == ROTA_FAIR) {
		cpuc->local_taken = 1;
		kernel_insert(p, DSQ_LOCAL, taskc->slice_ns, enq_flags);
		return;
	}
	queue_insert(p, taskc, cpuc, cpu, enq_flags, now_ns);
}

/*
 * Finds the next task of the tier for this CPU. prev is not NULL when the
 * task that ran may go on: then the earlier deadline of the two wins.
 */
static bool queue_dispatch(u32 tier, struct cpu_ctx *cpuc, u32 cpu, struct task_struct *prev,
			   struct task_ctx *prevc)
{
	struct cpu_queue *queue = cpu_queue(cpuc, tier);
	u64 dsq = queue_id(tier, cpu), head_vt;

	if (!cpu_waiting(queue))
		return false;
	if (prev && prevc->tier == tier) {
		if (!eevdf_before(queue->floor_vt, prevc->deadline_vt))
			return false;
		if (!queue_head(dsq, &head_vt)) {
			queue_check_empty(queue, dsq);
			return false;
		}
		queue->floor_vt = head_vt;
		if (!eevdf_before(head_vt, prevc->deadline_vt))
			return false;
	}
	if (kernel_move_to_local(dsq)) {
		cpuc->took_head = 1;
		queue->queued--;
		return true;
	}
	queue_check_empty(queue, dsq);
	return false;
}
