/* Device memory. */
#include "bed.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALL = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static struct end a, b;

static struct ibv_dm *alloc(struct ibv_context *c, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(c, &attr);
}

/* Copies, and what is refused. */
static void copies(size_t most)
{
	struct ibv_alloc_dm_attr odd = { .length = 64, .comp_mask = 1 }, aligned = { .length = 64, .log_align_req = 13 };
	struct ibv_dm *dm, *rest;
	uint8_t out[64], in[64];
	struct ibv_mr *mr;

	errno = 0;
	CHECK(!alloc(a.ctx, most + 1) && errno == EINVAL, ": %d", errno);
	CHECK(!alloc(a.ctx, 0) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_alloc_dm(a.ctx, &odd) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_alloc_dm(a.ctx, &aligned) && errno == EINVAL, ": %d", errno);

	MUST(dm = alloc(a.ctx, 100));
	memset(in, 1, sizeof(in));
	CHECK(ibv_memcpy_from_dm(in, dm, 0, 64) == 0 && in[0] == 0 && in[63] == 0, ": not empty at first");
	pattern(out, 64, 5);
	CHECK(ibv_memcpy_to_dm(dm, 36, out, 64) == 0 && ibv_memcpy_from_dm(in, dm, 36, 64) == 0 && !memcmp(in, out, 64), ".");
	CHECK(ibv_memcpy_to_dm(dm, 40, out, 64) == EINVAL && ibv_memcpy_from_dm(in, dm, 104, 4) == EINVAL, ": beyond the end");
	CHECK(ibv_memcpy_to_dm(dm, 1, out, 4) == EINVAL && ibv_memcpy_to_dm(dm, 0, out, 3) == EINVAL, ": not aligned");
	CHECK(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, out, 8) == EINVAL, ".");

	CHECK(!ibv_reg_dm_mr(a.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE) && errno == EINVAL, ": not zero-based");
	CHECK(!ibv_reg_dm_mr(a.pd, dm, 64, 64, ALL) && errno == EINVAL, ": beyond the end");
	CHECK(!ibv_reg_dm_mr(b.pd, dm, 0, 64, ALL) && errno == EINVAL, ": of another device");
	MUST(mr = ibv_reg_dm_mr(a.pd, dm, 0, 100, ALL));
	CHECK(ibv_free_dm(dm) == EBUSY, ": a region is in it");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_INPUT, ".");

	/* The limit is the device's, for all together; what is freed is there again. */
	CHECK(!alloc(a.ctx, most) && errno == ENOMEM, ": %d", errno);
	MUST(rest = alloc(a.ctx, most - 4096));
	CHECK(!alloc(a.ctx, 4) && errno == ENOMEM, ": %d", errno);
	CHECK(ibv_free_dm(rest) == 0, ".");
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0, ".");
	MUST(dm = alloc(a.ctx, most));
	CHECK(ibv_free_dm(dm) == 0, ".");
}

static void move(enum ibv_wr_opcode op, struct ibv_mr *own, uint64_t at, uint32_t n, struct ibv_mr *theirs, uint64_t to,
		 enum ibv_wc_status status, int line)
{
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&a, &b, op, &s, (uint64_t)line, 0, n);

	s.addr = at;
	s.lkey = own->lkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = theirs->rkey;
		wr.wr.atomic.compare_add = 7;
		wr.wr.atomic.swap = 100;
	} else {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = theirs->rkey;
	}
	CHECK(post(&a, &wr) == 0, ": line %d", line);
	expect(&a, status, (uint64_t)line, NULL, line);
}
#define MOVE(op, own, at, n, theirs, to, status) move(op, own, at, n, theirs, to, status, __LINE__)

/* Traffic out of device memory into device memory, whose addresses begin at 0. */
static void traffic(void)
{
	struct ibv_dm *own, *theirs;
	struct ibv_mr *from, *to;
	uint8_t out[4096], in[4096];
	uint64_t v = 1;

	MUST(own = alloc(a.ctx, 8192));
	MUST(theirs = alloc(b.ctx, 8192));
	MUST(from = ibv_reg_dm_mr(a.pd, own, 4096, 4096, ALL));
	MUST(to = ibv_reg_dm_mr(b.pd, theirs, 0, 4096, ALL));
	for (unsigned i = 0; i < 50; i++) { /* the first goes through the driver, later ones directly */
		pattern(out, sizeof(out), i);
		CHECK(ibv_memcpy_to_dm(own, 4096, out, 4096) == 0, ".");
		MOVE(IBV_WR_RDMA_WRITE, from, 0, 4096, to, 0, IBV_WC_SUCCESS);
		CHECK(ibv_memcpy_from_dm(in, theirs, 0, 4096) == 0 && !memcmp(in, out, 4096), ": %u", i);
	}
	MOVE(IBV_WR_RDMA_READ, a.mr, (uintptr_t)a.buf, 256, to, 1024, IBV_WC_SUCCESS);
	CHECK(!memcmp(a.buf, out + 1024, 256), ".");

	CHECK(ibv_memcpy_to_dm(theirs, 64, &v, 8) == 0, ".");
	MOVE(IBV_WR_ATOMIC_FETCH_AND_ADD, from, 8, 8, to, 64, IBV_WC_SUCCESS);
	CHECK(ibv_memcpy_from_dm(&v, theirs, 64, 8) == 0 && v == 8, ": %llu", (unsigned long long)v);
	CHECK(ibv_memcpy_from_dm(&v, own, 4096 + 8, 8) == 0 && v == 1, ": %llu", (unsigned long long)v);
	v = 7;
	CHECK(ibv_memcpy_to_dm(theirs, 64, &v, 8) == 0, ".");
	MOVE(IBV_WR_ATOMIC_CMP_AND_SWP, from, 8, 8, to, 64, IBV_WC_SUCCESS);
	CHECK(ibv_memcpy_from_dm(&v, theirs, 64, 8) == 0 && v == 100, ": %llu", (unsigned long long)v);

	MOVE(IBV_WR_RDMA_WRITE, from, 0, 64, to, 4096 - 32, IBV_WC_REM_ACCESS_ERR); /* in the memory, but not in the region */
	part(&a, &b);
	CHECK(ibv_dereg_mr(from) == 0 && ibv_dereg_mr(to) == 0 && ibv_free_dm(own) == 0 && ibv_free_dm(theirs) == 0, ".");
}

/* A child's device memory is its own, and ends with it, while parent and child go on. */
static void forked(size_t most)
{
	struct ibv_dm *dm;
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		dm = alloc(a.ctx, most);
		_exit(dm && ibv_memcpy_to_dm(dm, 0, &status, 4) == 0 ? 0 : 1);
	}
	MUST(waitpid(child, &status, 0) == child);
	CHECK(status == 0, ": %d", status);
	for (int i = 0; i < 100 && !(dm = alloc(a.ctx, most)); i++) /* the driver may not have seen the child's end yet */
		usleep(50000);
	MUST(dm);
	CHECK(ibv_free_dm(dm) == 0, ".");
}

void test_device_memory(void)
{
	struct ibv_device_attr_ex x;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	MUST(ibv_query_device_ex(a.ctx, NULL, &x) == 0 && x.max_dm_size > 8192);
	copies(x.max_dm_size);
	traffic();
	forked(x.max_dm_size);
	close_end(&a);
	close_end(&b);
}
