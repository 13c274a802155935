/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu: what rota knows of one CPU, and which CPUs share a cache.
 *
 * Problem: a wake-up must judge what another CPU runs without locks, and a
 * switch must find its own state without a helper call.
 *
 * How: one array of contexts, a cache line or more each, indexed by CPU.
 * Everything in a context is written under the run queue lock of that CPU
 * (the kernel holds it around every callback that concerns the CPU), except what is marked, what
 * its timer and the daemon set, and what hand_over() writes on the CPU itself, which cannot switch then.
 * Other CPUs read it as a hint: they may see a value that is one switch old, and every use
 * says why that is harmless.
 *
 * Limits: ROTA_MAX_CPUS CPUs; the loader refuses more.
 */

#define CPU_SCAN 64 /* CPUs of a domain that a search looks at */
#define CPU_CALLS 8 /* a power of 2 */
#define CPU_KICKS 8 /* a CPU that does not choose after so many can't */

#define GHOST_PLACES 64 /* bits of cpu_queue.ghosts; the first is no ghost's */
#define GHOST_NEVER_VT (1ULL << 62)

/*
 * An addition before which all is done that comes before it, and after which all that comes after:
 * one whose result nobody takes orders nothing where the hardware does not by itself, as on arm64.
 */
#define CPU_ADD_ORDERED(x, n)                        \
	({                                           \
		typeof(x) n_ = (n);                  \
		__asm__ volatile("" : "+r"(n_));     \
		n_ = __sync_fetch_and_add(&(x), n_); \
		__asm__ volatile("" : "+r"(n_));     \
		n_;                                  \
	})

/* A task that sleeps and owes, see ghost.bpf.h. */
struct cpu_ghost {
	u64 vt;
	u64 deadline_vt;
	u32 weight;
	u32 tid;
	u32 before, after; /* its neighbours by vt, 0: none; of place 0: the last and the first */
};

/* Tasks that left a queue for another CPU; written by that other CPU. */
struct cpu_departures {
	u64 begun; /* atomic add; partner: queue_settle() reads done, then begun */
	u64 w;	   /* atomic add; sum of their weights */
	u64 wv;	   /* atomic add; sum of w * v, modulo 2^64 */
	u64 done;  /* atomic add; partner: queue_settle() */
	/* The same for tasks that waited: partner of all three is pick_check_empty(). */
	u32 pull_begun; /* atomic add */
	u32 pulled;	/* atomic add; also read by cpu_waiting() */
	u32 pull_done;	/* atomic add */
} __attribute__((aligned(64)));

/* The tasks of one tier that compete for one CPU. */
struct cpu_queue {
	struct eevdf_queue tree; /* all of them, the running one included */
	u64 floor_vt;		 /* no ready task has an earlier deadline */
	u64 span_vt;		 /* how far deadlines are ahead of all ready tasks, unless mixed */
	u64 parked_vt;		 /* no parked task is eligible before this V */
	u64 seen_w, seen_wv;	 /* departures that are settled */
	u64 seen;		 /* how many these are */
	u32 emptied;		 /* changes when it has been empty; any CPU reads it */
	u64 ghosts;		 /* which places of the table are taken */
	u64 ghost_w;		 /* sum of their weights */
	u64 ghost_next_vt;	 /* V has passed no ghost from here on when it last looked */
	u64 ghost_due_vt;	 /* and those that it had passed have no earlier deadline */
	u32 members;		 /* how many compete, with those whose departure is not settled */
	u32 queued;		 /* put into the dispatch queues, less those taken out here */
	u32 parked;		 /* of these, at most so many are parked */
	u32 mixed;		 /* the spans of ready tasks differ */
	u32 briefs;		 /* somebody may wait who asks for a moment only */
	u32 cpu, tier;		 /* whose it is */
	u64 short_until_ns;	 /* when the next two change */
	u64 short_ns;		 /* the shortest slice of a task that was queued, lately */
	u64 short_before_ns;	 /* and before that */
	struct cpu_ghost ghost[GHOST_PLACES];
	struct cpu_departures gone;
};

struct cpu_ctx {
	/* What runs. */
	u32 curr_tier; /* enum rota_tier */
	u32 curr_tid;  /* 0: nothing of ours right now */
	u32 curr_class;
	u32 curr_own; /* the owner of the CPUs where it belongs */
	u32 curr_weight;
	u32 curr_bound; /* how much of its work waits for memory, see pace.bpf.h */
	u32 llc;
	u32 place;	 /* in its cache domain, see llc_cpus */
	u32 owner;	 /* whose CPU it is: class + 1, 0: everybody's; written by rota_own() */
	u32 lends;	 /* and others may have it at times, see lend_now() */
	u64 owned_at_ns; /* when a task of its owner last ran here, about */
	u64 curr_at_ns;	 /* when it started, or was last charged ahead */
	u64 curr_vt;	 /* its virtual time at curr_at_ns */
	u64 curr_deadline_vt; /* end of its request */
	u64 curr_slice_ns;    /* its slice */
	u64 curr_safe_vt;     /* so far it keeps the CPU against its like */
	u32 asked;	      /* dispatch was called since it began to run, or went on */
	u32 unheard;	      /* so often it was kicked to choose since dispatch was called */
	u32 curr_demoted;     /* its boost has ended: written by any CPU, a hint */
	u32 curr_raised;      /* it is boosted, though in its own tier still: the same */
	u32 curr_rescued;     /* it runs by the starvation bound: not to be preempted at once */
	u64 curr_since_ns;    /* when its turn began */
	u64 curr_end_ns;      /* when its turn ends, by the timer */
	u64 curr_spared_ns;   /* of its time that it is not charged for, see queue_spare() */
	u64 spare_ns;	      /* so much more may be spared here */
	u64 spare_at_ns;      /* up to when that is counted */
	s64 ahead_wv;	      /* its progress that is in the sum already, not yet in its v */
	u64 ahead_ns;	      /* of CPU time, where that counts by speed */
	u64 ahead_done_ns;    /* what that counts for, by the speeds of then */
	/* What waits. */
	struct cpu_queue queues[2]; /* fair, background: see cpu_queue() */
	u32 queued_capped;	    /* priority tasks wait here for their cap */
	u32 lower_next;		    /* one below priority was chosen, and has not run yet */
	u32 queued_limited;	    /* tasks wait here for their group's cpu.max */
	u32 limited_looks;	    /* at how many of these one pass has looked */
	u64 limited_at_ns;	    /* when to look at these again */
	u64 adopt_at_ns;	    /* when to look at those of other CPUs */
	u32 local_taken;  /* a task went, or goes, to the local queue and has not run yet */
	u32 took_head;	  /* the next to run was the head of its queue */
	u32 hog_weight;	  /* of the one that ran last of those who don't sleep */
	u32 uneven;	  /* for so many turns of such more their weights differ */
	u32 curr_exact;	  /* what runs is to have no more than to curr_end_ns */
	u32 curr_hog;	  /* what runs, or ran last, has not slept for long */
	u32 waking_pair;  /* the last two of whom one was to be put off */
	u32 put_off;	  /* somebody waits though this turn could have ended for it */
	u32 heavy_weight; /* of a far heavier one who waits behind others, 0: nobody; a hint */
	u64 heavy_vt;	  /* its deadline */
	u32 moment_tid;	  /* the last who came to wait and asks for the least there is; a hint */
	u64 moment_at_ns; /* since when it waits */
	u32 brief_next;	  /* who takes this CPU will soon have left it again */
	u32 aside;	  /* who ran is in the local queue, and goes on after that */
	u64 aside_at_ns;  /* since when */
	/* Boosted tasks that this CPU is to take: a ring, see inherit_call(). */
	u32 calls[CPU_CALLS];
	u32 called;	    /* atomic add; partner: inherit_answer() */
	u32 answered;	    /* up to here it has looked */
	u64 clock_ahead_ns; /* its clock and the monotonic one, see clock_now() */
	/* When to look again. */
	u64 timer_at_ns; /* when the timer of this CPU fires, 0: not started */
	u64 rescue_at_ns;
	u64 balance_at_ns;
	u64 rotate_at_ns;     /* see place_rotate(): also written by who takes a task from here */
	u32 rotated_tid;      /* who came by that last */
	u64 searched_ns[2];   /* when nobody was seen to wait in the domain: fair, background */
	u32 sent_for;	      /* it was woken for somebody who waits: written by any CPU */
	u64 load_mean;	      /* of place_load() at the last ticks, scaled by PLACE_MEAN */
	u64 load_at_ns;	      /* when it was noted */
	u32 taken_mean;	      /* so much of the last ticks was the priority tier's, as load_mean */
	u32 rescue_pause;     /* the last dispatch rescued: now the others' turn */
	u64 priority_look_ns; /* when it looked at the queue of its domain though nobody had lately */
	u64 far_look_ns;      /* and at those of the others */
	/* The cap of the priority tier, all classes together. */
	u64 window_start_ns;
	u64 window_used_ns;
} __attribute__((aligned(64)));

/* What the CPUs of one cache domain share; written without a lock, rarely but for the last. */
struct llc_ctx {
	u64 floor_vt;	   /* priority tier: v of the furthest task that ran */
	u64 priority_ns;   /* priority tier: when the domain's queue was last in use */
	u64 background_ns; /* about when a background task last had one of the CPUs */
	/* About when a task was last put into a queue of the domain: on a cache line of its own. */
	u64 waiting_ns __attribute__((aligned(64)));
} __attribute__((aligned(64)));

const volatile struct rota_topology topology; /* set by the loader, as the next ones */
const volatile u32 llc_of[ROTA_MAX_CPUS];     /* the cache domain of each CPU */
const volatile u32 llc_place[ROTA_MAX_CPUS];  /* where each stands in its domain */
const volatile u32 llc_first[ROTA_MAX_LLCS];  /* index of its first CPU in llc_cpus */
const volatile u32 llc_size[ROTA_MAX_LLCS];   /* how many it has */
const volatile u32 llc_cpus[ROTA_MAX_CPUS];   /* all CPUs, domain after domain */

struct rota_knobs knobs; /* set by the daemon */
u32 generation;		 /* counts changes of knobs, classes and weights; atomic add */

struct cpu_ctx cpu_ctxs[ROTA_MAX_CPUS];

struct llc_ctx llc_ctxs[ROTA_MAX_LLCS];

/* Apart from the contexts, so that the daemon copies no more than it shows. */
struct rota_cpu_stats cpu_stats[ROTA_MAX_CPUS];

/* Index is masked, so that the verifier sees the bound; the loader refuses more CPUs. */
static __always_inline struct cpu_ctx *cpu_find(u32 cpu)
{
	return &cpu_ctxs[cpu & (ROTA_MAX_CPUS - 1)];
}

static __always_inline struct rota_cpu_stats *cpu_counters(u32 cpu)
{
	return &cpu_stats[cpu & (ROTA_MAX_CPUS - 1)];
}

static __always_inline struct llc_ctx *llc_find(u32 llc)
{
	return &llc_ctxs[llc & (ROTA_MAX_LLCS - 1)];
}

/* The queue of a tier below priority. */
static __always_inline struct cpu_queue *cpu_queue(struct cpu_ctx *cpuc, u32 tier)
{
	return &cpuc->queues[tier == ROTA_BACKGROUND];
}

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

/* Where the priority tasks wait that belong on this CPU. */
static __always_inline u64 cpu_priority_queue(const struct cpu_ctx *cpuc)
{
	u32 owner = READ_ONCE(cpuc->owner);

	return owner ? QUEUE_OWNED(owner) : QUEUE_PRIORITY(cpuc->llc);
}

/* Somebody waits there, or waited just now: the CPUs of the domain look. */
static __always_inline void cpu_note_priority(const struct cpu_ctx *cpuc, u64 now_ns)
{
	WRITE_ONCE(llc_find(cpuc->llc)->priority_ns, now_ns);
}

/* An idle CPU, which is idle no more for others, is to search for who waits, whatever it knows. */
static __always_inline void cpu_send_for(u32 cpu)
{
	WRITE_ONCE(cpu_find(cpu)->sent_for, 1);
	scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/*
 * Does somebody wait in this queue? Never false when a task does. May be true
 * when none does: a task that the kernel took out to change it is counted
 * until the CPU itself finds the queue empty.
 */
static __always_inline bool cpu_waiting(const struct cpu_queue *queue)
{
	return READ_ONCE(queue->queued) != READ_ONCE(queue->gone.pulled);
}

/* How many CPUs of a domain a search looks at. */
static __always_inline u32 llc_scan(u32 llc)
{
	u32 size = llc_size[llc & (ROTA_MAX_LLCS - 1)];

	return size < CPU_SCAN ? size : CPU_SCAN;
}

/* The CPU at a place of a cache domain, counted round it. */
static __always_inline u32 cpu_in_llc(u32 llc, u32 place)
{
	u32 size = llc_size[llc & (ROTA_MAX_LLCS - 1)];
	u32 first = llc_first[llc & (ROTA_MAX_LLCS - 1)];

	if (!size)
		return 0;
	return llc_cpus[(first + place % size) & (ROTA_MAX_CPUS - 1)];
}

/* The CPU n places after this one in its cache domain, counted round it: searches spread. */
static __always_inline u32 cpu_beside(u32 cpu, u32 n)
{
	const struct cpu_ctx *cpuc = cpu_find(cpu);

	return cpu_in_llc(cpuc->llc, cpuc->place + n);
}

/* Does the task's mask have this CPU? */
__noinline bool cpu_in_mask(struct task_struct *p __trusted, u32 cpu)
{
	const struct cpumask *mask = kernel_plain(p)->cpus_ptr;
	u64 bits = mask->bits[0];

	/* Of a pointer that it knows the verifier allows no place that varies. */
	if (cpu >= 64 && bpf_probe_read_kernel(&bits, sizeof(bits), mask->bits + cpu / 64))
		return false;
	return bits >> (cpu % 64) & 1;
}

/* May the task run on this CPU? Most tasks may run anywhere. */
static __always_inline bool cpu_allows(struct task_struct *p, u32 cpu)
{
	return (p->nr_cpus_allowed >= topology.nr_cpus && !p->migration_disabled) ||
	       cpu_in_mask(p, cpu);
}
