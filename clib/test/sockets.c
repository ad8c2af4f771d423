/* Sockets over RDMA, with the driver of check.sh: waiting for datagrams, and the memory of streams. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bed.h"

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* bound is a datagram socket at an adapter's address, and what it is bound to. */
static int bound(int device, struct sockaddr_in *at)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[device]);
	socklen_t n = sizeof(*at);
	union ibv_gid g;
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

	MUST(c && fd >= 0 && !ibv_query_gid(c, 1, 0, &g));
	*at = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(&at->sin_addr, g.raw + 12, 4);
	ibv_close_device(c);
	ibv_free_device_list(list);
	MUST(!rbind(fd, (struct sockaddr *)at, n) && !rgetsockname(fd, (struct sockaddr *)at, &n));
	return fd;
}

/* poll(2): a time-out is never shorter than it was asked for. */
static void sleeps(void)
{
	struct sockaddr_in at;
	int fd = bound(0, &at);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < 400; i++) { /* some of them begin just before a millisecond ends */
		int64_t from = now_us();

		CHECK(rpoll(&p, 1, 1) == 0, ".");
		CHECK(now_us() - from >= 1000, ": %d us", (int)(now_us() - from));
	}
	rclose(fd);
}

enum { MESSAGES = 300, PATIENCE_MS = 10000 };

static void pause_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

/* echo answers, sleeping in rrecvfrom and in rpoll by turns. */
static void *echo(void *arg)
{
	int fd = *(int *)arg;
	uint32_t m;

	for (int i = 0; i < MESSAGES; i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct sockaddr_in from;
		socklen_t n = sizeof(from);

		if (i % 2 && rpoll(&p, 1, PATIENCE_MS) != 1)
			break;
		if (rrecvfrom(fd, &m, sizeof(m), 0, (struct sockaddr *)&from, &n) != sizeof(m))
			break;
		if (i % 3 == 0)
			pause_us(300); /* the other side sleeps by then */
		rsendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&from, n);
	}
	return NULL;
}

/* Whoever sleeps is woken by what arrives, however often the queue was looked at without sleeping in between. */
static void wakes(void)
{
	struct sockaddr_in here, there;
	int mine = bound(0, &here), theirs = bound(1, &there), answered = 0;
	pthread_t other;

	MUST(!pthread_create(&other, NULL, echo, &theirs));
	for (uint32_t i = 0, m; i < MESSAGES; i++, answered++) {
		struct pollfd p = { .fd = mine, .events = POLLIN };

		if (i % 5 == 0)
			pause_us(300);
		MUST(rsendto(mine, &i, sizeof(i), 0, (struct sockaddr *)&there, sizeof(there)) == sizeof(i));
		for (int looks = 0; looks < (int)i % 7; looks++)
			rpoll(&p, 1, 0);
		if (rpoll(&p, 1, PATIENCE_MS) != 1 || rrecv(mine, &m, sizeof(m), MSG_DONTWAIT) != sizeof(m) || m != i)
			break;
	}
	CHECK(answered == MESSAGES, ": %d", answered);
	MUST(!pthread_join(other, NULL));
	rclose(mine);
	rclose(theirs);
}

enum { STREAMS = 60 };

struct streams {
	int listener, mine[STREAMS], theirs[STREAMS];
};

static void *accepts(void *arg)
{
	struct streams *s = arg;

	for (int i = 0; i < STREAMS; i++)
		if (s->theirs[i] < 0)
			MUST((s->theirs[i] = raccept(s->listener, NULL, NULL)) >= 0);
	return NULL;
}

/* opens connects the sockets that are not open. */
static void opens(struct streams *s, struct sockaddr_in *at)
{
	pthread_t other;

	MUST(!pthread_create(&other, NULL, accepts, s));
	for (int i = 0; i < STREAMS; i++)
		if (s->mine[i] < 0) {
			s->mine[i] = rsocket(AF_INET, SOCK_STREAM, 0);
			MUST(s->mine[i] >= 0 && !rconnect(s->mine[i], (struct sockaddr *)at, sizeof(*at)));
		}
	MUST(!pthread_join(other, NULL));
}

static void fill(uint8_t *b, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(i * 7 + i / 251 + (size_t)seed * 31);
}

/* exchanges sends different data through all sockets before any of it is received. */
static void exchanges(struct streams *s, int seed)
{
	static uint8_t out[20000], in[sizeof(out)];

	for (int i = 0; i < STREAMS; i++) {
		fill(out, sizeof(out), seed + i);
		CHECK(rsend(s->mine[i], out, sizeof(out), 0) == (ssize_t)sizeof(out), ": socket %d", i);
	}
	for (int i = 0; i < STREAMS; i++) {
		fill(out, sizeof(out), seed + i);
		CHECK(rrecv(s->theirs[i], in, sizeof(in), MSG_WAITALL) == (ssize_t)sizeof(in), ": socket %d", i);
		CHECK(memcmp(in, out, sizeof(in)) == 0, ": data of socket %d", i);
	}
}

/* segments counts the segments that are mapped. One that is also the peer's, as in a program that talks to itself, is
 * mapped twice once the direct path needs it. */
static int segments(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long seen[4 * STREAMS], inode;
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		int i = 0;

		if (!strstr(line, "softvpi-segment") || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		while (i < n && seen[i] != inode)
			i++;
		if (i == n && n < 4 * STREAMS)
			seen[n++] = inode;
	}
	if (maps)
		fclose(maps);
	return n;
}

/* Stream sockets have their buffers in memory that the driver shares: many of them in few segments, which are used again
 * when sockets are closed, and are gone with the last. A child of a fork takes nothing from its parent's. */
static void shares(void)
{
	struct streams s = { .listener = rsocket(AF_INET, SOCK_STREAM, 0) };
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	int status, few, before = segments();
	pid_t child;

	rclose(bound(0, &at));
	at.sin_port = 0;
	MUST(s.listener >= 0 && !rbind(s.listener, (struct sockaddr *)&at, n) && !rlisten(s.listener, STREAMS));
	MUST(!rgetsockname(s.listener, (struct sockaddr *)&at, &n));
	memset(s.mine, -1, sizeof(s.mine));
	memset(s.theirs, -1, sizeof(s.theirs));
	opens(&s, &at);
	few = segments() - before;
	CHECK(few > 0 && few <= STREAMS / 2, ": %d segments for %d sockets", few, 2 * STREAMS);
	exchanges(&s, 1);
	for (int i = 0; i < STREAMS; i += 3) {
		rclose(s.mine[i]);
		rclose(s.theirs[i]);
		s.mine[i] = s.theirs[i] = -1;
	}
	opens(&s, &at);
	CHECK(segments() - before <= few + 2, ": %d segments, %d before", segments() - before, few); /* two threads take them */
	exchanges(&s, 2);
	child = fork();
	if (child == 0) { /* as a program that starts another one does */
		memset(malloc(1 << 20), 0xff, 1 << 20);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	exchanges(&s, 3);
	for (int i = 0; i < STREAMS; i++) {
		rclose(s.mine[i]);
		rclose(s.theirs[i]);
	}
	rclose(s.listener);
	CHECK(segments() == before, ": %d segments are left, %d before", segments(), before);
}

void test_stream_sockets(void) { shares(); }

void test_datagram_sockets(void)
{
	sleeps();
	wakes();
}

/* Kinds of sockets that librdmacm 44 refuses with ENOTSUP: librspreload leaves these to the system. */
void test_kinds_of_sockets(void)
{
	static const struct { int domain, type, protocol; } none[] = {
		{ AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0 }, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0 },
		{ AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0 }, { AF_INET, SOCK_STREAM, IPPROTO_UDP }, { AF_INET, SOCK_DGRAM, IPPROTO_TCP },
		{ AF_INET, SOCK_RAW, 0 }, { AF_UNIX, SOCK_STREAM, 0 },
	};
	int fd;

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		CHECK(rsocket(none[i].domain, none[i].type, none[i].protocol) == -1 && errno == ENOTSUP, ": %zu, errno %d", i, errno);
	MUST((fd = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP)) >= 0 && rclose(fd) == 0);
	MUST((fd = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP)) >= 0 && rclose(fd) == 0);
}
