/* Event channels, and several threads. */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct end a, b;

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static struct ibv_cq *plain; /* the queue that b had */

/* watch opens both ends; the completions of b raise events in the channel that it returns. */
static struct ibv_comp_channel *watch(enum ibv_qp_type type)
{
	struct ibv_comp_channel *channel;

	open_end(&a, 0);
	open_end(&b, 1);
	MUST(channel = ibv_create_comp_channel(b.ctx));
	plain = b.cq;
	MUST(b.cq = ibv_create_cq(b.ctx, 64, &b, channel, 0));
	make_qp(&a, type, NULL);
	make_qp(&b, type, NULL);
	join(&a, &b);
	return channel;
}

/* acknowledges waits a little, then acknowledges what destroy waits for. */
static _Atomic bool acknowledged;

static void *acknowledges(void *cq)
{
	usleep(50000);
	acknowledged = true;
	ibv_ack_cq_events(cq, 2);
	return NULL;
}

/* datagrams: events of a queue of UD, armed anew for each message as programs do, and a queue that is destroyed waits until its
 * events are acknowledged. */
static void datagrams(void)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_ah *ah;
	struct ibv_sge s;
	pthread_t thread;
	void *context;

	channel = watch(IBV_QPT_UD);
	to.grh.dgid = b.gid;
	to.grh.sgid_index = (uint8_t)a.gid_index;
	to.grh.hop_limit = 64;
	MUST(ah = ibv_create_ah(a.pd, &to));
	for (uint64_t i = 0; i < 20; i++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, i, 0, 100);

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b.qp->qp_num;
		wr.wr.ud.remote_qkey = 0x11111111;
		CHECK(post_recv(&b, i, 0, 1000) == 0 && ibv_req_notify_cq(b.cq, 0) == 0 && post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, i, NULL);
		CHECK(readable(channel->fd, 5000), ": %d", (int)i);
		CHECK(ibv_get_cq_event(channel, &cq, &context) == 0 && cq == b.cq, ".");
		EXPECT(&b, IBV_WC_SUCCESS, i, NULL);
		if (i >= 2)
			ibv_ack_cq_events(cq, 1);
	}
	CHECK(ibv_destroy_ah(ah) == 0, ".");
	part(&a, &b);
	MUST(pthread_create(&thread, NULL, acknowledges, b.cq) == 0);
	CHECK(ibv_destroy_cq(b.cq) == 0 && acknowledged, ": the queue did not wait for its events");
	pthread_join(thread, NULL);
	b.cq = plain;
	CHECK(ibv_destroy_comp_channel(channel) == 0, ".");
	close_end(&a);
	close_end(&b);
}

void test_events(void)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_sge s;
	struct ibv_async_event e;
	void *context;

	channel = watch(IBV_QPT_RC);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY, ".");
	for (uint64_t i = 0; i < 4; i++) {
		bool solicited = i == 3;

		CHECK(post_recv(&b, i, 0, 100) == 0, ".");
		CHECK(ibv_req_notify_cq(b.cq, i >= 2) == 0, ".");
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, i, 0, 100);
		if (solicited)
			wr.send_flags |= IBV_SEND_SOLICITED;
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, i, NULL);
		if (i == 2) { /* armed for solicited events; this message is not solicited */
			CHECK(!readable(channel->fd, 50), ".");
		} else {
			CHECK(readable(channel->fd, 5000), ": %d", (int)i);
			CHECK(ibv_get_cq_event(channel, &cq, &context) == 0 && cq == b.cq && context == &b, ".");
			ibv_ack_cq_events(cq, 1);
		}
		EXPECT(&b, IBV_WC_SUCCESS, i, NULL);
	}
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	CHECK(ibv_get_cq_event(channel, &cq, &context) == -1 && errno == EAGAIN, ": %d", errno);

	/* A refused request raises an event of the queue pair at the other end. */
	fcntl(b.ctx->async_fd, F_SETFL, fcntl(b.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	CHECK(ibv_get_async_event(b.ctx, &e) == -1 && errno == EAGAIN, ": %d", errno);
	struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 9, 0, 8);
	wr.wr.rdma.rkey ^= 1;
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_REM_ACCESS_ERR, 9, NULL);
	CHECK(readable(b.ctx->async_fd, 5000), ".");
	CHECK(ibv_get_async_event(b.ctx, &e) == 0 && e.event_type == IBV_EVENT_QP_ACCESS_ERR && e.element.qp == b.qp, ": %d",
	      e.event_type);
	ibv_ack_async_event(&e);
	part(&a, &b);
	CHECK(ibv_destroy_cq(b.cq) == 0, ".");
	b.cq = plain;
	CHECK(ibv_destroy_comp_channel(channel) == 0, ".");
	close_end(&a);
	close_end(&b);
	datagrams();
}

/* Threads post to one queue pair and poll one queue: there must be as many completions as requests. */
enum { THREADS = 4, EACH = 2000 };
static _Atomic int posted, completed;

static void *work(void *none)
{
	struct ibv_wc wc[4];
	struct ibv_sge s;
	int mine = 0;
	struct timespec begin, now;

	(void)none;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 1, 0, 64);

		if (mine < EACH && posted - completed < DEPTH && post(&a, &wr) == 0) {
			posted++;
			mine++;
		}
		int n = ibv_poll_cq(a.cq, 4, wc);
		for (int i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == 1, ".");
		if (n > 0)
			completed += n;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (completed < THREADS * EACH && now.tv_sec - begin.tv_sec < 20);
	return NULL;
}

/* Threads that create and destroy objects at the same time share the stream. */
static void *churn(void *none)
{
	(void)none;
	for (int i = 0; i < 100; i++) {
		struct ibv_mr *mr = ibv_reg_mr(a.pd, a.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_cq *cq = ibv_create_cq(a.ctx, 16, NULL, NULL, 0);

		if (CHECK(mr && cq, ": %d", errno))
			CHECK(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0, ".");
	}
	return NULL;
}

/* hold waits for an event that does not come, and is cancelled. */
static void *hold(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(channel, &cq, &context);
	return NULL;
}

void test_threads(void)
{
	pthread_t threads[2 * THREADS], waiting;
	struct ibv_comp_channel *channel;

	open_end(&a, 0);
	open_end(&b, 1);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	MUST(channel = ibv_create_comp_channel(a.ctx));
	pthread_create(&waiting, NULL, hold, channel);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_create(&threads[i], NULL, i % 2 ? work : churn, NULL);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(completed == THREADS * EACH && posted == completed, ": %d of %d", completed, posted);
	pthread_cancel(waiting);
	pthread_join(waiting, NULL);
	CHECK(ibv_destroy_comp_channel(channel) == 0, ".");
	part(&a, &b);
	close_end(&a);
	close_end(&b);
}
