/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * record: what the fair and the background tier decided, for somebody to judge.
 *
 * Problem: whether each pick is EEVDF's can only be said by whoever knows all
 * that came before it.
 *
 * How: when the loader gives it room, every change of a queue and every pick
 * is written down in the part of the CPU that makes it, in order and without
 * a lock. User space reads the parts when the scheduler is done; the lab
 * replays them against a model. When one part is full, all end.
 *
 * Limits: without room the verifier removes everything here but the loads of
 * record_capacity. With it, what is not static it looks at once, and not with all that
 * may have come before.
 */

/* A kind of record and how, in one argument. */
#define RECORD_WHAT(kind, how) ((kind) | (how) << 8)
#define RECORD_KIND(what) ((what) & 0xff)
#define RECORD_HOW(what) ((what) >> 8)

const volatile u32 record_capacity; /* set by the loader: records for each CPU, 0: none */
u32 record_stopped;		    /* set by the daemon, and here when a part is full */
u32 record_used[ROTA_MAX_CPUS];	    /* records in each part */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct rota_record);
	__uint(max_entries, 1); /* the loader widens it */
} records SEC(".maps");

/* The next record of this CPU, with what every record says; NULL: none is wanted. */
static struct rota_record *record_new(u32 kind, u32 how, u32 cpu, u32 tier)
{
	u32 writer = bpf_get_smp_processor_id();
	u32 *used = &record_used[writer & (ROTA_MAX_CPUS - 1)];
	struct rota_record *record;
	u32 at = *used;

	if (READ_ONCE(record_stopped) || tier == ROTA_PRIORITY)
		return NULL;
	if (at >= record_capacity) {
		WRITE_ONCE(record_stopped, 1);
		return NULL;
	}
	at += writer * record_capacity;
	record = bpf_map_lookup_elem(&records, &at);
	if (!record)
		return NULL;
	*used += 1;
	record->time_ns = bpf_ktime_get_ns();
	record->kind = kind;
	record->how = how;
	record->cpu = cpu;
	record->tier = tier;
	record->writer = writer;
	return record;
}

/* The same about a task that competes on this CPU. */
static struct rota_record *record_task(u32 kind, u32 how, const struct task_ctx *taskc, u32 cpu)
{
	struct rota_record *record = record_new(kind, how, cpu, taskc->tier);

	if (!record)
		return NULL;
	record->tid = taskc->tid;
	record->weight = taskc->weight;
	record->request_ns = taskc->request_ns;
	record->slice_ns = taskc->slice_ns;
	record->vt = taskc->vt;
	record->deadline_vt = taskc->deadline_vt;
	return record;
}

/* What is written about a task that competes on this CPU. */
__noinline int record_write_task(u32 what, const struct task_ctx *taskc, u32 cpu, u64 span_ns,
				 u64 now_vt)
{
	struct rota_record *record;

	if (!taskc)
		return 0;
	record = record_task(RECORD_KIND(what), RECORD_HOW(what), taskc, cpu);
	if (!record)
		return 0;
	record->span_ns = span_ns;
	record->now_vt = now_vt;
	return 0;
}

/* The same, where its virtual time is another by now. */
__noinline int record_write_leave(u32 how, const struct task_ctx *taskc, u32 cpu, u64 vt,
				  u64 now_vt)
{
	struct rota_record *record;

	if (!taskc)
		return 0;
	record = record_task(ROTA_RECORD_LEAVE, how, taskc, cpu);
	if (!record)
		return 0;
	record->vt = vt;
	record->now_vt = now_vt;
	return 0;
}

/* What is written about a queue, and a task in it if tid is not 0. */
__noinline int record_write_queue(u32 what, const struct cpu_queue *queue, u32 tid, u64 span_ns,
				  u64 vt)
{
	struct rota_record *record;

	if (!queue)
		return 0;
	record = record_new(RECORD_KIND(what), RECORD_HOW(what), queue->cpu, queue->tier);
	if (!record)
		return 0;
	record->tid = tid;
	record->span_ns = span_ns;
	record->vt = vt;
	if (RECORD_KIND(what) == ROTA_RECORD_PICK)
		record->now_vt = eevdf_now(&queue->tree);
	return 0;
}

__noinline int record_write_ghost(const struct cpu_queue *queue, u32 place)
{
	const struct cpu_ghost *ghost;
	struct rota_record *record;

	if (!queue)
		return 0;
	record = record_new(ROTA_RECORD_RELEASE, 0, queue->cpu, queue->tier);
	if (!record)
		return 0;
	ghost = &queue->ghost[place & (GHOST_PLACES - 1)];
	record->tid = ghost->tid;
	record->weight = ghost->weight;
	record->vt = ghost->vt;
	record->deadline_vt = ghost->deadline_vt;
	record->now_vt = eevdf_now(&queue->tree);
	return 0;
}

__noinline int record_write_ahead(const struct cpu_ctx *cpuc, u64 span_ns)
{
	struct rota_record *record;

	if (!cpuc)
		return 0;
	record = record_new(ROTA_RECORD_AHEAD, 0, cpuc->queues[0].cpu, cpuc->curr_tier);
	if (!record)
		return 0;
	record->tid = cpuc->curr_tid;
	record->weight = cpuc->curr_weight;
	record->span_ns = span_ns;
	return 0;
}

static __always_inline void record_note(u32 kind, u32 how, const struct task_ctx *taskc, u32 cpu,
					u64 span_ns)
{
	if (record_capacity)
		record_write_task(RECORD_WHAT(kind, how), taskc, cpu, span_ns, 0);
}

/* A decision, or a change of the queue, together with its V then. */
static __always_inline void record_at(u32 kind, u32 how, const struct task_ctx *taskc, u32 cpu,
				      u64 now_vt)
{
	if (record_capacity)
		record_write_task(RECORD_WHAT(kind, how), taskc, cpu, 0, now_vt);
}

/* A task joins; brief_ns is its request if that is a brief one, else 0. */
static __always_inline void record_join(u32 how, const struct task_ctx *taskc, u32 cpu, u64 now_vt,
					u64 brief_ns)
{
	how |= brief_ns ? ROTA_JOIN_BRIEF : 0;
	if (record_capacity)
		record_write_task(RECORD_WHAT(ROTA_RECORD_JOIN, how), taskc, cpu, brief_ns, now_vt);
}

/* A task is charged; now_vt is V, where its next request was measured by that, else 0. */
static __always_inline void record_charge(const struct task_ctx *taskc, u64 span_ns, u64 now_vt)
{
	if (record_capacity)
		record_write_task(ROTA_RECORD_CHARGE, taskc, taskc->joined, span_ns, now_vt);
}

/* A decision for a task that competes here. */
static __always_inline void record_pick(u32 how, const struct task_ctx *taskc, struct cpu_ctx *cpuc,
					u32 cpu)
{
	if (record_capacity)
		record_at(ROTA_RECORD_PICK, how, taskc, cpu,
			  eevdf_now(&cpu_queue(cpuc, taskc->tier)->tree));
}

/* A task takes the CPU of the one that runs. */
static __always_inline void record_preempt(const struct task_ctx *taskc, struct cpu_ctx *cpuc,
					   u32 cpu)
{
	if (record_capacity)
		record_write_task(RECORD_WHAT(ROTA_RECORD_PICK, ROTA_PICK_PREEMPT), taskc, cpu,
				  cpuc->curr_tid, eevdf_now(&cpu_queue(cpuc, taskc->tier)->tree));
}

/* The first of a dispatch queue is taken. */
static __always_inline void record_take(u32 how, const struct cpu_queue *queue, u32 tid)
{
	if (record_capacity)
		record_write_queue(RECORD_WHAT(ROTA_RECORD_PICK, how), queue, tid, 0, 0);
}

/* The first of another CPU's queue, or of its parked ones, is about to be taken away. */
static __always_inline void record_pull(const struct cpu_queue *queue, u32 tid, u32 how)
{
	if (record_capacity && tid)
		record_write_queue(RECORD_WHAT(ROTA_RECORD_PULL, how), queue, tid, 0, 0);
}

/* What runs is charged in advance, in the sums only. */
static __always_inline void record_ahead(const struct cpu_ctx *cpuc, u64 span_ns)
{
	if (record_capacity)
		record_write_ahead(cpuc, span_ns);
}

/* Departures are settled: so much weight less, at this sum of w * v. */
static __always_inline void record_settle(const struct cpu_queue *queue, u64 w, u64 wv)
{
	if (record_capacity)
		record_write_queue(RECORD_WHAT(ROTA_RECORD_SETTLE, 0), queue, 0, w, wv);
}

/* A ghost is let go. */
static __always_inline void record_release(const struct cpu_queue *queue, u32 place)
{
	if (record_capacity)
		record_write_ghost(queue, place);
}

/* A task stops to compete; vt is where it did, its own field holds its lag by now. */
static __always_inline void record_leave(u32 how, const struct task_ctx *taskc, u32 cpu, u64 vt,
					 u64 now_vt)
{
	if (record_capacity)
		record_write_leave(how, taskc, cpu, vt, now_vt);
}
