/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board.h - a shared page on which a load counts what it has done.
 *
 * The experiment reads the page at any moment, so that all loads are measured
 * over the same interval and no load has to be scheduled in order to report.
 * A board is a file of 4096 bytes: 64 slots of 64 bytes, one per thread, each
 * eight counters in the machine's byte order. A load writes its own slot only.
 */
#ifndef ROTA_BOARD_H
#define ROTA_BOARD_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BOARD_SLOTS 64

struct slot {
	volatile uint64_t loops;    /* pieces of work done since the start */
	volatile uint64_t cpu_ns;   /* CPU time of this thread, ns */
	volatile uint64_t gap_ns;   /* longest time between two looks at the clock, ns */
	volatile uint64_t since_ns; /* clock at the last look, CLOCK_MONOTONIC ns */
	volatile uint64_t errors;   /* things that must not happen */
	volatile uint64_t spare;
	volatile uint64_t units; /* parts of pieces, each as long as another */
	volatile uint64_t waits; /* of these, how many a counter of waits sees */
};

_Static_assert(sizeof(struct slot) == 64, "the reader relies on 64 bytes per slot");

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_until(uint64_t ns)
{
	struct timespec at = { .tv_sec = (time_t)(ns / 1000000000u),
			       .tv_nsec = (long)(ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

#define FOUR_TIMES(x) x x x x

/* A step of two instructions; the second line is there so that none is made of several. */
#define CHURN_STEP                      \
	y = y * 1664525u + 1013904223u; \
	__asm__ volatile("" : "+r"(y));

/*
 * churn executes some 130 instructions for each block, and one jump: jumps, and what goes to
 * memory, take the host's time in an instruction-counted machine.
 */
static inline void churn(uint32_t blocks)
{
	uint32_t y = 1;

	while (blocks--) {
		FOUR_TIMES(FOUR_TIMES(FOUR_TIMES(CHURN_STEP)))
	}
}

/* use_cpu lasts until this thread has had so much CPU time since start. */
static inline void use_cpu(uint64_t start, uint64_t ns)
{
	do
		churn(19);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < ns);
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* shared_memory gives memory of all zeros, for this process and those that it will fork. */
static inline void *shared_memory(size_t size)
{
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	return page;
}

/* How long something took, over all times. */
struct span {
	uint64_t sum_ns, max_ns;
	long n;
};

static inline void span_add(struct span *s, uint64_t ns)
{
	s->sum_ns += ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	s->n++;
}

/* span_join adds the times of another to s. */
static inline void span_join(struct span *s, const struct span *other)
{
	s->sum_ns += other->sum_ns;
	if (other->max_ns > s->max_ns)
		s->max_ns = other->max_ns;
	s->n += other->n;
}

/* span_print prints "name_mean_us 120.4" and "name_max_us 203.4". */
static inline void span_print(const char *name, const struct span *s)
{
	printf("%s_mean_us %.1f\n%s_max_us %.1f\n", name, (double)s->sum_ns / 1000 / (double)s->n,
	       name, (double)s->max_ns / 1000);
}

/* board_open maps the board at path; it is created when it does not exist. */
static inline struct slot *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *page;

	if (fd < 0)
		die(path);
	if (ftruncate(fd, BOARD_SLOTS * sizeof(struct slot)))
		die(path);
	page = mmap(NULL, BOARD_SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED)
		die(path);
	close(fd);
	return page;
}

/* number reads an argument in min..max or ends the program. */
static inline long number(const char *text, long min, long max)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < min || n > max) {
		fprintf(stderr, "%s: must be a number in %ld..%ld\n", text, min, max);
		exit(2);
	}
	return n;
}

#endif
