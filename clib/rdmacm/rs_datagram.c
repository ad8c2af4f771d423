/*
 * Datagram sockets. Each has a UDP socket, through which two of them first tell each other the numbers of their QPs,
 * and a UD queue pair for each local address, which carries all datagrams after that.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs_datagram.h"
#include "rs_datagram_state.h"

enum { MOST_WAITING = 1024, MOST_BYTES = 4096 - 24 };

int rs_datagram_open(int domain, struct datagrams **out)
{
	struct datagrams *d = calloc(1, sizeof(*d));
	struct epoll_event e = { .events = EPOLLIN };
	int fd;

	if (!d)
		return -1;
	d->domain = domain;
	d->last = &d->first;
	d->udp = socket(domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	fd = d->udp < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, d->udp, &e)) {
		int error = errno;

		if (d->udp >= 0)
			close(d->udp);
		if (fd >= 0)
			close(fd);
		free(d);
		errno = error;
		return -1;
	}
	*out = d;
	return fd;
}

void rs_datagram_close(struct rs *s)
{
	struct datagrams *d = s->datagrams;

	while (d->peers) {
		struct datagram_peer *p = d->peers;

		d->peers = p->next;
		datagram_peer_end(p);
	}
	while (d->qps) {
		struct datagram_qp *q = d->qps;

		d->qps = q->next;
		datagram_qp_end(q);
	}
	while (d->first) {
		struct datagram *m = d->first;

		d->first = m->next;
		free(m);
	}
	close(d->udp);
	close(s->fd);
	free(d);
}

void datagram_keep(struct datagrams *d, const struct svpi_endpoint *from, const void *data, size_t len)
{
	struct datagram *m;

	if (d->waiting >= MOST_WAITING || (d->connected && !endpoint_same(from, &d->to)))
		return; /* datagrams may be lost */
	m = malloc(sizeof(*m) + len);
	if (!m)
		return;
	m->next = NULL;
	m->from = *from;
	m->len = len;
	memcpy(m->data, data, len);
	*d->last = m;
	d->last = &m->next;
	d->waiting++;
}

/* rs_datagram_progress handles everything that has arrived. */
void rs_datagram_progress(struct rs *s)
{
	while (s->datagrams->waiting < MOST_WAITING && datagram_udp_receive(s))
		;
	for (struct datagram_qp *q = s->datagrams->qps; q; q = q->next)
		datagram_qp_poll(s, q);
}

static bool room_to_send(struct rs *s)
{
	for (struct datagram_qp *q = s->datagrams->qps; q; q = q->next)
		if (q->free == 0)
			return false;
	return true;
}

short rs_datagram_ready(struct rs *s, short events)
{
	rs_datagram_progress(s);
	return (short)((s->datagrams->first ? events & POLLIN : 0) | (room_to_send(s) ? events & POLLOUT : 0));
}

/* rs_datagram_sleep: what arrives from now on wakes those who sleep on the descriptor. True: something may have arrived
 * before, so look once more. */
bool rs_datagram_sleep(struct rs *s)
{
	bool again = false;

	s->datagrams->sleeping++;
	for (struct datagram_qp *q = s->datagrams->qps; q; q = q->next)
		again |= datagram_qp_arm(q);
	return again;
}

/* rs_datagram_wake is the end of that sleep. The socket may be another one by then, with the same number. */
void rs_datagram_wake(struct rs *s)
{
	if (s->datagrams->sleeping)
		s->datagrams->sleeping--;
}

/* sleep_once waits for the descriptor, unless something may have arrived. */
static int sleep_once(struct rs *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	int error = 0;

	if (!rs_datagram_sleep(s)) {
		pthread_mutex_unlock(&s->lock);
		error = poll(&p, 1, SVPI_SOCKET_SLICE_MS) < 0 ? errno : 0;
		pthread_mutex_lock(&s->lock);
	}
	rs_datagram_wake(s);
	return error;
}

/* wait_until waits for a datagram, or for a free slot. */
static int wait_until(struct rs *s, bool for_data, bool nonblock)
{
	for (int looks = 0;; looks++) {
		int error = 0;

		rs_datagram_progress(s);
		if (for_data ? s->datagrams->first != NULL : room_to_send(s))
			return 0;
		if (s->ending)
			return EBADF;
		if (nonblock)
			return EAGAIN;
		if (looks < SVPI_SOCKET_LOOKS) {
			pthread_mutex_unlock(&s->lock);
			sched_yield();
			pthread_mutex_lock(&s->lock);
		} else {
			error = sleep_once(s);
		}
		if (error)
			return error;
	}
}

ssize_t rs_datagram_send(struct rs *s, const void *buf, size_t len, int flags, const struct sockaddr *to)
{
	struct iovec v = { (void *)buf, len };
	struct svpi_endpoint at = s->datagrams->to;
	struct datagram_peer *p = NULL;
	int error = 0;

	if (to)
		error = to_endpoint(to, &at);
	else if (!s->datagrams->connected)
		error = EDESTADDRREQ;
	if (!error && len > MOST_BYTES)
		error = EMSGSIZE;
	if (!error)
		error = datagram_peer_at(s, &at, NULL, &p);
	if (!error)
		error = wait_until(s, false, s->nonblock || flags & MSG_DONTWAIT);
	if (!error)
		error = p->ah ? datagram_qp_send(s, p, &v) : datagram_udp_send(s, p, RS_DATA, &v);
	return error ? result(error) : (ssize_t)len;
}

ssize_t rs_datagram_receive(struct rs *s, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *from_len)
{
	struct datagrams *d = s->datagrams;
	struct sockaddr_storage a;
	struct datagram *m;
	int error = wait_until(s, true, s->nonblock || flags & MSG_DONTWAIT);

	if (error)
		return result(error);
	m = d->first;
	if (len > m->len)
		len = m->len;
	memcpy(buf, m->data, len);
	if (from && from_len) {
		from_endpoint(&m->from, &a);
		memcpy(from, &a, *from_len < sockaddr_size(&a) ? *from_len : sockaddr_size(&a));
		*from_len = sockaddr_size(&a);
	}
	if (flags & MSG_PEEK)
		return (ssize_t)len;
	d->first = m->next;
	if (!d->first)
		d->last = &d->first;
	d->waiting--;
	free(m);
	return (ssize_t)len;
}

int rs_datagram_bind(struct rs *s, const struct sockaddr *addr, socklen_t len)
{
	return bind(s->datagrams->udp, addr, len) ? errno : 0;
}

int rs_datagram_connect(struct rs *s, const struct sockaddr *addr)
{
	int error = to_endpoint(addr, &s->datagrams->to);

	s->datagrams->connected = !error;
	return error;
}

int rs_datagram_name(struct rs *s, bool peer, struct sockaddr_storage *a)
{
	socklen_t n = sizeof(*a);

	if (!peer)
		return getsockname(s->datagrams->udp, (struct sockaddr *)a, &n) ? errno : 0;
	if (!s->datagrams->connected)
		return ENOTCONN;
	from_endpoint(&s->datagrams->to, a);
	return 0;
}
