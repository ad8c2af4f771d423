/* What ibv_post_send and an empty ibv_poll_cq cost, in nanoseconds, and what is done with memory: cost. Uses one connection
 * between two adapters; see make -C clib cost. */
#include "bed.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 400, BURST = 256, QUEUE = 512, POLLS = 1000, MOST_ROUNDS = ROUNDS * BURST };

static struct end a, b;
static double samples[MOST_ROUNDS];

/* ticks reads a counter of the processor, which takes less time than reading the clock. */
static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
#endif
}

static double nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* per_tick is the length of a tick in nanoseconds, own how many ticks reading the counter takes. */
static double per_tick;
static uint64_t own;

static void calibrate(void)
{
	double began = nanoseconds();
	uint64_t first = ticks(), t;

	own = UINT64_MAX;
	while (nanoseconds() - began < 2e7) {
		t = ticks();
		t = ticks() - t;
		own = t < own ? t : own;
	}
	per_tick = (nanoseconds() - began) / (double)(ticks() - first);
}

static int by_size(const void *x, const void *y)
{
	double p = *(const double *)x, q = *(const double *)y;

	return p < q ? -1 : p > q;
}

/* tell prints statistics of n samples. The mean of all includes times in which other programs had the processor. */
static void tell(const char *what, int n)
{
	double sum = 0, most = 0;
	int usual = n - n / 1000;

	qsort(samples, (size_t)n, sizeof(*samples), by_size);
	for (int i = 0; i < n; i++) {
		sum += samples[i];
		most = i < usual ? sum / (i + 1) : most;
	}
	printf("%-40s median %5.1f  mean %6.1f, of 99.9%% %5.1f  99%% %6.1f  most %9.1f ns\n", what, samples[n / 2], sum / n, most,
	       samples[(int)(0.99 * n)], samples[n - 1]);
}

/* settle takes completions until that of the last request of a burst. */
static void settle(void)
{
	struct ibv_wc wc[16];

	for (bool last = false; !last;) {
		int n = ibv_poll_cq(a.cq, 16, wc);

		MUST(n >= 0);
		for (int i = 0; i < n; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			last = last || wc[i].wr_id == 1;
		}
	}
}

/* posts measures each post in bursts of 8-byte writes, of which only the last is signaled. */
static void posts(const char *what)
{
	int n = 0;

	for (int r = 0; r < ROUNDS; r++) {
		struct ibv_sge s;
		struct ibv_send_wr *bad, wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 0, 0, 8);

		for (int i = 0; i < BURST; i++) {
			bool last = i == BURST - 1;

			wr.wr_id = last;
			wr.send_flags = last ? IBV_SEND_SIGNALED : 0;
			uint64_t t = ticks();
			int error = ibv_post_send(a.qp, &wr, &bad);

			t = ticks() - t;
			MUST(!error);
			samples[n++] = per_tick * (double)(t > own ? t - own : 0);
		}
		settle();
	}
	tell(what, n);
}

static void polls(void)
{
	struct ibv_wc wc;
	int n = 0;

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t t = ticks();

		for (int i = 0; i < POLLS; i++)
			MUST(ibv_poll_cq(a.cq, 1, &wc) == 0);
		samples[n++] = per_tick * (double)(ticks() - t) / POLLS;
	}
	tell("ibv_poll_cq that finds nothing", n);
}

/* per prints how often a second something was done that took so many nanoseconds n times. */
static void per(const char *what, int n, double took) { printf("%-40s %9.0f a second, %8.2f us each\n", what, 1e9 * n / took, took / n / 1e3); }

/* binds binds windows of both types, one after the other. */
static void binds(void)
{
	struct ibv_mw *one = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	struct ibv_wc wc;
	enum { BINDS = 20000 };

	MUST(one);
	double began = nanoseconds();

	for (int i = 0; i < BINDS; i++) {
		struct ibv_mw_bind b1 = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED,
					  .bind_info = { a.mr, (uintptr_t)a.buf + (size_t)(i % 64) * 64, 64, IBV_ACCESS_REMOTE_WRITE } };

		MUST(ibv_bind_mw(a.qp, one, &b1) == 0 && next(a.cq, &wc) && wc.status == IBV_WC_SUCCESS);
	}
	per("bind of a window, completed", BINDS, nanoseconds() - began);
	MUST(ibv_dealloc_mw(one) == 0);
}

static void registrations(void)
{
	enum { TIMES = 5000 };
	struct ibv_mr *mr;
	double began = nanoseconds();

	for (int i = 0; i < TIMES; i++) {
		MUST(mr = ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE));
		MUST(ibv_dereg_mr(mr) == 0);
	}
	per("ibv_reg_mr and ibv_dereg_mr, 4 KB", TIMES, nanoseconds() - began);
	MUST(mr = ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	began = nanoseconds();
	for (int i = 0; i < TIMES; i++)
		MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a.buf + (size_t)(i % 8) * 4096, 4096, 0) == 0);
	per("ibv_rereg_mr, another 4 KB", TIMES, nanoseconds() - began);
	MUST(ibv_dereg_mr(mr) == 0);
}

/* write_all writes 64 KB at a time to all of a region of the peer. */
static void write_all(const char *what, uint8_t *to, struct ibv_mr *mr, size_t size)
{
	double began = nanoseconds();

	for (size_t at = 0; at < size; at += BYTES) {
		struct ibv_sge s;
		struct ibv_send_wr *bad, wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, BYTES);

		wr.wr.rdma.remote_addr = (uintptr_t)to + at;
		wr.wr.rdma.rkey = mr->rkey;
		MUST(ibv_post_send(a.qp, &wr, &bad) == 0);
		settle();
	}
	per(what, (int)(size / BYTES), nanoseconds() - began);
}

/* touches writes to memory that was never touched, and again when it was, on demand and not. */
static void touches(unsigned access, const char *kind)
{
	size_t size = 64 << 20;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double began = nanoseconds();
	struct ibv_mr *mr = ibv_reg_mr(b.pd, p, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | access);
	char what[64];

	MUST(mr);
	snprintf(what, sizeof(what), "register 64 MB, %s", kind);
	per(what, 1, nanoseconds() - began);
	snprintf(what, sizeof(what), "write 64 KB, first time, %s", kind);
	write_all(what, p, mr, size);
	snprintf(what, sizeof(what), "write 64 KB, again, %s", kind);
	write_all(what, p, mr, size);
	MUST(ibv_dereg_mr(mr) == 0);
	munmap(p, size);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { QUEUE, 1, 1, 1, 0 } };

	calibrate();
	open_end(&a, 0);
	open_end(&b, 1);
	attr.send_cq = attr.recv_cq = a.cq;
	MUST(a.qp = ibv_create_qp(a.pd, &attr));
	attr.send_cq = attr.recv_cq = b.cq;
	MUST(b.qp = ibv_create_qp(b.pd, &attr));
	join(&a, &b);
	posts(argc > 1 ? argv[1] : "ibv_post_send");
	polls();
	binds();
	registrations();
	touches(0, "not on demand");
	touches(IBV_ACCESS_ON_DEMAND, "on demand");
	part(&a, &b);
	close_end(&a);
	close_end(&b);
	return failures != 0;
}
