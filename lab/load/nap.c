// SPDX-License-Identifier: Apache-2.0
/*
 * nap WORK PERIOD BOARD SLOT - wants WORK us of CPU time in every PERIOD us and
 * sleeps for the rest. Counts periods and its CPU time on its slot of the board.
 *
 * What it wants adds up: after n periods it works until it has had n * WORK, so
 * that the cost of sleeping is part of the work, and who was late catches up.
 * In errors it counts the periods that ended before it had its work.
 * Runs until it is killed.
 */
#define _GNU_SOURCE
#include "board.h"

static void work_until(struct slot *slot, uint64_t cpu_ns)
{
	do {
		churn(15);
		slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (slot->cpu_ns < cpu_ns);
}

int main(int argc, char **argv)
{
	uint64_t work_ns, period_ns, next_ns, had_ns;
	struct slot *slot;

	if (argc != 5) {
		fprintf(stderr, "usage: nap WORK PERIOD BOARD SLOT\n");
		return 2;
	}
	work_ns = (uint64_t)number(argv[1], 1, 1000000) * 1000;
	period_ns = (uint64_t)number(argv[2], 1, 100000000) * 1000;
	slot = board_open(argv[3]) + number(argv[4], 0, BOARD_SLOTS - 1);
	had_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	next_ns = clock_ns(CLOCK_MONOTONIC);
	for (;;) {
		had_ns += work_ns;
		work_until(slot, had_ns);
		slot->loops++;
		next_ns += period_ns;
		if (clock_ns(CLOCK_MONOTONIC) > next_ns) {
			slot->errors++;
			continue;
		}
		sleep_until(next_ns);
	}
}
