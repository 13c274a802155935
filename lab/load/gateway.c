// SPDX-License-Identifier: Apache-2.0
/*
 * gateway DEVICE PEER TEID - the user-space end of a GTP-U tunnel.
 *
 * What a program writes to the TUN device DEVICE goes to PEER, UDP port 2152, in a
 * GTP-U header with this tunnel id, and back. That is what the radio side of a
 * simulated 5G network does for its user plane (3GPP TS 29.281): one more process
 * in the way of each packet. Prints "ready" when it listens.
 */
#include "board.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define GTPU_PORT 2152
#define GTPU_VERSION1 0x30 /* version 1, protocol GTP, no options */
#define GTPU_OPTIONS 0x07
#define GTPU_PACKET 0xff /* G-PDU: a packet of the user */

struct gtpu {
	uint8_t flags;
	uint8_t type;
	uint16_t length; /* of what follows this header */
	uint32_t teid;
};

static uint8_t packet[sizeof(struct gtpu) + 65536];

/* open_tun attaches to a TUN device that is there already. */
static int open_tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("/dev/net/tun");
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &request))
		die(name);
	return fd;
}

static int open_udp(const char *peer)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(GTPU_PORT) };
	struct sockaddr_in there = here;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	if (inet_pton(AF_INET, peer, &there.sin_addr) != 1) {
		fprintf(stderr, "%s: is not an address\n", peer);
		exit(2);
	}
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) ||
	    connect(fd, (struct sockaddr *)&there, sizeof(there)))
		die("port 2152");
	return fd;
}

/* wrap sends what waits on the TUN device into the tunnel. */
static void wrap(int tun, int udp, uint32_t teid)
{
	struct gtpu *header = (struct gtpu *)packet;
	ssize_t n = read(tun, header + 1, sizeof(packet) - sizeof(*header));

	if (n <= 0)
		return;
	*header = (struct gtpu){ GTPU_VERSION1, GTPU_PACKET, htons((uint16_t)n), htonl(teid) };
	if (send(udp, packet, sizeof(*header) + (size_t)n, 0) < 0 && errno != ENOBUFS &&
	    errno != ECONNREFUSED)
		die("send");
}

/* unwrap gives what came out of the tunnel to the TUN device. */
static void unwrap(int udp, int tun, uint32_t teid)
{
	struct gtpu *header = (struct gtpu *)packet;
	ssize_t n = recv(udp, packet, sizeof(packet), 0);
	size_t head = sizeof(*header);

	if (n < (ssize_t)head || header->type != GTPU_PACKET || ntohl(header->teid) != teid)
		return;
	/* Sequence number and such, of one length, which nobody here sends. */
	if (header->flags & GTPU_OPTIONS)
		head += 4;
	if ((size_t)n > head && write(tun, packet + head, (size_t)n - head) < 0 && errno != EINVAL)
		die("write");
}

int main(int argc, char **argv)
{
	struct pollfd ready[2];
	uint32_t teid;

	if (argc != 4) {
		fprintf(stderr, "usage: gateway DEVICE PEER TEID\n");
		return 2;
	}
	teid = (uint32_t)number(argv[3], 1, INT32_MAX);
	ready[0] = (struct pollfd){ .fd = open_tun(argv[1]), .events = POLLIN };
	ready[1] = (struct pollfd){ .fd = open_udp(argv[2]), .events = POLLIN };
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (ready[0].revents & POLLIN)
			wrap(ready[0].fd, ready[1].fd, teid);
		if (ready[1].revents & POLLIN)
			unwrap(ready[1].fd, ready[0].fd, teid);
	}
}
