// SPDX-License-Identifier: Apache-2.0
/*
 * names THREADS RENAMES - threads that all rename themselves at once, RENAMES times each.
 *
 * Half of them end as urgent-name, half as later-name. Prints "quiet" when all have their
 * last name, and stays.
 */
#define _GNU_SOURCE
#include "process.h"

#include <pthread.h>

#define WORK 20000 /* loops between two names, on average half */

static int renames;
static pthread_barrier_t start, quiet;

static void work(void)
{
	for (volatile uint64_t left = throw_dice() % WORK; left; left--)
		;
}

static void *rename_often(void *arg)
{
	intptr_t me = (intptr_t)arg;
	char name[16];

	seed_dice((uint64_t)me);
	pthread_barrier_wait(&start);
	for (int i = 0; i < renames; i++) {
		work();
		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
	}
	prctl(PR_SET_NAME, me % 2 ? "urgent-name" : "later-name");
	pthread_barrier_wait(&quiet);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads;
	pthread_t id;

	if (argc != 3) {
		fprintf(stderr, "usage: names THREADS RENAMES\n");
		return 2;
	}
	threads = (unsigned int)number(argv[1], 1, 10000);
	renames = (int)number(argv[2], 0, 1000000);
	pthread_barrier_init(&start, NULL, threads);
	pthread_barrier_init(&quiet, NULL, threads + 1);
	for (intptr_t i = 0; i < (intptr_t)threads; i++)
		if (pthread_create(&id, NULL, rename_often, (void *)i))
			die("pthread_create");
	pthread_barrier_wait(&quiet);
	printf("quiet\n");
	fflush(stdout);
	for (;;)
		pause();
}
