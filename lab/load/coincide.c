// SPDX-License-Identifier: Apache-2.0
/*
 * coincide - a task that is brief and a real-time one wake at one moment, above a third.
 *
 * Problem: whom a brief task interrupts goes on when that sleeps; but a real-time task that wakes
 * just then, too, has the CPU first, and for long.
 *
 * How: a thread wakes every ms on the first CPU, beside one that works on and is bound to it, too,
 * until shortly before a real-time one wakes there at the same time as the first, and works for
 * 0.2 s. Three times. Prints "stood US", the longest time for which the one that works on did not
 * look at the clock then.
 */
#define _GNU_SOURCE
#include "process.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define PERIOD_NS 1000000u
#define ROUND_NS 500000000u
#define ROUNDS 3
#define FREE_NS 1400000u /* so long before that the loop may run elsewhere */
#define WORK_NS 200000000u

static uint64_t start_ns;
static atomic_int over;

static void allow(int cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	while (cpus--)
		CPU_SET(cpus, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void *be_brief(void *arg)
{
	allow(1);
	for (uint64_t at_ns = start_ns; !over; at_ns += PERIOD_NS)
		sleep_until(at_ns);
	return arg;
}

/* A moment of the first thread, see above. */
static uint64_t moment_ns(int round)
{
	return start_ns + (uint64_t)(round + 1) * ROUND_NS;
}

static void *interrupt(void *arg)
{
	struct sched_param param = { .sched_priority = 10 };

	allow(1);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
	for (int round = 0; round < ROUNDS; round++) {
		sleep_until(moment_ns(round));
		while (clock_ns(CLOCK_MONOTONIC) < moment_ns(round) + WORK_NS)
			churn(8);
	}
	return arg;
}

static uint64_t work_on(void)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), last_ns, stood_ns = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool bound = true;

		allow(1);
		do {
			last_ns = now_ns;
			now_ns = clock_ns(CLOCK_MONOTONIC);
			if (bound && now_ns > moment_ns(round) - FREE_NS) {
				allow(2);
				bound = false;
			}
			if (!bound && now_ns - last_ns > stood_ns)
				stood_ns = now_ns - last_ns;
		} while (now_ns < moment_ns(round) + WORK_NS);
	}
	return stood_ns;
}

int main(void)
{
	pthread_t brief, above;

	start_ns = clock_ns(CLOCK_MONOTONIC) + PERIOD_NS;
	if (pthread_create(&brief, NULL, be_brief, NULL) ||
	    pthread_create(&above, NULL, interrupt, NULL))
		die("pthread_create");
	printf("stood %llu\n", (unsigned long long)work_on() / 1000);
	over = 1;
	pthread_join(brief, NULL);
	pthread_join(above, NULL);
	return 0;
}
