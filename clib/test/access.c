/* Rights and flags of regions, atomics that are refused, receive queues that are full, and what is asked about forks and order. */
#include "bed.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct end a, b;

static void begin(enum ibv_qp_type type) { open_joined(&a, &b, type); }
static void finish(void) { close_joined(&a, &b); }

/* flags: relaxed ordering and the flags that may be ignored change nothing that a program could see; unknown ones are refused. */
static void flags(void)
{
	static const unsigned optional[] = { IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB, IBV_ACCESS_OPTIONAL_RANGE };
	struct ibv_sge s;

	begin(IBV_QPT_RC);
	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++) {
		struct ibv_mr *mine = ibv_reg_mr(a.pd, a.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | optional[i]),
			      *theirs = ibv_reg_mr(b.pd, b.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | optional[i]);
		struct ibv_send_wr wr;

		MUST(mine && theirs);
		for (uint64_t id = 0; id < 100; id++) { /* in order: the last byte that comes is that of the last request */
			pattern(a.buf, 3000, (unsigned)id);
			wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, id, 0, 3000);
			s.lkey = mine->lkey;
			wr.wr.rdma.rkey = theirs->rkey;
			CHECK(post(&a, &wr) == 0, ".");
			EXPECT(&a, IBV_WC_SUCCESS, id, NULL);
			CHECK(!memcmp(a.buf, b.buf, 3000), ": %zu", i);
		}
		CHECK(ibv_dereg_mr(mine) == 0 && ibv_dereg_mr(theirs) == 0, ".");
	}
	CHECK(!ibv_reg_mr(a.pd, a.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | 1 << 10) && errno == EINVAL, ": %d", errno);
	finish();
}

/* relaxed_datagrams sends to memory with relaxed ordering. */
static void relaxed_datagrams(void)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	struct ibv_sge s;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	begin(IBV_QPT_UD);
	to.grh.dgid = b.gid;
	to.grh.sgid_index = (uint8_t)a.gid_index;
	to.grh.hop_limit = 64;
	MUST(ah = ibv_create_ah(a.pd, &to));
	MUST(mr = ibv_reg_mr(b.pd, b.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
	for (uint64_t id = 0; id < 20; id++) {
		struct ibv_sge place = { (uintptr_t)b.buf, 2000, mr->lkey };
		struct ibv_recv_wr *bad, receive = { .wr_id = id, .sg_list = &place, .num_sge = 1 };
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, id, 0, 900);

		CHECK(ibv_post_recv(b.qp, &receive, &bad) == 0, ".");
		pattern(a.buf, 900, (unsigned)id);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b.qp->qp_num;
		wr.wr.ud.remote_qkey = 0x11111111;
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, id, NULL);
		EXPECT(&b, IBV_WC_SUCCESS, id, &wc);
		CHECK(wc.byte_len == 940 && !memcmp(b.buf + 40, a.buf, 900), ".");
	}
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_destroy_ah(ah) == 0, ".");
	finish();
}

/* Why an atomic is refused, and with what status. */
enum why { RIGHT_OF_QP, RIGHT_OF_REGION, ALIGNMENT, LOCAL_KEY, REMOTE_KEY, LOCAL_LENGTH, LOCAL_RIGHT };
static const enum ibv_wc_status status[] = {
	[RIGHT_OF_QP] = IBV_WC_REM_INV_REQ_ERR, [RIGHT_OF_REGION] = IBV_WC_REM_ACCESS_ERR, [ALIGNMENT] = IBV_WC_REM_INV_REQ_ERR,
	[LOCAL_KEY] = IBV_WC_LOC_PROT_ERR, [REMOTE_KEY] = IBV_WC_REM_ACCESS_ERR, [LOCAL_LENGTH] = IBV_WC_LOC_LEN_ERR,
	[LOCAL_RIGHT] = IBV_WC_LOC_PROT_ERR,
};

static void refused_atomic(enum ibv_wr_opcode op, enum why why)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE };
	struct ibv_mr *weak, *read_only;
	struct ibv_send_wr wr;
	struct ibv_sge s;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	if (why == RIGHT_OF_QP)
		MUST(ibv_modify_qp(b.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	join(&a, &b);
	MUST(weak = ibv_reg_mr(b.pd, b.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	MUST(read_only = ibv_reg_mr(a.pd, a.buf, BYTES, 0));
	memset(b.buf, 3, 16);
	wr = request(&a, &b, op, &s, 1, 0, 8);
	wr.wr.atomic.compare_add = 0x0303030303030303;
	switch (why) {
	case RIGHT_OF_QP: break;
	case RIGHT_OF_REGION: wr.wr.atomic.rkey = weak->rkey; break;
	case ALIGNMENT: wr.wr.atomic.remote_addr++; break;
	case LOCAL_KEY: s.lkey++; break;
	case REMOTE_KEY: wr.wr.atomic.rkey++; break;
	case LOCAL_LENGTH: s.length = 4; break;
	case LOCAL_RIGHT: s.lkey = read_only->lkey; break;
	}
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, status[why], 1, NULL);
	for (int i = 0; i < 16 && why < LOCAL_KEY; i++)
		CHECK(b.buf[i] == 3, ": why %d, byte %d is %d", (int)why, i, b.buf[i]);
	CHECK(ibv_dereg_mr(weak) == 0 && ibv_dereg_mr(read_only) == 0, ".");
	finish();
}

/* full: a receive queue takes as many requests as it says, and a list stops at the one that is refused. */
static void full(void)
{
	struct ibv_sge s = { 0 }, many[5] = { { 0 } };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	begin(IBV_QPT_RC);
	s = (struct ibv_sge){ (uintptr_t)a.buf, 8, a.mr->lkey };
	MUST(ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init) == 0);
	struct ibv_recv_wr *bad = NULL, large = { .wr_id = 1, .sg_list = many, .num_sge = (int)init.cap.max_recv_sge + 1 },
			   good = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .next = &large };

	CHECK(init.cap.max_recv_sge == 4, ": %u", init.cap.max_recv_sge);
	CHECK(ibv_post_recv(a.qp, &good, &bad) == EINVAL && bad == &large, ".");
	good.next = NULL;
	for (uint32_t i = 1; i < init.cap.max_recv_wr; i++)
		CHECK(ibv_post_recv(a.qp, &good, &bad) == 0, ": %u", i);
	CHECK(ibv_post_recv(a.qp, &good, &bad) == ENOMEM && bad == &good, ": it takes more than %u", init.cap.max_recv_wr);
	finish();
}

/* asked: forks need no preparation, and no promise is given about the order of bytes in memory. */
static void asked(void)
{
	uint16_t key;

	begin(IBV_QPT_RC);
	CHECK(ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED, ".");
	CHECK(ibv_query_qp_data_in_order(a.qp, IBV_WR_RDMA_WRITE, 0) == 0, ".");
	CHECK(ibv_query_pkey(a.ctx, 1, 0, &key) == 0 && key == 0xffff, ": %x", key);
	CHECK(ibv_query_pkey(a.ctx, 1, 1000, &key) != 0, ".");
	finish();
}

void test_access(void)
{
	flags();
	relaxed_datagrams();
	for (int why = RIGHT_OF_QP; why <= LOCAL_RIGHT; why++) {
		refused_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, (enum why)why);
		refused_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, (enum why)why);
	}
	full();
	asked();
}
