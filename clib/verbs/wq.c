/* Work queues, tables of them, and queue pairs that spread what they receive over such a table. A work queue is a raw packet queue
 * pair of the driver's of which only receives are used. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "object.h"

enum { HASH_TOEPLITZ = 1, MOST_LOG = 7, WQ_STATE = 1, WQ_CURRENT = 2, WQ_FLAGS = 4 };
enum { HAS_FLAGS = 1, OFFERED = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_DELAY_DROP };

/* A table of work queues. */
struct svpi_table_of_wqs {
	struct ibv_rwq_ind_table table;
	_Atomic int users; /* queue pairs */
	uint32_t n;
	struct svpi_wq *wqs[];
};

static int post_receives(struct ibv_wq *w, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return svpi_post_recv(((struct svpi_wq *)w)->qp, wr, bad);
}

/* ours returns the flags of CreateQP for those of a work queue. */
static uint32_t ours(uint32_t f)
{
	return (f & IBV_WQ_FLAGS_CVLAN_STRIPPING ? SVPI_QP_STRIP_VLAN : 0) | (f & IBV_WQ_FLAGS_SCATTER_FCS ? SVPI_QP_SCATTER_FCS : 0) |
	       (f & IBV_WQ_FLAGS_DELAY_DROP ? SVPI_QP_DELAY_DROP : 0);
}

/* refused returns why work queues cannot have such flags: 0 or an errno. There is no PCI bus whose writes could be padded. */
static int refused(struct ibv_context *context, uint32_t flags)
{
	return flags & ~(uint32_t)OFFERED || (flags && !(svpi_frame_offloads(context) & SVPI_FRAME_FLAGS)) ? EOPNOTSUPP : 0;
}

struct ibv_wq *svpi_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *a)
{
	struct ibv_qp_init_attr_ex q = { .send_cq = a->cq, .recv_cq = a->cq, .qp_type = IBV_QPT_RAW_PACKET, .pd = a->pd,
					 .cap = { 1, a->max_wr, 1, a->max_sge, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD };
	uint32_t flags = a->comp_mask & HAS_FLAGS ? a->create_flags : 0;
	struct svpi_wq *w = NULL;
	struct svpi_qp *qp = NULL;
	int error = !(svpi_frame_offloads(context) & SVPI_FRAME_RSS) || a->comp_mask & ~(uint32_t)HAS_FLAGS ? EOPNOTSUPP
		    : a->wq_type != IBV_WQT_RQ || !a->pd || !a->cq					    ? EINVAL
													    : refused(context, flags);

	if (!error && !(w = calloc(1, sizeof(*w))))
		error = ENOMEM;
	if (!error && !(qp = svpi_qp_new(a->pd, &q, ours(flags))))
		error = errno;
	if (error) {
		free(w);
		errno = error;
		return NULL;
	}
	w->qp = &qp->qp;
	a->max_wr = q.cap.max_recv_wr;
	a->max_sge = q.cap.max_recv_sge;
	w->wq = (struct ibv_wq){ .context = context, .wq_context = a->wq_context, .pd = a->pd, .cq = a->cq, .wq_num = w->qp->qp_num,
				 .handle = w->qp->handle, .state = IBV_WQS_RESET, .wq_type = a->wq_type, .post_recv = post_receives };
	pthread_mutex_init(&w->wq.mutex, NULL);
	pthread_cond_init(&w->wq.cond, NULL);
	qp->wq = w; /* its events are the work queue's from now on */
	return &w->wq;
}

static int move(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &a, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

/* to_state moves a work queue to another state. */
static int to_state(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_qp *qp = ((struct svpi_wq *)wq)->qp;
	int error;

	switch (state) {
	case IBV_WQS_RESET: return move(qp, IBV_QPS_RESET);
	case IBV_WQS_ERR: return move(qp, IBV_QPS_ERR);
	default:
		if (wq->state == IBV_WQS_RDY)
			return 0;
		error = move(qp, IBV_QPS_INIT);
		return error ? error : move(qp, IBV_QPS_RTR);
	}
}

/* reaches tells whether a work queue can go to a state. */
static bool reaches(const struct ibv_wq *wq, enum ibv_wq_state state)
{
	return state == IBV_WQS_RESET || (state == IBV_WQS_ERR && wq->state != IBV_WQS_RESET) ||
	       (state == IBV_WQS_RDY && wq->state != IBV_WQS_ERR);
}

int svpi_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *a)
{
	struct svpi_set_frame_flags f = { .qp = wq->handle, .flags = ours(a->flags & a->flags_mask), .mask = ours(a->flags_mask) };
	struct svpi *s = to_svpi(wq->context);
	int error = 0;

	if (a->attr_mask & ~(uint32_t)(WQ_STATE | WQ_CURRENT | WQ_FLAGS))
		return EOPNOTSUPP;
	if (!(a->attr_mask & (WQ_STATE | WQ_FLAGS)) || (a->attr_mask & WQ_CURRENT && a->curr_wq_state != wq->state) ||
	    (a->attr_mask & WQ_STATE && !reaches(wq, a->wq_state)))
		return EINVAL;
	if (a->attr_mask & WQ_FLAGS && !(error = refused(wq->context, a->flags_mask)) && a->flags_mask)
		error = svpi_call(s, SVPI_SET_FRAME_FLAGS, &f, sizeof(f), NULL, 0);
	if (!error && a->attr_mask & WQ_STATE && !(error = to_state(wq, a->wq_state)))
		wq->state = a->wq_state;
	return error;
}

/* An event that is given to the program counts at the queue pair, and is acknowledged at the work queue. */
int svpi_destroy_wq(struct ibv_wq *wq)
{
	struct svpi_wq *w = (struct svpi_wq *)wq;
	int error = w->tables ? EBUSY : svpi_destroy_qp(w->qp, &wq->mutex, &wq->cond, &wq->events_completed);

	if (!error)
		free(w);
	return error;
}

struct ibv_rwq_ind_table *svpi_create_rwq_ind_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *a)
{
	static _Atomic int last;
	struct svpi_table_of_wqs *t = NULL;
	uint32_t n = a->log_ind_tbl_size <= MOST_LOG ? 1u << a->log_ind_tbl_size : 0;
	int error = !(svpi_frame_offloads(context) & SVPI_FRAME_RSS) || a->comp_mask ? EOPNOTSUPP : !n || !a->ind_tbl ? EINVAL : 0;

	for (uint32_t i = 0; !error && i < n; i++)
		if (!a->ind_tbl[i] || a->ind_tbl[i]->context != context)
			error = EINVAL;
	if (!error && !(t = calloc(1, sizeof(*t) + n * sizeof(*t->wqs))))
		error = ENOMEM;
	if (error) {
		errno = error;
		return NULL;
	}
	t->n = n;
	for (uint32_t i = 0; i < n; i++) {
		t->wqs[i] = (struct svpi_wq *)a->ind_tbl[i];
		t->wqs[i]->tables++;
	}
	t->table.context = context;
	t->table.ind_tbl_handle = t->table.ind_tbl_num = ++last;
	return &t->table;
}

int svpi_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	struct svpi_table_of_wqs *t = (struct svpi_table_of_wqs *)table;

	if (t->users)
		return EBUSY;
	for (uint32_t i = 0; i < t->n; i++)
		t->wqs[i]->tables--;
	free(t);
	return 0;
}

/* refused_flags tells whether a queue pair that spreads cannot have such flags. It sends nothing, so that nothing it sends comes back. */
static bool refused_flags(struct ibv_context *context, uint32_t flags)
{
	return flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB || (flags && !(svpi_frame_offloads(context) & SVPI_FRAME_FLAGS));
}

struct ibv_qp *svpi_create_rss_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	const uint32_t need = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	const struct ibv_rx_hash_conf *h = &a->rx_hash_conf;
	struct svpi_table_of_wqs *t = (struct svpi_table_of_wqs *)a->rwq_ind_tbl;
	struct svpi_create_rss c = { .fields = (uint32_t)h->rx_hash_fields_mask };
	struct svpi_qp *q = NULL;
	uint32_t handle;
	int error = 0;

	if (a->qp_type != IBV_QPT_RAW_PACKET || a->comp_mask & ~(need | IBV_QP_INIT_ATTR_CREATE_FLAGS) ||
	    (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && refused_flags(context, a->create_flags)) || h->rx_hash_function != HASH_TOEPLITZ ||
	    h->rx_hash_fields_mask > 0xff)
		error = EOPNOTSUPP;
	else if ((a->comp_mask & need) != need || !t || t->table.context != context || !a->pd || !h->rx_hash_key ||
		 h->rx_hash_key_len != sizeof(c.key))
		error = EINVAL;
	else if (!(q = calloc(1, sizeof(*q))))
		error = ENOMEM;
	if (!error) {
		memcpy(c.key, h->rx_hash_key, sizeof(c.key));
		c.entries = t->n;
		for (uint32_t i = 0; i < t->n; i++)
			c.table[i] = t->wqs[i]->qp->handle;
		error = svpi_call(to_svpi(context), SVPI_CREATE_RSS, &c, sizeof(c), &handle, sizeof(handle));
	}
	if (error) {
		free(q);
		errno = error;
		return NULL;
	}
	t->users++;
	q->svpi = to_svpi(context);
	q->spreads = t;
	q->qp.context = context;
	q->qp.qp_context = a->qp_context;
	q->qp.pd = a->pd;
	q->qp.handle = handle;
	q->qp.qp_type = a->qp_type;
	pthread_mutex_init(&q->qp.mutex, NULL);
	pthread_cond_init(&q->qp.cond, NULL);
	return &q->qp;
}

int svpi_destroy_rss_qp(struct svpi_qp *q)
{
	int error = svpi_destroy(q->svpi, SVPI_KIND_RSS, q->qp.handle);

	if (error)
		return error;
	q->spreads->users--;
	free(q);
	return 0;
}

void svpi_fill_frame_caps(struct ibv_context *context, struct ibv_device_attr_ex *a)
{
	const uint32_t types = 1u << IBV_QPT_RAW_PACKET;
	uint16_t offloads = svpi_frame_offloads(context);

	if (offloads & SVPI_FRAME_CHECKSUMS)
		a->raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	if (offloads & SVPI_FRAME_FLAGS)
		a->raw_packet_caps |= IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS | IBV_RAW_PACKET_CAP_DELAY_DROP;
	if (offloads & SVPI_FRAME_LARGE_SENDS)
		a->tso_caps = (struct ibv_tso_caps){ SVPI_MOST_LARGE_SEND, types };
	if (!(offloads & SVPI_FRAME_RSS))
		return;
	a->rss_caps = (struct ibv_rss_caps){ types, SVPI_MOST_FLOWS, 1u << MOST_LOG, 0xff, HASH_TOEPLITZ };
	a->max_wq_type_rq = (uint32_t)a->orig_attr.max_qp;
}
