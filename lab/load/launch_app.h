/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_app.h - the app that is started: app-main, three workers, RenderThread.
 *
 * app-main attaches to system_server and binds (calls with some work between),
 * reads from the content provider, inflates the groups of its first screen, of which
 * it hands pieces to the workers, lays out, and hands the frame to RenderThread,
 * which has set itself up meanwhile. The workers and app-main share a lock for
 * assets. All in all 60 calls and about 20 ms of work.
 */
#ifndef ROTA_LAUNCH_APP_H
#define ROTA_LAUNCH_APP_H

#include "launch.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#define WORKERS 3
#define BINDS 12
#define QUERIES 6
#define GROUPS 12
#define PIECES (GROUPS * WORKERS)
#define MEETS 3 /* after so many groups app-main waits for its workers */

static struct {
	pthread_mutex_t lock, assets;
	pthread_cond_t more, finished, frame, drawn;
	uint32_t pieces[PIECES]; /* in units */
	int given, taken, done;
	int frame_wanted, frame_drawn;
	uint32_t seed;
	int system, provider; /* devices */
} the_app = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.assets = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.finished = PTHREAD_COND_INITIALIZER,
	.frame = PTHREAD_COND_INITIALIZER,
	.drawn = PTHREAD_COND_INITIALIZER,
};

static inline void ask(int device, uint32_t code, uint32_t units)
{
	struct message m = { .units = units, .held = units / 2 };

	binder_call(device, code, &m);
}

static inline void read_assets(uint32_t units)
{
	pthread_mutex_lock(&the_app.assets);
	work(units, 0);
	pthread_mutex_unlock(&the_app.assets);
}

static inline void *worker(void *arg)
{
	name("app-worker");
	for (;;) {
		int piece;

		pthread_mutex_lock(&the_app.lock);
		while (the_app.taken == the_app.given)
			pthread_cond_wait(&the_app.more, &the_app.lock);
		piece = the_app.taken++;
		pthread_mutex_unlock(&the_app.lock);

		read_assets(3);
		work(the_app.pieces[piece], 0);
		if (piece % WORKERS == 0)
			ask(the_app.system, CALL_LOCKED, 4);

		pthread_mutex_lock(&the_app.lock);
		if (++the_app.done == the_app.given)
			pthread_cond_signal(&the_app.finished);
		pthread_mutex_unlock(&the_app.lock);
	}
	return arg;
}

static inline void give_pieces(void)
{
	pthread_mutex_lock(&the_app.lock);
	for (int i = 0; i < WORKERS; i++)
		the_app.pieces[the_app.given++] = roll(14);
	pthread_cond_broadcast(&the_app.more);
	pthread_mutex_unlock(&the_app.lock);
}

static inline void await_pieces(void)
{
	pthread_mutex_lock(&the_app.lock);
	while (the_app.done < the_app.given)
		pthread_cond_wait(&the_app.finished, &the_app.lock);
	pthread_mutex_unlock(&the_app.lock);
}

static inline void *render(void *arg)
{
	name("RenderThread");
	prefer(1);
	seed_dice(the_app.seed + 0x1000u);
	for (int i = 0; i < 3; i++) {
		work(roll(16), 0);
		ask(the_app.system, CALL_PLAIN, 4);
	}
	pthread_mutex_lock(&the_app.lock);
	while (!the_app.frame_wanted)
		pthread_cond_wait(&the_app.frame, &the_app.lock);
	pthread_mutex_unlock(&the_app.lock);

	ask(the_app.system, CALL_PLAIN, 3); /* a buffer to draw into */
	work(roll(150), 0);
	ask(the_app.system, CALL_PLAIN, 3); /* and back with it */

	pthread_mutex_lock(&the_app.lock);
	the_app.frame_drawn = 1;
	pthread_cond_signal(&the_app.drawn);
	pthread_mutex_unlock(&the_app.lock);
	return arg;
}

static inline void bind_app(void)
{
	ask(the_app.system, CALL_LOCKED, 10); /* attach */
	for (int i = 0; i < BINDS; i++) {
		work(roll(15), 0);
		ask(the_app.system, i % 2 ? CALL_LOCKED : CALL_PLAIN, 5);
	}
	for (int i = 0; i < QUERIES; i++) {
		ask(the_app.provider, CALL_PLAIN, 8);
		work(roll(5), 0);
	}
}

static inline void inflate(void)
{
	for (int group = 1; group <= GROUPS; group++) {
		give_pieces();
		read_assets(5);
		work(roll(22), 0);
		ask(the_app.system, CALL_LOCKED, 5);
		work(roll(22), 0);
		ask(the_app.system, CALL_PLAIN, 5);
		if (group % MEETS == 0)
			await_pieces();
	}
}

static inline void draw(void)
{
	work(roll(100), 0); /* layout */
	pthread_mutex_lock(&the_app.lock);
	the_app.frame_wanted = 1;
	pthread_cond_signal(&the_app.frame);
	while (!the_app.frame_drawn)
		pthread_cond_wait(&the_app.drawn, &the_app.lock);
	pthread_mutex_unlock(&the_app.lock);
	ask(the_app.system, CALL_LOCKED, 6); /* the first frame is there */
}

/* report tells the launcher, and with that the app's life is over. */
static inline void report(void)
{
	struct rusage usage;

	shared->ended_ns = clock_ns(CLOCK_MONOTONIC);
	shared->ended_bg_units = atomic_load(&shared->bg_units);
	getrusage(RUSAGE_SELF, &usage);
	shared->voluntary = (uint64_t)usage.ru_nvcsw;
	shared->forced = (uint64_t)usage.ru_nivcsw;
	shared->cpu_us = (uint64_t)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
				    usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	atomic_fetch_add(&shared->ended, 1);
	syscall(SYS_futex, &shared->ended, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	_exit(0);
}

static inline void app(uint32_t seed)
{
	name("app-main");
	prefer(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	the_app.seed = seed;
	seed_dice(seed);
	the_app.system = binder_open(SYSTEM);
	the_app.provider = binder_open(PROVIDER);
	run(render, NULL);
	for (int i = 0; i < WORKERS; i++)
		run(worker, NULL);
	bind_app();
	inflate();
	draw();
	report();
}

#endif
