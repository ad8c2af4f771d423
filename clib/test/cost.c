/* What ibv_post_send and an empty ibv_poll_cq cost, in nanoseconds, time stamps, and what is done with memory: cost. Uses
 * connections between two adapters; see make -C clib cost. */
#include "../ipc/ticks.h"
#include "cost.h"

#include <errno.h>
#include <time.h>

enum { ROUNDS = 400, BURST = 256, QUEUE = 512, POLLS = 1000, MOST_ROUNDS = ROUNDS * BURST };

static struct pair p;
static double samples[MOST_ROUNDS];

double nanoseconds(void)
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
	uint64_t first = svpi_ticks(), t;

	own = UINT64_MAX;
	while (nanoseconds() - began < 2e7) {
		t = svpi_ticks();
		t = svpi_ticks() - t;
		own = t < own ? t : own;
	}
	per_tick = (nanoseconds() - began) / (double)(svpi_ticks() - first);
}

static int by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
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
		int n = ibv_poll_cq(p.a.cq, 16, wc);

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
		struct ibv_send_wr *bad, wr = request(&p.a, &p.b, IBV_WR_RDMA_WRITE, &s, 0, 0, 8);

		for (int i = 0; i < BURST; i++) {
			bool last = i == BURST - 1;

			wr.wr_id = last;
			wr.send_flags = last ? IBV_SEND_SIGNALED : 0;
			uint64_t t = svpi_ticks();
			int error = ibv_post_send(p.a.qp, &wr, &bad);

			t = svpi_ticks() - t;
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
		uint64_t t = svpi_ticks();

		for (int i = 0; i < POLLS; i++)
			MUST(ibv_poll_cq(p.a.cq, 1, &wc) == 0);
		samples[n++] = per_tick * (double)(svpi_ticks() - t) / POLLS;
	}
	tell("ibv_poll_cq that finds nothing", n);
}

double compare(const char *title, struct measure *m, int things, int rounds)
{
	double *took = calloc((size_t)things * (size_t)rounds, sizeof(*took)), more;

	MUST(took && rounds <= MOST_ROUNDS);
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < things; i++)
			took[i * rounds + r] = m[i].once();
	printf("%s\n", title);
	for (int i = 0; i < things; i++) {
		memcpy(samples, took + i * rounds, (size_t)rounds * sizeof(*samples));
		qsort(samples, (size_t)rounds, sizeof(*samples), by_size);
		m[i].median = samples[rounds / 2];
		printf("  %-38s %10.1f ns each, %11.0f a second, %6.2f times the first\n", m[i].what, m[i].median,
		       1e9 / m[i].median, m[i].median / m->median);
	}
	for (int r = 0; r < rounds; r++)
		samples[r] = took[(things - 1) * rounds + r] - took[(things - 2) * rounds + r];
	qsort(samples, (size_t)rounds, sizeof(*samples), by_size);
	more = samples[rounds / 2];
	free(took);
	return more;
}

void connect_pair(struct pair *p, struct ibv_cq_init_attr_ex *want, struct ibv_cq_ex **x, uint32_t depth)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { depth, 1, 1, 1, 0 } };

	open_end(&p->a, 0);
	open_end(&p->b, 1);
	if (want) {
		MUST(*x = ibv_create_cq_ex(p->a.ctx, want));
		MUST(ibv_destroy_cq(p->a.cq) == 0);
		p->a.cq = ibv_cq_ex_to_cq(*x);
	}
	attr.send_cq = attr.recv_cq = p->a.cq;
	MUST(p->a.qp = ibv_create_qp(p->a.pd, &attr));
	attr.send_cq = attr.recv_cq = p->b.cq;
	MUST(p->b.qp = ibv_create_qp(p->b.pd, &attr));
	join(&p->a, &p->b);
}

void close_pair(struct pair *p) { close_joined(&p->a, &p->b); }

void write_one(struct pair *p, uint64_t to, uint32_t rkey, uint32_t n)
{
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&p->a, &p->b, IBV_WR_RDMA_WRITE, &s, 1, 0, n);
	struct ibv_wc wc;
	int k;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	MUST(post(&p->a, &wr) == 0);
	while ((k = ibv_poll_cq(p->a.cq, 1, &wc)) == 0)
		;
	MUST(k == 1 && wc.status == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char what[64];

	calibrate();
	printf("%s\n", how);
	connect_pair(&p, NULL, NULL, QUEUE);
	snprintf(what, sizeof(what), "ibv_post_send%s", argc > 2 ? argv[2] : "");
	posts(what);
	polls();
	close_pair(&p);
	if (!getenv("SOFTVPI_DIRECT"))
		cost_stamps();
	cost_memory();
	return failures != 0;
}
