/* The stream: frames and the descriptors that come with them. */
#define _GNU_SOURCE
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FRAME = 1 << 20, MAX_FDS = 16 };

unsigned svpi_look_ms = 5000;

void svpi_stream_set_limits(int fd)
{
	struct timeval look = { .tv_sec = svpi_look_ms / 1000, .tv_usec = svpi_look_ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look));
}

uint64_t svpi_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* silence counts the looks in which nothing has moved. A signal interrupts a system call, too, and starts its time
 * limit anew. */
struct silence {
	uint64_t since; /* when the first signal of this look came, 0: none came */
	int looks;
};

/* passed tells whether a whole look has passed in waiting; error is why the system call failed. */
static bool passed(struct silence *q, int error)
{
	uint64_t now;

	if (error != EINTR) {
		q->since = 0;
		return true;
	}
	now = svpi_now_ms();
	if (!q->since)
		q->since = now;
	if (now - q->since < svpi_look_ms)
		return false;
	q->since = now;
	return true;
}

int svpi_frame_send(struct svpi *s, uint16_t op, uint64_t id, const void *body, size_t len)
{
	struct svpi_frame h = { .length = (uint32_t)(SVPI_FRAME_HEADER + len), .op = op, .id = id };
	struct iovec v[2] = { { &h, SVPI_FRAME_HEADER }, { (void *)body, len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	struct silence q = { 0 };
	int error = 0;

	error = svpi_turn_lock(&s->turn->sends, &s->turn->sending, true);
	if (error)
		return error;
	while (m.msg_iovlen > 0) {
		ssize_t n = sendmsg(s->fd, &m, MSG_NOSIGNAL);

		if (n < 0) {
			error = errno;
			if (error == EINTR || error == EAGAIN) {
				q.looks += passed(&q, error);
				error = q.looks > SVPI_PATIENCE_LOOKS ? ETIMEDOUT : 0;
			}
			if (error)
				break;
			continue;
		}
		q.looks = 0;
		s->turn->sending = true;
		while (m.msg_iovlen > 0 && (size_t)n >= m.msg_iov->iov_len) {
			n -= (ssize_t)m.msg_iov->iov_len;
			m.msg_iov++;
			m.msg_iovlen--;
		}
		if (m.msg_iovlen > 0) {
			m.msg_iov->iov_base = (uint8_t *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	s->turn->sending = error != 0 && s->turn->sending;
	pthread_mutex_unlock(&s->turn->sends);
	return error;
}

/* keep_fds keeps descriptors that came with a part of the stream. */
static int keep_fds(struct svpi *s, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (s->nfds + n > s->fdcap) {
			int *more = realloc(s->fds, sizeof(int) * (size_t)(s->nfds + n + 16));

			if (!more) {
				for (int i = 0; i < n; i++)
					close(((int *)CMSG_DATA(c))[i]);
				return ENOMEM;
			}
			s->fds = more;
			s->fdcap = s->nfds + n + 16;
		}
		memcpy(s->fds + s->nfds, CMSG_DATA(c), sizeof(int) * (size_t)n);
		s->nfds += n;
	}
	return 0;
}

int svpi_fd_take(struct svpi *s)
{
	int fd;

	if (s->nfds == 0)
		return -1;
	fd = s->fds[0];
	memmove(s->fds, s->fds + 1, sizeof(int) * (size_t)--s->nfds);
	return fd;
}

/* read_part reads n bytes of the stream; begun tells whether they continue a frame. It returns EAGAIN if nothing has
 * arrived and either the caller does not wait or a look has passed. After the first byte it waits for the rest,
 * because the driver sends whole frames. */
static int read_part(struct svpi *s, void *to, size_t n, bool wait, bool begun)
{
	struct silence q = { 0 };
	uint8_t *p = to;

	while (n > 0) {
		char control[CMSG_SPACE(sizeof(int) * MAX_FDS)];
		struct iovec v = { p, n };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));

		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return errno;
		if (got < 0) {
			if (!wait && errno == EAGAIN)
				return EAGAIN;
			if (wait && passed(&q, errno) && (!begun || ++q.looks > SVPI_PATIENCE_LOOKS))
				return begun ? ETIMEDOUT : EAGAIN;
			continue;
		}
		if (got == 0)
			return ECONNRESET;
		int error = keep_fds(s, &m);

		if (error)
			return error;
		s->turn->reading = true;
		p += got;
		n -= (size_t)got;
		q.looks = 0;
		wait = begun = true;
	}
	return 0;
}

/* svpi_frame_read reads a frame, its body into s->frame. Only one thread may call it at a time. */
int svpi_frame_read(struct svpi *s, struct svpi_frame *h, bool wait)
{
	int error = read_part(s, h, SVPI_FRAME_HEADER, wait, false);
	size_t len;

	if (error)
		return error;
	if (h->length < SVPI_FRAME_HEADER || h->length > MAX_FRAME)
		return EPROTO;
	len = h->length - SVPI_FRAME_HEADER;
	if (len > s->framecap) {
		uint8_t *more = realloc(s->frame, len);

		if (!more)
			return ENOMEM;
		s->frame = more;
		s->framecap = len;
	}
	if (len)
		error = read_part(s, s->frame, len, true, true);
	s->turn->reading = error != 0;
	return error;
}

void *svpi_map(int fd, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}
