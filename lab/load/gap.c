// SPDX-License-Identifier: Apache-2.0
/*
 * gap BOARD SLOT [THREADS] - always runnable threads that look at the clock all
 * the time: the longest jump between two looks is the longest time for which a
 * runnable task got no CPU. Thread i writes slot SLOT+i. Runs until it is killed.
 */
#include "board.h"

#include <pthread.h>

static void *look(void *arg)
{
	struct slot *slot = arg;
	uint64_t last = clock_ns(CLOCK_MONOTONIC);

	slot->since_ns = last;
	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now - last > slot->gap_ns)
			slot->gap_ns = now - last;
		last = now;
		slot->since_ns = now;
		if ((++slot->loops & 0xff) == 0)
			slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		churn(8);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct slot *board;
	long first, threads;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: gap BOARD SLOT [THREADS]\n");
		return 2;
	}
	board = board_open(argv[1]);
	first = number(argv[2], 0, BOARD_SLOTS - 1);
	threads = argc == 4 ? number(argv[3], 1, BOARD_SLOTS - first) : 1;
	for (long i = 1; i < threads; i++) {
		pthread_t id;

		if (pthread_create(&id, NULL, look, board + first + i))
			die("pthread_create");
	}
	look(board + first);
	return 0;
}
