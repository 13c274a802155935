/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aside: who is interrupted for a moment goes on without being chosen again.
 *
 * Problem: who wakes beside a hog and works for some microseconds costs the hog a
 * queue, a choice and two callbacks, and the hog's CPU is what the next one waits for.
 *
 * How: the kernel leaves a task that has something left of its slice in the CPU's local
 * queue when another takes the CPU. So where that one is brief, and of those who wait none
 * would be chosen before the task that ran, this keeps the rest of its turn and goes on when the
 * other sleeps. If it would not be chosen then, the CPU is told to choose.
 *
 * Limits: only one for each CPU, and only of the fair tier. While it is aside no other CPU finds
 * it; whoever works for longer than he used to leaves the CPU at a tick, of whatever tier, and
 * a chain of binder calls goes on elsewhere.
 */

#define ASIDE_BRIEF_NS 300000	 /* who used more between two sleeps does not only interrupt */
#define ASIDE_LEFT_NS 100000	 /* of its turn a task has left at least that is kept aside */
#define ASIDE_LONGEST_NS 1000000 /* nobody is kept aside for longer, but to the next tick */

/* A task takes the CPU from the one that runs. */
static __always_inline void aside_note(const struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	cpuc->brief_next = taskc->brief_ns && taskc->brief_ns < ASIDE_BRIEF_NS &&
			   taskc->used_ns < ASIDE_BRIEF_NS && cpuc->curr_tier == ROTA_FAIR &&
			   !cpuc->curr_rescued;
}

/* Would this one be chosen if the CPU chose now? In doubt it would not. */
static __always_inline bool aside_wins(const struct task_ctx *taskc, const struct cpu_queue *queue)
{
	u64 now_vt;

	if (!cpu_waiting(queue))
		return true;
	if (eevdf_before(queue->floor_vt, taskc->deadline_vt))
		return false;
	now_vt = eevdf_now(&queue->tree);
	return !eevdf_before(now_vt, taskc->vt) &&
	       (!queue->parked || eevdf_before(now_vt, queue->parked_vt)) &&
	       !ghost_may_come(queue, now_vt, taskc->deadline_vt);
}

/* May the task that ran only go on here, as it is now? */
static __always_inline bool aside_stays(const struct task_ctx *taskc, const struct cpu_ctx *cpuc)
{
	return taskc->tier == ROTA_FAIR && !taskc->fair_weight && taskc->generation == generation &&
	       !cpuc->owner && !taskc->own;
}

/*
 * The task that ran, whose slice was taken, makes room for a brief one: it keeps the rest of its
 * turn. queued are those in the local queue.
 */
static __always_inline void aside_put(struct task_struct *p, struct task_ctx *taskc,
				      struct cpu_ctx *cpuc, u64 now_ns, s32 queued)
{
	u64 left_ns = kernel_since(cpuc->curr_end_ns, now_ns);

	if (left_ns < ASIDE_LEFT_NS || !aside_stays(taskc, cpuc) ||
	    !aside_wins(taskc, &cpuc->queues[0]))
		return;
	/*
	 * The one that takes the CPU is still there: nobody but it. The local queue is that of
	 * this CPU, which is another one where somebody changes the task while it runs.
	 */
	if (queued != 1 || p->thread_info.cpu != bpf_get_smp_processor_id())
		return;
	kernel_set_slice(p, left_ns);
	taskc->aside = 1;
	cpuc->aside = 1;
	cpuc->aside_at_ns = now_ns;
}

/* Is somebody kept aside here for longer than a moment? */
static __always_inline bool aside_late(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return cpuc->aside && kernel_since(now_ns, cpuc->aside_at_ns) > ASIDE_LONGEST_NS;
}

/* A task that is aside is taken out, as when its CPUs are changed. */
static __always_inline void aside_drop(struct task_ctx *taskc, struct cpu_ctx *cpuc)
{
	if (!taskc->aside)
		return;
	taskc->aside = 0;
	cpuc->aside = 0;
}

/*
 * It goes on, unless somebody else would be chosen now, or is in the local queue behind it: then the
 * CPU is told to choose.
 */
static __always_inline void aside_go_on(struct task_ctx *taskc, struct cpu_ctx *cpuc, u32 cpu)
{
	taskc->aside = 0;
	cpuc->aside = 0;
	if (!scx_bpf_dsq_nr_queued(DSQ_LOCAL) && aside_wins(taskc, &cpuc->queues[0]))
		record_pick(ROTA_PICK_KEEP, taskc, cpuc, cpu);
	else
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}
