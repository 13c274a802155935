// SPDX-License-Identifier: Apache-2.0
/*
 * pinned ROUNDS BOARD SLOT - a task that sleeps and wakes while it must not migrate.
 *
 * The kernel runs a sleepable BPF program with migration disabled. Ours reads
 * one word of user memory whose page is missing: the task sleeps inside the
 * program until the second thread has filled the page (userfaultfd) a
 * millisecond later, and is woken with a mask that says one CPU while its own
 * affinity says all. Prints "rounds N longest_us N" (the longest round).
 *
 * ROUNDS 0 never fills the page: the task sleeps in the kernel until it is
 * killed, and no attempt to freeze it (for suspend) succeeds.
 */
#define _GNU_SOURCE
#include "board.h"

#include <linux/bpf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define PAGE 4096

static int faults;
static int hold;

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* load_reader loads: copy_from_user(stack, 8, *(u64 *)ctx); return 0. */
static int load_reader(void)
{
	struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 3, .src_reg = 1, .off = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_copy_from_user },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static char log[8192];
	union bpf_attr attr = { 0 };
	int fd;

	attr.prog_type = BPF_PROG_TYPE_SYSCALL;
	attr.prog_flags = BPF_F_SLEEPABLE;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t)"Apache-2.0";
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		fprintf(stderr, "%s", log);
		die("load the BPF program");
	}
	return fd;
}

static void run_reader(int prog, void *page)
{
	uint64_t context = (uintptr_t)page;
	union bpf_attr attr = { 0 };

	attr.test.prog_fd = (uint32_t)prog;
	attr.test.ctx_in = (uintptr_t)&context;
	attr.test.ctx_size_in = sizeof(context);
	if (bpf(BPF_PROG_TEST_RUN, &attr))
		die("run the BPF program");
}

/* fill_pages answers every fault with an empty page after a millisecond. */
static void *fill_pages(void *arg)
{
	struct uffd_msg msg;

	(void)arg;
	while (read(faults, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_zeropage zero = { 0 };

		usleep(1000);
		if (hold)
			continue;
		zero.range.start = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		zero.range.len = PAGE;
		if (ioctl(faults, UFFDIO_ZEROPAGE, &zero))
			die("UFFDIO_ZEROPAGE");
	}
	die("read a page fault");
	return NULL;
}

/* missing_page returns a page whose first access waits for fill_pages. */
static void *missing_page(void)
{
	struct uffdio_register reg = { 0 };
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	reg.range.start = (uintptr_t)page;
	reg.range.len = PAGE;
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (ioctl(faults, UFFDIO_REGISTER, &reg))
		die("UFFDIO_REGISTER");
	return page;
}

int main(int argc, char **argv)
{
	struct uffdio_api api = { .api = UFFD_API };
	uint64_t longest = 0;
	struct slot *slot;
	pthread_t id;
	void *page;
	long rounds;
	int prog;

	if (argc != 4) {
		fprintf(stderr, "usage: pinned ROUNDS BOARD SLOT\n");
		return 2;
	}
	rounds = number(argv[1], 0, 1000000);
	hold = rounds == 0;
	slot = board_open(argv[2]) + number(argv[3], 0, BOARD_SLOTS - 1);
	prog = load_reader();
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		die("userfaultfd");
	page = missing_page();
	if (pthread_create(&id, NULL, fill_pages, NULL))
		die("pthread_create");
	for (long i = 0; hold || i < rounds; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), took;

		run_reader(prog, page);
		took = clock_ns(CLOCK_MONOTONIC) - start;
		if (took > longest)
			longest = took;
		if (took < 1000000u)
			slot->errors++; /* the page was there: nothing was tested */
		slot->loops++;
		if (madvise(page, PAGE, MADV_DONTNEED))
			die("madvise");
	}
	printf("rounds %ld longest_us %llu\n", rounds, (unsigned long long)(longest / 1000));
	return 0;
}
