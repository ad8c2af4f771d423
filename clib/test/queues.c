/* Extended completion queues: their flags, when completions say they were made, and what becomes of too many. */
#include "bed.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct end a, b;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* raw returns the device's clock. */
static uint64_t raw(struct ibv_context *ctx)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	CHECK(ibv_query_rt_values_ex(ctx, &v) == 0 && v.raw_clock.tv_sec == 0, ".");
	return (uint64_t)v.raw_clock.tv_nsec;
}

/* extended gives an end an extended queue in place of its own, which it returns. */
static struct ibv_cq_ex *extended(struct end *e, struct ibv_cq_init_attr_ex *want)
{
	struct ibv_cq_ex *x;

	MUST(x = ibv_create_cq_ex(e->ctx, want));
	CHECK(ibv_destroy_cq(e->cq) == 0, ".");
	e->cq = ibv_cq_ex_to_cq(x);
	return x;
}

/* started begins a poll that has a completion; false: none came for 5 s. */
static bool started(struct ibv_cq_ex *x)
{
	struct ibv_poll_cq_attr none = { 0 };
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + 5000000000u;
	int error;

	while ((error = ibv_start_poll(x, &none)) == ENOENT && clock_ns(CLOCK_MONOTONIC) < limit)
		;
	return CHECK(error == 0, ": %d", error);
}

static void begin(struct ibv_cq_init_attr_ex *want, struct ibv_cq_ex **x, struct ibv_cq_ex **y)
{
	open_end(&a, 0);
	open_end(&b, 1);
	*x = extended(&a, want);
	*y = extended(&b, want);
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
}

static void finish(void) { close_joined(&a, &b); }

/* flags tries every flag alone, and what no queue can be. */
static void flags(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 10 };
	struct ibv_poll_cq_attr none = { 0 }, some = { .comp_mask = 1 };
	struct ibv_device_attr device;
	struct ibv_cq_ex *x;

	open_end(&a, 0);
	for (int bit = 0; bit < 12; bit++) {
		want.wc_flags = 1u << bit;
		if (CHECK((x = ibv_create_cq_ex(a.ctx, &want)) != NULL, ": bit %d, errno %d", bit, errno)) {
			CHECK(ibv_start_poll(x, &some) == EINVAL && ibv_start_poll(x, &none) == ENOENT, ".");
			CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(x)) == 0, ".");
		}
	}
	want.wc_flags = 1u << 12;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EOPNOTSUPP, ": %d", errno);
	want.wc_flags = 0;
	want.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	want.flags = 4;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EOPNOTSUPP, ": %d", errno);
	want.flags = 0;
	want.comp_mask = 4;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EINVAL, ": %d", errno);
	want.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	want.parent_domain = a.pd; /* is none */
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EINVAL, ": %d", errno);
	want.comp_mask = 0;
	want.comp_vector = (uint32_t)a.ctx->num_comp_vectors;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EINVAL, ": %d", errno);
	want.comp_vector = 0;
	MUST(ibv_query_device(a.ctx, &device) == 0);
	want.cqe = (uint32_t)device.max_cqe + 1;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EINVAL, ": %d", errno);
	want.cqe = 0;
	CHECK(!ibv_create_cq_ex(a.ctx, &want) && errno == EINVAL, ": %d", errno);
	close_end(&a);
}

/* stamped checks when the completion of the current poll was made. */
static void stamped(struct ibv_cq_ex *x, uint64_t from, uint64_t to, int line)
{
	uint64_t made = ibv_wc_read_completion_ts(x), wall = ibv_wc_read_completion_wallclock_ns(x);
	int64_t ahead = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));

	/* where the driver's clock began is known to some hundred nanoseconds */
	CHECK(made + 1000 >= from && made <= to + 1000, ": line %d: %llu is not in %llu to %llu", line, (unsigned long long)made,
	      (unsigned long long)from, (unsigned long long)to);
	CHECK(llabs((int64_t)(wall - made) - ahead) < 100000000, ": line %d: %lld apart, not %lld", line,
	      (long long)(wall - made), (long long)ahead);
}

/* times checks that both ends say when a message was completed, not when it was polled, on the same clock. */
static void times(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
								      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
	struct ibv_device_attr_ex device;
	struct ibv_cq_ex *x, *y;

	begin(&want, &x, &y);
	MUST(ibv_query_device_ex(a.ctx, NULL, &device) == 0);
	CHECK(device.completion_timestamp_mask == UINT64_MAX && device.hca_core_clock == 1000000, ".");
	for (int i = 0; i < 50; i++) {
		struct ibv_sge s;
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_SEND, &s, 7, 0, 100);
		uint64_t from = raw(a.ctx), to;

		CHECK(post_recv(&b, 8, 1000, 100) == 0 && post(&a, &wr) == 0 && started(y), ".");
		to = raw(b.ctx);
		usleep(i < 3 ? 20000 : 0);
		stamped(y, from, to, __LINE__);
		CHECK(y->wr_id == 8 && ibv_wc_read_byte_len(y) == 100 && ibv_wc_read_src_qp(y) == 0, ".");
		CHECK(ibv_wc_read_cvlan(y) == 0 && ibv_wc_read_flow_tag(y) == 0, ".");
		ibv_end_poll(y);
		CHECK(started(x), ".");
		stamped(x, from, raw(a.ctx), __LINE__);
		ibv_end_poll(x);
	}
	finish();
}

/* sends_some is a peer of senders. */
static void *sends_some(void *arg)
{
	struct end *e = arg;

	for (uint64_t i = 0; i < DEPTH / 2; i++) {
		struct ibv_sge s;
		struct ibv_send_wr wr = request(e, &b, IBV_WR_SEND, &s, i, 0, 8);

		CHECK(post(e, &wr) == 0, ".");
		EXPECT(e, IBV_WC_SUCCESS, i, NULL);
	}
	return NULL;
}

/* senders has two peers complete receives in one queue at once: no completion says that it was made before the one in front
 * of it. */
static void senders(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 4 * DEPTH, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *x, *y;
	struct end other, b2;
	pthread_t first, second;
	uint64_t made = 0, back = 0;

	begin(&want, &x, &y);
	open_end(&other, 0);
	make_qp(&other, IBV_QPT_RC, NULL);
	b2 = b;
	make_qp(&b2, IBV_QPT_RC, NULL);
	join(&other, &b2);
	for (int round = 0; round < 50; round++) {
		uint64_t from = raw(b.ctx);

		for (uint64_t i = 0; i < DEPTH / 2; i++)
			CHECK(post_recv(&b, i, 0, 8) == 0 && post_recv(&b2, i, 0, 8) == 0, ".");
		MUST(pthread_create(&first, NULL, sends_some, &a) == 0 && pthread_create(&second, NULL, sends_some, &other) == 0);
		for (int i = 0; i < DEPTH && started(y); i++) {
			uint64_t now = ibv_wc_read_completion_ts(y);

			back += now < made;
			CHECK(now + 1000 >= from && now <= raw(b.ctx) + 1000, ".");
			made = now;
			ibv_end_poll(y);
		}
		MUST(pthread_join(first, NULL) == 0 && pthread_join(second, NULL) == 0);
	}
	CHECK(back == 0, ": %llu completions", (unsigned long long)back);
	part(&other, &b2);
	close_end(&other);
	finish();
}

/* single polls a queue that is not locked. */
static void single(void)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_cq_ex *x, *y;
	struct ibv_wc wc;

	begin(&want, &x, &y);
	for (uint64_t i = 0; i < 40; i++) {
		struct ibv_sge s;
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, i, 0, 8);

		CHECK(post(&a, &wr) == 0, ".");
		if (i % 2) {
			EXPECT(&a, IBV_WC_SUCCESS, i, &wc);
		} else if (started(x)) {
			CHECK(x->wr_id == i && ibv_wc_read_opcode(x) == IBV_WC_RDMA_WRITE && ibv_next_poll(x) == ENOENT, ".");
			ibv_end_poll(x);
		}
	}
	CHECK(ibv_req_notify_cq(a.cq, 0) == 0 && ibv_resize_cq(a.cq, 200) == 0, ".");
	finish();
}

/* completed waits until the requests that fill the send queue have completed: a queue has room for a request only when
 * one of as many before it has. */
static void completed(void)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + 5000000000u;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge s;

	MUST(ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init) == 0);
	CHECK(init.cap.max_send_wr == DEPTH, ": %u", init.cap.max_send_wr);
	for (int more = 0; more < DEPTH && clock_ns(CLOCK_MONOTONIC) < limit;) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 50, 4096, 8);

		wr.send_flags = 0;
		more += post(&a, &wr) == 0;
	}
}

/* overrun completes more writes than the queue holds: with IGNORE_OVERRUN the others are lost, and everything goes on;
 * without it the queue and its queue pair end. */
static void overrun(bool ignore)
{
	struct ibv_cq_init_attr_ex want = { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = ignore ? IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN : 0 };
	struct ibv_cq_ex *x, *y;
	struct ibv_async_event e;
	struct ibv_wc wc;
	struct ibv_sge s;
	int n = 0, k;

	begin(&want, &x, &y);
	for (uint64_t i = 1; i <= DEPTH; i++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, i, 8 * i, 8);

		a.buf[8 * i] = (uint8_t)i;
		CHECK(post(&a, &wr) == 0, ".");
	}
	if (ignore) {
		completed();
		CHECK(b.buf[8 * DEPTH] == DEPTH, ".");
		k = next(a.cq, &wc); /* a request's slot is free a moment before its completion can be polled */
		for (; k > 0; k = ibv_poll_cq(a.cq, 1, &wc))
			n += CHECK(wc.status == IBV_WC_SUCCESS, ".");
		CHECK(k == 0 && n > 0 && n < DEPTH, ": %d of %d", n, DEPTH);
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, 99, 0, 8);
		uint64_t limit = clock_ns(CLOCK_MONOTONIC) + 5000000000u;

		/* Again and again, since that of an earlier request may come only now, and take the place of this one's. */
		for (wc.wr_id = 0; wc.wr_id != 99 && clock_ns(CLOCK_MONOTONIC) < limit;) {
			post(&a, &wr);
			if (ibv_poll_cq(a.cq, 1, &wc) > 0)
				CHECK(wc.status == IBV_WC_SUCCESS, ": %s", ibv_wc_status_str(wc.status));
		}
		CHECK(wc.wr_id == 99, ": id %llu", (unsigned long long)wc.wr_id);
	} else {
		CHECK(ibv_get_async_event(a.ctx, &e) == 0 && e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == a.cq, ": %d",
		      e.event_type);
		ibv_ack_async_event(&e);
		CHECK(ibv_get_async_event(a.ctx, &e) == 0 && e.event_type == IBV_EVENT_QP_FATAL, ": %d", e.event_type);
		ibv_ack_async_event(&e);
	}
	finish();
}

/* moderated checks that an event comes after as many completions as ibv_modify_cq says. */
static void moderated(void)
{
	struct ibv_modify_cq_attr m = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 4, .cq_period = 60000 } };
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *of;
	void *context;
	struct ibv_sge s;
	struct ibv_wc wc;

	open_end(&a, 0);
	open_end(&b, 1);
	MUST(ch = ibv_create_comp_channel(a.ctx));
	MUST(cq = ibv_create_cq(a.ctx, 64, &a, ch, 0));
	CHECK(ibv_destroy_cq(a.cq) == 0, ".");
	a.cq = cq;
	make_qp(&a, IBV_QPT_RC, NULL);
	make_qp(&b, IBV_QPT_RC, NULL);
	join(&a, &b);
	CHECK(ibv_modify_cq(cq, &m) == 0 && ibv_req_notify_cq(cq, 0) == 0, ".");
	uint64_t from = clock_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_send_wr wr = request(&a, &b, IBV_WR_RDMA_WRITE, &s, i, 0, 8);

		CHECK(post(&a, &wr) == 0, ".");
	}
	CHECK(ibv_get_cq_event(ch, &of, &context) == 0 && of == cq && context == &a, ".");
	CHECK(clock_ns(CLOCK_MONOTONIC) - from < 5000000000u, "."); /* not after the 60 ms alone, on a machine however slow */
	for (uint64_t i = 0; i < 4; i++)
		CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == i, ": %d", (int)i); /* they had all come */
	ibv_ack_cq_events(cq, 1);
	m.attr_mask = 2;
	CHECK(ibv_modify_cq(cq, &m) == EINVAL, ".");
	part(&a, &b);
	CHECK(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(ch) == 0, ".");
	MUST(a.cq = ibv_create_cq(a.ctx, 1, NULL, NULL, 0));
	close_end(&a);
	close_end(&b);
}

/* created checks which flags a type of queue pair can be created with. */
static void created(void)
{
	static const struct { enum ibv_qp_type type; uint32_t flags; int error; } cases[] = {
		{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, 0 },
		{ IBV_QPT_RC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, EOPNOTSUPP },
		{ IBV_QPT_UC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, EOPNOTSUPP },
		{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP },
		{ IBV_QPT_UD, IBV_QP_CREATE_SOURCE_QPN, EOPNOTSUPP }, { IBV_QPT_RC, 0, 0 },
	};

	open_end(&a, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ibv_qp_init_attr_ex x = { .send_cq = a.cq, .recv_cq = a.cq, .qp_type = cases[i].type, .pd = a.pd,
			.cap = { 1, 1, 1, 1, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.create_flags = cases[i].flags };
		struct ibv_qp *q = ibv_create_qp_ex(a.ctx, &x);
		int error = q ? 0 : errno;

		CHECK(error == cases[i].error, ": case %zu: %d", i, error);
		if (q)
			CHECK(ibv_destroy_qp(q) == 0, ".");
	}
	close_end(&a);
}

void test_queues(void)
{
	created();
	flags();
	times();
	senders();
	single();
	overrun(true);
	overrun(false);
	moderated();
}
