// SPDX-License-Identifier: Apache-2.0
/*
 * spawn ROUNDS - starts a process every 7 ms, which looks at the clock and ends.
 *
 * Prints how long each waited for its first moment on a CPU, fork itself included:
 * "spawn_mean_us 1210.4" and "spawn_max_us 4103.4".
 */
#include "board.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND_NS 7000000 /* does not keep step with ticks */

int main(int argc, char **argv)
{
	uint64_t sum_ns = 0, max_ns = 0, next_ns = clock_ns(CLOCK_MONOTONIC);
	volatile uint64_t *begun_ns;
	long rounds;

	if (argc != 2) {
		fprintf(stderr, "usage: spawn ROUNDS\n");
		return 2;
	}
	rounds = number(argv[1], 1, 100000);
	begun_ns = mmap(NULL, sizeof(*begun_ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (begun_ns == MAP_FAILED)
		die("mmap");
	for (long r = 0; r < rounds; r++) {
		uint64_t asked_ns, waited_ns;
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
		waited_ns = *begun_ns - asked_ns;
		sum_ns += waited_ns;
		if (waited_ns > max_ns)
			max_ns = waited_ns;
	}
	printf("spawn_mean_us %.1f\nspawn_max_us %.1f\n", (double)sum_ns / 1000 / (double)rounds,
	       (double)max_ns / 1000);
	return 0;
}
