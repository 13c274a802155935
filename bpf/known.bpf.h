/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * known: what the daemon has answered about a task holds for all that are known by the same.
 *
 * Problem: a thread gets its name when it begins to work. Until the daemon has looked it up
 * it runs in its parent's class, and on a busy machine the daemon needs a CPU first; each
 * answer also costs more than many such threads do.
 *
 * How: where rules look at names, cgroups and users by number only, the class is a function
 * of these. The daemon notes each answer under what it has read of them, and the hooks for
 * new names and programs look there before they ask. Notes are of an epoch, which the daemon
 * changes with its rules; within one none is taken back, because the kernel gives the place
 * of such a note to another one while somebody may still read it.
 *
 * Limits: not for rules about programs, kernel functions or names of users, as these change
 * without a hook; nor for threads of the kernel, whose names are longer than this, and of the
 * daemon.
 */

#define KNOWN_MAX 4096

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KNOWN_MAX);
	__type(key, struct rota_known);
	__type(value, u32);
} known_classes SEC(".maps");

struct rota_knowing knowing;

/* What hooks compare. */
struct known_who {
	u64 name[2];
	u32 user;
};

/* The name as two numbers: all of it is compared on most switches. */
static __always_inline u64 known_name(struct task_struct *p, u32 half)
{
	return ((const u64 *)p->comm)[half];
}

static __always_inline struct known_who known_read(struct task_struct *p)
{
	return (struct known_who){ { known_name(p, 0), known_name(p, 1) },
				   kernel_plain(p)->real_cred->euid.val };
}

/*
 * What the daemon was asked about, or has answered. Any CPU may write this: a name that is torn
 * differs from the real one where the task next stops, and is asked about again.
 */
static __always_inline void known_note(struct task_ctx *taskc, const struct known_who *who)
{
	taskc->name[0] = who->name[0];
	taskc->name[1] = who->name[1];
	taskc->user = who->user;
}

/* What rules see of the task; epoch 0: not this way. */
static __always_inline struct rota_known known_key(struct task_struct *p,
						   const struct known_who *who)
{
	u32 epoch = READ_ONCE(knowing.epoch);
	struct rota_known key = {};

	if (p->flags & PF_KTHREAD || p->tgid == knowing.daemon)
		return key;
	if (epoch & ROTA_KNOWN_COMM)
		__builtin_memcpy(key.comm, who->name, sizeof(key.comm));
	if (epoch & ROTA_KNOWN_CGROUP)
		key.cgroup = kernel_plain(p)->cgroups->dfl_cgrp->kn->id;
	if (epoch & ROTA_KNOWN_USER)
		key.user = who->user;
	key.epoch = epoch;
	return key;
}

static __always_inline bool known_same(const struct rota_known *a, const struct rota_known *b)
{
	return !__builtin_memcmp(a, b, sizeof(*a));
}
