// SPDX-License-Identifier: Apache-2.0
/*
 * bell HELPERS ROUNDS - every 20 ms one thread wakes all helpers, one by one, and goes on to
 * work for 8 ms.
 *
 * Prints how long the helpers, who hardly work, waited for their CPU:
 * "bell_mean_us 1980.2" and "bell_max_us 2103.4".
 */
#include "board.h"

#include <pthread.h>
#include <sys/eventfd.h>

#define HELPERS 16
#define ROUND_NS 20000000
#define WORK_NS 8000000

static struct helper {
	int bell;
	uint64_t rung_ns; /* when it was rung last */
	struct span waited;
} helpers[HELPERS];

static long rounds;

static void *answer(void *arg)
{
	struct helper *h = arg;

	for (long i = 0; i < rounds; i++) {
		uint64_t rings;

		if (read(h->bell, &rings, sizeof(rings)) != sizeof(rings))
			die("read");
		span_add(&h->waited, clock_ns(CLOCK_MONOTONIC) - h->rung_ns);
	}
	return NULL;
}

static void ring(struct helper *h)
{
	uint64_t once = 1;

	h->rung_ns = clock_ns(CLOCK_MONOTONIC);
	if (write(h->bell, &once, sizeof(once)) != sizeof(once))
		die("write");
}

int main(int argc, char **argv)
{
	pthread_t ids[HELPERS];
	struct span all = { 0 };
	uint64_t next_ns;
	long n;

	if (argc != 3) {
		fprintf(stderr, "usage: bell HELPERS ROUNDS\n");
		return 2;
	}
	n = number(argv[1], 1, HELPERS);
	rounds = number(argv[2], 1, 100000);
	for (long i = 0; i < n; i++) {
		helpers[i].bell = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
		if (helpers[i].bell < 0 || pthread_create(&ids[i], NULL, answer, &helpers[i]))
			die("start a helper");
	}
	next_ns = clock_ns(CLOCK_MONOTONIC);
	for (long r = 0; r < rounds; r++) {
		next_ns += ROUND_NS;
		sleep_until(next_ns);
		for (long i = 0; i < n; i++)
			ring(&helpers[i]);
		use_cpu(clock_ns(CLOCK_THREAD_CPUTIME_ID), WORK_NS);
	}
	for (long i = 0; i < n; i++) {
		if (pthread_join(ids[i], NULL))
			die("pthread_join");
		span_join(&all, &helpers[i].waited);
	}
	span_print("bell", &all);
	return 0;
}
