/* Sending and receiving bytes. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "rs_datagram.h"

/* A position in a program's buffers. */
struct cursor {
	const struct iovec *v;
	size_t count, at;
};

static size_t left(const struct cursor *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->v[i].iov_len;
	return n - c->at;
}

/* move copies between a program's buffers and a block, and advances the position. */
static void move(struct cursor *c, uint8_t *block, size_t n, bool out)
{
	while (n > 0) {
		size_t k = c->v->iov_len - c->at;
		uint8_t *p = (uint8_t *)c->v->iov_base + c->at;

		if (k > n)
			k = n;
		if (out)
			memcpy(block, p, k);
		else
			memcpy(p, block, k);
		block += k;
		n -= k;
		c->at += k;
		while (c->count > 0 && c->at == c->v->iov_len) {
			c->v++;
			c->count--;
			c->at = 0;
		}
	}
}

static bool may_send(const struct rs *s) { return rs_can_send(s) || !s->writable; }

static uint32_t least(size_t a, uint32_t b) { return a < b ? (uint32_t)a : b; }

/* send_some sends one message through the next bytes of the send buffer, which become free in the order of sending.
 * */
static int send_some(struct rs *s, struct cursor *c, size_t want)
{
	struct rs_sge *t = &s->targets[s->target];
	uint32_t n = least(want, s->send_free), first;
	struct ibv_sge sge[2];

	n = least(n, t->length);
	n = least(n, RS_MAX_TRANSFER);
	first = least(n, s->send_bytes - s->send_at);
	move(c, s->send_buffer + s->send_at, first, true);
	sge[0] = (struct ibv_sge){ (uintptr_t)s->send_buffer + s->send_at, first, s->send_mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)s->send_buffer, n - first, s->send_mr->lkey };
	if (n > first)
		move(c, s->send_buffer, n - first, true);
	s->send_at = (s->send_at + n) % s->send_bytes;
	s->send_free -= n;
	s->sent++;
	uint64_t addr = t->addr;
	uint32_t key = t->key;

	t->addr += n;
	t->length -= n;
	if (t->length == 0 && ++s->target == RS_TARGETS)
		s->target = 0;
	return rs_post(s, rs_message(RS_DATA, n), sge, n > first ? 2 : 1, addr, key, n <= s->inline_size);
}

static int not_writable(const struct rs *s)
{
	if (s->state == RS_FAILED && s->error)
		return s->error;
	return s->state == RS_CONNECTED || s->state == RS_CLOSED || s->state == RS_FAILED ? ECONNRESET : ENOTCONN;
}

/* One transfer of a connected socket. */
struct transfer {
	struct cursor at;
	size_t all, done;
	bool now; /* do not wait */
	int error;
};

static struct transfer begin(struct rs *s, const struct iovec *v, size_t count, int flags)
{
	struct transfer t = { .at = { v, count, 0 }, .now = s->nonblock || flags & MSG_DONTWAIT };

	t.all = left(&t.at);
	t.error = rs_opened(s, t.now);
	while (t.at.count > 0 && t.at.v->iov_len == 0) {
		t.at.v++;
		t.at.count--;
	}
	return t;
}

static ssize_t outcome(const struct transfer *t) { return t->done > 0 ? (ssize_t)t->done : result(t->error); }

static ssize_t send_all(struct rs *s, const struct iovec *v, size_t count, int flags)
{
	struct transfer t = begin(s, v, count, flags);

	while (t.done < t.all && !t.error) {
		if (!may_send(s))
			t.error = rs_await(s, may_send, t.now);
		if (!t.error && !s->writable)
			t.error = not_writable(s);
		if (!t.error) {
			size_t before = left(&t.at);

			t.error = send_some(s, &t.at, before);
			if (!t.error)
				t.done += before - left(&t.at);
		}
	}
	return outcome(&t);
}

static ssize_t transmit(int fd, const struct iovec *v, size_t count, int flags)
{
	struct rs *s = rs_enter(fd);
	ssize_t n;

	if (!s)
		return -1;
	if (!s->datagrams)
		n = send_all(s, v, count, flags);
	else
		n = count == 1 ? rs_datagram_send(s, v->iov_base, v->iov_len, flags, NULL) : result(EOPNOTSUPP);
	rs_leave(s);
	return n;
}

static bool has_data(const struct rs *s) { return s->head != s->tail; }
static bool may_receive(const struct rs *s) { return has_data(s) || !s->readable; }

/* take reads what has arrived; with peek without giving it back to the peer. */
static size_t take(struct rs *s, struct cursor *c, size_t want, bool peek)
{
	uint32_t at = s->recv_at, head = s->head;
	size_t done = 0;

	while (done < want && head != s->tail) {
		uint32_t n = least(want - done, s->messages[head]), first = least(n, s->recv_bytes - at);

		move(c, s->recv_buffer + at, first, false);
		if (n > first)
			move(c, s->recv_buffer, n - first, false);
		at = (at + n) % s->recv_bytes;
		done += n;
		if (peek && n < s->messages[head])
			break;
		if (!peek) {
			s->messages[head] -= n;
			if (s->messages[head] > 0)
				break;
			s->taken++;
		}
		if (++head == s->recv_size + 1)
			head = 0;
	}
	if (!peek) {
		s->head = head;
		s->recv_at = at;
		s->read_bytes += (uint32_t)done;
	}
	return done;
}

static ssize_t receive_some(struct rs *s, const struct iovec *v, size_t count, int flags)
{
	struct transfer t = begin(s, v, count, flags);

	while (t.done < t.all && !t.error) {
		if (!has_data(s))
			t.error = rs_await(s, may_receive, t.now);
		if (t.error)
			break;
		if (!has_data(s)) { /* end of stream */
			if (s->state == RS_FAILED && s->error)
				t.error = s->error;
			break;
		}
		t.done += take(s, &t.at, t.all - t.done, flags & MSG_PEEK);
		rs_credit(s);
		if (!(flags & MSG_WAITALL) || flags & MSG_PEEK)
			break;
	}
	return outcome(&t);
}

static ssize_t receive(int fd, const struct iovec *v, size_t count, int flags)
{
	struct rs *s = rs_enter(fd);
	ssize_t n;

	if (!s)
		return -1;
	if (!s->datagrams)
		n = receive_some(s, v, count, flags);
	else
		n = count == 1 ? rs_datagram_receive(s, v->iov_base, v->iov_len, flags, NULL, NULL) : result(EOPNOTSUPP);
	rs_leave(s);
	return n;
}

ssize_t rsend(int fd, const void *buf, size_t len, int flags);
EXPORT ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	struct iovec v = { (void *)buf, len };

	return transmit(fd, &v, 1, flags);
}

ssize_t rrecv(int fd, void *buf, size_t len, int flags);
EXPORT ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	struct iovec v = { buf, len };

	return receive(fd, &v, 1, flags);
}

ssize_t rwrite(int fd, const void *buf, size_t len);
EXPORT ssize_t rwrite(int fd, const void *buf, size_t len) { return rsend(fd, buf, len, 0); }

ssize_t rread(int fd, void *buf, size_t len);
EXPORT ssize_t rread(int fd, void *buf, size_t len) { return rrecv(fd, buf, len, 0); }

ssize_t rwritev(int fd, const struct iovec *v, int count);
EXPORT ssize_t rwritev(int fd, const struct iovec *v, int count)
{
	return count < 0 ? result(EINVAL) : transmit(fd, v, (size_t)count, 0);
}

ssize_t rreadv(int fd, const struct iovec *v, int count);
EXPORT ssize_t rreadv(int fd, const struct iovec *v, int count)
{
	return count < 0 ? result(EINVAL) : receive(fd, v, (size_t)count, 0);
}

/* Connected sockets send to their peer whatever address is given, as TCP sockets do. */
ssize_t rsendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t to_len);
EXPORT ssize_t rsendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
	struct rs *s = to && to_len ? rs_enter(fd) : NULL;
	bool datagrams = s && s->datagrams;
	ssize_t n = datagrams ? rs_datagram_send(s, buf, len, flags, to) : 0;

	if (s)
		rs_leave(s);
	return datagrams ? n : rsend(fd, buf, len, flags);
}

int rgetpeername(int, struct sockaddr *, socklen_t *);

ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *from_len);
EXPORT ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *from_len)
{
	struct rs *s = rs_enter(fd);
	bool datagrams = s && s->datagrams;
	ssize_t n = datagrams ? rs_datagram_receive(s, buf, len, flags, from, from_len) : 0;

	if (s)
		rs_leave(s);
	if (datagrams)
		return n;
	n = rrecv(fd, buf, len, flags);
	if (n >= 0 && from && from_len)
		rgetpeername(fd, from, from_len);
	return n;
}

ssize_t rsendmsg(int fd, const struct msghdr *m, int flags);
EXPORT ssize_t rsendmsg(int fd, const struct msghdr *m, int flags)
{
	return m->msg_controllen ? result(EOPNOTSUPP) : transmit(fd, m->msg_iov, m->msg_iovlen, flags);
}

ssize_t rrecvmsg(int fd, struct msghdr *m, int flags);
EXPORT ssize_t rrecvmsg(int fd, struct msghdr *m, int flags)
{
	m->msg_controllen = 0;
	m->msg_flags = 0;
	return receive(fd, m->msg_iov, m->msg_iovlen, flags);
}
