/* Objects shared between processes. */
#define _GNU_SOURCE
#include "bed.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

/* What the two processes tell each other, besides turns. */
static struct told {
	uint32_t number[2], psn[2];
	union ibv_gid gid;
	int failures;
} *told;
static int turn[2][2]; /* pipes: to the child, to the parent */

static struct end a, b; /* the parent's: a shares its domain, memory and device memory, b is the peer of the child's queue pair */

static void pass(int who) { MUST(write(turn[who][1], "x", 1) == 1); }
static void wait_for(int who)
{
	char c;

	MUST(read(turn[who][0], &c, 1) == 1);
}

/* stranger makes a stand-in for the other process's end, for what join asks of a peer. */
static void stranger(struct end *e, struct ibv_qp *qp, int i)
{
	memset(e, 0, sizeof(*e));
	qp->qp_num = told->number[i];
	e->qp = qp;
	e->psn = told->psn[i];
	e->gid = told->gid;
}

static void refusals(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_pd *other;
	int fd = fileno(tmpfile());

	errno = 0;
	CHECK(!ibv_import_device(fd) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_import_device(-1) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_import_device(turn[0][0]) && errno == EINVAL, ": %d", errno);
	CHECK(!ibv_import_pd(ctx, 0x1fffffff) && errno == ENOENT, ": %d", errno);
	CHECK(!ibv_import_mr(pd, 0) && errno == ENOENT, ": %d", errno);
	CHECK(!ibv_import_dm(ctx, a.mr->handle) && errno == ENOENT, ": of another kind: %d", errno);
	MUST(other = ibv_alloc_pd(ctx));
	CHECK(!ibv_import_mr(other, a.mr->handle) && errno == EINVAL, ": into another domain: %d", errno);
	CHECK(ibv_dealloc_pd(other) == 0, ".");
}

/* The child has a queue pair of its own in the parent's domain, and uses the parent's memory with it. */
static void importer(int cmd_fd, uint32_t dm_handle)
{
	struct end c = { 0 }, there;
	struct ibv_qp qp;
	struct ibv_dm *dm;
	uint32_t word = 0;
	struct ibv_sge s;

	c.psn = 5;
	MUST(c.ctx = ibv_import_device(dup(cmd_fd)));
	MUST(c.pd = ibv_import_pd(c.ctx, a.pd->handle));
	MUST(c.mr = ibv_import_mr(c.pd, a.mr->handle));
	CHECK(c.mr->lkey == a.mr->lkey && c.mr->rkey == a.mr->rkey, ".");
	refusals(c.ctx, c.pd);
	MUST(dm = ibv_import_dm(c.ctx, dm_handle));
	CHECK(ibv_memcpy_from_dm(&word, dm, 4, 4) == 0 && word == 77, ": %u", word);
	word = 78;
	CHECK(ibv_memcpy_to_dm(dm, 8, &word, 4) == 0, ".");
	struct ibv_mr *region = ibv_reg_dm_mr(c.pd, dm, 0, 64, ACCESS | IBV_ACCESS_ZERO_BASED);
	CHECK(region && ibv_dereg_mr(region) == 0, ": %d", errno);
	ibv_unimport_dm(dm);

	MUST(c.cq = ibv_create_cq(c.ctx, 16, NULL, NULL, 0));
	c.gid_index = a.gid_index;
	make_qp(&c, IBV_QPT_RC, NULL);
	told->number[0] = c.qp->qp_num;
	told->psn[0] = c.psn;
	told->gid = b.gid;
	pass(1);
	wait_for(0);
	stranger(&there, &qp, 1);
	to_init(&c);
	to_rtr(&c, &there);
	to_rts(&c);
	pass(1); /* the parent writes, to what is its own memory */
	wait_for(0);

	/* The parent's memory, not this process's copy of it. */
	memset(a.buf, 0, BYTES);
	c.buf = a.buf;
	struct ibv_send_wr wr = request(&c, &there, IBV_WR_SEND, &s, 9, 4096, 64);
	CHECK(post(&c, &wr) == 0, ".");
	EXPECT(&c, IBV_WC_SUCCESS, 9, NULL);
	pass(1);
	wait_for(0); /* the parent ends its region */
	wr = request(&c, &there, IBV_WR_SEND, &s, 10, 4096, 64);
	CHECK(post(&c, &wr) == 0, ".");
	EXPECT(&c, IBV_WC_LOC_PROT_ERR, 10, NULL);

	CHECK(ibv_destroy_qp(c.qp) == 0 && ibv_destroy_cq(c.cq) == 0, ".");
	CHECK(ibv_dereg_mr(c.mr) == EINVAL, ": it is the parent's");
	ibv_unimport_mr(c.mr);
	ibv_unimport_pd(c.pd);
	CHECK(ibv_close_device(c.ctx) == 0, ".");
	told->failures = failures;
}

void test_import(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm;
	struct end there;
	struct ibv_qp qp;
	struct ibv_sge s;
	uint32_t word = 77;
	int status;
	pid_t child;

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(told != MAP_FAILED && pipe(turn[0]) == 0 && pipe(turn[1]) == 0);
	open_end(&a, 0);
	open_end(&b, 1);
	MUST(dm = ibv_alloc_dm(a.ctx, &attr));
	CHECK(ibv_memcpy_to_dm(dm, 4, &word, 4) == 0, ".");
	told->failures = 1;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		failures = 0;
		importer(a.ctx->cmd_fd, dm->handle);
		_exit(failures != 0);
	}
	wait_for(1);
	CHECK(ibv_memcpy_from_dm(&word, dm, 8, 4) == 0 && word == 78, ": %u", word);
	CHECK(ibv_free_dm(dm) == 0, ".");
	make_qp(&b, IBV_QPT_RC, NULL);
	told->number[1] = b.qp->qp_num;
	told->psn[1] = b.psn;
	union ibv_gid own = a.gid;
	stranger(&there, &qp, 0);
	there.gid = own;
	to_init(&b);
	to_rtr(&b, &there);
	to_rts(&b);
	pass(0);
	wait_for(1);

	pattern(b.buf, 64, 3);
	struct ibv_send_wr wr = request(&b, &a, IBV_WR_RDMA_WRITE, &s, 1, 0, 64); /* with a's key, over the child's queue pair */
	CHECK(post(&b, &wr) == 0, ".");
	EXPECT(&b, IBV_WC_SUCCESS, 1, NULL);
	CHECK(!memcmp(a.buf, b.buf, 64), ".");

	pattern(a.buf + 4096, 64, 6);
	CHECK(post_recv(&b, 2, 8192, 64) == 0, ".");
	pass(0);
	EXPECT(&b, IBV_WC_SUCCESS, 2, NULL);
	CHECK(!memcmp(b.buf + 8192, a.buf + 4096, 64), ".");
	wait_for(1);
	CHECK(ibv_dereg_mr(a.mr) == 0, ".");
	pass(0);
	MUST(waitpid(child, &status, 0) == child);
	CHECK(status == 0 && told->failures == 0, ": %x", status);
	CHECK(ibv_destroy_qp(b.qp) == 0, ".");
	b.qp = NULL;
	MUST(a.mr = ibv_reg_mr(a.pd, a.buf, BYTES, ACCESS)); /* the parent's domain is as it was */
	close_end(&a);
	close_end(&b);
	for (int i = 0; i < 2; i++)
		close(turn[i][0]), close(turn[i][1]);
	munmap(told, sizeof(*told));
}
