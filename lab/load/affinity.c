// SPDX-License-Identifier: Apache-2.0
/*
 * affinity THREADS MILLISECONDS SEED BOARD SLOT - sched_setaffinity in mid-flight.
 *
 * THREADS spinning threads; the main thread gives a random one of them a random
 * mask every 500 us. After each change it waits until the thread has looked at
 * its CPU twice and counts an error when that CPU lies outside the mask.
 * Thread i writes slot SLOT+i. Prints "changes N wrong_cpu N stalled N"; stalled
 * are changes after which a thread did not get a CPU within a second.
 */
#define _GNU_SOURCE
#include "board.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#define THREADS_MAX 32

struct worker {
	struct slot *slot;
	volatile pid_t tid;
	volatile uint64_t looks;
	volatile int cpu;
};

static struct worker workers[THREADS_MAX];

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = (pid_t)syscall(SYS_gettid);
	for (;;) {
		w->cpu = sched_getcpu();
		w->looks++;
		w->slot->loops++;
		churn(20);
	}
	return NULL;
}

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* change gives w a random mask: 0 = obeyed, 1 = wrong CPU, 2 = no CPU in 1 s. */
static int change(struct worker *w, uint32_t *state, int cpus)
{
	uint64_t looks, start = clock_ns(CLOCK_MONOTONIC);
	uint32_t bits = draw(state) & ((1u << cpus) - 1);
	cpu_set_t mask;

	if (!bits)
		bits = 1;
	CPU_ZERO(&mask);
	for (int cpu = 0; cpu < cpus; cpu++)
		if (bits & (1u << cpu))
			CPU_SET(cpu, &mask);
	if (sched_setaffinity(w->tid, sizeof(mask), &mask))
		die("sched_setaffinity");
	looks = w->looks;
	while (w->looks < looks + 2) {
		if (clock_ns(CLOCK_MONOTONIC) - start > 1000000000u)
			return 2;
		usleep(100);
	}
	return CPU_ISSET(w->cpu, &mask) ? 0 : 1;
}

int main(int argc, char **argv)
{
	long threads, changes = 0, wrong = 0, stalled = 0;
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct slot *board;
	uint64_t end;
	uint32_t state;
	long first;

	if (argc != 6) {
		fprintf(stderr, "usage: affinity THREADS MILLISECONDS SEED BOARD SLOT\n");
		return 2;
	}
	threads = number(argv[1], 1, THREADS_MAX);
	end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)number(argv[2], 1, 600000) * 1000000u;
	state = (uint32_t)number(argv[3], 0, 1L << 30);
	board = board_open(argv[4]);
	first = number(argv[5], 0, BOARD_SLOTS - threads);
	if (cpus > 16)
		cpus = 16;
	for (long i = 0; i < threads; i++) {
		pthread_t id;

		workers[i].slot = board + first + i;
		if (pthread_create(&id, NULL, work, &workers[i]))
			die("pthread_create");
	}
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		struct worker *w = &workers[draw(&state) % (uint32_t)threads];

		usleep(500);
		if (!w->tid)
			continue;
		changes++;
		switch (change(w, &state, cpus)) {
		case 1:
			wrong++;
			w->slot->errors++;
			break;
		case 2:
			stalled++;
			w->slot->errors++;
			break;
		}
	}
	printf("changes %ld wrong_cpu %ld stalled %ld\n", changes, wrong, stalled);
	return 0;
}
