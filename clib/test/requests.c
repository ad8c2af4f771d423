/* Each kind of request once between two adapters, with its data, and the ways in which requests fail. */
#include "bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/mman.h>

static struct end a, b;

static void begin(enum ibv_qp_type type) { open_joined(&a, &b, type); }
static void finish(void) { close_joined(&a, &b); }

static void write_read_send(enum ibv_qp_type type)
{
	struct ibv_sge s;
	struct ibv_wc wc = { 0 };

	begin(type);
	pattern(a.buf, 5000, 1);
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 5000);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, &wc);
	CHECK(wc.opcode == IBV_WC_RDMA_WRITE, ": %d", wc.opcode);
	if (type == IBV_QPT_RC)
		CHECK(!memcmp(a.buf, b.buf, 5000), ".");

	CHECK(post_recv(&b, 2, 8192, 4096) == 0, ".");
	wr = request(&a, &b, IBV_WR_SEND, &s, 3, 100, 3000);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 2, &wc);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 3000 && !wc.wc_flags, ": %d, %u, %x", wc.opcode, wc.byte_len, wc.wc_flags);
	EXPECT(&a, IBV_WC_SUCCESS, 3, &wc);
	CHECK(wc.opcode == IBV_WC_SEND, ": %d", wc.opcode);
	CHECK(!memcmp(a.buf + 100, b.buf + 8192, 3000), ".");
	CHECK(!memcmp(a.buf, b.buf, 5000), "."); /* the write arrived before the send */

	CHECK(post_recv(&b, 4, 8192, 4096) == 0, ".");
	wr = request(&a, &b, IBV_WR_SEND_WITH_IMM, &s, 5, 0, 0);
	wr.num_sge = 0;
	wr.imm_data = htonl(0x12345678);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 4, &wc);
	CHECK(wc.byte_len == 0 && wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(0x12345678), ": %x", wc.imm_data);
	EXPECT(&a, IBV_WC_SUCCESS, 5, NULL);

	CHECK(post_recv(&b, 6, 0, 0) == 0, ".");
	pattern(a.buf + 20000, 300, 9);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE_WITH_IMM, &s, 7, 20000, 300);
	wr.imm_data = htonl(0xfeedbeef);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 6, &wc);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 300 && wc.imm_data == htonl(0xfeedbeef), ": %d, %u",
	      wc.opcode, wc.byte_len);
	CHECK(!memcmp(a.buf + 20000, b.buf + 20000, 300), ".");
	EXPECT(&a, IBV_WC_SUCCESS, 7, NULL);

	/* Inline data is copied when posted. A list of two requests, the second with two pieces. */
	struct ibv_sge parts[2] = { { (uintptr_t)a.buf, 20, 0 }, { (uintptr_t)a.buf + 100, 20, 0 } };
	struct ibv_send_wr two = { .wr_id = 9, .sg_list = parts, .num_sge = 2, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE };
	struct ibv_send_wr one = two;
	one.wr_id = 8;
	one.num_sge = 1;
	one.send_flags = IBV_SEND_INLINE;
	one.next = &two;
	CHECK(post_recv(&b, 10, 30000, 100) == 0 && post_recv(&b, 11, 31000, 100) == 0, ".");
	uint8_t was[20];
	memcpy(was, a.buf, 20);
	CHECK(post(&a, &one) == 0, ".");
	memset(a.buf, 0, 200);
	EXPECT(&b, IBV_WC_SUCCESS, 10, &wc);
	CHECK(wc.byte_len == 20 && !memcmp(b.buf + 30000, was, 20), ".");
	EXPECT(&b, IBV_WC_SUCCESS, 11, &wc);
	CHECK(wc.byte_len == 40 && !memcmp(b.buf + 31000, was, 20), ".");
	EXPECT(&a, IBV_WC_SUCCESS, 9, NULL); /* the first was not signaled */
	finish();
}

/* A CQ of one entry has room for one more, as on an adapter: that many completions may wait in it. */
static void small_queue(void)
{
	struct ibv_cq *usual;
	struct ibv_sge s;

	open_end(&a, 0);
	open_end(&b, 1);
	usual = a.cq;
	MUST(a.cq = ibv_create_cq(a.ctx, 1, NULL, NULL, 0));
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	for (uint64_t id = 0; id < 2; id++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, id, 0, 8);

		CHECK(post_recv(&b, id, 0, 8) == 0 && post(&a, &wr) == 0, ".");
		EXPECT(&b, IBV_WC_SUCCESS, id, NULL);
	}
	EXPECT(&a, IBV_WC_SUCCESS, 0, NULL);
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL);
	part(&a, &b);
	CHECK(ibv_destroy_cq(a.cq) == 0, ".");
	a.cq = usual;
	close_end(&a);
	close_end(&b);
}

static void read_and_atomics(void)
{
	struct ibv_sge s;
	struct ibv_wc wc = { 0 };
	uint64_t *mine, *theirs;

	begin(IBV_QPT_RC);
	pattern(b.buf, 40000, 3);
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_READ, &s, 1, 0, 40000);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, &wc);
	CHECK(wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 40000 && !memcmp(a.buf, b.buf, 40000), ": %u", wc.byte_len);

	mine = (void *)(a.buf + 64);
	theirs = (void *)(b.buf + 64);
	*theirs = 40;
	wr = request(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD, &s, 2, 64, 8);
	wr.wr.atomic.compare_add = 2;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
	CHECK(wc.opcode == IBV_WC_FETCH_ADD && *mine == 40 && *theirs == 42, ": %d", wc.opcode);
	wr = request(&a, &b, IBV_WR_ATOMIC_CMP_AND_SWP, &s, 3, 64, 8);
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 7;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 3, &wc);
	CHECK(wc.opcode == IBV_WC_COMP_SWAP && *mine == 42 && *theirs == 7, ": %d", wc.opcode);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 3, NULL);
	CHECK(*mine == 7 && *theirs == 7, ".");
	finish();
}

/* refused posts a list whose second request is bad, and checks that the first is carried out. */
static void refused(struct ibv_send_wr bad)
{
	struct ibv_sge s;
	struct ibv_send_wr *at = NULL, first = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 100, 0, 8);
	int error;

	first.next = &bad;
	error = ibv_post_send(a.qp, &first, &at);
	CHECK(error == EINVAL && at == &bad, ": %d", error);
	EXPECT(&a, IBV_WC_SUCCESS, 100, NULL);
}

static void bad_requests(void)
{
	struct ibv_sge s, many[8];
	struct ibv_recv_wr *bad_recv = NULL, recv = { .num_sge = -1, .sg_list = &s };

	begin(IBV_QPT_RC);
	struct ibv_send_wr good = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8), wr = good;
	wr.num_sge = -1;
	refused(wr);
	wr.num_sge = 1000;
	refused(wr);
	wr = good;
	wr.opcode = (enum ibv_wr_opcode)99;
	refused(wr);
	wr = good;
	wr.opcode = IBV_WR_TSO;
	refused(wr);
	wr = good;
	wr.send_flags |= IBV_SEND_INLINE;
	s.length = 60000;
	refused(wr);
	wr = request(&a, &b, IBV_WR_RDMA_READ, &s, 1, 0, 8);
	wr.send_flags |= IBV_SEND_INLINE;
	refused(wr);
	(void)many;
	CHECK(ibv_post_recv(a.qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv, ".");
	CHECK(ibv_poll_cq(a.cq, 0, NULL) == 0, ".");

	/* A full ring reports so, and takes requests again when it is empty. */
	int n = 0;
	wr = request(&a, &b, IBV_WR_SEND, &s, 7, 0, 8);
	wr.send_flags = 0;
	while (n < 10000 && post(&b, &wr) == 0)
		n++;
	CHECK(n >= DEPTH && n < 10000, ": %d", n);
	finish();
}

static void fail_with(struct ibv_send_wr wr, enum ibv_wc_status status)
{
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, status, wr.wr_id, NULL);
	/* The queue pair is in the error state: whatever is posted now is flushed, including receives. */
	CHECK(post_recv(&a, 55, 0, 8) == 0, ".");
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 55, NULL);
	wr.wr_id = 56;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_WR_FLUSH_ERR, 56, NULL);
}

void test_errors(void)
{
	struct ibv_sge s;
	struct ibv_send_wr wr;
	struct ibv_wc wc = { 0 };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	begin(IBV_QPT_RC);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8);
	wr.wr.rdma.rkey ^= 0x55;
	fail_with(wr, IBV_WC_REM_ACCESS_ERR);
	finish();

	begin(IBV_QPT_RC);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 2, BYTES - 8, 16);
	s.addr -= 8;
	fail_with(wr, IBV_WC_REM_ACCESS_ERR); /* past the end */
	finish();

	begin(IBV_QPT_RC);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 3, 0, 8);
	s.lkey ^= 0x55;
	fail_with(wr, IBV_WC_LOC_PROT_ERR);
	finish();

	begin(IBV_QPT_RC);
	CHECK(post_recv(&b, 4, 0, 10) == 0, ".");
	wr = request(&a, &b, IBV_WR_SEND, &s, 5, 0, 100);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_LOC_LEN_ERR, 4, NULL);
	EXPECT(&a, IBV_WC_REM_INV_REQ_ERR, 5, NULL);
	finish();

	begin(IBV_QPT_RC);
	wr = request(&a, &b, IBV_WR_SEND, &s, 6, 0, 100); /* and no receive */
	fail_with(wr, IBV_WC_RNR_RETRY_EXC_ERR);
	finish();

	begin(IBV_QPT_RC);
	wr = request(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD, &s, 7, 4, 8); /* not a multiple of 8 */
	fail_with(wr, IBV_WC_REM_INV_REQ_ERR);
	finish();

	begin(IBV_QPT_RC);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(post_recv(&b, 10 + i, 0, 10) == 0, ".");
	CHECK(ibv_modify_qp(b.qp, &error, IBV_QP_STATE) == 0 && b.qp->state == IBV_QPS_ERR, ".");
	for (uint64_t i = 0; i < 5; i++)
		EXPECT(&b, IBV_WC_WR_FLUSH_ERR, 10 + i, NULL);
	finish();

	/* Memory that the program has unmapped: an error completion, without harm to anything else. */
	begin(IBV_QPT_RC);
	uint8_t *gone = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(b.pd, gone, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(mr);
	munmap(gone, 8192);
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 8, 0, 8);
	wr.wr.rdma.remote_addr = (uintptr_t)gone;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(post(&a, &wr) == 0, ".");
	CHECK(next(a.cq, &wc) && wc.wr_id == 8 && (wc.status == IBV_WC_REM_OP_ERR || wc.status == IBV_WC_REM_ACCESS_ERR), ": %s",
	      ibv_wc_status_str(wc.status));
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	finish();
}

/* left_behind sends to a peer in RTR, as perftest does, and has the peer answer when it reaches RTS. */
static void left_behind(void)
{
	struct ibv_sge s;
	struct ibv_async_event e;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	to_init(&a);
	to_init(&b);
	to_rtr(&b, &a);
	to_rtr(&a, &b);
	to_rts(&a);
	pattern(a.buf, 5000, 6);
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 5000);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 1, NULL);
	CHECK(!memcmp(a.buf, b.buf, 5000), ".");
	CHECK(ibv_get_async_event(b.ctx, &e) == 0 && e.event_type == IBV_EVENT_COMM_EST && e.element.qp == b.qp, ": %d", e.event_type);
	ibv_ack_async_event(&e);
	to_rts(&b);
	wr = request(&b, &a, IBV_WR_RDMA_READ, &s, 2, 0, 3000);
	memset(b.buf, 0, 5000);
	CHECK(post(&b, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 2, NULL);
	CHECK(!memcmp(a.buf, b.buf, 3000) && b.buf[3000] == 0, ".");
	wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 3, 0, 5000);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 3, NULL);
	CHECK(!memcmp(a.buf, b.buf, 5000), ".");
	finish();
}

void test_requests(void)
{
	left_behind();
	write_read_send(IBV_QPT_RC);
	write_read_send(IBV_QPT_UC);
	small_queue();
	read_and_atomics();
	bad_requests();
}
