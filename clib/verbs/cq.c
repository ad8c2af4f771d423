/* Completion queues. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>

#include "polling.h"

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

struct svpi_cq *svpi_cq_new(struct ibv_context *context, struct ibv_pd *domain, uint32_t cqe, void *cq_context,
			    struct ibv_comp_channel *channel, uint32_t flags)
{
	struct svpi_home home;
	struct svpi_cq *c = svpi_home_new(&home, domain, sizeof(*c), SVPI_RESOURCE_CQ);
	struct svpi_create_cq q = { .adapter = to_context(context)->adapter, .depth = cqe + SVPI_CQ_SPARE,
				     .channel = svpi_channel_handle(channel), .flags = flags };
	struct svpi_queue r;
	int error = !c ? errno : cqe == 0 || cqe > INT_MAX ? EINVAL : 0;

	if (!error)
		error = svpi_call(to_svpi(context), SVPI_CREATE_CQ, &q, sizeof(q), &r, sizeof(r));
	if (!error && ((error = open_ring(to_svpi(context), &r, &c->ring)) ||
		       (error = svpi_table_add(&to_context(context)->cqs, r.handle, c))))
		svpi_destroy(to_svpi(context), SVPI_KIND_CQ, r.handle);
	if (error) {
		svpi_home_free(home, c);
		errno = error;
		return NULL;
	}
	c->home = home;
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
	c = svpi_cq_new(context, NULL, (uint32_t)cqe, cq_context, channel, 0);
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
	svpi_home_free(to_cq(cq)->home, cq);
	return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct svpi_cq *c = to_cq(cq);
	struct svpi_resize_args q = { cq->handle, (uint32_t)cqe + SVPI_CQ_SPARE };
	struct svpi_later *l = calloc(1, sizeof(*l)), **end = &c->later;
	struct svpi_queue r;
	int error = !l ? ENOMEM : cqe < 1 ? EINVAL : 0;

	svpi_cq_lock(c);
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
	svpi_cq_unlock(c);
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

static void to_wc(void *arg, int i, const struct svpi_cqe *e)
{
	struct ibv_wc *wc = (struct ibv_wc *)arg + i;

	wc->wr_id = e->id;
	wc->status = e->status;
	wc->opcode = svpi_opcode_of(e);
	wc->vendor_err = e->vendor;
	wc->byte_len = e->bytes;
	wc->imm_data = svpi_imm_of(e);
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = svpi_flags_of(e);
	wc->pkey_index = e->pkey_index;
	wc->slid = e->slid;
	wc->sl = e->sl;
	wc->dlid_path_bits = e->path_bits;
}

void svpi_next_ring(struct svpi_cq *c)
{
	c->ring = c->later->ring;
	drop_later(c);
}

int svpi_take_late(struct svpi_cq *c, int n, svpi_each *each, void *arg)
{
	svpi_direct_late(c);
	return svpi_take_ring(c, n, each, arg);
}

int svpi_offer(struct svpi_cq *c)
{
	c->idle = 0;
	if (c->patience < SVPI_POLL_LOOKS_MOST)
		c->patience *= 2;
	if ((atomic_load(&c->ring.h->flags) & SVPI_RING_ERROR && svpi_consumer_empty(&c->ring)) || c->svpi->broken)
		return -1;
	svpi_cq_unlock(c);
	sched_yield();
	if (c->svpi->moved)
		; /* what arrives is still for the parent */
	else if (++c->offers % PUMP_EVERY == 0)
		svpi_pump(c->svpi);
	else
		svpi_listen(c->svpi);
	svpi_cq_lock(c);
	return 0;
}

void svpi_calm(void)
{
	for (int n = 0; n < SVPI_STREAM_PAUSE; n++)
		__asm__ volatile("");
}

int svpi_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct svpi_cq *c = to_cq(cq);
	int k;

	if (!c->single)
		svpi_spin_brief(&c->lock);
	k = svpi_poll_some(c, n, to_wc, wc);
	if (k > 0)
		svpi_found(c, wc[k - 1].opcode & IBV_WC_RECV);
	else if (n > 0)
		k = svpi_missed(c);
	svpi_cq_unlock(c);
	return k;
}

void svpi_cq_forget(struct ibv_cq *cq, uint32_t qpn)
{
	struct svpi_cq *c = to_cq(cq);

	svpi_cq_lock(c);
	svpi_consumer_forget(&c->ring, qpn);
	for (struct svpi_later *l = c->later; l; l = l->next)
		svpi_consumer_forget(&l->ring, qpn);
	svpi_cq_unlock(c);
}

int svpi_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct svpi_cq *c = to_cq(cq);
	struct svpi_consumer *last = &c->ring;

	svpi_cq_lock(c);
	for (struct svpi_later *l = c->later; l; l = l->next)
		last = &l->ring;
	svpi_arm(last, solicited_only ? SVPI_ARM_SOLICITED : SVPI_ARM_ANY);
	svpi_cq_unlock(c);
	return 0;
}
