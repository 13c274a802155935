// SPDX-License-Identifier: Apache-2.0
/*
 * relay FROM TO - forwards every frame that arrives at interface FROM to TO.
 *
 * One process per direction: a round trip of ping over a pair of relays needs
 * three processes, one after the other (ping, relay, relay), as the packets of
 * a user plane in user space do. Prints "ready" when it listens.
 */
#include "board.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

/* listen_on opens a raw socket on an interface; protocol 0 receives nothing. */
static int listen_on(const char *name, int protocol)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0)
		die("socket");
	/* the other relay sends on this interface: its frames must not wake us */
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)))
		die("PACKET_IGNORE_OUTGOING");
	addr.sll_protocol = htons((uint16_t)protocol);
	addr.sll_ifindex = (int)if_nametoindex(name);
	if (!addr.sll_ifindex || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die(name);
	return fd;
}

int main(int argc, char **argv)
{
	static char frame[65536];
	int from, to;

	if (argc != 3) {
		fprintf(stderr, "usage: relay FROM TO\n");
		return 2;
	}
	from = listen_on(argv[1], ETH_P_ALL);
	to = listen_on(argv[2], 0);
	puts("ready");
	fflush(stdout);
	for (;;) {
		ssize_t n = recv(from, frame, sizeof(frame), 0);

		if (n < 0 && errno != EINTR && errno != ENETDOWN)
			die("recv");
		if (n > 0 && send(to, frame, (size_t)n, 0) < 0 && errno != ENOBUFS &&
		    errno != ENETDOWN && errno != EINTR)
			die("send");
	}
}
