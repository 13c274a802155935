// SPDX-License-Identifier: Apache-2.0
/*
 * lent ROUNDS [HELD_MS] - who owns a lock hands a message to and fro with another process,
 * while an important thread waits for the lock. All of it on the CPU where it is started.
 *
 * The important one is called "important", and who answers "answers". With HELD_MS somebody
 * called "before" is before it in line, and works for so long of CPU time when it has the lock,
 * as the first owner does without it then. Prints how long a message there and one back take:
 * "round_ns 9731.0".
 */
#include "process.h"

#include <pthread.h>
#include <stdbool.h>

#define LOOK_US 1000  /* between looks at what another one does */
#define SETTLE_MS 100 /* until a name is known, or somebody waits */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread that wants the lock when it is its turn. */
struct wanted {
	const char *name;
	long held_ms;
	volatile bool turn;
	pthread_t id;
};

static void work(long ms)
{
	use_cpu(clock_ns(CLOCK_THREAD_CPUTIME_ID), (uint64_t)ms * 1000000);
}

static void *want(void *arg)
{
	struct wanted *who = arg;

	prctl(PR_SET_NAME, who->name);
	while (!who->turn)
		usleep(LOOK_US);
	pthread_mutex_lock(&lock);
	work(who->held_ms);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void begin(struct wanted *who)
{
	if (pthread_create(&who->id, NULL, want, who))
		die("pthread_create");
	usleep(SETTLE_MS * 1000);
}

/* line_up lets it wait behind those that do already. */
static void line_up(struct wanted *who)
{
	who->turn = true;
	usleep(SETTLE_MS * 1000);
}

static void pass(int from, int to)
{
	char byte;

	if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
		die("pipe");
}

static void answer(int from, int to)
{
	prctl(PR_SET_NAME, "answers");
	for (;;)
		pass(from, to);
}

/* rounds does so many, and returns the ns of one. */
static double rounds(long n, int from, int to)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (long i = 0; i < n; i++)
		pass(from, to);
	return (double)(clock_ns(CLOCK_MONOTONIC) - start) / (double)n;
}

int main(int argc, char **argv)
{
	struct wanted important = { .name = "important" }, before = { .name = "before" };
	int there[2], back[2];
	long n;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: lent ROUNDS [HELD_MS]\n");
		return 2;
	}
	n = number(argv[1], 1, 1000000);
	before.held_ms = argc == 3 ? number(argv[2], 1, 10000) : 0;
	if (pipe(there) || pipe(back))
		die("pipe");
	if (!spawn())
		answer(there[0], back[1]);
	begin(&important);
	if (before.held_ms)
		begin(&before);
	pthread_mutex_lock(&lock);
	if (before.held_ms)
		line_up(&before);
	line_up(&important);
	if (write(back[1], "", 1) != 1)
		die("pipe");
	rounds(n / 10 + 1, back[0], there[1]);
	printf("round_ns %.1f\n", rounds(n, back[0], there[1]));
	pthread_mutex_unlock(&lock);
	work(before.held_ms); /* or it would seem to wait for whom it has just woken */
	pthread_join(important.id, NULL);
	if (before.held_ms)
		pthread_join(before.id, NULL);
	return 0;
}
