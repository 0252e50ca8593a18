// SPDX-License-Identifier: GPL-2.0
/* Senders and receivers of the GSO tests: pseudo-random data, and a hash on
 * both sides that tells whether all of it arrived, once and unchanged.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/udp.h>

#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define CHUNK (1 << 16)
/* holds bursts of a fast sender until the receiver gets to run */
#define RCVBUF (1 << 26)
#define SILENCE_SECS 10
#define STREAM_SECS 60

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

/* LEN bytes of pseudo-random data; BUF has room for whole words */
static void fill(uint64_t *buf, size_t len)
{
	size_t i;

	for (i = 0; i < (len + 7) / 8; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		buf[i] = seed;
	}
}

/* also of the length; BUF has room for whole words */
static uint64_t hash(uint64_t h, void *buf, size_t len)
{
	uint64_t *word = buf;
	size_t i;

	memset((char *)buf + len, 0, -len & 7);
	h += len;
	for (i = 0; i < (len + 7) / 8; i++) {
		h = (h ^ word[i]) * 0x100000001b3ULL;
		h ^= h >> 32;
	}
	return h;
}

static unsigned long number(const char *s)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 0);
	if (errno || *end || !*s)
		error(1, errno, "not a number: %s", s);
	return n;
}

static socklen_t address(const char *addr, const char *port,
			 struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_in *in = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(number(port));
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, addr, &in6->sin6_addr) != 1)
		error(1, 0, "not an address: %s", addr);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(number(port));
	return sizeof(*in6);
}

static void set_opt(int fd, int level, int opt, int val)
{
	if (setsockopt(fd, level, opt, &val, sizeof(val)))
		error(1, errno, "setsockopt %d %d %d", level, opt, val);
}

static void set_timeout(int fd, int opt, int secs)
{
	struct timeval tv = { .tv_sec = secs };

	if (setsockopt(fd, SOL_SOCKET, opt, &tv, sizeof(tv)))
		error(1, errno, "setsockopt timeout");
}

static int sender(char **argv, int type, int mss)
{
	struct sockaddr_storage ss;
	socklen_t len = address(argv[0], argv[1], &ss);
	int fd;

	fd = socket(ss.ss_family, type, 0);
	if (fd < 0)
		error(1, errno, "socket");
	set_timeout(fd, SO_SNDTIMEO, STREAM_SECS);
	if (mss)
		set_opt(fd, SOL_TCP, TCP_MAXSEG, mss);
	if (connect(fd, (struct sockaddr *)&ss, len))
		error(1, errno, "connect");
	return fd;
}

static int receiver(char **argv, int type)
{
	struct sockaddr_storage ss;
	socklen_t len = address(argv[0], argv[1], &ss);
	int fd;

	fd = socket(ss.ss_family, type, 0);
	if (fd < 0)
		error(1, errno, "socket");
	set_opt(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, (struct sockaddr *)&ss, len))
		error(1, errno, "bind");
	return fd;
}

static void send_all(int fd, const char *buf, size_t len)
{
	ssize_t n;

	while (len) {
		n = send(fd, buf, len, 0);
		if (n < 0)
			error(1, errno, "send");
		buf += n;
		len -= n;
	}
}

static void print_datagrams(size_t count, size_t bytes, uint64_t sum)
{
	printf("%zu datagrams %zu bytes hash %016llx\n", count, bytes,
	       (unsigned long long)sum);
}

static void print_stream(size_t bytes, uint64_t h)
{
	printf("%zu bytes hash %016llx\n", bytes, (unsigned long long)h);
}

/* ADDR PORT LEN SEG COUNT */
static int udp_send(int argc, char **argv)
{
	static uint64_t word[CHUNK / 8], copy[CHUNK / 8];
	size_t len, seg, count, i, off, part;
	size_t datagrams = 0, bytes = 0;
	uint64_t sum = 0;
	int fd;

	if (argc != 5)
		return -1;
	len = number(argv[2]);
	seg = number(argv[3]);
	count = number(argv[4]);
	if (len > sizeof(word) || seg > len)
		error(1, 0, "bad length");

	fd = sender(argv, SOCK_DGRAM, 0);
	if (seg)
		set_opt(fd, SOL_UDP, UDP_SEGMENT, seg);

	for (i = 0; i < count; i++) {
		fill(word, len);
		for (off = 0; off < len || !off; off += part) {
			part = seg && len - off > seg ? seg : len - off;
			memcpy(copy, (char *)word + off, part);
			sum += hash(0, copy, part);
			datagrams++;
			if (!part)
				break;
		}
		if (send(fd, word, len, 0) != (ssize_t)len)
			error(1, errno, "send");
		bytes += len;
	}
	print_datagrams(datagrams, bytes, sum);
	return 0;
}

/* ADDR PORT COUNT */
static int udp_recv(int argc, char **argv)
{
	static uint64_t word[CHUNK / 8];
	size_t count, i, bytes = 0;
	uint64_t sum = 0;
	ssize_t len;
	int fd;

	if (argc != 3)
		return -1;
	count = number(argv[2]);

	fd = receiver(argv, SOCK_DGRAM);
	set_opt(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF);
	set_timeout(fd, SO_RCVTIMEO, SILENCE_SECS);

	for (i = 0; i < count; i++) {
		len = recv(fd, word, sizeof(word), 0);
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0)
			error(1, errno, "recv");
		sum += hash(0, word, len);
		bytes += len;
	}
	print_datagrams(i, bytes, sum);
	return i != count;
}

/* ADDR PORT BYTES [MSS] */
static int tcp_send(int argc, char **argv)
{
	static uint64_t word[CHUNK / 8];
	size_t bytes, done, len;
	uint64_t h = 0;
	int fd;

	if (argc != 3 && argc != 4)
		return -1;
	bytes = number(argv[2]);

	fd = sender(argv, SOCK_STREAM, argc == 4 ? number(argv[3]) : 0);
	for (done = 0; done < bytes; done += len) {
		len = bytes - done < CHUNK ? bytes - done : CHUNK;
		fill(word, len);
		h = hash(h, word, len);
		send_all(fd, (char *)word, len);
	}
	print_stream(bytes, h);
	return 0;
}

/* ADDR PORT */
static int tcp_recv(int argc, char **argv)
{
	static uint64_t word[CHUNK / 8];
	size_t bytes = 0, len;
	uint64_t h = 0;
	ssize_t n;
	int fd;

	if (argc != 2)
		return -1;

	fd = receiver(argv, SOCK_STREAM);
	set_timeout(fd, SO_RCVTIMEO, STREAM_SECS);
	if (listen(fd, 1))
		error(1, errno, "listen");
	fd = accept(fd, NULL, NULL);
	if (fd < 0)
		error(1, errno, "accept");
	set_timeout(fd, SO_RCVTIMEO, STREAM_SECS);

	do {
		/* the sender hashes whole chunks, too */
		for (len = 0; len < CHUNK; len += n) {
			n = recv(fd, (char *)word + len, CHUNK - len, 0);
			if (n < 0)
				error(1, errno, "recv");
			if (!n)
				break;
		}
		if (len)
			h = hash(h, word, len);
		bytes += len;
	} while (len == CHUNK);
	print_stream(bytes, h);
	return 0;
}

static const struct {
	const char *name;
	const char *args;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{ "udp-send", "ADDR PORT LEN SEG COUNT", udp_send },
	{ "udp-recv", "ADDR PORT COUNT", udp_recv },
	{ "tcp-send", "ADDR PORT BYTES [MSS]", tcp_send },
	{ "tcp-recv", "ADDR PORT", tcp_recv },
};

int main(int argc, char **argv)
{
	int ret = -1;
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (!strcmp(argv[1], verbs[i].name))
			ret = verbs[i].run(argc - 2, argv + 2);
	}
	if (ret >= 0)
		return ret;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		fprintf(stderr, "usage: ovpn-traffic %s %s\n", verbs[i].name,
			verbs[i].args);
	return 2;
}
