/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * group: cgroups, and what a task in one weighs.
 *
 * Problem: cpu.weight is the weight of a whole cgroup, shared by all that is in
 * it, level by level; our queues know tasks only.
 *
 * How: the tree is flattened. A task weighs its own weight x the scale of its
 * group, and the scale is that of the parent x cpu.weight / what is active in the
 * group: the weights of its tasks that compete, and of its child groups in the
 * part of the time that they are active, averaged over some 60 ms while the
 * group is active at all. Each CPU adds up the weight it makes join and leave,
 * over time, without an atomic; CPUs take turns in adding these sums up, one
 * group after another, at their ticks. A task takes a new scale over where it
 * next enters a queue.
 *
 * Limits: ROTA_MAX_GROUPS cgroups; further ones, and deeper ones than GROUP_DEPTH, count as part
 * of their parent: nobody gets out of a limit by cgroups of his own below it.
 * Weights are whole numbers, so groups in which more than 100 tasks compete are
 * coarse. A scale is off while a group's activity changes, for some 100 ms.
 * Tasks of tier priority do not count. cpu.idle is not looked at.
 */

#define GROUP_DEPTH 16 /* levels of cgroups that are known apart: a charge goes through all */
#define GROUP_SCALE_SHIFT 16
#define GROUP_MAX_SCALE (1 << 30)
#define GROUP_FINE_SHIFT 4
#define GROUP_ONE 1024		      /* a task that competes all the time; a weight of nice 0 */
#define GROUP_VISIT_NS 16000000	      /* a group is looked at no more often */
#define GROUP_AGAIN_NS 2000000	      /* nor are any looked at */
#define GROUP_CELLS 1024	      /* groups x CPUs that one tick adds up, about */
#define GROUP_OLD_NS 200000000	      /* what was before says nothing */
#define GROUP_ABSENT_NS 8000000000ULL /* sums over longer may not fit */

enum group_use {
	GROUP_FREE = 0,
	GROUP_USED = 1,
	GROUP_LEAVING = 2, /* to be freed by whoever visits */
};

/* One cgroup. 0 is the root, and whoever is not known. */
struct group {
	u32 used; /* enum group_use */
	u32 parent;
	u32 weight; /* cpu.weight, 100: the default */
	u32 scale;  /* of its tasks' weights, 1 << GROUP_SCALE_SHIFT: 1 */
	u32 epoch;  /* counts changes of the scale */
	u32 limit;  /* see limit.bpf.h: the nearest limited group from here up, 0: none */
	/* Means over time, guarded by group_busy: tasks in 1/1024, and their weight. */
	u64 mean_n, mean_w;   /* shifted by GROUP_FINE_SHIFT */
	u64 child_n, child_w; /* what its child groups add to that, without the shift */
	u64 put_n, put_w;     /* what it adds to its parent's sums */
	u64 seen_n, seen_w, seen_ns;
	/* cpu.max, see limit.bpf.h. */
	u64 quota_ns; /* 0: no limit */
	u64 period_ns;
	u64 burst_ns;
	u64 period_end_ns; /* compare and exchange; partner: itself */
	s64 pool_ns;	   /* atomic add; CPU time that nobody has taken yet in this period */
} __attribute__((aligned(64)));

/* What one CPU made of a group: all callbacks that it executes, whatever CPU they are about. */
struct group_cell {
	u64 at_ns;
	s64 n, w;	  /* tasks that it made compete, less those that it made stop */
	u64 sum_n, sum_w; /* the same x time, until at_ns, modulo 2^64 */
	s64 budget_ns;	  /* taken from the group's pool and not used yet */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct group_cell);
	__uint(max_entries, ROTA_MAX_GROUPS);
} group_cells SEC(".maps");

/* The group in which a cgroup's tasks count. */
struct cgroup_ctx {
	u32 group;
	u32 own; /* it is not that of its parent */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cgroup_ctx);
} cgroup_ctxs SEC(".maps");

struct group groups[ROTA_MAX_GROUPS];
u32 group_end;	   /* one more than the highest index in use */
u32 group_next;	   /* whose turn it is; guarded by group_busy */
u32 group_busy;	   /* compare and exchange: somebody visits; partner: itself */
u64 group_next_ns; /* when the next visits are due; guarded by group_busy, read as a hint */

static void group_init(void)
{
	groups[0].scale = 1 << GROUP_SCALE_SHIFT;
	group_end = 1;
}

static __always_inline struct group *group_find(u32 index)
{
	return &groups[index & (ROTA_MAX_GROUPS - 1)];
}

/* Where this CPU counts for a group. */
static __always_inline struct group_cell *group_cell(u32 index)
{
	return bpf_map_lookup_elem(&group_cells, &index);
}

/* The group of a cgroup, 0: none of its own. */
static u32 group_of(struct cgroup *cgrp)
{
	struct cgroup_ctx *cgroupc = bpf_cgrp_storage_get(&cgroup_ctxs, cgrp, NULL, 0);

	return cgroupc ? cgroupc->group : 0;
}

/* The same without its parent's. */
static u32 group_own(struct cgroup *cgrp)
{
	struct cgroup_ctx *cgroupc = bpf_cgrp_storage_get(&cgroup_ctxs, cgrp, NULL, 0);

	return cgroupc && cgroupc->own ? cgroupc->group : 0;
}

static u32 group_of_task(struct task_struct *p)
{
	struct cgroup *cgrp = kernel_task_cgroup(p);
	u32 index;

	if (!cgrp)
		return 0;
	index = group_of(cgrp);
	bpf_cgroup_release(cgrp);
	return index;
}

/* n tasks of this weight in all begin to compete, or stop to if negative. */
static void group_count(u32 index, s32 n, s64 weight)
{
	struct group_cell *cell = group_cell(index);
	u64 now_ns = bpf_ktime_get_ns(), span_ns;

	if (!cell)
		return;
	span_ns = kernel_since(now_ns, cell->at_ns);
	cell->sum_n += cell->n * span_ns;
	cell->sum_w += cell->w * span_ns;
	cell->at_ns = now_ns;
	cell->n += n;
	cell->w += weight;
}

/* The mean since the last visit, taken into the mean so far unless that is old. */
static __always_inline u64 group_mean(u64 mean, u64 sum, u64 span_ns)
{
	u64 latest = (s64)sum < 0 ? 0 : sum / (span_ns >> GROUP_FINE_SHIFT);

	return span_ns > GROUP_OLD_NS ? latest : (3 * mean + latest) / 4;
}

/*
 * Adds up what all CPUs counted for a group. They go on meanwhile: a sum that was
 * read between two writes is off once and right the next time, because sums
 * only grow.
 */
static void group_measure(u32 index, struct group *group, u64 now_ns)
{
	u64 n = 0, w = 0, span_ns = kernel_since(now_ns, group->seen_ns);
	u32 cpu;

	kernel_for(cpu, 0, topology.nr_cpus)
	{
		struct group_cell *cell = bpf_map_lookup_percpu_elem(&group_cells, &index, cpu);
		u64 since_ns;

		if (!cell)
			continue;
		since_ns = kernel_since(now_ns, cell->at_ns);
		n += cell->sum_n + cell->n * since_ns;
		w += cell->sum_w + cell->w * since_ns;
	}
	if (span_ns < GROUP_ABSENT_NS) {
		group->mean_n = group_mean(group->mean_n, (n - group->seen_n) * GROUP_ONE, span_ns);
		group->mean_w = group_mean(group->mean_w, w - group->seen_w, span_ns);
	}
	group->seen_n = n;
	group->seen_w = w;
	group->seen_ns = now_ns;
}

/* cpu.weight on the scale of task weights. */
static __always_inline u64 group_share(const struct group *group)
{
	return (u64)group->weight * EEVDF_NICE0_WEIGHT / 100;
}

/* What is added to the parent's sums in place of what was. */
static __always_inline void group_put(struct group *group, u64 n, u64 w)
{
	struct group *parent = group_find(group->parent);

	parent->child_n += n - group->put_n;
	parent->child_w += w - group->put_w;
	group->put_n = n;
	group->put_w = w;
}

/* Sets what a task of weight 1 in the group weighs, given what competes inside. */
static void group_set_scale(struct group *group, u64 inside)
{
	u64 scale = group_find(group->parent)->scale * group_share(group) / (inside ?: 1);

	if (scale > GROUP_MAX_SCALE)
		scale = GROUP_MAX_SCALE;
	/* Changes that a weight of 256 would not show are not worth it. */
	if (scale + (scale >> 8) >= group->scale && group->scale + (group->scale >> 8) >= scale)
		return;
	group->scale = scale ?: 1;
	group->epoch++;
}

static void group_rescale(struct group *group)
{
	u64 active = (group->mean_n >> GROUP_FINE_SHIFT) + group->child_n, inside;

	if (active > GROUP_ONE)
		active = GROUP_ONE;
	group_put(group, active, group_share(group) * active / GROUP_ONE);
	if (!active) {
		/* Who comes back after a long sleep is taken for one task of nice 0. */
		group_set_scale(group, EEVDF_NICE0_WEIGHT);
		return;
	}
	inside = (group->mean_w + (group->child_w << GROUP_FINE_SHIFT)) * GROUP_ONE / active;
	group_set_scale(group, inside >> GROUP_FINE_SHIFT);
}

/* Lets a group go once no child of it has something in its sums. */
static void group_let_go(struct group *group)
{
	group_put(group, 0, 0);
	if (!group->child_n && !group->child_w)
		WRITE_ONCE(group->used, GROUP_FREE);
}

/* Brings one group up to date. Guarded by group_busy. */
__noinline int group_visit(u32 index, u64 now_ns)
{
	struct group *group = group_find(index);

	if (group->used == GROUP_LEAVING)
		group_let_go(group);
	if (group->used != GROUP_USED || kernel_since(now_ns, group->seen_ns) < GROUP_VISIT_NS)
		return 0;
	group_measure(index, group, now_ns);
	group_rescale(group);
	return 0;
}

/* Visits some groups; called at ticks. */
static void group_visit_some(u64 tick_ns)
{
	u32 turn, turns = GROUP_CELLS / (topology.nr_cpus ?: 1) + 1;
	u64 now_ns = bpf_ktime_get_ns(); /* the clock of the cells, not that of ticks */

	if (__sync_val_compare_and_swap(&group_busy, 0, 1))
		return;
	kernel_for(turn, 0, turns < group_end ? turns : group_end)
	{
		group_next = group_next + 1 < group_end ? group_next + 1 : 1;
		group_visit(group_next, now_ns);
	}
	group_next_ns = tick_ns + GROUP_AGAIN_NS;
	WRITE_ONCE(group_busy, 0);
}

static __always_inline void group_tick(u64 now_ns)
{
	if (group_end > 1 && !eevdf_before(now_ns, READ_ONCE(group_next_ns)))
		group_visit_some(now_ns);
}

/* A free group, 0: there is none. The kernel makes one cgroup at a time. */
static u32 group_take(void)
{
	u32 index;

	kernel_for(index, 1, ROTA_MAX_GROUPS)
	{
		struct group *group = group_find(index);

		if (group->used != GROUP_FREE)
			continue;
		if (index >= group_end)
			WRITE_ONCE(group_end, index + 1);
		return index;
	}
	return 0;
}

static u32 group_parent(struct cgroup *cgrp)
{
	struct cgroup *above = cgrp->level > 0 ? bpf_cgroup_ancestor(cgrp, cgrp->level - 1) : NULL;
	u32 index;

	if (!above)
		return 0;
	index = group_of(above);
	bpf_cgroup_release(above);
	return index;
}

/* Gives a new cgroup a group, or that of its parent if there is none left, or it is too deep. */
static void group_make(struct cgroup *cgrp, struct cgroup_ctx *cgroupc, u32 weight)
{
	u32 index, parent = group_parent(cgrp);
	struct group *group;

	cgroupc->group = parent;
	index = cgrp->level > 0 && cgrp->level <= GROUP_DEPTH ? group_take() : 0;
	if (!index)
		return;
	cgroupc->group = index;
	cgroupc->own = 1;
	group = group_find(index);
	group->parent = parent;
	group->weight = weight;
	group->mean_n = group->mean_w = 0;
	group->child_n = group->child_w = 0;
	group->put_n = group->put_w = 0;
	group->seen_ns = 0;
	group_set_scale(group, EEVDF_NICE0_WEIGHT);
	WRITE_ONCE(group->used, GROUP_USED);
}

/* Whoever still is in it goes on with its index, and leaves the sums as it joined them. */
static __always_inline void group_leave(u32 index)
{
	WRITE_ONCE(group_find(index)->used, GROUP_LEAVING);
}
