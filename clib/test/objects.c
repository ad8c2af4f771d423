/* Datagrams, shared receive queues, windows, the extended interface, memory regions, limits. */
#include "bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void write_through(uint32_t rkey, uint64_t addr, enum ibv_wc_status status, uint64_t id)
{
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, id, 0, 8);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, status, id, NULL);
}

void test_windows(void)
{
	struct ibv_mw *w;
	struct ibv_wc wc;
	struct ibv_sge s;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	MUST(w = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1));
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { b.mr, (uintptr_t)b.buf + 64, 64, IBV_ACCESS_REMOTE_WRITE } };
	uint32_t before = w->rkey;
	CHECK(ibv_bind_mw(b.qp, w, &bind) == 0 && w->rkey != before, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 1, &wc);
	CHECK(wc.opcode == IBV_WC_BIND_MW, ": %d", wc.opcode);
	memset(a.buf, 0x5a, 8);
	write_through(w->rkey, (uintptr_t)b.buf + 64, IBV_WC_SUCCESS, 2);
	CHECK(!memcmp(a.buf, b.buf + 64, 8), ".");
	CHECK(ibv_dereg_mr(b.mr) == EBUSY, ".");
	write_through(before, (uintptr_t)b.buf + 64, IBV_WC_REM_ACCESS_ERR, 3);
	part(&a, &b);
	CHECK(ibv_dealloc_mw(w) == 0, ".");

	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	MUST(w = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2));
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	wr.bind_mw.mw = w;
	wr.bind_mw.rkey = ibv_inc_rkey(w->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	CHECK(post(&b, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 4, NULL);
	write_through(wr.bind_mw.rkey, (uintptr_t)b.buf + 72, IBV_WC_SUCCESS, 5);

	/* The peer's send invalidates it. */
	uint32_t key = wr.bind_mw.rkey;
	CHECK(post_recv(&b, 6, 1024, 64) == 0, ".");
	wr = request(&a, &b, IBV_WR_SEND, &s, 7, 0, 16);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.send_flags |= IBV_SEND_INLINE;
	wr.invalidate_rkey = key;
	s.lkey = 0; /* inline data needs none */
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 6, &wc);
	CHECK(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == key, ": %x", wc.wc_flags);
	EXPECT(&a, IBV_WC_SUCCESS, 7, NULL);
	write_through(key, (uintptr_t)b.buf + 72, IBV_WC_REM_ACCESS_ERR, 8);
	part(&a, &b);
	CHECK(ibv_dealloc_mw(w) == 0, ".");
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

void test_extended(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 32, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq *plain;
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	int error;

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

/* advised tells whether large pages were requested for an address. */
static bool advised(const void *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[512];
	bool here = false, found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)at >= from && (uintptr_t)at < to;
		found = here && !strncmp(line, "VmFlags:", 8) && strstr(line, " hg");
	}
	if (f)
		fclose(f);
	return found;
}

/* Memory that the driver reaches through the kernel is put into large pages, and keeps its contents. */
static void large_pages(void)
{
	const char *path = getenv("SOFTVPI_MEMORY_PATH");
	size_t size = 6 << 20, huge = 2 << 20;
	char modes[128] = "[never]";
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *in;
	struct ibv_mr *mr;

	if (f) {
		MUST(fgets(modes, sizeof(modes), f));
		fclose(f);
	}
	in = (uint8_t *)(((uintptr_t)p + huge) & ~(uintptr_t)(huge - 1));
	pattern(p, size, 9);
	MUST(mr = ibv_reg_mr(a.pd, p, size, IBV_ACCESS_LOCAL_WRITE));
	CHECK(advised(in) == (!strstr(modes, "[never]") && (!path || strcmp(path, "copier"))), ": %s", modes);
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	uint8_t *as = malloc(size);

	pattern(as, size, 9);
	CHECK(!memcmp(p, as, size), ".");
	free(as);
	munmap(p, size);
}

void test_memory(void)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr, *refused;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	pattern(a.buf, 8, 4);

	/* Addresses chosen by the program. */
	MUST(mr = ibv_reg_mr_iova(b.pd, b.buf + 4096, 4096, 0x123400000000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	write_through(mr->rkey, 0x123400000100, IBV_WC_SUCCESS, 1);
	CHECK(!memcmp(b.buf + 4096 + 0x100, a.buf, 8), ".");
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	MUST(mr = ibv_reg_mr_iova(b.pd, b.buf + 4096, 4096, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	write_through(mr->rkey, 0x200, IBV_WC_SUCCESS, 2);
	CHECK(!memcmp(b.buf + 4096 + 0x200, a.buf, 8), ".");

	/* Registered anew: the old key becomes invalid. */
	uint32_t old = mr->rkey;
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT, ".");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 8192, 4096, 0) == 0, ".");
	CHECK(mr->addr == b.buf + 8192 && mr->length == 4096, ".");
	write_through(mr->rkey, (uintptr_t)b.buf + 8192, IBV_WC_SUCCESS, 3);
	CHECK(!memcmp(b.buf + 8192, a.buf, 8), ".");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0 && mr->rkey != old, ".");
	write_through(mr->rkey, (uintptr_t)b.buf + 8192, IBV_WC_REM_ACCESS_ERR, 4);
	CHECK(ibv_dereg_mr(mr) == 0, ".");

	refused = ibv_reg_mr(a.pd, page, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(!refused && errno == EOPNOTSUPP, ": %d", errno);
	refused = ibv_reg_mr(a.pd, page, 8192, IBV_ACCESS_REMOTE_WRITE);
	CHECK(!refused && errno == EINVAL, ": %d", errno);
	refused = ibv_reg_mr(a.pd, page, SIZE_MAX / 2, IBV_ACCESS_LOCAL_WRITE);
	CHECK(!refused && errno == EFAULT, ": %d", errno);
	munmap(page + 4096, 4096);
	refused = ibv_reg_mr(a.pd, page, 8192, IBV_ACCESS_LOCAL_WRITE);
	CHECK(!refused && errno == EFAULT, ": %d", errno);
	munmap(page, 4096);

	struct ibv_parent_domain_init_attr attr = { .pd = a.pd };
	struct ibv_pd *domain = ibv_alloc_parent_domain(a.ctx, &attr);
	MUST(domain);
	CHECK(ibv_dealloc_pd(a.pd) == EBUSY, ".");
	MUST(mr = ibv_reg_mr(domain, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(domain) == 0, ".");
	large_pages();
	finish();
}

void test_limits(void)
{
	struct ibv_device_attr d;
	struct ibv_device_attr_ex x;
	struct ibv_port_attr p;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };

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
	write_through(b.mr->rkey, (uintptr_t)b.buf, IBV_WC_SUCCESS, 1);
	finish();
}

/* in_child runs a function in a forked child, and returns the child's status. */
static int in_child(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		failures = 0;
		run();
		_exit(failures != 0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* go_on uses objects that the parent made. */
static void go_on(void)
{
	for (unsigned i = 0; i < 20; i++) {
		pattern(a.buf, 4096, i + 1); /* the child's own copy of the page, not the parent's */
		write_through(b.mr->rkey, (uintptr_t)b.buf + 8 * i, IBV_WC_SUCCESS, i);
		CHECK(!memcmp(a.buf, b.buf + 8 * i, 8), ": %u", i);
	}
}

static void anew(void)
{
	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	pattern(a.buf, 8, 99);
	write_through(b.mr->rkey, (uintptr_t)b.buf, IBV_WC_SUCCESS, 1);
	CHECK(!memcmp(a.buf, b.buf, 8), ".");
	finish();
}

void test_fork(void)
{
	struct end first[2];

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	first[0] = a;
	first[1] = b;
	CHECK(in_child(anew) == 0, "."); /* The child may make an attachment of its own, */
	a = first[0];
	b = first[1];
	write_through(b.mr->rkey, (uintptr_t)b.buf, IBV_WC_SUCCESS, 1); /* which does not affect the parent; */
	CHECK(in_child(go_on) == 0, "."); /* or continue with the parent's, which the parent then leaves alone, as after daemon(). */
	finish();
}
