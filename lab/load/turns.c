// SPDX-License-Identifier: Apache-2.0
/*
 * turns MEMBERS WHICH BOARD SLOT - one of MEMBERS hogs that share one CPU and
 * measure how long each of their turns is. All start at the same moment.
 *
 * A hog looks at the clock all the time. Where the clock jumps, either an
 * interrupt was served or another task ran: the kernel's count of this thread's
 * switches tells which, and so no jump is too short to be seen as the end of a
 * turn. Interrupts belong to the turn, as they do for the scheduler.
 *
 * Each hog has TURNS_SLOTS slots from SLOT + WHICH * TURNS_SLOTS on: a slot of
 * counters, then its histogram, two buckets per power of two from 8.192 us on.
 * A hog whose turn begins sees what all others had when theirs ended: it takes
 * the greatest distance of anybody's time from its fair share, the lag.
 * Runs until it is killed.
 */
#define _GNU_SOURCE
#include "board.h"

#include <sys/resource.h>

#define TURNS_SLOTS 5
#define BUCKETS 32
#define LOWEST_BIT 13	  /* the first bucket begins at 2^13 ns */
#define JUMP_NS 3000	  /* what takes so long may have been another task */
#define START_NS 50000000 /* from the last hog's arrival to the start */

static long members;
static struct slot *first;

static struct slot *member(long i)
{
	return first + i * TURNS_SLOTS;
}

static long switches(void)
{
	struct rusage use;

	if (getrusage(RUSAGE_THREAD, &use))
		die("getrusage");
	return use.ru_nvcsw + use.ru_nivcsw;
}

/* start returns the moment at which all begin: soon after the last has come. */
static uint64_t start(struct slot *mine)
{
	uint64_t last = 0;

	mine->since_ns = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < members; i++) {
		while (!member(i)->since_ns)
			usleep(1000);
		if (member(i)->since_ns > last)
			last = member(i)->since_ns;
	}
	return last + START_NS;
}

static int bucket_of(uint64_t ns)
{
	int bit = 63 - __builtin_clzll(ns | 1), bucket;

	if (bit < LOWEST_BIT)
		return 0;
	bucket = 2 * (bit - LOWEST_BIT) + (int)(ns >> (bit - 1) & 1);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* count_turn counts a turn that has ended, and its time in spare. */
static void count_turn(struct slot *mine, uint64_t ns)
{
	volatile uint64_t *counts = (volatile uint64_t *)(mine + 1);

	counts[bucket_of(ns)]++;
	mine->loops++;
	mine->spare += ns;
}

/* lag is the greatest distance of a hog's time from an equal share, now. */
static uint64_t lag(void)
{
	uint64_t all = 0, greatest = 0;

	for (long i = 0; i < members; i++)
		all += member(i)->cpu_ns;
	for (long i = 0; i < members; i++) {
		uint64_t had = member(i)->cpu_ns, fair = all / (uint64_t)members;
		uint64_t distance = had > fair ? had - fair : fair - had;

		if (distance > greatest)
			greatest = distance;
	}
	return greatest;
}

static void hog(struct slot *mine)
{
	uint64_t begun = clock_ns(CLOCK_MONOTONIC), last = begun, before = 0;
	long seen = switches();

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now - last > JUMP_NS && switches() != seen) {
			uint64_t greatest = lag();

			count_turn(mine, last - begun);
			before += last - begun;
			if (greatest > mine->gap_ns)
				mine->gap_ns = greatest;
			seen = switches();
			now = begun = clock_ns(CLOCK_MONOTONIC);
		}
		last = now;
		mine->cpu_ns = before + (now - begun);
	}
}

int main(int argc, char **argv)
{
	struct slot *mine;
	long which, slot;

	if (argc != 5) {
		fprintf(stderr, "usage: turns MEMBERS WHICH BOARD SLOT\n");
		return 2;
	}
	members = number(argv[1], 1, BOARD_SLOTS / TURNS_SLOTS);
	which = number(argv[2], 0, members - 1);
	slot = number(argv[4], 0, BOARD_SLOTS - TURNS_SLOTS);
	if (slot < which * TURNS_SLOTS || slot + (members - which) * TURNS_SLOTS > BOARD_SLOTS) {
		fprintf(stderr, "%s: not the slot of hog %ld of %ld\n", argv[4], which, members);
		return 2;
	}
	mine = board_open(argv[3]) + slot;
	first = mine - which * TURNS_SLOTS;
	sleep_until(start(mine));
	hog(mine);
	return 0;
}
