/* The queue pairs of datagram sockets: a UD queue pair for each local address, and the datagrams that it carries. */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "rs_datagram_state.h"

/* The header of datagrams sent by a QP: the sender's address. */
struct header {
	uint8_t version, length;
	uint16_t port; /* big endian */
	uint8_t addr[20]; /* 4 bytes, or a flow label and 16 bytes */
};

enum { FIXED = 4, GRH = 40, SLOT = 4096 + GRH, SLOTS = 384, FLOW = 4 };

void datagram_qp_end(struct datagram_qp *q)
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
	if (q->memory)
		rs_memory_put(q->memory);
	free(q);
}

static int post_receive(struct datagram_qp *q, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)q->memory + slot * SLOT, SLOT, q->mr->lkey };
	struct ibv_recv_wr w = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return q->id->qp->context->ops.post_recv(q->id->qp, &w, &bad);
}

static int open_queues(struct rs *s, struct datagram_qp *q)
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
	q->memory = rs_memory_get(2 * SLOTS * SLOT);
	if (!q->memory)
		return errno;
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

int datagram_qp_at(struct rs *s, const struct svpi_endpoint *local, struct datagram_qp **out)
{
	struct svpi_endpoint at = *local;
	struct sockaddr_storage a;
	struct datagram_qp *q;
	int error = 0;

	at.port = 0;
	for (q = s->datagrams->qps; q && !endpoint_same(&q->local, &at); q = q->next)
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
		datagram_qp_end(q);
		return error;
	}
	q->next = s->datagrams->qps;
	*out = s->datagrams->qps = q;
	return 0;
}

static void from_slot(struct rs *s, const uint8_t *slot, uint32_t len)
{
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
	endpoint_set_addr(&from, four, four ? h.addr : h.addr + FLOW);
	datagram_keep(s->datagrams, &from, slot + GRH + h.length, len - GRH - h.length);
}

/* take_event takes the event of a completion. A queue is armed only while somebody sleeps: an event costs the driver
 * and the program a call of the system each. */
static void take_event(struct datagram_qp *q, bool again)
{
	struct ibv_cq *cq;
	void *context;

	if (!q->armed || ibv_get_cq_event(q->events, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	q->armed = again && !cq->context->ops.req_notify_cq(cq, 0);
}

void datagram_qp_poll(struct rs *s, struct datagram_qp *q)
{
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

bool datagram_qp_arm(struct datagram_qp *q)
{
	if (q->armed)
		return false;
	q->armed = !q->cq->context->ops.req_notify_cq(q->cq, 0);
	return q->armed;
}

int datagram_qp_send(struct rs *s, struct datagram_peer *p, const struct iovec *v)
{
	struct datagram_qp *q = p->by;
	uint32_t slot = SLOTS + q->at;
	uint8_t *out = q->memory + slot * SLOT;
	bool four = endpoint_is_four(&q->local);
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
	int error = q->id->qp->context->ops.post_send(q->id->qp, &w, &bad);
	if (error)
		return error; // no completion will give the slot back
	q->at = (q->at + 1) % SLOTS;
	q->free--;
	return 0;
}
