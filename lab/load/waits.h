/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.h - what the processes of the load waits share: counters, locks, dice.
 */
#ifndef ROTA_WAITS_H
#define ROTA_WAITS_H

#include "binder.h"

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

static __thread uint64_t dice;

/* roll returns 0..n-1. */
static inline uint32_t roll(uint32_t n)
{
	dice ^= dice << 13; /* xorshift64 */
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)((dice >> 16) % n);
}

static inline void seed_dice(uint64_t seed)
{
	dice = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 8; i++)
		roll(2);
}

static inline void spin(uint32_t loops)
{
	for (volatile uint32_t i = 0; i < loops; i++)
		;
}

/* spawn returns 0 in a process that ends with this one. */
static inline pid_t spawn(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static inline void die_here(void)
{
	atomic_fetch_add(&shared->deaths, 1);
	kill(getpid(), SIGKILL);
}

#endif
