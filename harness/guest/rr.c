// SPDX-License-Identifier: GPL-2.0
/* UDP requests and responses, one at a time:
 *   rr server PORT
 *   rr client ADDRESS PORT SIZE COUNT
 * The client prints the time of each round trip in ns, one a line. Where the
 * clock advances with the instructions, that is how many a round trip takes.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char buf[65536];

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct sockaddr_in address(const char *addr, const char *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(atoi(port)),
	};

	if (inet_pton(AF_INET, addr, &a.sin_addr) != 1)
		errx(1, "%s is no IPv4 address", addr);
	return a;
}

static void serve(int fd)
{
	struct sockaddr_in from;
	socklen_t alen;
	ssize_t len;

	for (;;) {
		alen = sizeof(from);
		len = recvfrom(fd, buf, sizeof(buf), 0,
			       (struct sockaddr *)&from, &alen);
		if (len < 0)
			err(1, "recvfrom");
		if (sendto(fd, buf, len, 0, (struct sockaddr *)&from, alen) != len)
			err(1, "sendto");
	}
}

static void ask(int fd, size_t size, int count)
{
	struct timeval patience = { .tv_sec = 5 };
	int64_t *took = calloc(count, sizeof(*took)), begin;
	int i;

	if (!took)
		err(1, "calloc");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err(1, "setsockopt");
	for (i = 0; i < count; i++) {
		begin = now_ns();
		if (send(fd, buf, size, 0) != (ssize_t)size)
			err(1, "send");
		if (recv(fd, buf, sizeof(buf), 0) != (ssize_t)size)
			err(1, "recv");
		took[i] = now_ns() - begin;
	}
	for (i = 0; i < count; i++)
		printf("%lld\n", (long long)took[i]);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a;
	int fd;

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		err(1, "socket");
	if (argc == 3 && !strcmp(argv[1], "server")) {
		a = address("0.0.0.0", argv[2]);
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
			err(1, "bind");
		serve(fd);
	} else if (argc == 6 && !strcmp(argv[1], "client")) {
		a = address(argv[2], argv[3]);
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
			err(1, "connect");
		ask(fd, atoi(argv[4]), atoi(argv[5]));
		return 0;
	}
	errx(2, "usage: rr server PORT, or rr client ADDRESS PORT SIZE COUNT");
}
