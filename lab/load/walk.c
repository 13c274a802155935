// SPDX-License-Identifier: Apache-2.0
/*
 * walk BOARD SLOT - always runnable, and mostly in the kernel: looks up a long path.
 *
 * The kernel walks a path inside one read section of RCU. A task that loses its CPU
 * there holds up every grace period until it runs again, and with it whatever waits for
 * one, such as taking a CPU offline. Runs until it is killed.
 */
#include "board.h"

#include <string.h>
#include <sys/stat.h>

#define WALK_STEPS 200

int main(int argc, char **argv)
{
	char path[3 * WALK_STEPS + 2] = "/";
	struct slot *slot;
	struct stat found;

	if (argc != 3) {
		fprintf(stderr, "usage: walk BOARD SLOT\n");
		return 2;
	}
	slot = board_open(argv[1]) + number(argv[2], 0, BOARD_SLOTS - 1);
	for (int i = 0; i < WALK_STEPS; i++)
		strcat(path, "../"); /* of the root: the root */
	for (;;) {
		if (stat(path, &found))
			slot->errors++;
		slot->loops++;
		slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
}
