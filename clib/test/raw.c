/* Raw packet queue pairs and flows, against a driver with an adapter on a wire of whole frames, which raw.sh starts. */
#include "bed.h"

#include <errno.h>

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
	CHECK(attr.raw_packet_caps == IBV_RAW_PACKET_CAP_IP_CSUM && attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM, ".");
	MUST((f = flow(&r)));
	CHECK(!(sent_with(IBV_SEND_SIGNALED) & IBV_WC_IP_CSUM_OK), ".");
	CHECK(!memcmp(a.buf, b.buf + AT, FRAME), ": a frame has changed");
	CHECK(sent_with(IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM) & IBV_WC_IP_CSUM_OK, ".");
	CHECK(sum(0, ip, 20) == 0xffff, ": of IPv4");
	CHECK(sum(17 + 0x42, ip + 12, 8 + 0x42) == 0xffff, ": of UDP");
	CHECK(ibv_destroy_flow(f) == 0, ".");
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
	CHECK(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0, ".");
	a.qp = b.qp = NULL;
	close_end(&a);
	close_end(&b);
	if (!failures)
		puts("raw        ok");
	return failures != 0;
}
