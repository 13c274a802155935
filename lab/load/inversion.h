/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inversion.h - what the parts of the load inversion share: names, the hogs, the
 * work that is waited for, and a page on which all processes see the same.
 */
#ifndef ROTA_INVERSION_H
#define ROTA_INVERSION_H

#include "binder.h"
#include "process.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAX_CHAIN 8
#define SECTION_NS 500000
#define LOOK_US 500	 /* how often a thread looks whether it is its turn */
#define CROWD_US 10000	 /* for so long the hogs have had the CPUs when the wait begins */
#define SETTLE_US 300000 /* for so long names have been seen when the first round begins */

static struct shared {
	volatile uint64_t worked_ns; /* CPU time of the work */
	volatile uint64_t due_ns;    /* when it could begin, where that is after the wait did */
	volatile uint32_t crowded;   /* the hogs run: a futex */
	pthread_mutex_t lock;	     /* of an owner in a process of its own */
} *shared;

/* What one wait took, in ns. */
struct waited {
	uint64_t all, excess; /* excess: beyond the work, and the time before it was due */
};

static inline void name(const char *comm, int nice_value)
{
	prctl(PR_SET_NAME, comm);
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice_value))
		die("setpriority");
}

static inline void run(void *(*body)(void *), long arg)
{
	pthread_t id;

	if (pthread_create(&id, NULL, body, (void *)arg))
		die("pthread_create");
}

static inline void *hog(void *arg)
{
	volatile uint64_t n = 0;

	name("inv-hog", 0);
	for (;;) {
		if (!shared->crowded)
			syscall(SYS_futex, &shared->crowded, FUTEX_WAIT, 0, NULL, NULL, 0);
		n++;
	}
	return arg;
}

static inline void crowd(int on)
{
	shared->crowded = (uint32_t)on;
	syscall(SYS_futex, &shared->crowded, FUTEX_WAKE, on ? INT_MAX : 0, NULL, NULL, 0);
}

/* work is what is waited for; a part of it may be done since start. */
static inline void work(uint64_t start)
{
	use_cpu(start, SECTION_NS);
	shared->worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static inline struct waited since(uint64_t start)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t from = shared->due_ns > start ? shared->due_ns : start;

	return (struct waited){ .all = now - start, .excess = now - from - shared->worked_ns };
}

static inline struct waited longest(struct waited a, struct waited b)
{
	return (struct waited){
		.all = a.all > b.all ? a.all : b.all,
		.excess = (int64_t)a.excess > (int64_t)b.excess ? a.excess : b.excess,
	};
}

#endif
