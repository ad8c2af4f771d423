/* Shared receive queues. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "object.h"

/* create_srq creates a queue, in the domain xrcd or with a list of so many tags, completing in cq, if these are not NULL
 * or 0. */
static struct svpi_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_attr *a, void *srq_context, struct ibv_xrcd *xrcd,
				   uint32_t tags, struct ibv_cq *cq)
{
	struct svpi *s = to_svpi(pd->context);
	struct svpi_create_srq c = { .pd = pd->handle, .depth = at_least_1(a->max_wr), .max_sge = at_least_1(a->max_sge),
				     .limit = a->srq_limit };
	struct svpi_create_xrcsrq x = { c, xrcd ? to_xrcd(xrcd)->handle : 0, cq ? cq->handle : 0 };
	struct svpi_create_tag_srq t = { c, cq ? cq->handle : 0, tags };
	struct svpi_home home;
	struct svpi_srq *q = svpi_home_new(&home, pd, sizeof(*q), SVPI_RESOURCE_SRQ);
	struct svpi_queue r;
	void *memory = NULL;
	int error = !q ? errno : xrcd ? svpi_call(s, SVPI_CREATE_XRC_SRQ, &x, sizeof(x), &r, sizeof(r)) :
				  tags ? svpi_call(s, SVPI_CREATE_TAG_SRQ, &t, sizeof(t), &r, sizeof(r)) :
					 svpi_call(s, SVPI_CREATE_SRQ, &c, sizeof(c), &r, sizeof(r));

	if (!error) {
		memory = svpi_memory(s, &r.ring);
		error = memory ? svpi_table_add(&to_context(pd->context)->srqs, r.handle, q) : EPROTO;
		if (error)
			svpi_destroy(s, SVPI_KIND_SRQ, r.handle);
	}
	if (error) {
		svpi_home_free(home, q);
		errno = error;
		return NULL;
	}
	q->home = home;
	svpi_producer_open(&q->ring, memory, r.depth, r.stride);
	q->svpi = s;
	q->number = r.number;
	q->tag_cq = tags ? cq : NULL;
	q->max_sge = a->max_sge = c.max_sge;
	a->max_wr = r.depth;
	q->srq.context = pd->context;
	q->srq.srq_context = srq_context;
	q->srq.pd = pd;
	q->srq.handle = r.handle;
	pthread_mutex_init(&q->srq.mutex, NULL);
	pthread_cond_init(&q->srq.cond, NULL);
	return q;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct svpi_srq *q = create_srq(pd, &a->attr, a->srq_context, NULL, 0, NULL);

	return q ? &q->srq : NULL;
}

struct ibv_srq *svpi_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *a)
{
	const uint32_t both = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct svpi_srq *q;
	bool xrc, tags;
	int error = 0;

	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd) {
		errno = EINVAL;
		return NULL;
	}
	xrc = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type == IBV_SRQT_XRC;
	tags = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type == IBV_SRQT_TM;
	if (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type > IBV_SRQT_TM)
		error = EOPNOTSUPP;
	else if (xrc && ((a->comp_mask & both) != both || !a->xrcd || !a->cq))
		error = EINVAL;
	else if (tags)
		error = svpi_check_tags(to_svpi(context), a);
	if (error) {
		errno = error;
		return NULL;
	}
	q = create_srq(a->pd, &a->attr, a->srq_context, xrc ? a->xrcd : NULL, tags ? a->tm_cap.max_num_tags : 0,
		       xrc || tags ? a->cq : NULL);
	if (q)
		q->xrc = xrc;
	return q ? &q->srq : NULL;
}

int svpi_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	if (!to_srq(srq)->xrc)
		return EOPNOTSUPP; /* others have no number that a peer could name */
	*number = to_srq(srq)->number;
	return 0;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *a, int mask)
{
	struct svpi_srq *s = to_srq(srq);
	int error = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		struct svpi_resize_args q = { srq->handle, a->max_wr };
		struct svpi_queue r;
		void *memory;

		svpi_spin_lock(&s->lock); /* nothing may be posted until the answer is here */
		error = svpi_call(s->svpi, SVPI_RESIZE_SRQ, &q, sizeof(q), &r, sizeof(r));
		if (!error && !(memory = svpi_memory(s->svpi, &r.ring)))
			error = EPROTO;
		else if (!error)
			svpi_producer_open(&s->ring, memory, r.depth, r.stride);
		svpi_spin_unlock(&s->lock);
	}
	if (!error && mask & IBV_SRQ_LIMIT) {
		struct svpi_modify_srq q = { srq->handle, a->srq_limit };

		error = svpi_call(s->svpi, SVPI_MODIFY_SRQ, &q, sizeof(q), NULL, 0);
	}
	return error;
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *a)
{
	struct svpi_handle_args q = { srq->handle };
	struct svpi_srq_info r;
	int error = svpi_call(to_srq(srq)->svpi, SVPI_QUERY_SRQ, &q, sizeof(q), &r, sizeof(r));

	if (!error)
		*a = (struct ibv_srq_attr){ r.depth, r.max_sge, r.limit };
	return error;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	int error = svpi_destroy(to_srq(srq)->svpi, SVPI_KIND_SRQ, srq->handle);

	if (error)
		return error;
	svpi_table_remove(&to_context(srq->context)->srqs, srq->handle);
	svpi_acknowledged(&srq->mutex, &srq->cond, &srq->events_completed, &to_srq(srq)->got);
	svpi_home_free(to_srq(srq)->home, srq);
	return 0;
}
