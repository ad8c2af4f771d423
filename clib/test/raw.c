/* Raw packet queue pairs and flows, against a driver with an adapter on a wire of whole frames, which raw.sh starts. */
#include "bed.h"

#include <errno.h>
#include <unistd.h>

enum { FRAME = 100, AT = 4096 };

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
static struct end a, b;

/* A rule: an attribute with up to three specifications behind it, as programs lay them out. */
struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4_ext ip;
	struct ibv_flow_spec_tcp_udp udp;
};

static struct rule usual(unsigned specs)
{
	struct rule r = { .attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(r), .num_of_specs = (uint8_t)specs, .port = 1 },
			  .eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
			  .ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(r.ip) },
			  .udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(r.udp) } };

	memcpy(r.eth.val.dst_mac, mac, 6);
	memset(r.eth.mask.dst_mac, 0xff, 6);
	return r;
}

static void open_raw(struct end *e)
{
	struct ibv_qp_init_attr q = { .send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RAW_PACKET,
				      .cap = { DEPTH, DEPTH, 2, 1, 64 } };
	struct ibv_qp_attr s = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	MUST((e->qp = ibv_create_qp(e->pd, &q)));
	MUST(ibv_modify_qp(e->qp, &s, IBV_QP_STATE | IBV_QP_PORT) == 0);
	s.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(e->qp, &s, IBV_QP_STATE) == 0);
	s.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(e->qp, &s, IBV_QP_STATE) == 0);
}

static struct ibv_flow *flow(struct rule *r) { return ibv_create_flow(b.qp, &r->attr); }

/* refused checks that a rule makes no flow, for the reason that is meant. */
static void refused(struct rule r, int error, int line)
{
	errno = 0;
	CHECK(!flow(&r) && errno == error, ": line %d: errno %d", line, errno);
}

#define REFUSED(change, error) do { struct rule r = usual(3); change; refused(r, error, __LINE__); } while (0)

static void test_refusals(void)
{
	REFUSED(r.attr.num_of_specs = 0, EINVAL);
	REFUSED(r.attr.type = 4, EINVAL);
	REFUSED(r.attr.port = 2, EINVAL);
	REFUSED(r.attr.comp_mask = 1, EINVAL);
	REFUSED(r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS, EOPNOTSUPP);
	REFUSED(r.eth.size = 0, EINVAL);
	REFUSED(r.eth.size = 7, EINVAL);
	REFUSED(r.eth.size = 0xffff, EINVAL);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_ESP, EOPNOTSUPP);
	REFUSED(r.eth.type |= IBV_FLOW_SPEC_INNER, EOPNOTSUPP);
	REFUSED(r.udp.type = IBV_FLOW_SPEC_ACTION_DROP, EOPNOTSUPP);
	REFUSED(r.attr.type = IBV_FLOW_ATTR_SNIFFER, EINVAL); /* with a rule */
}

/* passes sends a frame of UDP to a port from a, and tells whether b receives it. */
static bool passes(uint16_t port)
{
	struct ibv_sge s = { .addr = (uintptr_t)a.buf, .length = FRAME, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	pattern(a.buf, FRAME, port);
	memcpy(a.buf, mac, 6);
	memcpy(a.buf + 6, "\2\0\0\0\0\2\x08\0\x45", 9);
	memcpy(a.buf + 20, "\0\0\x40\x11", 4); /* no fragment; UDP */
	a.buf[36] = (uint8_t)(port >> 8);
	a.buf[37] = (uint8_t)port;
	memset(b.buf + AT, 0, FRAME);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
	if (!next(b.cq, &wc))
		return false;
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 1 && wc.byte_len == FRAME, ": %d, %u bytes", wc.status, wc.byte_len);
	return !memcmp(a.buf, b.buf + AT, FRAME);
}

static void test_frames(void)
{
	struct rule r = usual(3);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM }, *bad;
	struct ibv_flow *f;

	r.udp.val.dst_port = htobe16(5678);
	r.udp.mask.dst_port = 0xffff;
	MUST((f = flow(&r)));
	CHECK(ibv_destroy_qp(b.qp) == EBUSY, ".");
	CHECK(post_recv(&b, 1, AT, FRAME) == 0, ".");
	CHECK(passes(5678), ".");
	CHECK(post_recv(&b, 1, AT, FRAME) == 0, ".");
	CHECK(ibv_post_send(a.qp, &wr, &bad) == EINVAL, ".");
	CHECK(ibv_destroy_flow(f) == 0, ".");
	r.udp.val.dst_port = htobe16(7);
	MUST((f = flow(&r)));
	CHECK(passes(7), ".");
	CHECK(ibv_destroy_flow(f) == 0, ".");
}

/* sum is that of RFC 1071. */
static uint16_t sum(uint32_t s, const uint8_t *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	s = (s >> 16) + (s & 0xffff);
	return (uint16_t)(s + (s >> 16));
}

/* sent_with sends a datagram with these flags, and returns those of its completion at b, where it arrives in AT. */
static unsigned sent_with(unsigned flags)
{
	struct ibv_sge s = { .addr = (uintptr_t)a.buf, .length = FRAME, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags };
	struct ibv_wc wc = { 0 };
	const uint8_t head[] = "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\0\x56\0\0\0\0\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2\0\7\0\7\0\x42";

	pattern(a.buf, FRAME, 5);
	memcpy(a.buf, head, sizeof(head) - 1);
	CHECK(post_recv(&b, 1, AT, FRAME) == 0, ".");
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
	EXPECT(&b, IBV_WC_SUCCESS, 1, &wc);
	return wc.wc_flags;
}

static void test_checksums(void)
{
	struct ibv_device_attr_ex attr;
	struct rule r = usual(1);
	const uint8_t *ip = b.buf + AT + 14;
	struct ibv_flow *f;

	CHECK(ibv_query_device_ex(a.ctx, NULL, &attr) == 0, ".");
	CHECK(attr.raw_packet_caps == (IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS |
				       IBV_RAW_PACKET_CAP_DELAY_DROP) && attr.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS && attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM, ".");
	MUST((f = flow(&r)));
	CHECK(!(sent_with(IBV_SEND_SIGNALED) & IBV_WC_IP_CSUM_OK), ".");
	CHECK(!memcmp(a.buf, b.buf + AT, FRAME), ": a frame has changed");
	CHECK(sent_with(IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM) & IBV_WC_IP_CSUM_OK, ".");
	CHECK(sum(0, ip, 20) == 0xffff, ": of IPv4");
	CHECK(sum(17 + 0x42, ip + 12, 8 + 0x42) == 0xffff, ": of UDP");
	CHECK(ibv_destroy_flow(f) == 0, ".");
}

enum { HEAD = 54, DATA = 3000, SEGMENT = 1000 };

/* The headers of a large send: its lengths and checksums are nonsense. */
static const uint8_t large_head[HEAD + 1] =
	"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\xff\xff\0\7\0\0\x40\6\1\2\x0a\0\0\1\x0a\0\0\2\0\7\0\7\0\0\0\0\0\0\0\0\x50\x19\1\0";

/* send_large posts a large send by the plain interface or the extended one. Returns 0 or an errno. */
static int send_large(struct ibv_qp *qp, bool extended, uint16_t head, uint16_t mss)
{
	struct ibv_sge s[] = { { (uintptr_t)a.buf, DATA / 3, a.mr->lkey }, { (uintptr_t)a.buf + DATA / 3, DATA - DATA / 3, a.mr->lkey } };
	struct ibv_send_wr *bad, wr = { .wr_id = 3, .sg_list = s, .num_sge = 2, .opcode = IBV_WR_TSO, .send_flags = IBV_SEND_SIGNALED,
					.tso = { (void *)large_head, head, mss } };
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp);

	if (!extended)
		return ibv_post_send(qp, &wr, &bad);
	ibv_wr_start(x);
	x->wr_id = 3;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_tso(x, (void *)large_head, head, mss);
	ibv_wr_set_sge_list(x, 2, s);
	return ibv_wr_complete(x);
}

static void test_large_sends(void)
{
	struct ibv_qp_init_attr_ex q = { .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RAW_PACKET, .pd = a.pd, .max_tso_header = HEAD,
					 .cap = { DEPTH, DEPTH, 2, 1, 0 }, .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS };
	struct ibv_qp_attr s = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_device_attr_ex attr;
	struct rule r = usual(1);
	struct ibv_flow *f;
	struct ibv_wc wc;
	struct ibv_qp *qp, *other;

	CHECK(ibv_query_device_ex(a.ctx, NULL, &attr) == 0, ".");
	CHECK(attr.tso_caps.max_tso >= 65536 && attr.tso_caps.supported_qpts == 1u << IBV_QPT_RAW_PACKET, ".");
	q.max_tso_header = 4096;
	CHECK(!ibv_create_qp_ex(a.ctx, &q) && errno == EINVAL, ": errno %d", errno);
	q.max_tso_header = HEAD;
	MUST((qp = ibv_create_qp_ex(a.ctx, &q)));
	for (int i = 0; i < 3; i++, s.qp_state++)
		MUST(ibv_modify_qp(qp, &s, IBV_QP_STATE | (i ? 0 : IBV_QP_PORT)) == 0);
	MUST((f = flow(&r)));
	CHECK(send_large(qp, false, HEAD + 1, SEGMENT) == EINVAL && send_large(qp, true, HEAD + 1, SEGMENT) == EINVAL, ": long headers");
	CHECK(send_large(qp, false, HEAD, 0) == EINVAL && send_large(qp, true, HEAD, 0) == EINVAL, ": no segment size");
	CHECK(send_large(a.qp, false, HEAD, SEGMENT) == EINVAL, ": a queue pair without room for headers");
	other = a.qp;
	a.qp = qp; /* whose completions are expected */
	for (int extended = 0; extended < 2; extended++) {
		pattern(a.buf, DATA, 9);
		for (int i = 0; i < 3; i++)
			CHECK(post_recv(&b, (uint64_t)i, AT + i * 2048, 2048) == 0, ".");
		CHECK(send_large(qp, extended, HEAD, SEGMENT) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, 3, &wc);
		CHECK(wc.opcode == IBV_WC_TSO, ": opcode %d", wc.opcode);
		for (int i = 0; i < 3; i++) {
			const uint8_t *p = b.buf + AT + i * 2048;

			EXPECT(&b, IBV_WC_SUCCESS, (uint64_t)i, &wc);
			CHECK(wc.byte_len == HEAD + SEGMENT && wc.wc_flags & IBV_WC_IP_CSUM_OK, ": segment %d has %u bytes", i, wc.byte_len);
			CHECK(!memcmp(p + HEAD, a.buf + i * SEGMENT, SEGMENT), ": segment %d has other data", i);
			CHECK((p[40] << 8 | p[41]) == i * SEGMENT && (p[47] == 0x19) == (i == 2), ": sequence or flags of segment %d", i);
		}
	}
	a.qp = other;
	CHECK(ibv_destroy_flow(f) == 0, ".");
	CHECK(ibv_destroy_qp(qp) == 0, ".");
}

/* spread makes a table of 8 entries over two work queues, and a queue pair that spreads over it, by IPv4 addresses. */
static struct ibv_qp *spread(struct ibv_wq *wqs[2], struct ibv_rwq_ind_table **table)
{
	static const uint8_t key[40] = { 0x2c, 0xc6, 0x81, 0xd1, 0x5b, 0xdb, 0xf4, 0xf7, 0xfc, 0xa2, 0x83, 0x19, 0xdb, 0x1a, 0x3e, 0x94 };
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = b.pd, .cq = b.cq };
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *list[8];
	struct ibv_rwq_ind_table_init_attr t = { .log_ind_tbl_size = 3, .ind_tbl = list };
	struct ibv_qp_init_attr_ex q = { .qp_type = IBV_QPT_RAW_PACKET, .pd = b.pd,
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE,
					 .rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), (uint8_t *)key,
							   IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 } };
	struct ibv_qp *qp;

	for (int i = 0; i < 2; i++) {
		MUST((wqs[i] = ibv_create_wq(b.ctx, &w)));
		CHECK(w.max_wr >= DEPTH && wqs[i]->state == IBV_WQS_RESET && wqs[i]->wq_num, ".");
		MUST(ibv_modify_wq(wqs[i], &rdy) == 0);
	}
	for (int i = 0; i < 8; i++)
		list[i] = wqs[i & 1];
	MUST((*table = ibv_create_rwq_ind_table(b.ctx, &t)));
	q.rwq_ind_tbl = *table;
	q.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_SRC_IPV6;
	CHECK(!ibv_create_qp_ex(b.ctx, &q) && errno == EOPNOTSUPP, ": errno %d", errno);
	q.rx_hash_conf.rx_hash_fields_mask &= ~(uint64_t)IBV_RX_HASH_SRC_IPV6;
	q.rx_hash_conf.rx_hash_key_len = 16;
	CHECK(!ibv_create_qp_ex(b.ctx, &q) && errno == EINVAL, ": errno %d", errno);
	q.rx_hash_conf.rx_hash_key_len = sizeof(key);
	MUST((qp = ibv_create_qp_ex(b.ctx, &q)));
	return qp;
}

static void test_work_queues(void)
{
	struct ibv_wq *wqs[2];
	struct ibv_rwq_ind_table *table;
	struct ibv_wq_attr err = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_ERR };
	struct ibv_qp *qp = spread(wqs, &table);
	struct ibv_qp_attr state = { .qp_state = IBV_QPS_INIT };
	struct rule r = usual(1);
	struct ibv_flow *f;
	struct ibv_wc wc;
	unsigned got[2] = { 0, 0 }, posted[2] = { 0, 0 };
	uint32_t first = 0;

	MUST((f = ibv_create_flow(qp, &r.attr)));
	CHECK(ibv_destroy_qp(qp) == EBUSY && ibv_destroy_rwq_ind_table(table) == EBUSY && ibv_destroy_wq(wqs[0]) == EBUSY, ".");
	CHECK(ibv_modify_qp(qp, &state, IBV_QP_STATE) == EOPNOTSUPP, ".");
	for (int i = 0; i < 64; i++) {
		struct ibv_sge s = { .addr = (uintptr_t)a.buf, .length = FRAME, .lkey = a.mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };

		for (int w = 0; w < 2; w++) {
			struct ibv_sge to = { .addr = (uintptr_t)b.buf + AT, .length = FRAME, .lkey = b.mr->lkey };
			struct ibv_recv_wr more = { .wr_id = (uint64_t)w, .sg_list = &to, .num_sge = 1 }, *bad;

			for (; posted[w] < 2; posted[w]++)
				MUST(ibv_post_wq_recv(wqs[w], &more, &bad) == 0);
		}
		memcpy(a.buf, large_head, HEAD);
		a.buf[29] = (uint8_t)(i / 2); /* the source: two frames of each */
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
		MUST(next(b.cq, &wc));
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id < 2 && wc.qp_num == wqs[wc.wr_id]->wq_num, ": status %d, queue %u", wc.status, wc.qp_num);
		got[wc.wr_id]++;
		posted[wc.wr_id]--;
		if (i & 1)
			CHECK(wc.qp_num == first, ": two frames of one flow are in two queues");
		first = wc.qp_num;
	}
	CHECK(got[0] > 8 && got[1] > 8, ": %u and %u frames", got[0], got[1]);
	CHECK(ibv_destroy_flow(f) == 0, ".");
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_rwq_ind_table(table) == 0, ".");
	CHECK(ibv_modify_wq(wqs[0], &err) == 0 && next(b.cq, &wc) && wc.status == IBV_WC_WR_FLUSH_ERR, ".");
	CHECK(ibv_destroy_wq(wqs[0]) == 0 && ibv_destroy_wq(wqs[1]) == 0, ".");
}

/* fcs is the frame check sequence of IEEE 802.3, 3.2.9. */
static uint32_t fcs(const uint8_t *p, unsigned n)
{
	uint32_t c = ~0u;

	for (unsigned i = 0; i < n; i++) {
		c ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
	}
	return ~c;
}

/* A work queue with flags, ready, that a queue pair with a flow spreads to: all frames, as it is over no fields. */
struct alone {
	struct ibv_cq_ex *cq;
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

static void open_alone(struct alone *x, uint32_t flags, uint32_t cqe)
{
	static uint8_t key[40];
	struct ibv_cq_init_attr_ex c = { .cqe = cqe, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_CVLAN };
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = b.pd, .comp_mask = 1, .create_flags = flags };
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr t = { .ind_tbl = &x->wq };
	struct ibv_qp_init_attr_ex q = { .qp_type = IBV_QPT_RAW_PACKET, .pd = b.pd,
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE |
						      IBV_QP_INIT_ATTR_CREATE_FLAGS,
					 .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
					 .rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, 0 } };
	struct rule r = usual(1);

	MUST((x->cq = ibv_create_cq_ex(b.ctx, &c)));
	w.cq = ibv_cq_ex_to_cq(x->cq);
	MUST((x->wq = ibv_create_wq(b.ctx, &w)));
	MUST(ibv_modify_wq(x->wq, &rdy) == 0);
	MUST((x->table = ibv_create_rwq_ind_table(b.ctx, &t)));
	q.rwq_ind_tbl = x->table;
	MUST((x->qp = ibv_create_qp_ex(b.ctx, &q)));
	MUST((x->flow = ibv_create_flow(x->qp, &r.attr)));
}

static void close_alone(struct alone *x)
{
	CHECK(ibv_destroy_flow(x->flow) == 0 && ibv_destroy_qp(x->qp) == 0 && ibv_destroy_rwq_ind_table(x->table) == 0, ".");
	CHECK(ibv_destroy_wq(x->wq) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(x->cq)) == 0, ".");
}

static void post_wq(struct alone *x, uint64_t id)
{
	struct ibv_sge to = { .addr = (uintptr_t)b.buf + AT, .length = 1024, .lkey = b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &to, .num_sge = 1 }, *bad;

	MUST(ibv_post_wq_recv(x->wq, &wr, &bad) == 0);
}

/* tagged sends a frame in VLAN 5 from a, and returns its length at the work queue and its tag; 0: it does not arrive. */
static uint32_t tagged(struct alone *x, uint16_t *tag)
{
	struct ibv_sge s = { .addr = (uintptr_t)a.buf, .length = FRAME, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_poll_cq_attr none = { 0 };
	uint32_t n = 0;
	struct ibv_wc wc;

	pattern(a.buf, FRAME, 4);
	memcpy(a.buf, "\2\0\0\0\0\1\2\0\0\0\0\2\x81\0\x60\5\x88\xb5", 18);
	CHECK(post(&a, &wr) == 0, ".");
	EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
	for (int i = 0; i < 2000; i++, usleep(1000)) {
		if (ibv_start_poll(x->cq, &none))
			continue;
		CHECK(x->cq->status == IBV_WC_SUCCESS, ": status %d", x->cq->status);
		n = ibv_wc_read_byte_len(x->cq);
		*tag = ibv_wc_read_cvlan(x->cq);
		ibv_end_poll(x->cq);
		break;
	}
	return n;
}

static void test_flags(void)
{
	enum { ALL = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS };
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = b.pd, .cq = b.cq, .comp_mask = 1,
				      .create_flags = IBV_WQ_FLAGS_PCI_WRITE_END_PADDING };
	struct ibv_wq_attr m = { .attr_mask = IBV_WQ_ATTR_FLAGS, .flags_mask = IBV_WQ_FLAGS_PCI_WRITE_END_PADDING };
	struct alone x;
	uint16_t tag = 1;
	uint32_t sum;

	CHECK(!ibv_create_wq(b.ctx, &w) && errno == EOPNOTSUPP, ": errno %d", errno);
	open_alone(&x, ALL, 16);
	CHECK(ibv_modify_wq(x.wq, &m) == EOPNOTSUPP, ".");
	post_wq(&x, 1);
	CHECK(tagged(&x, &tag) == FRAME, ".");
	CHECK(tag == 0x6005, ": %#x", tag);
	CHECK(!memcmp(b.buf + AT, a.buf, 12) && !memcmp(b.buf + AT + 12, a.buf + 16, FRAME - 16), ": the tag is still there");
	memcpy(&sum, b.buf + AT + FRAME - 4, 4);
	CHECK(sum == fcs(a.buf, FRAME), ": %#x, want %#x", sum, fcs(a.buf, FRAME));
	m.flags_mask = ALL;
	CHECK(ibv_modify_wq(x.wq, &m) == 0, ".");
	post_wq(&x, 1);
	CHECK(tagged(&x, &tag) == FRAME && tag == 0 && !memcmp(b.buf + AT, a.buf, FRAME), ": without flags, tag %#x", tag);
	m.flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	CHECK(ibv_modify_wq(x.wq, &m) == 0, ".");
	post_wq(&x, 1);
	CHECK(tagged(&x, &tag) == FRAME - 4 && tag == 0x6005, ": tag %#x", tag);
	close_alone(&x);
}

/* A work queue ends when completions find no room in its queue of completions. */
static void test_fatal(void)
{
	struct ibv_async_event e;
	bool told = false;
	struct alone x;

	open_alone(&x, 0, 1);
	for (int i = 0; i < 8; i++)
		post_wq(&x, 1);
	for (int i = 0; i < 8; i++) {
		struct ibv_sge s = { .addr = (uintptr_t)a.buf, .length = FRAME, .lkey = a.mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
		struct ibv_wc wc;

		memcpy(a.buf, "\2\0\0\0\0\1\2\0\0\0\0\2\x88\xb5", 14);
		CHECK(post(&a, &wr) == 0, ".");
		EXPECT(&a, IBV_WC_SUCCESS, 2, &wc);
	}
	for (int i = 0; i < 2 && !ibv_get_async_event(b.ctx, &e); i++) {
		if (e.event_type == IBV_EVENT_WQ_FATAL)
			told = e.element.wq == x.wq;
		else
			CHECK(e.event_type == IBV_EVENT_CQ_ERR, ": event %d", e.event_type);
		ibv_ack_async_event(&e);
	}
	CHECK(told, ": no fatal event");
	close_alone(&x);
}

int main(void)
{
	open_end(&a, 0);
	open_end(&b, 0);
	open_raw(&a);
	open_raw(&b);
	test_refusals();
	test_frames();
	test_checksums();
	test_large_sends();
	test_work_queues();
	test_flags();
	test_fatal();
	CHECK(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0, ".");
	a.qp = b.qp = NULL;
	close_end(&a);
	close_end(&b);
	if (!failures)
		puts("raw        ok");
	return failures != 0;
}
