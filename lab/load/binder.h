/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binder.h - calls over the binder driver, for loads.
 *
 * Problem: a load needs real calls between processes, and Android's libraries for
 * that are not on a usual Linux.
 *
 * How: the ioctl of the driver, as libbinder uses it: a process opens a device and
 * lends it memory; each thread collects commands and hands them in with the next
 * exchange, which also brings what the driver has for it. A service is the context
 * manager of a device, whom callers reach without a name.
 *
 * Limits: calls that wait for an answer, of one small struct; no objects, no death
 * notes, and nobody is called back.
 */
#ifndef ROTA_BINDER_H
#define ROTA_BINDER_H

#include "board.h"

#include <errno.h>
#include <linux/android/binder.h>
#include <string.h>
#include <sys/ioctl.h>

#define BINDER_MAP_BYTES ((1 << 20) - 8192)
#define BINDER_ROOM 512

/* What a call says: how much work it asks for, see launch.h. */
struct message {
	uint32_t units, held, background, seed;
};

typedef void binder_handler(uint32_t code, const struct message *message);

/* The commands that this thread hands in next. */
static __thread struct {
	char bytes[BINDER_ROOM];
	size_t size;
} binder_out;

/* What the driver has said to this thread, and how much of it was looked at. */
struct binder_in {
	char bytes[BINDER_ROOM];
	size_t size, at;
};

static inline int binder_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, BINDER_MAP_BYTES, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0) ==
			      MAP_FAILED)
		die(path);
	return fd;
}

/*
 * binder_manage makes this process the service of a device; its threads run at the
 * nice value of their caller, and at worst at min_nice.
 */
static inline void binder_manage(int fd, unsigned int min_nice)
{
	struct flat_binder_object node = { .hdr.type = BINDER_TYPE_BINDER, .flags = min_nice };

	if (ioctl(fd, BINDER_SET_CONTEXT_MGR_EXT, &node))
		die("BINDER_SET_CONTEXT_MGR_EXT");
}

static inline void binder_put(uint32_t command, const void *data)
{
	memcpy(binder_out.bytes + binder_out.size, &command, sizeof(command));
	binder_out.size += sizeof(command);
	memcpy(binder_out.bytes + binder_out.size, data, _IOC_SIZE(command));
	binder_out.size += _IOC_SIZE(command);
}

static inline void binder_put_message(uint32_t command, uint32_t code, const void *data,
				      size_t size)
{
	struct binder_transaction_data t = { .code = code, .data_size = size };

	t.data.ptr.buffer = (binder_uintptr_t)data;
	binder_put(command, &t);
}

/* binder_exchange hands in what was put, and waits until there is an answer. */
static inline void binder_exchange(int fd, struct binder_in *in)
{
	struct binder_write_read both = {
		.write_buffer = (binder_uintptr_t)binder_out.bytes,
		.write_size = binder_out.size,
		.read_buffer = (binder_uintptr_t)in->bytes,
		.read_size = sizeof(in->bytes),
	};

	while (ioctl(fd, BINDER_WRITE_READ, &both)) /* it goes on where a signal ended it */
		if (errno != EINTR)
			die("BINDER_WRITE_READ");
	binder_out.size = 0;
	in->size = both.read_consumed;
	in->at = 0;
}

/* binder_next takes the next answer and what belongs to it; 0: there is none. */
static inline uint32_t binder_next(struct binder_in *in, struct binder_transaction_data *t)
{
	uint32_t answer;

	if (in->at + sizeof(answer) > in->size)
		return 0;
	memcpy(&answer, in->bytes + in->at, sizeof(answer));
	in->at += sizeof(answer);
	if (answer == BR_REPLY || answer == BR_TRANSACTION)
		memcpy(t, in->bytes + in->at, sizeof(*t));
	in->at += _IOC_SIZE(answer);
	return answer;
}

/* binder_try calls the service of a device; it returns its answer, or why there is none. */
static inline uint32_t binder_try(int fd, uint32_t code, const struct message *message)
{
	struct binder_transaction_data t;
	struct binder_in in;

	binder_put_message(BC_TRANSACTION, code, message, sizeof(*message));
	for (;;) {
		uint32_t answer;

		binder_exchange(fd, &in);
		while ((answer = binder_next(&in, &t))) {
			if (answer == BR_DEAD_REPLY || answer == BR_FAILED_REPLY)
				return answer;
			if (answer == BR_REPLY) {
				binder_put(BC_FREE_BUFFER, &t.data.ptr.buffer);
				return answer;
			}
		}
	}
}

/* binder_call does so where only the answer will do. */
static inline void binder_call(int fd, uint32_t code, const struct message *message)
{
	uint32_t answer = binder_try(fd, code, message);

	if (answer != BR_REPLY) {
		fprintf(stderr, "binder call %u: failed (%#x)\n", code, answer);
		exit(1);
	}
}

/* binder_serve answers calls for ever, as one thread of its process's pool. */
static inline void binder_serve(int fd, binder_handler *handle)
{
	static const uint32_t done;
	struct binder_in in;

	binder_put(BC_ENTER_LOOPER, NULL);
	for (;;) {
		struct binder_transaction_data t;
		uint32_t answer;

		binder_exchange(fd, &in);
		while ((answer = binder_next(&in, &t))) {
			if (answer != BR_TRANSACTION)
				continue;
			if (t.data_size == sizeof(struct message))
				handle(t.code, (const struct message *)t.data.ptr.buffer);
			binder_put(BC_FREE_BUFFER, &t.data.ptr.buffer);
			binder_put_message(BC_REPLY, 0, &done, sizeof(done));
		}
	}
}

#endif
