/* Posting through the extended interface: requests are built in the ring between wr_start and wr_complete, which
 * publishes them all. */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "object.h"

static struct svpi_qp *qp_of(struct ibv_qp_ex *x) { return (struct svpi_qp *)x; }

static void start(struct ibv_qp_ex *x)
{
	struct svpi_qp *q = qp_of(x);
	int error = svpi_may_send(q);

	svpi_spin_lock(&q->send_lock);
	svpi_answered(q);
	q->lent = error ? NULL : svpi_direct_begin(q);
	q->started = q->send.next;
	q->building = NULL;
	q->build_error = error;
}

/* begin opens the entry for a request; NULL if an earlier request of this post failed, or the ring is full. */
static struct svpi_send_entry *begin(struct ibv_qp_ex *x, uint8_t op)
{
	struct svpi_qp *q = qp_of(x);
	struct svpi_send_entry *e = q->build_error ? NULL : (void *)svpi_slot(&q->send);

	q->building = e;
	if (!e) {
		if (!q->build_error)
			q->build_error = ENOMEM;
		return NULL;
	}
	svpi_filled(&q->send);
	memset(e, 0, sizeof(*e));
	e->op = op;
	e->id = x->wr_id;
	e->flags = (x->wr_flags & IBV_SEND_FENCE ? SVPI_WR_FENCE : 0) | (x->wr_flags & IBV_SEND_SIGNALED ? SVPI_WR_SIGNALED : 0) |
		   (x->wr_flags & IBV_SEND_SOLICITED ? SVPI_WR_SOLICITED : 0);
	if (x->wr_flags & IBV_SEND_IP_CSUM && q->qp.qp_type == IBV_QPT_RAW_PACKET) {
		if (!q->checksums)
			q->build_error = EINVAL;
		e->flags |= SVPI_WR_CHECKSUMS;
	}
	return e;
}

static void remote(struct ibv_qp_ex *x, uint8_t op, uint32_t rkey, uint64_t addr, uint32_t imm)
{
	struct svpi_send_entry *e = begin(x, op);

	if (e) {
		e->rkey = rkey;
		e->remote = addr;
		e->imm = imm;
	}
}

static void cmp_swp(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	remote(x, SVPI_WR_CAS, rkey, addr, 0);
	if (qp_of(x)->building) {
		qp_of(x)->building->compare_add = compare;
		qp_of(x)->building->swap = swap;
	}
}

static void fetch_add(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr, uint64_t add)
{
	remote(x, SVPI_WR_FADD, rkey, addr, 0);
	if (qp_of(x)->building)
		qp_of(x)->building->compare_add = add;
}

static void bind_window(struct ibv_qp_ex *x, struct ibv_mw *w, uint32_t rkey, const struct ibv_mw_bind_info *b)
{
	remote(x, SVPI_WR_BIND, rkey, b->addr, b->mr ? b->mr->lkey : 0);
	if (qp_of(x)->building) {
		qp_of(x)->building->compare_add = b->length;
		qp_of(x)->building->access = b->mw_access_flags;
		if (!w || (!b->mr && b->length))
			qp_of(x)->build_error = EINVAL;
	}
}

static void local_inv(struct ibv_qp_ex *x, uint32_t rkey) { remote(x, SVPI_WR_LOCAL_INV, 0, 0, rkey); }
static void rdma_read(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr) { remote(x, SVPI_WR_READ, rkey, addr, 0); }
static void rdma_write(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr) { remote(x, SVPI_WR_WRITE, rkey, addr, 0); }
static void rdma_write_imm(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr, uint32_t imm)
{
	remote(x, SVPI_WR_WRITE_IMM, rkey, addr, ntohl(imm));
}
static void send_plain(struct ibv_qp_ex *x) { begin(x, SVPI_WR_SEND); }
static void send_imm(struct ibv_qp_ex *x, uint32_t imm) { remote(x, SVPI_WR_SEND_IMM, 0, 0, ntohl(imm)); }
static void send_inv(struct ibv_qp_ex *x, uint32_t rkey) { remote(x, SVPI_WR_SEND_INV, 0, 0, rkey); }

static void set_ud_addr(struct ibv_qp_ex *x, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct svpi_send_entry *e = qp_of(x)->building;

	if (e && !ah)
		qp_of(x)->build_error = EINVAL;
	else if (e) {
		e->ah = ah->handle;
		e->qpn = qpn;
		e->qkey = qkey;
	}
}

static void set_xrc_srqn(struct ibv_qp_ex *x, uint32_t srqn)
{
	if (qp_of(x)->building)
		qp_of(x)->building->qpn = srqn;
}

static void set_inline_list(struct ibv_qp_ex *x, size_t n, const struct ibv_data_buf *list)
{
	struct svpi_qp *q = qp_of(x);
	struct svpi_send_entry *e = q->building;
	uint32_t bytes = 0;

	if (e && e->op == SVPI_WR_LARGE_SEND) { /* which has its headers there */
		q->build_error = EINVAL;
		return;
	}
	for (size_t i = 0; e && i < n; i++) {
		if (list[i].length > q->inline_max - bytes) {
			q->build_error = EINVAL;
			return;
		}
		memcpy((uint8_t *)(e + 1) + bytes, list[i].addr, list[i].length);
		bytes += (uint32_t)list[i].length;
	}
	if (e) {
		e->flags |= SVPI_WR_INLINE;
		e->inline_bytes = bytes;
	}
}

static void set_inline(struct ibv_qp_ex *x, void *addr, size_t length)
{
	struct ibv_data_buf one = { addr, length };

	set_inline_list(x, 1, &one);
}

static void set_sge_list(struct ibv_qp_ex *x, size_t n, const struct ibv_sge *list)
{
	struct svpi_qp *q = qp_of(x);

	if (!q->building)
		return;
	if (n > q->send_sge) {
		q->build_error = EINVAL;
		return;
	}
	q->building->sges = (uint8_t)n;
	memcpy(svpi_data_of(q->building), list, n * sizeof(*list));
}

static void set_sge(struct ibv_qp_ex *x, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = { addr, length, lkey };

	set_sge_list(x, 1, &one);
}

static void send_tso(struct ibv_qp_ex *x, void *headers, uint16_t size, uint16_t mss)
{
	struct svpi_qp *q = qp_of(x);

	remote(x, SVPI_WR_LARGE_SEND, 0, 0, mss);
	if (!q->building)
		return;
	if (!size || size > q->tso_header || !mss) {
		q->build_error = EINVAL;
		return;
	}
	q->building->inline_bytes = size;
	memcpy(q->building + 1, headers, size);
}

static void atomic_write(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr, const void *data)
{
	struct svpi_send_entry *e;

	remote(x, SVPI_WR_ATOMIC_WRITE, rkey, addr, 0);
	e = qp_of(x)->building;
	if (e) { /* an entry has room for one element at least */
		memcpy(e + 1, data, 8);
		e->flags |= SVPI_WR_INLINE;
		e->inline_bytes = 8;
	}
}

static void flush(struct ibv_qp_ex *x, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	struct svpi_qp *q = qp_of(x);

	remote(x, SVPI_WR_FLUSH, rkey, addr, 0);
	if (!q->building)
		return;
	if (!type || type > 3 || level > 1 || length > UINT32_MAX)
		q->build_error = EINVAL;
	q->building->compare_add = length;
	q->building->access = type | (uint32_t)level << 4;
}

static void give_up(struct ibv_qp_ex *x)
{
	struct svpi_qp *q = qp_of(x);

	q->send.next = q->started;
	svpi_spin_unlock(&q->send_lock);
}

static uint8_t *entry(struct svpi_producer *p, uint32_t index) { return p->entries + (size_t)(index & p->mask) * p->stride; }

/* carry_out carries out as many of the requests as it can itself, and leaves the others in the ring. */
static void carry_out(struct svpi_qp *q)
{
	uint32_t at = q->started, done;

	while (q->lent && at != q->send.next && svpi_execute(q->lent, (const void *)entry(&q->send, at)))
		at++;
	done = at - q->started;
	for (; done && at != q->send.next; at++)
		memcpy(entry(&q->send, at - done), entry(&q->send, at), q->send.stride);
	q->send.next -= done;
}

static int complete(struct ibv_qp_ex *x)
{
	struct svpi_qp *q = qp_of(x);
	int error = q->build_error;

	if (error) {
		give_up(x);
		return error;
	}
	carry_out(q);
	if (q->send.next != q->started)
		svpi_direct_end(q, q->lent, q->started);
	svpi_spin_unlock(&q->send_lock);
	return 0;
}

void svpi_fill_send_ops(struct svpi_qp *q)
{
	struct ibv_qp_ex *x = &q->ex;

	x->wr_start = start;
	x->wr_complete = complete;
	x->wr_abort = give_up;
	x->wr_send = send_plain;
	x->wr_send_imm = send_imm;
	x->wr_send_inv = send_inv;
	x->wr_send_tso = send_tso;
	x->wr_rdma_write = rdma_write;
	x->wr_rdma_write_imm = rdma_write_imm;
	x->wr_rdma_read = rdma_read;
	x->wr_atomic_cmp_swp = cmp_swp;
	x->wr_atomic_fetch_add = fetch_add;
	x->wr_atomic_write = atomic_write;
	x->wr_flush = flush;
	x->wr_local_inv = local_inv;
	x->wr_bind_mw = bind_window;
	x->wr_set_ud_addr = set_ud_addr;
	x->wr_set_xrc_srqn = set_xrc_srqn;
	x->wr_set_inline_data = set_inline;
	x->wr_set_inline_data_list = set_inline_list;
	x->wr_set_sge = set_sge;
	x->wr_set_sge_list = set_sge_list;
}
