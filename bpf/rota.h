/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the scheduler (C) and its loader (Go): limits, enums
 * and the structs that both sides read or write. internal/sched mirrors every
 * struct here, and a test holds the two against each other through BTF.
 */
#ifndef ROTA_H
#define ROTA_H

#define ROTA_MAX_CPUS 1024
#define ROTA_MAX_LLCS 256
#define ROTA_MAX_CLASSES 256
#define ROTA_MAX_GROUPS 2048 /* cgroups that have a weight and a limit of their own */
#define ROTA_WAIT_BUCKETS 25 /* bucket 0: < 1 us, i: [2^(i-1), 2^i) us, the last: all above */

/* The order in which tiers run. NONE: nothing of ours is on that CPU. */
enum rota_tier {
	ROTA_PRIORITY = 0,
	ROTA_FAIR = 1,
	ROTA_BACKGROUND = 2,
	ROTA_NONE = 3,
};

/* The switches of the fair tier. */
enum rota_fair {
	ROTA_RUN_TO_PARITY = 1,	    /* who runs and is eligible keeps the CPU for its slice */
	ROTA_PREEMPT_SHORT = 2,	    /* but not against a shorter slice */
	ROTA_ELIGIBILITY_CHECK = 4, /* who has become ineligible gives way at once */
	ROTA_BRIEF_REQUESTS = 8,    /* who wakes asks for what it lately used, not for a slice */
	ROTA_LAZY_PREEMPTION = 16,  /* whom a task wakes does not end a turn that has just begun */
	ROTA_HAND_OVER = 32,	    /* who is woken by one that sleeps then has its CPU */
};

/* Why a task waits for another. */
enum rota_reason {
	ROTA_FUTEX = 0,	 /* for the owner of a lock in user space */
	ROTA_LOCK = 1,	 /* for the owner of a lock in the kernel */
	ROTA_WAKE = 2,	 /* for the task that it woke before it went to sleep */
	ROTA_BINDER = 3, /* for the answer to a binder call */
	ROTA_REASONS = 4,
};

/* What the daemon knows about; set by the loader before attaching. */
struct rota_topology {
	__u32 nr_cpus; /* possible CPUs, at most ROTA_MAX_CPUS */
	__u32 nr_llcs; /* last-level cache domains, at least 1 */
};

/* The knobs of scheduler:, all changeable while running. Set by the daemon. */
struct rota_knobs {
	__u64 slice_ns;	     /* default request in ns, 100 us..100 ms */
	__u64 starvation_ns; /* a runnable task gets CPU within this many ns, 50 ms..10 s */
	__u32 nr_classes;    /* valid entries of the class table, at least 1 */
	__u32 watch;	     /* 1: send events about tasks; 0: nobody wants them */
	__u32 tiers;	     /* bit 1 << tier: some class is in that tier */
	__u32 fair;	     /* enum rota_fair, or-ed: the switches of the fair tier */
	__u32 inherit;	     /* enum rota_reason, 1 << each: what boosts, 0: nothing does */
	__u32 frequency;     /* 1: time counts as at full speed, see pace.bpf.h */
};

/* One class. Set by the daemon. */
struct rota_class {
	__u64 slice_ns;	     /* request in ns; 0: the default of the knobs */
	__u64 cap_ns;	     /* CPU time per window and CPU while others wait; priority only */
	__u32 weight;	     /* 1..10000 inside the tier, 100: as nice 0 */
	__u32 tier;	     /* enum rota_tier */
	__u32 inherit;	     /* 1: what its tasks wait for runs at their level; priority only */
	__u32 dynamic;	     /* 1: who wakes asks for what it lately used; priority only */
	__u32 own_first;     /* the CPUs that belong to it are among these; priority only */
	__u32 own_end;	     /* 0: it has none */
	__u32 memory_bound;  /* of 1024: its time that does not change with the frequency */
	__u32 lend_after_ns; /* lent CPUs are when its tasks ran on none of them for so long */
};

/* Counters of the processor, see counter.bpf.h. Set by the daemon. */
struct rota_counters {
	__u64 latency_ps; /* waits are accesses that take so long each; 0: they are cycles */
	__u32 epoch;	  /* counts what is counted: of another one nothing can be compared */
	__u16 waits;	  /* 1: waits are counted */
	__u16 cycles;	  /* 1: all cycles are counted */
};

/* Counters of one class on one CPU; they only grow. */
struct rota_class_stats {
	__s64 tasks; /* live tasks: the sum over CPUs counts */
	__u64 runtime_ns;
	__u64 progress_ns; /* the time that the same would have taken at full speed */
	__u64 waited_ns;   /* that waited for memory, as counted */
	__u64 counted_ns;  /* of so much, as at full speed */
	__u64 dispatches;
	__u64 preempting;
	__u64 preempted;
	__u64 cap_hits;
	__u64 rescues;
	__u64 returns;	/* of CPUs that were lent: one of its tasks wanted them */
	__u64 expected; /* of these, the CPUs had come back before it woke */
	__u64 wait_max_ns;
	__u64 wait_hist[ROTA_WAIT_BUCKETS];
	/* Not counters: CPU time used in the current cap window. */
	__u64 window_start_ns;
	__u64 window_used_ns;
};

/* Counters of one CPU; they only grow. */
struct rota_cpu_stats {
	__u64 dispatches[3]; /* by tier */
	__u64 direct;	     /* wake-ups placed on this CPU because it was idle */
	__u64 handed;	     /* whom a task woke that was about to leave this CPU, for them */
	__u64 preemptions;   /* wake-ups that preempted what ran here */
	__u64 steals;	     /* tasks pulled from another CPU's queue */
	__u64 rescues;	     /* tasks moved forward by the starvation bound */
	__u64 cap_hits;	     /* times that the priority tier had to wait here */
	__u64 limited;	     /* times that a task had to wait for its cgroup's cpu.max */
	__u64 boosts[ROTA_REASONS]; /* begun here, by reason */
	__u64 chained;		    /* of these, passed on by a task that was boosted itself */
	__u64 fetched;		    /* boosted tasks that were taken out of a queue for this CPU */
	__u64 ended;		    /* boosts that ended with the wait */
	__u64 spent;		    /* boosts that ended because they used up their time */
	__u64 boosted_ns;	    /* CPU time of boosted tasks */
	/* CPU time, on a CPU that belongs to a class, of tasks that do not belong there: */
	__u64 bound_ns; /* who may run nowhere else */
	__u64 guest_ns; /* whom it was lent to */
	__u64 stray_ns; /* who is on its way out */
	__u64 asked;	/* times that the daemon was asked for the class of a task */
	__u64 known;	/* that it was not, because it had answered about such a one */
};

/* Why a task may belong to another class now. */
enum rota_event_kind {
	ROTA_EVENT_EXEC = 1,
	ROTA_EVENT_COMM = 2,
	ROTA_EVENT_CGROUP = 3,
	ROTA_EVENT_USER = 4,
	ROTA_EVENT_FORK = 5,
	ROTA_EVENT_LOST = 6,
	ROTA_EVENT_EXIT = 7, /* the scheduler was ended; see exit_record */
};

/* asked: how often was asked about this task, this time included. */
struct rota_event {
	__u32 kind;
	__u32 tid;
	__u32 tgid;
	__u32 asked;
	__u64 start_ns; /* start_boottime: with the tid it names one live task */
};

/* By what rules know a task, or-ed. */
enum rota_known_by {
	ROTA_KNOWN_COMM = 1,
	ROTA_KNOWN_CGROUP = 2,
	ROTA_KNOWN_USER = 4, /* by its number */
};

#define ROTA_KNOWN_SHIFT 3 /* epochs count above these bits */

/* What the daemon has answered about a task it has answered about all that are known by this. */
struct rota_known {
	char comm[16]; /* what no rule looks at is 0 */
	__u64 cgroup;  /* its number in the v2 tree */
	__u32 user;
	__u32 epoch; /* of struct rota_knowing */
};

/* How answers are found again. Set by the daemon. */
struct rota_knowing {
	__u32 epoch;  /* enum rota_known_by, above them what changes with the rules; 0: not */
	__u32 daemon; /* its tgid: its own class is not by rules */
};

/* What a record is about; lab/oracle reads them. */
enum rota_record_kind {
	ROTA_RECORD_JOIN = 1,	 /* competes from now on, placed at vt */
	ROTA_RECORD_LEAVE = 2,	 /* no longer */
	ROTA_RECORD_SETTLE = 3,	 /* departures of span_ns of weight, vt = sum of weight * v */
	ROTA_RECORD_RELEASE = 4, /* a ghost is let go */
	ROTA_RECORD_WAIT = 5,	 /* is ready and waits */
	ROTA_RECORD_PICK = 6,	 /* was chosen to run next */
	ROTA_RECORD_RUN = 7,
	ROTA_RECORD_CHARGE = 8, /* for span_ns of CPU time */
	ROTA_RECORD_AHEAD = 9,	/* the same in advance, in the sums only */
	ROTA_RECORD_YIELD = 10,
	ROTA_RECORD_PULL = 11, /* waits no more: another CPU is about to take it */
};

/* Of a JOIN, of a LEAVE and of a PULL, or-ed. */
enum rota_record_how {
	ROTA_JOIN_EMPTY = 1, /* nobody was there */
	ROTA_JOIN_NEW = 2,   /* half a request */
	ROTA_JOIN_GHOST = 4, /* it took its ghost back, with its deadline or a brief one */
	ROTA_JOIN_BRIEF = 8, /* a request by what it lately used */
	ROTA_LEAVE_SLEEP = 1,
	ROTA_LEAVE_AFAR = 2, /* to be settled */
	ROTA_LEAVE_GHOST = 4,
	ROTA_LEAVE_LAST = 8,
	ROTA_PULL_IN_VAIN = 1,
};

/* Of a PICK. */
enum rota_record_pick {
	ROTA_PICK_DISPATCH = 1, /* chosen among those who wait */
	ROTA_PICK_KEEP = 2,	/* what ran goes on */
	ROTA_PICK_PREEMPT = 3,	/* wakes and takes the CPU from span_ns, a tid */
	ROTA_PICK_DIRECT = 4,	/* wakes and is next, because nobody waits */
	ROTA_PICK_RESCUE = 5,	/* by the starvation bound */
	ROTA_PICK_LAST = 6,	/* nobody was eligible */
	ROTA_PICK_COME = 7,	/* to an idle CPU, or pulled there */
};

struct rota_record {
	__u64 time_ns; /* monotonic, one clock for all CPUs */
	__u64 vt;
	__u64 deadline_vt;
	__u64 now_vt; /* V of the queue, 0: not computed */
	__u64 span_ns;
	__u32 tid;
	__u32 weight;
	__u32 request_ns;
	__u16 cpu; /* whose queue it is about */
	__u8 tier;
	__u8 kind; /* enum rota_record_kind */
	__u16 how;
	__u16 writer; /* the CPU that wrote it */
	__u32 slice_ns;
};

/* In and out of rota_explain_task(): what the scheduler knows of one task. */
struct rota_explain {
	__u64 slice_ns;
	__u64 boosted_ns; /* CPU time since it was boosted, over several waits if they overlap */
	__u64 ready_ns;	  /* for how long it is ready and waits for a CPU, 0: it does not */
	__u64 waits_ns;	  /* for how long it waits for another */
	__u64 given;	  /* binder calls that it answered, of callers that give their level */
	__u64 lifted;	  /* of these, those that it served at that level or above */
	__s64 lag_ns; /* CPU time that it is owed, < 0: had too much; 0 where it does not compete */
	__u32 tid;    /* in */
	__s32 result; /* 0 or a negative errno */
	__u32 class;
	__u32 level; /* the class at whose level it runs */
	__u32 weight;
	__u32 cpu;
	__u32 running;
	__u32 awaited;	 /* somebody who gives a boost waits for it */
	__u32 spent;	 /* but it has used up its time */
	__u32 waits_tid; /* for whom it waits, 0: nobody */
	__u32 waits_reason;
	__u32 waits_gives; /* and gives him its level */
	__u32 policy;	   /* SCHED_* */
	__u32 pad;
};

/* Argument of the program that puts one task into a class. */
struct rota_set_class {
	__u64 start_ns; /* 0: whoever has this tid now */
	__u32 tid;
	__u32 class;
	__s32 result; /* -ESRCH: no such task (any more), -EINVAL: no such class, -EAGAIN: look again */
	__u32 asked; /* the event that this answers, 0: none; with -EAGAIN the one to answer next */
	__u32 alone; /* 1: the class is not for its children */
	__u32 pad;
};

/* What the kernel said when it ended the scheduler. */
#define ROTA_EXIT_TEXT 1024
#define ROTA_EXIT_DUMP 32768
struct rota_exit {
	__u64 kind;
	__s64 code;
	char reason[128];
	char msg[ROTA_EXIT_TEXT];
	char dump[ROTA_EXIT_DUMP];
};

#endif
