/* Datagrams, shared receive queues, the extended interface, limits. */
#include "bed.h"

#include <arpa/inet.h>
#include <errno.h>

static struct end a, b;

static void finish(void)
{
	close_end(&a);
	close_end(&b);
}

void test_datagrams(void)
{
	struct ibv_sge s;
	struct ibv_wc wc;
	struct ibv_send_wr *bad, wr;
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah, *back;
	uint64_t from;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_UD, NULL);
	make_qp(&b, IBV_QPT_UD, NULL);
	join(&a, &b);
	CHECK(!ibv_create_ah(a.pd, &(struct ibv_ah_attr){ .port_num = 1 }) && errno == EINVAL, ".");
	to.grh.dgid = b.gid;
	to.grh.sgid_index = (uint8_t)a.gid_index;
	to.grh.hop_limit = 64;
	MUST(ah = ibv_create_ah(a.pd, &to));
	CHECK(post_recv(&b, 1, 0, 2000) == 0, ".");
	pattern(a.buf, 1000, 5);
	wr = request(&a, &b, IBV_WR_SEND_WITH_IMM, &s, 2, 0, 1000);
	wr.imm_data = htonl(77);
	CHECK(ibv_post_send(a.qp, &wr, &bad) == EINVAL, "."); /* no address */
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11111111;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 2, NULL);
	EXPECT(&b, IBV_WC_SUCCESS, 1, &wc);
	CHECK(wc.byte_len == 1040 && wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.src_qp == a.qp->qp_num, ": %u, %x, %u",
	      wc.byte_len, wc.wc_flags, wc.src_qp);
	CHECK(!memcmp(b.buf + 40, a.buf, 1000), ".");

	/* The answer goes back to the sender of the message. */
	MUST(back = ibv_create_ah_from_wc(b.pd, &wc, (void *)b.buf, 1));
	CHECK(post_recv(&a, 3, 4096, 2000) == 0, ".");
	wr = request(&b, &a, IBV_WR_SEND, &s, 4, 40, 100);
	wr.wr.ud.ah = back;
	wr.wr.ud.remote_qpn = wc.src_qp;
	wr.wr.ud.remote_qkey = 0x11111111;
	CHECK(post(&b, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 4, NULL);
	EXPECT(&a, IBV_WC_SUCCESS, 3, &wc);
	CHECK(!memcmp(a.buf + 4096 + 40, b.buf + 40, 100), ".");
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK(ibv_post_send(b.qp, &wr, &bad) == EINVAL, ".");
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(back) == 0, ".");

	/* A static rate is kept: 2.5 Gb/s are 16 MB in 53 ms, of which one passes at once. Nobody waits for them. */
	to.static_rate = IBV_RATE_2_5_GBPS;
	MUST(ah = ibv_create_ah(a.pd, &to));
	from = microseconds();
	for (uint64_t sent = 0; sent < 4096; sent += DEPTH) {
		for (uint64_t i = 0; i < DEPTH; i++) {
			wr = request(&a, &b, IBV_WR_SEND, &s, sent + i, 0, 4000);
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = b.qp->qp_num;
			wr.wr.ud.remote_qkey = 0x11111111;
			CHECK(post(&a, &wr) == 0, ".");
		}
		for (uint64_t i = 0; i < DEPTH; i++)
			EXPECT(&a, IBV_WC_SUCCESS, sent + i, NULL);
	}
	from = microseconds() - from;
	CHECK(from > 50000, ": %llu us", (unsigned long long)from);
	CHECK(ibv_destroy_ah(ah) == 0, ".");
	finish();
}

void test_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { DEPTH, 2, 0 } };
	struct ibv_srq_attr attr = { .max_wr = 4 * DEPTH }, now;
	struct ibv_srq *srq;
	struct ibv_async_event e;
	struct ibv_sge s, mine;
	struct ibv_wc wc;

	open_end(&a, 0);
	open_end(&b, 1);
	MUST(srq = ibv_create_srq(b.pd, &init));
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, srq);
	join(&a, &b);
	CHECK(post_recv(&b, 1, 0, 10) == EINVAL, ".");
	mine = (struct ibv_sge){ (uintptr_t)b.buf, 100, b.mr->lkey };
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_recv_wr *bad, wr = { .wr_id = 10 + i, .sg_list = &mine, .num_sge = 1 };

		CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0, ".");
	}
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0, ".");
	attr.srq_limit = 3;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0, ".");
	CHECK(ibv_query_srq(srq, &now) == 0 && now.max_wr >= 4 * DEPTH && now.max_sge >= 2 && now.srq_limit == 3, ": %u, %u, %u",
	      now.max_wr, now.max_sge, now.srq_limit);
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, i, 0, 50);

		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, i, NULL);
		EXPECT(&b, IBV_WC_SUCCESS, 10 + i, &wc);
	}
	CHECK(ibv_get_async_event(b.ctx, &e) == 0 && e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq, ": %d",
	      e.event_type);
	ibv_ack_async_event(&e);
	CHECK(ibv_destroy_srq(srq) == EBUSY, ".");
	part(&a, &b);
	CHECK(ibv_destroy_srq(srq) == 0, ".");
	finish();
}

static struct ibv_qp_ex *extended_qp(struct end *e, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex x = { .send_cq = e->cq, .recv_cq = e->cq, .qp_type = type, .cap = { DEPTH, DEPTH, 4, 4, 64 },
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = e->pd,
					 .send_ops_flags = ops };

	e->qp = ibv_create_qp_ex(e->ctx, &x);
	return e->qp ? ibv_qp_to_qp_ex(e->qp) : NULL;
}

/* placed does atomic writes (IBA annex A19), by both interfaces, and flushes, which the system's header may not know. */
static void placed(void)
{
	enum { WITH_FLUSH = 1 << 11, WITH_ATOMIC_WRITE = 1 << 12, OP_ATOMIC_WRITE = 15, WC_FLUSH = 8, WC_ATOMIC_WRITE = 9,
	       ACCESS_FLUSH_GLOBAL = 1 << 8, ACCESS_FLUSH_PERSISTENT = 1 << 9 };
	typedef void flush_call(struct ibv_qp_ex *, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level);
	const unsigned rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	static const struct { size_t at; uint8_t type, level; enum ibv_wc_status status; } flushes[] = {
		{ 0, 1, 0, IBV_WC_SUCCESS }, { 0, 1, 1, IBV_WC_SUCCESS }, { BYTES, 1, 1, IBV_WC_SUCCESS },
		{ BYTES, 1, 0, IBV_WC_REM_ACCESS_ERR }, { 0, 2, 0, IBV_WC_REM_INV_REQ_ERR }, { 0, 3, 1, IBV_WC_REM_INV_REQ_ERR },
	};
	static const struct { size_t at; uint32_t bytes; enum ibv_wc_status status; } writes[] = {
		{ 8, 8, IBV_WC_SUCCESS }, { 12, 8, IBV_WC_REM_INV_REQ_ERR }, { 8, 4, IBV_WC_LOC_LEN_ERR }, { BYTES, 8, IBV_WC_REM_ACCESS_ERR },
	};
	struct ibv_device_attr_ex caps;
	struct ibv_qp_ex *x;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	open_end(&a, 0);
	open_end(&b, 1);
	CHECK(ibv_query_device_ex(a.ctx, NULL, &caps) == 0 && caps.device_cap_flags_ex & 1ull << 38 && caps.device_cap_flags_ex & 1ull << 40 &&
	      !(caps.device_cap_flags_ex & 1ull << 39), ": %llx", (unsigned long long)caps.device_cap_flags_ex);
	CHECK(!extended_qp(&a, IBV_QPT_UC, WITH_ATOMIC_WRITE) && errno == EOPNOTSUPP, ".");
	CHECK(!extended_qp(&a, IBV_QPT_UD, WITH_FLUSH) && errno == EOPNOTSUPP, ".");
	CHECK(!ibv_reg_mr(b.pd, b.buf, BYTES, rights | ACCESS_FLUSH_PERSISTENT) && errno == EINVAL, ".");
	MUST(mr = ibv_reg_mr(b.pd, b.buf, BYTES, rights | ACCESS_FLUSH_GLOBAL));
	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		struct ibv_sge s;

		MUST(x = extended_qp(&a, IBV_QPT_RC, WITH_FLUSH | WITH_ATOMIC_WRITE));
		make_qp(&b, IBV_QPT_RC, NULL);
		join(&a, &b);
		struct ibv_send_wr wr = request(&a, &b, (enum ibv_wr_opcode)OP_ATOMIC_WRITE, &s, 3, 0, writes[i].bytes);

		memcpy(a.buf, "a  word", 8);
		memset(b.buf, 0, 32);
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf + writes[i].at;
		wr.wr.rdma.rkey = mr->rkey;
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, writes[i].status, 3, &wc);
		CHECK(writes[i].status != IBV_WC_SUCCESS || ((int)wc.opcode == WC_ATOMIC_WRITE && !memcmp(b.buf + writes[i].at, "a  word", 8)), ".");
		part(&a, &b);
	}
	for (size_t i = 0; i < sizeof(flushes) / sizeof(*flushes); i++) {
		MUST(x = extended_qp(&a, IBV_QPT_RC, WITH_FLUSH | WITH_ATOMIC_WRITE));
		make_qp(&b, IBV_QPT_RC, NULL);
		join(&a, &b);
		ibv_wr_start(x);
		x->wr_flags = IBV_SEND_SIGNALED;
		x->wr_id = 1;
		ibv_wr_atomic_write(x, mr->rkey, (uintptr_t)b.buf + 16, "another");
		x->wr_id = 2;
		(*(flush_call **)(&x->wr_atomic_write + 1))(x, mr->rkey, (uintptr_t)b.buf + flushes[i].at, 64, flushes[i].type, flushes[i].level);
		CHECK(ibv_wr_complete(x) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, 1, &wc);
		CHECK((int)wc.opcode == WC_ATOMIC_WRITE && !memcmp(b.buf + 16, "another", 8), ": %d", wc.opcode);
		EXPECT(&a, flushes[i].status, 2, &wc);
		CHECK(flushes[i].status != IBV_WC_SUCCESS || (int)wc.opcode == WC_FLUSH, ": %d", wc.opcode);
		ibv_wr_start(x);
		(*(flush_call **)(&x->wr_atomic_write + 1))(x, mr->rkey, 0, 64, 0, 0);
		CHECK(ibv_wr_complete(x) == EINVAL, ".");
		part(&a, &b);
	}
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	close_end(&a);
	close_end(&b);
}

void test_extended(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 32, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq *plain;
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	int error;

	placed();
	open_end(&a, 0);
	open_end(&b, 1);
	CHECK(!extended_qp(&a, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ) && errno == EOPNOTSUPP, ".");
	MUST(cq = ibv_create_cq_ex(a.ctx, &want));
	plain = a.cq;
	a.cq = ibv_cq_ex_to_cq(cq);
	MUST(x = extended_qp(&a, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM));
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	CHECK(post_recv(&b, 1, 1000, 100) == 0 && post_recv(&b, 2, 2000, 100) == 0, ".");
	pattern(a.buf, 200, 8);

	ibv_wr_start(x);
	x->wr_id = 99;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(x);
	ibv_wr_abort(x); /* nothing of it is sent */

	ibv_wr_start(x);
	x->wr_id = 10;
	ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf);
	ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 200);
	x->wr_id = 11;
	ibv_wr_send_imm(x, htonl(5));
	ibv_wr_set_inline_data(x, a.buf, 30);
	x->wr_id = 12;
	ibv_wr_send(x);
	struct ibv_sge list[2] = { { (uintptr_t)a.buf, 10, a.mr->lkey }, { (uintptr_t)a.buf + 50, 10, a.mr->lkey } };
	ibv_wr_set_sge_list(x, 2, list);
	CHECK(ibv_wr_complete(x) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 1, &wc);
	CHECK(wc.byte_len == 30 && wc.imm_data == htonl(5) && !memcmp(b.buf + 1000, a.buf, 30), ".");
	EXPECT(&b, IBV_WC_SUCCESS, 2, &wc);
	CHECK(wc.byte_len == 20 && !memcmp(b.buf + 2010, a.buf + 50, 10), ".");
	CHECK(!memcmp(a.buf, b.buf, 200), ".");

	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, a.buf, 60000);
	CHECK(ibv_wr_complete(x) == EINVAL, ".");

	for (int spins = 0; (error = ibv_start_poll(cq, &poll)) == ENOENT && spins < 100000000; spins++)
		;
	uint64_t last = 0;
	for (uint64_t id = 10; !error && id <= 12; id++) {
		CHECK(cq->wr_id == id && cq->status == IBV_WC_SUCCESS, ": %llu", (unsigned long long)cq->wr_id);
		CHECK(ibv_wc_read_opcode(cq) == (id == 10 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND), ".");
		CHECK(ibv_wc_read_qp_num(cq) == a.qp->qp_num, ".");
		CHECK(ibv_wc_read_completion_ts(cq) >= last, ".");
		last = ibv_wc_read_completion_ts(cq);
		for (int spins = 0; id < 12 && (error = ibv_next_poll(cq)) == ENOENT && spins < 100000000; spins++)
			;
	}
	CHECK(!error, ": %d", error);
	CHECK(ibv_next_poll(cq) == ENOENT, ".");
	ibv_end_poll(cq);
	part(&a, &b);
	CHECK(ibv_destroy_cq(a.cq) == 0, ".");
	a.cq = plain;

	/* Resizing twice without polling in between, while completions wait. */
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	for (uint64_t i = 0; i < 12; i++) {
		struct ibv_sge s;
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, i, 0, 8);

		CHECK(post(&a, &wr) == 0, ".");
		if (i == 3)
			CHECK(ibv_resize_cq(a.cq, 200) == 0 && a.cq->cqe >= 200, ": %d", a.cq->cqe);
		if (i == 7)
			CHECK(ibv_resize_cq(a.cq, 500) == 0 && a.cq->cqe >= 500, ": %d", a.cq->cqe);
	}
	for (uint64_t i = 0; i < 12; i++)
		EXPECT(&a, IBV_WC_SUCCESS, i, NULL);
	finish();
}

void test_limits(void)
{
	struct ibv_device_attr d;
	struct ibv_device_attr_ex x;
	struct ibv_port_attr p;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_send_wr wr;
	struct ibv_sge s;

	open_end(&a, 0);
	open_end(&b, 1);
	CHECK(ibv_query_device(a.ctx, &d) == 0 && d.phys_port_cnt == 1 && d.max_qp > 0 && d.fw_ver[0], ".");
	CHECK(ibv_query_device_ex(a.ctx, NULL, &x) == 0 && x.orig_attr.max_qp == d.max_qp && x.phys_port_cnt_ex == 1, ".");
	CHECK(ibv_query_port(a.ctx, 1, &p) == 0 && p.state == IBV_PORT_ACTIVE && p.link_layer == IBV_LINK_LAYER_ETHERNET, ".");
	CHECK(p.gid_tbl_len > a.gid_index, ": %d", p.gid_tbl_len);
	CHECK(ibv_query_port(a.ctx, 2, &p) == EINVAL && ibv_query_port(a.ctx, 0, &p) == EINVAL, ".");
	CHECK(!ibv_create_cq(a.ctx, d.max_cqe + 1, NULL, NULL, 0) && errno, ".");
	CHECK(!ibv_create_cq(a.ctx, 0, NULL, NULL, 0) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_create_cq(a.ctx, 1, NULL, NULL, a.ctx->num_comp_vectors) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_create_qp(a.pd, &init) && errno, "."); /* no CQs */
	init.send_cq = init.recv_cq = a.cq;
	init.cap.max_send_wr = (uint32_t)d.max_qp_wr + 1;
	CHECK(!ibv_create_qp(a.pd, &init) && errno, ".");
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_send_sge = (uint32_t)d.max_sge + 1 };
	CHECK(!ibv_create_qp(a.pd, &init) && errno, ".");
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_send_sge = 1 };
	init.qp_type = IBV_QPT_RAW_PACKET;
	CHECK(!ibv_create_qp(a.pd, &init) && errno == EOPNOTSUPP, ": %d", errno);

	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	CHECK(ibv_modify_qp(a.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_STATE) == EINVAL, ".");
	join(&a, &b);
	CHECK(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init) == 0, ".");
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == b.qp->qp_num && attr.path_mtu == IBV_MTU_1024 &&
	      attr.timeout == 14 && attr.retry_cnt == 7 && attr.sq_psn == a.psn && attr.rq_psn == b.psn, ": %d, %u, %d, %d, %d, %x, %x",
	      attr.qp_state, attr.dest_qp_num, attr.path_mtu, attr.timeout, attr.retry_cnt, attr.sq_psn, attr.rq_psn);
	CHECK(init.send_cq == a.cq && init.qp_context == &a && init.qp_type == IBV_QPT_RC, ".");
	CHECK(!memcmp(attr.ah_attr.grh.dgid.raw, b.gid.raw, 16), ".");
	errno = 0; /* programs print "%m" when a call fails */
	CHECK(ibv_destroy_cq(a.cq) == EBUSY && errno == EBUSY && ibv_dealloc_pd(a.pd) == EBUSY, " (errno %d)", errno);

	/* Reset and joined again. */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET };
	CHECK(post_recv(&a, 1, 0, 8) == 0, ".");
	CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0 && ibv_modify_qp(b.qp, &attr, IBV_QP_STATE) == 0, ".");
	join(&a, &b);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL);
	finish();
}
