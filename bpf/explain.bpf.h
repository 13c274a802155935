/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * explain: says what rota knows of one live task.
 *
 * Problem: why a task runs when it does is in its context, which only programs
 * of the scheduler can read.
 *
 * How: a program that the daemon runs by system call, with the tid. It copies
 * what matters; names and the way along chains are the daemon's work.
 *
 * Limits: read without locks, so a task that changes meanwhile may show some of
 * its old and some of its new state.
 */

#define EXPLAIN_LONGEST_NS 1000000000ULL /* nobody is owed, or owes, as much */

/*
 * What the task is owed by the queue where it competes, in ns, negative: what it owes. The turn of
 * what runs counts as far as V has it. 0 where the task joins or leaves just now.
 */
static s64 explain_lag(const struct task_struct *p, const struct task_ctx *taskc)
{
	s32 cpu = READ_ONCE(taskc->joined);
	u64 vt = READ_ONCE(taskc->vt);
	struct cpu_ctx *cpuc;
	s64 lag_vt, most_vt;

	if (cpu < 0 || taskc->tier == ROTA_PRIORITY || !taskc->weight)
		return 0;
	cpuc = cpu_find(cpu);
	if (READ_ONCE(cpuc->curr_tid) == p->pid)
		vt = READ_ONCE(cpuc->curr_vt);
	lag_vt = eevdf_now(&cpu_queue(cpuc, taskc->tier)->tree) - vt;
	most_vt = eevdf_vt(EXPLAIN_LONGEST_NS, taskc->weight);
	if (READ_ONCE(taskc->joined) != cpu || lag_vt != eevdf_clamp(lag_vt, most_vt))
		return 0;
	return eevdf_div(lag_vt * taskc->weight, EEVDF_NICE0_WEIGHT << EEVDF_SHIFT);
}

static void explain_task(const struct task_struct *p, const struct task_ctx *taskc,
			 struct rota_explain *out)
{
	u64 edge = READ_ONCE(taskc->waits), now_ns = clock_now();

	out->policy = p->policy;
	out->class = taskc->class;
	out->level = task_boosted(taskc) ? taskc->lent : taskc->class;
	out->weight = taskc->weight;
	out->slice_ns = taskc->slice_ns;
	out->lag_ns = explain_lag(p, taskc);
	out->boosted_ns = taskc->boosted_ns;
	out->cpu = p->thread_info.cpu;
	out->awaited = task_awaited(taskc);
	out->spent = task_awaited(taskc) && taskc->spent;
	out->running = cpu_find(out->cpu)->curr_tid == p->pid;
	out->ready_ns = taskc->ready_at_ns ? kernel_since(now_ns, taskc->ready_at_ns) : 0;
	out->waits_tid = edge ? INHERIT_TID(edge) : 0;
	out->waits_reason = INHERIT_REASON(edge);
	out->waits_gives = (edge & INHERIT_ACTIVE) != 0;
	out->waits_ns = edge ? kernel_since(now_ns, taskc->waits_at_ns) : 0;
	out->given = taskc->given;
	out->lifted = taskc->lifted;
}

SEC("syscall")
int rota_explain_task(struct rota_explain *args)
{
	struct task_struct *p = bpf_task_from_pid(args->tid);
	struct task_ctx *taskc;

	args->result = -ESRCH;
	if (!p)
		return 0;
	taskc = task_try(p);
	if (taskc) {
		explain_task(p, taskc, args);
		args->result = 0;
	}
	bpf_task_release(p);
	return 0;
}
