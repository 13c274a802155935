/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump: what rota adds to the kernel's debug dump, and why it was ended.
 *
 * Problem: when a scheduler is ended, its state is gone with it.
 *
 * How: a line for each CPU and each task in the kernel's dump (SysRq-D, or
 * any error exit), and a copy of the kernel's exit record for user space.
 *
 * Limits: texts are cut at the sizes in rota.h.
 */

struct rota_exit exit_record;

static void dump_queue(const char *name, const struct cpu_queue *queue)
{
	scx_bpf_dump("  %s: waiting=%d parked=%d weight=%llu ghosts=%llu vt=%llu", name,
		     queue->queued - queue->gone.pulled, queue->parked, queue->tree.sum_w,
		     queue->ghost_w, eevdf_now(&queue->tree));
}

static void dump_exit(const struct scx_exit_info *info)
{
	exit_record.code = BPF_CORE_READ(info, exit_code);
	bpf_probe_read_kernel_str(exit_record.reason, sizeof(exit_record.reason),
				  BPF_CORE_READ(info, reason));
	bpf_probe_read_kernel_str(exit_record.msg, sizeof(exit_record.msg),
				  BPF_CORE_READ(info, msg));
	bpf_probe_read_kernel_str(exit_record.dump, sizeof(exit_record.dump),
				  BPF_CORE_READ(info, dump));
	/* Last: the daemon looks at it, too, where the event that says so may be lost. */
	exit_record.kind = BPF_CORE_READ(info, kind);
}
