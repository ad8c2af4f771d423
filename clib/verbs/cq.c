/* Completion queues. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>

#include "../ipc/waiting.h"
#include "object.h"

/* The processor is yielded after a number of empty polls (waiting.h): few at first, because on a machine with few
 * processors the driver may need this one, and more when nothing arrives for long. */
enum { PUMP_EVERY = 8 /* yields */ };

static int open_ring(struct svpi *s, const struct svpi_queue *q, struct svpi_consumer *c)
{
	void *memory = svpi_memory(s, &q->ring);

	if (!memory || q->stride != sizeof(struct svpi_cqe))
		return EPROTO;
	svpi_consumer_open(c, memory, q->depth, q->ring.size);
	return 0;
}

static struct svpi_cq *create(struct ibv_context *context, uint32_t cqe, void *cq_context, struct ibv_comp_channel *channel)
{
	struct svpi_cq *c = calloc(1, sizeof(*c));
	struct svpi_create_cq q = { .adapter = to_context(context)->adapter, .depth = cqe + SVPI_CQ_SPARE,
				     .channel = svpi_channel_handle(channel) };
	struct svpi_queue r;
	int error = !c ? ENOMEM : cqe == 0 ? EINVAL : 0;

	if (!error)
		error = svpi_call(to_svpi(context), SVPI_CREATE_CQ, &q, sizeof(q), &r, sizeof(r));
	if (!error && ((error = open_ring(to_svpi(context), &r, &c->ring)) ||
		       (error = svpi_table_add(&to_context(context)->cqs, r.handle, c))))
		svpi_destroy(to_svpi(context), SVPI_KIND_CQ, r.handle);
	if (error) {
		free(c);
		errno = error;
		return NULL;
	}
	c->svpi = to_svpi(context);
	c->cq.context = context;
	c->cq.channel = channel;
	c->cq.cq_context = cq_context;
	c->cq.handle = r.handle;
	c->cq.cqe = (int)(r.depth - SVPI_CQ_SPARE);
	c->patience = SVPI_POLL_LOOKS;
	pthread_mutex_init(&c->cq.mutex, NULL);
	pthread_cond_init(&c->cq.cond, NULL);
	if (channel)
		__atomic_add_fetch(&channel->refcnt, 1, __ATOMIC_SEQ_CST);
	return c;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
				    int vector)
{
	struct svpi_cq *c;

	if (cqe < 1 || vector < 0 || vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	c = create(context, (uint32_t)cqe, cq_context, channel);
	return c ? &c->cq : NULL;
}

static void drop_later(struct svpi_cq *c)
{
	struct svpi_later *l = c->later;

	c->later = l->next;
	free(l);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	int error = svpi_destroy(to_cq(cq)->svpi, SVPI_KIND_CQ, cq->handle);

	if (error)
		return error;
	svpi_table_remove(&to_context(cq->context)->cqs, cq->handle);
	svpi_acknowledged(&cq->mutex, &cq->cond, &cq->comp_events_completed, &to_cq(cq)->got);
	svpi_acknowledged(&cq->mutex, &cq->cond, &cq->async_events_completed, &to_cq(cq)->got_async);
	if (cq->channel)
		__atomic_sub_fetch(&cq->channel->refcnt, 1, __ATOMIC_SEQ_CST);
	while (to_cq(cq)->later)
		drop_later(to_cq(cq));
	free(to_cq(cq)->late);
	free(to_cq(cq));
	return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct svpi_cq *c = to_cq(cq);
	struct svpi_resize_args q = { cq->handle, (uint32_t)cqe + SVPI_CQ_SPARE };
	struct svpi_later *l = calloc(1, sizeof(*l)), **end = &c->later;
	struct svpi_queue r;
	int error = !l ? ENOMEM : cqe < 1 ? EINVAL : 0;

	svpi_spin_lock(&c->lock);
	if (!error)
		error = svpi_call(c->svpi, SVPI_RESIZE_CQ, &q, sizeof(q), &r, sizeof(r));
	if (!error)
		error = open_ring(c->svpi, &r, &l->ring);
	if (!error) {
		while (*end)
			end = &(*end)->next;
		*end = l;
		cq->cqe = (int)(r.depth - SVPI_CQ_SPARE);
	}
	svpi_spin_unlock(&c->lock);
	if (error)
		free(l);
	return error == EBUSY ? EINVAL : error; /* the queue holds more completions than that: EINVAL in the kernel */
}

int svpi_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
{
	struct svpi_moderate_cq q = { .cq = cq->handle };

	if (a->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	q.count = a->moderate.cq_count;
	q.microseconds = a->moderate.cq_period;
	return svpi_call(to_cq(cq)->svpi, SVPI_MODERATE_CQ, &q, sizeof(q), NULL, 0);
}

/* Polling. */

static enum ibv_wc_opcode opcode_of(const struct svpi_cqe *e) { return e->op < IBV_WC_RECV ? e->op - 1 : e->op; }

static unsigned flags_of(const struct svpi_cqe *e)
{
	return (e->flags & SVPI_CQE_IMM ? IBV_WC_WITH_IMM : 0) | (e->flags & SVPI_CQE_INVALIDATED ? IBV_WC_WITH_INV : 0) |
	       (e->flags & SVPI_CQE_GRH ? IBV_WC_GRH : 0);
}

static uint32_t imm_of(const struct svpi_cqe *e) { return e->flags & SVPI_CQE_INVALIDATED ? e->imm : htonl(e->imm); }

static void to_wc(void *arg, int i, const struct svpi_cqe *e)
{
	struct ibv_wc *wc = (struct ibv_wc *)arg + i;

	wc->wr_id = e->id;
	wc->status = e->status;
	wc->opcode = opcode_of(e);
	wc->vendor_err = e->vendor;
	wc->byte_len = e->bytes;
	wc->imm_data = imm_of(e);
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = flags_of(e);
	wc->pkey_index = e->pkey_index;
	wc->slid = e->slid;
	wc->sl = e->sl;
	wc->dlid_path_bits = e->path_bits;
}

/* take_ring polls the ring, and goes on to the rings that resizes have made when it is empty. */
static inline int take_ring(struct svpi_cq *c, int n, void (*each)(void *, int, const struct svpi_cqe *), void *arg)
{
	int k = svpi_poll(&c->ring, n, each, arg);

	while (k == 0 && __builtin_expect(c->later != NULL, 0) && atomic_load(&c->ring.h->flags) & SVPI_RING_MOVED &&
	       svpi_consumer_empty(&c->ring)) {
		c->ring = c->later->ring;
		drop_later(c);
		k = svpi_poll(&c->ring, n, each, arg);
	}
	return k;
}

/* take_late carries out requests that wait in rings, and polls again. */
static __attribute__((noinline)) int take_late(struct svpi_cq *c, int n, void (*each)(void *, int, const struct svpi_cqe *),
					       void *arg)
{
	svpi_direct_late(c);
	return take_ring(c, n, each, arg);
}

static inline int take(struct svpi_cq *c, int n, void (*each)(void *, int, const struct svpi_cqe *), void *arg)
{
	int k = take_ring(c, n, each, arg);

	return k == 0 && __builtin_expect(c->lates > 0, 0) ? take_late(c, n, each, arg) : k;
}

/* offer yields the processor to the driver, and checks that the driver is still there. -1: nothing will arrive any
 * more. */
static __attribute__((noinline)) int offer(struct svpi_cq *c)
{
	c->idle = 0;
	if (c->patience < SVPI_POLL_LOOKS_MOST)
		c->patience *= 2;
	if ((atomic_load(&c->ring.h->flags) & SVPI_RING_ERROR && svpi_consumer_empty(&c->ring)) || c->svpi->broken)
		return -1;
	svpi_spin_unlock(&c->lock);
	sched_yield();
	if (c->svpi->moved)
		; /* what arrives is still for the parent */
	else if (++c->offers % PUMP_EVERY == 0)
		svpi_pump(c->svpi);
	else
		svpi_listen(c->svpi);
	svpi_spin_lock(&c->lock);
	return 0;
}

/* calm lets some time pass. A stream of messages arrives faster if it is not watched all the time but collected a few
 * messages at a time. */
static __attribute__((noinline)) void calm(void)
{
	for (int n = 0; n < SVPI_STREAM_PAUSE; n++)
		__asm__ volatile("");
}

/* empty is called after every empty poll. */
static inline int empty(struct svpi_cq *c)
{
	if (++c->idle <= SVPI_STREAM_LOOKS && __atomic_load_n(&c->streamed, __ATOMIC_RELAXED))
		calm();
	return __builtin_expect(c->idle < c->patience, 1) ? 0 : offer(c);
}

static inline void some(struct svpi_cq *c, bool received)
{
	c->idle = 0;
	c->patience = SVPI_POLL_LOOKS;
	if (received && c->ring.head != c->taken) {
		c->taken = c->ring.head;
		if (!__atomic_load_n(&c->streamed, __ATOMIC_RELAXED))
			__atomic_store_n(&c->streamed, true, __ATOMIC_RELAXED);
	}
}

int svpi_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct svpi_cq *c = to_cq(cq);
	int k;

	svpi_spin_brief(&c->lock);
	k = take(c, n, to_wc, wc);
	if (k > 0)
		some(c, wc[k - 1].opcode & IBV_WC_RECV);
	else if (n > 0)
		k = empty(c);
	svpi_spin_unlock(&c->lock);
	return k;
}

void svpi_cq_forget(struct ibv_cq *cq, uint32_t qpn)
{
	struct svpi_cq *c = to_cq(cq);

	svpi_spin_lock(&c->lock);
	svpi_consumer_forget(&c->ring, qpn);
	for (struct svpi_later *l = c->later; l; l = l->next)
		svpi_consumer_forget(&l->ring, qpn);
	svpi_spin_unlock(&c->lock);
}

int svpi_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct svpi_cq *c = to_cq(cq);
	struct svpi_consumer *last = &c->ring;

	svpi_spin_lock(&c->lock);
	for (struct svpi_later *l = c->later; l; l = l->next)
		last = &l->ring;
	svpi_arm(last, solicited_only ? SVPI_ARM_SOLICITED : SVPI_ARM_ANY);
	svpi_spin_unlock(&c->lock);
	return 0;
}

/* Extended polling: the lock is held from start_poll to end_poll. */

static void to_current(void *arg, int i, const struct svpi_cqe *e)
{
	(void)i;
	memcpy(arg, e, offsetof(struct svpi_cqe, stamp));
}

static int ex_next(struct ibv_cq_ex *ex)
{
	struct svpi_cq *c = to_cq((struct ibv_cq *)ex);

	if (take(c, 1, to_current, &c->current) == 0)
		return ENOENT;
	some(c, c->current.flags & SVPI_CQE_RECEIVE);
	ex->wr_id = c->current.id;
	ex->status = c->current.status;
	return 0;
}

static int ex_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *a)
{
	struct svpi_cq *c = to_cq((struct ibv_cq *)ex);
	int error;

	if (a && a->comp_mask)
		return EINVAL;
	svpi_spin_lock(&c->lock);
	error = ex_next(ex);
	if (error) {
		if (empty(c) < 0)
			error = EIO;
		svpi_spin_unlock(&c->lock);
	}
	return error;
}

static void ex_end(struct ibv_cq_ex *ex) { svpi_spin_unlock(&to_cq((struct ibv_cq *)ex)->lock); }

#define CURRENT(ex) (&to_cq((struct ibv_cq *)(ex))->current)

static enum ibv_wc_opcode ex_opcode(struct ibv_cq_ex *x) { return opcode_of(CURRENT(x)); }
static uint32_t ex_vendor(struct ibv_cq_ex *x) { return CURRENT(x)->vendor; }
static uint32_t ex_bytes(struct ibv_cq_ex *x) { return CURRENT(x)->bytes; }
static uint32_t ex_imm(struct ibv_cq_ex *x) { return imm_of(CURRENT(x)); }
static uint32_t ex_qpn(struct ibv_cq_ex *x) { return CURRENT(x)->qpn; }
static uint32_t ex_src(struct ibv_cq_ex *x) { return CURRENT(x)->src_qp; }
static unsigned ex_flags(struct ibv_cq_ex *x) { return flags_of(CURRENT(x)); }
static uint32_t ex_slid(struct ibv_cq_ex *x) { return CURRENT(x)->slid; }
static uint8_t ex_sl(struct ibv_cq_ex *x) { return CURRENT(x)->sl; }
static uint8_t ex_dlid(struct ibv_cq_ex *x) { return CURRENT(x)->path_bits; }
static uint64_t ex_time(struct ibv_cq_ex *x) { return CURRENT(x)->time; }

struct ibv_cq_ex *svpi_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *a)
{
	const uint64_t known = 0x7f | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	struct svpi_cq *c;

	if (a->wc_flags & ~known || a->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (a->comp_vector >= (uint32_t)context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	c = create(context, a->cqe, a->cq_context, a->channel);
	if (!c)
		return NULL;
	c->ex.start_poll = ex_start;
	c->ex.next_poll = ex_next;
	c->ex.end_poll = ex_end;
	c->ex.read_opcode = ex_opcode;
	c->ex.read_vendor_err = ex_vendor;
	c->ex.read_byte_len = ex_bytes;
	c->ex.read_imm_data = ex_imm;
	c->ex.read_qp_num = ex_qpn;
	c->ex.read_src_qp = ex_src;
	c->ex.read_wc_flags = ex_flags;
	c->ex.read_slid = ex_slid;
	c->ex.read_sl = ex_sl;
	c->ex.read_dlid_path_bits = ex_dlid;
	c->ex.read_completion_ts = ex_time;
	return &c->ex;
}
