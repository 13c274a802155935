// SPDX-License-Identifier: Apache-2.0
/*
 * launch plain|nice|fifo LAUNCHES SEED BACKGROUND - starts an app again and again, as
 * Android does, while BACKGROUND other processes want the CPUs.
 *
 * Problem: what a user waits for when an app starts is the work of many: of the
 * app's threads, of services that it calls, of whoever holds a lock that a service
 * wants. A load of one thread says little about that.
 *
 * How: real processes and real calls over binder. The launcher calls system_server,
 * which asks the zygote through a socket; the zygote forks the app (launch_app.h,
 * launch_system.h). A launch lasts from the launcher's call until the app has
 * reported its first frame. Of the others three in four are hogs (bg-hog), and one
 * calls the same services with work between (bg-caller), which takes the same lock
 * and the same threads. All work is a number of loops: SEED varies how many each
 * piece has, and the same seed gives the same work under every scheduler. "nice"
 * gives launcher and app nice -20, "fifo" makes launcher, app-main and RenderThread
 * SCHED_FIFO.
 *
 * Limits: work is loops, without memory traffic or input and output; the app's
 * process is small; system_server doesn't call back; provider and system_server are
 * the context managers of two devices, so that no service manager is asked.
 *
 * Prints a line for each launch: "launch_ms 81.2 cpu_ms 80.1 served_ms 20.5 voluntary
 * 120 forced 14 app_units 2011 bg_units 5833", with CPU time of the app's process and of
 * the services for it, its context switches, and the units of work done meanwhile.
 */
#define _GNU_SOURCE
#include "launch_system.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MAX_BACKGROUND 256
#define SETTLE_US 300000 /* for so long everybody has been there when the first launch begins */
#define PAUSE_US 20000	 /* between two launches, on average */
#define TIMEOUT_S 30	 /* no launch takes that long */

static pid_t children[MAX_BACKGROUND + 3];
static int child_count;
static uint64_t first_seed;

/* start starts a process and returns 1 in it. */
static int start(void)
{
	pid_t pid = spawn();

	if (pid)
		children[child_count++] = pid;
	return !pid;
}

static void hog(void)
{
	name("bg-hog");
	for (;;)
		work(10, 1);
}

static void caller(void)
{
	int system = binder_open(SYSTEM), provider = binder_open(PROVIDER);

	name("bg-caller");
	for (int i = 0;; i++) {
		struct message m = { .units = roll(6), .held = roll(10), .background = 1 };

		work(roll(40), 1);
		if (i % 4 == 3)
			binder_call(provider, CALL_PLAIN, &m);
		else
			binder_call(system, i % 2 ? CALL_LOCKED : CALL_PLAIN, &m);
	}
}

static void start_background(long count)
{
	static const int nice_values[] = { 0, 5, 10, 0, 0, 19, 0, 10 };

	for (long i = 0; i < count; i++) {
		if (!start())
			continue;
		if (setpriority(PRIO_PROCESS, 0, nice_values[i % 8]))
			die("setpriority");
		seed_dice(first_seed + 0x100000u * (uint64_t)(i + 1));
		if (i % 4 == 3)
			caller();
		hog();
	}
}

/* start_services returns when both answer. */
static void start_services(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	if (start())
		zygote(ends[1]);
	zygote_socket = ends[0];
	if (start())
		service("system_server", SYSTEM, SYSTEM_THREADS, 0);
	if (start())
		service("provider", PROVIDER, PROVIDER_THREADS, 19);
	close(ends[0]);
	close(ends[1]);
	usleep(SETTLE_US);
}

static void await_end(uint32_t launch)
{
	struct timespec timeout = { .tv_sec = TIMEOUT_S };

	while (atomic_load(&shared->ended) == launch)
		if (syscall(SYS_futex, &shared->ended, FUTEX_WAIT, launch, &timeout, NULL, 0) &&
		    errno == ETIMEDOUT)
			die("launch");
}

/* what has been counted when a launch begins */
struct before {
	uint64_t ns, app_units, bg_units, served_ns;
};

static struct before look(void)
{
	return (struct before){
		.app_units = atomic_load(&shared->app_units),
		.bg_units = atomic_load(&shared->bg_units),
		.served_ns = atomic_load(&shared->served_ns),
		.ns = clock_ns(CLOCK_MONOTONIC),
	};
}

static void print(struct before b)
{
	uint64_t app_units = atomic_load(&shared->app_units) - b.app_units;
	uint64_t served_ns = atomic_load(&shared->served_ns) - b.served_ns;

	printf("launch_ms %.3f ", (double)(shared->ended_ns - b.ns) / 1e6);
	printf("cpu_ms %.3f ", (double)shared->cpu_us / 1e3);
	printf("served_ms %.3f ", (double)served_ns / 1e6);
	printf("voluntary %" PRIu64 " forced %" PRIu64 " ", shared->voluntary, shared->forced);
	printf("app_units %" PRIu64 " bg_units %" PRIu64 "\n", app_units,
	       shared->ended_bg_units - b.bg_units);
}

static void launch(int system, uint32_t number)
{
	struct message m = { .units = START_UNITS / 2, .held = START_UNITS / 2 };
	struct before before = look();

	m.seed = (uint32_t)(first_seed * 1000 + number);
	binder_call(system, CALL_START, &m);
	await_end(number);
	print(before);
	while (!kill(atomic_load(&shared->pid), 0))
		usleep(1000);
}

static void stop(void)
{
	while (child_count--) { /* callers before those whom they call */
		kill(children[child_count], SIGKILL);
		waitpid(children[child_count], NULL, 0);
	}
}

static enum app_kind kind_of(const char *text)
{
	if (!strcmp(text, "plain"))
		return APP_PLAIN;
	if (!strcmp(text, "nice"))
		return APP_NICE;
	if (!strcmp(text, "fifo"))
		return APP_FIFO;
	fprintf(stderr, "%s: must be plain, nice or fifo\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	long launches, background;
	int system;

	if (argc != 5) {
		fprintf(stderr, "usage: launch plain|nice|fifo LAUNCHES SEED BACKGROUND\n");
		return 2;
	}
	app_kind = kind_of(argv[1]);
	launches = number(argv[2], 1, 1000);
	first_seed = (uint64_t)number(argv[3], 0, 1000000);
	background = number(argv[4], 0, MAX_BACKGROUND);
	shared = shared_memory(sizeof(*shared));
	start_services();
	start_background(background);
	name("launcher");
	prefer(1);
	seed_dice(first_seed);
	system = binder_open(SYSTEM);
	usleep(SETTLE_US);
	for (long i = 0; i < launches; i++) {
		launch(system, (uint32_t)i);
		usleep(roll(PAUSE_US));
	}
	stop();
	return 0;
}
