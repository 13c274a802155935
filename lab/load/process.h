/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - the processes of a load: they end with the one that started them, and
 * draw random numbers that depend on nothing but the seed.
 */
#ifndef ROTA_PROCESS_H
#define ROTA_PROCESS_H

#include "board.h"

#include <signal.h>
#include <sys/prctl.h>

/* spawn returns 0 in a process that ends with this one. */
static inline pid_t spawn(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static __thread uint64_t dice;

/* throw_dice returns the next number of this thread. */
static inline uint64_t throw_dice(void)
{
	dice ^= dice << 13; /* xorshift64 */
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice >> 16;
}

static inline void seed_dice(uint64_t seed)
{
	dice = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 8; i++)
		throw_dice();
}

#endif
