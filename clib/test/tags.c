/* Shared receive queues that match tags. */
#include "bed.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>

static struct end a, b; /* a sends, b matches */
static struct ibv_cq_ex *cq;
static struct ibv_srq *srq;

enum { TAGS = 3, UNTAGGED = 4, SLOT = 4096 };

static struct ibv_srq *make(uint32_t tags, uint32_t ops, uint32_t mask)
{
	struct ibv_srq_init_attr_ex x = { .attr = { UNTAGGED, 1, 0 }, .srq_type = IBV_SRQT_TM, .pd = b.pd, .cq = b.cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | mask, .tm_cap = { tags, ops } };

	return ibv_create_srq_ex(b.ctx, &x);
}

static void post_untagged(uint64_t id, size_t at)
{
	struct ibv_sge s = { (uintptr_t)b.buf + at, SLOT, b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &s, .num_sge = 1 }, *bad;

	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0, ".");
}

static void open_tags(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO };

	open_end(&a, 0);
	open_end(&b, 1);
	CHECK(ibv_destroy_cq(b.cq) == 0, ".");
	MUST(cq = ibv_create_cq_ex(b.ctx, &want));
	b.cq = ibv_cq_ex_to_cq(cq);
	MUST(srq = make(TAGS, 8, IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM));
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, srq);
	join(&a, &b);
	for (uint64_t i = 0; i < UNTAGGED; i++)
		post_untagged(100 + i, i * SLOT);
}

static void close_tags(void)
{
	CHECK(ibv_destroy_srq(srq) == EBUSY, ".");
	part(&a, &b);
	CHECK(ibv_destroy_cq(b.cq) == EBUSY, ".");
	CHECK(ibv_destroy_srq(srq) == 0, ".");
	close_end(&a);
	close_end(&b);
}

/* got takes a completion of the list or of a message, and compares it. */
static void got(int line, uint64_t id, enum ibv_wc_opcode op, enum ibv_wc_status status, unsigned flags, uint64_t tag, uint32_t app,
		uint32_t bytes)
{
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_wc_tm_info info;
	int error = ENOENT;

	for (int i = 0; error == ENOENT && i < 100000000; i++)
		error = ibv_start_poll(cq, &poll);
	check(error == 0, __FILE__, line, "completed", ": %d", error);
	if (error)
		return;
	ibv_wc_read_tm_info(cq, &info);
	check(cq->wr_id == id && ibv_wc_read_opcode(cq) == op && cq->status == status && ibv_wc_read_wc_flags(cq) == flags && info.tag == tag &&
	      info.priv == app && (status != IBV_WC_SUCCESS || ibv_wc_read_byte_len(cq) == bytes), __FILE__, line, "as expected",
	      ": id %llu, opcode %d, status %d, flags %#x, tag %#llx, app %#x, %u bytes", (unsigned long long)cq->wr_id,
	      ibv_wc_read_opcode(cq), cq->status, ibv_wc_read_wc_flags(cq), (unsigned long long)info.tag, info.priv, ibv_wc_read_byte_len(cq));
	ibv_end_poll(cq);
}
#define GOT(...) got(__LINE__, __VA_ARGS__)

static int operate(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int error = ibv_post_srq_ops(srq, wr, &bad);

	CHECK(!error || bad == wr, ".");
	return error;
}

/* add adds a buffer of b's memory behind the untagged ones, and returns its handle. */
static uint32_t add(uint64_t id, uint64_t tag, uint64_t mask, size_t at, uint32_t bytes, unsigned flags)
{
	struct ibv_sge s = { (uintptr_t)b.buf + UNTAGGED * SLOT + at, bytes, b.mr->lkey };
	struct ibv_ops_wr wr = { .wr_id = 1000 + id, .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED };

	wr.tm.add.recv_wr_id = id;
	wr.tm.add.sg_list = &s;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = mask;
	CHECK(operate(&wr) == 0 && wr.tm.handle, ".");
	GOT(1000 + id, IBV_WC_TM_ADD, IBV_WC_SUCCESS, flags, 0, 0, 0);
	return wr.tm.handle;
}

/* send_tagged sends a message with bytes behind its header; a rendezvous has its data at offset 8192 of a's memory. */
static void send_tagged(uint8_t opcode, uint32_t app, uint64_t tag, uint32_t bytes, uint32_t length)
{
	struct ibv_tmh *h = (void *)a.buf;
	struct ibv_rvh *r = (void *)(h + 1);
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, 7, 0, (uint32_t)sizeof(*h) + bytes);

	pattern(a.buf, 2 * SLOT + 4096, 5);
	*h = (struct ibv_tmh){ .opcode = opcode, .app_ctx = htonl(app), .tag = htobe64(tag) };
	if (opcode == IBV_TMH_RNDV)
		*r = (struct ibv_rvh){ htobe64((uintptr_t)a.buf + 2 * SLOT), htonl(a.mr->rkey), htonl(length) };
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 7, NULL);
}

static bool arrived(size_t at, const void *what, size_t n) { return !memcmp(b.buf + UNTAGGED * SLOT + at, what, n); }

static void eager(void)
{
	enum { BOTH = IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID };

	open_tags();
	add(1, 0x1200, 0xff00, 0, 100, 0);
	add(2, 0x1234, ~0ull, 200, 2000, 0);
	/* The oldest one that matches, not the one that matches best. */
	send_tagged(IBV_TMH_EAGER, 9, 0x1234, 50, 0);
	GOT(1, IBV_WC_TM_RECV, IBV_WC_SUCCESS, BOTH, 0x1234, 9, 50);
	CHECK(arrived(0, a.buf + 16, 50), ".");
	/* Of several packets (the MTU is 1,024), the match is told first. */
	send_tagged(IBV_TMH_EAGER, 8, 0x1234, 1500, 0);
	GOT(2, IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH, 0x1234, 8, 0);
	GOT(2, IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_DATA_VALID, 0, 0, 1500);
	CHECK(arrived(200, a.buf + 16, 1500), ".");
	/* What nobody waits for is delivered whole; new buffers match only when the program has said that it has seen it. */
	send_tagged(IBV_TMH_EAGER, 0, 5, 10, 0);
	GOT(100, IBV_WC_TM_RECV, IBV_WC_SUCCESS, 0, 0, 0, 26);
	CHECK(!memcmp(b.buf, a.buf, 26), ".");
	add(3, 5, ~0ull, 0, 100, IBV_WC_TM_SYNC_REQ);
	send_tagged(IBV_TMH_EAGER, 0, 5, 11, 0);
	GOT(101, IBV_WC_TM_RECV, IBV_WC_SUCCESS, 0, 0, 0, 27);
	struct ibv_ops_wr sync = { .wr_id = 50, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC };
	sync.tm.unexpected_cnt = 1;
	CHECK(operate(&sync) == 0, ".");
	GOT(50, IBV_WC_TM_SYNC, IBV_WC_SUCCESS, IBV_WC_TM_SYNC_REQ, 0, 0, 0);
	sync.tm.unexpected_cnt = 2;
	CHECK(operate(&sync) == 0, ".");
	GOT(50, IBV_WC_TM_SYNC, IBV_WC_SUCCESS, 0, 0, 0, 0);
	send_tagged(IBV_TMH_EAGER, 0, 5, 12, 0);
	GOT(3, IBV_WC_TM_RECV, IBV_WC_SUCCESS, BOTH, 5, 0, 12);
	/* Without a tag, or as the end of a rendezvous, a message matches nothing and needs no synchronisation. */
	add(4, 0, 0, 0, 100, 0);
	send_tagged(IBV_TMH_NO_TAG, 0, 5, 12, 0);
	GOT(102, IBV_WC_TM_NO_TAG, IBV_WC_SUCCESS, 0, 0, 0, 28);
	send_tagged(IBV_TMH_FIN, 0, 5, 16, 0);
	GOT(103, IBV_WC_TM_NO_TAG, IBV_WC_SUCCESS, 0, 0, 0, 32);
	add(5, 0, 0, 0, 100, 0);
	close_tags();
}

static void rendezvous(void)
{
	struct ibv_wc wc;

	open_tags();
	CHECK(post_recv(&a, 60, 4096, 64) == 0, ".");
	add(1, 7, ~0ull, 0, 3000, 0);
	send_tagged(IBV_TMH_RNDV, 3, 7, 16, 3000);
	GOT(1, IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH, 7, 3, 0);
	GOT(1, IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_DATA_VALID, 0, 0, 3000);
	CHECK(arrived(0, a.buf + 2 * SLOT, 3000), ".");
	EXPECT(&a, IBV_WC_SUCCESS, 60, &wc);
	a.buf[0] = IBV_TMH_FIN;
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 32 && !memcmp(a.buf + 4096, a.buf, 32), ": %u", wc.byte_len);
	/* A buffer without room gets the headers, and the program sees to the rest. */
	add(2, 7, ~0ull, 0, 2999, 0);
	send_tagged(IBV_TMH_RNDV, 3, 7, 100, 3000);
	GOT(2, IBV_WC_TM_RECV, IBV_WC_TM_RNDV_INCOMPLETE, IBV_WC_TM_MATCH, 7, 3, 0);
	CHECK(arrived(0, a.buf, 32), ".");
	/* Data that may not be read ends the connection, and the buffer's completion says so. */
	add(3, 7, ~0ull, 0, 6000, 0);
	a.mr->rkey ^= 0x100;
	send_tagged(IBV_TMH_RNDV, 3, 7, 16, 6000);
	a.mr->rkey ^= 0x100;
	GOT(3, IBV_WC_TM_RECV, IBV_WC_SUCCESS, IBV_WC_TM_MATCH, 7, 3, 0);
	GOT(3, IBV_WC_TM_RECV, IBV_WC_REM_ACCESS_ERR, 0, 0, 0, 0);
	close_tags();
}

static void lists(void)
{
	struct ibv_device_attr_ex caps;
	struct ibv_ops_wr wr = { .wr_id = 5, .opcode = IBV_WR_TAG_DEL };
	uint32_t handles[TAGS];

	open_tags();
	CHECK(ibv_query_device_ex(b.ctx, NULL, &caps) == 0 && caps.tm_caps.flags == IBV_TM_CAP_RC && caps.tm_caps.max_num_tags >= TAGS &&
	      caps.tm_caps.max_rndv_hdr_size >= 32 && caps.tm_caps.max_ops > 0 && caps.tm_caps.max_sge > 0, ".");
	for (unsigned i = 0; i < TAGS; i++)
		handles[i] = add(i, i, ~0ull, 0, 10, 0);
	struct ibv_ops_wr more = { .opcode = IBV_WR_TAG_ADD, .tm.add = { .tag = 77, .mask = ~0ull } };
	CHECK(operate(&more) == ENOMEM, ".");
	wr.tm.handle = handles[1];
	CHECK(operate(&wr) == 0, "."); /* unsignaled */
	CHECK(operate(&more) == 0, ".");
	/* Gone: that is an error even of what is not signaled. */
	CHECK(operate(&wr) == 0, ".");
	GOT(5, IBV_WC_TM_DEL, IBV_WC_TM_ERR, 0, 0, 0, 0);
	wr.flags = IBV_OPS_SIGNALED;
	wr.tm.handle = handles[2];
	CHECK(operate(&wr) == 0, ".");
	GOT(5, IBV_WC_TM_DEL, IBV_WC_SUCCESS, 0, 0, 0, 0);
	send_tagged(IBV_TMH_EAGER, 0, 2, 4, 0); /* for the buffer that was removed */
	GOT(100, IBV_WC_TM_RECV, IBV_WC_SUCCESS, 0, 0, 0, 20);

	more.tm.add.num_sge = 1000;
	CHECK(operate(&more) == EINVAL, ".");
	more = (struct ibv_ops_wr){ .opcode = (enum ibv_ops_wr_opcode)9 };
	CHECK(operate(&more) == EINVAL, ".");
	more = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_SYNC, .flags = 64 };
	CHECK(operate(&more) == EINVAL, ".");
	struct ibv_srq_init_attr plain = { .attr = { 4, 1, 0 } };
	struct ibv_srq *other, *kept = srq;
	MUST(other = ibv_create_srq(b.pd, &plain));
	srq = other;
	more = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_SYNC };
	CHECK(operate(&more) == EINVAL, ".");
	srq = kept;
	CHECK(ibv_destroy_srq(other) == 0, ".");

	const uint32_t both = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	CHECK(!make(0, 1, both) && errno == EINVAL, ".");
	CHECK(!make(caps.tm_caps.max_num_tags + 1, 1, both) && errno == EINVAL, ".");
	CHECK(!make(1, caps.tm_caps.max_ops + 1, both) && errno == EINVAL, ".");
	CHECK(!make(1, 1, IBV_SRQ_INIT_ATTR_CQ) && errno == EINVAL, ".");
	CHECK(!make(1, 1, IBV_SRQ_INIT_ATTR_TM) && errno == EINVAL, ".");
	struct ibv_qp_init_attr uc = { .send_cq = b.cq, .recv_cq = b.cq, .srq = srq, .qp_type = IBV_QPT_UC, .cap = { 1, 1, 1, 1, 0 } };
	CHECK(!ibv_create_qp(b.pd, &uc) && errno == EINVAL, ".");
	close_tags();
}

void test_tags(void)
{
	eager();
	rendezvous();
	lists();
}
