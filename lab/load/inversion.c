// SPDX-License-Identifier: Apache-2.0
/*
 * inversion KIND CHAIN HOGS ROUNDS - how long does an important thread wait for
 * unimportant ones, when HOGS threads beside them want all CPUs?
 *
 * KIND is what it waits for: "mutex", "pi" (a mutex with PTHREAD_PRIO_INHERIT) or
 * "pipe" (a request, answered by a server). Of CHAIN unimportant threads the first
 * has what the important one wants and waits for the second in the same way, and
 * so on; the last one works for SECTION_NS. The hogs pause while locks are taken.
 *
 * Threads are named inv-high (nice -20), inv-low (nice 19) and inv-hog (nice 0).
 * Prints the longest wait, its mean, and how long the longest wait was beyond the
 * CPU time of the work that was waited for: "wait_max_ms 3.1 wait_avg_ms 1.2
 * excess_max_ms 2.1".
 */
#define _GNU_SOURCE
#include "board.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define MAX_CHAIN 8
#define SECTION_NS 500000
#define LOOK_US 500	 /* how often a thread looks whether it is its turn */
#define CROWD_US 10000	 /* for so long the hogs have had the CPUs when the wait begins */
#define SETTLE_US 300000 /* for so long names have been seen when the first round begins */

static long chain;
static enum { MUTEX, PIPE } kind;
static pthread_mutex_t locks[MAX_CHAIN];
static int requests[MAX_CHAIN][2], answers[MAX_CHAIN][2];
static volatile long stage = -1; /* whose turn it is to take his lock, -1: nobody's */
static volatile int crowded;	 /* the hogs run */
static volatile uint64_t worked_ns;

static void name(const char *comm, int nice_value)
{
	prctl(PR_SET_NAME, comm);
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice_value))
		die("setpriority");
}

static void *hog(void *arg)
{
	volatile uint64_t n = 0;

	name("inv-hog", 0);
	for (;;) {
		if (!crowded)
			syscall(SYS_futex, &crowded, FUTEX_WAIT, 0, NULL, NULL, 0);
		n++;
	}
	return arg;
}

static void crowd(int on)
{
	crowded = on;
	syscall(SYS_futex, &crowded, FUTEX_WAKE, on ? INT_MAX : 0, NULL, NULL, 0);
}

static void work(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;
	volatile uint64_t n = 0;

	do {
		for (int i = 0; i < 2000; i++)
			n++;
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (now - start < SECTION_NS);
	worked_ns = now - start;
}

/* own takes lock i when it is its turn, and gives it back when it has had the next one. */
static void own(long i)
{
	while (stage != i)
		usleep(LOOK_US);
	pthread_mutex_lock(&locks[i]);
	stage = i - 1;
	if (i + 1 < chain) {
		pthread_mutex_lock(&locks[i + 1]);
		pthread_mutex_unlock(&locks[i + 1]);
	} else {
		while (!crowded)
			usleep(LOOK_US);
		work();
	}
	pthread_mutex_unlock(&locks[i]);
}

static void transfer(int fd, int writes)
{
	char byte = 0;

	if ((writes ? write(fd, &byte, 1) : read(fd, &byte, 1)) != 1)
		die("pipe");
}

static void ask(long i)
{
	transfer(requests[i][1], 1);
	transfer(answers[i][0], 0);
}

static void serve(long i)
{
	transfer(requests[i][0], 0);
	if (i + 1 < chain)
		ask(i + 1);
	else
		work();
	transfer(answers[i][1], 1);
}

static void *low(void *arg)
{
	name("inv-low", 19);
	for (;;)
		kind == PIPE ? serve((long)arg) : own((long)arg);
	return NULL;
}

/* wait_once returns how long one wait took, in ns. */
static uint64_t wait_once(void)
{
	uint64_t start;

	if (kind == MUTEX) {
		stage = chain - 1;
		while (stage >= 0)
			usleep(LOOK_US);
		usleep(CROWD_US); /* the last who took a lock waits for the next one */
	}
	crowd(1);
	usleep(CROWD_US);
	start = clock_ns(CLOCK_MONOTONIC);
	if (kind == PIPE) {
		ask(0);
	} else {
		pthread_mutex_lock(&locks[0]);
		pthread_mutex_unlock(&locks[0]);
	}
	start = clock_ns(CLOCK_MONOTONIC) - start;
	crowd(0);
	usleep(CROWD_US);
	return start;
}

static void make(const char *what)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (!strcmp(what, "pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	else if (!strcmp(what, "pipe"))
		kind = PIPE;
	else if (strcmp(what, "mutex")) {
		fprintf(stderr, "%s: must be mutex, pi or pipe\n", what);
		exit(2);
	}
	for (long i = 0; i < chain; i++) {
		pthread_mutex_init(&locks[i], &attr);
		if (pipe(requests[i]) || pipe(answers[i]))
			die("pipe");
	}
}

static void run(void *(*body)(void *), long arg)
{
	pthread_t id;

	if (pthread_create(&id, NULL, body, (void *)arg))
		die("pthread_create");
}

int main(int argc, char **argv)
{
	double longest = 0, sum = 0, excess = 0;
	long hogs, rounds;

	if (argc != 5) {
		fprintf(stderr, "usage: inversion KIND CHAIN HOGS ROUNDS\n");
		return 2;
	}
	chain = number(argv[2], 1, MAX_CHAIN);
	hogs = number(argv[3], 0, 1024);
	rounds = number(argv[4], 1, 100000);
	make(argv[1]);
	for (long i = 0; i < chain; i++)
		run(low, i);
	for (long i = 0; i < hogs; i++)
		run(hog, i);
	name("inv-high", -20);
	usleep(SETTLE_US);
	for (long i = 0; i < rounds; i++) {
		double waited = (double)wait_once() / 1e6;
		double beyond = waited - (double)worked_ns / 1e6;

		sum += waited;
		longest = waited > longest ? waited : longest;
		excess = beyond > excess ? beyond : excess;
	}
	printf("wait_max_ms %.3f wait_avg_ms %.3f excess_max_ms %.3f\n", longest,
	       sum / (double)rounds, excess);
	return 0;
}
