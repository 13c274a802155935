/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Belief: is one who says something true lately to be believed?
 *
 * Problem: a word that was true time after time is worth something, until it is not. To believe
 * a regular liar each time costs more than the others gain.
 *
 * How: who was right so many times in a row is believed. Each time he then is wrong he needs
 * twice as many, up to 16 times as many; after 255 in a row half as many again. What was nearly
 * true, as something may have come between, only ends the row.
 *
 * Limits: it knows nothing of why. Pure functions: the file also compiles on the host.
 */
#ifndef ROTA_BELIEF_H
#define ROTA_BELIEF_H

#define BELIEF_TIMES 8	/* right so many times in a row, at first */
#define BELIEF_DOUBTS 4 /* twice as many for each, as 255 is the most that is counted */
#define BELIEF_MOST 255

struct belief {
	u8 right;
	u8 doubts;
};

static inline u32 belief_needs(const struct belief *belief)
{
	return BELIEF_TIMES << belief->doubts;
}

static inline bool belief_given(const struct belief *belief)
{
	return belief->right >= belief_needs(belief);
}

/* What was said was true. */
static inline void belief_right(struct belief *belief)
{
	if (belief->right < BELIEF_MOST) {
		belief->right++;
	} else if (belief->doubts) {
		belief->doubts--;
		belief->right = belief_needs(belief);
	}
}

/* It was nearly true. */
static inline void belief_nearly(struct belief *belief)
{
	belief->right = 0;
}

/* It was not. */
static inline void belief_wrong(struct belief *belief)
{
	if (belief_given(belief) && belief->doubts < BELIEF_DOUBTS)
		belief->doubts++;
	belief->right = 0;
}

#endif
