/* The resources of a socket's connection: its queues and buffers, and the greeting that describes them to the peer.
 * */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket.h"

/* Large numbers in eight bits: up to 128 exactly, larger ones in multiples of 256. */
uint8_t rs_scale(uint32_t v) { return v <= 128 ? (uint8_t)v : (uint8_t)(0x80 | v >> 8); }
uint32_t rs_unscale(uint8_t v) { return v <= 128 ? v : (uint32_t)(v & 0x7f) << 8; }

static size_t pages(size_t size) { return (size + 4095) & ~(size_t)4095; }

static int make_buffers(struct rs *s, struct ibv_pd *pd)
{
	const int both = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	size_t lists = RS_TARGETS * sizeof(struct rs_sge) + s->iomap_size * sizeof(struct rs_iomap);

	s->memory = rs_memory_get(pages(s->send_bytes) + pages(s->recv_bytes) + pages(lists));
	if (!s->memory)
		return errno;
	s->send_buffer = s->memory;
	s->recv_buffer = s->send_buffer + pages(s->send_bytes);
	s->targets = (void *)(s->recv_buffer + pages(s->recv_bytes));
	s->send_mr = ibv_reg_mr(pd, s->send_buffer, s->send_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (s->send_mr)
		s->recv_mr = ibv_reg_mr(pd, s->recv_buffer, s->recv_bytes, both);
	if (s->recv_mr)
		s->target_mr = ibv_reg_mr(pd, s->targets, lists, both);
	if (!s->target_mr)
		return errno;
	s->messages = calloc(s->recv_size + 1, sizeof(*s->messages));
	if (!s->messages)
		return ENOMEM;
	s->iomaps = (void *)(s->targets + RS_TARGETS);
	return 0;
}

static int make_queues(struct rs *s, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr a = { .qp_context = s, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { s->send_size, s->recv_size, 2, 1, s->inline_size } };

	s->channel = ibv_create_comp_channel(s->id->verbs);
	if (!s->channel)
		return errno;
	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
	s->cq = ibv_create_cq(s->id->verbs, (int)(s->send_size + s->recv_size), s, s->channel, 0);
	if (!s->cq)
		return errno;
	a.send_cq = a.recv_cq = s->cq;
	if (rdma_create_qp(s->id, pd, &a))
		return errno;
	s->inline_size = a.cap.max_inline_data;
	return 0;
}

static int post_receives(struct rs *s)
{
	struct ibv_recv_wr w = { 0 }, *bad;
	int error = 0;

	for (uint32_t i = 0; i < s->recv_size && !error; i++)
		error = s->id->qp->context->ops.post_recv(s->id->qp, &w, &bad);
	return error;
}

/* rs_setup creates a socket's resources on the device of its id. The greeting grants the peer half of the receive
 * buffer; the other half is granted as soon as there is a connection. */
int rs_setup(struct rs *s)
{
	struct ibv_device_attr d;
	struct ibv_pd *pd = device_pd(s->id->verbs);
	int error = pd ? ibv_query_device(s->id->verbs, &d) : errno;

	if (error)
		return error;
	if ((int)s->send_size > d.max_qp_wr)
		s->send_size = (uint32_t)d.max_qp_wr;
	if ((int)s->recv_size > d.max_qp_wr)
		s->recv_size = (uint32_t)d.max_qp_wr;
	error = make_buffers(s, pd);
	if (!error)
		error = make_queues(s, pd);
	if (error)
		return error;
	s->send_free = s->send_bytes;
	s->controls = RS_RESERVED;
	s->slots = s->send_size - RS_RESERVED;
	s->give_at = s->read_bytes = s->recv_bytes / 2;
	s->told = (uint16_t)(s->recv_size / 2);
	return post_receives(s);
}

static void sge_out(struct rs_sge *out, uintptr_t addr, uint32_t key, uint32_t length)
{
	out->addr = htobe64(addr);
	out->key = htobe32(key);
	out->length = htobe32(length);
}

static struct rs_sge sge_in(const struct rs_sge *in)
{
	return (struct rs_sge){ be64toh(in->addr), be32toh(in->key), be32toh(in->length) };
}

void rs_hello(const struct rs *s, struct rs_hello *h)
{
	memset(h, 0, sizeof(*h));
	h->version = RS_VERSION;
	h->flags = RS_FLAG_IOMAP | (htonl(1) == 1 ? RS_FLAG_BIG_ENDIAN : 0);
	h->credits = htobe16((uint16_t)s->recv_size);
	h->iomaps = rs_scale(s->iomap_size);
	sge_out(&h->targets, (uintptr_t)s->targets, s->target_mr->rkey, RS_TARGETS);
	sge_out(&h->buffer, (uintptr_t)s->recv_buffer, s->recv_mr->rkey, s->recv_bytes / 2);
}

/* rs_greeted takes the peer's greeting; EPROTO if the peer is not a socket of this kind. */
int rs_greeted(struct rs *s, const struct rdma_conn_param *p)
{
	struct rs_hello h;

	if (p->private_data_len < sizeof(h))
		return EPROTO;
	memcpy(&h, p->private_data, sizeof(h));
	s->peer_targets = sge_in(&h.targets);
	if (h.version != RS_VERSION || s->peer_targets.length == 0)
		return EPROTO;
	s->peer_target = 1; /* the first target is the buffer in the greeting */
	if (s->peer_target == s->peer_targets.length)
		s->peer_target = 0;
	s->swap = (h.flags & RS_FLAG_BIG_ENDIAN) != (htonl(1) == 1 ? RS_FLAG_BIG_ENDIAN : 0);
	if (h.flags & RS_FLAG_IOMAP) {
		s->peer_iomaps.addr = s->peer_targets.addr + sizeof(struct rs_sge) * s->peer_targets.length;
		s->peer_iomaps.key = s->peer_targets.key;
		s->peer_iomaps.length = rs_unscale(h.iomaps);
	}
	s->targets[0] = sge_in(&h.buffer);
	s->granted = be16toh(h.credits);
	return 0;
}
