/* Addresses and connections of sockets. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rs_datagram.h"

enum { RESOLVE_MS = 2000 };

static int hello_param(const struct rs *s, struct rs_hello *h, struct rdma_conn_param *p)
{
	rs_hello(s, h);
	memset(p, 0, sizeof(*p));
	p->private_data = h;
	p->private_data_len = sizeof(*h);
	p->flow_control = 1;
	p->retry_count = p->rnr_retry_count = 7;
	return 0;
}

static int send_request(struct rs *s)
{
	struct rdma_conn_param p;
	struct rs_hello h;
	int error = rs_setup(s);

	if (error)
		return error;
	hello_param(s, &h, &p);
	return rdma_connect(s->id, &p) ? errno : 0;
}

static void connected(struct rs *s)
{
	s->state = RS_CONNECTED;
	s->readable = s->writable = true;
}

static int cm_event(struct rs *s, const struct rdma_cm_event *e)
{
	int error = 0;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(s->id, RESOLVE_MS) ? errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return send_request(s);
	case RDMA_CM_EVENT_ESTABLISHED:
		if (s->state == RS_CONNECTING)
			error = rs_greeted(s, &e->param.conn);
		if (!error)
			connected(s);
		return error;
	case RDMA_CM_EVENT_REJECTED:
		return ECONNREFUSED;
	case RDMA_CM_EVENT_DISCONNECTED:
		rs_poll_queue(s); /* data that arrived before it */
		if (s->state == RS_CONNECTED)
			s->state = RS_CLOSED;
		s->readable = s->writable = false;
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENODEV;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return e->status < 0 ? -e->status : ECONNABORTED;
	default:
		return 0;
	}
}

void rs_cm_events(struct rs *s)
{
	struct rdma_cm_event *e;

	while (s->state != RS_LISTENING && rdma_get_cm_event(s->id->channel, &e) == 0) {
		int error = cm_event(s, e);

		rdma_ack_cm_event(e);
		if (error)
			rs_fail(s, error);
	}
}

int rbind(int fd, const struct sockaddr *addr, socklen_t len);
EXPORT int rbind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct rs *s = rs_enter(fd);
	struct sockaddr_storage a = { 0 };
	int error = 0;

	if (!s)
		return -1;
	memcpy(&a, addr, len < sizeof(a) ? len : sizeof(a));
	if (s->datagrams)
		error = rs_datagram_bind(s, addr, len);
	else if (s->state != RS_NEW)
		error = EINVAL;
	else if (rdma_bind_addr(s->id, (struct sockaddr *)&a))
		error = errno;
	else
		s->state = RS_BOUND;
	rs_leave(s);
	return result(error);
}

int rlisten(int fd, int backlog);
EXPORT int rlisten(int fd, int backlog)
{
	struct rs *s = rs_enter(fd);
	int error = 0;

	if (!s)
		return -1;
	if (s->datagrams) {
		error = EOPNOTSUPP;
	} else if (s->state != RS_LISTENING) {
		if (s->state != RS_NEW && s->state != RS_BOUND)
			error = EINVAL;
		else if (rdma_listen(s->id, backlog))
			error = errno;
		else
			s->state = RS_LISTENING;
	}
	rs_leave(s);
	return result(error);
}

static bool attempt_over(const struct rs *s) { return s->state != RS_CONNECTING && s->state != RS_ACCEPTING; }

/* rs_opened waits for an attempt to connect that is in progress. Returns 0 if there is, or was, a connection. */
int rs_opened(struct rs *s, bool nonblock)
{
	if (!attempt_over(s)) {
		rs_cm_events(s);
		int error = rs_await(s, attempt_over, nonblock);

		if (error)
			return error;
	}
	return s->state < RS_CONNECTED ? ENOTCONN : 0;
}

/* outcome returns the result of an attempt to connect. */
static int outcome(struct rs *s)
{
	int error = s->error;

	if (s->state != RS_FAILED)
		return 0;
	s->error = 0;
	return error ? error : ECONNREFUSED;
}

int rconnect(int fd, const struct sockaddr *addr, socklen_t len);
EXPORT int rconnect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct rs *s = rs_enter(fd);
	struct sockaddr_storage a = { 0 };
	int error = 0;

	if (!s)
		return -1;
	memcpy(&a, addr, len < sizeof(a) ? len : sizeof(a));
	if (s->datagrams) {
		error = rs_datagram_connect(s, (struct sockaddr *)&a);
		rs_leave(s);
		return result(error);
	}
	switch (s->state) {
	case RS_NEW:
	case RS_BOUND:
		if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&a, RESOLVE_MS))
			error = errno;
		else
			s->state = RS_CONNECTING;
		break;
	case RS_CONNECTING:
		rs_cm_events(s);
		if (s->state == RS_CONNECTING && s->nonblock)
			error = EALREADY;
		break;
	default:
		error = s->state == RS_FAILED ? outcome(s) : EISCONN;
	}
	if (!error) {
		error = rs_await(s, attempt_over, s->nonblock);
		error = error == EAGAIN ? EINPROGRESS : error ? error : outcome(s);
	}
	rs_leave(s);
	return result(error);
}

/* next_request waits for a connection request to a listener, and gives the request's id a channel of its own. */
static int next_request(struct rs *s, struct rdma_cm_event **e)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	for (;;) {
		if (rdma_get_cm_event(s->id->channel, e) == 0) {
			if ((*e)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
				return 0;
			rdma_ack_cm_event(*e);
			continue;
		}
		if (errno != EAGAIN || s->nonblock)
			return errno;
		if (s->ending)
			return EBADF;
		pthread_mutex_unlock(&s->lock);
		poll(&p, 1, SVPI_SOCKET_SLICE_MS);
		pthread_mutex_lock(&s->lock);
	}
}

static struct rs *adopt(const struct rs *l, struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rs *s = NULL;

	if (channel && rdma_migrate_id(id, channel) == 0)
		s = rs_new(id);
	if (!s) {
		int error = errno;

		rdma_destroy_id(id);
		if (channel)
			rdma_destroy_event_channel(channel);
		errno = error;
		return NULL;
	}
	s->send_size = l->send_size;
	s->recv_size = l->recv_size;
	s->send_bytes = l->send_bytes;
	s->recv_bytes = l->recv_bytes;
	s->inline_size = l->inline_size;
	s->iomap_size = l->iomap_size;
	return s;
}

/* answer_request accepts a request. Returns 0, or an errno; then the socket no longer exists. */
static int answer_request(struct rs *s, const struct rdma_conn_param *asked)
{
	struct rdma_conn_param p;
	struct rs_hello h;
	int error = rs_setup(s);

	if (!error)
		error = rs_greeted(s, asked);
	if (!error) {
		hello_param(s, &h, &p);
		s->state = RS_ACCEPTING;
		error = rdma_accept(s->id, &p) ? errno : 0;
	} else {
		rdma_reject(s->id, NULL, 0);
	}
	return error;
}

static int accept_one(struct rs *l, struct rs **out)
{
	struct rdma_cm_event *e;
	struct rs *s;
	int error = next_request(l, &e);

	if (error)
		return error;
	s = adopt(l, e->id);
	error = s ? answer_request(s, &e->param.conn) : errno;
	rdma_ack_cm_event(e);
	if (!error && !l->nonblock) {
		pthread_mutex_lock(&s->lock);
		error = rs_await(s, attempt_over, false);
		if (!error && s->state == RS_FAILED)
			error = ECONNABORTED;
		pthread_mutex_unlock(&s->lock);
	}
	if (error && s)
		rs_free(s);
	*out = s;
	return error;
}

static void copy_address(const struct sockaddr_storage *from, struct sockaddr *to, socklen_t *len)
{
	socklen_t full = sockaddr_size(from);

	if (!to || !len)
		return;
	memcpy(to, from, *len < full ? *len : full);
	*len = full;
}

int raccept(int fd, struct sockaddr *addr, socklen_t *len);
EXPORT int raccept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct rs *l = rs_enter(fd), *s;
	int error;

	if (!l)
		return -1;
	error = l->state == RS_LISTENING ? 0 : EINVAL;
	if (!error)
		error = accept_one(l, &s);
	rs_leave(l);
	if (error)
		return result(error);
	copy_address(&s->id->route.addr.dst_storage, addr, len);
	return s->fd;
}

static int name(int fd, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct rs *s = rs_enter(fd);
	struct sockaddr_storage a;
	int error = 0;

	if (!s)
		return -1;
	if (s->datagrams)
		error = rs_datagram_name(s, peer, &a);
	else
		a = peer ? s->id->route.addr.dst_storage : s->id->route.addr.src_storage;
	if (!error)
		copy_address(&a, addr, len);
	rs_leave(s);
	return result(error);
}

int rgetpeername(int fd, struct sockaddr *addr, socklen_t *len);
EXPORT int rgetpeername(int fd, struct sockaddr *addr, socklen_t *len) { return name(fd, true, addr, len); }

int rgetsockname(int fd, struct sockaddr *addr, socklen_t *len);
EXPORT int rgetsockname(int fd, struct sockaddr *addr, socklen_t *len) { return name(fd, false, addr, len); }
