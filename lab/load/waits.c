// SPDX-License-Identifier: Apache-2.0
/*
 * waits COUNT SEED - a storm of waits: threads and processes, important and not, wait
 * for each other until COUNT waits have been made.
 *
 * Problem: whoever keeps books of who waits for whom must close each entry, however
 * the wait ends.
 *
 * How: four gangs of threads (waits_gang.h) wait for mutexes of their process, PI
 * mutexes, robust mutexes of all gangs, answers through pipes, a lock of the kernel
 * (writes to one file) and, where there is a driver, answers over binder. Some waits
 * have a limit; signals interrupt some; owners and servers die with what is waited
 * for, and whole gangs are killed, with owners and waiters. A wait counts when its
 * thread has slept. Threads are named waits-high, waits-mid and waits-low.
 *
 * Prints a line when all has become quiet, "mutex 10000 pi 9000 ... kills 12", and then
 * stays, so that somebody can look at those who are left. SEED varies all choices.
 */
#define _GNU_SOURCE
#include "waits_gang.h"

#include <inttypes.h>

#define STEP_US 5000  /* from one thing that the chief does to the next, on average half */
#define KILL_EVERY 20 /* of these things one is the end of a gang, or of the service */
#define FILE_PATH "/tmp/waits"

static pid_t gangs[GANGS], service;
static uint64_t kills, seed;

static void handle(uint32_t code, const struct message *message)
{
	(void)code;
	(void)message;
	churn(roll(100));
}

static void *serve_too(void *arg)
{
	seed_dice(seed + 7);
	binder_serve((int)(intptr_t)arg, handle);
	return NULL;
}

/* The service of the device; that of a dead one takes a moment to go away. */
static void run_service(void)
{
	struct flat_binder_object node = { .hdr.type = BINDER_TYPE_BINDER, .flags = 19 };
	int fd = binder_open("/dev/binder");
	pthread_t id;

	prctl(PR_SET_NAME, names[2]);
	while (ioctl(fd, BINDER_SET_CONTEXT_MGR_EXT, &node)) {
		if (errno != EBUSY)
			die("BINDER_SET_CONTEXT_MGR_EXT");
		usleep(1000);
	}
	seed_dice(seed);
	if (pthread_create(&id, NULL, serve_too, (void *)(intptr_t)fd))
		die("pthread_create");
	binder_serve(fd, handle);
}

static void start_service(void)
{
	seed += 0x10000;
	service = spawn();
	if (!service)
		run_service();
}

static void start_gang(int i)
{
	seed += 0x10000;
	atomic_store(&shared->quiet[i], 0);
	for (int m = 0; m < MEMBERS; m++)
		atomic_store(&shared->tids[i][m], 0);
	gangs[i] = spawn();
	if (!gangs[i])
		run_gang(i, seed, FILE_PATH);
}

/* Whoever is dead is replaced. */
static void replace(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (WIFEXITED(status)) {
			fprintf(stderr, "a part of the load ended by itself\n");
			exit(1);
		}
		for (int i = 0; i < GANGS; i++)
			if (gangs[i] == pid)
				start_gang(i);
		if (pid == service)
			start_service();
	}
}

/* disturb interrupts some member, or kills a process. */
static void disturb(void)
{
	uint32_t i = roll(GANGS);
	pid_t tid = atomic_load(&shared->tids[i][roll(MEMBERS)]);

	if (roll(KILL_EVERY)) {
		if (tid)
			syscall(SYS_tgkill, gangs[i], tid, SIGUSR1);
		return;
	}
	kills++;
	kill(service && !roll(4) ? service : gangs[i], SIGKILL);
}

static uint64_t all_waits(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < KINDS; i++)
		sum += atomic_load(&shared->waits[i]);
	return sum;
}

static int all_quiet(void)
{
	for (int i = 0; i < GANGS; i++)
		if (atomic_load(&shared->quiet[i]) != MEMBERS)
			return 0;
	return 1;
}

static void ignore(int signal)
{
	(void)signal;
}

static void make(void)
{
	struct sched_param param = { .sched_priority = 1 };
	struct sigaction action = { .sa_handler = ignore }; /* system calls end with EINTR */
	pthread_mutexattr_t attr;

	shared = shared_memory(sizeof(*shared));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < SHARED_LOCKS; i++) {
		pthread_mutexattr_setprotocol(&attr,
					      i % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&shared->locks[i], &attr);
	}
	sigaction(SIGUSR1, &action, NULL);
	prctl(PR_SET_NAME, "waits-chief");
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		die("sched_setscheduler");
	shared->binder = !access("/dev/binder", F_OK);
	if (shared->binder)
		start_service();
	for (int i = 0; i < GANGS; i++)
		start_gang(i);
}

static void print(void)
{
	static const char *const words[] = { "mutex", "pi", "shared", "pipe", "file", "binder" };

	for (int i = 0; i < KINDS; i++)
		printf("%s %" PRIu64 " ", words[i], atomic_load(&shared->waits[i]));
	printf("timeouts %" PRIu64 " signals %" PRIu64 " deaths %" PRIu64 " kills %" PRIu64 "\n",
	       atomic_load(&shared->timeouts), atomic_load(&shared->signals),
	       atomic_load(&shared->deaths), kills);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t wanted;

	if (argc != 3) {
		fprintf(stderr, "usage: waits COUNT SEED\n");
		return 2;
	}
	wanted = (uint64_t)number(argv[1], 1, 1000000000);
	seed = (uint64_t)number(argv[2], 0, 1000000) << 32;
	seed_dice(seed);
	make();
	while (all_waits() < wanted) {
		usleep(roll(STEP_US));
		disturb();
		replace();
	}
	atomic_store(&shared->stop, 1);
	while (!all_quiet()) {
		usleep(STEP_US);
		replace();
	}
	print();
	for (;;)
		pause();
}
