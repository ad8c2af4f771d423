/* Address handles and multicast. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>

#include "object.h"

enum { PATH_GLOBAL = 0x80 };

int svpi_route(struct ibv_context *context, const struct ibv_ah_attr *a, struct svpi_address_vector *v)
{
	memset(v, 0, sizeof(*v));
	v->sl = a->sl & 7;
	if (svpi_has_static_rates(to_svpi(context)) && ibv_rate_to_mbps(a->static_rate) > 0)
		v->static_rate = a->static_rate; /* of others there is nothing to keep, as with a network card */
	if (on_fabric(context)) {
		v->lid = a->dlid;
		v->sl = a->sl & 15;
		v->path = (a->src_path_bits & 0x7f) | (a->is_global ? PATH_GLOBAL : 0);
		if (!a->is_global)
			return 0;
	} else if (!a->is_global) {
		return EINVAL; /* RoCE has global addresses only */
	}
	memcpy(v->addr, a->grh.dgid.raw, 16);
	v->src_index = a->grh.sgid_index;
	v->traffic_class = a->grh.traffic_class;
	v->hop_limit = a->grh.hop_limit;
	v->flow_label = a->grh.flow_label & 0xfffff;
	return 0;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct svpi_ah *a = calloc(1, sizeof(*a));
	struct svpi_create_ah q = { .pd = pd->handle };
	int error = a ? svpi_route(pd->context, attr, &q.av) : ENOMEM;

	if (!error)
		error = svpi_call(to_svpi(pd->context), SVPI_CREATE_AH, &q, sizeof(q), &a->ah.handle, 4);
	if (error) {
		free(a);
		errno = error;
		return NULL;
	}
	a->ah.context = pd->context;
	a->ah.pd = pd;
	a->attr = *attr;
	return &a->ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	int error = svpi_destroy(to_svpi(ah->context), SVPI_KIND_AH, ah->handle);

	if (!error)
		free(ah);
	return error;
}

/* own_index finds the entry of the GID table to which a message was addressed: the GID, and the RoCE version of the
 * packet. */
static uint8_t own_index(struct ibv_context *context, const uint8_t gid[16], bool v2)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };
	struct svpi_gid *list;
	size_t n;
	int found = -1;

	if (svpi_list(to_svpi(context), SVPI_GIDS, &q, sizeof(q), sizeof(*list), (void **)&list, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (memcmp(list[i].gid, gid, 16))
			continue;
		if ((list[i].ro_ce == 3) == v2) {
			found = (int)list[i].index;
			break;
		}
		if (found < 0)
			found = (int)list[i].index;
	}
	free(list);
	return found < 0 ? 0 : (uint8_t)found;
}

/* The first 40 bytes of a UD receive are a GRH, or for RoCE v2 over IPv4 20 unused bytes and an IPv4 header (RoCE v2
 * annex, A17.4.5.1). */
EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
			       struct ibv_ah_attr *attr)
{
	const uint8_t *ip = (const uint8_t *)grh + 20;
	uint8_t dst[16];
	bool v2;

	memset(attr, 0, sizeof(*attr));
	attr->sl = wc->wc_flags & IBV_WC_GRH ? 0 : wc->sl; /* with a GRH, sl contains the type of header */
	attr->port_num = port;
	if (on_fabric(context)) {
		attr->sl = wc->sl;
		attr->dlid = wc->slid;
		attr->src_path_bits = wc->dlid_path_bits;
	}
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	attr->grh.hop_limit = 0xff;
	if ((ip[0] >> 4) == 4 && (((const uint8_t *)grh)[0] >> 4) != 6) {
		static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

		memcpy(attr->grh.dgid.raw, mapped, 12);
		memcpy(attr->grh.dgid.raw + 12, ip + 12, 4);
		memcpy(dst, mapped, 12);
		memcpy(dst + 12, ip + 16, 4);
		attr->grh.traffic_class = ip[1];
		v2 = true;
	} else {
		uint32_t word = ntohl(grh->version_tclass_flow);

		attr->grh.dgid = grh->sgid;
		memcpy(dst, grh->dgid.raw, 16);
		attr->grh.traffic_class = (uint8_t)(word >> 20);
		attr->grh.flow_label = word & 0xfffff;
		v2 = grh->next_hdr == IPPROTO_UDP;
	}
	attr->grh.sgid_index = own_index(context, dst, v2);
	return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid)
{
	(void)context, (void)attr;
	memset(mac, 0, 6); /* the link routes by IP address */
	*vid = 0xffff;
	return 0;
}

static int multicast(struct ibv_qp *qp, const union ibv_gid *gid, enum svpi_op op)
{
	struct svpi_multicast_args q = { .qp = qp->handle };

	memcpy(q.group, gid->raw, 16);
	return svpi_call(to_svpi(qp->context), op, &q, sizeof(q), NULL, 0);
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return multicast(qp, gid, SVPI_ATTACH_MULTICAST);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return multicast(qp, gid, SVPI_DETACH_MULTICAST);
}
