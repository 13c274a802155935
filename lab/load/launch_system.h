/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_system.h - system_server, a content provider and the zygote.
 *
 * system_server has one lock for what all its callers share, as Android's activity
 * manager has, and a pool of four threads: when all of them work, a call waits.
 */
#ifndef ROTA_LAUNCH_SYSTEM_H
#define ROTA_LAUNCH_SYSTEM_H

#include "launch_app.h"

#define SYSTEM_THREADS 4
#define PROVIDER_THREADS 2
#define START_UNITS 30 /* work of system_server before it asks the zygote */

static pthread_mutex_t service_lock = PTHREAD_MUTEX_INITIALIZER;
static int service_fd, zygote_socket;
static const char *service_name;

static inline void transfer(ssize_t got, size_t want, const char *what)
{
	if (got != (ssize_t)want)
		die(what);
}

/* start_app asks the zygote for a process and waits for its number. */
static inline void start_app(uint32_t seed)
{
	int32_t pid;

	transfer(write(zygote_socket, &seed, sizeof(seed)), sizeof(seed), "to the zygote");
	transfer(read(zygote_socket, &pid, sizeof(pid)), sizeof(pid), "from the zygote");
	atomic_store(&shared->pid, pid);
}

/*
 * charge counts what this thread has used since it was last asked to; what it uses to
 * send an answer counts for the next call.
 */
static inline void charge(int background)
{
	static __thread uint64_t charged_ns;
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (!background)
		atomic_fetch_add(&shared->served_ns, now - charged_ns);
	charged_ns = now;
}

static inline void serve_call(uint32_t code, const struct message *m)
{
	work(m->units, (int)m->background);
	if (code != CALL_PLAIN) {
		pthread_mutex_lock(&service_lock);
		work(m->held, (int)m->background);
		pthread_mutex_unlock(&service_lock);
	}
	if (code == CALL_START)
		start_app(m->seed);
	charge((int)m->background);
}

static inline void *pool_thread(void *arg)
{
	char comm[16];

	snprintf(comm, sizeof(comm), "binder:%.3s_%d", service_name, (int)(intptr_t)arg & 15);
	name(comm);
	binder_serve(service_fd, serve_call);
	return NULL;
}

/* service is the body of a process; system_server never goes below nice 0. */
static inline void service(const char *comm, const char *device, int threads, unsigned int min_nice)
{
	service_name = comm;
	service_fd = binder_open(device);
	binder_manage(service_fd, min_nice);
	for (intptr_t i = 1; i < threads; i++)
		run(pool_thread, (void *)i);
	name(comm);
	binder_serve(service_fd, serve_call);
}

static inline void zygote(int from_system)
{
	uint32_t seed;

	name("zygote");
	signal(SIGCHLD, SIG_IGN); /* nobody asks how an app has ended */
	for (;;) {
		int32_t pid;

		transfer(read(from_system, &seed, sizeof(seed)), sizeof(seed), "zygote");
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			close(from_system);
			app(seed);
		}
		transfer(write(from_system, &pid, sizeof(pid)), sizeof(pid), "zygote");
	}
}

#endif
