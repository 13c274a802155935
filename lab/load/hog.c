// SPDX-License-Identifier: Apache-2.0
/*
 * hog [USER] BOARD SLOT - always runnable: counts loops on its slot of the board.
 *
 * With USER it gives up its rights for those of this user, by number, after
 * HOG_ROOT_NS of CPU time, and goes on without executing another program.
 *
 * It computes, about 20000 instructions between two updates, so that the cost of
 * counting does not show. Runs until it is killed.
 */
#include "board.h"

#include <unistd.h>

#define HOG_ROOT_NS 100000000 /* long enough for its first class to be known */

int main(int argc, char **argv)
{
	struct slot *slot;
	uid_t user = 0;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: hog [USER] BOARD SLOT\n");
		return 2;
	}
	if (argc == 4) {
		user = (uid_t)number(argv[1], 1, 65534);
		argv++;
	}
	slot = board_open(argv[1]) + number(argv[2], 0, BOARD_SLOTS - 1);
	for (;;) {
		churn(154);
		slot->loops++;
		slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (user && slot->cpu_ns > HOG_ROOT_NS) {
			if (setuid(user))
				die("setuid");
			user = 0;
		}
	}
}
