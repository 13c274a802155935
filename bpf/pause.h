/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pause: when who rests will come back.
 *
 * Problem: what matters often comes in beats, as the slots of a radio, buffers of audio, frames
 * and polls do. Who has something of its in the meantime can return it before it is asked.
 *
 * How: the shortest and the longest of the last pauses are kept. A pause beyond one moves it
 * there at once, each other one an eighth of the way back, so that a start that was not in the
 * beat is soon forgotten. Less than half the shortest or more than twice the longest is odd: alone
 * it is ignored, two in a row begin anew. The next is expected between the two, or as much before
 * or after as they differ: few pauses seldom show how much they can.
 *
 * Limits: of beats that differ by almost twice nothing is known, nor of those of which every
 * second is odd. Pure functions: the file also compiles on the host.
 */
#ifndef ROTA_PAUSE_H
#define ROTA_PAUSE_H

#define PAUSE_SPARE_NS 200000ULL  /* at least: who is in the way has to leave */
#define PAUSE_SPARE_PART 8	  /* and this part of the shortest */
#define PAUSE_BACK_PART 8	  /* of the way back, with each pause */
#define PAUSE_MAX_NS (1ULL << 60) /* longer ones count as that long */

struct pause {
	u64 least_ns;
	u64 most_ns;
	u32 odd; /* the last one was */
};

/* A pause is over that took ns. */
static inline void pause_learn(struct pause *pause, u64 ns)
{
	if (ns > PAUSE_MAX_NS)
		ns = PAUSE_MAX_NS;
	if (ns < pause->least_ns / 2 || ns > 2 * pause->most_ns) {
		if (pause->odd)
			pause->least_ns = pause->most_ns = ns;
		pause->odd = !pause->odd;
		return;
	}
	pause->odd = 0;
	pause->least_ns = ns < pause->least_ns
				  ? ns
				  : pause->least_ns + (ns - pause->least_ns) / PAUSE_BACK_PART;
	pause->most_ns =
		ns > pause->most_ns ? ns : pause->most_ns - (pause->most_ns - ns) / PAUSE_BACK_PART;
}

/* How much sooner than the shortest, and later than the longest, a pause may end. */
static inline u64 pause_spare(const struct pause *pause)
{
	return pause->most_ns - pause->least_ns + PAUSE_SPARE_NS +
	       pause->least_ns / PAUSE_SPARE_PART;
}

/* After so many ns of a pause its end is near; 0: it is not known when that is. */
static inline u64 pause_near(const struct pause *pause)
{
	u64 spare_ns = pause_spare(pause);

	return pause->least_ns > spare_ns ? pause->least_ns - spare_ns : 0;
}

/* After so many ns of a pause it is longer than expected. */
static inline u64 pause_late(const struct pause *pause)
{
	return pause->most_ns + pause_spare(pause);
}

#endif
