/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * place: which CPU a task should run on, and how idle CPUs find work.
 *
 * Problem: queues are per CPU, so a task can wait on one CPU while another
 * is idle or has fewer tasks.
 *
 * How: a wake-up takes an idle CPU by the kernel's own rule (previous CPU,
 * its core, its cache domain; sync wake-ups stay close). Where nobody is idle a sync wake-up goes to
 * the waker's CPU unless that has more to do; a new task starts on the least loaded CPU of the domain,
 * by what the priority tier leaves of each, and not on one that a real-time task has. A CPU that runs
 * dry pulls the first task of another queue, in its domain before elsewhere. Every few milliseconds a
 * busy CPU pulls one from a CPU that a real-time task has, or if another stays ahead even without
 * it, both now and in the mean of the last ticks, so that hogs spread evenly by
 * weight and tasks that come and go move nobody. Where hogs are one too many for that they
 * change roles.
 *
 * Where classes own CPUs (see own) all of this is among the CPUs where the task
 * belongs, and a task that is elsewhere is sent to one of them.
 *
 * Limits: the weights of other CPUs are read without their locks; a stale
 * value makes one pull too many or too few, which the next period repairs. A sync wake-up from an
 * interrupt counts as one of the task below it. Of real-time work only what is long is noticed.
 */

#define PLACE_BALANCE_NS 8000000
#define PLACE_SILENT_NS 10000000 /* a count that is wrong for longer is not a race */
#define PLACE_ROTATE_NS 50000000 /* so long who has less of a CPU than others stays so */
#define PLACE_FIRST_NS 16000000	 /* so long later, where others have had less for longer */
#define PLACE_ROTATE_LOOKS 8	 /* at so many who wait */
#define PLACE_EVEN_PART 16	 /* for that, loads differ by a task's weight but for this part, */
#define PLACE_LEVEL_PART 4	 /* and their means but for this part */
#define PLACE_NEAR_CPUS 4
#define PLACE_MEAN 8		   /* the mean load moves by so much a part at each tick */
#define PLACE_STALE_NS 40000000	   /* a CPU that has not ticked for so long was idle: no mean */
#define PLACE_WAITING_NS 128000000 /* the longest slice, and some ticks */
#define PLACE_SEARCHED_NS 1000000  /* so long a search in vain counts */
#define PLACE_WHOLE 1024	   /* all of a CPU's time */
#define PLACE_LEAST 64		   /* so much of it the priority tier leaves at least */
#define PLACE_NEVER (1ULL << 62)   /* more than any load */

/* Load of a CPU: the weights that compete for it, without ghosts and departures not yet settled. */
static __always_inline u64 place_load(const struct cpu_ctx *cpuc)
{
	const struct cpu_queue *queue = &cpuc->queues[0];

	return READ_ONCE(queue->tree.sum_w) - READ_ONCE(queue->ghost_w) -
	       (READ_ONCE(queue->gone.w) - READ_ONCE(queue->seen_w));
}

/* At a tick: tasks that come and go between two moves of others are no reason to move one. */
static __always_inline void place_note_load(struct cpu_ctx *cpuc, u64 now_ns)
{
	u64 load = place_load(cpuc), mean = cpuc->load_mean;
	u32 taken = cpuc->curr_tier == ROTA_PRIORITY ? PLACE_WHOLE : 0;

	if (kernel_since(now_ns, cpuc->load_at_ns) > PLACE_STALE_NS) {
		mean = load * PLACE_MEAN;
		cpuc->taken_mean = 0;
	}
	WRITE_ONCE(cpuc->taken_mean, cpuc->taken_mean - cpuc->taken_mean / PLACE_MEAN + taken);
	WRITE_ONCE(cpuc->load_mean, mean - mean / PLACE_MEAN + load);
	WRITE_ONCE(cpuc->load_at_ns, now_ns);
}

/* The mean load, or the load of now where none is known. */
static __always_inline u64 place_mean(const struct cpu_ctx *cpuc, u64 load, u64 now_ns)
{
	if (kernel_since(now_ns, READ_ONCE(cpuc->load_at_ns)) > PLACE_STALE_NS)
		return load;
	return READ_ONCE(cpuc->load_mean) / PLACE_MEAN;
}

/*
 * A load, by what the priority tier leaves of the CPU: whoever competes there for a tenth of it is as badly off as
 * among ten.
 */
static __always_inline u64 place_crowd(const struct cpu_ctx *cpuc, u64 load)
{
	u32 taken = READ_ONCE(cpuc->taken_mean) / PLACE_MEAN;

	if (!taken)
		return load;
	return load * PLACE_WHOLE /
	       (taken < PLACE_WHOLE - PLACE_LEAST ? PLACE_WHOLE - taken : PLACE_LEAST);
}

/*
 * Nothing of ours runs there, and has not for long: a real-time task has the CPU, and whoever waits
 * there does so until it sleeps. One that is idle looks the same.
 */
static __always_inline bool place_held(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return !READ_ONCE(cpuc->curr_tid) &&
	       kernel_since(now_ns, READ_ONCE(cpuc->curr_at_ns)) > PLACE_SILENT_NS;
}

/* What a task of this weight that comes to a busy CPU would compete with, and itself. */
static __always_inline u64 place_prospect(const struct cpu_ctx *cpuc, u32 weight, bool held)
{
	return held ? PLACE_NEVER : place_crowd(cpuc, place_load(cpuc) + weight);
}

/*
 * May a task leave its queue for this CPU? One that was preempted where it must not migrate
 * has all its CPUs in its mask until it is switched out, and moving it would end rota.
 */
static bool place_may_move(struct task_struct *p, u32 cpu)
{
	return cpu_allows(p, cpu) && (!kernel_pinned(p) || p->thread_info.cpu == cpu);
}

/*
 * The other CPU of this owner where the task does best among those on which it may run;
 * -1: none.
 */
__noinline s32 place_elsewhere(struct task_struct *p __trusted, u32 own, u32 cpu)
{
	const struct cpumask *online, *idle;
	u32 n, nr = topology.nr_cpus;
	u64 least = 0, load;
	s32 best = -1;

	if (p->nr_cpus_allowed == 1 || kernel_pinned(p))
		return -1;
	online = scx_bpf_get_online_cpumask();
	idle = scx_bpf_get_idle_cpumask();
	kernel_for(n, 1, nr)
	{
		u32 to = (cpu + n) % (nr ?: 1);
		const struct cpu_ctx *toc = cpu_find(to);

		if (toc->owner != own || !cpu_allows(p, to) || !bpf_cpumask_test_cpu(to, online))
			continue;
		/* Held even for a moment: in the local queue nobody would find it. */
		load = bpf_cpumask_test_cpu(to, idle)
			       ? 0
			       : place_prospect(toc, EEVDF_NICE0_WEIGHT, !READ_ONCE(toc->curr_tid));
		if (best >= 0 && load >= least)
			continue;
		least = load;
		best = to;
	}
	scx_bpf_put_idle_cpumask(idle);
	scx_bpf_put_cpumask(online);
	return best;
}

/*
 * Where a task goes that is on a CPU where it does not belong: to those of its class, else
 * to those without an owner; -1: it may run on none of these, or is there.
 */
static s32 place_home(struct task_struct *p, u32 own, u32 cpu)
{
	s32 to = own ? place_elsewhere(p, own, cpu) : -1;

	if (to >= 0 || !cpu_find(cpu)->owner)
		return to;
	return place_elsewhere(p, 0, cpu);
}

/* The choice of a CPU for a task that wakes, while classes own CPUs. */
static s32 place_select(struct task_struct *p, u32 own, s32 prev_cpu, u64 wake_flags, bool *idle)
{
	s32 cpu;

	lend_wake(own); /* before it runs: who is a guest may have left by then */
	cpu = own ? own_find_idle(p, own) : -1;
	if (cpu < 0 && (!own || place_home(p, own, prev_cpu) < 0))
		cpu = own_select_shared(p, prev_cpu, wake_flags);
	*idle = cpu >= 0;
	if (cpu < 0 && cpu_find(prev_cpu)->owner != own)
		cpu = place_home(p, own, prev_cpu);
	return cpu >= 0 ? cpu : prev_cpu;
}

/* The least loaded CPU of the domain. */
static s32 place_spread(struct task_struct *p, const struct task_ctx *taskc, s32 prev_cpu)
{
	const struct cpu_ctx *cpuc = cpu_find(prev_cpu);
	u64 now_ns = clock_now();
	u64 least = place_prospect(cpuc, taskc->weight, place_held(cpuc, now_ns));
	u32 size = llc_scan(cpuc->llc);
	s32 best = prev_cpu;
	u32 n;

	kernel_for(n, 1, size)
	{
		u32 cpu = cpu_beside(prev_cpu, n);
		u64 load;

		cpuc = cpu_find(cpu);
		load = place_prospect(cpuc, taskc->weight, place_held(cpuc, now_ns));
		if (load >= least || cpuc->owner != taskc->own || !cpu_allows(p, cpu))
			continue;
		least = load;
		best = cpu;
	}
	return best;
}

/*
 * The CPU of who wakes a task and is about to sleep, as with the kernel's wake_affine(),
 * unless more wants that CPU then than that where the task ran last.
 */
static s32 place_sync(struct task_struct *p, u32 own, s32 prev_cpu)
{
	const struct cpu_ctx *prevc = cpu_find(prev_cpu);
	s32 here = bpf_get_smp_processor_id();
	const struct cpu_ctx *cpuc = cpu_find(here);

	if (here == prev_cpu || cpuc->llc != prevc->llc || cpuc->owner != own ||
	    cpuc->curr_tier != ROTA_FAIR || !cpu_allows(p, here))
		return prev_cpu;
	/* Not one of a higher scheduling class, after which somebody of ours goes on. */
	if (cpuc->curr_tid != bpf_get_current_task_btf()->pid)
		return prev_cpu;
	return place_load(cpuc) - cpuc->curr_weight <= place_load(prevc) ? here : prev_cpu;
}

/* Where a task below priority waits that wakes, or is new, while nobody is idle. */
static s32 place_wake(struct task_struct *p, const struct task_ctx *taskc, s32 prev_cpu,
		      u64 wake_flags)
{
	const struct cpu_ctx *prevc = cpu_find(prev_cpu);

	if (wake_flags & WAKE_FORK)
		return place_spread(p, taskc, prev_cpu);
	/* A real-time task that wakes somebody on its own CPU will mostly sleep soon. */
	if (!prevc->curr_tid && prev_cpu != bpf_get_smp_processor_id() &&
	    place_held(prevc, clock_now()))
		return place_spread(p, taskc, prev_cpu);
	if (wake_flags & WAKE_SYNC && taskc->tier == ROTA_FAIR)
		return place_sync(p, taskc->own, prev_cpu);
	return prev_cpu;
}

/* Whom a pull is about to take, for the record. */
static u32 place_first_tid(u32 tier, u32 from, u32 cpu)
{
	u32 tid = pick_first_tid(queue_id(tier, from), cpu);

	return tid ?: pick_first_tid(queue_parked_id(tier, from), cpu);
}

/*
 * Before and after somebody takes a task out of a queue whose lock he may not have;
 * tid: of the task, for the record.
 */
static void place_begin_pull(struct cpu_queue *queue, u32 tid)
{
	record_pull(queue, tid, 0);
	CPU_ADD_ORDERED(queue->gone.pull_begun, 1);
}

static void place_end_pull(struct cpu_queue *queue, u32 tid, bool moved)
{
	if (moved)
		__sync_fetch_and_add(&queue->gone.pulled, 1);
	else
		record_pull(queue, tid, ROTA_PULL_IN_VAIN);
	CPU_ADD_ORDERED(queue->gone.pull_done, 1);
}

/* Pulls from the queue of one other CPU. */
static bool place_pull(u32 cpu, u32 tier, u32 from, u64 now_ns)
{
	struct cpu_ctx *fromc = cpu_find(from);
	struct cpu_queue *queue = cpu_queue(fromc, tier);
	u64 dsq = queue_id(tier, from);
	u32 tid = record_capacity ? place_first_tid(tier, from, cpu) : 0;
	bool moved;

	place_begin_pull(queue, tid);
	moved = kernel_move_to_local(dsq) ||
		(READ_ONCE(queue->parked) && kernel_move_to_local(queue_parked_id(tier, from)));
	place_end_pull(queue, tid, moved);
	if (moved)
		cpu_counters(cpu)->steals++;
	else if (kernel_since(now_ns, READ_ONCE(fromc->curr_at_ns)) > PLACE_SILENT_NS &&
		 !scx_bpf_dsq_nr_queued(dsq))
		/* Its count is too high, and only it can put that right. */
		scx_bpf_kick_cpu(from, KICK_IDLE);
	return moved;
}

/*
 * May a task wait somewhere in this domain? Whoever waits was queued, or
 * queued again at the end of a slice, not longer ago than the longest slice.
 */
static __always_inline bool place_worthwhile(u32 llc, u64 now_ns)
{
	return kernel_since(now_ns, READ_ONCE(llc_find(llc)->waiting_ns)) < PLACE_WAITING_NS;
}

/*
 * Has this CPU seen that nobody waits in its domain, and has nobody been queued since? Such a
 * note may be as old as the next one may be late, and clocks differ; who is queued by an old
 * clock beside an idle CPU sends for it.
 */
static __always_inline bool place_in_vain(const struct cpu_ctx *cpuc, u32 tier, u64 now_ns)
{
	u64 searched_ns = cpuc->searched_ns[tier == ROTA_BACKGROUND];
	u64 waiting_ns = READ_ONCE(llc_find(cpuc->llc)->waiting_ns);

	return kernel_since(now_ns, searched_ns) < PLACE_SEARCHED_NS &&
	       eevdf_before(waiting_ns + 2 * PICK_NOTE_NS, searched_ns);
}

/* Does somebody wait on the CPU at this place of llc_cpus, counted round the domain? */
static __always_inline bool place_waits(u32 end, u32 size, u32 place, u32 tier)
{
	u32 index = place < end ? place : place - size;

	return cpu_waiting(cpu_queue(cpu_find(llc_cpus[index & (ROTA_MAX_CPUS - 1)]), tier));
}

/*
 * The next CPU of the domain, counted from n places after this one's, in whose
 * queue somebody waits; scan if there is none before that. This runs whenever a CPU goes
 * idle: the nearest CPUs are looked at without a call, but not all, because
 * the verifier walks every turn of such a loop. For the same reason it is not
 * static, nor is the next function: the verifier then looks at them once and not
 * again at each of their callers.
 */
__noinline u32 place_find_waiting(u32 llc, u32 place, u32 tier, u32 n, u32 scan)
{
	u32 first = llc_first[llc & (ROTA_MAX_LLCS - 1)],
	    size = llc_size[llc & (ROTA_MAX_LLCS - 1)];
	u32 i, at = first + place, end = first + size;

	for (u32 turn = 0; turn < PLACE_NEAR_CPUS && n < scan; turn++, n++) {
		if (place_waits(end, size, at + n, tier))
			return n;
	}
	if (n >= scan)
		return scan;
	kernel_for(i, n, scan)
	{
		if (place_waits(end, size, at + i, tier))
			return i;
	}
	return scan;
}

/* Pulls a task of the tier from a queue of one cache domain, counted from this place of it. */
__noinline bool place_steal_from(u32 llc, u32 place, u32 cpu, u32 tier, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	bool here = cpuc->llc == llc;
	u32 scan = llc_scan(llc);
	/* Its own queue it has looked at. */
	u32 n = place_find_waiting(llc, place, tier, here ? 1 : 0, scan);

	if (here)
		cpuc->searched_ns[tier == ROTA_BACKGROUND] = n < scan ? 0 : now_ns;
	if (n >= scan)
		return false;
	if (place_pull(cpu, tier, cpu_in_llc(llc, place + n), now_ns))
		return true;
	/* The count was old, or the task may not run here: one more try. */
	n = place_find_waiting(llc, place, tier, n + 1, scan);
	return n < scan && place_pull(cpu, tier, cpu_in_llc(llc, place + n), now_ns);
}

/*
 * An idle CPU looks for work, in its own cache domain before elsewhere. Not static, as
 * queue_join; the same for place_balance.
 */
__noinline bool place_search(u32 cpu, u32 tier, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 n, nr = topology.nr_llcs;

	if (own_closed(cpuc))
		return false;
	if (READ_ONCE(cpuc->sent_for)) {
		WRITE_ONCE(cpuc->sent_for, 0);
		cpuc->searched_ns[0] = cpuc->searched_ns[1] = 0;
	}
	if (place_worthwhile(cpuc->llc, now_ns) && !place_in_vain(cpuc, tier, now_ns) &&
	    place_steal_from(cpuc->llc, cpuc->place, cpu, tier, now_ns))
		return true;
	if (nr < 2)
		return false;
	kernel_for(n, 1, nr)
	{
		u32 llc = (cpuc->llc + n) % nr;
		u32 place = cpuc->place % (llc_size[llc & (ROTA_MAX_LLCS - 1)] ?: 1);

		if (place_worthwhile(llc, now_ns) &&
		    place_steal_from(llc, place, cpu, tier, now_ns))
			return true;
	}
	return false;
}

/*
 * Is there nothing to find for a CPU that looks for work? Where there are several domains only
 * a search can tell.
 */
static __always_inline bool place_hopeless(const struct cpu_ctx *cpuc, u32 tier, u64 now_ns)
{
	if (!(knobs.tiers & (1 << tier)))
		return true;
	if (topology.nr_llcs > 1 || READ_ONCE(cpuc->sent_for))
		return false;
	return !place_worthwhile(cpuc->llc, now_ns) || place_in_vain(cpuc, tier, now_ns);
}

/* Searches, without a call where there is nothing to find. */
static __always_inline bool place_steal(const struct cpu_ctx *cpuc, u32 cpu, u32 tier, u64 now_ns)
{
	return !place_hopeless(cpuc, tier, now_ns) && place_search(cpu, tier, now_ns);
}

/* What the task weighs that a pull would take, 0: there is none. */
static u32 place_first_weight(u64 dsq, u32 cpu)
{
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		struct task_ctx *taskc = task_try(p);

		if (taskc && cpu_allows(p, cpu))
			return taskc->weight;
	}
	return 0;
}

/* Is it time for place_balance()? */
static __always_inline bool place_due(const struct cpu_ctx *cpuc, u64 now_ns)
{
	return !eevdf_before(now_ns, cpuc->balance_at_ns);
}

/*
 * Has another CPU as little to do, and has had so for longer? It takes a task first: else those
 * whose ticks come first would change roles among themselves.
 */
static __always_inline bool place_after_others(const struct cpu_ctx *cpuc, u32 cpu, u64 even,
					       u64 now_ns)
{
	u32 n, size = llc_scan(cpuc->llc);

	if (!eevdf_before(now_ns, cpuc->rotate_at_ns + PLACE_FIRST_NS))
		return false;
	kernel_for(n, 1, size)
	{
		const struct cpu_ctx *otherc = cpu_find(cpu_beside(cpu, n));

		if (READ_ONCE(otherc->curr_tier) == ROTA_FAIR && READ_ONCE(otherc->curr_hog) &&
		    !otherc->owner &&
		    eevdf_before(READ_ONCE(otherc->rotate_at_ns), cpuc->rotate_at_ns) &&
		    place_load(otherc) <= place_load(cpuc) + even)
			return true;
	}
	return false;
}

/* Is it this CPU's turn to change roles with that one, which has a task of this weight more? */
static __always_inline bool place_may_rotate(const struct cpu_ctx *cpuc,
					     const struct cpu_ctx *fromc, u32 cpu, u32 weight,
					     u64 now_ns)
{
	u64 gap = place_load(fromc) - place_load(cpuc), even = weight / PLACE_EVEN_PART;

	if (!cpuc->curr_hog || eevdf_before(now_ns, cpuc->rotate_at_ns) ||
	    eevdf_before(now_ns, READ_ONCE(fromc->rotate_at_ns)))
		return false;
	/* The loads of now, too, and exactly: else it would be taken back at once. */
	return gap - (weight - even) <= 2 * even && !place_after_others(cpuc, cpu, even, now_ns);
}

/*
 * Loads that no move makes more even, as of three hogs on two CPUs: one is alone and has twice
 * what each of the others has. Now and then they change roles: this CPU takes one of the others.
 * Not the one that came by this last, so that everybody is alone in turn.
 */
__noinline bool place_rotate(u32 cpu, u32 from, u32 weight, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu), *fromc = cpu_find(from);
	u64 new_until_ns = READ_ONCE(fromc->rotate_at_ns) + PLACE_ROTATE_NS;
	struct cpu_queue *queue = &fromc->queues[0];
	struct task_struct *p;
	u32 turns = 0;

	if (!place_may_rotate(cpuc, fromc, cpu, weight, now_ns))
		return false;
	kernel_for_waiting(it, p, QUEUE_FAIR(from))
	{
		struct task_ctx *taskc = task_try(p);
		bool moved;

		if (++turns > PLACE_ROTATE_LOOKS)
			break;
		if (!taskc || !timer_hog(taskc) || taskc->weight != weight ||
		    !place_may_move(p, cpu))
			continue;
		if (p->pid == fromc->rotated_tid && eevdf_before(now_ns, new_until_ns)) {
			/* Looks may keep step with turns: at the next tick another one waits. */
			cpuc->balance_at_ns = now_ns;
			continue;
		}
		place_begin_pull(queue, p->pid);
		moved = kernel_move(&it, p, DSQ_LOCAL, 0);
		place_end_pull(queue, p->pid, moved);
		if (!moved)
			continue;
		cpu_counters(cpu)->steals++;
		cpuc->rotated_tid = p->pid;
		cpuc->rotate_at_ns = now_ns + PLACE_ROTATE_NS;
		WRITE_ONCE(fromc->rotate_at_ns, now_ns + PLACE_ROTATE_NS);
		return true;
	}
	return false;
}

/* What makes a CPU give away a task: its load both now and in the mean of the last ticks. */
static __always_inline u64 place_burden(const struct cpu_ctx *cpuc, u64 now_ns)
{
	u64 load = place_load(cpuc), mean = place_mean(cpuc, load, now_ns);

	return place_crowd(cpuc, load < mean ? load : mean);
}

/*
 * A busy CPU takes over a task from one that is held, or is still ahead without it, but for what the
 * priority tier takes of the two.
 */
__noinline bool place_balance(u32 cpu, u64 now_ns)
{
	struct cpu_ctx *cpuc = cpu_find(cpu);
	u32 n, size = llc_scan(cpuc->llc);
	u64 own = place_load(cpuc), mean = place_mean(cpuc, own, now_ns), most;
	s32 from = -1, held = -1;
	u32 weight;

	cpuc->balance_at_ns = now_ns + PLACE_BALANCE_NS;
	/* Where nobody sleeps nobody joins, and nothing else moves the origin. */
	eevdf_rebase(&cpuc->queues[0].tree);
	eevdf_rebase(&cpuc->queues[1].tree);
	if (cpuc->owner)
		return false;
	most = own = place_crowd(cpuc, own > mean ? own : mean);
	kernel_for(n, 1, size)
	{
		u32 other = cpu_beside(cpu, n);
		u64 load = place_burden(cpu_find(other), now_ns);

		if (!cpu_waiting(&cpu_find(other)->queues[0]))
			continue;
		if (place_held(cpu_find(other), now_ns)) {
			held = other;
			continue;
		}
		if (load <= most)
			continue;
		most = load;
		from = other;
	}
	if (held >= 0 && place_pull(cpu, ROTA_FAIR, held, now_ns))
		return true;
	if (from < 0)
		return false;
	weight = place_first_weight(QUEUE_FAIR(from), cpu)
			 ?: place_first_weight(QUEUE_FAIR_PARKED(from), cpu);
	if (!weight || most - own < weight - weight / PLACE_LEVEL_PART)
		return false;
	if (most - own <= weight)
		return place_rotate(cpu, from, weight, now_ns);
	return place_pull(cpu, ROTA_FAIR, from, now_ns);
}

/* Is a task where it does not belong, and may it run where it does? */
static __always_inline bool place_astray(struct task_struct *p, const struct task_ctx *taskc,
					 const struct cpu_ctx *cpuc, u32 cpu)
{
	return cpuc->owner != taskc->own && !lend_now(cpuc) && place_home(p, taskc->own, cpu) >= 0;
}

/* A task enters a queue of a CPU where it does not belong: it goes home, if it may. */
static bool place_send(struct task_struct *p, struct task_ctx *taskc, u32 cpu, u64 enq_flags)
{
	s32 to = place_home(p, taskc->own, cpu);

	if (to < 0)
		return false;
	if (taskc->tier == ROTA_PRIORITY) {
		priority_place(taskc, llc_find(cpu_find(to)->llc), taskc->slice_ns);
		priority_queue(p, taskc, to, taskc->slice_ns, enq_flags);
	} else {
		kernel_insert(p, DSQ_LOCAL_ON | to, taskc->slice_ns, enq_flags);
	}
	return true;
}

/*
 * Sends away who waits in this queue of an owned CPU and may run elsewhere. Not static, as
 * queue_join.
 */
__noinline int place_clear_queue(u32 cpu, u32 tier, u64 dsq)
{
	struct cpu_queue *queue = cpu_queue(cpu_find(cpu), tier);
	struct task_struct *p;

	kernel_for_waiting(it, p, dsq)
	{
		struct task_ctx *taskc = task_try(p);
		bool moved;
		s32 to;

		if (!taskc || taskc->own == cpu_find(cpu)->owner)
			continue;
		to = place_home(p, taskc->own, cpu);
		if (to < 0)
			continue;
		place_begin_pull(queue, p->pid);
		moved = kernel_move(&it, p, DSQ_LOCAL_ON | to, 0);
		place_end_pull(queue, p->pid, moved);
	}
	return 0;
}

/* An owned CPU is about to choose: nobody waits who may wait elsewhere. */
static void place_clear(struct cpu_ctx *cpuc, u32 cpu)
{
	if (!cpuc->owner)
		return;
	if (cpu_waiting(&cpuc->queues[0])) {
		place_clear_queue(cpu, ROTA_FAIR, QUEUE_FAIR(cpu));
		place_clear_queue(cpu, ROTA_FAIR, QUEUE_FAIR_PARKED(cpu));
	}
	if (cpu_waiting(&cpuc->queues[1])) {
		place_clear_queue(cpu, ROTA_BACKGROUND, QUEUE_BACKGROUND(cpu));
		place_clear_queue(cpu, ROTA_BACKGROUND, QUEUE_BACKGROUND_PARKED(cpu));
	}
}

/* Counts the time of a task on a CPU where it does not belong. */
static void place_count(struct task_struct *p, const struct task_ctx *taskc,
			const struct cpu_ctx *cpuc, u32 cpu, u64 delta_ns)
{
	struct rota_cpu_stats *stats = cpu_counters(cpu);

	if (lend_now(cpuc))
		stats->guest_ns += delta_ns;
	else if (place_home(p, taskc->own, cpu) < 0)
		stats->bound_ns += delta_ns;
	else
		stats->stray_ns += delta_ns;
}
