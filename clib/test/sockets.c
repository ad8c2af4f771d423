/* Datagram sockets over RDMA, with the driver of check.sh: waiting for them. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <time.h>

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

void test_datagram_sockets(void)
{
	sleeps();
	wakes();
}
