/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * context: is a task at work, or an interrupt?
 *
 * Problem: what runs on a CPU may be the task that has it, or an interrupt that happens to run
 * above that and has nothing to do with it.
 *
 * How: the kernel's preempt count says so. Where that is differs by architecture and release;
 * internal/preemptcount finds it, and says so when the object is loaded.
 *
 * Limits: where the kernel gives no place away nothing is known. The bits are those of kernels
 * up to 7.2; one that counts other things there has to be told apart.
 */
#ifndef ROTA_CONTEXT_H
#define ROTA_CONTEXT_H

/* A soft interrupt that is served, not one that is only held off. */
#define SOFTIRQ_SERVED 0x100
#define HARDIRQ_BITS 0xf0000
#define NMI_BITS 0xf00000
#define INTERRUPT_BITS (NMI_BITS | HARDIRQ_BITS | SOFTIRQ_SERVED)

/* Set before loading: where this kernel keeps the preempt count. */
enum count_place {
	COUNT_NOWHERE,
	COUNT_VARIABLE,	 /* x86 but 6.2 to 6.14 */
	COUNT_HOT,	 /* x86 in between: in a struct */
	COUNT_WITH_TASK, /* arm64 */
};
const volatile u32 count_place;

struct pcpu_hot {
	int preempt_count;
} CORE;

struct thread_info___context {
	u64 preempt_count;
} CORE;

struct task_struct___context {
	struct thread_info___context thread_info;
	int softirq_disable_cnt; /* PREEMPT_RT only */
} CORE;

/*
 * The variables of the kernel are filled in when this is loaded. Only the branch
 * of count_place is looked at then, so those of other kernels do no harm.
 */
static __always_inline u32 context_count(void)
{
	struct task_struct___context *task = (void *)bpf_get_current_task_btf();
	struct pcpu_hot *hot;
	void *variable;
	u32 count = 0;

	if (count_place == COUNT_VARIABLE) {
		asm volatile("%0 = __preempt_count ll" : "=r"(variable));
		count = *(u32 *)bpf_this_cpu_ptr(variable);
	} else if (count_place == COUNT_HOT) {
		asm volatile("%0 = pcpu_hot ll" : "=r"(variable));
		hot = bpf_this_cpu_ptr(variable);
		count = hot->preempt_count;
	} else if (count_place == COUNT_WITH_TASK) {
		count = task->thread_info.preempt_count;
	}
	if (bpf_core_field_exists(task->softirq_disable_cnt))
		count |= task->softirq_disable_cnt & SOFTIRQ_SERVED;
	return count;
}

/* Does the running task itself do this? False, too, where that is not known. */
static __always_inline bool context_is_task(void)
{
	return count_place != COUNT_NOWHERE && !(context_count() & INTERRUPT_BITS);
}

/* Does a device, a timer or another CPU do this? False, too, where that is not known. */
static __always_inline bool context_is_interrupt(void)
{
	return count_place != COUNT_NOWHERE && context_count() & (NMI_BITS | HARDIRQ_BITS);
}

#endif
