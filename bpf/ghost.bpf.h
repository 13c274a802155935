/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ghost: sleepers that owe time stay in the sums of their queue.
 *
 * Problem: a sleeper that is ahead of V would pull V back if it left, and those
 * whom V has just passed would have to wait for it once more.
 *
 * How: as the kernel's delayed dequeue has it, such a sleeper stays as a ghost
 * until it wakes or would be picked: V has passed it, and whoever is next has
 * a later deadline. So V advances as slowly as if it were still there, and who
 * runs beside many that sleep most of the time has soon had its share. The least
 * virtual time and the least deadline of all ghosts spare most picks a look.
 *
 * Limits: a queue has GHOST_MAX; for one more those go that V has passed, or else one
 * that it has not, whose debt is forgotten.
 */

/* Takes a ghost out of the table. In the sums it still is. */
static __always_inline void ghost_forget(struct cpu_queue *queue, u32 slot)
{
	queue->ghosts &= ~(1ULL << slot);
	/* In this order: others read the difference of the weights. */
	WRITE_ONCE(queue->ghost_w, queue->ghost_w - queue->ghost[slot].weight);
}

/* Takes a ghost out of the sums, too. */
static __always_inline void ghost_end(struct cpu_queue *queue, u32 slot)
{
	ghost_forget(queue, slot);
	eevdf_leave(&queue->tree, queue->ghost[slot].vt, queue->ghost[slot].weight);
}

/*
 * Lets all ghosts go that V has passed and whose deadline comes before this one. Not
 * static: the verifier then looks at it once and not in each turn of its callers' loops.
 */
__noinline int ghost_sweep(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt)
{
	u64 least_vt = now_vt + GHOST_NEVER_VT, due_vt = least_vt, left;
	u32 slot;

	if (!queue)
		return 0;
	left = queue->ghosts;
	kernel_for(slot, 0, GHOST_MAX)
	{
		const struct cpu_ghost *ghost = &queue->ghost[slot & (GHOST_MAX - 1)];

		if (!(left >> slot))
			break;
		if (!(left >> slot & 1))
			continue;
		if (!eevdf_before(now_vt, ghost->vt) &&
		    eevdf_before(ghost->deadline_vt, deadline_vt)) {
			record_release(queue, slot);
			ghost_end(queue, slot & (GHOST_MAX - 1));
			continue;
		}
		if (eevdf_before(ghost->vt, least_vt))
			least_vt = ghost->vt;
		if (eevdf_before(ghost->deadline_vt, due_vt))
			due_vt = ghost->deadline_vt;
	}
	queue->ghost_least_vt = least_vt;
	queue->ghost_due_vt = due_vt;
	return 0;
}

/* Who is next has this deadline: lets the ghosts go that come before; true: there were some. */
static __always_inline bool ghost_release(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt)
{
	u64 was = queue->ghosts;

	if (!was || eevdf_before(now_vt, queue->ghost_least_vt) ||
	    !eevdf_before(queue->ghost_due_vt, deadline_vt))
		return false;
	ghost_sweep(queue, now_vt, deadline_vt);
	return queue->ghosts != was;
}

/* A place in the table for the ghost of this task. */
static __always_inline u32 ghost_place(struct cpu_queue *queue, u32 tid, u64 now_vt)
{
	u32 slot = tid & (GHOST_MAX - 1);

	if (!~queue->ghosts)
		ghost_sweep(queue, now_vt, now_vt + GHOST_NEVER_VT);
	if (~queue->ghosts)
		return __builtin_ctzll(~queue->ghosts);
	record_release(queue, slot);
	ghost_end(queue, slot);
	return slot;
}

/*
 * A task that slept at vt becomes a ghost. Its debt is bounded as its lag is: so
 * much less it is ahead, and its deadline.
 */
static void ghost_make(struct cpu_queue *queue, struct task_ctx *taskc, u64 vt, u64 now_vt)
{
	u64 bounded_vt = now_vt - taskc->vt, forgiven_vt = vt - bounded_vt;
	u32 slot = ghost_place(queue, taskc->tid, now_vt) & (GHOST_MAX - 1);
	struct cpu_ghost *ghost = &queue->ghost[slot];

	ghost->vt = bounded_vt;
	ghost->deadline_vt = taskc->deadline_vt - forgiven_vt;
	ghost->weight = taskc->weight;
	ghost->tid = taskc->tid;
	queue->tree.sum_wv -= (s64)forgiven_vt * (s64)taskc->weight;
	if (!queue->ghosts || eevdf_before(ghost->vt, queue->ghost_least_vt))
		queue->ghost_least_vt = ghost->vt;
	if (!queue->ghosts || eevdf_before(ghost->deadline_vt, queue->ghost_due_vt))
		queue->ghost_due_vt = ghost->deadline_vt;
	queue->ghosts |= 1ULL << slot;
	queue->ghost_w += taskc->weight;
	taskc->ghost = slot + 1;
}

/* The ghost that a task has in this queue, which it left last; NULL: none any more. */
static __always_inline const struct cpu_ghost *ghost_of(const struct cpu_queue *queue,
							const struct task_ctx *taskc, u32 *slot)
{
	*slot = (taskc->ghost - 1) & (GHOST_MAX - 1);
	if (!taskc->ghost || taskc->left != queue->cpu || !(queue->ghosts & (1ULL << *slot)) ||
	    queue->ghost[*slot].tid != taskc->tid)
		return NULL;
	return &queue->ghost[*slot];
}

/* Nobody else is left: there is nobody who would have to wait. */
static __always_inline void ghost_clear(struct cpu_queue *queue)
{
	queue->ghosts = 0;
	WRITE_ONCE(queue->ghost_w, 0);
}
