// SPDX-License-Identifier: Apache-2.0
/*
 * inversion KIND STATE CHAIN HOGS ROUNDS - how long does an important thread wait for
 * unimportant ones, when HOGS threads beside them want all CPUs?
 *
 * KIND is what it waits for: "mutex", "pi" (a mutex with PTHREAD_PRIO_INHERIT), "pipe"
 * (a request, answered by a server) or "binder" (a call, answered by a process). Of
 * CHAIN unimportant tasks the first has what the important one wants and waits for the
 * second in the same way, and so on; the last one works for SECTION_NS. The hogs pause
 * while locks are taken.
 *
 * STATE is that of the last one when the wait begins: "queued" behind the hogs,
 * "running" (the hogs come when it works), "asleep" (5 ms more). Or it is what is
 * special otherwise: "three", that many important ones wait for the lock at once;
 * "behind", an unimportant one waits for the lock before the important one, and works
 * for SECTION_NS, too, when it has it; "killed", the owner, or the server, is killed
 * during the wait.
 *
 * Tasks are named inv-high (nice -20), inv-low (nice 19) and inv-hog (nice 0).
 * Prints the longest wait, its mean, and how long the longest wait was beyond the
 * CPU time of the work that was waited for, and beyond the sleep, or after the kill:
 * "wait_max_ms 3.1 wait_avg_ms 1.2 excess_max_ms 2.1".
 */
#define _GNU_SOURCE
#include "inversion_calls.h"
#include "inversion_kill.h"

static enum { LOCK, PIPE, BINDER } kind;
static int killed;

static struct waited wait_once(void)
{
	struct waited w;

	if (killed)
		return kind == PIPE ? server_dies_once() : owner_dies_once();
	w = kind == LOCK ? lock_once() : ask_once(kind == BINDER);
	crowd(0);
	usleep(CROWD_US);
	return w;
}

/* one_of returns which of these words text is. */
static int one_of(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	fprintf(stderr, "%s: not known, see the head of inversion.c\n", text);
	exit(2);
}

static void make(const char *what, const char *state)
{
	static const char *const kinds[] = { "mutex", "pi", "pipe", "binder", NULL };
	static const char *const states[] = { "queued", "running", "asleep", "three",
					      "killed", "behind",  NULL };
	int as = one_of(what, kinds), is = one_of(state, states);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (as == 1)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	kind = as < 2 ? LOCK : as == 2 ? PIPE : BINDER;
	killed = is == 4;
	if ((kind != LOCK && is && !killed) ||
	    (kind == BINDER && (killed || chain > MAX_SERVICES)) || (killed && chain > 1)) {
		fprintf(stderr, "%s %s %ld: not possible\n", what, state, chain);
		exit(2);
	}
	more_waiters = is == 3 ? MORE_WAITERS : 0;
	waits_behind = is == 5;
	owner_state = is == 1 ? RUNNING : is == 2 ? ASLEEP : QUEUED;
	if (killed)
		make_victims(&attr);
	else if (kind == LOCK)
		make_locks(&attr);
	else if (kind == PIPE)
		make_pipes();
	else
		make_services();
}

int main(int argc, char **argv)
{
	struct waited most = { 0, 0 };
	long hogs, rounds;
	uint64_t sum = 0;

	if (argc != 6) {
		fprintf(stderr, "usage: inversion KIND STATE CHAIN HOGS ROUNDS\n");
		return 2;
	}
	chain = number(argv[3], 1, MAX_CHAIN);
	hogs = number(argv[4], 0, 1024);
	rounds = number(argv[5], 1, 100000);
	shared = shared_memory(sizeof(*shared));
	make(argv[1], argv[2]);
	for (long i = 0; i < hogs; i++)
		run(hog, i);
	name("inv-high", -20);
	usleep(SETTLE_US);
	for (long i = 0; i < rounds; i++) {
		struct waited w = wait_once();

		sum += w.all;
		most = longest(most, w);
	}
	printf("wait_max_ms %.3f wait_avg_ms %.3f excess_max_ms %.3f\n", (double)most.all / 1e6,
	       (double)sum / (double)rounds / 1e6, (double)(int64_t)most.excess / 1e6);
	return 0;
}
