/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inversion_kill.h - waits that end because the other side is killed.
 *
 * The other side is a process that has the lock, or the request, and works for ever.
 * Some time after the wait has begun a real-time thread kills it. A lock is robust,
 * so that the next owner is told, before the process gives its memory back; of a pipe
 * the client reads the end, after that: then the CPU time of the exit is work.
 */
#ifndef ROTA_INVERSION_KILL_H
#define ROTA_INVERSION_KILL_H

#include "inversion.h"

#define KILL_NS 2000000 /* after the beginning of the wait */

static volatile pid_t victim;

static inline void *kill_when_due(void *arg)
{
	struct sched_param param = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
	for (;;) {
		while (!victim || !shared->due_ns)
			usleep(LOOK_US);
		sleep_until(shared->due_ns);
		shared->due_ns = clock_ns(CLOCK_MONOTONIC);
		kill(victim, SIGKILL);
		victim = 0;
	}
	return arg;
}

/* start_victim returns when it has the lock, or waits for a request at fd. */
static inline pid_t start_victim(int fd)
{
	pid_t pid = spawn();
	char byte;

	if (pid) {
		usleep(SETTLE_US);
		return pid;
	}
	name("inv-low", 19);
	if (fd >= 0 ? read(fd, &byte, 1) != 1 : pthread_mutex_lock(&shared->lock))
		die("victim");
	for (;;)
		shared->worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void make_victims(pthread_mutexattr_t *attr)
{
	pthread_mutexattr_setpshared(attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, attr);
	run(kill_when_due, 0);
}

/* begin_wait lets the hogs run, and returns when the wait begins. */
static inline uint64_t begin_wait(pid_t pid)
{
	uint64_t start;

	crowd(1);
	usleep(CROWD_US);
	start = clock_ns(CLOCK_MONOTONIC);
	shared->due_ns = start + KILL_NS;
	victim = pid;
	return start;
}

/* end_wait returns what the wait took; exit_ns: and what CPU time the exit had. */
static inline struct waited end_wait(pid_t pid, uint64_t start, uint64_t *exit_ns)
{
	uint64_t worked_ns = shared->worked_ns;
	struct rusage usage;
	struct waited w;

	shared->worked_ns = 0;
	w = since(start);
	crowd(0);
	if (wait4(pid, NULL, 0, &usage) != pid)
		die("wait4");
	shared->due_ns = 0;
	*exit_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u - worked_ns;
	return w;
}

static inline struct waited owner_dies_once(void)
{
	pid_t pid = start_victim(-1);
	uint64_t start = begin_wait(pid), exit_ns;
	struct waited w;

	if (pthread_mutex_lock(&shared->lock) != EOWNERDEAD) {
		fprintf(stderr, "lock: the owner has not died\n");
		exit(1);
	}
	w = end_wait(pid, start, &exit_ns);
	pthread_mutex_consistent(&shared->lock);
	pthread_mutex_unlock(&shared->lock);
	return w;
}

static inline struct waited server_dies_once(void)
{
	int request[2], answer[2];
	struct waited w;
	uint64_t start, exit_ns;
	char byte = 0;
	pid_t pid;

	if (pipe(request) || pipe(answer))
		die("pipe");
	pid = start_victim(request[0]);
	close(request[0]);
	close(answer[1]);
	start = begin_wait(pid);
	if (write(request[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 0) {
		fprintf(stderr, "pipe: the server has not died\n");
		exit(1);
	}
	w = end_wait(pid, start, &exit_ns);
	w.excess -= exit_ns;
	close(request[1]);
	close(answer[0]);
	return w;
}

#endif
