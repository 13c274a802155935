// SPDX-License-Identifier: Apache-2.0
/*
 * renumber NAME - a thread takes another tid while somebody waits for it.
 *
 * Problem: who waits for a thread knows it by its tid. One that starts another program, and
 * is not the first of its process, has that one's tid from then on.
 *
 * How: such a thread holds a robust mutex, whose word is its tid, and becomes sleep(1) after
 * a while. The kernel gives the mutex back, and a process by this name, which waits for it
 * since before that, goes on. Prints "given back" then; sleep stays.
 */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define SETTLE_US 300000 /* a name has been seen after so long, and who is to wait does */

static struct shared {
	pthread_mutex_t lock;
	_Atomic int32_t held;
} *shared;

static void *hold_and_exec(void *arg)
{
	pthread_mutex_lock(&shared->lock);
	atomic_store(&shared->held, 1);
	usleep(2 * SETTLE_US);
	execlp("sleep", "sleep", "1000", (char *)NULL);
	die("execlp sleep");
	return arg;
}

static void wait_for_it(const char *name)
{
	prctl(PR_SET_NAME, name);
	while (!atomic_load(&shared->held))
		usleep(1000);
	usleep(SETTLE_US);
	if (pthread_mutex_lock(&shared->lock) != EOWNERDEAD)
		die("pthread_mutex_lock");
	printf("given back\n");
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	pthread_t id;

	if (argc != 2) {
		fprintf(stderr, "usage: renumber NAME\n");
		return 2;
	}
	shared = shared_memory(sizeof(*shared));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attr);
	/* Not spawn(): the thread that it would end with is the first. */
	if (!fork()) {
		wait_for_it(argv[1]);
		return 0;
	}
	if (pthread_create(&id, NULL, hold_and_exec, NULL))
		die("pthread_create");
	for (;;)
		pause();
}
