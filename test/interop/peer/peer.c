/*
 * peer is the verbs program on the Soft-RoCE side of the interoperation suite. It
 * does nothing by itself: it reads one command a line from standard input, carries it
 * out with libibverbs and librdmacm, and answers with one line: "ok" or "err", and
 * words of the form name=value. So the test is written in one place, on the other
 * side. Numbers are decimal or 0x...; bytes are hexadecimal.
 * Its argument is for how many milliseconds it waits for what must come, where a command has no timeout=.
 *
 *   mr size= [access=lwrab]            register zeroed memory: mr= addr= rkey=
 *   fill mr= off= len= seed= [n= stride=] write the pattern of this seed; then n-1 times that of the next seed, a stride further
 *   check mr= off= len= seed=          compare with the pattern: bad= first different offset (-1: none)
 *   peek mr= off= len= / poke mr= off= data=
 *   listen addr= port= [space=udp]     id=
 *   request id= timeout=               next connection request of a listener: id= priv= rr= depth=
 *   connect addr= port= [space=udp] [priv=] [rr=] [depth=] [retry=] [rnr=] [timeout=] + QP options
 *                                      id= qpn= priv= or err event= status= priv=
 *   accept id= [priv=] [rr=] [depth=] + QP options, [timeout=0: do not wait]
 *   reject id= [priv=]
 *   event id= timeout=                 next event of a connection: event= status=
 *   disconnect id= / destroy id=
 *   qp type=rc|uc|ud + QP options      a QP without the connection manager: id= qpn= gid=
 *   rtr id= addr= qpn= psn= mtu= rr= [access=] [minrnr=] / rts id= psn= timeout= retry= rnr= depth=
 *   ah id= addr=                       address handle for UD
 *   recv id= mr= off= len= wr= [n= stride=]
 *   send id= op= mr= off= len= wr= [raddr= rkey= imm= add= cmp= swap= flags=ofi qpn= qkey= n= stride=]
 *                                      of n requests each is a stride further on both sides, and its imm is one
 *                                      more; [grow=] its len is that much more; [odd=] every other is this much longer
 *   bind id= mr= off= len= access=     bind a new type 2 memory window: rkey=
 *   poll id= n= timeout= [quiet= [least=]]
 *                                      n= wc=wr/status/opcode/len/imm/flags/srcqp,...; after the first least
 *                                      completions, a gap longer than quiet ends the poll
 *   state id=                          state=
 *
 * QP options: depth of queues sq= rq=, sge=, inline=, srq=1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int patience;

enum { MAX_WORDS = 32, MAX_REGIONS = 64, MAX_ENDS = 1024, MAX_EVENTS = 16 };

struct event {
	enum rdma_cm_event_type type;
	int status, private_len, rr, depth;
	unsigned char private[256];
	struct rdma_cm_id *from; /* of a connection request */
	struct rdma_ud_param ud;
};

/* An end of a connection, a listener or a lone QP. */
struct end {
	int used;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	uint32_t ud_qpn, ud_qkey;
	struct event queue[MAX_EVENTS];
	int head, tail;
};

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct rdma_event_channel *channel;
static struct ibv_mr *regions[MAX_REGIONS];
static struct end ends[MAX_ENDS];

/* The words of the present command. */
static char *words[MAX_WORDS];
static int word_count;

static const char *text(const char *name, const char *missing)
{
	size_t n = strlen(name);
	for (int i = 1; i < word_count; i++)
		if (!strncmp(words[i], name, n) && words[i][n] == '=')
			return words[i] + n + 1;
	return missing;
}

static uint64_t number(const char *name, uint64_t missing)
{
	const char *s = text(name, NULL);
	return s ? strtoull(s, NULL, 0) : missing;
}

static void err(const char *format, ...)
{
	va_list a;
	va_start(a, format);
	printf("err ");
	vprintf(format, a);
	printf("\n");
	va_end(a);
}

static void err_no(const char *what) { err("what=%s errno=%d", what, errno); }

static int unhex(const char *s, unsigned char *out, int max)
{
	int n = 0;
	for (; s[0] && s[1] && n < max; s += 2, n++) {
		unsigned v;
		if (sscanf(s, "%2x", &v) != 1)
			return -1;
		out[n] = v;
	}
	return n;
}

static void print_hex(const char *name, const unsigned char *b, int n)
{
	printf(" %s=", name);
	for (int i = 0; i < n; i++)
		printf("%02x", b[i]);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* The byte at position i of a pattern. It depends on i and seed, so that moved and stale bytes are noticed. */
static unsigned char pattern(uint64_t i, uint64_t seed) { return i * 131 + (i >> 8) * 17 + (i >> 16) * 29 + seed * 7 + 1; }

static struct ibv_mr *region(void)
{
	uint64_t n = number("mr", 0);
	return n < MAX_REGIONS ? regions[n] : NULL;
}

/* A range of a region, or NULL if an error has been answered. */
static unsigned char *range(uint64_t *len)
{
	struct ibv_mr *mr = region();
	uint64_t off = number("off", 0);
	*len = number("len", 0);
	if (!mr || off + *len > mr->length) {
		err("what=range");
		return NULL;
	}
	return (unsigned char *)mr->addr + off;
}

static struct end *end_of(void)
{
	uint64_t n = number("id", MAX_ENDS);
	if (n >= MAX_ENDS || !ends[n].used) {
		err("what=id");
		return NULL;
	}
	return &ends[n];
}

static struct end *new_end(void)
{
	for (int i = 0; i < MAX_ENDS; i++)
		if (!ends[i].used) {
			memset(&ends[i], 0, sizeof ends[i]);
			ends[i].used = 1;
			return &ends[i];
		}
	err("what=ends");
	return NULL;
}

static int index_of(struct end *e) { return e - ends; }

static int open_device(void)
{
	if (device)
		return 0;
	int n;
	struct ibv_context **list = rdma_get_devices(&n); /* the contexts that the ids use, too */
	if (!list || n == 0)
		return -1;
	device = list[0];
	pd = ibv_alloc_pd(device);
	return pd ? 0 : -1;
}

static int access_flags(const char *s)
{
	int f = 0;
	for (; *s; s++)
		switch (*s) {
		case 'l': f |= IBV_ACCESS_LOCAL_WRITE; break;
		case 'w': f |= IBV_ACCESS_REMOTE_WRITE; break;
		case 'r': f |= IBV_ACCESS_REMOTE_READ; break;
		case 'a': f |= IBV_ACCESS_REMOTE_ATOMIC; break;
		case 'b': f |= IBV_ACCESS_MW_BIND; break;
		}
	return f;
}

static void do_mr(void)
{
	uint64_t size = number("size", 4096);
	int i = 0;
	while (i < MAX_REGIONS && regions[i])
		i++;
	void *p = i < MAX_REGIONS ? aligned_alloc(4096, (size + 4095) & ~4095ull) : NULL;
	if (!p)
		return err("what=memory");
	memset(p, 0, size);
	regions[i] = ibv_reg_mr(pd, p, size, access_flags(text("access", "lwra")));
	if (!regions[i]) {
		free(p);
		return err_no("ibv_reg_mr");
	}
	printf("ok mr=%d addr=%lu rkey=%u\n", i, (unsigned long)p, regions[i]->rkey);
}

static void do_fill(void)
{
	uint64_t n, seed = number("seed", 0), pieces = number("n", 1), stride = number("stride", number("len", 0));
	unsigned char *p = range(&n);
	if (!p)
		return;
	if (number("off", 0) + (pieces - 1) * stride + n > region()->length)
		return err("what=range");
	for (uint64_t k = 0; k < pieces; k++)
		for (uint64_t i = 0; i < n; i++)
			p[k * stride + i] = pattern(i, seed + k);
	printf("ok\n");
}

static void do_check(void)
{
	uint64_t n, seed = number("seed", 0);
	unsigned char *p = range(&n);
	if (!p)
		return;
	long bad = -1;
	for (uint64_t i = 0; i < n && bad < 0; i++)
		if (p[i] != pattern(i, seed))
			bad = i;
	printf("ok bad=%ld\n", bad);
}

static void do_peek(void)
{
	uint64_t n;
	unsigned char *p = range(&n);
	if (!p)
		return;
	printf("ok");
	print_hex("data", p, n);
	printf("\n");
}

static void do_poke(void)
{
	struct ibv_mr *mr = region();
	uint64_t off = number("off", 0);
	if (!mr || off >= mr->length)
		return err("what=range");
	unhex(text("data", ""), (unsigned char *)mr->addr + off, mr->length - off);
	printf("ok\n");
}

/* Takes one event off the channel and queues it at the end that it concerns. */
static int pump(int timeout)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	if (poll(&p, 1, timeout) <= 0)
		return 0;
	struct rdma_cm_event *e;
	if (rdma_get_cm_event(channel, &e))
		return 0;
	struct end *to = e->listen_id ? e->listen_id->context : e->id->context;
	if (to && to->tail - to->head < MAX_EVENTS) {
		struct event *q = &to->queue[to->tail++ % MAX_EVENTS];
		memset(q, 0, sizeof *q);
		q->type = e->event;
		q->status = e->status;
		q->from = e->event == RDMA_CM_EVENT_CONNECT_REQUEST ? e->id : NULL;
		int ud = e->id->ps == RDMA_PS_UDP;
		const void *data = ud ? e->param.ud.private_data : e->param.conn.private_data;
		q->private_len = ud ? e->param.ud.private_data_len : e->param.conn.private_data_len;
		if (data)
			memcpy(q->private, data, q->private_len);
		else
			q->private_len = 0;
		q->rr = ud ? 0 : e->param.conn.responder_resources;
		q->depth = ud ? 0 : e->param.conn.initiator_depth;
		if (ud)
			q->ud = e->param.ud;
	}
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->id->context = NULL;
	rdma_ack_cm_event(e);
	return 1;
}

static struct event *next_event(struct end *e, int timeout)
{
	double until = now() + timeout;
	while (e->head == e->tail) {
		int left = until - now();
		if (left < 0)
			return NULL;
		pump(left + 1);
	}
	return &e->queue[e->head++ % MAX_EVENTS];
}

/* Waits for an event of this type. If another comes, or none, it answers with an error and returns NULL. */
static struct event *want_event(struct end *e, enum rdma_cm_event_type type, int timeout)
{
	struct event *v = next_event(e, timeout);
	if (!v)
		err("what=timeout waiting=%d", type);
	else if (v->type != type) {
		printf("err event=%d name=%s status=%d", v->type, rdma_event_str(v->type), v->status);
		print_hex("priv", v->private, v->private_len);
		printf("\n");
	} else
		return v;
	return NULL;
}

static int make_qp(struct end *e, enum ibv_qp_type type)
{
	int sq = number("sq", 64), rq = number("rq", 64);
	e->cq = ibv_create_cq(device, sq + rq + 16, NULL, NULL, 0);
	if (!e->cq)
		return -1;
	struct ibv_qp_init_attr a = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = type,
		.cap = {.max_send_wr = sq, .max_recv_wr = rq, .max_send_sge = number("sge", 4), .max_recv_sge = number("sge", 4), .max_inline_data = number("inline", 64)},
	};
	if (number("srq", 0)) {
		struct ibv_srq_init_attr s = {.attr = {.max_wr = rq, .max_sge = number("sge", 4)}};
		a.srq = e->srq = ibv_create_srq(pd, &s);
		if (!e->srq)
			return -1;
	}
	if (e->id) {
		if (rdma_create_qp(e->id, pd, &a))
			return -1;
		e->qp = e->id->qp;
		return 0;
	}
	e->qp = ibv_create_qp(pd, &a);
	return e->qp ? 0 : -1;
}

static void drop(struct end *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	if (e->id && e->id->qp)
		rdma_destroy_qp(e->id);
	else if (e->qp)
		ibv_destroy_qp(e->qp);
	if (e->srq)
		ibv_destroy_srq(e->srq);
	if (e->cq)
		ibv_destroy_cq(e->cq);
	if (e->id)
		rdma_destroy_id(e->id);
	memset(e, 0, sizeof *e);
}

static int sock_addr(const char *s, int port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;
	memset(out, 0, sizeof *out);
	if (inet_pton(AF_INET, s, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return 0;
	}
	if (inet_pton(AF_INET6, s, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		return 0;
	}
	return -1;
}

static int is_udp(void) { return !strcmp(text("space", "tcp"), "udp"); }

static void do_listen(void)
{
	struct sockaddr_storage a;
	struct end *e = new_end();
	if (!e)
		return;
	if (sock_addr(text("addr", "0.0.0.0"), number("port", 0), &a) ||
	    rdma_create_id(channel, &e->id, e, is_udp() ? RDMA_PS_UDP : RDMA_PS_TCP) ||
	    rdma_bind_addr(e->id, (struct sockaddr *)&a) || rdma_listen(e->id, number("backlog", 128))) {
		err_no("listen");
		drop(e);
		return;
	}
	printf("ok id=%d port=%d\n", index_of(e), ntohs(rdma_get_src_port(e->id)));
}

static void do_request(void)
{
	struct end *l = end_of();
	if (!l)
		return;
	struct event *v = want_event(l, RDMA_CM_EVENT_CONNECT_REQUEST, number("timeout", patience));
	if (!v)
		return;
	struct end *e = new_end();
	if (!e)
		return;
	e->id = v->from;
	e->id->context = e;
	printf("ok id=%d rr=%d depth=%d", index_of(e), v->rr, v->depth);
	print_hex("priv", v->private, v->private_len);
	printf("\n");
}

static unsigned char private_out[256];

static struct rdma_conn_param conn_param(void)
{
	struct rdma_conn_param p = {
		.private_data = private_out,
		.private_data_len = unhex(text("priv", ""), private_out, sizeof private_out),
		.responder_resources = number("rr", 16),
		.initiator_depth = number("depth", 16),
		.flow_control = number("fc", 0),
		.retry_count = number("retry", 7),
		.rnr_retry_count = number("rnr", 7),
	};
	return p;
}

static void do_connect(void)
{
	struct sockaddr_storage a;
	int timeout = number("timeout", patience);
	struct end *e = new_end();
	if (!e)
		return;
	struct event *v;
	struct rdma_conn_param p = conn_param();
	if (sock_addr(text("addr", ""), number("port", 0), &a) ||
	    rdma_create_id(channel, &e->id, e, is_udp() ? RDMA_PS_UDP : RDMA_PS_TCP) ||
	    rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&a, 2000)) {
		err_no("resolve_addr");
		goto fail;
	}
	if (!want_event(e, RDMA_CM_EVENT_ADDR_RESOLVED, timeout))
		goto fail;
	if (rdma_resolve_route(e->id, 2000)) {
		err_no("resolve_route");
		goto fail;
	}
	if (!want_event(e, RDMA_CM_EVENT_ROUTE_RESOLVED, timeout))
		goto fail;
	if (make_qp(e, is_udp() ? IBV_QPT_UD : IBV_QPT_RC) || rdma_connect(e->id, &p)) {
		err_no("connect");
		goto fail;
	}
	v = want_event(e, RDMA_CM_EVENT_ESTABLISHED, timeout);
	if (!v)
		goto fail;
	if (is_udp()) {
		e->ah = ibv_create_ah(pd, &v->ud.ah_attr);
		e->ud_qpn = v->ud.qp_num;
		e->ud_qkey = v->ud.qkey;
		if (!e->ah) {
			err_no("ibv_create_ah");
			goto fail;
		}
	}
	printf("ok id=%d qpn=%u rr=%d depth=%d rqpn=%u qkey=%u", index_of(e), e->qp->qp_num, v->rr, v->depth, e->ud_qpn, e->ud_qkey);
	print_hex("priv", v->private, v->private_len);
	printf("\n");
	return;
fail:
	drop(e);
}

static void do_accept(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	int ud = e->id->ps == RDMA_PS_UDP, timeout = number("timeout", patience);
	struct rdma_conn_param p = conn_param();
	if (make_qp(e, ud ? IBV_QPT_UD : IBV_QPT_RC))
		return err_no("make_qp");
	if (ud)
		p.qp_num = e->qp->qp_num;
	if (rdma_accept(e->id, &p))
		return err_no("accept");
	if (!ud && timeout && !want_event(e, RDMA_CM_EVENT_ESTABLISHED, timeout))
		return;
	printf("ok id=%d qpn=%u\n", index_of(e), e->qp->qp_num);
}

static void do_reject(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	int n = unhex(text("priv", ""), private_out, sizeof private_out);
	if (rdma_reject(e->id, private_out, n))
		return err_no("reject");
	drop(e);
	printf("ok\n");
}

static void do_event(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	struct event *v = next_event(e, number("timeout", patience));
	if (!v)
		return err("what=timeout");
	printf("ok event=%d name=%s status=%d", v->type, rdma_event_str(v->type), v->status);
	print_hex("priv", v->private, v->private_len);
	printf("\n");
}

static void do_disconnect(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	if (rdma_disconnect(e->id))
		return err_no("disconnect");
	printf("ok\n");
}

static void do_destroy(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	drop(e);
	printf("ok\n");
}

/* The index of the GID that holds a v4-mapped address or a global IPv6 one, according to the family of the peer's
 * address. */
static int gid_index(const char *peer, union ibv_gid *gid)
{
	int v4 = !strchr(peer, ':');
	for (int i = 0; i < 16; i++) {
		if (ibv_query_gid(device, 1, i, gid))
			break;
		int mapped = gid->raw[10] == 0xff && gid->raw[11] == 0xff && !gid->raw[0];
		int local = gid->raw[0] == 0xfe;
		int empty = !gid->global.interface_id && !gid->global.subnet_prefix;
		if (v4 ? mapped : !mapped && !local && !empty)
			return i;
	}
	return -1;
}

static int address_vector(struct ibv_ah_attr *a)
{
	const char *peer = text("addr", "");
	struct sockaddr_storage s;
	union ibv_gid gid;
	memset(a, 0, sizeof *a);
	int row = gid_index(peer, &gid);
	if (row < 0 || sock_addr(peer, 0, &s))
		return -1;
	if (s.ss_family == AF_INET) {
		a->grh.dgid.raw[10] = a->grh.dgid.raw[11] = 0xff;
		memcpy(a->grh.dgid.raw + 12, &((struct sockaddr_in *)&s)->sin_addr, 4);
	} else
		memcpy(a->grh.dgid.raw, &((struct sockaddr_in6 *)&s)->sin6_addr, 16);
	a->is_global = 1;
	a->port_num = 1;
	a->grh.sgid_index = row;
	a->grh.hop_limit = 64;
	a->grh.traffic_class = number("tclass", 0);
	return 0;
}

static void do_qp(void)
{
	const char *t = text("type", "rc");
	enum ibv_qp_type type = !strcmp(t, "ud") ? IBV_QPT_UD : !strcmp(t, "uc") ? IBV_QPT_UC : IBV_QPT_RC;
	int access = access_flags(text("access", "lwra")), mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct end *e = new_end();
	if (!e)
		return;
	if (make_qp(e, type)) {
		err_no("make_qp");
		drop(e);
		return;
	}
	struct ibv_qp_attr q = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = type == IBV_QPT_UC ? access & ~IBV_ACCESS_REMOTE_ATOMIC & ~IBV_ACCESS_REMOTE_READ : access, .qkey = number("qkey", 0x11111111)};
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if ((errno = ibv_modify_qp(e->qp, &q, mask))) {
		err_no("init");
		drop(e);
		return;
	}
	printf("ok id=%d qpn=%u\n", index_of(e), e->qp->qp_num);
}

static enum ibv_mtu mtu_code(int bytes)
{
	for (int c = IBV_MTU_256; c < IBV_MTU_4096; c++)
		if (128 << c >= bytes)
			return c;
	return IBV_MTU_4096;
}

static void do_rtr(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	struct ibv_qp_attr q = {.qp_state = IBV_QPS_RTR};
	int mask = IBV_QP_STATE;
	if (e->qp->qp_type != IBV_QPT_UD) {
		if (address_vector(&q.ah_attr))
			return err("what=addr");
		q.path_mtu = mtu_code(number("mtu", 1024));
		q.dest_qp_num = number("qpn", 0);
		q.rq_psn = number("psn", 0);
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (e->qp->qp_type == IBV_QPT_RC) {
		q.max_dest_rd_atomic = number("rr", 16);
		q.min_rnr_timer = number("minrnr", 12);
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	if ((errno = ibv_modify_qp(e->qp, &q, mask)))
		return err_no("rtr");
	printf("ok\n");
}

static void do_rts(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	struct ibv_qp_attr q = {.qp_state = IBV_QPS_RTS, .sq_psn = number("psn", 0)};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (e->qp->qp_type == IBV_QPT_RC) {
		q.timeout = number("timeout", 14);
		q.retry_cnt = number("retry", 7);
		q.rnr_retry = number("rnr", 7);
		q.max_rd_atomic = number("depth", 16);
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if ((errno = ibv_modify_qp(e->qp, &q, mask)))
		return err_no("rts");
	printf("ok\n");
}

static void do_ah(void)
{
	struct end *e = end_of();
	struct ibv_ah_attr a;
	if (!e)
		return;
	if (address_vector(&a))
		return err("what=addr");
	if (e->ah)
		ibv_destroy_ah(e->ah);
	e->ah = ibv_create_ah(pd, &a);
	if (!e->ah)
		return err_no("ibv_create_ah");
	printf("ok\n");
}

static void do_recv(void)
{
	struct end *e = end_of();
	struct ibv_mr *mr = region();
	if (!e)
		return;
	if (!mr)
		return err("what=mr");
	int n = number("n", 1), stride = number("stride", number("len", 0));
	for (int i = 0; i < n; i++) {
		struct ibv_sge s = {(uintptr_t)mr->addr + number("off", 0) + (uint64_t)i * stride, number("len", 0), mr->lkey};
		struct ibv_recv_wr w = {.wr_id = number("wr", 0) + i, .sg_list = &s, .num_sge = s.length ? 1 : 0}, *bad;
		if ((errno = e->srq ? ibv_post_srq_recv(e->srq, &w, &bad) : ibv_post_recv(e->qp, &w, &bad)))
			return err_no("post_recv");
	}
	printf("ok\n");
}

static const struct {
	const char *name;
	enum ibv_wr_opcode code;
} opcodes[] = {
	{"send", IBV_WR_SEND}, {"sendimm", IBV_WR_SEND_WITH_IMM}, {"sendinv", IBV_WR_SEND_WITH_INV},
	{"write", IBV_WR_RDMA_WRITE}, {"writeimm", IBV_WR_RDMA_WRITE_WITH_IMM}, {"read", IBV_WR_RDMA_READ},
	{"cas", IBV_WR_ATOMIC_CMP_AND_SWP}, {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD},
};

static void do_send(void)
{
	struct end *e = end_of();
	struct ibv_mr *mr = region();
	if (!e)
		return;
	if (!mr)
		return err("what=mr");
	const char *op = text("op", "send"), *flags = text("flags", "");
	unsigned k = 0;
	while (k < sizeof opcodes / sizeof *opcodes && strcmp(opcodes[k].name, op))
		k++;
	if (k == sizeof opcodes / sizeof *opcodes)
		return err("what=op");
	int n = number("n", 1);
	uint64_t stride = number("stride", 0);
	for (int i = 0; i < n; i++) {
		uint32_t len = number("len", 0) + i * number("grow", 0) + (i & 1) * number("odd", 0);
		struct ibv_sge s = {(uintptr_t)mr->addr + number("off", 0) + i * stride, len, mr->lkey};
		struct ibv_send_wr w = {.wr_id = number("wr", 0) + i, .sg_list = &s, .num_sge = s.length ? 1 : 0, .opcode = opcodes[k].code, .send_flags = IBV_SEND_SIGNALED}, *bad;
		if (strchr(flags, 'o'))
			w.send_flags |= IBV_SEND_SOLICITED;
		if (strchr(flags, 'f'))
			w.send_flags |= IBV_SEND_FENCE;
		if (strchr(flags, 'i'))
			w.send_flags |= IBV_SEND_INLINE;
		if (w.opcode == IBV_WR_SEND_WITH_INV)
			w.invalidate_rkey = number("rkey", 0);
		else
			w.imm_data = htonl(number("imm", 0) + i);
		if (e->qp->qp_type == IBV_QPT_UD) {
			w.wr.ud.ah = e->ah;
			w.wr.ud.remote_qpn = number("qpn", e->ud_qpn);
			w.wr.ud.remote_qkey = number("qkey", e->ud_qkey);
		} else if (k >= 6) {
			w.wr.atomic.remote_addr = number("raddr", 0) + i * stride;
			w.wr.atomic.rkey = number("rkey", 0);
			w.wr.atomic.compare_add = k == 6 ? number("cmp", 0) : number("add", 0);
			w.wr.atomic.swap = number("swap", 0);
		} else {
			w.wr.rdma.remote_addr = number("raddr", 0) + i * stride;
			w.wr.rdma.rkey = number("rkey", 0);
		}
		if ((errno = ibv_post_send(e->qp, &w, &bad)))
			return err_no("post_send");
	}
	printf("ok\n");
}

static void do_bind(void)
{
	struct end *e = end_of();
	struct ibv_mr *mr = region();
	struct ibv_wc wc;
	if (!e)
		return;
	struct ibv_mw *mw = mr ? ibv_alloc_mw(pd, IBV_MW_TYPE_2) : NULL;
	if (!mw)
		return err_no("ibv_alloc_mw");
	struct ibv_send_wr w = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = {.mr = mr, .addr = (uintptr_t)mr->addr + number("off", 0), .length = number("len", 0), .mw_access_flags = access_flags(text("access", "wr"))}},
	}, *bad;
	if ((errno = ibv_post_send(e->qp, &w, &bad)))
		return err_no("post_send");
	int n;
	for (double until = now() + patience; (n = ibv_poll_cq(e->cq, 1, &wc)) == 0 && now() < until;)
		;
	if (n != 1 || wc.status != IBV_WC_SUCCESS)
		return err("what=bind status=%d", n == 1 ? (int)wc.status : -1);
	printf("ok rkey=%u\n", w.bind_mw.rkey);
}

static void do_poll(void)
{
	struct end *e = end_of();
	if (!e)
		return;
	int want = number("n", 1), got = 0, quiet = number("quiet", 0), least = number("least", 0);
	double until = now() + number("timeout", patience);
	struct ibv_wc wc;
	char out[16384];
	size_t at = 0;
	while (got < want && now() < until) {
		int r = ibv_poll_cq(e->cq, 1, &wc);
		if (r < 0)
			return err("what=poll");
		if (r == 0) {
			struct timespec t = {0, 200000};
			nanosleep(&t, NULL);
			continue;
		}
		if (++got >= least && quiet)
			until = now() + quiet;
		/* rxe passes the kernel's bit for an invalidated key to user space, where that bit means something
		 * else. */
		if (wc.wc_flags & IBV_WC_IP_CSUM_OK && !(wc.wc_flags & IBV_WC_WITH_IMM))
			wc.wc_flags = (wc.wc_flags & ~IBV_WC_IP_CSUM_OK) | IBV_WC_WITH_INV;
		if (at < sizeof out - 128)
			at += snprintf(out + at, sizeof out - at, "%s%lu/%d/%d/%u/%u/%u/%u", at ? "," : "", (unsigned long)wc.wr_id, wc.status,
				       wc.opcode, wc.byte_len, wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : ntohl(wc.imm_data), wc.wc_flags, wc.src_qp);
	}
	out[at] = 0;
	printf("ok n=%d wc=%s\n", got, out);
}

static void do_state(void)
{
	struct end *e = end_of();
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr i;
	if (!e)
		return;
	if ((errno = ibv_query_qp(e->qp, &a, IBV_QP_STATE, &i)))
		return err_no("query");
	printf("ok state=%d\n", a.qp_state);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{"mr", do_mr}, {"fill", do_fill}, {"check", do_check}, {"peek", do_peek}, {"poke", do_poke},
	{"listen", do_listen}, {"request", do_request}, {"connect", do_connect}, {"accept", do_accept}, {"reject", do_reject},
	{"event", do_event}, {"disconnect", do_disconnect}, {"destroy", do_destroy},
	{"qp", do_qp}, {"rtr", do_rtr}, {"rts", do_rts}, {"ah", do_ah},
	{"recv", do_recv}, {"send", do_send}, {"bind", do_bind}, {"poll", do_poll}, {"state", do_state},
};

int main(int argc, char **argv)
{
	if (argc != 2 || (patience = atoi(argv[1])) <= 0)
		return 2;
	static char line[65536];
	setvbuf(stdout, NULL, _IOLBF, 65536);
	channel = rdma_create_event_channel();
	if (!channel || open_device()) {
		err_no("open");
		return 1;
	}
	while (fgets(line, sizeof line, stdin)) {
		word_count = 0;
		for (char *w = strtok(line, " \n"); w && word_count < MAX_WORDS; w = strtok(NULL, " \n"))
			words[word_count++] = w;
		if (!word_count)
			continue;
		unsigned k = 0;
		while (k < sizeof commands / sizeof *commands && strcmp(commands[k].name, words[0]))
			k++;
		if (k < sizeof commands / sizeof *commands)
			commands[k].run();
		else
			err("what=command");
	}
	return 0;
}
