// SPDX-License-Identifier: Apache-2.0
/*
 * progress BOUND SPEED SEEN BOARD SLOT - a program on a CPU that may be slow: counts pieces of
 * work on its slot of the board.
 *
 * Of the time of a piece at full speed, BOUND per mille wait for memory and take as long
 * at any frequency; the rest is computed, and takes longer in the measure in which the CPU
 * is slower. How fast that is, in per mille of full speed, is read from SPEED, a file of
 * eight bytes. Both parts are arithmetic here: what matters is for how long they keep the
 * CPU. Each UNIT turns of the loop end with a system call, getppid where they wait and
 * getpgid where they compute: who counts those calls counts cycles that wait, and all
 * cycles. A counter that is wrong sees SEEN per mille of the waits. The turns are fewer by
 * what a call takes, which is measured at the start. Runs until it is killed.
 */
#include <sys/syscall.h>

#include "board.h"

#define PIECE 6000 /* turns of the loop, at full speed */
#define UNIT 600   /* the same */
#define FULL 1000
#define TRIES 200  /* measurements of what a call takes */
#define CALLS 8	   /* in each */
#define TURNS 2000 /* to compare with */

/*
 * Turns of four instructions, 16 at a time as in churn(). Not inlined: each copy would have
 * turns of its own length.
 */
static __attribute__((noinline)) uint32_t compute(uint32_t y, uint64_t turns)
{
	for (; turns >= 16; turns -= 16) {
		FOUR_TIMES(FOUR_TIMES(CHURN_STEP CHURN_STEP))
	}
	for (; turns; turns--) {
		CHURN_STEP
	}
	return y;
}

/* The CPU time of so many turns, or of so many of these calls, in ns. */
static uint64_t measure(uint64_t turns, long call, uint64_t calls)
{
	static volatile uint32_t x = 1;
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	x = compute(x, turns);
	for (uint64_t i = 0; i < calls; i++)
		syscall(call, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * How many turns are as long as this call; one that is counted twice takes longer. The least
 * of many that are short: a switch, or work on another CPU, would be in a long one. A call
 * that is off by a tenth makes waits longer, or shorter, than they count.
 */
static uint64_t call_turns(long call)
{
	uint64_t turns_ns = UINT64_MAX, calls_ns = UINT64_MAX, none_ns = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		none_ns = least(none_ns, measure(0, call, 0));
		turns_ns = least(turns_ns, measure(TURNS, call, 0));
		calls_ns = least(calls_ns, measure(0, call, CALLS));
	}
	turns_ns = TURNS * (calls_ns - none_ns) / (turns_ns - none_ns) / CALLS;
	if (turns_ns <= UNIT)
		return turns_ns;
	fprintf(stderr, "progress: a system call takes as long as %llu turns: at most %d\n",
		(unsigned long long)turns_ns, UNIT);
	exit(1);
}

static volatile uint64_t *open_speed(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page;

	if (fd < 0)
		die(path);
	page = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die(path);
	close(fd);
	return page;
}

static uint64_t compute_call, wait_call; /* how many turns they take */

/* One unit, which is taken for waiting as long as some of what was seen is left. */
static uint32_t unit(uint32_t x, uint64_t *seen, struct slot *slot)
{
	slot->units++;
	if (*seen >= FULL) {
		*seen -= FULL;
		slot->waits++;
		x = compute(x, UNIT - wait_call);
		syscall(SYS_getppid, 0);
	} else {
		x = compute(x, UNIT - compute_call);
		syscall(SYS_getpgid, 0);
	}
	return x;
}

int main(int argc, char **argv)
{
	volatile uint64_t *speed;
	volatile uint32_t x = 1;
	struct slot *slot;
	uint64_t bound, share, computes = 0, waits = 0 /* turns to do */, seen = 0;

	if (argc != 6) {
		fprintf(stderr, "usage: progress BOUND SPEED SEEN BOARD SLOT\n");
		return 2;
	}
	bound = (uint64_t)number(argv[1], 0, FULL);
	speed = open_speed(argv[2]);
	compute_call = call_turns(SYS_getpgid);
	wait_call = call_turns(SYS_getppid);
	share = (uint64_t)number(argv[3], 0, 2 * FULL);
	slot = board_open(argv[4]) + number(argv[5], 0, BOARD_SLOTS - 1);
	for (;;) {
		waits += PIECE * bound / FULL;
		for (; waits >= UNIT; waits -= UNIT) {
			seen += share;
			x = unit(x, &seen, slot);
		}
		computes += PIECE * (FULL - bound) / *speed;
		for (; computes >= UNIT; computes -= UNIT)
			x = unit(x, &seen, slot);
		slot->loops++;
	}
}
