// SPDX-License-Identifier: Apache-2.0
/*
 * progress BOUND SPEED BOARD SLOT - a program on a CPU that may be slow: counts pieces of
 * work on its slot of the board.
 *
 * Of the time of a piece at full speed, BOUND per mille wait for memory and take as long
 * at any frequency; the rest is computed, and takes longer in the measure in which the CPU
 * is slower. How fast that is, in per mille of full speed, is read from SPEED, a file of
 * eight bytes. Both parts are arithmetic here: what matters is for how long they keep the
 * CPU. Runs until it is killed.
 */
#include "board.h"

#define PIECE 20000 /* turns of the loop, at full speed */
#define FULL 1000

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
	uint64_t bound;

	if (argc != 5) {
		fprintf(stderr, "usage: progress BOUND SPEED BOARD SLOT\n");
		return 2;
	}
	bound = (uint64_t)number(argv[1], 0, FULL);
	speed = open_speed(argv[2]);
	slot = board_open(argv[3]) + number(argv[4], 0, BOARD_SLOTS - 1);
	for (;;) {
		uint64_t turns = PIECE * bound / FULL + PIECE * (FULL - bound) / *speed;
		uint32_t y = x;

		for (uint64_t i = 0; i < turns; i++)
			y = y * 1664525u + 1013904223u;
		x = y;
		slot->loops++;
	}
}
