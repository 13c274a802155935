/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inversion_calls.h - waits for an answer: of a thread through pipes, of a process
 * over binder. A server of a chain asks the next one before it answers.
 */
#ifndef ROTA_INVERSION_CALLS_H
#define ROTA_INVERSION_CALLS_H

#include "inversion_locks.h"

static const char *const devices[] = { "/dev/binder", "/dev/hwbinder" };

#define MAX_SERVICES ((long)(sizeof(devices) / sizeof(devices[0])))

static int requests[MAX_CHAIN][2], answers[MAX_CHAIN][2];
static int service; /* whom this process calls over binder, -1: nobody */

static inline void transfer(int fd, int writes)
{
	char byte = 0;

	if ((writes ? write(fd, &byte, 1) : read(fd, &byte, 1)) != 1)
		die("pipe");
}

static inline void ask(long i)
{
	transfer(requests[i][1], 1);
	transfer(answers[i][0], 0);
}

static inline void *serve(void *arg)
{
	long i = (long)arg;

	name("inv-low", 19);
	for (;;) {
		transfer(requests[i][0], 0);
		if (i + 1 < chain)
			ask(i + 1);
		else
			work(clock_ns(CLOCK_THREAD_CPUTIME_ID));
		transfer(answers[i][1], 1);
	}
	return NULL;
}

static inline void make_pipes(void)
{
	for (long i = 0; i < chain; i++) {
		if (pipe(requests[i]) || pipe(answers[i]))
			die("pipe");
		run(serve, i);
	}
}

static inline void call(void)
{
	struct message nothing = { 0 };

	binder_call(service, 1, &nothing);
}

static inline void answer_call(uint32_t code, const struct message *message)
{
	(void)code;
	(void)message;
	if (service >= 0)
		call();
	else
		work(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* make_services starts a process for each device, the last of the chain first. */
static inline void make_services(void)
{
	for (long i = chain - 1; i >= 0; i--) {
		if (!spawn()) {
			int fd = binder_open(devices[i]);

			binder_manage(fd, 19);
			service = i + 1 < chain ? binder_open(devices[i + 1]) : -1;
			name("inv-low", 19);
			binder_serve(fd, answer_call);
		}
		usleep(SETTLE_US);
	}
	service = binder_open(devices[0]);
}

static inline struct waited ask_once(int binder)
{
	uint64_t start;

	crowd(1);
	usleep(CROWD_US);
	start = clock_ns(CLOCK_MONOTONIC);
	if (binder)
		call();
	else
		ask(0);
	return since(start);
}

#endif
