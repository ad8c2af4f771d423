/* Messages between sockets: posting, completing and counting them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "rsocket.h"

void rs_fail(struct rs *s, int error)
{
	if (s->state != RS_FAILED && s->state != RS_CLOSED) {
		s->state = RS_FAILED;
		s->error = error;
	}
	s->readable = s->writable = false;
}

static void closed(struct rs *s)
{
	if (s->state == RS_CONNECTED)
		s->state = RS_CLOSED;
	s->readable = s->writable = false;
}

/* post posts a write with a message in its immediate data, which is also the request's id. */
static int post(struct rs *s, uint32_t message, struct ibv_sge *sge, int n, uint64_t remote, uint32_t key, bool inlined)
{
	struct ibv_send_wr w = { .wr_id = message, .sg_list = sge, .num_sge = n }, *bad;

	w.opcode = rs_op_of(message) == RS_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
	w.send_flags = inlined ? IBV_SEND_INLINE : 0;
	w.imm_data = htobe32(message);
	w.wr.rdma.remote_addr = remote;
	w.wr.rdma.rkey = key;
	return s->id->qp->context->ops.post_send(s->id->qp, &w, &bad);
}

int rs_post(struct rs *s, uint32_t message, struct ibv_sge *sge, int n, uint64_t remote, uint32_t key, bool inlined)
{
	int error;

	s->slots--;
	error = post(s, message, sge, n, remote, key, inlined);
	if (error) {
		s->slots++;
		rs_fail(s, error);
	}
	return error;
}

int rs_post_control(struct rs *s, enum rs_control what)
{
	int error;

	if (s->controls == 0)
		return EAGAIN;
	s->controls--;
	error = post(s, rs_message(RS_CONTROL, what), NULL, 0, 0, 0, false);
	if (error)
		s->controls++;
	return error;
}

/* The peer is told when half of the buffer or of the messages has been read, so that it can go on before the rest is.
 * */
static bool credit_due(const struct rs *s)
{
	return s->controls > 0 && s->state == RS_CONNECTED &&
	       (s->read_bytes >= s->recv_bytes / 2 || (int16_t)(s->taken - s->told) >= 0);
}

void rs_credit(struct rs *s)
{
	struct rs_sge half;
	struct ibv_sge sge = { (uintptr_t)&half, sizeof(half), 0 };
	uint32_t message;

	if (!credit_due(s))
		return;
	s->controls--;
	s->told = (uint16_t)(s->taken + s->recv_size / 2);
	message = rs_message(RS_CREDIT, (uint16_t)(s->taken + s->recv_size));
	if (s->read_bytes < s->recv_bytes / 2) {
		if (post(s, message, NULL, 0, 0, 0, false))
			rs_fail(s, EIO);
		return;
	}
	half = (struct rs_sge){ (uintptr_t)s->recv_buffer + s->give_at, s->recv_mr->rkey, s->recv_bytes / 2 };
	if (s->swap)
		half = (struct rs_sge){ __builtin_bswap64(half.addr), __builtin_bswap32(half.key), __builtin_bswap32(half.length) };
	if (post(s, message, &sge, 1, s->peer_targets.addr + s->peer_target * sizeof(half), s->peer_targets.key, true))
		rs_fail(s, EIO);
	s->read_bytes -= s->recv_bytes / 2;
	s->give_at = s->give_at ? 0 : s->recv_bytes / 2;
	if (++s->peer_target == s->peer_targets.length)
		s->peer_target = 0;
}

static void received(struct rs *s, uint32_t message)
{
	uint32_t v = rs_value_of(message);

	switch (rs_op_of(message)) {
	case RS_DATA:
		s->messages[s->tail] = v;
		if (++s->tail == s->recv_size + 1)
			s->tail = 0;
		break;
	case RS_CREDIT:
		s->granted = (uint16_t)v;
		break;
	case RS_CONTROL:
		if (v == RS_SHUTDOWN && s->writable)
			s->readable = false;
		else if (v == RS_SHUTDOWN || v == RS_DISCONNECT)
			closed(s);
		break;
	default:
		break; /* a mapping: the peer has written it into the list */
	}
}

static void completed(struct rs *s, uint32_t message)
{
	switch (rs_op_of(message)) {
	case RS_CREDIT:
	case RS_CONTROL:
		s->controls++;
		break;
	default:
		s->slots++;
		if (rs_op_of(message) != RS_IOMAP)
			s->send_free += rs_value_of(message);
	}
}

static void repost(struct rs *s, uint32_t n)
{
	struct ibv_recv_wr w = { 0 }, *bad;

	while (n-- > 0 && s->state == RS_CONNECTED)
		if (s->id->qp->context->ops.post_recv(s->id->qp, &w, &bad))
			rs_fail(s, EIO);
}

/* rs_poll_queue handles completions. A flushed receive means that the connection has ended. */
void rs_poll_queue(struct rs *s)
{
	struct ibv_wc wc[16];
	uint32_t again = 0;
	int n;

	if (!s->cq)
		return;
	while ((n = s->cq->context->ops.poll_cq(s->cq, 16, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			bool receive = wc[i].opcode & IBV_WC_RECV || (wc[i].status && wc[i].wr_id == 0);

			if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
				closed(s);
			else if (wc[i].status)
				rs_fail(s, wc[i].status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : EIO);
			else if (receive)
				received(s, be32toh(wc[i].imm_data));
			if (!receive)
				completed(s, (uint32_t)wc[i].wr_id);
			else
				again++;
		}
	}
	if (n < 0)
		rs_fail(s, EIO);
	repost(s, again);
	rs_tell_mappings(s);
	rs_credit(s);
}

bool rs_can_send(const struct rs *s)
{
	return s->state == RS_CONNECTED && s->slots > 0 && s->send_free >= (RS_LOW_WATER < s->send_bytes ? RS_LOW_WATER : s->send_bytes) &&
	       s->sent != s->granted && ((volatile struct rs_sge *)s->targets)[s->target].length > 0;
}

bool rs_sends_done(const struct rs *s)
{
	return s->state != RS_CONNECTED || (s->slots == s->send_size - RS_RESERVED && s->controls == RS_RESERVED);
}

void rs_take_events(struct rs *s)
{
	struct ibv_cq *cq;
	void *context;

	while (s->channel && ibv_get_cq_event(s->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		s->armed = false;
	}
}

/* sleep_once waits for the descriptors. One thread does so on behalf of all. */
static int sleep_once(struct rs *s)
{
	struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = s->channel ? s->channel->fd : -1, .events = POLLIN } };
	int error = 0;

	if (s->waiting) {
		pthread_cond_wait(&s->news, &s->lock);
		return 0;
	}
	s->waiting = true;
	pthread_mutex_unlock(&s->lock);
	if (poll(p, 2, SVPI_SOCKET_SLICE_MS) < 0)
		error = errno;
	pthread_mutex_lock(&s->lock);
	s->waiting = false;
	pthread_cond_broadcast(&s->news);
	rs_take_events(s);
	if (p[0].revents)
		rs_cm_events(s);
	return error;
}

int rs_await(struct rs *s, bool (*done)(const struct rs *), bool nonblock)
{
	for (int looks = 0;; looks++) {
		int error = 0;

		rs_poll_queue(s);
		if (done(s))
			return 0;
		if (s->ending)
			return EBADF;
		if (nonblock)
			return EAGAIN;
		if (looks < SVPI_SOCKET_LOOKS) {
			pthread_mutex_unlock(&s->lock);
			sched_yield();
			pthread_mutex_lock(&s->lock);
		} else if (s->cq && !s->armed) {
			s->armed = true;
			error = s->cq->context->ops.req_notify_cq(s->cq, 0);
		} else {
			error = sleep_once(s);
		}
		if (error)
			return error;
	}
}
