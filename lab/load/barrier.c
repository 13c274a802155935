// SPDX-License-Identifier: Apache-2.0
/*
 * barrier THREADS ROUNDS [NICE] - all threads meet at a barrier ROUNDS times.
 *
 * With NICE, every second thread has that nice value.
 * Prints the time of the rounds alone, without the creation of the threads and
 * without their end: "barrier_s 0.135". A scheduler that loses or delays one
 * wake-up delays all.
 */
#include "board.h"

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static pthread_barrier_t meet;
static long rounds, nice_value;

/* When who came last came to the first meeting, and to the last: all write, the last one stays. */
static uint64_t first_ns, last_ns;

static void *take_part(void *arg)
{
	if (arg && setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), (int)nice_value))
		die("setpriority");
	for (long i = 0; i <= rounds; i++) {
		if (i == 0 || i == rounds)
			__atomic_store_n(i ? &last_ns : &first_ns, clock_ns(CLOCK_MONOTONIC),
					 __ATOMIC_RELAXED);
		pthread_barrier_wait(&meet);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t *ids;
	long threads;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: barrier THREADS ROUNDS [NICE]\n");
		return 2;
	}
	threads = number(argv[1], 1, 4096);
	rounds = number(argv[2], 1, 100000);
	nice_value = argc > 3 ? number(argv[3], 0, 19) : 0;
	ids = calloc((size_t)threads, sizeof(*ids));
	if (!ids)
		die("calloc");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 16384);
	pthread_barrier_init(&meet, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], &attr, take_part, nice_value && i % 2 ? &meet : NULL))
			die("pthread_create");
	for (long i = 0; i < threads; i++)
		if (pthread_join(ids[i], NULL))
			die("pthread_join");
	printf("barrier_s %.6f\n", (double)(last_ns - first_ns) / 1e9);
	return 0;
}
