/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the arithmetic of eevdf.h on the host: one command per line from
 * standard input, one line of answer each: the result, then the queue.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;
typedef long long s64;
typedef unsigned int u32;

#include "../../eevdf.h"

static struct eevdf_queue queue;

/* What queue_charge() does: a task that runs moves itself and the sum. */
static u64 run(u64 v, u64 delta_ns, u32 w)
{
	u64 vt = eevdf_vt(delta_ns, w);

	queue.sum_wv += vt * w;
	return v + vt;
}

static bool execute(const char *name, u64 a, u64 b, u64 c, u64 *result)
{
	*result = 0;
	if (!strcmp(name, "start"))
		queue = (struct eevdf_queue){ .zero_vt = a };
	else if (!strcmp(name, "now"))
		*result = eevdf_now(&queue);
	else if (!strcmp(name, "rebase"))
		*result = eevdf_rebase(&queue);
	else if (!strcmp(name, "join"))
		eevdf_join(&queue, a, b);
	else if (!strcmp(name, "leave"))
		eevdf_leave(&queue, a, b);
	else if (!strcmp(name, "run"))
		*result = run(a, b, c);
	else if (!strcmp(name, "place"))
		*result = eevdf_place(&queue, a, b, c);
	else if (!strcmp(name, "vt"))
		*result = eevdf_vt(a, b);
	else if (!strcmp(name, "div"))
		*result = eevdf_div(a, b);
	else if (!strcmp(name, "clamp"))
		*result = eevdf_clamp(a, b);
	else if (!strcmp(name, "before"))
		*result = eevdf_before(a, b);
	else
		return false;
	return true;
}

int main(void)
{
	char name[16];
	u64 a, b, c, result;

	while (scanf("%15s %llu %llu %llu", name, &a, &b, &c) == 4) {
		if (!execute(name, a, b, c, &result))
			return 1;
		printf("%llu %llu %lld %llu\n", result, queue.zero_vt, queue.sum_wv, queue.sum_w);
		fflush(stdout);
	}
	return 0;
}
