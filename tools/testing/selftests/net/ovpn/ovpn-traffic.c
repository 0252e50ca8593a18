// SPDX-License-Identifier: GPL-2.0
/* Senders and receivers of the GSO tests: pseudo-random data, and a hash on
 * both sides that tells whether all of it arrived, once and unchanged.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/udp.h>

#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define CHUNK 0x10000UL
#define PAGE 4096UL
/* holds bursts of a fast sender until the receiver gets to run */
#define RCVBUF 0x4000000
#define CONNECT_SECS 10
#define STREAM_SECS 60

enum method {
	METHOD_COPY,
	METHOD_ZEROCOPY,
	METHOD_SENDFILE,
	METHOD_SPLICE,
	METHOD_VMSPLICE,
};

static const char * const methods[] = {
	"copy", "zerocopy", "sendfile", "splice", "vmsplice"
};

static struct {
	enum method method;
	const char *file;
	bool scribble;
	bool elapsed;
	bool tstamp;
	bool drain;
	unsigned long rate;
	unsigned long delay_ms;
	int prio;
} opt = { .prio = -1 };

/* what is sent: one piece per call, STRIDE apart, also in the file */
static struct {
	char *mem;
	size_t stride;
	size_t len;
	int fd;
	int pipe[2];
	pid_t scribbler;
} data;

/* requests that the error queue has to answer */
static struct {
	size_t bytes;
	size_t sends;
	uint32_t *key;
	uint8_t *snd;
	uint8_t *ack;
	size_t zerocopies;
} answer;

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

/* also of the length */
static uint64_t hash(uint64_t h, const char *buf, size_t len)
{
	uint64_t word;
	size_t i, n;

	if (opt.scribble)
		return 0;

	h += len;
	for (i = 0; i < len; i += n) {
		n = len - i < sizeof(word) ? len - i : sizeof(word);
		word = 0;
		memcpy(&word, buf + i, n);
		h = (h ^ word) * 0x100000001b3ULL;
		h ^= h >> 32;
	}
	return h;
}

static unsigned long parse_number(const char *s)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 0);
	if (errno || *end || !*s)
		error(1, errno, "not a number: %s", s);
	return n;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts))
		error(1, errno, "clock_gettime");
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static socklen_t parse_address(const char *addr, const char *port,
			       struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_in *in = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(parse_number(port));
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, addr, &in6->sin6_addr) != 1)
		error(1, 0, "not an address: %s", addr);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(parse_number(port));
	return sizeof(*in6);
}

static void set_opt(int fd, int level, int name, int val)
{
	if (setsockopt(fd, level, name, &val, sizeof(val)))
		error(1, errno, "setsockopt %d %d %d", level, name, val);
}

static void set_timeout(int fd, int name, int secs)
{
	struct timeval tv = { .tv_sec = secs };

	if (setsockopt(fd, SOL_SOCKET, name, &tv, sizeof(tv)))
		error(1, errno, "setsockopt timeout");
}

/* reset the connection on exit: what is not acknowledged would keep the
 * namespace for a minute
 */
static void set_abort(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		error(1, errno, "SO_LINGER");
}

/* Memory or a file with SENDS pieces of LEN bytes each, the last one may be
 * shorter. Pieces start at a page so that they have few fragments.
 */
static void data_init(size_t sends, size_t len, size_t bytes)
{
	size_t i, part, size;

	data.len = len;
	data.stride = (len + PAGE - 1) & ~(PAGE - 1);
	if (opt.method == METHOD_COPY)
		data.stride = (len + 7) & ~7UL;
	size = sends * data.stride + PAGE;

	if (opt.method == METHOD_SENDFILE || opt.method == METHOD_SPLICE) {
		if (!opt.file)
			error(1, 0, "no file (-f)");
		data.fd = open(opt.file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (data.fd < 0 || ftruncate(data.fd, size))
			error(1, errno, "%s", opt.file);
		data.mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
				data.fd, 0);
	} else {
		data.mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	}
	if (data.mem == MAP_FAILED)
		error(1, errno, "mmap");

	for (i = 0; i < sends; i++) {
		part = len < bytes - i * len ? len : bytes - i * len;
		fill((uint64_t *)(data.mem + i * data.stride), part);
	}

	if (opt.method > METHOD_ZEROCOPY) {
		if (pipe(data.pipe))
			error(1, errno, "pipe");
		if (fcntl(data.pipe[0], F_SETPIPE_SZ, 0x100000) < 0)
			error(1, errno, "pipe size");
	}

	if (!opt.scribble)
		return;
	data.scribbler = fork();
	if (data.scribbler < 0)
		error(1, errno, "fork");
	if (data.scribbler)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0;; i++)
		memset(data.mem + i % sends * data.stride, i, len);
}

/* sending must not change the data */
static uint64_t data_hash(size_t sends)
{
	uint64_t h = 0;
	size_t i;

	for (i = 0; i < sends; i++)
		h = hash(h, data.mem + i * data.stride, data.len);
	return h;
}

static int sender(char **argv, int type, int mss)
{
	const int flags = SOF_TIMESTAMPING_TX_SOFTWARE |
			  SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
			  SOF_TIMESTAMPING_OPT_TSONLY;
	const int tcp_flags = SOF_TIMESTAMPING_TX_ACK |
			      SOF_TIMESTAMPING_OPT_ID_TCP;
	const struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	struct sockaddr_storage ss;
	socklen_t len = parse_address(argv[0], argv[1], &ss);
	int fd;

	fd = socket(ss.ss_family, type, 0);
	if (fd < 0)
		error(1, errno, "socket");
	set_timeout(fd, SO_SNDTIMEO, STREAM_SECS);
	if (mss)
		set_opt(fd, SOL_TCP, TCP_MAXSEG, mss);
	if (opt.prio >= 0)
		set_opt(fd, SOL_SOCKET, SO_PRIORITY, opt.prio);
	if (opt.rate)
		set_opt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, opt.rate);
	if (opt.method == METHOD_ZEROCOPY)
		set_opt(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	if (opt.delay_ms && setsockopt(fd, SOL_SOCKET, SO_TXTIME, &txtime,
				       sizeof(txtime)))
		error(1, errno, "SO_TXTIME");
	if (connect(fd, (struct sockaddr *)&ss, len))
		error(1, errno, "connect");
	/* IDs of a stream count from the connection on */
	if (opt.tstamp)
		set_opt(fd, SOL_SOCKET, SO_TIMESTAMPING, type == SOCK_STREAM ?
			flags | tcp_flags : flags);
	return fd;
}

static int receiver(char **argv, int type)
{
	struct sockaddr_storage ss;
	socklen_t len = parse_address(argv[0], argv[1], &ss);
	int fd;

	fd = socket(ss.ss_family, type, 0);
	if (fd < 0)
		error(1, errno, "socket");
	set_opt(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, (struct sockaddr *)&ss, len))
		error(1, errno, "bind");
	return fd;
}

/* into the pipe, and all of it at once from there to the socket */
static ssize_t send_spliced(int fd, size_t off, size_t len)
{
	struct iovec iov;
	size_t done;
	ssize_t n;

	for (done = 0; done < len; done += n) {
		loff_t pos = off + done;

		iov.iov_base = data.mem + pos;
		iov.iov_len = len - done;
		if (opt.method == METHOD_SPLICE)
			n = splice(data.fd, &pos, data.pipe[1], NULL,
				   len - done, 0);
		else
			n = vmsplice(data.pipe[1], &iov, 1, 0);
		if (n <= 0)
			error(1, errno, "splice to the pipe");
	}

	for (done = 0; done < len; done += n) {
		n = splice(data.pipe[0], NULL, fd, NULL, len - done, 0);
		if (n <= 0)
			error(1, errno, "splice to the socket");
	}
	return len;
}

/* LEN bytes of the data at OFF */
static ssize_t send_piece(int fd, size_t off, size_t len)
{
	char control[CMSG_SPACE(sizeof(uint64_t))] = { 0 };
	struct iovec iov = { data.mem + off, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;
	uint64_t txtime;
	off_t pos = off;
	int flags = 0;

	if (opt.method == METHOD_SENDFILE)
		return sendfile(fd, data.fd, &pos, len);
	if (opt.method > METHOD_SENDFILE)
		return send_spliced(fd, off, len);

	if (opt.delay_ms) {
		txtime = now_ns() + opt.delay_ms * 1000000ULL;
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_TXTIME;
		cm->cmsg_len = CMSG_LEN(sizeof(txtime));
		memcpy(CMSG_DATA(cm), &txtime, sizeof(txtime));
	}
	if (opt.method == METHOD_ZEROCOPY)
		flags |= MSG_ZEROCOPY;
	/* a later request would replace an earlier one in the same skb */
	if (opt.tstamp)
		flags |= MSG_EOR;
	return sendmsg(fd, &msg, flags);
}

static void answer_init(size_t sends)
{
	answer.sends = sends;
	answer.key = calloc(sends, sizeof(*answer.key));
	answer.snd = calloc(sends, 1);
	answer.ack = calloc(sends, 1);
	if (!answer.key || !answer.snd || !answer.ack)
		error(1, 0, "no memory");
}

/* the ID of a request is its number, or the last byte of a stream */
static void answer_expect(size_t i, bool tcp, size_t len)
{
	answer.bytes += len;
	answer.key[i] = tcp ? answer.bytes - 1 : i;
}

static void answer_one(const struct sock_extended_err *ee)
{
	uint8_t *seen;
	size_t i;

	if (ee->ee_origin == SO_EE_ORIGIN_ZEROCOPY) {
		answer.zerocopies += ee->ee_data - ee->ee_info + 1;
		return;
	}
	if (ee->ee_origin != SO_EE_ORIGIN_TIMESTAMPING)
		error(1, ee->ee_errno, "origin %u on the error queue",
		      ee->ee_origin);

	seen = ee->ee_info == SCM_TSTAMP_ACK ? answer.ack : answer.snd;
	for (i = 0; i < answer.sends; i++) {
		if (answer.key[i] == ee->ee_data) {
			seen[i]++;
			return;
		}
	}
	error(1, 0, "a timestamp of the unknown ID %u", ee->ee_data);
}

/* all that is on the error queue */
static void answer_read(int fd)
{
	struct sock_extended_err ee;
	struct cmsghdr *cm;
	char control[512];

	for (;;) {
		struct msghdr msg = {
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};

		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN)
				return;
			error(1, errno, "error queue");
		}
		for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm)) {
			if (!(cm->cmsg_level == SOL_IP &&
			      cm->cmsg_type == IP_RECVERR) &&
			    !(cm->cmsg_level == SOL_IPV6 &&
			      cm->cmsg_type == IPV6_RECVERR))
				continue;
			memcpy(&ee, CMSG_DATA(cm), sizeof(ee));
			answer_one(&ee);
		}
	}
}

static size_t answer_count(const uint8_t *seen, bool twice)
{
	size_t i, n = 0;

	for (i = 0; i < answer.sends; i++)
		n += twice ? seen[i] > 1 : seen[i] > 0;
	return n;
}

static bool answer_complete(bool tcp)
{
	if (opt.method == METHOD_ZEROCOPY && answer.zerocopies < answer.sends)
		return false;
	if (!opt.tstamp)
		return true;
	return answer_count(answer.snd, false) == answer.sends &&
	       (!tcp || answer_count(answer.ack, false) == answer.sends);
}

static uint32_t wmem_alloc(int fd)
{
	uint32_t mem[SK_MEMINFO_VARS];
	socklen_t len = sizeof(mem);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len))
		error(1, errno, "SO_MEMINFO");
	return mem[SK_MEMINFO_WMEM_ALLOC];
}

/* Wait until the data is gone and all requests are answered. The socket is
 * charged as long as its data is in the host, and not any longer.
 */
static void settle(int fd, bool tcp)
{
	const uint64_t end = now_ns() + STREAM_SECS * 1000000000ULL;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int left = 0;

	if (opt.drain)
		fprintf(stderr, "charged %u\n", wmem_alloc(fd));

	do {
		answer_read(fd);
		if (ioctl(fd, SIOCOUTQ, &left))
			error(1, errno, "SIOCOUTQ");
		if (!left && !wmem_alloc(fd) && answer_complete(tcp))
			break;
		usleep(10000);
	} while (now_ns() < end);

	if (left || wmem_alloc(fd))
		error(1, 0, "still queued: %d bytes, charged: %u", left,
		      wmem_alloc(fd));
	if (!answer_complete(tcp))
		error(1, 0, "%zu sends, %zu and %zu timestamps, %zu zerocopies",
		      answer.sends, answer_count(answer.snd, false),
		      answer_count(answer.ack, false), answer.zerocopies);

	if (answer.zerocopies > answer.sends)
		error(1, 0, "%zu zerocopies of %zu sends", answer.zerocopies,
		      answer.sends);
	/* a retransmission is sent, and stamped, again */
	if (tcp && getsockopt(fd, SOL_TCP, TCP_INFO, &info, &len))
		error(1, errno, "TCP_INFO");
	if (!info.tcpi_total_retrans && answer_count(answer.snd, true))
		error(1, 0, "%zu of %zu timestamps came twice",
		      answer_count(answer.snd, true), answer.sends);
}

static bool must_settle(void)
{
	return opt.drain || opt.tstamp || opt.method != METHOD_COPY;
}

/* common end of the senders; BEFORE is the data_hash() before they started */
static void sent(int fd, bool tcp, size_t sends, uint64_t before)
{
	if (!must_settle())
		return;

	settle(fd, tcp);
	if (data.scribbler) {
		kill(data.scribbler, SIGKILL);
		waitpid(data.scribbler, NULL, 0);
	}
	if (data_hash(sends) != before)
		error(1, 0, "the data has changed");
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

static void print_arrival(uint64_t first)
{
	if (opt.elapsed)
		fprintf(stderr, "arrived from %llu to %llu us\n",
			(unsigned long long)first / 1000,
			(unsigned long long)now_ns() / 1000);
}

/* ADDR PORT LEN SEG COUNT */
static int udp_send(int argc, char **argv)
{
	size_t len, seg, count, i, off, part;
	uint64_t sum = 0, before;
	size_t datagrams = 0;
	char *piece;
	int fd;

	if (argc != 5)
		return -1;
	len = parse_number(argv[2]);
	seg = parse_number(argv[3]);
	count = parse_number(argv[4]);
	if (!len || len > CHUNK || seg > len)
		error(1, 0, "bad length");

	data_init(count, len, count * len);
	before = must_settle() ? data_hash(count) : 0;
	fd = sender(argv, SOCK_DGRAM, 0);
	if (seg)
		set_opt(fd, SOL_UDP, UDP_SEGMENT, seg);

	answer_init(count);
	if (opt.delay_ms)
		fprintf(stderr, "sent at %llu us\n",
			(unsigned long long)now_ns() / 1000);
	for (i = 0; i < count; i++) {
		piece = data.mem + i * data.stride;
		for (off = 0; off < len; off += part) {
			part = seg && len - off > seg ? seg : len - off;
			sum += hash(0, piece + off, part);
			datagrams++;
		}
		answer_expect(i, false, len);
		if (send_piece(fd, i * data.stride, len) != (ssize_t)len)
			error(1, errno, "send %zu", i);
	}
	sent(fd, false, count, before);
	print_datagrams(datagrams, count * len, sum);
	return 0;
}

/* ADDR PORT COUNT */
static int udp_recv(int argc, char **argv)
{
	uint64_t sum = 0, first = 0;
	size_t count, i, bytes = 0;
	static char buf[CHUNK];
	ssize_t len;
	int fd;

	if (argc != 3)
		return -1;
	count = parse_number(argv[2]);

	fd = receiver(argv, SOCK_DGRAM);
	set_opt(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF);
	set_timeout(fd, SO_RCVTIMEO, STREAM_SECS);

	for (i = 0; i < count; i++) {
		len = recv(fd, buf, sizeof(buf), 0);
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0)
			error(1, errno, "recv");
		if (!i)
			first = now_ns();
		sum += hash(0, buf, len);
		bytes += len;
	}
	print_arrival(first);
	print_datagrams(i, bytes, sum);
	return i != count;
}

/* ADDR PORT BYTES [MSS] */
static int tcp_send(int argc, char **argv)
{
	size_t bytes, count, len, i, done;
	uint64_t h = 0, before;
	ssize_t n;
	int fd;

	if (argc != 3 && argc != 4)
		return -1;
	bytes = parse_number(argv[2]);
	count = (bytes + CHUNK - 1) / CHUNK;

	data_init(count, CHUNK, bytes);
	before = must_settle() ? data_hash(count) : 0;
	fd = sender(argv, SOCK_STREAM, argc == 4 ? parse_number(argv[3]) : 0);

	answer_init(count);
	for (i = 0; i < count; i++) {
		len = bytes - i * CHUNK < CHUNK ? bytes - i * CHUNK : CHUNK;
		h = hash(h, data.mem + i * data.stride, len);
		answer_expect(i, true, len);
		for (done = 0; done < len; done += n) {
			n = send_piece(fd, i * data.stride + done, len - done);
			if (n < 0)
				error(1, errno, "send");
			/* each call has its own answers */
			if ((size_t)n < len && opt.method == METHOD_ZEROCOPY)
				error(1, 0, "only %zd bytes sent", n);
		}
	}
	sent(fd, true, count, before);
	print_stream(bytes, h);
	return 0;
}

/* ADDR PORT */
static int tcp_recv(int argc, char **argv)
{
	uint64_t h = 0, first = 0;
	static char buf[CHUNK];
	size_t bytes = 0, len;
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
			n = recv(fd, buf + len, CHUNK - len, 0);
			if (n < 0)
				error(1, errno, "recv");
			if (!n)
				break;
			if (!first)
				first = now_ns();
		}
		if (len)
			h = hash(h, buf, len);
		bytes += len;
	} while (len == CHUNK);
	print_arrival(first);
	print_stream(bytes, h);
	return 0;
}

/* ADDR PORT LEN SEG: for ever, whatever happens, but leave the others some time
 * to run
 */
static int udp_flood(int argc, char **argv)
{
	static char buf[CHUNK];
	size_t len;
	int fd;

	if (argc != 4)
		return -1;
	len = parse_number(argv[2]);
	if (len > sizeof(buf))
		error(1, 0, "bad length");

	while (true) {
		struct sockaddr_storage ss;
		socklen_t slen = parse_address(argv[0], argv[1], &ss);

		/* connecting fails as long as there is no route */
		fd = socket(ss.ss_family, SOCK_DGRAM, 0);
		if (fd < 0)
			error(1, errno, "socket");
		set_opt(fd, SOL_UDP, UDP_SEGMENT, parse_number(argv[3]));
		if (!connect(fd, (struct sockaddr *)&ss, slen)) {
			while (send(fd, buf, len, 0) >= 0 ||
			       errno == ECONNREFUSED)
				usleep(100000);
		}
		close(fd);
		usleep(20000);
	}
}

/* ADDR PORT: for ever, with a new connection when one is lost */
static int tcp_flood(int argc, char **argv)
{
	static char buf[CHUNK];
	int fd;

	if (argc != 2)
		return -1;

	signal(SIGPIPE, SIG_IGN);
	while (true) {
		struct sockaddr_storage ss;
		socklen_t slen = parse_address(argv[0], argv[1], &ss);

		fd = socket(ss.ss_family, SOCK_STREAM, 0);
		if (fd < 0)
			error(1, errno, "socket");
		set_abort(fd);
		/* also of connect() */
		set_timeout(fd, SO_SNDTIMEO, CONNECT_SECS);
		if (opt.rate)
			set_opt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, opt.rate);
		if (!connect(fd, (struct sockaddr *)&ss, slen)) {
			while (send(fd, buf, sizeof(buf), 0) >= 0)
				;
		}
		close(fd);
		usleep(20000);
	}
}

/* ADDR PORT: take what floods send, TCP and UDP */
static int sink(int argc, char **argv)
{
	struct pollfd pfd[64] = { 0 };
	static char buf[CHUNK];
	size_t n = 2, i;
	int fd;

	if (argc != 2)
		return -1;

	pfd[0].fd = receiver(argv, SOCK_DGRAM);
	pfd[1].fd = receiver(argv, SOCK_STREAM);
	if (listen(pfd[1].fd, 16))
		error(1, errno, "listen");
	for (i = 0; i < sizeof(pfd) / sizeof(*pfd); i++)
		pfd[i].events = POLLIN;

	while (poll(pfd, n, -1) > 0) {
		if (pfd[0].revents)
			recv(pfd[0].fd, buf, sizeof(buf), MSG_DONTWAIT);
		for (i = n - 1; i > 1; i--) {
			if (pfd[i].revents &&
			    recv(pfd[i].fd, buf, sizeof(buf), 0) <= 0) {
				close(pfd[i].fd);
				pfd[i] = pfd[--n];
			}
		}
		if (!pfd[1].revents)
			continue;
		fd = accept(pfd[1].fd, NULL, NULL);
		if (fd < 0)
			continue;
		set_abort(fd);
		if (n < sizeof(pfd) / sizeof(*pfd))
			pfd[n++].fd = fd;
		else
			close(fd);
	}
	error(1, errno, "poll");
	return 1;
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
	{ "udp-flood", "ADDR PORT LEN SEG", udp_flood },
	{ "tcp-flood", "ADDR PORT", tcp_flood },
	{ "sink", "ADDR PORT", sink },
};

static void print_usage(void)
{
	size_t i;

	fprintf(stderr, "usage: ovpn-traffic [OPTION]... VERB ARG...\n");
	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		fprintf(stderr, "  %s %s\n", verbs[i].name, verbs[i].args);
	fprintf(stderr,
		"options of senders:\n"
		"  -m METHOD  copy, zerocopy, sendfile, splice or vmsplice\n"
		"  -f FILE    to be filled and sent by sendfile or splice\n"
		"  -p PRIO    SO_PRIORITY\n"
		"  -r BYTES   SO_MAX_PACING_RATE, per second\n"
		"  -x MS      SO_TXTIME, from now\n"
		"  -t         have sends timestamped, fail unless all are\n"
		"  -w         wait until the socket is charged for nothing\n"
		"options of receivers:\n"
		"  -e         print when the first and the last data came\n"
		"options of both:\n"
		"  -s         scribble on the data: there is no hash\n");
	exit(2);
}

static enum method find_method(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (!strcmp(name, methods[i]))
			return i;
	}
	error(1, 0, "unknown method %s", name);
	return METHOD_COPY;
}

int main(int argc, char **argv)
{
	int ret = -1, c;
	size_t i;

	while ((c = getopt(argc, argv, "+ef:m:p:r:stwx:")) != -1) {
		switch (c) {
		case 'e':
			opt.elapsed = true;
			break;
		case 'f':
			opt.file = optarg;
			break;
		case 'm':
			opt.method = find_method(optarg);
			break;
		case 'p':
			opt.prio = parse_number(optarg);
			break;
		case 'r':
			opt.rate = parse_number(optarg);
			break;
		case 's':
			opt.scribble = true;
			break;
		case 't':
			opt.tstamp = true;
			break;
		case 'w':
			opt.drain = true;
			break;
		case 'x':
			opt.delay_ms = parse_number(optarg);
			break;
		default:
			print_usage();
		}
	}

	for (i = 0; optind < argc && i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (!strcmp(argv[optind], verbs[i].name))
			ret = verbs[i].run(argc - optind - 1,
					   argv + optind + 1);
	}
	if (ret < 0)
		print_usage();
	return ret;
}
