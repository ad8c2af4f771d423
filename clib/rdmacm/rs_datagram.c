/*
 * Datagram sockets. Each has a UDP socket, through which two of them first tell each other the numbers of their QPs,
 * and a UD queue pair for each local address, which carries all datagrams after that.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs_datagram.h"

/* The header of messages sent by UDP, with or without data behind it. */
struct udp_header {
	uint32_t tag; /* tag and qpn are big endian, as addresses are */
	uint8_t version, op, length, none;
	uint32_t qpn;
	uint8_t addr[16]; /* the receiver's address, 4 or 16 bytes */
};

/* The header of datagrams sent by a QP: the sender's address. */
struct header {
	uint8_t version, length;
	uint16_t port; /* big endian */
	uint8_t addr[20]; /* 4 bytes, or a flow label and 16 bytes */
};

enum { TAG = 0x55555555, UDP_FIXED = 12, FIXED = 4, GRH = 40, SLOT = 4096 + GRH, SLOTS = 384, MOST_WAITING = 1024, FLOW = 4, RESOLVE_MS = 2000 };

struct sender {
	struct sender *next;
	struct svpi_endpoint local;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	bool armed; /* the next completion is told to the channel */
	struct ibv_mr *mr;
	uint8_t *memory; /* slots to receive into, followed by slots to send from */
	uint32_t free, at; /* of the slots to send from */
};

struct peer {
	struct peer *next;
	struct svpi_endpoint addr;
	struct sender *by;
	struct ibv_ah *ah;
	uint32_t qpn;
};

struct message {
	struct message *next;
	struct svpi_endpoint from;
	size_t len;
	uint8_t data[];
};

struct datagrams {
	int udp, domain;
	struct sender *senders;
	struct peer *peers;
	struct message *first, **last;
	uint32_t waiting, sleeping; /* messages; threads that sleep, or are about to */
	bool connected;
	struct svpi_endpoint to;
};

static bool same(const struct svpi_endpoint *a, const struct svpi_endpoint *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, 16);
}

static bool is_four(const struct svpi_endpoint *e)
{
	struct sockaddr_storage a;

	from_endpoint(e, &a);
	return a.ss_family == AF_INET;
}

static socklen_t size_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

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

static void end_sender(struct sender *q)
{
	if (q->id)
		rdma_destroy_qp(q->id);
	if (q->cq)
		ibv_destroy_cq(q->cq);
	if (q->events)
		ibv_destroy_comp_channel(q->events);
	if (q->mr)
		ibv_dereg_mr(q->mr);
	if (q->id)
		rdma_destroy_id(q->id);
	if (q->channel)
		rdma_destroy_event_channel(q->channel);
	free(q->memory);
	free(q);
}

void rs_datagram_close(struct rs *s)
{
	struct datagrams *d = s->datagrams;

	while (d->peers) {
		struct peer *p = d->peers;

		d->peers = p->next;
		if (p->ah)
			ibv_destroy_ah(p->ah);
		free(p);
	}
	while (d->senders) {
		struct sender *q = d->senders;

		d->senders = q->next;
		end_sender(q);
	}
	while (d->first) {
		struct message *m = d->first;

		d->first = m->next;
		free(m);
	}
	close(d->udp);
	close(s->fd);
	free(d);
}

static int post_receive(struct sender *q, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)q->memory + slot * SLOT, SLOT, q->mr->lkey };
	struct ibv_recv_wr w = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return q->id->qp->context->ops.post_recv(q->id->qp, &w, &bad);
}

static int open_queues(struct rs *s, struct sender *q)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1, .cap = { SLOTS, SLOTS, 1, 1, 0 } };
	struct epoll_event e = { .events = EPOLLIN };
	struct ibv_pd *pd = device_pd(q->id->verbs);

	q->events = ibv_create_comp_channel(q->id->verbs);
	if (!pd || !q->events)
		return errno;
	fcntl(q->events->fd, F_SETFL, fcntl(q->events->fd, F_GETFL) | O_NONBLOCK);
	q->cq = ibv_create_cq(q->id->verbs, 2 * SLOTS, q, q->events, 0);
	if (!q->cq)
		return errno;
	q->memory = calloc(2 * SLOTS, SLOT); /* memcheck does not see what the driver writes there */
	if (!q->memory)
		return ENOMEM;
	q->mr = ibv_reg_mr(pd, q->memory, 2 * SLOTS * SLOT, IBV_ACCESS_LOCAL_WRITE);
	a.send_cq = a.recv_cq = q->cq;
	if (!q->mr || rdma_create_qp(q->id, pd, &a) || epoll_ctl(s->fd, EPOLL_CTL_ADD, q->events->fd, &e))
		return errno;
	for (uint32_t i = 0; i < SLOTS; i++)
		post_receive(q, i);
	q->free = SLOTS;
	q->armed = true; /* somebody may sleep already */
	return q->cq->context->ops.req_notify_cq(q->cq, 0);
}

/* sender_at finds or creates the QP of a local address. */
static int sender_at(struct rs *s, const struct svpi_endpoint *local, struct sender **out)
{
	struct svpi_endpoint at = *local;
	struct sockaddr_storage a;
	struct sender *q;
	int error = 0;

	at.port = 0;
	for (q = s->datagrams->senders; q && !same(&q->local, &at); q = q->next)
		;
	*out = q;
	if (q)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return ENOMEM;
	q->local = at;
	from_endpoint(&at, &a);
	q->channel = rdma_create_event_channel();
	if (!q->channel || rdma_create_id(q->channel, &q->id, NULL, RDMA_PS_UDP) || rdma_bind_addr(q->id, (struct sockaddr *)&a))
		error = errno;
	if (!error)
		error = open_queues(s, q);
	if (error) {
		end_sender(q);
		return error;
	}
	q->next = s->datagrams->senders;
	*out = s->datagrams->senders = q;
	return 0;
}

/* chosen finds the adapter's address from which a destination is reached. */
static int chosen(const struct svpi_endpoint *to, struct svpi_endpoint *local)
{
	struct sockaddr_storage a;
	struct rdma_cm_id *id;
	int error = 0;

	from_endpoint(to, &a);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return errno;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, RESOLVE_MS))
		error = errno;
	else
		error = to_endpoint(&id->route.addr.src_addr, local);
	rdma_destroy_id(id);
	return error;
}

/* local_for returns the address to send from: the one to which the socket is bound, or the adapter's. A UDP socket
 * that is not bound is bound to it, so that both ways of sending show the same address. */
static int local_for(const struct datagrams *d, const struct svpi_endpoint *to, struct svpi_endpoint *local)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof(a);
	uint16_t port = 0;
	int error;

	if (getsockname(d->udp, (struct sockaddr *)&a, &n) == 0 && !to_endpoint((struct sockaddr *)&a, local)) {
		if (!endpoint_is_any(local))
			return 0;
		port = local->port;
	}
	error = chosen(to, local);
	local->port = 0;
	if (error || port)
		return error;
	from_endpoint(local, &a);
	return bind(d->udp, (struct sockaddr *)&a, size_of(&a)) ? errno : 0;
}

static int peer_at(struct rs *s, const struct svpi_endpoint *addr, const struct svpi_endpoint *local, struct peer **out)
{
	struct svpi_endpoint mine;
	struct peer *p;
	int error;

	for (p = s->datagrams->peers; p && !same(&p->addr, addr); p = p->next)
		;
	*out = p;
	if (p)
		return 0;
	error = local ? 0 : local_for(s->datagrams, addr, &mine);
	p = error ? NULL : calloc(1, sizeof(*p));
	if (!p)
		return error ? error : ENOMEM;
	p->addr = *addr;
	error = sender_at(s, local ? local : &mine, &p->by);
	if (error) {
		free(p);
		return error;
	}
	p->next = s->datagrams->peers;
	*out = s->datagrams->peers = p;
	return 0;
}

static void keep_message(struct datagrams *d, const struct svpi_endpoint *from, const void *data, size_t len)
{
	struct message *m;

	if (d->waiting >= MOST_WAITING || (d->connected && !same(from, &d->to)))
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

/* from_address makes a message leave from the QP's address, even if the UDP socket is bound to all: the peer
 * identifies the sender by it. */
static void from_address(struct msghdr *m, const struct svpi_endpoint *local, bool four)
{
	struct in_pktinfo v4 = { 0 };
	struct in6_pktinfo v6 = { 0 };
	size_t n = four ? sizeof(v4) : sizeof(v6);
	struct cmsghdr *c;

	memcpy(&v4.ipi_spec_dst, local->addr + 12, 4);
	memcpy(&v6.ipi6_addr, local->addr, 16);
	m->msg_controllen = CMSG_SPACE(n);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = four ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = four ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), four ? (void *)&v4 : (void *)&v6, n);
}

/* send_udp sends by UDP, together with what the peer needs to answer by QP. */
static int send_udp(struct rs *s, const struct peer *p, enum rs_op op, const struct iovec *data, size_t len)
{
	bool four = is_four(&p->addr);
	struct udp_header h = { .tag = htobe32(TAG), .version = four ? 4 : 6, .op = (uint8_t)op,
				.length = UDP_FIXED + (four ? 4 : 16), .qpn = htobe32(p->by->id->qp->qp_num) };
	struct sockaddr_storage to;
	struct iovec v[2] = { { &h, h.length }, { data ? data->iov_base : NULL, len } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct msghdr m = { .msg_name = &to, .msg_iov = v, .msg_iovlen = 2, .msg_control = control };

	from_address(&m, &p->by->local, four);
	memcpy(h.addr, four ? p->addr.addr + 12 : p->addr.addr, four ? 4 : 16);
	from_endpoint(&p->addr, &to);
	m.msg_namelen = size_of(&to);
	return sendmsg(s->datagrams->udp, &m, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* learn records the number of a peer's QP. */
static void learn(struct peer *p, uint32_t qpn)
{
	struct ibv_ah_attr a;

	if (p->ah && p->qpn == qpn)
		return;
	if (!p->ah) {
		address_attr(to_id(p->by->id), p->addr.addr, &a);
		p->ah = ibv_create_ah(p->by->id->qp->pd, &a);
	}
	p->qpn = qpn;
}

/* from_udp handles one message from the UDP socket; false: there is none. */
static bool from_udp(struct rs *s)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	uint8_t buffer[65536];
	struct udp_header h;
	struct sockaddr_storage a;
	struct svpi_endpoint from, mine = { 0 };
	socklen_t alen = sizeof(a);
	struct peer *p;
	ssize_t n = recvfrom(s->datagrams->udp, buffer, sizeof(buffer), 0, (struct sockaddr *)&a, &alen);

	if (n < 0)
		return false;
	memset(&h, 0, sizeof(h));
	memcpy(&h, buffer, (size_t)n < sizeof(h) ? (size_t)n : sizeof(h));
	if (h.tag != htobe32(TAG) || (h.version != 4 && h.version != 6) || h.length != UDP_FIXED + (h.version == 4 ? 4 : 16) ||
	    n < h.length || to_endpoint((struct sockaddr *)&a, &from))
		return true; /* not this protocol */
	memcpy(mine.addr, h.version == 4 ? mapped : h.addr, 12);
	memcpy(mine.addr + 12, h.version == 4 ? h.addr : h.addr + 12, 4);
	if (peer_at(s, &from, h.op == RS_DATA ? &mine : NULL, &p))
		return true;
	learn(p, be32toh(h.qpn) & 0xffffff);
	if (h.op == RS_DATA) {
		keep_message(s->datagrams, &from, buffer + h.length, (size_t)n - h.length);
		send_udp(s, p, RS_CONTROL, NULL, 0);
	}
	return true;
}

static void from_slot(struct rs *s, const uint8_t *slot, uint32_t len)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	struct svpi_endpoint from = { 0 };
	struct header h;
	bool four;

	if (len < GRH + FIXED + 4)
		return;
	memset(&h, 0, sizeof(h));
	memcpy(&h, slot + GRH, len - GRH < sizeof(h) ? len - GRH : sizeof(h));
	four = h.version == 4;
	if ((!four && h.version != 6) || h.length != FIXED + (four ? 4 : 20) || len < (uint32_t)GRH + h.length)
		return;
	from.port = be16toh(h.port);
	memcpy(from.addr, four ? mapped : h.addr + FLOW, 12);
	memcpy(from.addr + 12, four ? h.addr : h.addr + FLOW + 12, 4);
	keep_message(s->datagrams, &from, slot + GRH + h.length, len - GRH - h.length);
}

/* take_event takes the event of a completion. A queue is armed only while somebody sleeps: an event costs the driver
 * and the program a call of the system each. */
static void take_event(struct sender *q, bool again)
{
	struct ibv_cq *cq;
	void *context;

	if (!q->armed || ibv_get_cq_event(q->events, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	q->armed = again && !cq->context->ops.req_notify_cq(cq, 0);
}

/* rs_datagram_progress handles everything that has arrived. */
void rs_datagram_progress(struct rs *s)
{
	while (s->datagrams->waiting < MOST_WAITING && from_udp(s))
		;
	for (struct sender *q = s->datagrams->senders; q; q = q->next) {
		struct ibv_wc wc;

		take_event(q, s->datagrams->sleeping > 0);
		while (q->cq->context->ops.poll_cq(q->cq, 1, &wc) > 0) {
			if (wc.wr_id >= SLOTS) {
				q->free++;
				continue;
			}
			if (!wc.status)
				from_slot(s, q->memory + wc.wr_id * SLOT, wc.byte_len);
			post_receive(q, (uint32_t)wc.wr_id);
		}
	}
}

static bool room_to_send(struct rs *s)
{
	for (struct sender *q = s->datagrams->senders; q; q = q->next)
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
	for (struct sender *q = s->datagrams->senders; q; q = q->next) {
		if (!q->armed) {
			q->armed = !q->cq->context->ops.req_notify_cq(q->cq, 0);
			again |= q->armed;
		}
	}
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
		error = poll(&p, 1, RS_LOOK_MS) < 0 ? errno : 0;
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
		if (looks < RS_LOOKS) {
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

static int send_by_qp(struct rs *s, struct peer *p, const struct iovec *v)
{
	struct sender *q = p->by;
	uint32_t slot = SLOTS + q->at;
	uint8_t *out = q->memory + slot * SLOT;
	bool four = is_four(&q->local);
	struct header h = { .version = four ? 4 : 6, .length = FIXED + (four ? 4 : 20) };
	struct ibv_sge sge = { (uintptr_t)out, h.length + (uint32_t)v->iov_len, q->mr->lkey };
	struct ibv_send_wr w = { .wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	if (getsockname(s->datagrams->udp, (struct sockaddr *)&a, &n))
		return errno;
	h.port = a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port : ((struct sockaddr_in6 *)&a)->sin6_port;
	memcpy(four ? h.addr : h.addr + FLOW, four ? q->local.addr + 12 : q->local.addr, four ? 4 : 16);
	memcpy(out, &h, h.length);
	memcpy(out + h.length, v->iov_base, v->iov_len);
	w.wr.ud.ah = p->ah;
	w.wr.ud.remote_qpn = p->qpn;
	w.wr.ud.remote_qkey = RDMA_UDP_QKEY;
	q->at = (q->at + 1) % SLOTS;
	q->free--;
	return q->id->qp->context->ops.post_send(q->id->qp, &w, &bad);
}

enum { MOST_BYTES = 4096 - 24 };

ssize_t rs_datagram_send(struct rs *s, const void *buf, size_t len, int flags, const struct sockaddr *to)
{
	struct iovec v = { (void *)buf, len };
	struct svpi_endpoint at = s->datagrams->to;
	struct peer *p = NULL;
	int error = 0;

	if (to)
		error = to_endpoint(to, &at);
	else if (!s->datagrams->connected)
		error = EDESTADDRREQ;
	if (!error && len > MOST_BYTES)
		error = EMSGSIZE;
	if (!error)
		error = peer_at(s, &at, NULL, &p);
	if (!error)
		error = wait_until(s, false, s->nonblock || flags & MSG_DONTWAIT);
	if (!error)
		error = p->ah ? send_by_qp(s, p, &v) : send_udp(s, p, RS_DATA, &v, len);
	return error ? result(error) : (ssize_t)len;
}

ssize_t rs_datagram_receive(struct rs *s, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *from_len)
{
	struct datagrams *d = s->datagrams;
	struct sockaddr_storage a;
	struct message *m;
	int error = wait_until(s, true, s->nonblock || flags & MSG_DONTWAIT);

	if (error)
		return result(error);
	m = d->first;
	if (len > m->len)
		len = m->len;
	memcpy(buf, m->data, len);
	if (from && from_len) {
		from_endpoint(&m->from, &a);
		memcpy(from, &a, *from_len < size_of(&a) ? *from_len : size_of(&a));
		*from_len = size_of(&a);
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
