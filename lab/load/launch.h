/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - what the processes of the load launch share: the unit of work, the
 * dice, names, and one page of memory on which work is counted.
 */
#ifndef ROTA_LAUNCH_H
#define ROTA_LAUNCH_H

#include "binder.h"
#include "process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define UNIT_BLOCKS 77 /* of churn(): 10 us of a machine that does nothing else */
#define SYSTEM "/dev/binder"
#define PROVIDER "/dev/hwbinder"

/* Calls of system_server and of the provider. */
enum {
	CALL_PLAIN = 1, /* works */
	CALL_LOCKED,	/* works, a part of it with the service's lock held */
	CALL_START,	/* start an app */
};

/* What is done for the app, besides the kernel's own doing. */
static enum app_kind { APP_PLAIN, APP_NICE, APP_FIFO } app_kind;

struct shared {
	_Atomic uint64_t app_units; /* work done, of the app and of what it calls */
	_Atomic uint64_t bg_units;  /* and of all others */
	_Atomic uint64_t served_ns; /* CPU time of the services for the app */
	/* of the app that ended last: */
	uint64_t ended_ns, ended_bg_units; /* when its first frame was reported */
	uint64_t voluntary, forced;	   /* context switches */
	uint64_t cpu_us;		   /* CPU time */
	_Atomic int32_t pid;
	_Atomic uint32_t ended; /* launches that have ended: a futex */
};

static struct shared *shared;

/* roll returns a number from three quarters to five quarters of mean. */
static inline uint32_t roll(uint32_t mean)
{
	return mean - mean / 4 + (uint32_t)(throw_dice() % (mean / 2 + 1));
}

/* work does a number of units and counts them where they belong. */
static inline void work(uint32_t units, int background)
{
	churn(units * UNIT_BLOCKS);
	atomic_fetch_add(background ? &shared->bg_units : &shared->app_units, units);
}

static inline void name(const char *comm)
{
	prctl(PR_SET_NAME, comm);
}

/* prefer gives the calling thread what the app is given; ui: it draws or is drawn by. */
static inline void prefer(int ui)
{
	struct sched_param param = { .sched_priority = 1 };

	if (app_kind == APP_NICE && setpriority(PRIO_PROCESS, 0, -20))
		die("setpriority");
	if (app_kind == APP_FIFO && ui &&
	    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		die("sched_setscheduler");
}

static inline void run(void *(*body)(void *), void *arg)
{
	pthread_t id;

	if (pthread_create(&id, NULL, body, arg))
		die("pthread_create");
}

#endif
