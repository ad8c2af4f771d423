/* Flows: what raw packet queue pairs receive of the frames that arrive at the port. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>

#include "object.h"

/* The specifications that follow an ibv_flow_attr, and their fields as the driver has them. */
enum { SPEC_ETH = 0x20, SPEC_IPV4 = 0x30, SPEC_IPV6 = 0x31, SPEC_IPV4_EXT = 0x32, SPEC_TCP = 0x40, SPEC_UDP = 0x41 };
enum { LAYER_ETH = 1, LAYER_IPV4 = 2, LAYER_IPV6 = 4, LAYER_TCP = 8, LAYER_UDP = 16 };
enum { FLOW_SNIFFER = 3, FLOW_DONT_TRAP = 1 << 1 };

struct eth { uint8_t dst[6], src[6]; uint16_t type, tag; };
struct ipv4 { uint32_t src, dst; };
struct ipv4_ext { uint32_t src, dst; uint8_t protocol, tos, ttl, flags; };
struct ipv6 { uint8_t src[16], dst[16]; uint32_t label; uint8_t next, class, hops; };
struct ports { uint16_t dst, src; };

/* spec is a specification: one filter with the values of fields, and one with the bits of them that count. */
union spec {
	struct { uint32_t type; uint16_t size; } head;
	struct { uint32_t type; uint16_t size; struct eth val, mask; } eth;
	struct { uint32_t type; uint16_t size; struct ipv4 val, mask; } ipv4;
	struct { uint32_t type; uint16_t size; struct ipv4_ext val, mask; } ipv4_ext;
	struct { uint32_t type; uint16_t size; struct ipv6 val, mask; } ipv6;
	struct { uint32_t type; uint16_t size; struct ports val, mask; } ports;
};

uint16_t svpi_frame_offloads(struct ibv_context *context)
{
	struct svpi_context *c = to_context(context);
	struct svpi_adapter_args q = { .adapter = c->adapter };
	struct svpi *s = to_svpi(context);
	struct svpi_frame_port r;

	if (s->about.minor < SVPI_FRAME_PORT_MINOR)
		return 0;
	if (!c->frames)
		c->frames = SVPI_FRAME_KNOWN | (svpi_call(s, SVPI_FRAME_PORT, &q, sizeof(q), &r, sizeof(r)) ? 0 : r.offloads);
	return (uint16_t)c->frames;
}

static void put_eth(struct svpi_flow_key *k, const struct eth *f)
{
	memcpy(k->dst, f->dst, 6);
	memcpy(k->src, f->src, 6);
	k->ether_type = ntohs(f->type);
	k->vlan = ntohs(f->tag);
}

static void put_ipv4(struct svpi_flow_key *k, const struct ipv4 *f)
{
	memcpy(k->src_addr, &f->src, 4);
	memcpy(k->dst_addr, &f->dst, 4);
}

static void put_ipv4_ext(struct svpi_flow_key *k, const struct ipv4_ext *f)
{
	memcpy(k->src_addr, &f->src, 4);
	memcpy(k->dst_addr, &f->dst, 4);
	k->protocol = f->protocol;
	k->class = f->tos;
	k->hops = f->ttl;
	k->ip_flags = f->flags;
}

static void put_ipv6(struct svpi_flow_key *k, const struct ipv6 *f)
{
	memcpy(k->src_addr, f->src, 16);
	memcpy(k->dst_addr, f->dst, 16);
	k->flow_label = ntohl(f->label) & 0xfffff;
	k->protocol = f->next;
	k->class = f->class;
	k->hops = f->hops;
}

static void put_ports(struct svpi_flow_key *k, const struct ports *f)
{
	k->src_port = ntohs(f->src);
	k->dst_port = ntohs(f->dst);
}

/* ADD adds the fields of one kind of specification, which must have the size of its structure. */
#define ADD(kind, put)                                        \
	do {                                                  \
		if (s->head.size != sizeof(s->kind))          \
			return EINVAL;                        \
		put(&q->value, &s->kind.val);                 \
		put(&q->mask, &s->kind.mask);                 \
	} while (0)

/* add adds a specification to a rule. Returns 0, EINVAL, or EOPNOTSUPP for one that is not known here: tunnels, inner headers, and
 * actions. */
static int add(struct svpi_create_flow *q, const union spec *s)
{
	uint8_t layer;

	switch (s->head.type) {
	case SPEC_ETH:
		ADD(eth, put_eth);
		layer = LAYER_ETH;
		break;
	case SPEC_IPV4:
		ADD(ipv4, put_ipv4);
		layer = LAYER_IPV4;
		break;
	case SPEC_IPV4_EXT:
		ADD(ipv4_ext, put_ipv4_ext);
		layer = LAYER_IPV4;
		break;
	case SPEC_IPV6:
		ADD(ipv6, put_ipv6);
		layer = LAYER_IPV6;
		break;
	case SPEC_TCP:
	case SPEC_UDP:
		ADD(ports, put_ports);
		layer = s->head.type == SPEC_TCP ? LAYER_TCP : LAYER_UDP;
		break;
	default:
		return EOPNOTSUPP;
	}
	if (q->layers & layer)
		return EINVAL;
	q->layers |= layer;
	return 0;
}

/* rule makes a rule of the specifications behind a. The length of each is looked at before what it says: they are the program's.
 * Returns 0 or an errno. */
static int rule(const struct ibv_flow_attr *a, struct svpi_create_flow *q)
{
	const uint8_t *at = (const uint8_t *)(a + 1);

	q->type = a->type;
	q->priority = a->priority;
	if (a->comp_mask || a->port != 1 || a->type > FLOW_SNIFFER)
		return EINVAL;
	if (a->flags)
		return a->flags & ~(uint32_t)(FLOW_DONT_TRAP | 1 << 2) ? EINVAL : EOPNOTSUPP;
	for (unsigned i = 0; i < a->num_of_specs; i++) {
		union spec s;
		uint16_t size;
		int error;

		memcpy(&size, at + offsetof(union spec, head.size), sizeof(size));
		if (size < sizeof(s.head) || size > sizeof(s)) {
			uint32_t type;

			memcpy(&type, at, sizeof(type));
			return type == SPEC_ETH || type == SPEC_IPV4 || type == SPEC_IPV4_EXT || type == SPEC_IPV6 || type == SPEC_TCP ||
			       type == SPEC_UDP ? EINVAL : EOPNOTSUPP;
		}
		memset(&s, 0, sizeof(s));
		memcpy(&s, at, size);
		error = add(q, &s);
		if (error)
			return error;
		at += size;
	}
	return 0;
}

struct ibv_flow *svpi_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *a)
{
	struct svpi_create_flow q = { .qp = qp->handle };
	struct ibv_flow *f = NULL;
	int error = qp->qp_type == IBV_QPT_UD || !svpi_has_flows(to_qp(qp)->svpi) ? EOPNOTSUPP /* multicast is attached to these */
		    : qp->qp_type != IBV_QPT_RAW_PACKET ? EINVAL : rule(a, &q);

	if (!error && !(f = calloc(1, sizeof(*f))))
		error = ENOMEM;
	if (!error)
		error = svpi_call(to_qp(qp)->svpi, SVPI_CREATE_FLOW, &q, sizeof(q), &f->handle, 4);
	if (error) {
		free(f);
		errno = error;
		return NULL;
	}
	f->context = qp->context;
	return f;
}

int svpi_destroy_flow(struct ibv_flow *f)
{
	int error = svpi_destroy(to_svpi(f->context), SVPI_KIND_FLOW, f->handle);

	if (!error)
		free(f);
	return error;
}
