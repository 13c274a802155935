// SPDX-License-Identifier: Apache-2.0
/*
 * bursts SECONDS SHORT WORK PAUSE LONG WORK PAUSE SEED - SHORT threads that each work for
 * WORK us of CPU time and pause for PAUSE us, beside LONG threads that do so, too.
 *
 * Threads are named burst-short and burst-long. A burst takes from when its pause
 * should have ended to when its work is done. A pause is a half to one and a half of
 * PAUSE, at random: threads whose pauses are all alike fall into step, and the figures
 * are those of the step that a seed and a build happen to take.
 *
 * Prints for each kind the mean, the 99th percentile and the longest of its bursts,
 * and how many there were, and the context switches of all: "short_avg_ms 0.4
 * short_p99_ms 1.2 short_max_ms 3.4 short_n 800 long_avg_ms ... switches 12345".
 */
#define _GNU_SOURCE
#include "process.h"

#include <pthread.h>
#include <sys/resource.h>

#define MAX_BURSTS 100000   /* of one kind */
#define SETTLE_NS 300000000 /* for so long names have been seen before the first burst */

struct kind {
	const char *name;
	long threads;
	uint64_t work_ns, pause_ns;
	uint64_t *took_ns;
	long n;
};

static struct kind kinds[] = { { .name = "short" }, { .name = "long" } };
static uint64_t begin_ns, end_ns, first_seed;

/* pause_ns is how long to pause this time. */
static uint64_t pause_ns(const struct kind *k)
{
	return k->pause_ns / 2 + throw_dice() % (k->pause_ns + 1);
}

static void note(struct kind *k, uint64_t ns)
{
	long slot = __atomic_fetch_add(&k->n, 1, __ATOMIC_RELAXED);

	if (slot >= MAX_BURSTS) {
		fprintf(stderr, "more than %d bursts: ask for fewer seconds\n", MAX_BURSTS);
		exit(1);
	}
	k->took_ns[slot] = ns;
}

static void *burst(void *arg)
{
	struct kind *k = arg;
	static long started;
	uint64_t due_ns, step = (uint64_t)__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	char name[16];

	snprintf(name, sizeof(name), "burst-%s", k->name);
	prctl(PR_SET_NAME, name);
	seed_dice(first_seed + step);
	for (due_ns = begin_ns + pause_ns(k); due_ns < end_ns;) {
		sleep_until(due_ns);
		use_cpu(clock_ns(CLOCK_THREAD_CPUTIME_ID), k->work_ns);
		note(k, clock_ns(CLOCK_MONOTONIC) - due_ns);
		due_ns = clock_ns(CLOCK_MONOTONIC) + pause_ns(k);
	}
	return NULL;
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(struct kind *k)
{
	double sum = 0;

	if (!k->n) {
		fprintf(stderr, "no %s burst has ended\n", k->name);
		exit(1);
	}
	qsort(k->took_ns, (size_t)k->n, sizeof(*k->took_ns), order);
	for (long i = 0; i < k->n; i++)
		sum += (double)k->took_ns[i];
	printf("%s_avg_ms %.4f %s_p99_ms %.4f %s_max_ms %.4f %s_n %ld\n", k->name,
	       sum / (double)k->n / 1e6, k->name, (double)k->took_ns[(k->n - 1) * 99 / 100] / 1e6,
	       k->name, (double)k->took_ns[k->n - 1] / 1e6, k->name, k->n);
}

static void start(struct kind *k, char **args, pthread_t *ids)
{
	k->threads = number(args[0], 1, BOARD_SLOTS);
	k->work_ns = (uint64_t)number(args[1], 1, 1000000) * 1000;
	k->pause_ns = (uint64_t)number(args[2], 1, 10000000) * 1000;
	k->took_ns = calloc(MAX_BURSTS, sizeof(*k->took_ns));
	if (!k->took_ns)
		die("calloc");
	for (long i = 0; i < k->threads; i++)
		if (pthread_create(&ids[i], NULL, burst, k))
			die("pthread_create");
}

int main(int argc, char **argv)
{
	pthread_t ids[2][BOARD_SLOTS];
	struct rusage usage;

	if (argc != 9) {
		fprintf(stderr, "usage: bursts SECONDS SHORT WORK PAUSE LONG WORK PAUSE SEED\n");
		return 2;
	}
	begin_ns = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	first_seed = (uint64_t)number(argv[8], 0, 1000000) << 20;
	end_ns = begin_ns + (uint64_t)number(argv[1], 1, 100) * 1000000000;
	start(&kinds[0], argv + 2, ids[0]);
	start(&kinds[1], argv + 5, ids[1]);
	for (int kind = 0; kind < 2; kind++)
		for (long i = 0; i < kinds[kind].threads; i++)
			pthread_join(ids[kind][i], NULL);
	if (getrusage(RUSAGE_SELF, &usage))
		die("getrusage");
	print(&kinds[0]);
	print(&kinds[1]);
	printf("switches %ld\n", usage.ru_nvcsw + usage.ru_nivcsw);
	return 0;
}
