#include "bed.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

int failures;

bool check(bool ok, const char *file, int line, const char *what, const char *format, ...)
{
	va_list args;

	if (ok)
		return true;
	failures++;
	fprintf(stderr, "%s:%d: not %s", file, line, what);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

void open_end(struct end *e, int device)
{
	int n, index = -1;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_gid_entry gids[64];
	ssize_t k;

	memset(e, 0, sizeof(*e));
	MUST(list && n > device);
	MUST(e->ctx = ibv_open_device(list[device]));
	ibv_free_device_list(list);
	k = ibv_query_gid_table(e->ctx, gids, 64, 0);
	for (ssize_t i = 0; i < k && index < 0; i++)
		if (gids[i].gid_type == IBV_GID_TYPE_ROCE_V2 && gids[i].gid.raw[10] == 0xff)
			index = (int)gids[i].gid_index;
	MUST(index >= 0);
	e->gid_index = index;
	MUST(ibv_query_gid(e->ctx, 1, index, &e->gid) == 0);
	MUST(e->pd = ibv_alloc_pd(e->ctx));
	MUST(e->cq = ibv_create_cq(e->ctx, 4 * DEPTH, e, NULL, 0));
	MUST(e->buf = aligned_alloc(4096, BYTES));
	memset(e->buf, 0, BYTES);
	MUST(e->mr = ibv_reg_mr(e->pd, e->buf, BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND));
	e->psn = 0x1000 * (unsigned)(device + 1);
}

void close_end(struct end *e)
{
	if (e->qp)
		CHECK(ibv_destroy_qp(e->qp) == 0, ".");
	CHECK(ibv_dereg_mr(e->mr) == 0, ".");
	CHECK(ibv_destroy_cq(e->cq) == 0, ".");
	CHECK(ibv_dealloc_pd(e->pd) == 0, ".");
	CHECK(ibv_close_device(e->ctx) == 0, ".");
	free(e->buf);
}

void make_qp(struct end *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr a = { .qp_context = e, .send_cq = e->cq, .recv_cq = e->cq, .srq = srq, .qp_type = type,
				      .cap = { DEPTH, DEPTH, 4, 4, 64 } };

	MUST(e->qp = ibv_create_qp(e->pd, &a));
	CHECK(a.cap.max_send_wr >= DEPTH && a.cap.max_send_sge >= 4 && a.cap.max_inline_data >= 64, ": %u, %u, %u",
	      a.cap.max_send_wr, a.cap.max_send_sge, a.cap.max_inline_data);
}

void to_init(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				    1 << 8 /* IBV_ACCESS_FLUSH_GLOBAL, which old headers lack */ };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	MUST(ibv_modify_qp(e->qp, &a, mask | (e->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
}

void to_rtr(struct end *e, struct end *peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp->qp_num,
				 .rq_psn = peer->psn, .max_dest_rd_atomic = 4, .min_rnr_timer = 1 };
	int ud = e->qp->qp_type == IBV_QPT_UD, rc = e->qp->qp_type == IBV_QPT_RC;

	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a.ah_attr.grh.dgid = peer->gid;
	a.ah_attr.grh.sgid_index = (uint8_t)e->gid_index;
	a.ah_attr.grh.hop_limit = 64;
	MUST(ibv_modify_qp(e->qp, &a, ud ? IBV_QP_STATE : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			   IBV_QP_RQ_PSN | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
}

void to_rts(struct end *e)
{
	int rc = e->qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = e->psn, .timeout = 14, .retry_cnt = 7, .rnr_retry = 1,
				  .max_rd_atomic = 4 };
	MUST(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
}

void join(struct end *a, struct end *b)
{
	if (a->qp->state == IBV_QPS_RESET)
		to_init(a);
	if (b->qp->state == IBV_QPS_RESET)
		to_init(b);
	to_rtr(a, b);
	to_rts(a);
	to_rtr(b, a);
	to_rts(b);
}

void part(struct end *a, struct end *b)
{
	CHECK(ibv_destroy_qp(a->qp) == 0, ".");
	CHECK(ibv_destroy_qp(b->qp) == 0, ".");
	a->qp = b->qp = NULL;
}

void open_joined(struct end *a, struct end *b, enum ibv_qp_type type)
{
	open_end(a, 0);
	open_end(b, 1);
	make_qp(a, type, NULL);
	make_qp(b, type, NULL);
	join(a, b);
}

void close_joined(struct end *a, struct end *b)
{
	part(a, b);
	close_end(a);
	close_end(b);
}

bool next(struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct timespec begin, now;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (n != 0)
			return CHECK(n == 1, ": poll says %d", n);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < 5);
	return false;
}

void expect(struct end *e, enum ibv_wc_status status, uint64_t id, struct ibv_wc *wc, int line)
{
	struct ibv_wc other;

	wc = wc ? wc : &other;
	if (!next(e->cq, wc)) {
		CHECK(false, ": no completion %llu for line %d", (unsigned long long)id, line);
		return;
	}
	CHECK(wc->status == status && wc->wr_id == id, ": line %d: %s, id %llu; expected %s, %llu", line,
	      ibv_wc_status_str(wc->status), (unsigned long long)wc->wr_id, ibv_wc_status_str(status), (unsigned long long)id);
	CHECK(wc->qp_num == e->qp->qp_num, ": line %d", line);
}

int post_recv(struct end *e, uint64_t id, size_t at, uint32_t length)
{
	struct ibv_sge s = { (uintptr_t)e->buf + at, length, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &s, .num_sge = 1 };

	return ibv_post_recv(e->qp, &wr, &bad);
}

struct ibv_send_wr request(struct end *e, struct end *peer, enum ibv_wr_opcode op, struct ibv_sge *s, uint64_t id, size_t at,
			   uint32_t length)
{
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED };

	*s = (struct ibv_sge){ (uintptr_t)e->buf + at, length, e->mr->lkey };
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + at;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else if (op != IBV_WR_SEND && op != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + at;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

int post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

void pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + 31 * i + (i >> 8));
}

uint64_t microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}
