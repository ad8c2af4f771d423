/*
 * One end of a connection that is used in every way, by both ends at once, with all data checked: exchange DEVICE
 * SEED REQUESTS [events] [fork]. The other end is a program like it, or exchange_linux_test.go. The ends exchange
 * their addresses by a line on standard output and input.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Offsets in the memory of an end, as seen by the other end; those from AT_RECV on only the end itself uses. */
enum { SLOT = 20480, MOST = 20000, WINDOW = 8, PLACES = 16, RECEIVES = 8, PATTERN = 65536 };
enum { AT_IMM = 0, AT_PATTERN = AT_IMM + PLACES * SLOT, AT_WRITES = AT_PATTERN + PATTERN, AT_COUNTERS = AT_WRITES + PLACES * SLOT,
       AT_RECV = AT_COUNTERS + 4096, AT_OUT = AT_RECV + PLACES * SLOT, SHARED = AT_OUT + WINDOW * SLOT,
       HEAP_RECV = 0, HEAP_OUT = PLACES * SLOT, HEAP = HEAP_OUT + WINDOW * SLOT };
enum { THE_END = 0x7fffffff, PATTERN_SEED = 77, SECONDS = 50 };
enum kind { SEND, SEND_INLINE, WRITE_IMM, WRITE, READ_BACK, READ, ADD, SWAP, KINDS, END };

struct end { uint32_t qpn, psn, rkey, seed; uint64_t base; union ibv_gid gid; };

static struct ibv_context *ctx;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *shared_mr, *heap_mr;
static uint8_t *shared, *heap;
static struct end me, peer;

static struct { enum kind kind; uint32_t length, at; uint64_t number; bool in_heap; } out[WINDOW];
static uint64_t requested, finished, sent, received, adds, swaps; /* sent: those that use a receive */
static bool peer_ended, ended;
static bool plain = true; /* some places are in the program's own memory; not if a child takes over, which has only a copy of it */
static uint64_t peer_adds, peer_swaps;
static uint64_t state;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 11) % n;
}

static uint32_t size(void)
{
	static const uint32_t most[] = { 9, 100, 4100, MOST + 1 };

	return draw(most[draw(4)]);
}

static uint8_t byte_of(uint32_t seed, uint64_t number, uint32_t j) { return (uint8_t)(seed + 131 * number + 7 * j + (j >> 8)); }

static void fill(uint8_t *p, uint32_t n, uint32_t seed, uint64_t number)
{
	for (uint32_t j = 0; j < n; j++)
		p[j] = byte_of(seed, number, j);
}

static void check(const char *what, const uint8_t *p, uint32_t from, uint32_t n, uint32_t seed, uint64_t number)
{
	for (uint32_t j = 0; j < n; j++) {
		if (p[j] == byte_of(seed, number, from + j))
			continue;
		fprintf(stderr, "exchange: %s %llu: byte %u of %u is %u, want %u\n", what, (unsigned long long)number, j, n, p[j],
			byte_of(seed, number, from + j));
		exit(1);
	}
}

static void expect(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return;
	fprintf(stderr, "exchange: %s is %llu, want %llu\n", what, (unsigned long long)got, (unsigned long long)want);
	exit(1);
}

static void open_all(const char *device, bool events)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry gids[64];
	int n = 0;

	while (list && list[n] && strcmp(ibv_get_device_name(list[n]), device))
		n++;
	must(list && list[n] && (ctx = ibv_open_device(list[n])), "device");
	ibv_free_device_list(list);
	ssize_t k = ibv_query_gid_table(ctx, gids, 64, 0), v4 = -1;
	for (ssize_t i = 0; i < k && v4 < 0; i++)
		if (gids[i].gid_type == IBV_GID_TYPE_ROCE_V2 && gids[i].gid.raw[10] == 0xff)
			v4 = i;
	must(v4 >= 0, "gid");
	me.gid = gids[v4].gid;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	shared = aligned_alloc(4096, (SHARED + 4095) & ~4095);
	heap = malloc(HEAP);
	must(pd && shared && heap, "memory");
	memset(shared, 0, SHARED);
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	shared_mr = ibv_reg_mr(pd, shared, SHARED, all);
	heap_mr = ibv_reg_mr(pd, heap, HEAP, IBV_ACCESS_LOCAL_WRITE);
	channel = events ? ibv_create_comp_channel(ctx) : NULL;
	cq = ibv_create_cq(ctx, 2 * (WINDOW + RECEIVES), NULL, channel, 0);
	must(shared_mr && heap_mr && cq && (channel || !events), "objects");
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
				      .cap = { 2 * WINDOW, RECEIVES, 2, 2, 64 } };
	must((qp = ibv_create_qp(pd, &a)) != NULL, "queue pair");
	me.qpn = qp->qp_num;
	me.psn = draw(1 << 24);
	me.rkey = shared_mr->rkey;
	me.base = (uintptr_t)shared;
	fill(shared + AT_PATTERN, PATTERN, PATTERN_SEED, 0);
}

static void join_peer(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qpn, .rq_psn = peer.psn,
				  .max_dest_rd_atomic = 4, .min_rnr_timer = 1 };
	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	a.ah_attr.grh.dgid = peer.gid;
	a.ah_attr.grh.hop_limit = 64;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = me.psn, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				  .max_rd_atomic = 4 };
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* in_heap_at tells whether a place is in the program's own memory: in every fourth block of 1024 numbers every fourth
 * place. */
static bool in_heap_at(uint64_t number) { return plain && number / 1024 % 4 == 0 && number % 4 == 3; }

static void post_receive(uint64_t number)
{
	bool in_heap = in_heap_at(number);
	uint8_t *p = (in_heap ? heap + HEAP_RECV : shared + AT_RECV) + number % PLACES * SLOT;
	uint32_t key = in_heap ? heap_mr->lkey : shared_mr->lkey;
	struct ibv_sge s[2] = { { (uintptr_t)p, 1000, key }, { (uintptr_t)p + 1000, SLOT - 1000, key } };
	struct ibv_recv_wr *bad, wr = { .wr_id = number << 1 | 1, .sg_list = s, .num_sge = 2 };

	must(!ibv_post_recv(qp, &wr, &bad), "post a receive");
}

static void post(enum kind kind)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP, 0, IBV_WR_SEND_WITH_IMM };
	uint32_t n = requested % WINDOW;
	bool in_heap = kind < ADD && in_heap_at(requested);
	uint8_t *p = (in_heap ? heap + HEAP_OUT : shared + AT_OUT) + n * SLOT;
	uint32_t key = in_heap ? heap_mr->lkey : shared_mr->lkey, length = size(), at = 0;
	struct ibv_send_wr *bad, wr = { .wr_id = requested << 1, .num_sge = 2, .opcode = op[kind], .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge s[2];

	out[n].number = requested;
	switch (kind) {
	case SEND_INLINE:
		length %= 60;
		wr.send_flags |= IBV_SEND_INLINE;
		wr.imm_data = htonl((uint32_t)sent);
		/* fall through */
	case SEND:
		fill(p, length, me.seed, out[n].number = sent++);
		break;
	case WRITE_IMM:
		at = AT_IMM + sent % PLACES * SLOT;
		wr.imm_data = htonl((uint32_t)sent);
		fill(p, length, me.seed, out[n].number = sent++);
		break;
	case WRITE:
		at = AT_WRITES + requested % PLACES * SLOT;
		fill(p, length, me.seed, requested);
		break;
	case READ_BACK: /* reads back what the request before it wrote */
		length = out[(n + WINDOW - 1) % WINDOW].length;
		at = AT_WRITES + (requested - 1) % PLACES * SLOT;
		break;
	case READ:
		at = AT_PATTERN + draw(PATTERN - length + 1);
		break;
	case ADD:
		length = 8, at = AT_COUNTERS;
		wr.wr.atomic.compare_add = 1;
		out[n].number = adds++;
		break;
	case SWAP:
		length = 8, at = AT_COUNTERS + 8;
		wr.wr.atomic.compare_add = swaps;
		wr.wr.atomic.swap = swaps + 1;
		out[n].number = swaps++;
		break;
	case END:
		length = 16;
		wr.send_flags |= IBV_SEND_INLINE;
		wr.imm_data = htonl(THE_END);
		memcpy(p, &adds, 8);
		memcpy(p + 8, &swaps, 8);
		out[n].number = sent++;
		break;
	default:
		break;
	}
	if (kind == ADD || kind == SWAP) {
		wr.wr.atomic.remote_addr = peer.base + at;
		wr.wr.atomic.rkey = peer.rkey;
		wr.num_sge = 1;
		s[0] = (struct ibv_sge){ (uintptr_t)p, 8, key };
	} else {
		uint32_t first = length ? draw(length + 1) : 0;

		wr.wr.rdma.remote_addr = peer.base + at;
		wr.wr.rdma.rkey = peer.rkey;
		s[0] = (struct ibv_sge){ (uintptr_t)p, first, key };
		s[1] = (struct ibv_sge){ (uintptr_t)p + first, length - first, key };
	}
	wr.sg_list = s;
	out[n].kind = kind;
	out[n].length = length;
	out[n].at = at;
	out[n].in_heap = in_heap;
	requested++;
	errno = ibv_post_send(qp, &wr, &bad);
	must(!errno, "post");
}

static void request_done(const struct ibv_wc *wc)
{
	uint32_t n = finished % WINDOW;
	const uint8_t *p = (out[n].in_heap ? heap + HEAP_OUT : shared + AT_OUT) + n * SLOT;
	uint64_t old;

	expect("the completion's request", wc->wr_id >> 1, finished++);
	memcpy(&old, p, 8);
	switch (out[n].kind) {
	case READ_BACK:
		check("what was written and read", p, 0, out[n].length, me.seed, out[n].number - 1);
		break;
	case READ:
		check("the pattern", p, out[n].at - AT_PATTERN, out[n].length, PATTERN_SEED, 0);
		break;
	case ADD:
		expect("the sum before", old, out[n].number);
		break;
	case SWAP:
		expect("the value before", old, out[n].number);
		break;
	default:
		break;
	}
}

static void receive_done(const struct ibv_wc *wc)
{
	uint64_t k = received++;
	const uint8_t *p = (in_heap_at(k) ? heap + HEAP_RECV : shared + AT_RECV) + k % PLACES * SLOT;

	expect("the completion's receive", wc->wr_id >> 1, k);
	if (wc->wc_flags & IBV_WC_WITH_IMM && ntohl(wc->imm_data) == THE_END) {
		memcpy(&peer_adds, p, 8);
		memcpy(&peer_swaps, p + 8, 8);
		peer_ended = true;
		return;
	}
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		expect("the immediate data", ntohl(wc->imm_data), (uint32_t)k);
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		p = shared + AT_IMM + k % PLACES * SLOT;
	check("message", p, 0, wc->byte_len, peer.seed, k);
	post_receive(k + RECEIVES);
}

static bool poll_all(void)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(cq, 4, wc);

	must(n >= 0, "poll");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "exchange: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		wc[i].wr_id & 1 ? receive_done(&wc[i]) : request_done(&wc[i]);
	}
	return n > 0;
}

/* wait_for_event sleeps until there may be something to poll. */
static void wait_for_event(void)
{
	struct ibv_cq *of;
	void *context;
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	must(!ibv_req_notify_cq(cq, 0), "arm");
	if (poll_all())
		return;
	must(poll(&p, 1, 1000 * SECONDS) == 1, "an event");
	must(!ibv_get_cq_event(channel, &of, &context), "the event");
	ibv_ack_cq_events(of, 1);
}

/* go_on_as_child lets a child do the rest; the program exits with the child's status. */
static void go_on_as_child(void)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0)
		return;
	must(waitpid(child, &status, 0) == child, "wait");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(int argc, char **argv)
{
	char gid[33], line[256];
	bool events = false, forks = false;
	uint64_t requests;
	struct timespec began, now;

	if (argc < 4)
		return 2;
	me.seed = (uint32_t)strtoul(argv[2], NULL, 0);
	state = me.seed | (uint64_t)1 << 40;
	requests = strtoul(argv[3], NULL, 0);
	for (int i = 4; i < argc; i++) {
		events = events || !strcmp(argv[i], "events");
		forks = forks || !strcmp(argv[i], "fork");
	}
	plain = !forks;
	open_all(argv[1], events);
	for (int i = 0; i < 16; i++)
		sprintf(gid + 2 * i, "%02x", me.gid.raw[i]);
	printf("at %u %u %u %u %llu %s\n", me.qpn, me.psn, me.rkey, me.seed, (unsigned long long)me.base, gid);
	fflush(stdout);
	unsigned long long base;
	must(fgets(line, sizeof(line), stdin) && sscanf(line, "at %u %u %u %u %llu %32s", &peer.qpn, &peer.psn, &peer.rkey, &peer.seed,
	     &base, gid) == 6, "the peer's line");
	peer.base = base;
	for (int i = 0; i < 16; i++) {
		unsigned v;

		sscanf(gid + 2 * i, "%2x", &v);
		peer.gid.raw[i] = (uint8_t)v;
	}
	join_peer();
	for (uint64_t k = 0; k < RECEIVES; k++)
		post_receive(k);
	printf("ready\n");
	fflush(stdout);
	must(fgets(line, sizeof(line), stdin) && !strcmp(line, "begin\n"), "the word to begin");
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int idle = 0; !peer_ended || !ended || finished < requested;) {
		if (requested - finished < WINDOW - 1 && !ended) {
			enum kind kind = draw(KINDS);

			if (requested >= requests) {
				kind = END;
				ended = true;
			} else if (kind == READ_BACK) {
				post(WRITE);
			}
			post(kind);
		}
		if (forks && requested >= requests / 2) {
			forks = false;
			go_on_as_child();
		}
		idle = poll_all() ? 0 : idle + 1;
		if (channel && idle > 50)
			wait_for_event(), idle = 0;
		clock_gettime(CLOCK_MONOTONIC, &now);
		must(now.tv_sec - began.tv_sec < SECONDS, "the time is over");
	}
	memcpy(&adds, shared + AT_COUNTERS, 8);
	memcpy(&swaps, shared + AT_COUNTERS + 8, 8);
	expect("the sum at the end", adds, peer_adds);
	expect("the value at the end", swaps, peer_swaps);
	printf("done %llu %llu\n", (unsigned long long)requested, (unsigned long long)received);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) /* until the other end has finished */
		;
	return 0;
}
