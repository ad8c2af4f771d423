/*
 * A hostile program. It attaches like any other, connects queue pairs with each other, sends messages over them and compares
 * what arrives, so that the driver is reading its rings. Then it turns hostile. Its arguments are a device, a seed, and what
 * it does to its rings until the driver disconnects it:
 *
 * 	noise	random words anywhere in the memory of rings and doorbells
 * 	indexes	producer and consumer indexes that were never reached
 * 	entries	work requests published with random contents
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/object.h"

struct ibv_device **ibv_get_device_list(int *);
const char *ibv_get_device_name(struct ibv_device *);
struct ibv_context *ibv_open_device(struct ibv_device *);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *, void *, size_t, int);
struct ibv_cq *ibv_create_cq(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
struct ibv_srq *ibv_create_srq(struct ibv_pd *, struct ibv_srq_init_attr *);
struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *);
int ibv_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int);
int ibv_query_gid(struct ibv_context *, uint8_t, int, union ibv_gid *);

enum { DEPTH = 16, PAIRS = 3, BYTES = 65536 };

static uint64_t state;
static struct ibv_qp *pairs[PAIRS][2]; /* RC, UC, and RC with a shared receive queue */
static struct ibv_mr *mr;
static uint8_t buffer[BYTES];

static uint64_t noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s failed\n", what);
	exit(2);
}

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static void connect_to(struct ibv_qp *q, struct ibv_qp *peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 15, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num, .max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7 };
	bool rc = q->qp_type == IBV_QPT_RC;

	must(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "init");
	a.qp_state = IBV_QPS_RTR;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.hop_limit = 1;
	must(!ibv_query_gid(q->context, 1, 0, &a.ah_attr.grh.dgid), "gid");
	must(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)), "rtr");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)), "rts");
}

static struct ibv_sge part(size_t at) { return (struct ibv_sge){ (uintptr_t)buffer + at, 64, mr->lkey }; }

/* post sends, writes or reads over a pair, and posts a receive if the request needs one. */
static void post(struct ibv_qp *from, struct ibv_qp *to)
{
	struct ibv_sge out = part(0), in = part(BYTES / 2);
	struct ibv_recv_wr r = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr w = { .sg_list = &out, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;

	w.opcode = noise() % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	w.wr.rdma.remote_addr = (uintptr_t)buffer + BYTES / 2;
	w.wr.rdma.rkey = mr->rkey;
	if (to->srq)
		to->context->ops.post_srq_recv(to->srq, &r, &bad_recv);
	else
		to->context->ops.post_recv(to, &r, &bad_recv);
	from->context->ops.post_send(from, &w, &bad);
}

/* behave checks that everything works: what is sent arrives. */
static void behave(void)
{
	for (int i = 0; i < PAIRS; i++) {
		struct ibv_qp *q = pairs[i][0];
		struct ibv_wc wc;
		int n = 0;

		memset(buffer, 0, BYTES);
		memset(buffer, 0x5a, 64);
		post(q, pairs[i][1]);
		for (int wait = 0; n == 0 && wait < 100000; wait++, usleep(100))
			n = q->context->ops.poll_cq(q->send_cq, 1, &wc);
		must(n == 1 && wc.status == IBV_WC_SUCCESS, "a request");
		for (int wait = 0; wait < 10000 && memcmp(buffer, buffer + BYTES / 2, 64); wait++)
			usleep(1000);
		must(!memcmp(buffer, buffer + BYTES / 2, 64), "the comparison of data");
	}
}

/* The ways to misbehave. */

static void scribble_noise(struct svpi *s)
{
	volatile uint32_t *words = s->arenas[noise() % s->narenas];
	size_t n = s->arena_size[0] / 4;

	for (uint32_t i = 1; i < s->narenas; i++)
		if (words == s->arenas[i])
			n = s->arena_size[i] / 4;
	for (int i = 0; i < 64; i++) {
		size_t at = noise() % n;

		switch (noise() % 4) {
		case 0: words[at] = (uint32_t)noise(); break;
		case 1: words[at] += (uint32_t)(noise() % 5); break;
		case 2: words[noise() % 64 % n] += (uint32_t)(noise() % 3); break; /* the header of a ring or of the doorbells */
		default: words[at] = UINT32_MAX;
		}
	}
}

static uint32_t absurd(uint32_t now)
{
	static const uint32_t far[] = { 1, DEPTH, DEPTH + 1, 0x7fffffff, 0x80000000, UINT32_MAX };

	return noise() % 4 ? now + far[noise() % (sizeof(far) / sizeof(*far))] : (uint32_t)noise();
}

static void scribble_indexes(void)
{
	struct svpi_qp *q = to_qp(pairs[noise() % PAIRS][noise() % 2]);
	struct svpi_producer *p = noise() % 2 || q->qp.srq ? &q->send : &q->recv;
	_Atomic uint32_t *index = noise() % 2 ? &p->h->producer : &p->h->consumer;

	atomic_store(index, absurd(atomic_load(index)));
	if (noise() % 2)
		p->next = atomic_load(&p->h->producer); /* and goes on from there */
	atomic_store(&p->h->arm, (uint32_t)noise());
}

static void scribble_entries(void)
{
	struct svpi_qp *q = to_qp(pairs[noise() % PAIRS][noise() % 2]);
	struct svpi_producer *p = noise() % 2 || q->qp.srq ? &q->send : &q->recv;
	volatile uint32_t *words = (volatile uint32_t *)p->entries;
	size_t n = (size_t)(p->mask + 1) * p->stride / 4;

	for (uint64_t i = noise() % 32; i > 0; i--)
		words[noise() % n] = noise() % 2 ? (uint32_t)noise() : UINT32_MAX >> (noise() % 32);
	if (noise() % 4 == 0) { /* published without filling it */
		p->next++;
		svpi_publish(p);
	}
}

int main(int argc, char **argv)
{
	struct ibv_context *c = argc == 4 ? open_named(argv[1]) : NULL;
	struct ibv_srq_init_attr sa = { .attr = { DEPTH, 2, 0 } };
	struct ibv_qp_init_attr a = { .cap = { DEPTH, DEPTH, 4, 4, 64 } };

	must(c != NULL, "opening the device");
	state = strtoull(argv[2], NULL, 10) | 1;

	struct svpi *s = to_svpi(c);
	struct ibv_pd *pd = ibv_alloc_pd(c);

	must(pd && (mr = ibv_reg_mr(pd, buffer, BYTES, 15)) && (sa.srq_context = ibv_create_srq(pd, &sa)), "objects");
	for (int i = 0; i < PAIRS; i++) {
		a.qp_type = i == 1 ? IBV_QPT_UC : IBV_QPT_RC;
		a.srq = i == 2 ? sa.srq_context : NULL;
		for (int k = 0; k < 2; k++) {
			a.send_cq = ibv_create_cq(c, 2 * DEPTH, NULL, NULL, 0);
			a.recv_cq = ibv_create_cq(c, 2 * DEPTH, NULL, NULL, 0);
			must(a.send_cq && a.recv_cq && (pairs[i][k] = ibv_create_qp(pd, &a)), "a queue pair");
		}
		connect_to(pairs[i][0], pairs[i][1]);
		connect_to(pairs[i][1], pairs[i][0]);
	}
	behave();
	puts("attached");
	fflush(stdout);
	for (;;) {
		struct ibv_qp **p = pairs[noise() % PAIRS];
		struct ibv_wc wc;

		if (!strcmp(argv[3], "noise"))
			scribble_noise(s);
		else if (!strcmp(argv[3], "indexes"))
			scribble_indexes();
		else
			scribble_entries();
		post(p[0], p[1]);
		c->ops.poll_cq(p[0]->send_cq, 1, &wc);
		if (write(s->wake, "\0\0\0\0\0\0\0\1", 8) < 0 && errno != EAGAIN)
			return 2;
		svpi_pump(s);
		if (s->broken)
			return 0; /* disconnected by the driver */
		usleep(100);
	}
}
