/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits_gang.h - a process whose threads wait for each other, for other gangs and for
 * servers.
 *
 * A thread that has what it waited for works a little, and sometimes sleeps, or waits
 * for something of a later kind, so that there are chains and nobody waits in a
 * circle. Now and then who has a lock of all gangs dies with it, and a server in the
 * middle of a request; the first thread of the gang then starts another one.
 */
#ifndef ROTA_WAITS_GANG_H
#define ROTA_WAITS_GANG_H

#include "waits.h"

#define GANG_LOCKS 2
#define WRITE_BYTES (16 << 10)
#define OWNER_DIES 4096 /* once in so many locks of all gangs */
#define SERVER_DIES 512 /* once in so many requests */

static const char *const names[] = { "waits-high", "waits-mid", "waits-low" };

static struct {
	pthread_mutex_t locks[GANG_LOCKS], pi[GANG_LOCKS];
	int file, binder, number;
	uint64_t seed;
	struct {
		int request, answer; /* our ends of the pipes */
		_Atomic pid_t pid;   /* 0: it is dead */
		_Atomic int busy;    /* a member uses the pipes */
	} servers[MEMBERS];
} gang;

static inline long slept(void)
{
	struct rusage use;

	if (getrusage(RUSAGE_THREAD, &use))
		die("getrusage");
	return use.ru_nvcsw;
}

/* have is what a member does with a lock before it gives it back. */
static void have(enum kind kind, int me);

/* take locks a mutex, or gives up after a while; 0: this member has it. */
static inline int take(pthread_mutex_t *lock)
{
	struct timespec limit;
	int err;

	if (roll(3))
		return pthread_mutex_lock(lock);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_nsec += 20000 + (long)roll(400000);
	if (limit.tv_nsec >= 1000000000) {
		limit.tv_nsec -= 1000000000;
		limit.tv_sec++;
	}
	err = pthread_mutex_timedlock(lock, &limit);
	if (err == ETIMEDOUT)
		atomic_fetch_add(&shared->timeouts, 1);
	return err;
}

static inline void count(enum kind kind, long before)
{
	if (slept() != before)
		atomic_fetch_add(&shared->waits[kind], 1);
}

static inline void wait_for_lock(enum kind kind, pthread_mutex_t *lock, int me)
{
	long before = slept();
	int err = take(lock);

	count(kind, before);
	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(lock);
	if (err == ETIMEDOUT)
		return;
	if (err) {
		fprintf(stderr, "lock of kind %d: %s\n", kind, strerror(err));
		_exit(1);
	}
	have(kind, me);
	pthread_mutex_unlock(lock);
}

/* wait_for_answer asks this member's server; one that is dead is replaced by the first thread. */
static inline void wait_for_answer(int me)
{
	ssize_t got = 0;
	long before;
	char byte = 0;

	atomic_store(&gang.servers[me].busy, 1);
	if (atomic_load(&gang.servers[me].pid)) {
		before = slept();
		if (write(gang.servers[me].request, &byte, 1) == 1)
			while ((got = read(gang.servers[me].answer, &byte, 1)) < 0 &&
			       errno == EINTR)
				atomic_fetch_add(&shared->signals, 1);
		count(PIPE, before);
		if (got != 1)
			atomic_store(&gang.servers[me].pid, 0);
	}
	atomic_store(&gang.servers[me].busy, 0);
}

/* While one writes to a file the kernel holds a lock of it. */
static inline void wait_for_file(void)
{
	static const char bytes[WRITE_BYTES];
	long before = slept();

	if (pwrite(gang.file, bytes, sizeof(bytes), 0) < 0 && errno != EINTR)
		die("pwrite");
	count(FILE_LOCK, before);
}

static inline void wait_for_call(void)
{
	struct message nothing = { 0 };
	long before = slept();

	if (!atomic_load(&shared->binder))
		return;
	binder_try(gang.binder, 1, &nothing);
	count(BINDER, before);
}

static inline void wait_for(enum kind kind, int me)
{
	switch (kind) {
	case MUTEX:
		wait_for_lock(kind, &gang.locks[roll(GANG_LOCKS)], me);
		break;
	case PI:
		wait_for_lock(kind, &gang.pi[roll(GANG_LOCKS)], me);
		break;
	case SHARED:
		wait_for_lock(kind, &shared->locks[roll(SHARED_LOCKS)], me);
		break;
	case PIPE:
		wait_for_answer(me);
		break;
	case FILE_LOCK:
		wait_for_file();
		break;
	default:
		wait_for_call();
	}
}

static void have(enum kind kind, int me)
{
	churn(10 + roll(50));
	if (!roll(3))
		usleep(roll(300));
	if (kind == SHARED && !roll(OWNER_DIES) && !atomic_load(&shared->stop))
		die_here();
	if (!roll(4))
		wait_for(kind + 1 + roll(KINDS - kind - 1), me);
}

static inline void *member(void *arg)
{
	int me = (int)(intptr_t)arg;

	prctl(PR_SET_NAME, names[me % 3]);
	seed_dice(gang.seed + 0x100u * (uint64_t)(me + 1));
	usleep(SETTLE_US);
	atomic_store(&shared->tids[gang.number][me], (int32_t)syscall(SYS_gettid));
	while (!atomic_load(&shared->stop)) {
		wait_for(roll(KINDS), me);
		if (me % 3 < 2)
			usleep(roll(me % 3 ? 300 : 600)); /* or others would have no CPU */
	}
	atomic_fetch_add(&shared->quiet[gang.number], 1);
	for (;;)
		pause();
	return NULL;
}

static inline void server(int request, int answer, uint64_t seed)
{
	char byte;

	if (dup2(request, 0) < 0 || dup2(answer, 1) < 0)
		die("dup2");
	syscall(SYS_close_range, 2, ~0U, 0); /* who has an end open hides the death of others */
	prctl(PR_SET_NAME, names[1 + seed % 2]);
	seed_dice(seed);
	while (read(0, &byte, 1) == 1) {
		churn(roll(100));
		if (!roll(SERVER_DIES))
			die_here();
		if (write(1, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static inline void start_server(int i)
{
	int request[2], answer[2];
	pid_t pid;

	if (pipe(request) || pipe(answer))
		die("pipe");
	gang.seed++;
	pid = spawn();
	if (!pid)
		server(request[0], answer[1], gang.seed);
	close(request[0]);
	close(answer[1]);
	gang.servers[i].request = request[1];
	gang.servers[i].answer = answer[0];
	atomic_store(&gang.servers[i].pid, pid);
}

static inline void replace_servers(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		if (atomic_load(&gang.servers[i].pid) || atomic_load(&gang.servers[i].busy))
			continue;
		close(gang.servers[i].request);
		close(gang.servers[i].answer);
		start_server(i);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static inline void make_gang_locks(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	for (int i = 0; i < GANG_LOCKS; i++) {
		pthread_mutex_init(&gang.locks[i], NULL);
		pthread_mutex_init(&gang.pi[i], &attr);
	}
}

static inline void run_gang(int number, uint64_t seed, const char *file)
{
	pthread_t id;

	prctl(PR_SET_NAME, names[1]);
	signal(SIGPIPE, SIG_IGN);
	gang.number = number;
	gang.seed = seed;
	gang.file = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (gang.file < 0)
		die(file);
	if (atomic_load(&shared->binder))
		gang.binder = binder_open("/dev/binder");
	make_gang_locks();
	for (int i = 0; i < MEMBERS; i++)
		start_server(i);
	for (intptr_t i = 0; i < MEMBERS; i++)
		if (pthread_create(&id, NULL, member, (void *)i))
			die("pthread_create");
	for (;;) {
		usleep(5000);
		replace_servers();
	}
}

#endif
