/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pace: what a task keeps of its speed on a CPU that is not at its fastest.
 *
 * Problem: of a piece of work a part waits for memory and takes as long at any
 * frequency; the rest takes longer in the measure in which the CPU is slower.
 *
 * How: with phi the part of the time at full speed that waits, and r = f / fmax, the
 * work takes T(f) = T(fmax) * (phi + (1 - phi) / r), and the task keeps
 * P = T(fmax) / T(f) = r / (phi * r + 1 - phi). 1 for r = 1 whatever phi is, r for who
 * computes only, 1 for who waits only. (The USTC paper's formula 4; its phi is the part
 * of the time at f, which is phi / (phi + (1 - phi) / r) here.)
 *
 * Limits: exact to 2^-16. Pure functions: the file also compiles on the host.
 */
#ifndef ROTA_PACE_H
#define ROTA_PACE_H

#define PACE_SHIFT 10
#define PACE_FULL (1U << PACE_SHIFT) /* full speed, and all of a task's time */
#define PACE_EXACT 16

/* ns, less than 2^47, of work of which bound of PACE_FULL waits, as at full speed. */
static inline u64 pace_scale(u64 ns, u32 bound, u32 speed)
{
	u64 slowed = bound * speed + (PACE_FULL - bound) * PACE_FULL;
	u64 part = ((u64)speed << (PACE_SHIFT + PACE_EXACT)) / slowed;

	return (ns * part) >> PACE_EXACT;
}

#endif
