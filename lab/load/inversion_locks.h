/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inversion_locks.h - waits for the owner of a mutex, a thread of the same process.
 *
 * When the wait begins the owner is queued behind the hogs, or asleep with the lock
 * held, or running: then it wakes the hogs itself, when somebody waits for it.
 */
#ifndef ROTA_INVERSION_LOCKS_H
#define ROTA_INVERSION_LOCKS_H

#include "inversion.h"

#define MORE_WAITERS 2
#define ASLEEP_NS 5000000 /* for so long after the beginning of the wait */
#define READY_NS 200000	  /* so long before that an owner who is to be queued wakes */
#define ALONE_NS 100000	  /* of the work, before a running owner has the hogs beside it */

static enum { QUEUED, RUNNING, ASLEEP } owner_state;
static long chain, more_waiters, waits_behind;
static pthread_mutex_t locks[MAX_CHAIN];
static volatile long stage = -1;   /* whose turn it is to take his lock, -1: nobody's */
static volatile int waiting;	   /* the important one is about to wait */
static volatile uint64_t begin_ns; /* when several of them do */
static volatile long waiters_done;
static volatile int first_may_wait; /* the unimportant one before the important one */
static struct waited theirs[MORE_WAITERS];

/* hold is what the last of the chain does with its lock. */
static inline void hold(void)
{
	uint64_t start;

	switch (owner_state) {
	case QUEUED:
		while (!begin_ns)
			usleep(LOOK_US);
		sleep_until(begin_ns - READY_NS); /* or it might work before */
		break;
	case ASLEEP:
		while (!shared->due_ns)
			usleep(LOOK_US);
		sleep_until(shared->due_ns);
		break;
	case RUNNING:
		while (!waiting)
			;
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		use_cpu(start, ALONE_NS);
		crowd(1);
		work(start);
		return;
	}
	work(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* own takes lock i when it is its turn, and gives it back when it has had the next one. */
static inline void *own(void *arg)
{
	long i = (long)arg;

	name("inv-low", 19);
	for (;;) {
		while (stage != i)
			usleep(LOOK_US);
		pthread_mutex_lock(&locks[i]);
		stage = i - 1;
		if (i + 1 < chain) {
			pthread_mutex_lock(&locks[i + 1]);
			pthread_mutex_unlock(&locks[i + 1]);
		} else {
			hold();
		}
		pthread_mutex_unlock(&locks[i]);
	}
	return NULL;
}

static inline struct waited wait_for_lock(void)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&locks[0]);
	pthread_mutex_unlock(&locks[0]);
	return since(start);
}

/* A further one that waits at the same moment. */
static inline void *wait_too(void *arg)
{
	uint64_t seen = 0;

	name("inv-high", -20);
	for (;;) {
		while (!begin_ns || begin_ns == seen)
			usleep(LOOK_US);
		seen = begin_ns;
		sleep_until(seen);
		theirs[(long)arg] = wait_for_lock();
		__sync_fetch_and_add(&waiters_done, 1);
	}
	return NULL;
}

/* An unimportant one that waits before the important one, and works like the owner. */
static inline void *wait_before(void *arg)
{
	uint64_t start;

	name("inv-low", 19);
	for (;;) {
		while (!first_may_wait)
			usleep(LOOK_US);
		first_may_wait = 0;
		pthread_mutex_lock(&locks[0]);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		use_cpu(start, SECTION_NS);
		shared->worked_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		pthread_mutex_unlock(&locks[0]);
	}
	return arg;
}

/* make_locks starts all owners and those who wait beside the first. */
static inline void make_locks(const pthread_mutexattr_t *attr)
{
	for (long i = 0; i < chain; i++) {
		pthread_mutex_init(&locks[i], attr);
		run(own, i);
	}
	for (long i = 0; i < more_waiters; i++)
		run(wait_too, i);
	if (waits_behind)
		run(wait_before, 0);
}

static inline void let_owners_lock(void)
{
	waiting = 0;
	begin_ns = 0;
	shared->due_ns = 0;
	stage = chain - 1;
	while (stage >= 0)
		usleep(LOOK_US);
	first_may_wait = 1;
	if (owner_state != RUNNING)
		usleep(CROWD_US); /* the last who took a lock waits for the next one */
}

/* lock_once returns the longest of all waits for the lock. */
static inline struct waited lock_once(void)
{
	struct waited w;

	let_owners_lock();
	if (owner_state == RUNNING) {
		waiting = 1;
		return wait_for_lock();
	}
	if (owner_state == ASLEEP) {
		shared->due_ns = clock_ns(CLOCK_MONOTONIC) + 2 * CROWD_US * 1000 + ASLEEP_NS;
		usleep(CROWD_US);
	}
	waiters_done = 0;
	begin_ns = clock_ns(CLOCK_MONOTONIC) + CROWD_US * 1000;
	crowd(1);
	sleep_until(begin_ns);
	w = wait_for_lock();
	while (waiters_done < more_waiters)
		usleep(LOOK_US);
	for (long i = 0; i < more_waiters; i++)
		w = longest(w, theirs[i]);
	return w;
}

#endif
