// SPDX-License-Identifier: Apache-2.0
/*
 * ask serve PORT - sends each datagram back to who sent it. Prints "ready".
 * ask ADDRESS PORT BOARD SLOT - sends one, waits for the answer, sends the next, and
 * counts the answers on its slot of the board; errors are answers that did not come
 * within a second.
 */
#include "board.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define ASK_BYTES 64

static int udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static struct sockaddr_in port(const char *text)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)number(text, 1, 65535)) };
}

static void serve(const char *at)
{
	struct sockaddr_in here = port(at), from;
	int fd = udp();

	if (bind(fd, (struct sockaddr *)&here, sizeof(here)))
		die("bind");
	puts("ready");
	fflush(stdout);
	for (;;) {
		char text[2048];
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &size);

		if (n >= 0)
			sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, size);
	}
}

/* answered waits for the answer to question n, not for one to an earlier question. */
static bool answered(int fd, uint64_t n)
{
	char answer[ASK_BYTES];

	while (recv(fd, answer, sizeof(answer), 0) == ASK_BYTES)
		if (!memcmp(answer, &n, sizeof(n)))
			return true;
	return false;
}

static void ask(char **argv)
{
	struct slot *slot = board_open(argv[2]) + number(argv[3], 0, BOARD_SLOTS - 1);
	struct sockaddr_in there = port(argv[1]);
	struct timeval patience = { .tv_sec = 1 };
	char text[ASK_BYTES] = { 0 };
	int fd = udp();

	if (inet_pton(AF_INET, argv[0], &there.sin_addr) != 1) {
		fprintf(stderr, "%s: is not an address\n", argv[0]);
		exit(2);
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&there, sizeof(there)))
		die("connect");
	for (uint64_t n = 1;; n++) {
		memcpy(text, &n, sizeof(n));
		if (send(fd, text, sizeof(text), 0) < 0 && errno != ECONNREFUSED &&
		    errno != ENOBUFS)
			die("send");
		if (answered(fd, n))
			slot->loops++;
		else
			slot->errors++;
		slot->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	if (argc != 5) {
		fprintf(stderr, "usage: ask serve PORT | ask ADDRESS PORT BOARD SLOT\n");
		return 2;
	}
	ask(argv + 1);
}
