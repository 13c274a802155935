// SPDX-License-Identifier: Apache-2.0
/*
 * deceive ROUNDS - two processes answer each other over pipes, each asleep while the other
 * works; after EXCHANGES of that the first wakes the second once more and works on for 5 ms.
 *
 * Prints how long the second waited then for its first moment on a CPU, over all rounds:
 * "deceive_mean_us 120.4" and "deceive_max_us 203.4".
 */
#include "board.h"

#include <stdbool.h>

#define EXCHANGES 24
#define WORK_NS 5000000

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		die("write");
}

static bool get(int fd)
{
	char byte;
	ssize_t n = read(fd, &byte, 1);

	if (n < 0)
		die("read");
	return n == 1;
}

/* Notes when it was woken, and answers. */
static void answer(int from, int to, volatile uint64_t *woke_ns)
{
	while (get(from)) {
		*woke_ns = clock_ns(CLOCK_MONOTONIC);
		put(to);
	}
	_exit(0);
}

/* How long the other waited after it was deceived. */
static uint64_t round_ns(int to, int from, volatile uint64_t *woke_ns)
{
	uint64_t asked_ns;

	for (int i = 0; i < EXCHANGES; i++) {
		put(to);
		get(from);
	}
	asked_ns = clock_ns(CLOCK_MONOTONIC);
	put(to);
	while (clock_ns(CLOCK_MONOTONIC) - asked_ns < WORK_NS)
		churn(64);
	get(from);
	return *woke_ns - asked_ns;
}

int main(int argc, char **argv)
{
	struct span waited = { 0 };
	volatile uint64_t *woke_ns;
	int there[2], back[2];
	long rounds;
	pid_t other;

	if (argc != 2) {
		fprintf(stderr, "usage: deceive ROUNDS\n");
		return 2;
	}
	rounds = number(argv[1], 1, 100000);
	woke_ns = shared_memory(sizeof(*woke_ns));
	if (pipe(there) || pipe(back))
		die("pipe");
	other = fork();
	if (other < 0)
		die("fork");
	if (!other) {
		close(there[1]);
		answer(there[0], back[1], woke_ns);
	}
	for (long r = 0; r < rounds; r++)
		span_add(&waited, round_ns(there[1], back[0], woke_ns));
	span_print("deceive", &waited);
	return 0;
}
