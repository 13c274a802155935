// SPDX-License-Identifier: Apache-2.0
/*
 * spawn ROUNDS - starts a process every 7 ms, which looks at the clock and ends.
 *
 * Prints how long each waited for its first moment on a CPU, fork itself included:
 * "spawn_mean_us 1210.4" and "spawn_max_us 4103.4".
 */
#include "board.h"

#include <sys/wait.h>

#define ROUND_NS 7000000 /* does not keep step with ticks */

int main(int argc, char **argv)
{
	struct span waited = { 0 };
	uint64_t next_ns = clock_ns(CLOCK_MONOTONIC);
	volatile uint64_t *begun_ns;
	long rounds;

	if (argc != 2) {
		fprintf(stderr, "usage: spawn ROUNDS\n");
		return 2;
	}
	rounds = number(argv[1], 1, 100000);
	begun_ns = shared_memory(sizeof(*begun_ns));
	for (long r = 0; r < rounds; r++) {
		uint64_t asked_ns;
		pid_t child;

		next_ns += ROUND_NS;
		sleep_until(next_ns);
		asked_ns = clock_ns(CLOCK_MONOTONIC);
		child = fork();
		if (child < 0)
			die("fork");
		if (!child) {
			*begun_ns = clock_ns(CLOCK_MONOTONIC);
			_exit(0);
		}
		if (waitpid(child, NULL, 0) != child)
			die("waitpid");
		span_add(&waited, *begun_ns - asked_ns);
	}
	span_print("spawn", &waited);
	return 0;
}
