/* Posting requests. */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "object.h"

/* The driver's operation for each opcode, 0 if it has none. */
static const uint8_t operation[] = {
	[IBV_WR_TSO] = SVPI_WR_LARGE_SEND,
	[IBV_WR_RDMA_WRITE] = SVPI_WR_WRITE, [IBV_WR_RDMA_WRITE_WITH_IMM] = SVPI_WR_WRITE_IMM, [IBV_WR_SEND] = SVPI_WR_SEND,
	[IBV_WR_SEND_WITH_IMM] = SVPI_WR_SEND_IMM, [IBV_WR_RDMA_READ] = SVPI_WR_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = SVPI_WR_CAS, [IBV_WR_ATOMIC_FETCH_AND_ADD] = SVPI_WR_FADD,
	[IBV_WR_LOCAL_INV] = SVPI_WR_LOCAL_INV, [IBV_WR_BIND_MW] = SVPI_WR_BIND, [IBV_WR_SEND_WITH_INV] = SVPI_WR_SEND_INV,
	[IBV_WR_ATOMIC_WRITE] = SVPI_WR_ATOMIC_WRITE, /* a flush has no fields in a request: only the extended interface posts it */
};

static const uint8_t flag[16] = {
	[IBV_SEND_FENCE] = SVPI_WR_FENCE, [IBV_SEND_SIGNALED] = SVPI_WR_SIGNALED, [IBV_SEND_SOLICITED] = SVPI_WR_SOLICITED,
	[IBV_SEND_FENCE | IBV_SEND_SIGNALED] = SVPI_WR_FENCE | SVPI_WR_SIGNALED,
	[IBV_SEND_FENCE | IBV_SEND_SOLICITED] = SVPI_WR_FENCE | SVPI_WR_SOLICITED,
	[IBV_SEND_SIGNALED | IBV_SEND_SOLICITED] = SVPI_WR_SIGNALED | SVPI_WR_SOLICITED,
	[IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED] = SVPI_WR_FENCE | SVPI_WR_SIGNALED | SVPI_WR_SOLICITED,
};

static void put_sges(uint8_t *to, const struct ibv_sge *from, int n)
{
	/* Both have the same layout: address, length, key. */
	_Static_assert(sizeof(struct ibv_sge) == sizeof(struct svpi_sge), "layout");
	if (__builtin_expect(n == 1, 1)) /* avoids a call of memcpy */
		memcpy(to, from, sizeof(*from));
	else if (n) /* without any, from may be NULL */
		memcpy(to, from, (size_t)n * sizeof(*from));
}

/* put_inline copies a request's data into its entry. Returns 0 or an errno. */
static int put_inline(struct svpi_qp *q, struct svpi_send_entry *e, const struct ibv_sge *sge, int n)
{
	uint8_t *to = (uint8_t *)(e + 1);
	uint32_t bytes = 0;

	for (int i = 0; i < n; i++) {
		if (sge[i].length > q->inline_max - bytes)
			return EINVAL;
		memcpy(to + bytes, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
		bytes += sge[i].length;
	}
	e->inline_bytes = bytes;
	e->sges = 0;
	e->flags |= SVPI_WR_INLINE;
	return 0;
}

static int put_window(struct svpi_send_entry *e, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *b = &wr->bind_mw.bind_info;

	if (!wr->bind_mw.mw || (!b->mr && b->length))
		return EINVAL;
	e->rkey = wr->bind_mw.rkey;
	e->imm = b->mr ? b->mr->lkey : 0;
	e->remote = b->addr;
	e->compare_add = b->length;
	e->access = b->mw_access_flags;
	return 0;
}

/* put_large fills an entry with the headers of a large send, and its data's places behind them. Returns 0 or an errno. */
static int put_large(const struct svpi_qp *q, struct svpi_send_entry *e, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE || wr->tso.hdr_sz > q->tso_header || !wr->tso.hdr_sz || !wr->tso.mss)
		return EINVAL;
	e->imm = wr->tso.mss;
	e->inline_bytes = wr->tso.hdr_sz;
	memcpy(e + 1, wr->tso.hdr, wr->tso.hdr_sz);
	put_sges(svpi_data_of(e), wr->sg_list, wr->num_sge);
	return 0;
}

/* carries tells whether a request sends data, which may then be inline. */
static inline bool carries(enum ibv_wr_opcode op)
{
	return op <= IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV || op == IBV_WR_ATOMIC_WRITE;
}

/* put fills an entry with a request. Returns 0 or an errno. */
static int put(struct svpi_qp *q, struct svpi_send_entry *e, const struct ibv_send_wr *wr)
{
	bool in_place = wr->send_flags & IBV_SEND_INLINE;

	if ((unsigned)wr->opcode >= sizeof(operation) || !operation[wr->opcode] || (unsigned)wr->num_sge > q->send_sge ||
	    !(q->operations & 1u << wr->opcode))
		return EINVAL;
	e->op = operation[wr->opcode];
	e->flags = flag[wr->send_flags & 7];
	e->sges = (uint8_t)wr->num_sge;
	e->id = wr->wr_id;
	e->inline_bytes = 0;
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		e->imm = ntohl(wr->imm_data);
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		e->remote = wr->wr.rdma.remote_addr;
		e->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_SEND_WITH_IMM:
		e->imm = ntohl(wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		e->imm = wr->invalidate_rkey;
		break;
	case IBV_WR_LOCAL_INV:
		e->imm = wr->invalidate_rkey;
		e->sges = 0;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		e->remote = wr->wr.atomic.remote_addr;
		e->rkey = wr->wr.atomic.rkey;
		e->compare_add = wr->wr.atomic.compare_add;
		e->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_BIND_MW:
		e->sges = 0;
		return put_window(e, wr);
	case IBV_WR_TSO:
		return put_large(q, e, wr);
	default:
		break;
	}
	if (q->qp.qp_type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		e->ah = wr->wr.ud.ah->handle;
		e->qpn = wr->wr.ud.remote_qpn;
		e->qkey = wr->wr.ud.remote_qkey;
	}
	else if (q->qp.qp_type == IBV_QPT_XRC_SEND)
		e->qpn = wr->qp_type.xrc.remote_srqn;
	else if (q->qp.qp_type == IBV_QPT_RAW_PACKET && wr->send_flags & IBV_SEND_IP_CSUM) {
		if (!q->checksums)
			return EINVAL;
		e->flags |= SVPI_WR_CHECKSUMS;
	}
	if (in_place)
		return carries(wr->opcode) ? put_inline(q, e, wr->sg_list, wr->num_sge) : EINVAL;
	put_sges((uint8_t *)(e + 1), wr->sg_list, wr->num_sge);
	return 0;
}

int svpi_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct svpi_qp *q = to_qp(qp);
	struct svpi_initiator *lent;
	uint32_t from;
	bool direct;
	int error = svpi_may_send(q);

	if (__builtin_expect(error, 0)) {
		*bad = wr;
		return error;
	}
	svpi_answered(q);
	svpi_spin_brief(&q->send_lock);
	lent = svpi_direct_begin(q);
	direct = lent != NULL;
	from = q->send.next;
	for (; wr; wr = wr->next) {
		struct svpi_send_entry *e = (void *)svpi_slot(&q->send);

		if (!e) {
			error = q->svpi->broken ? EIO : ENOMEM;
			break;
		}
		error = put(q, e, wr);
		if (error)
			break;
		direct = direct && svpi_execute(lent, e);
		if (!direct)
			svpi_filled(&q->send);
	}
	if (q->send.next != from)
		svpi_direct_end(q, lent, from);
	svpi_spin_unlock(&q->send_lock);
	if (error)
		*bad = wr;
	return error;
}

/* put_receives fills a receive ring. Returns 0, or an errno with *bad at the request that was refused. */
static int put_receives(struct svpi_producer *ring, uint32_t max_sge, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		struct svpi_recv_entry *e = (void *)svpi_slot(ring);

		if (!e || (uint32_t)wr->num_sge > max_sge) {
			*bad = wr;
			return e ? EINVAL : ENOMEM;
		}
		e->id = wr->wr_id;
		e->sges = (uint32_t)wr->num_sge;
		e->none = 0;
		put_sges((uint8_t *)(e + 1), wr->sg_list, wr->num_sge);
		svpi_filled(ring);
	}
	return 0;
}


int svpi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct svpi_qp *q = to_qp(qp);
	uint32_t from;
	int error = svpi_may_receive(q);

	if (__builtin_expect(error, 0)) {
		*bad = wr;
		return error;
	}
	svpi_spin_brief(&q->recv_lock);
	from = q->recv.next;
	error = put_receives(&q->recv, q->recv_sge, wr, bad);
	if (q->recv.next != from) {
		svpi_publish(&q->recv);
		if (!svpi_receiving(&q->direct)) /* otherwise the peer itself takes the receives */
			svpi_doorbell(q->svpi, qp->handle, &q->recv_bell);
	}
	svpi_spin_unlock(&q->recv_lock);
	return error;
}

int svpi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct svpi_srq *s = to_srq(srq);
	uint32_t from;
	int error = svpi_here(s->svpi);

	if (__builtin_expect(error, 0)) {
		*bad = wr;
		return error;
	}
	svpi_spin_brief(&s->lock);
	from = s->ring.next;
	error = put_receives(&s->ring, s->max_sge, wr, bad);
	if (s->ring.next != from) {
		svpi_publish(&s->ring);
		svpi_doorbell(s->svpi, srq->handle, &s->bell);
	}
	svpi_spin_unlock(&s->lock);
	return error;
}
