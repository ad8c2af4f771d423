/* Memory regions and windows, also in forked children. */
#include "bed.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct end a, b;

static void finish(void)
{
	close_end(&a);
	close_end(&b);
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
				    .bind_info = { b.mr, (uintptr_t)b.buf + 64, 64,
						   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE } };
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

	/* Registered anew: the keys stay, the domain may be another. */
	struct ibv_mr old = *mr;
	struct ibv_pd *other = ibv_alloc_pd(b.ctx);
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT, ".");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 8192, 4096, 0) == 0, ".");
	CHECK(mr->addr == b.buf + 8192 && mr->length == 4096 && mr->rkey == old.rkey && mr->lkey == old.lkey, ".");
	write_through(mr->rkey, (uintptr_t)b.buf + 8192, IBV_WC_SUCCESS, 3);
	CHECK(!memcmp(b.buf + 8192, a.buf, 8), ".");
	MUST(other);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0) == 0 && mr->pd == other, ".");
	CHECK(ibv_dealloc_pd(other) == EBUSY, ".");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0) == 0 && ibv_dealloc_pd(other) == 0, ".");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD, ".");
	write_through(mr->rkey, (uintptr_t)b.buf + 8192, IBV_WC_SUCCESS, 4); /* it is as it was */
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0 && mr->rkey == old.rkey, ".");
	write_through(mr->rkey, (uintptr_t)b.buf + 8192, IBV_WC_REM_ACCESS_ERR, 5);
	CHECK(ibv_dereg_mr(mr) == 0, ".");

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

enum { SHARERS = 4, REQUESTS = 300 };

/* state_of returns that of an end's queue pair, as the driver tells it. */
static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

/* asks makes and removes objects, and looks at others; each answer must be to what was asked. */
static void asks(void)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(a.ctx);

		CHECK(pd, ": %u", i);
		CHECK(state_of(&a) == IBV_QPS_INIT, ": %u", i);
		CHECK(state_of(&b) == IBV_QPS_RESET, ": %u", i);
		CHECK(!pd || ibv_dealloc_pd(pd) == 0, ": %u", i);
	}
}

static void *asks_meanwhile(void *unused)
{
	asks();
	return unused;
}

/* together: processes that share an attachment ask at the same moment, also while one forks. */
static void together(void)
{
	pid_t pids[SHARERS];
	pthread_t thread;
	int status;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	to_init(&a);
	fflush(NULL);
	CHECK(pthread_create(&thread, NULL, asks_meanwhile, NULL) == 0, ".");
	for (int i = 0; i < SHARERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			failures = 0;
			alarm(60);
			asks();
			_exit(failures != 0);
		}
	}
	asks();
	for (int i = 0; i < SHARERS; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, ": child %d: status %x", i, status);
	pthread_join(thread, NULL);
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
	together();
}
