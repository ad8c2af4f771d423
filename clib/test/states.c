/* States and attributes: what the kernel takes and refuses. */
#include "bed.h"

#include <errno.h>

static struct end a, b;

static void begin(void)
{
	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
}

static void finish(void)
{
	close_end(&a);
	close_end(&b);
}

static int extended_post(struct end *e)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(x);
	ibv_wr_set_sge(x, e->mr->lkey, (uintptr_t)e->buf, 8);
	return ibv_wr_complete(x);
}

/* IBA 10.3.1: posting is an immediate error before RTS for sends, and in Reset for receives. Both are allowed in the
 * error state. */
static void posting(void)
{
	struct ibv_qp_init_attr_ex x = { .cap = { DEPTH, DEPTH, 4, 4, 64 }, .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr *bad = NULL, wr;
	struct ibv_sge s;

	begin();
	CHECK(ibv_destroy_qp(a.qp) == 0, ".");
	x.send_cq = x.recv_cq = a.cq;
	x.pd = a.pd;
	MUST(a.qp = ibv_create_qp_ex(a.ctx, &x));
	wr = request(&a, &b, IBV_WR_SEND, &s, 1, 0, 8);
	CHECK(ibv_post_send(a.qp, &wr, &bad) == EINVAL && bad == &wr && extended_post(&a) == EINVAL, ".");
	CHECK(post_recv(&a, 2, 0, 8) == EINVAL, ".");
	to_init(&a);
	to_init(&b);
	CHECK(post(&a, &wr) == EINVAL && extended_post(&a) == EINVAL && post_recv(&a, 2, 0, 8) == 0, ".");
	to_rtr(&a, &b);
	CHECK(post(&a, &wr) == EINVAL && extended_post(&a) == EINVAL, ".");
	to_rts(&a);
	to_rtr(&b, &a);
	to_rts(&b);
	for (uint64_t id = 3; id < 5; id++)
		CHECK(post_recv(&b, id, 0, 8) == 0, ".");
	CHECK(post(&a, &wr) == 0 && extended_post(&a) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL); /* and none of those that were refused */
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL);
	EXPECT(&b, IBV_WC_SUCCESS, 3, NULL);
	EXPECT(&b, IBV_WC_SUCCESS, 4, NULL);
	CHECK(ibv_modify_qp(a.qp, &error, IBV_QP_STATE) == 0, ".");
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 2, NULL);
	CHECK(post(&a, &wr) == 0 && post_recv(&a, 5, 0, 8) == 0, ".");
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 1, NULL);
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 5, NULL);
	finish();
}

/* qp_access_flags takes the rights of regions as well, which mean nothing there. */
static void rights(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_RELAXED_ORDERING | 1u << 30 };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr;
	struct ibv_sge s;

	begin();
	CHECK(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, ".");
	join(&a, &b);
	CHECK(ibv_query_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS, &init) == 0 && attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE, ".");
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL);
	wr = request(&a, &b, IBV_WR_RDMA_READ, &s, 2, 0, 8); /* a right that it does not have */
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_REM_INV_REQ_ERR, 2, NULL);
	finish();
}

static void receive_at(struct end *e, uint64_t id, struct ibv_sge *list, int n)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = list, .num_sge = n };

	CHECK(ibv_post_recv(e->qp, &wr, &bad) == 0, ".");
}

/* Elements of a receive are checked when bytes reach them. */
static void receives(void)
{
	struct ibv_sge s, none = { (uintptr_t)a.buf, 100, 0 }, two[2];
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	begin();
	join(&a, &b);
	two[0] = (struct ibv_sge){ (uintptr_t)b.buf, 50, b.mr->lkey };
	two[1] = none;
	receive_at(&b, 1, &none, 1);
	receive_at(&b, 2, two, 2);
	receive_at(&b, 3, &none, 1);
	receive_at(&b, 4, two, 2);
	for (uint64_t id = 1; id <= 4; id++) {
		static const uint32_t length[] = { 0, 0, 50, 40, 51 };

		wr = request(&a, &b, id == 3 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, &s, id, 0, length[id]);
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&b, id < 4 ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, id, &wc);
		CHECK(id == 4 || wc.byte_len == length[id], ": %u", wc.byte_len);
		EXPECT(&a, id < 4 ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR, id, NULL);
	}
	finish();
}

/* A queue pair that is reset leaves no completions behind, and those of others stay. */
static void anew(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET }, error = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge s;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct end c;

	begin();
	join(&a, &b);
	c = a; /* a second queue pair with the same completion queue */
	make_qp(&c, IBV_QPT_RC, NULL);
	to_init(&c);
	for (uint64_t id = 1; id <= 4; id++) {
		CHECK(post_recv(id % 2 ? &a : &c, id, 0, 8) == 0, ".");
		wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 10 + id, 0, 8);
		CHECK(post(&a, &wr) == 0, ".");
	}
	CHECK(ibv_modify_qp(a.qp, &error, IBV_QP_STATE) == 0 && ibv_modify_qp(c.qp, &error, IBV_QP_STATE) == 0, ".");
	CHECK(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE) == 0 && ibv_modify_qp(b.qp, &reset, IBV_QP_STATE) == 0, ".");
	EXPECT(&c, IBV_WC_WR_FLUSH_ERR, 2, NULL);
	EXPECT(&c, IBV_WC_WR_FLUSH_ERR, 4, NULL);
	CHECK(ibv_poll_cq(a.cq, 1, &wc) == 0, ".");
	join(&a, &b);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 20, 0, 8);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 20, NULL);
	CHECK(ibv_destroy_qp(c.qp) == 0, ".");
	finish();
}

/* A completion queue does not become smaller than what it holds. */
static void resizing(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	int size;

	begin();
	size = a.cq->cqe;
	to_init(&a);
	CHECK(ibv_modify_qp(a.qp, &error, IBV_QP_STATE) == 0, ".");
	for (uint64_t id = 1; id <= 6; id++)
		CHECK(post_recv(&a, id, 0, 8) == 0, "."); /* is flushed */
	CHECK(ibv_resize_cq(a.cq, 1) == EINVAL && ibv_resize_cq(a.cq, 4) == EINVAL && a.cq->cqe == size, ": %d", a.cq->cqe);
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 1, NULL);
	CHECK(ibv_resize_cq(a.cq, 5) == 0 && a.cq->cqe >= 5, ": %d", a.cq->cqe);
	for (uint64_t id = 2; id <= 6; id++)
		EXPECT(&a, IBV_WC_WR_FLUSH_ERR, id, NULL);
	CHECK(ibv_resize_cq(a.cq, 1) == 0, ".");
	finish();
}

/* There are no enhanced connection attributes: rdma_set_local_ece(3) takes none without a vendor. */
static void no_ece(void)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	begin();
	CHECK(ibv_set_ece(a.qp, &ece) == EOPNOTSUPP && ibv_query_ece(a.qp, &ece) == EOPNOTSUPP, ".");
	ece.vendor_id = 0;
	CHECK(ibv_set_ece(a.qp, &ece) == EOPNOTSUPP, ".");
	finish();
}

/* took writes 640 KB and returns how long that took, in us. */
static uint64_t took(void)
{
	uint64_t from = microseconds();
	struct ibv_sge s;

	for (uint64_t id = 1; id <= 10; id++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, id, 0, BYTES);

		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, id, NULL);
	}
	return microseconds() - from;
}

/* rated checks that a queue pair sends no faster than its program, or its path, lets it: whatever the machine does meanwhile, 640 KB at
 * 10 MB/s take 64 ms, but for what may leave at once. */
static void rated(void)
{
	struct ibv_qp_rate_limit_attr l = { .rate_limit = 80000, .max_burst_sz = 20000, .typical_pkt_sz = 1024 }, none = { 0 };
	struct ibv_qp_rate_limit_attr bad[] = { { .max_burst_sz = 1 }, { .typical_pkt_sz = 1 }, { .rate_limit = 1, .comp_mask = 1 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .rate_limit = 80000 }, got, reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr init;
	struct ibv_device_attr_ex d;
	uint64_t us;

	begin();
	CHECK(ibv_query_device_ex(a.ctx, NULL, &d) == 0 && d.packet_pacing_caps.qp_rate_limit_min == 1 &&
	      d.packet_pacing_caps.qp_rate_limit_max == UINT32_MAX && d.packet_pacing_caps.supported_qpts & 1 << IBV_QPT_RC, ".");
	CHECK(ibv_modify_qp_rate_limit(a.qp, &l) == EINVAL, "."); /* it does not send yet */
	join(&a, &b);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(ibv_modify_qp_rate_limit(a.qp, &bad[i]) == EINVAL, ": %zu", i);
	CHECK(ibv_modify_qp_rate_limit(a.qp, &l) == 0, ".");
	CHECK(ibv_query_qp(a.qp, &got, IBV_QP_RATE_LIMIT, &init) == 0 && got.rate_limit == 80000, ": %u", got.rate_limit);
	us = took();
	CHECK(us > 62000, ": %llu us", (unsigned long long)us);
	CHECK(ibv_modify_qp_rate_limit(a.qp, &none) == 0, ".");
	CHECK(ibv_modify_qp(a.qp, &rts, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == 0, ".");
	us = took();
	CHECK(us > 60000, ": %llu us", (unsigned long long)us);
	CHECK(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE) == 0, ".");
	CHECK(ibv_query_qp(a.qp, &got, IBV_QP_RATE_LIMIT, &init) == 0 && got.rate_limit == 0, ": %u", got.rate_limit);
	finish();
}

/* paced checks the rate of a path: 16 MB at 2.5 Gb/s take 53 ms. */
static void paced(void)
{
	struct ibv_qp_attr rtr, got;
	struct ibv_qp_init_attr init;
	uint64_t from;
	struct ibv_sge s;

	begin();
	join(&a, &b);
	MUST(ibv_query_qp(a.qp, &rtr, IBV_QP_AV, &init) == 0 && rtr.ah_attr.static_rate == IBV_RATE_MAX);
	rtr.ah_attr.static_rate = IBV_RATE_2_5_GBPS;
	rtr.qp_state = IBV_QPS_RESET;
	MUST(ibv_modify_qp(a.qp, &rtr, IBV_QP_STATE) == 0);
	to_init(&a);
	rtr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(a.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	to_rts(&a);
	CHECK(ibv_query_qp(a.qp, &got, IBV_QP_AV, &init) == 0 && got.ah_attr.static_rate == IBV_RATE_2_5_GBPS, ".");
	from = microseconds();
	for (uint64_t id = 1; id <= 256; id++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, id, 0, BYTES);

		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, id, NULL);
	}
	from = microseconds() - from;
	CHECK(from > 50000, ": %llu us", (unsigned long long)from);
	finish();
}

void test_states(void)
{
	rated();
	paced();
	posting();
	rights();
	receives();
	anew();
	resizing();
	no_ece();
}
