// SPDX-License-Identifier: Apache-2.0
/*
 * hog BOARD SLOT - always runnable: counts loops on its slot of the board.
 *
 * The inner loop is pure arithmetic, about 20000 instructions between two
 * updates, so that the cost of counting does not show. Runs until it is killed.
 */
#include "board.h"

int main(int argc, char **argv)
{
	struct slot *slot;
	volatile uint32_t x = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: hog BOARD SLOT\n");
		return 2;
	}
	slot = board_open(argv[1]) + number(argv[2], 0, BOARD_SLOTS - 1);
	for (;;) {
		uint32_t y = x;

		for (int i = 0; i < 5000; i++)
			y = y * 1664525u + 1013904223u;
		x = y;
		slot->loops++;
		slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
}
