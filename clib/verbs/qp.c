/* Queue pairs. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "object.h"

static uint32_t mtu_bytes(enum ibv_mtu m) { return m >= IBV_MTU_256 && m <= IBV_MTU_4096 ? 128u << m : 0; }

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu m = IBV_MTU_256;

	while (m < IBV_MTU_4096 && mtu_bytes(m) < bytes)
		m++;
	return m;
}

static int open_rings(struct svpi *s, struct svpi_qp *q, const struct svpi_queue_pair *r, bool recv)
{
	void *send = svpi_memory(s, &r->send), *receive = recv ? svpi_memory(s, &r->recv) : NULL;

	if (!send || (recv && !receive))
		return EPROTO;
	svpi_producer_open(&q->send, send, r->send_depth, r->send_stride);
	if (recv)
		svpi_producer_open(&q->recv, receive, r->recv_depth, r->recv_stride);
	return 0;
}

/* operations returns the operations that a type of queue pair has. */
static uint32_t operations(const struct svpi *s, enum ibv_qp_type type)
{
	const uint32_t ud = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM;
	const uint32_t uc = ud | 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM | 1u << IBV_WR_LOCAL_INV |
			    1u << IBV_WR_BIND_MW | 1u << IBV_WR_SEND_WITH_INV;
	const uint32_t rc = uc | 1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint32_t placed = svpi_has_placed(s) ? 1u << IBV_WR_ATOMIC_WRITE | 1u << IBV_WR_FLUSH : 0;
	const uint32_t xrc = rc & ~(1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_BIND_MW);

	if (type == IBV_QPT_RAW_PACKET)
		return 1u << IBV_WR_SEND;
	return type == IBV_QPT_RC ? rc | placed : type == IBV_QPT_UC ? uc : type == IBV_QPT_XRC_SEND ? xrc : type == IBV_QPT_UD ? ud : 0;
}

/* possible tells whether a type of queue pair has all of the operations in ops, bits of IBV_QP_EX_WITH_. large says that it has large
 * sends. */
static bool possible(const struct svpi *s, enum ibv_qp_type type, bool large, uint64_t ops)
{
	static const uint8_t of[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
				      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
				      IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO, IBV_WR_FLUSH,
				      IBV_WR_ATOMIC_WRITE };

	for (unsigned i = 0; i < sizeof(of); i++)
		if (ops & 1u << i && !((operations(s, type) | (large ? 1u << IBV_WR_TSO : 0)) & 1u << of[i]))
			return false;
	return !(ops & ~(uint64_t)IBV_QP_EX_WITH_ALL);
}

/* room returns how much inline data fits into the space of an entry's SGEs: programs use what they are granted beyond
 * what they asked for (rdma_xclient asks for none). */
static uint32_t room(const struct ibv_qp_cap *cap)
{
	uint32_t sges = 16 * at_least_1(cap->max_send_sge);

	return cap->max_inline_data > sges ? cap->max_inline_data : sges;
}

/* flags returns the flags of CreateQP for those of a queue pair's attributes. */
static uint32_t flags(const struct ibv_qp_init_attr_ex *a)
{
	uint32_t f = a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0;

	return (a->sq_sig_all ? SVPI_QP_SIGNAL_ALL : 0) | (f & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ? SVPI_QP_BLOCK_SELF : 0) |
	       (f & IBV_QP_CREATE_CVLAN_STRIPPING ? SVPI_QP_STRIP_VLAN : 0) | (f & IBV_QP_CREATE_SCATTER_FCS ? SVPI_QP_SCATTER_FCS : 0);
}

/* flagged tells whether a type of queue pair can have these flags. */
static bool flagged(struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) || !a->create_flags)
		return true;
	if (a->qp_type == IBV_QPT_RAW_PACKET)
		return svpi_frame_offloads(context) & SVPI_FRAME_FLAGS &&
		       !(a->create_flags & ~(uint32_t)(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS));
	return a->create_flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB && a->qp_type == IBV_QPT_UD &&
	       to_svpi(context)->about.minor >= SVPI_QP_FLAGS_MINOR;
}

/* header_room returns the space in an entry that the headers of a large send take, in front of its SGEs. */
static uint32_t header_room(uint32_t n) { return (n + 15) & ~15u; }

/* with_headers returns how much inline data fits into an entry that has room for the headers of a large send, too. */
static uint32_t with_headers(const struct ibv_qp_cap *cap, uint32_t headers)
{
	uint32_t large = header_room(headers) + 16 * at_least_1(cap->max_send_sge);

	return headers && large > room(cap) ? large : room(cap);
}

struct svpi_qp *svpi_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *a, uint32_t more)
{
	uint16_t headers = a->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? a->max_tso_header : 0;
	struct svpi *s = to_svpi(pd->context);
	struct svpi_create_qp c = { .pd = pd->handle, .send_cq = a->send_cq ? a->send_cq->handle : 0,
		.recv_cq = a->recv_cq ? a->recv_cq->handle : 0, .srq = a->srq ? a->srq->handle : 0,
		.send_depth = at_least_1(a->cap.max_send_wr), .recv_depth = a->srq ? 0 : at_least_1(a->cap.max_recv_wr),
		.send_sge = at_least_1(a->cap.max_send_sge), .recv_sge = a->srq ? 0 : at_least_1(a->cap.max_recv_sge),
		.inline_bytes = with_headers(&a->cap, headers),
		.flags = flags(a) | more };
	bool receives = !a->srq && a->qp_type != IBV_QPT_XRC_SEND;
	struct svpi_queue_pair r;
	struct svpi_home home;
	struct svpi_qp *q;
	int error = 0;

	switch (a->qp_type) {
	case IBV_QPT_RC: c.type = 1; break;
	case IBV_QPT_UC: c.type = 2; break;
	case IBV_QPT_UD: c.type = 3; break;
	case IBV_QPT_XRC_SEND:
		c.type = SVPI_XRC_INITIATOR;
		c.recv_cq = c.srq = c.recv_depth = c.recv_sge = 0;
		error = svpi_has_xrc(s) ? 0 : EOPNOTSUPP;
		break;
	case IBV_QPT_RAW_PACKET:
		c.type = SVPI_RAW_PACKET;
		error = svpi_has_flows(s) ? 0 : EOPNOTSUPP;
		break;
	default: error = a->qp_type == IBV_QPT_XRC_RECV ? EINVAL : EOPNOTSUPP;
	}
	q = error ? NULL : svpi_home_new(&home, pd, sizeof(*q), SVPI_RESOURCE_QP);
	if (!error && !q)
		error = errno;
	if (q)
		c.context = (uintptr_t)q;
	if (!error)
		error = svpi_call(s, SVPI_CREATE_QP, &c, sizeof(c), &r, sizeof(r));
	if (!error && ((error = open_rings(s, q, &r, receives)) ||
		       (error = svpi_table_add(&to_context(pd->context)->qps, r.handle, q))))
		svpi_destroy(s, SVPI_KIND_QP, r.handle);
	if (error) {
		if (q)
			svpi_home_free(home, q);
		errno = error;
		return NULL;
	}
	q->home = home;
	q->svpi = s;
	q->send_sge = c.send_sge;
	q->recv_sge = c.recv_sge;
	q->inline_max = r.inline_bytes;
	q->send_depth = a->cap.max_send_wr = r.send_depth;
	q->recv_depth = a->cap.max_recv_wr = r.recv_depth;
	a->cap.max_send_sge = c.send_sge;
	a->cap.max_recv_sge = c.recv_sge;
	a->cap.max_inline_data = r.inline_bytes;
	q->signal_all = a->sq_sig_all != 0;
	q->operations = operations(s, a->qp_type) | (headers ? 1u << IBV_WR_TSO : 0);
	q->tso_header = headers < SVPI_MOST_LARGE_HEADERS ? headers : SVPI_MOST_LARGE_HEADERS;
	q->checksums = a->qp_type == IBV_QPT_RAW_PACKET && svpi_frame_offloads(pd->context) & SVPI_FRAME_CHECKSUMS;
	q->qp.context = pd->context;
	q->qp.qp_context = a->qp_context;
	q->qp.pd = pd;
	q->qp.send_cq = a->send_cq;
	q->qp.recv_cq = a->qp_type == IBV_QPT_XRC_SEND ? NULL : a->recv_cq;
	q->qp.srq = a->qp_type == IBV_QPT_XRC_SEND ? NULL : a->srq;
	q->qp.handle = r.handle;
	q->qp.qp_num = r.number;
	q->qp.state = IBV_QPS_RESET;
	q->qp.qp_type = a->qp_type;
	pthread_mutex_init(&q->qp.mutex, NULL);
	pthread_cond_init(&q->qp.cond, NULL);
	svpi_slot_add(s, &q->direct, r.handle, r.number);
	return q;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ibv_qp_init_attr_ex x = { .qp_context = a->qp_context, .send_cq = a->send_cq, .recv_cq = a->recv_cq,
					 .srq = a->srq, .cap = a->cap, .qp_type = a->qp_type, .sq_sig_all = a->sq_sig_all };
	struct svpi_qp *q = svpi_qp_new(pd, &x, 0);

	if (!q)
		return NULL;
	a->cap = x.cap;
	return &q->qp;
}

struct ibv_qp *svpi_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool large = a->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && a->max_tso_header;
	struct svpi_qp *q;

	if (a->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return svpi_create_rss_qp(context, a);
	if (a->qp_type == IBV_QPT_RAW_PACKET && svpi_frame_offloads(context) & SVPI_FRAME_LARGE_SENDS)
		known |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	if (a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->qp_type == IBV_QPT_XRC_RECV) {
		q = svpi_create_target(context, a);
		return q ? &q->qp : NULL;
	}
	if (a->qp_type == IBV_QPT_XRC_SEND)
		known |= IBV_QP_INIT_ATTR_XRCD; /* which only a target needs */
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd || a->comp_mask & ~known || !flagged(context, a) ||
	    (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !possible(to_svpi(context), a->qp_type, large, a->send_ops_flags))) {
		errno = a->comp_mask & IBV_QP_INIT_ATTR_PD ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	if (large && a->max_tso_header > SVPI_MOST_HEADER_ROOM) {
		errno = EINVAL;
		return NULL;
	}
	q = svpi_qp_new(a->pd, a, 0);
	if (!q)
		return NULL;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		svpi_fill_send_ops(q);
	return &q->qp;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) { return to_qp(qp)->ex.wr_start ? &to_qp(qp)->ex : NULL; }

int svpi_destroy_qp(struct ibv_qp *qp, pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged)
{
	int error = svpi_destroy(to_qp(qp)->svpi, SVPI_KIND_QP, qp->handle);

	if (error)
		return error;
	svpi_table_remove(&to_context(qp->context)->qps, qp->handle);
	svpi_direct_forget(to_qp(qp));
	svpi_acknowledged(mutex, cond, acknowledged, &to_qp(qp)->got);
	svpi_home_free(to_qp(qp)->home, qp);
	return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (to_qp(qp)->spreads)
		return svpi_destroy_rss_qp(to_qp(qp));
	return svpi_destroy_qp(qp, &qp->mutex, &qp->cond, &qp->events_completed);
}

/* The driver's counterparts of the bits of ibv_qp_attr_mask. */
enum { M_STATE = 1 << 0, M_ACCESS = 1 << 1, M_PKEY = 1 << 2, M_QKEY = 1 << 3, M_ROUTE = 1 << 4, M_MTU = 1 << 5,
       M_TIMEOUT = 1 << 6, M_RETRY = 1 << 7, M_RNR_RETRY = 1 << 8, M_MIN_RNR = 1 << 9, M_RQ_PSN = 1 << 10,
       M_SQ_PSN = 1 << 11, M_INITIATOR = 1 << 12, M_RESPONDER = 1 << 13, M_DEST = 1 << 14, M_SQD_NOTIFY = 1 << 16 };

static const struct { int theirs; uint32_t ours; } bits[] = {
	{ IBV_QP_STATE, M_STATE }, { IBV_QP_ACCESS_FLAGS, M_ACCESS }, { IBV_QP_PKEY_INDEX, M_PKEY }, { IBV_QP_QKEY, M_QKEY },
	{ IBV_QP_AV, M_ROUTE }, { IBV_QP_PATH_MTU, M_MTU }, { IBV_QP_TIMEOUT, M_TIMEOUT }, { IBV_QP_RETRY_CNT, M_RETRY },
	{ IBV_QP_RNR_RETRY, M_RNR_RETRY }, { IBV_QP_MIN_RNR_TIMER, M_MIN_RNR }, { IBV_QP_RQ_PSN, M_RQ_PSN },
	{ IBV_QP_SQ_PSN, M_SQ_PSN }, { IBV_QP_MAX_QP_RD_ATOMIC, M_INITIATOR }, { IBV_QP_MAX_DEST_RD_ATOMIC, M_RESPONDER },
	{ IBV_QP_DEST_QPN, M_DEST }, { IBV_QP_EN_SQD_ASYNC_NOTIFY, M_SQD_NOTIFY },
};

/* The rights that a queue pair grants its peer: those of atomic writes and flushes only where the driver has these. Programs also give rights of regions here (MW_BIND, RELAXED_ORDERING):
 * the kernel takes them, and no device makes anything of them. */
enum { QP_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
       PLACED_RIGHTS = QP_RIGHTS | IBV_ACCESS_FLUSH_GLOBAL };

/* Attributes that are handled here, or carry no information. */
enum { ELSEWHERE = IBV_QP_CUR_STATE | IBV_QP_PORT | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT };

/* path_rate returns the rate of a path in kbit/s, 0 if it does not limit. */
static uint32_t path_rate(uint8_t rate)
{
	int mbps = rate == IBV_RATE_MAX ? 0 : ibv_rate_to_mbps(rate);

	return mbps > 0 && mbps < (int)(UINT32_MAX / 1000) ? (uint32_t)mbps * 1000 : 0;
}

/* limit tells the driver the rate of a queue pair that sends: the lower of its program's and that of its path. */
static int limit(struct svpi_qp *q)
{
	struct svpi_limit_qp l = { .qp = q->qp.handle, .rate = q->limit.rate_limit, .max_burst = q->limit.max_burst_sz,
				   .typical_packet = q->limit.typical_pkt_sz };

	uint32_t path = svpi_has_static_rates(q->svpi) ? 0 : path_rate(q->static_rate); /* newer ones know it */

	if (path && (!l.rate || path < l.rate))
		l.rate = path;
	if (!l.rate && !q->limited)
		return 0;
	int error = svpi_call(q->svpi, SVPI_LIMIT_QP, &l, sizeof(l), NULL, 0);

	if (!error)
		q->limited = l.rate != 0;
	return error;
}

int svpi_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *a)
{
	struct svpi_qp *q = to_qp(qp);
	struct ibv_qp_rate_limit_attr before = q->limit;
	int error;

	if (!svpi_has_limits(q->svpi) || q->spreads || qp->qp_type == IBV_QPT_XRC_RECV)
		return EOPNOTSUPP;
	if (a->comp_mask || (!a->rate_limit && (a->max_burst_sz || a->typical_pkt_sz)))
		return EINVAL;
	q->limit = *a;
	error = limit(q);
	if (error)
		q->limit = before;
	return error;
}

/* limits follows a change of a queue pair with what it says of rates. */
static int limits(struct svpi_qp *q, const struct ibv_qp_attr *a, int mask)
{
	if (!svpi_has_limits(q->svpi))
		return 0;
	if (mask & IBV_QP_AV)
		q->static_rate = a->ah_attr.static_rate;
	if (mask & IBV_QP_RATE_LIMIT)
		q->limit = (struct ibv_qp_rate_limit_attr){ .rate_limit = a->rate_limit };
	if (q->qp.state != IBV_QPS_RTS && q->qp.state != IBV_QPS_SQD)
		return 0; /* when it sends */
	return mask & (IBV_QP_STATE | IBV_QP_AV | IBV_QP_RATE_LIMIT) ? limit(q) : 0;
}

/* begin_anew follows a reset: the driver has emptied the rings, and whatever completed before is not to be seen any
 * more (IBA 10.3.1.1 allows either; programs know adapters that drop it). */
static void begin_anew(struct svpi_qp *q)
{
	q->limit = (struct ibv_qp_rate_limit_attr){ 0 };
	q->static_rate = IBV_RATE_MAX;
	q->limited = false;
	if (q->send.h) {
		q->send.next = atomic_load(&q->send.h->producer);
		q->send.seen = atomic_load(&q->send.h->consumer);
	}
	if (q->recv.h) {
		q->recv.next = atomic_load(&q->recv.h->producer);
		q->recv.seen = atomic_load(&q->recv.h->consumer);
	}
	if (q->qp.send_cq)
		svpi_cq_forget(q->qp.send_cq, q->qp.qp_num);
	if (q->qp.recv_cq && q->qp.recv_cq != q->qp.send_cq)
		svpi_cq_forget(q->qp.recv_cq, q->qp.qp_num);
	if (q->qp.srq && to_srq(q->qp.srq)->tag_cq)
		svpi_cq_forget(to_srq(q->qp.srq)->tag_cq, q->qp.qp_num);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct svpi_modify_qp m = { .qp = qp->handle, .state = a->qp_state, .access = a->qp_access_flags & (svpi_has_placed(to_qp(qp)->svpi) ? PLACED_RIGHTS : QP_RIGHTS),
		.p_key_index = a->pkey_index, .q_key = a->qkey, .mtu = mtu_bytes(a->path_mtu), .timeout = a->timeout,
		.retry = a->retry_cnt, .rnr_retry = a->rnr_retry, .min_rnr_timer = a->min_rnr_timer,
		.rqpsn = a->rq_psn & 0xffffff, .sqpsn = a->sq_psn & 0xffffff, .initiator_depth = a->max_rd_atomic,
		.responder_resources = a->max_dest_rd_atomic, .sqd_notify = a->en_sqd_async_notify,
		.dest_qpn = a->dest_qp_num & 0xffffff };
	int known = ELSEWHERE, error;

	if (to_qp(qp)->spreads)
		return EOPNOTSUPP; /* it has no states */
	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		known |= bits[i].theirs;
		if (mask & bits[i].theirs)
			m.mask |= bits[i].ours;
	}
	if (mask & ~known || (mask & IBV_QP_RATE_LIMIT && !svpi_has_limits(to_qp(qp)->svpi)))
		return EOPNOTSUPP;
	if (mask & IBV_QP_PORT && a->port_num != 1)
		return EINVAL;
	if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state != IBV_MIG_MIGRATED)
		return EOPNOTSUPP; /* there are no alternate paths */
	if (mask & IBV_QP_AV && (error = svpi_route(qp->context, &a->ah_attr, &m.route)))
		return error;
	error = svpi_call(to_qp(qp)->svpi, SVPI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	if (error)
		return error;
	if (mask & IBV_QP_STATE) {
		qp->state = a->qp_state;
		if (a->qp_state == IBV_QPS_RESET)
			begin_anew(to_qp(qp));
	}
	return limits(to_qp(qp), a, mask);
}

EXPORT int svpi_qp_attributes(const struct svpi_modify_qp *m, struct ibv_qp_attr *a)
{
	int mask = 0;

	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++)
		if (m->mask & bits[i].ours)
			mask |= bits[i].theirs;
	memset(a, 0, sizeof(*a));
	a->qp_state = a->cur_qp_state = m->state;
	a->path_mtu = m->mtu ? mtu_of(m->mtu) : 0;
	a->path_mig_state = IBV_MIG_MIGRATED;
	a->qkey = m->q_key;
	a->rq_psn = m->rqpsn;
	a->sq_psn = m->sqpsn;
	a->dest_qp_num = m->dest_qpn;
	a->qp_access_flags = m->access;
	a->pkey_index = (uint16_t)m->p_key_index;
	a->max_rd_atomic = m->initiator_depth;
	a->max_dest_rd_atomic = m->responder_resources;
	a->min_rnr_timer = m->min_rnr_timer;
	a->timeout = m->timeout;
	a->retry_cnt = m->retry;
	a->rnr_retry = m->rnr_retry;
	a->port_num = a->ah_attr.port_num = 1;
	a->ah_attr.is_global = !m->route.lid || m->route.path & 0x80; /* on InfiniBand not always */
	a->ah_attr.dlid = m->route.lid;
	a->ah_attr.src_path_bits = m->route.path & 0x7f;
	a->ah_attr.sl = m->route.sl;
	a->ah_attr.grh.sgid_index = (uint8_t)m->route.src_index;
	a->ah_attr.grh.traffic_class = m->route.traffic_class;
	a->ah_attr.grh.hop_limit = m->route.hop_limit;
	a->ah_attr.grh.flow_label = m->route.flow_label;
	memcpy(a->ah_attr.grh.dgid.raw, m->route.addr, 16);
	return mask;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
	struct svpi_qp *q = to_qp(qp);
	struct svpi_handle_args h = { qp->handle };
	struct svpi_qp_info r;
	int error = q->spreads ? EOPNOTSUPP : svpi_call(q->svpi, SVPI_QUERY_QP, &h, sizeof(h), &r, sizeof(r));

	(void)mask; /* all attributes are returned */
	if (error)
		return error;
	svpi_qp_attributes(&r.attr, a);
	qp->state = a->qp_state;
	a->cap = (struct ibv_qp_cap){ q->send_depth, q->recv_depth, q->send_sge, q->recv_sge, q->inline_max };
	a->sq_draining = r.draining != 0;
	a->rate_limit = q->limit.rate_limit;
	a->ah_attr.static_rate = q->static_rate;
	memset(init, 0, sizeof(*init));
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	init->srq = qp->srq;
	init->cap = a->cap;
	init->qp_type = qp->qp_type;
	init->sq_sig_all = q->signal_all;
	return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}

/* There are no enhanced connection attributes. Programs that were told that these are all 0 would pass that on to
 * rdma_set_local_ece, which takes no vendor id of 0. */
EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return errno = EOPNOTSUPP;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return errno = EOPNOTSUPP;
}
