/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the arithmetic of eevdf.h, pace.h, pause.h, belief.h and counter.h on the host: one command per
 * line from standard input, one line of answer each: the result, then the queue and its V.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;
typedef long long s64;
typedef unsigned int u32;
typedef unsigned char u8;

#include "../../eevdf.h"
#include "../../pace.h"
#include "../../pause.h"
#include "../../belief.h"
#include "../../counter.h"

#define LEAST_NS 200000 /* the shortest request that nobody chose */

static struct eevdf_queue queue;
static u64 vts[64]; /* v and weight of the tasks in it, oldest first */
static u32 ws[64];
static int tasks;
static u64 placed_vt;
static u32 bound, speed;
static struct counter_value counted[2]; /* two readings of a counter */
static struct counter_mean mean;
static u64 waits, cycles, latency_ps;
static bool turns;
static u64 members, members_w; /* of a queue, and what they weigh */
static struct pause rest;
static struct belief said;

static void join(u32 w)
{
	eevdf_join(&queue, placed_vt, w);
	vts[tasks] = placed_vt;
	ws[tasks++] = w;
}

static void leave(int i)
{
	eevdf_leave(&queue, vts[i], ws[i]);
	tasks--;
	memmove(vts + i, vts + i + 1, (tasks - i) * sizeof(*vts));
	memmove(ws + i, ws + i + 1, (tasks - i) * sizeof(*ws));
}

/* What queue_charge() does: a task that runs moves itself and the sum. */
static u64 run(int i, u64 delta_ns)
{
	u64 vt = eevdf_vt(delta_ns, ws[i]);

	queue.sum_wv += vt * ws[i];
	return vts[i] += vt;
}

/* Commands about counters. */
static bool counter(const char *name, u64 a, u64 b, u64 *result)
{
	if (!strcmp(name, "read")) /* the reading before becomes the first */
		counted[0] = counted[1],
		counted[1] = (struct counter_value){ .counter = a, .enabled = b };
	else if (!strcmp(name, "ran"))
		counted[1].running = a;
	else if (!strcmp(name, "delta"))
		*result = counter_delta(&counted[0], &counted[1], &turns);
	else if (!strcmp(name, "turns"))
		*result = turns;
	else if (!strcmp(name, "counts"))
		waits = a, cycles = b;
	else if (!strcmp(name, "latency"))
		latency_ps = a;
	else if (!strcmp(name, "waited"))
		*result = counter_waited(a, waits, cycles, latency_ps);
	else if (!strcmp(name, "learn"))
		*result = counter_learn(&mean, b, counter_full(a, b, speed));
	else if (!strcmp(name, "speed"))
		*result = counter_speed(a, cycles, b);
	else
		return false;
	return true;
}

/* Commands about pauses. */
static bool paused(const char *name, u64 a, u64 *result)
{
	if (!strcmp(name, "rested"))
		pause_learn(&rest, a);
	else if (!strcmp(name, "near"))
		*result = pause_near(&rest);
	else if (!strcmp(name, "late"))
		*result = pause_late(&rest);
	else
		return false;
	return true;
}

/* Commands about what somebody says. */
static bool believed(const char *name, u64 a, u64 *result)
{
	if (!strcmp(name, "right"))
		while (a--)
			belief_right(&said);
	else if (!strcmp(name, "wrong"))
		while (a--)
			belief_wrong(&said);
	else if (!strcmp(name, "nearly"))
		while (a--)
			belief_nearly(&said);
	else if (!strcmp(name, "believed"))
		*result = belief_given(&said);
	else
		return false;
	return true;
}

static bool execute(const char *name, u64 a, u64 b, u64 *result)
{
	*result = 0;
	if (!strcmp(name, "start"))
		queue = (struct eevdf_queue){ .zero_vt = a };
	else if (!strcmp(name, "rebase"))
		*result = eevdf_rebase(&queue);
	else if (!strcmp(name, "place"))
		*result = placed_vt = eevdf_place(&queue, eevdf_now(&queue), a, b);
	else if (!strcmp(name, "join"))
		join(a);
	else if (!strcmp(name, "leave"))
		leave(a);
	else if (!strcmp(name, "run"))
		*result = run(a, b);
	else if (!strcmp(name, "vt"))
		*result = eevdf_vt(a, b);
	else if (!strcmp(name, "ns"))
		*result = eevdf_ns(a, b);
	else if (!strcmp(name, "bound"))
		bound = a, speed = b;
	else if (!strcmp(name, "among"))
		members = a, members_w = b;
	else if (!strcmp(name, "ask"))
		*result = eevdf_request(a, LEAST_NS, b, members, members_w);
	else if (!strcmp(name, "pace"))
		*result = pace_scale(a, bound, speed);
	else if (!strcmp(name, "div"))
		*result = eevdf_div(a, b);
	else if (!strcmp(name, "clamp"))
		*result = eevdf_clamp(a, b);
	else if (!strcmp(name, "before"))
		*result = eevdf_before(a, b);
	else
		return counter(name, a, b, result) || paused(name, a, result) ||
		       believed(name, a, result);
	return true;
}

int main(void)
{
	char name[16];
	u64 a, b, result;

	while (scanf("%15s %llu %llu", name, &a, &b) == 3) {
		if (!execute(name, a, b, &result))
			return 1;
		printf("%llu %llu %lld %llu %llu\n", result, queue.zero_vt, queue.sum_wv,
		       queue.sum_w, eevdf_now(&queue));
	}
	return 0;
}
