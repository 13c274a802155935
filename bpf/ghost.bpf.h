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
 * runs beside many that sleep most of the time has soon had its share. Ghosts are
 * kept by virtual time: a look is at those only that V has passed, and most picks
 * are spared it. A new one is as a rule the last, or near it.
 *
 * Limits: a queue has one less than GHOST_PLACES; for one more those go that V has
 * passed, or else the first that it has not, whose debt is forgotten.
 */

static __always_inline struct cpu_ghost *ghost_at(struct cpu_queue *queue, u32 place)
{
	return &queue->ghost[place & (GHOST_PLACES - 1)];
}

/* Takes a ghost out of the table. In the sums it still is. */
static __always_inline void ghost_forget(struct cpu_queue *queue, u32 place)
{
	struct cpu_ghost *ghost = ghost_at(queue, place);

	ghost_at(queue, ghost->before)->after = ghost->after;
	ghost_at(queue, ghost->after)->before = ghost->before;
	queue->ghosts &= ~(1ULL << place);
	/* In this order: others read the difference of the weights. */
	WRITE_ONCE(queue->ghost_w, queue->ghost_w - ghost->weight);
}

/* Takes a ghost out of the sums, too. */
static __always_inline void ghost_end(struct cpu_queue *queue, u32 place)
{
	const struct cpu_ghost *ghost = ghost_at(queue, place);

	ghost_forget(queue, place);
	eevdf_leave(&queue->tree, ghost->vt, ghost->weight);
}

/*
 * Lets all ghosts go that V has passed and whose deadline comes before this one. Not
 * static: the verifier then looks at it once and not in each turn of its callers' loops.
 */
__noinline int ghost_sweep(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt)
{
	u64 next_vt = now_vt + GHOST_NEVER_VT, due_vt = next_vt;
	u32 place, after, turn;

	if (!queue)
		return 0;
	place = ghost_at(queue, 0)->after;
	kernel_for(turn, 1, GHOST_PLACES)
	{
		const struct cpu_ghost *ghost = ghost_at(queue, place);

		if (!place)
			break;
		if (eevdf_before(now_vt, ghost->vt)) {
			next_vt = ghost->vt;
			break;
		}
		after = ghost->after;
		if (eevdf_before(ghost->deadline_vt, deadline_vt)) {
			record_release(queue, place);
			ghost_end(queue, place & (GHOST_PLACES - 1));
		} else if (eevdf_before(ghost->deadline_vt, due_vt)) {
			due_vt = ghost->deadline_vt;
		}
		place = after;
	}
	queue->ghost_next_vt = next_vt;
	queue->ghost_due_vt = due_vt;
	return 0;
}

/* This one goes: if it was the earliest that V has passed, the next look finds out which is then. */
static __always_inline void ghost_look_again(struct cpu_queue *queue, const struct cpu_ghost *ghost,
					     u64 now_vt)
{
	if (ghost->deadline_vt == queue->ghost_due_vt && eevdf_before(now_vt, queue->ghost_next_vt))
		queue->ghost_next_vt = now_vt;
}

/* May V have passed ghosts that come before who has this deadline? A look tells. */
static __always_inline bool ghost_may_come(const struct cpu_queue *queue, u64 now_vt,
					   u64 deadline_vt)
{
	return queue->ghosts && (!eevdf_before(now_vt, queue->ghost_next_vt) ||
				 eevdf_before(queue->ghost_due_vt, deadline_vt));
}

/* Who is next has this deadline: lets the ghosts go that come before; true: there were some. */
static __always_inline bool ghost_release(struct cpu_queue *queue, u64 now_vt, u64 deadline_vt)
{
	u64 was = queue->ghosts;

	if (!ghost_may_come(queue, now_vt, deadline_vt))
		return false;
	ghost_sweep(queue, now_vt, deadline_vt);
	return queue->ghosts != was;
}

/* Has V passed none of those that are left? Who is the first by virtual time then is eligible. */
static __always_inline bool ghost_none_passed(const struct cpu_queue *queue, u64 now_vt)
{
	return eevdf_before(now_vt, queue->ghost_next_vt) &&
	       eevdf_before(now_vt + GHOST_NEVER_VT / 2, queue->ghost_due_vt);
}

/* Is there no place for another ghost? */
static __always_inline bool ghost_full(const struct cpu_queue *queue)
{
	return !~(queue->ghosts | 1);
}

/* A free place in the table. */
static __always_inline u32 ghost_place(struct cpu_queue *queue, u64 now_vt)
{
	u32 first;

	if (ghost_full(queue))
		ghost_release(queue, now_vt, now_vt + GHOST_NEVER_VT);
	if (ghost_full(queue)) {
		first = ghost_at(queue, 0)->after & (GHOST_PLACES - 1);
		record_release(queue, first);
		ghost_end(queue, first);
	}
	return __builtin_ctzll(~(queue->ghosts | 1));
}

/* Puts a ghost behind those of an earlier virtual time. */
static void ghost_sort(struct cpu_queue *queue, u32 place)
{
	struct cpu_ghost *ghost = ghost_at(queue, place);
	u32 before = ghost_at(queue, 0)->before, turn;

	if (before && eevdf_before(ghost->vt, ghost_at(queue, before)->vt)) {
		kernel_for(turn, 1, GHOST_PLACES)
		{
			before = ghost_at(queue, before)->before;
			if (!before || !eevdf_before(ghost->vt, ghost_at(queue, before)->vt))
				break;
		}
	}
	ghost->before = before;
	ghost->after = ghost_at(queue, before)->after;
	ghost_at(queue, before)->after = place;
	ghost_at(queue, ghost->after)->before = place;
}

/*
 * A task that slept at vt becomes a ghost. Its debt is bounded as its lag is: so
 * much less it is ahead, and its deadline.
 */
static void ghost_make(struct cpu_queue *queue, struct task_ctx *taskc, u64 vt, u64 now_vt)
{
	u64 bounded_vt = now_vt - taskc->vt, forgiven_vt = vt - bounded_vt;
	u32 place = ghost_place(queue, now_vt);
	struct cpu_ghost *ghost = ghost_at(queue, place);

	ghost->vt = bounded_vt;
	ghost->deadline_vt = taskc->deadline_vt - forgiven_vt;
	ghost->weight = taskc->weight;
	ghost->tid = taskc->tid;
	queue->tree.sum_wv -= (s64)forgiven_vt * (s64)taskc->weight;
	if (!queue->ghosts)
		queue->ghost_due_vt = now_vt + GHOST_NEVER_VT;
	if (!queue->ghosts || eevdf_before(ghost->vt, queue->ghost_next_vt))
		queue->ghost_next_vt = ghost->vt;
	ghost_sort(queue, place);
	queue->ghosts |= 1ULL << place;
	queue->ghost_w += taskc->weight;
	taskc->ghost = place;
}

/* The place of the ghost that a task has in this queue, which it left last; 0: it has none. */
static __always_inline u32 ghost_of(struct cpu_queue *queue, const struct task_ctx *taskc)
{
	u32 place = taskc->ghost & (GHOST_PLACES - 1);

	if (!place || taskc->left != queue->cpu || !(queue->ghosts & (1ULL << place)) ||
	    ghost_at(queue, place)->tid != taskc->tid)
		return 0;
	return place;
}

/* Nobody else is left: there is nobody who would have to wait. */
static __always_inline void ghost_clear(struct cpu_queue *queue)
{
	queue->ghosts = 0;
	ghost_at(queue, 0)->before = ghost_at(queue, 0)->after = 0;
	WRITE_ONCE(queue->ghost_w, 0);
}
