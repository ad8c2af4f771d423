/* What the time in a completion costs that a program makes itself: on the direct path. */
#include "cost.h"

#include <errno.h>
#include <time.h>

enum { BURST = 256, READINGS = 1000 };

static struct pair plain, timed;
static struct ibv_cq_ex *plain_cq, *timed_cq;

/* writes posts signaled writes of 8 bytes, and takes their completions. */
static double writes(struct pair *p, struct ibv_cq_ex *cq, bool times)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_sge s;
	struct ibv_send_wr wr = request(&p->a, &p->b, IBV_WR_RDMA_WRITE, &s, 1, 0, 8);
	static uint64_t sum;
	double began = nanoseconds();

	for (int i = 0; i < BURST; i++)
		MUST(post(&p->a, &wr) == 0);
	for (int n = 0; n < BURST;) {
		if (ibv_start_poll(cq, &none))
			continue;
		do {
			MUST(cq->status == IBV_WC_SUCCESS);
			sum += times ? ibv_wc_read_completion_ts(cq) : cq->wr_id;
			n++;
		} while (ibv_next_poll(cq) == 0);
		ibv_end_poll(cq);
	}
	return (nanoseconds() - began) / BURST;
}

static double without(void) { return writes(&plain, plain_cq, false); }
static double with(void) { return writes(&timed, timed_cq, true); }

static double readings(void)
{
	static double sum;
	double began = nanoseconds();

	for (int i = 0; i < READINGS; i++)
		sum += nanoseconds();
	return (nanoseconds() - began) / READINGS;
}

void cost_stamps(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 2 * BURST, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct measure things[] = { { "clock_gettime(CLOCK_MONOTONIC)", readings, 0 }, { "without time stamp", without, 0 },
				    { "with", with, 0 } };

	connect_pair(&plain, &want, &plain_cq, 2 * BURST);
	want.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	connect_pair(&timed, &want, &timed_cq, 2 * BURST);
	printf("  a time stamp costs %.1f ns (median of differences)\n",
	       compare("write of 8 bytes, posted, completed and polled:", things, 3, 1001));
	close_pair(&plain);
	close_pair(&timed);
}
