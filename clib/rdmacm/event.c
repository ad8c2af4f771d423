#include "event.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event < sizeof(names) / sizeof(*names) ? names[event] : "UNKNOWN EVENT";
}

/* The events of librdmacm for those of the driver. */
static const struct { uint8_t known; enum rdma_cm_event_type type; } kinds[] = {
	[SVPI_EVENT_CONNECT_REQUEST] = { 1, RDMA_CM_EVENT_CONNECT_REQUEST },
	[SVPI_EVENT_CONNECT_RESPONSE] = { 1, RDMA_CM_EVENT_CONNECT_RESPONSE },
	[SVPI_EVENT_ESTABLISHED] = { 1, RDMA_CM_EVENT_ESTABLISHED },
	[SVPI_EVENT_REJECTED] = { 1, RDMA_CM_EVENT_REJECTED },
	[SVPI_EVENT_UNREACHABLE] = { 1, RDMA_CM_EVENT_UNREACHABLE },
	[SVPI_EVENT_CONNECT_ERROR] = { 1, RDMA_CM_EVENT_CONNECT_ERROR },
	[SVPI_EVENT_DISCONNECTED] = { 1, RDMA_CM_EVENT_DISCONNECTED },
	[SVPI_EVENT_TIMEWAIT_EXIT] = { 1, RDMA_CM_EVENT_TIMEWAIT_EXIT },
	[SVPI_EVENT_ADDR_CHANGE] = { 1, RDMA_CM_EVENT_ADDR_CHANGE },
	[SVPI_EVENT_DEVICE_REMOVAL] = { 1, RDMA_CM_EVENT_DEVICE_REMOVAL },
	[SVPI_EVENT_MULTICAST_JOINED] = { 1, RDMA_CM_EVENT_MULTICAST_JOIN },
	[SVPI_EVENT_MULTICAST_ERROR] = { 1, RDMA_CM_EVENT_MULTICAST_ERROR },
	[SVPI_EVENT_ADDRESS_RESOLVED] = { 1, RDMA_CM_EVENT_ADDR_RESOLVED },
	[SVPI_EVENT_ADDRESS_ERROR] = { 1, RDMA_CM_EVENT_ADDR_ERROR },
	[SVPI_EVENT_ROUTE_RESOLVED] = { 1, RDMA_CM_EVENT_ROUTE_RESOLVED },
	[SVPI_EVENT_ROUTE_ERROR] = { 1, RDMA_CM_EVENT_ROUTE_ERROR },
};

/* A handler changes e, and the id it concerns, according to an event; false: it does not concern the program. */
typedef bool handler(struct id *, const struct svpi_event *, struct event *e);

static void connection_param(const struct svpi_event *from, struct event *e)
{
	struct rdma_conn_param *p = &e->event.param.conn;

	p->responder_resources = from->param.responder_resources;
	p->initiator_depth = from->param.initiator_depth;
	p->flow_control = from->param.flow_control;
	p->retry_count = from->param.retry_count;
	p->rnr_retry_count = from->param.rnr_retry;
	p->srq = from->param.srq;
	p->qp_num = from->param.qpn;
	p->private_data_len = from->param.private_len;
	p->private_data = p->private_data_len ? e->private_data : NULL;
}

static void datagram_param(struct id *i, const struct svpi_event *from, struct event *e)
{
	struct rdma_ud_param *p = &e->event.param.ud;

	p->qp_num = from->param.qpn;
	p->qkey = from->param.q_key;
	p->private_data_len = from->param.private_len;
	p->private_data = p->private_data_len ? e->private_data : NULL;
	if (!from->lid) {
		address_attr(i, from->remote.addr, &p->ah_attr);
		return;
	}
	p->ah_attr.port_num = 1; /* InfiniBand: the driver knows the route */
	p->ah_attr.dlid = from->lid;
	p->ah_attr.sl = from->sl;
	p->ah_attr.src_path_bits = from->path & 0x7f;
	p->ah_attr.is_global = from->path & 0x80 ? 1 : 0;
	if (p->ah_attr.is_global) /* the group's GID */
		memcpy(p->ah_attr.grh.dgid.raw, from->local.addr, 16);
}

static bool address_resolved(struct id *i, const struct svpi_event *from, struct event *e)
{
	if (id_place(i, from->adapter)) {
		e->event.event = RDMA_CM_EVENT_ADDR_ERROR;
		e->event.status = -ENODEV;
		return true;
	}
	from_endpoint(&from->remote, &i->id.route.addr.src_storage);
	return true;
}

enum { PATH_RECORD = 64 };

/* path_of_fabric fills in an InfiniBand path from a PathRecord in wire format (IBA 15.2.5.16). */
static void path_of_fabric(struct id *i, const uint8_t *r)
{
	struct ibv_sa_path_rec *p = i->id.route.path_rec;

	memcpy(p->dgid.raw, r + 8, 16);
	memcpy(p->sgid.raw, r + 24, 16);
	memcpy(&p->dlid, r + 40, 2);
	memcpy(&p->slid, r + 42, 2);
	memcpy(&p->flow_label, (const uint8_t[4]){ 0, r[44] & 15, r[45], r[46] }, 4);
	p->hop_limit = r[47];
	p->traffic_class = r[48];
	p->reversible = r[49] >> 7;
	p->numb_path = r[49] & 127;
	memcpy(&p->pkey, r + 50, 2);
	p->sl = r[53] & 15;
	p->mtu_selector = r[54] >> 6;
	p->mtu = r[54] & 63;
	p->rate_selector = r[55] >> 6;
	p->rate = r[55] & 63;
	p->packet_life_time_selector = r[56] >> 6;
	p->packet_life_time = r[56] & 63;
	p->preference = r[57];
	i->id.route.addr.addr.ibaddr = (struct rdma_ib_addr){ p->sgid, p->dgid, p->pkey };
}

static bool route_resolved(struct id *i, const struct svpi_event *from, struct event *e)
{
	(void)e;
	id_path(i);
	if (from->param.private_len >= PATH_RECORD && i->id.route.path_rec)
		path_of_fabric(i, from->param.private);
	return true;
}

static bool no_address(struct id *i, const struct svpi_event *from, struct event *e)
{
	(void)i;
	e->event.status = -svpi_errno(from->status);
	return true;
}

/* answered: if the QP is the id's, the RTU is sent now and the connection is ready; if the program manages its own
 * QP, it has to call rdma_establish. Datagrams need neither. */
static bool answered(struct id *i, const struct svpi_event *from, struct event *e)
{
	struct svpi_handle_args q = { i->handle };
	int error;

	i->connected = true;
	if (is_datagram(i)) {
		e->event.event = RDMA_CM_EVENT_ESTABLISHED;
		datagram_param(i, from, e);
		return true;
	}
	connection_param(from, e);
	if (!i->id.qp)
		return true;
	i->id.qp->state = IBV_QPS_RTS;
	error = svpi_ask(i, SVPI_CM_ESTABLISH, &q, sizeof(q));
	e->event.event = error ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	e->event.status = -error;
	return true;
}

static bool established(struct id *i, const struct svpi_event *from, struct event *e)
{
	(void)i;
	connection_param(from, e);
	return true;
}

static bool rejected(struct id *i, const struct svpi_event *from, struct event *e)
{
	e->event.status = (int)from->status;
	if (is_datagram(i))
		datagram_param(i, from, e);
	else
		connection_param(from, e);
	id_fail_qp(i);
	return true;
}

static bool unreachable(struct id *i, const struct svpi_event *from, struct event *e)
{
	e->event.status = -svpi_errno(from->status);
	id_fail_qp(i);
	return true;
}

static bool failed(struct id *i, const struct svpi_event *from, struct event *e)
{
	(void)from; /* whether a REJ or nothing came, the peer gave up */
	e->event.status = -ECONNABORTED;
	id_fail_qp(i);
	return true;
}

static bool joined(struct id *i, const struct svpi_event *from, struct event *e)
{
	struct group *g = group_find(i, from->remote.addr);

	if (!g)
		return false; /* the program has left the group */
	datagram_param(i, from, e);
	e->event.param.ud.private_data = g->context;
	if (e->event.event == RDMA_CM_EVENT_MULTICAST_ERROR)
		e->event.status = -svpi_errno(from->status);
	return true;
}

/* disconnected: if the driver manages the QP, it has already moved it to the error state. If the peer did not answer,
 * the status says so, as the kernel's does. */
static bool disconnected(struct id *i, const struct svpi_event *from, struct event *e)
{
	connection_param(from, e);
	if (from->status)
		e->event.status = -svpi_errno(from->status);
	if (i->id.qp)
		i->id.qp->state = IBV_QPS_ERR;
	return true;
}

static handler *const handlers[] = {
	[SVPI_EVENT_CONNECT_RESPONSE] = answered,
	[SVPI_EVENT_ESTABLISHED] = established,
	[SVPI_EVENT_REJECTED] = rejected,
	[SVPI_EVENT_UNREACHABLE] = unreachable,
	[SVPI_EVENT_CONNECT_ERROR] = failed,
	[SVPI_EVENT_DISCONNECTED] = disconnected,
	[SVPI_EVENT_MULTICAST_JOINED] = joined,
	[SVPI_EVENT_MULTICAST_ERROR] = joined,
	[SVPI_EVENT_ADDRESS_RESOLVED] = address_resolved,
	[SVPI_EVENT_ADDRESS_ERROR] = no_address,
	[SVPI_EVENT_ROUTE_RESOLVED] = route_resolved,
	[SVPI_EVENT_ROUTE_ERROR] = no_address,
	[SVPI_EVENT_ROUTE_ERROR + 1] = NULL,
};

/* requested gives a request an id of its own. The event is counted for the listener, so that destroying the listener
 * waits for its acknowledgement. */
static bool requested(struct id *listener, const struct svpi_event *from, struct event *e)
{
	struct id *i = id_of_request(listener, from);

	if (!i) { /* the peer is told that it was not accepted */
		svpi_destroy(listener->home->svpi, SVPI_KIND_CM, from->new_id);
		return false;
	}
	e->event.id = &i->id;
	e->event.listen_id = &listener->id;
	if (is_datagram(i))
		datagram_param(i, from, e);
	else
		connection_param(from, e);
	if (is_sync(listener) && rdma_migrate_id(&i->id, NULL)) {
		rdma_destroy_id(&i->id);
		return false;
	}
	return true;
}

bool event_is_idle(struct channel *c, const struct svpi_event *e)
{
	struct id *i;

	if (e->type >= sizeof(kinds) / sizeof(*kinds) || !kinds[e->type].known)
		return true;
	i = svpi_table_count(&c->home->ids, e->object, offsetof(struct id, got));
	if (i)
		id_acknowledge(i);
	return !i;
}

int event_take(struct channel *c, const struct svpi_event *from, struct rdma_cm_event **out)
{
	struct event *e;
	struct id *i;
	bool told = true;

	*out = NULL;
	if (from->type >= sizeof(kinds) / sizeof(*kinds) || !kinds[from->type].known)
		return 0; /* event of a later version */
	i = svpi_table_count(&c->home->ids, from->object, offsetof(struct id, got));
	if (!i) { /* the id has been destroyed */
		if (from->new_id)
			svpi_destroy(c->home->svpi, SVPI_KIND_CM, from->new_id);
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		id_acknowledge(i);
		return ENOMEM;
	}
	e->counted = i;
	e->event.id = &i->id;
	e->event.event = kinds[from->type].type;
	memcpy(e->private_data, from->param.private, sizeof(e->private_data));
	if (from->type == SVPI_EVENT_CONNECT_REQUEST)
		told = requested(i, from, e);
	else if (handlers[from->type])
		told = handlers[from->type](i, from, e);
	if (!told) {
		free(e);
		id_acknowledge(i);
		return 0;
	}
	*out = &e->event;
	return 0;
}
