// SPDX-License-Identifier: Apache-2.0
/*
 * counters MS - what each CPU's own counters of cycles and instructions say of
 * MS milliseconds in which it is busy, and of as many in which it sleeps.
 *
 * One line for each CPU and state: "cpu 0 busy cycles N instructions N ns N
 * rounds N", where ns is the time that the kernel says the counters ran, and each
 * round is the same work. Ends with words where the machine has no such counters.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct reading {
	unsigned long long members, enabled_ns, running_ns, cycles, instructions;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int open_counter(unsigned long long what, int cpu, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = what,
		.disabled = group < 0,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die(what == PERF_COUNT_HW_CPU_CYCLES ? "counter of cycles"
						     : "counter of instructions");
	return fd;
}

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

/* Returns how many rounds of the same work were done. */
static unsigned long long pass(int busy, unsigned long long ns)
{
	unsigned long long end = now_ns() + ns;
	unsigned long long rounds = 0;
	struct timespec pause = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	if (!busy)
		nanosleep(&pause, NULL);
	for (; busy && now_ns() < end; rounds++)
		for (volatile int i = 0; i < 10000; i++)
			;
	return rounds;
}

static void measure(int cpu, int busy, unsigned long long ns)
{
	int group = open_counter(PERF_COUNT_HW_CPU_CYCLES, cpu, -1);
	int member = open_counter(PERF_COUNT_HW_INSTRUCTIONS, cpu, group);
	unsigned long long rounds;
	struct reading r;

	if (ioctl(group, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP))
		die("start the counters");
	rounds = pass(busy, ns);
	if (read(group, &r, sizeof(r)) != sizeof(r))
		die("read the counters");
	printf("cpu %d %s cycles %llu instructions %llu ns %llu rounds %llu\n", cpu,
	       busy ? "busy" : "asleep", r.cycles, r.instructions, r.running_ns, rounds);
	close(member);
	close(group);
}

int main(int argc, char **argv)
{
	int ms = argc == 2 ? atoi(argv[1]) : 0;
	cpu_set_t all, one;

	if (ms < 1 || ms > 10000) {
		fprintf(stderr, "usage: counters MS, 1..10000\n");
		return 2;
	}
	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			die("sched_setaffinity");
		for (int busy = 1; busy >= 0; busy--)
			measure(cpu, busy, (unsigned long long)ms * 1000000);
	}
	return 0;
}
