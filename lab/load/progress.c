// SPDX-License-Identifier: Apache-2.0
/*
 * progress BOUND SPEED BOARD SLOT - a program on a CPU that may be slow: counts pieces of
 * work on its slot of the board.
 *
 * Of the time of a piece at full speed, BOUND per mille wait for memory and take as long
 * at any frequency; the rest is computed, and takes longer in the measure in which the CPU
 * is slower. How fast that is, in per mille of full speed, is read from SPEED, a file of
 * eight bytes. Both parts are arithmetic here: what matters is for how long they keep the
 * CPU. Each access to memory, of the length of ACCESS turns of the loop, is a system call
 * and turns for the rest of that time: what counts those calls counts accesses. How long a
 * call takes is measured at the start. Runs until it is killed.
 */
#include <sys/syscall.h>

#include "board.h"

#define PIECE 20000 /* turns of the loop, at full speed */
#define ACCESS 500  /* the same */
#define FULL 1000

static uint32_t compute(uint32_t y, uint64_t turns)
{
	for (uint64_t i = 0; i < turns; i++)
		y = y * 1664525u + 1013904223u;
	return y;
}

/* The CPU time of so many turns, or of so many calls, in ns. */
static uint64_t measure(uint64_t turns, uint64_t calls)
{
	static volatile uint32_t x = 1;
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	x = compute(x, turns);
	for (uint64_t i = 0; i < calls; i++)
		syscall(SYS_getppid);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec;
}

/* How many turns are as long as one call. The least of some: a switch would be in it. */
static uint64_t call_turns(void)
{
	uint64_t turns_ns = UINT64_MAX, calls_ns = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t t = measure(PIECE, 0), c = measure(0, 100);

		turns_ns = t < turns_ns ? t : turns_ns;
		calls_ns = c < calls_ns ? c : calls_ns;
	}
	return PIECE * calls_ns / turns_ns / 100;
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

int main(int argc, char **argv)
{
	volatile uint64_t *speed;
	volatile uint32_t x = 1;
	struct slot *slot;
	uint64_t bound, call;

	if (argc != 5) {
		fprintf(stderr, "usage: progress BOUND SPEED BOARD SLOT\n");
		return 2;
	}
	bound = (uint64_t)number(argv[1], 0, FULL);
	speed = open_speed(argv[2]);
	call = call_turns();
	if (call > ACCESS) {
		fprintf(stderr, "progress: a system call takes as long as %llu turns: at most %d\n",
			(unsigned long long)call, ACCESS);
		return 1;
	}
	slot = board_open(argv[3]) + number(argv[4], 0, BOARD_SLOTS - 1);
	for (;;) {
		uint32_t y = compute(x, PIECE * (FULL - bound) / *speed);

		for (uint64_t i = 0; i < PIECE * bound / FULL / ACCESS; i++) {
			y = compute(y, ACCESS - call);
			syscall(SYS_getppid);
		}
		x = y;
		slot->loops++;
	}
}
