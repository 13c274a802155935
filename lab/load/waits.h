/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.h - what the processes of the load waits share: counters, locks, dice.
 */
#ifndef ROTA_WAITS_H
#define ROTA_WAITS_H

#include "binder.h"
#include "process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GANGS 4
#define MEMBERS 6	 /* threads of a gang that wait; each has a server */
#define SHARED_LOCKS 4	 /* every second one is PI */
#define SETTLE_US 100000 /* after so long a name has been seen */

/* What is waited for. */
enum kind { MUTEX, PI, SHARED, PIPE, FILE_LOCK, BINDER, KINDS };

static struct shared {
	_Atomic uint64_t waits[KINDS]; /* in which the thread slept */
	_Atomic uint64_t timeouts, signals, deaths;
	_Atomic uint32_t stop;
	_Atomic uint32_t quiet[GANGS];	      /* members that wait no more */
	_Atomic int32_t tids[GANGS][MEMBERS]; /* 0: not there yet */
	pthread_mutex_t locks[SHARED_LOCKS];  /* robust, of all gangs */
	_Atomic int32_t binder;		      /* there is a driver */
} *shared;

/* roll returns 0..n-1. */
static inline uint32_t roll(uint32_t n)
{
	return (uint32_t)(throw_dice() % n);
}

static inline void die_here(void)
{
	atomic_fetch_add(&shared->deaths, 1);
	kill(getpid(), SIGKILL);
}

#endif
