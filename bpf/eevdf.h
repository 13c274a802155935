/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EEVDF arithmetic: virtual time, lag, deadline.
 *
 * Problem: shares must follow weights exactly, for weights from 3 to some
 * millions and times from microseconds to years, in 64 bits.
 *
 * How: virtual time (_vt) runs at 1/weight of real time; one nanosecond at
 * nice 0 is 2^EEVDF_SHIFT units, so that a short run of a heavy task is not
 * rounded to nothing. A queue keeps sum(w) and sum(w * (v - zero)) over all
 * tasks that compete in it, running or ready; their quotient is the virtual
 * time V of the queue, the weighted mean of all v (Stoica and Abdel-Wahab
 * 1995, eq. 7). lag = V - v in virtual time; a task with lag >= 0 is owed
 * time: it is eligible. deadline = v + request / weight.
 * zero follows V so that the products stay small.
 *
 * Limits: products are exact while |v - zero| * w * tasks < 2^63; eevdf_clamp
 * and eevdf_rebase keep them there. Pure functions: no kernel, no maps; the
 * file also compiles on the host, where it is tested against a model.
 */
#ifndef ROTA_EEVDF_H
#define ROTA_EEVDF_H

#define EEVDF_SHIFT 4
#define EEVDF_NICE0_WEIGHT 1024
#define EEVDF_REBASE_VT (1ULL << 26)

struct eevdf_queue {
	u64 zero_vt; /* origin of the sum below */
	s64 sum_wv;  /* sum of w * (v - zero_vt) */
	u64 sum_w;   /* sum of the weights */
};

/* a < b on a clock that wraps. */
static inline bool eevdf_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Virtual time that delta_ns of real time, less than 2^50, is for this weight (at least 1). */
static inline u64 eevdf_vt(u64 delta_ns, u32 weight)
{
	return (delta_ns * (EEVDF_NICE0_WEIGHT << EEVDF_SHIFT)) / weight;
}

/* The real time, less than 2^50 ns, in which a queue of this weight advances by so much. */
static inline u64 eevdf_ns(u64 delta_vt, u64 weight)
{
	return delta_vt * weight / (EEVDF_NICE0_WEIGHT << EEVDF_SHIFT);
}

/* The signed division that BPF v3 does not have. */
static inline s64 eevdf_div(s64 a, u64 b)
{
	return a < 0 ? -(s64)((0 - (u64)a) / b) : (s64)((u64)a / b);
}

/*
 * V, the virtual time of the queue: the weighted mean of its tasks, rounded
 * down, so that a task is eligible if and only if its v is not after it.
 */
static inline u64 eevdf_now(const struct eevdf_queue *q)
{
	s64 mean_vt;

	if (!q->sum_w)
		return q->zero_vt;
	mean_vt = eevdf_div(q->sum_wv, q->sum_w);
	if (q->sum_wv < 0 && mean_vt * (s64)q->sum_w != q->sum_wv)
		mean_vt--;
	return q->zero_vt + mean_vt;
}

/* Moves the origin to V once it has drifted too far. */
static inline u64 eevdf_rebase(struct eevdf_queue *q)
{
	u64 now_vt = eevdf_now(q);
	s64 drift = now_vt - q->zero_vt;

	if (drift > (s64)EEVDF_REBASE_VT || drift < -(s64)EEVDF_REBASE_VT) {
		q->sum_wv -= drift * (s64)q->sum_w;
		q->zero_vt = now_vt;
	}
	return now_vt;
}

/* A task of weight w at v starts to compete. V moves by -lag / W. */
static inline void eevdf_join(struct eevdf_queue *q, u64 v, u32 w)
{
	q->sum_wv += (s64)(v - q->zero_vt) * (s64)w;
	q->sum_w += w;
}

/*
 * A task of weight w at v stops competing. V moves by +lag / W; an empty
 * queue keeps its V, so that virtual time never goes back.
 */
static inline void eevdf_leave(struct eevdf_queue *q, u64 v, u32 w)
{
	if (q->sum_w <= w) {
		q->zero_vt = eevdf_now(q);
		q->sum_wv = 0;
		q->sum_w = 0;
		return;
	}
	q->sum_wv -= (s64)(v - q->zero_vt) * (s64)w;
	q->sum_w -= w;
}

/*
 * What a task that weighs w asks for at a time, in ns, among n that weigh sum_w together, itself
 * included: its slice, or the same part of it that w is of half their mean, but not less than
 * least_ns. No change for less than an eighth. Weights of less than 2^23, at most 8192 of them.
 */
static inline u64 eevdf_request(u64 slice_ns, u64 least_ns, u32 w, u32 n, u64 sum_w)
{
	u64 all = 2 * (u64)w * n, ns;

	if (all >= sum_w - sum_w / 8)
		return slice_ns;
	ns = slice_ns * all / sum_w;
	if (ns >= least_ns)
		return ns;
	return least_ns < slice_ns ? least_ns : slice_ns;
}

/* Keeps a remembered lag within +-limit. */
static inline s64 eevdf_clamp(s64 lag_vt, s64 limit_vt)
{
	if (lag_vt > limit_vt)
		return limit_vt;
	return lag_vt < -limit_vt ? -limit_vt : lag_vt;
}

/* The virtual lag of a task whose weight changes: the time it is owed stays. */
static inline s64 eevdf_rescale(s64 lag_vt, u32 old_w, u32 new_w)
{
	return eevdf_div(lag_vt * (s64)old_w, new_w);
}

/*
 * Where a task with this lag enters a queue: V - lag, the lag inflated by
 * (W + w) / W because joining moves V towards the newcomer.
 */
static inline u64 eevdf_place(const struct eevdf_queue *q, u64 now_vt, s64 lag_vt, u32 w)
{
	if (q->sum_w)
		lag_vt += eevdf_div(lag_vt * (s64)w, q->sum_w);
	return now_vt - lag_vt;
}

#endif
