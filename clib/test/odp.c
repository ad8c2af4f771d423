/* Regions on demand: nothing of them is touched before it is used, and whatever is at their addresses then is used. */
#define _GNU_SOURCE
#include "bed.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LOCAL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND,
       REMOTE = LOCAL | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

/* The peer's memory is missing: not a status of a completion, but one of two. */
#define MISSING ((enum ibv_wc_status)-1)

/* Two pairs of queue pairs: an error of the first must not affect the second. */
static struct end a, b, c, d;
static uint64_t id;

static void pair(struct end *x, struct end *y)
{
	make_qp(x, IBV_QPT_RC, NULL);
	make_qp(y, IBV_QPT_RC, NULL);
	join(x, y);
}

static uint8_t *map(size_t n)
{
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* resident counts the pages of a range that are in memory. */
static size_t resident(uint8_t *p, size_t n)
{
	static unsigned char in[1 << 16];
	size_t count = 0;

	MUST(n / PAGE <= sizeof(in) && mincore(p, n, in) == 0);
	for (size_t i = 0; i < n / PAGE; i++)
		count += in[i] & 1;
	return count;
}

/* move lets x write or read length bytes at an address of its peer, from or to its own buffer or address. */
static void move(struct end *x, struct end *y, enum ibv_wr_opcode op, uint64_t own, uint32_t lkey, uint64_t addr, uint32_t rkey,
		 uint32_t length, enum ibv_wc_status status, int line)
{
	struct ibv_sge s;
	struct ibv_send_wr wr = request(x, y, op, &s, ++id, 0, length);

	s.addr = own;
	s.lkey = lkey;
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	CHECK(post(x, &wr) == 0, ": line %d", line);
	if (status != MISSING) {
		expect(x, status, id, NULL, line);
		return;
	}
	/* Whoever copies says which: the driver finds out before it answers, a copier later. */
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	CHECK(next(x->cq, &wc) && (wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_OP_ERR), ": line %d: %s", line,
	      ibv_wc_status_str(wc.status));
}

#define WRITE(to, region, n, status) move(&a, &b, IBV_WR_RDMA_WRITE, (uintptr_t)a.buf, a.mr->lkey, (uintptr_t)(to), (region)->rkey, n, status, __LINE__)
#define READ(from, region, n, status) move(&a, &b, IBV_WR_RDMA_READ, (uintptr_t)a.buf, a.mr->lkey, (uintptr_t)(from), (region)->rkey, n, status, __LINE__)
#define SEND_FROM(at, region, status) move(&a, &b, IBV_WR_RDMA_WRITE, (uintptr_t)(at), (region)->lkey, (uintptr_t)b.buf, b.mr->rkey, 64, status, __LINE__)

/* again makes the first pair anew after an error, and shows that the second has not noticed. */
static void again(void)
{
	move(&c, &d, IBV_WR_RDMA_WRITE, (uintptr_t)c.buf, c.mr->lkey, (uintptr_t)d.buf, d.mr->rkey, 64, IBV_WC_SUCCESS, __LINE__);
	part(&a, &b);
	pair(&a, &b);
}

static void capabilities(void)
{
	const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex x;

	MUST(ibv_query_device_ex(a.ctx, NULL, &x) == 0);
	CHECK(x.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT), ": %lx", (unsigned long)x.odp_caps.general_caps);
	/* 0xc0: flushes and atomic writes, which old headers do not name */
	CHECK(x.odp_caps.per_transport_caps.rc_odp_caps == (all | 0xc0), ": %x", x.odp_caps.per_transport_caps.rc_odp_caps);
}

/* Registering touches nothing; pages come when they are used, and may come, go and change meanwhile. */
static void pages_come_and_go(void)
{
	size_t n = 4 << 20;
	uint8_t *p = map(n);
	struct ibv_mr *mr;

	MUST(mr = ibv_reg_mr(b.pd, p, n, REMOTE));
	CHECK(resident(p, n) == 0, ": %zu", resident(p, n));
	pattern(a.buf, PAGE, 1);
	WRITE(p + PAGE / 2, mr, PAGE, IBV_WC_SUCCESS); /* pages that are not there yet */
	CHECK(!memcmp(p + PAGE / 2, a.buf, PAGE), ".");
	READ(p + 512 * PAGE, mr, PAGE, IBV_WC_SUCCESS);
	for (int i = 0; i < PAGE; i++)
		CHECK(a.buf[i] == 0, ": %d", i);

	/* Thrown away by the program: what was there must not be seen again. */
	memset(p, 7, n);
	READ(p, mr, 64, IBV_WC_SUCCESS);
	CHECK(a.buf[0] == 7, ".");
	MUST(madvise(p, n, MADV_DONTNEED) == 0);
	READ(p, mr, 64, IBV_WC_SUCCESS);
	CHECK(a.buf[0] == 0 && a.buf[63] == 0, ": %d", a.buf[0]);

	/* Moved by the kernel into a large page, if it can. */
	memset(p, 8, n);
	madvise(p, n, 25 /* MADV_COLLAPSE */);
	READ(p + n - 64, mr, 64, IBV_WC_SUCCESS);
	CHECK(a.buf[0] == 8, ".");

	/* Another mapping in the same place. */
	MUST(mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	READ(p, mr, 64, IBV_WC_SUCCESS);
	CHECK(a.buf[0] == 0, ".");

	/* A page that may not be written, and one that is not there any more: errors of this queue pair alone. */
	MUST(mprotect(p, PAGE, PROT_READ) == 0);
	WRITE(p, mr, 64, MISSING);
	again();
	MUST(munmap(p + PAGE, PAGE) == 0);
	READ(p + PAGE, mr, 64, MISSING);
	again();
	WRITE(p + PAGE, mr, 64, MISSING);
	again();
	SEND_FROM(p + PAGE, mr, IBV_WC_LOC_PROT_ERR); /* of another domain */
	again();
	READ(p, mr, 64, IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	READ(p, b.mr, 64, IBV_WC_REM_ACCESS_ERR); /* not in that region */
	again();
	munmap(p, n);
}

/* Memory that is not there when it is registered may come later. */
static void mapped_later(void)
{
	uint8_t *p = map(2 * PAGE);
	struct ibv_mr *mr;

	MUST(munmap(p, 2 * PAGE) == 0);
	MUST(mr = ibv_reg_mr(a.pd, p, 2 * PAGE, LOCAL));
	SEND_FROM(p, mr, IBV_WC_LOC_PROT_ERR);
	again();
	MUST(mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	pattern(p, 2 * PAGE, 2);
	SEND_FROM(p + 100, mr, IBV_WC_SUCCESS);
	CHECK(!memcmp(b.buf, p + 100, 64), ".");
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	munmap(p, 2 * PAGE);
}

/* An implicit region is all of the address space, whatever is there when it is used. */
static void implicit(void)
{
	struct ibv_mr *own, *theirs;
	uint8_t *p = map(2 * PAGE), *q;

	MUST(own = ibv_reg_mr(a.pd, NULL, SIZE_MAX, LOCAL));
	MUST(theirs = ibv_reg_mr(b.pd, NULL, SIZE_MAX, REMOTE));
	CHECK(theirs->addr == NULL && theirs->length == SIZE_MAX, ".");
	pattern(p, 2 * PAGE, 3);
	SEND_FROM(p, own, IBV_WC_SUCCESS);
	CHECK(!memcmp(b.buf, p, 64), ".");
	pattern(a.buf, 64, 4);
	WRITE(p + PAGE, theirs, 64, IBV_WC_SUCCESS);
	CHECK(!memcmp(p + PAGE, a.buf, 64), ".");

	MUST((q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map(2 * PAGE))) != MAP_FAILED);
	READ(q + PAGE, theirs, 64, IBV_WC_SUCCESS);
	READ(p + PAGE, theirs, 64, MISSING);
	again();
	READ((uintptr_t)8, theirs, 64, MISSING); /* a page that nobody has */
	again();
	READ(UINT64_MAX - 63, theirs, 64, IBV_WC_REM_ACCESS_ERR); /* beyond the last byte */
	again();
	SEND_FROM(1, own, IBV_WC_LOC_PROT_ERR);
	again();
	CHECK(ibv_dereg_mr(own) == 0 && ibv_dereg_mr(theirs) == 0, ".");
	munmap(q, 2 * PAGE);
	errno = 0;
	CHECK(!ibv_reg_mr(a.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), ": not on demand");
}

/* A page that a child shares is copied when the peer writes to it: the child keeps what it had. */
static void copied_on_write(void)
{
	uint8_t *p = map(PAGE), was = 0;
	struct ibv_mr *mr;
	int down[2], up[2];
	pid_t child;

	MUST(pipe(down) == 0 && pipe(up) == 0);
	MUST(mr = ibv_reg_mr(b.pd, p, PAGE, REMOTE));
	memset(p, 1, PAGE);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		char go;

		if (read(down[0], &go, 1) != 1 || write(up[1], p, 1) != 1)
			_exit(1);
		_exit(0);
	}
	memset(a.buf, 2, 64);
	WRITE(p, mr, 64, IBV_WC_SUCCESS);
	MUST(write(down[1], "x", 1) == 1 && read(up[0], &was, 1) == 1);
	CHECK(was == 1 && p[0] == 2, ": child %d, parent %d", was, p[0]);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++)
		close(down[i]), close(up[i]);
	CHECK(ibv_dereg_mr(mr) == 0, ".");
	munmap(p, PAGE);
}

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, void *at, uint32_t n, struct ibv_mr *mr)
{
	struct ibv_sge s = { (uintptr_t)at, n, mr->lkey };

	return ibv_advise_mr(pd, advice, flags, &s, 1);
}

static void advice(void)
{
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	size_t n = 64 * PAGE;
	uint8_t *p = map(n);
	struct ibv_mr *mr, *mute;

	MUST(mr = ibv_reg_mr(a.pd, p, n, LOCAL));
	MUST(mute = ibv_reg_mr(a.pd, p, n, IBV_ACCESS_ON_DEMAND));
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush, p, (uint32_t)n, mr) == 0 && resident(p, n) == 0, ".");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, p, 16 * PAGE, mr) == 0 && resident(p, 16 * PAGE) == 16, ".");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flush, p + 16 * PAGE + 1, 16 * PAGE, mr) == 0, ".");
	CHECK(resident(p + 16 * PAGE, 17 * PAGE) == 17, ": %zu", resident(p + 16 * PAGE, 17 * PAGE));
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, p + n - PAGE, 2 * PAGE, mr) == EFAULT, ".");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flush, p, PAGE, mute) == EFAULT, ".");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, p, PAGE, mute) == 0, ".");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, a.buf, PAGE, a.mr) == EFAULT, ": not on demand");
	CHECK(advise(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, p, PAGE, mr) == EFAULT, ": of another device");
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, p, PAGE, mr) == EINVAL, ".");
	CHECK(advise(a.pd, 3, flush, p, PAGE, mr) == EOPNOTSUPP, ".");
	MUST(munmap(p + PAGE, PAGE) == 0);
	CHECK(advise(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, p, 2 * PAGE, mr) == EFAULT, ".");
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(mute) == 0, ".");
	munmap(p, n);
}

void test_on_demand(void)
{
	open_end(&a, 0);
	open_end(&b, 1);
	open_end(&c, 0);
	open_end(&d, 1);
	pair(&a, &b);
	pair(&c, &d);
	capabilities();
	pages_come_and_go();
	mapped_later();
	implicit();
	copied_on_write();
	advice();
	close_end(&a);
	close_end(&b);
	close_end(&c);
	close_end(&d);
}
