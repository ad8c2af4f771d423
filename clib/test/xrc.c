/* Extended reliable connections: domains, their shared receive queues, initiators and targets (IBA annex A14). */
#define _GNU_SOURCE
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOTH = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, ROOM = 256 };

static struct end a, b; /* a has the initiator, b the target and the queues */
static struct ibv_xrcd *domain;

static struct ibv_xrcd *open_domain(struct ibv_context *c, int fd, int flags)
{
	struct ibv_xrcd_init_attr x = { .comp_mask = BOTH, .fd = fd, .oflags = flags };

	return ibv_open_xrcd(c, &x);
}

static struct ibv_srq *queue(struct end *e, struct ibv_xrcd *x, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex s = { .attr = { .max_wr = DEPTH, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = e->pd,
		.xrcd = x, .cq = cq, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
						  IBV_SRQ_INIT_ATTR_CQ };

	return ibv_create_srq_ex(e->ctx, &s);
}

static uint32_t number(struct ibv_srq *s)
{
	uint32_t n = 0;

	CHECK(ibv_get_srq_num(s, &n) == 0 && n, ".");
	return n;
}

static struct ibv_qp *target(struct ibv_context *c, struct ibv_xrcd *x)
{
	struct ibv_qp_init_attr_ex q = { .qp_type = IBV_QPT_XRC_RECV, .xrcd = x, .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	return ibv_create_qp_ex(c, &q);
}

static struct ibv_qp *initiator(struct end *e)
{
	struct ibv_qp_init_attr_ex q = { .qp_type = IBV_QPT_XRC_SEND, .send_cq = e->cq, .pd = e->pd,
					 .cap = { .max_send_wr = DEPTH, .max_send_sge = 2, .max_inline_data = 64 },
					 .comp_mask = IBV_QP_INIT_ATTR_PD };

	return ibv_create_qp_ex(e->ctx, &q);
}

/* meet connects the two, with the attributes that each half has (Linux' table of states). */
static void meet(struct end *from, struct end *to)
{
	const int route = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr i = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = to->qp->qp_num, .rq_psn = 9 };

	to_init(from);
	to_init(to);
	i.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	i.ah_attr.grh.dgid = to->gid;
	i.ah_attr.grh.sgid_index = (uint8_t)from->gid_index;
	struct ibv_qp_attr t = i;

	t.ah_attr.grh.dgid = from->gid;
	t.ah_attr.grh.sgid_index = (uint8_t)to->gid_index;
	t.dest_qp_num = from->qp->qp_num;
	t.rq_psn = 7;
	t.max_dest_rd_atomic = 4;
	t.min_rnr_timer = 1;
	MUST(ibv_modify_qp(from->qp, &i, route) == 0);
	MUST(ibv_modify_qp(to->qp, &t, route | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	i = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 };
	t = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = 9, .timeout = 14 };
	MUST(ibv_modify_qp(from->qp, &i, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			   IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	MUST(ibv_modify_qp(to->qp, &t, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT) == 0);
}

static int srq_recv(struct ibv_srq *s, struct end *e, uint64_t id, size_t at)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + at, ROOM, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(s, &wr, &bad);
}

static void ask(enum ibv_wr_opcode op, uint32_t srqn, uint64_t id, size_t at, uint32_t n, enum ibv_wc_status want, int line)
{
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&a, &b, op, &s, id, at, n);

	wr.qp_type.xrc.remote_srqn = srqn;
	wr.imm_data = 0x11223344;
	wr.wr.atomic.compare_add = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 5 : wr.wr.atomic.compare_add;
	check(post(&a, &wr) == 0, __FILE__, line, "post", ".");
	expect(&a, want, id, NULL, line);
}
#define ASK(op, srqn, id, at, n) ask(op, srqn, id, at, n, IBV_WC_SUCCESS, __LINE__)

/* came takes the completion of a receive, which is the SRQ's, with the target's number. */
static void came(struct ibv_cq *cq, uint64_t id, uint32_t bytes, uint32_t qpn, int line)
{
	struct ibv_wc wc;

	if (!next(cq, &wc)) {
		check(false, __FILE__, line, "next", ": nothing received");
		return;
	}
	check(wc.status == IBV_WC_SUCCESS && wc.wr_id == id && wc.byte_len == bytes && wc.qp_num == qpn, __FILE__, line, "received",
	      ": %s, id %llu, %u bytes, QP %u; want %llu, %u, %u", ibv_wc_status_str(wc.status), (unsigned long long)wc.wr_id,
	      wc.byte_len, wc.qp_num, (unsigned long long)id, bytes, qpn);
}
#define CAME(cq, id, bytes) came(cq, id, bytes, b.qp->qp_num, __LINE__)

/* Messages of one connection go to whichever queue of the domain they name; keys are of the queue's protection domain. */
static void messages(void)
{
	struct ibv_cq *cq2 = ibv_create_cq(b.ctx, DEPTH, NULL, NULL, 0);
	struct ibv_srq *one = queue(&b, domain, b.cq), *two = queue(&b, domain, cq2);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_sge s;

	MUST(one && two && number(one) != number(two));
	MUST((b.qp = target(b.ctx, domain)) && (a.qp = initiator(&a)));
	meet(&a, &b);
	for (unsigned i = 0; i < 6; i++) {
		bool first = i % 2 == 0;

		MUST(srq_recv(first ? one : two, &b, 10 + i, 4096 + i * ROOM) == 0);
		pattern(a.buf, 200, i);
		ASK(i < 4 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, number(first ? one : two), i, 0, 200);
		CAME(first ? b.cq : cq2, 10 + i, 200);
		CHECK(!memcmp(a.buf, b.buf + 4096 + i * ROOM, 200), ": message %u", i);
	}
	pattern(a.buf + 8192, 5000, 77);
	ASK(IBV_WR_RDMA_WRITE, number(one), 30, 8192, 5000);
	CHECK(!memcmp(a.buf + 8192, b.buf + 8192, 5000), ".");
	memset(a.buf + 8192, 0, 5000);
	ASK(IBV_WR_RDMA_READ, number(two), 31, 8192, 5000);
	CHECK(!memcmp(a.buf + 8192, b.buf + 8192, 5000), ".");
	*(uint64_t *)(void *)(b.buf + 16384) = 7;
	ASK(IBV_WR_ATOMIC_FETCH_AND_ADD, number(two), 32, 16384, 8);
	CHECK(*(uint64_t *)(void *)(b.buf + 16384) == 12 && *(uint64_t *)(void *)(a.buf + 16384) == 7, ".");

	/* Inline. */
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, 33, 0, 64);

	wr.send_flags |= IBV_SEND_INLINE;
	wr.qp_type.xrc.remote_srqn = number(one);
	CHECK(srq_recv(one, &b, 34, 0) == 0 && post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 33, NULL);
	CAME(b.cq, 34, 64);

	CHECK(ibv_query_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init) == 0 && attr.qp_state == IBV_QPS_RTS &&
	      attr.dest_qp_num == a.qp->qp_num && init.qp_type == IBV_QPT_XRC_RECV, ": state %d, peer %u", attr.qp_state, attr.dest_qp_num);
	CHECK(ibv_close_xrcd(domain) == EBUSY, ": it has queues and a target");
	CHECK(ibv_destroy_cq(cq2) == EBUSY, ": a queue completes in it");
	CHECK(ibv_destroy_srq(two) == 0 && ibv_destroy_cq(cq2) == 0, ".");
	ask(IBV_WR_SEND, 0xfffff0, 40, 0, 8, IBV_WC_REM_INV_REQ_ERR, __LINE__);
	CHECK(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR, ".");
	part(&a, &b);
	CHECK(ibv_destroy_srq(one) == 0, ".");
}

/* What makes no sense has the errors of the kernel or of rdma-core. */
static void refusals(void)
{
	struct ibv_xrcd_init_attr odd = { .comp_mask = BOTH | 4, .fd = -1, .oflags = O_CREAT };
	struct ibv_qp_open_attr unknown = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
					    .qp_num = 0xfffff0, .xrcd = domain, .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_recv_wr *bad_recv, recv = { 0 };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq;
	uint32_t n;

	errno = 0;
	CHECK(!open_domain(b.ctx, -1, 0) && errno == EAGAIN, ": %d", errno);
	CHECK(!open_domain(b.ctx, -1, O_CREAT | O_TRUNC) && errno == EINVAL, ": %d", errno);
	CHECK(!open_domain(b.ctx, 9999, O_CREAT) && errno == EBADF, ": %d", errno);
	CHECK(!ibv_open_xrcd(b.ctx, &odd) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_open_qp(b.ctx, &unknown) && errno, ": %d", errno);
	CHECK(!queue(&a, domain, a.cq) && errno == EINVAL, ": of another device: %d", errno);
	MUST((b.qp = target(b.ctx, domain)) && (a.qp = initiator(&a)));
	CHECK(ibv_post_recv(a.qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv, ": an initiator receives nothing");
	CHECK(ibv_post_recv(b.qp, &recv, &bad_recv) == EINVAL, ": the domain's queues receive for a target");
	CHECK(ibv_post_send(b.qp, &wr, &bad) == EINVAL && bad == &wr, ": a target sends nothing");
	part(&a, &b);
	MUST(srq = ibv_create_srq(b.pd, &plain));
	CHECK(ibv_get_srq_num(srq, &n) != 0, ": no number names it");
	CHECK(ibv_destroy_srq(srq) == 0, ".");
}

/* Two programs share a domain by a file: the child receives what came for its queue over the parent's target, and the
 * target lives as long as either has it open. */
static void programs(void)
{
	int file = fileno(tmpfile()), to_child[2], to_parent[2];
	uint32_t srqn, word, *status = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_xrcd *x;
	pid_t child;

	MUST(!pipe(to_child) && !pipe(to_parent) && status != MAP_FAILED);
	fflush(NULL);
	MUST((child = fork()) >= 0);
	if (!child) {
		struct ibv_qp_open_attr o = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
					      .qp_type = IBV_QPT_XRC_RECV };
		struct end c;
		struct ibv_srq *s;
		char text[8];

		failures = 0;
		MUST(read(to_child[0], &o.qp_num, 4) == 4);
		open_end(&c, 1);
		MUST(o.xrcd = open_domain(c.ctx, file, 0)); /* the parent's */
		CHECK(!open_domain(c.ctx, file, O_CREAT | O_EXCL) && errno == EINVAL, ": %d", errno);
		MUST((s = queue(&c, o.xrcd, c.cq)) && (c.qp = ibv_open_qp(c.ctx, &o)));
		CHECK(c.qp->qp_num == o.qp_num, ".");
		srqn = number(s);
		CHECK(srq_recv(s, &c, 1, 0) == 0 && srq_recv(s, &c, 2, ROOM) == 0, ".");
		MUST(write(to_parent[1], &srqn, 4) == 4);
		came(c.cq, 1, 100, o.qp_num, __LINE__);
		MUST(read(to_child[0], text, 1) == 1); /* the parent has closed its handle */
		MUST(write(to_parent[1], &srqn, 4) == 4);
		came(c.cq, 2, 100, o.qp_num, __LINE__);
		CHECK(ibv_destroy_qp(c.qp) == 0 && ibv_destroy_srq(s) == 0 && ibv_close_xrcd(o.xrcd) == 0, ".");
		c.qp = NULL;
		close_end(&c);
		*status = failures ? 2 : 1;
		_exit(0);
	}
	MUST(x = open_domain(b.ctx, file, O_CREAT | O_EXCL));
	MUST((b.qp = target(b.ctx, x)) && (a.qp = initiator(&a)));
	meet(&a, &b);
	word = b.qp->qp_num;
	MUST(write(to_child[1], &word, 4) == 4 && read(to_parent[0], &srqn, 4) == 4);
	ASK(IBV_WR_SEND, srqn, 50, 0, 100);
	CHECK(ibv_destroy_qp(b.qp) == 0 && ibv_close_xrcd(x) == 0, ": the child has both open");
	b.qp = NULL;
	MUST(write(to_child[1], "x", 1) == 1 && read(to_parent[0], &srqn, 4) == 4);
	ASK(IBV_WR_SEND, srqn, 51, 0, 100);
	CHECK(waitpid(child, NULL, 0) == child && *status == 1, ": child %u", *status);
	CHECK(ibv_destroy_qp(a.qp) == 0, ".");
	a.qp = NULL;
	munmap(status, 4096);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

void test_xrc(void)
{
	struct ibv_device_attr d;

	open_end(&a, 0);
	open_end(&b, 1);
	CHECK(ibv_query_device(a.ctx, &d) == 0 && d.device_cap_flags & IBV_DEVICE_XRC, ".");
	MUST(domain = open_domain(b.ctx, -1, O_CREAT));
	messages();
	refusals();
	CHECK(ibv_close_xrcd(domain) == 0, ".");
	programs();
	close_end(&a);
	close_end(&b);
}
