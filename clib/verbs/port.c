/* The attributes of ports. Each device has one. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "object.h"

/* fresh asks the driver for an adapter's present state. */
static int fresh(struct ibv_context *context, struct svpi_adapter_info *out)
{
	struct svpi_context *c = to_context(context);
	struct svpi_adapter_info *info;
	size_t n;
	int error = svpi_list(c->svpi, SVPI_ADAPTERS, NULL, 0, sizeof(*info), (void **)&info, &n);

	if (error)
		return error;
	error = ENODEV;
	for (size_t i = 0; i < n; i++) {
		if (info[i].index == c->adapter) {
			*out = info[i];
			error = 0;
		}
	}
	free(info);
	return error;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu m = IBV_MTU_4096;

	while (m > IBV_MTU_256 && (128u << m) > bytes)
		m--;
	return m;
}

/* speed expresses a link's rate, given in Mb/s, as lanes and lane speed: the slowest combination that carries it, as
 * Linux does for Ethernet. A link without a rate gets one lane of SDR, as in Linux, and one that is down no speed. */
static void speed(uint32_t rate, struct ibv_port_attr *a)
{
	enum { W1 = 1, W2 = 16, W4 = 2, SDR = 1, FDR10 = 8, FDR = 16, EDR = 32, HDR = 64, NDR = 128 };
	static const struct { uint32_t rate; uint8_t width, speed; } rates[] = {
		{ 1000, W1, SDR }, { 10000, W1, FDR10 }, { 20000, W2, FDR10 }, { 25000, W1, EDR }, { 40000, W4, FDR10 },
		{ 50000, W2, EDR }, { 56000, W4, FDR }, { 100000, W4, EDR }, { 200000, W4, HDR }, { 400000, W4, NDR },
	};
	size_t i = 0;

	while (i + 1 < sizeof(rates) / sizeof(*rates) && rate > rates[i].rate)
		i++;
	a->active_width = rates[i].width;
	a->active_speed = rates[i].speed;
}

int svpi_port(struct ibv_context *context, uint32_t port, struct svpi_port_info *out)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };

	return port == 1 ? svpi_call(to_svpi(context), SVPI_PORT, &q, sizeof(q), out, sizeof(*out)) : EINVAL;
}

/* lanes translates the speed of an InfiniBand port, given as Mb/s of a lane, into the numbers of verbs. */
static void lanes(const struct svpi_port_info *p, struct ibv_port_attr *a)
{
	static const struct { uint32_t rate; uint8_t speed; uint32_t extended; } speeds[] = {
		{ 2500, 1, 1 }, { 5000, 2, 2 }, { 10000, 4, 4 }, { 10312, 8, 8 }, { 14062, 16, 16 }, { 25781, 32, 32 },
		{ 53125, 64, 64 }, { 106250, 128, 128 }, { 212500, 0, 256 },
	};

	a->active_width = p->width;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++) {
		if (p->lane >= speeds[i].rate)
			a->active_speed = speeds[i].speed;
	}
}

/* of_fabric fills in the attributes that only InfiniBand ports have. */
static int of_fabric(struct ibv_context *context, struct ibv_port_attr *a)
{
	struct svpi_port_info p;
	int error = svpi_port(context, 1, &p);

	if (error)
		return error;
	a->state = p.state;
	a->phys_state = p.physical;
	a->max_mtu = mtu_of(p.max_mtu);
	a->port_cap_flags = p.capabilities;
	a->pkey_tbl_len = (uint16_t)p.p_key_count;
	a->lid = p.lid;
	a->lmc = p.lmc;
	a->sm_lid = p.smlid;
	a->sm_sl = p.smsl;
	a->subnet_timeout = p.subnet_timeout;
	a->link_layer = IBV_LINK_LAYER_INFINIBAND;
	a->flags = 0;
	lanes(&p, a);
	return 0;
}

int svpi_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out, size_t size)
{
	struct svpi_adapter_info i;
	struct ibv_port_attr a;
	uint32_t gids;
	int error = port == 1 ? fresh(context, &i) : EINVAL;

	if (!error)
		error = svpi_gid_rows(context, &gids);
	if (error)
		return error;
	memset(&a, 0, sizeof(a));
	a.gid_tbl_len = (int)gids;
	a.state = i.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	a.phys_state = i.up ? 5 : 3; /* LinkUp, Disabled: IBA 14.2.5.6 */
	a.max_mtu = IBV_MTU_4096;
	a.active_mtu = mtu_of(i.active_mtu);
	a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	a.max_msg_sz = i.max_message > UINT32_MAX ? UINT32_MAX : (uint32_t)i.max_message;
	a.pkey_tbl_len = 1;
	a.max_vl_num = 1;
	speed(i.line_rate, &a);
	if (!i.up)
		a.active_speed = 0;
	a.link_layer = IBV_LINK_LAYER_ETHERNET;
	a.flags = IBV_QPF_GRH_REQUIRED;
	if (on_fabric(context) && (error = of_fabric(context, &a)))
		return error;
	memset(out, 0, size);
	memcpy(out, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* Programs compiled before verbs_context had query_port have a structure that ends before port_cap_flags2. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
	return svpi_query_port(context, port, out, offsetof(struct ibv_port_attr, port_cap_flags2));
}
