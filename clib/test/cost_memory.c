/* What binding windows, registering memory and first touching it cost. */
#include "cost.h"

#include <errno.h>
#include <sys/mman.h>

enum { BINDS = 200, REGISTRATIONS = 50, PIECE = BYTES, REGION = 4 << 20, PIECES = REGION / PIECE, PAGES = PIECE / 4096 };

static struct pair p, other; /* windows take a connection off the direct path for a while: the writes beside them have their own */
static struct ibv_mw *window;
static struct ibv_mr *mr;

static double writes(void)
{
	double began = nanoseconds();

	for (int i = 0; i < BINDS; i++)
		write_one(&other, (uintptr_t)other.b.buf, other.b.mr->rkey, 8);
	return (nanoseconds() - began) / BINDS;
}

static double binds(void)
{
	double began = nanoseconds();
	struct ibv_wc wc;

	for (int i = 0; i < BINDS; i++) {
		struct ibv_mw_bind b = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED,
					 .bind_info = { p.a.mr, (uintptr_t)p.a.buf + (size_t)(i % 64) * 64, 64, IBV_ACCESS_REMOTE_WRITE } };

		MUST(ibv_bind_mw(p.a.qp, window, &b) == 0 && next(p.a.cq, &wc) && wc.status == IBV_WC_SUCCESS);
	}
	return (nanoseconds() - began) / BINDS;
}

/* locks is what a kernel does to memory that is registered: it finds the pages and pins them. */
static double locks(void)
{
	double began = nanoseconds();

	for (int i = 0; i < REGISTRATIONS; i++)
		MUST(mlock(p.a.buf, 4096) == 0 && munlock(p.a.buf, 4096) == 0);
	return (nanoseconds() - began) / REGISTRATIONS;
}

static double registers(void)
{
	double began = nanoseconds();

	for (int i = 0; i < REGISTRATIONS; i++) {
		struct ibv_mr *m = ibv_reg_mr(p.a.pd, p.a.buf, 4096, IBV_ACCESS_LOCAL_WRITE);

		MUST(m && ibv_dereg_mr(m) == 0);
	}
	return (nanoseconds() - began) / REGISTRATIONS;
}

static double reregisters(void)
{
	double began = nanoseconds();

	for (int i = 0; i < REGISTRATIONS; i++)
		MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.a.buf + (size_t)(i % 8) * 4096, 4096, 0) == 0);
	return (nanoseconds() - began) / REGISTRATIONS;
}

/* A region of the peer's that is written as a whole. */
struct region {
	uint8_t *at;
	struct ibv_mr *mr;
	unsigned access;
	bool pinned;
};

static void map(struct region *r)
{
	r->at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(r->at != MAP_FAILED);
}

static void prepare(struct region *r)
{
	MUST(!r->pinned || mlock(r->at, REGION) == 0);
	MUST(r->mr = ibv_reg_mr(p.b.pd, r->at, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | r->access));
}

static void forget(struct region *r)
{
	MUST(ibv_dereg_mr(r->mr) == 0 && munmap(r->at, REGION) == 0);
}

static void write_all(struct region *r)
{
	for (size_t at = 0; at < REGION; at += PIECE)
		write_one(&p, (uintptr_t)r->at + at, r->mr->rkey, PIECE);
}

/* first registers memory that nobody has touched yet, and writes to all of it: a page costs what pinning it costs, or what its
 * first touch does. */
static double first(unsigned access, bool pinned)
{
	struct region r = { .access = access, .pinned = pinned };

	map(&r);
	double began = nanoseconds();

	prepare(&r);
	write_all(&r);
	double took = nanoseconds() - began;

	forget(&r);
	return took / PIECES;
}

static double first_pinned(void) { return first(0, true); }
static double first_usual(void) { return first(0, false); }
static double first_on_demand(void) { return first(IBV_ACCESS_ON_DEMAND, false); }

static struct region pinned = { .pinned = true }, usual, on_demand = { .access = IBV_ACCESS_ON_DEMAND };

static double again(struct region *r)
{
	double began = nanoseconds();

	write_all(r);
	return (nanoseconds() - began) / PIECES;
}

static double again_pinned(void) { return again(&pinned); }
static double again_usual(void) { return again(&usual); }
static double again_on_demand(void) { return again(&on_demand); }

/* touched writes itself to memory that nobody has touched: what the kernel takes for its pages alone. */
static double touched(void)
{
	struct region r;

	map(&r);
	double began = nanoseconds();

	memset(r.at, 1, REGION);
	double took = nanoseconds() - began;

	MUST(munmap(r.at, REGION) == 0);
	return took / PIECES;
}

static void touches(void)
{
	struct measure firsts[] = { { "pinned (mlock)", first_pinned, 0 }, { "not on demand", first_usual, 0 },
					  { "on demand", first_on_demand, 0 }, { "the program's own memset", touched, 0 } },
		       agains[] = { { "pinned (mlock)", again_pinned, 0 }, { "not on demand", again_usual, 0 },
					  { "on demand", again_on_demand, 0 } };
	struct region *all[] = { &pinned, &usual, &on_demand };

	compare("registering and first writing to 4 MB, each 64 KB:", firsts, 4, 31);
	for (int i = 0; i < 3; i++) {
		map(all[i]);
		prepare(all[i]);
		write_all(all[i]);
	}
	compare("writing to it again, each 64 KB:", agains, 3, 31);
	for (int i = 0; i < 3; i++)
		forget(all[i]);
	printf("  a page of 4 KB costs at its first touch, by these: %.0f ns pinned, %.0f not on demand, %.0f on demand\n",
	       (firsts[0].median - agains[0].median) / PAGES, (firsts[1].median - agains[1].median) / PAGES,
	       (firsts[2].median - agains[2].median) / PAGES);
}

void cost_memory(void)
{
	struct measure bound[] = { { "write of 8 bytes", writes, 0 }, { "bind of a window", binds, 0 } },
		       registered[] = { { "mlock and munlock of 4 KB", locks, 0 }, { "ibv_reg_mr and ibv_dereg_mr, 4 KB", registers, 0 },
					      { "ibv_rereg_mr, another 4 KB", reregisters, 0 } };

	connect_pair(&p, NULL, NULL, DEPTH);
	connect_pair(&other, NULL, NULL, DEPTH);
	MUST(window = ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_1));
	compare("one after the other, each completed before the next:", bound, 2, 101);
	MUST(ibv_dealloc_mw(window) == 0);
	MUST(mr = ibv_reg_mr(p.a.pd, p.a.buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	compare("registering:", registered, 3, 101);
	MUST(ibv_dereg_mr(mr) == 0);
	touches();
	close_pair(&p);
	close_pair(&other);
}
