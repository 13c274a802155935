// SPDX-License-Identifier: Apache-2.0
/*
 * lent ROUNDS - who owns a lock hands a message to and fro with another process, while an
 * important thread waits for the lock. All of it on the CPU where it is started.
 *
 * The important one is called "important", and who answers "answers". Prints how long a
 * message there and one back take: "round_ns 9731.0".
 */
#include "process.h"

#include <pthread.h>
#include <stdbool.h>

#define BETWEEN_US 1000 /* looks at what another one does */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool taken;

/* want takes the lock, which somebody else has. */
static void *want(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "important");
	while (!taken)
		usleep(BETWEEN_US);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return NULL;
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
	int there[2], back[2];
	pthread_t id;
	long n;

	if (argc != 2) {
		fprintf(stderr, "usage: lent ROUNDS\n");
		return 2;
	}
	n = number(argv[1], 1, 1000000);
	if (pipe(there) || pipe(back))
		die("pipe");
	if (!spawn())
		answer(there[0], back[1]);
	if (pthread_create(&id, NULL, want, NULL))
		die("pthread_create");
	usleep(100 * BETWEEN_US); /* until its name is known */
	pthread_mutex_lock(&lock);
	taken = true;
	usleep(100 * BETWEEN_US); /* until it waits */
	if (write(back[1], "", 1) != 1)
		die("pipe");
	rounds(n / 10 + 1, back[0], there[1]);
	printf("round_ns %.1f\n", rounds(n, back[0], there[1]));
	pthread_mutex_unlock(&lock);
	pthread_join(id, NULL);
	return 0;
}
