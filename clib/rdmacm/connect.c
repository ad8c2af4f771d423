/* Connections: requesting, accepting, rejecting and ending them. */
#include <string.h>

#include "id.h"

enum { MOST_RETRIES = 7 };

static uint8_t at_most(uint8_t v, int most) { return v < most ? v : (uint8_t)most; }

/* limit replaces "as many as possible" by what the device has, and refuses more than that. */
static int limit(uint8_t *v, int most)
{
	if (*v == RDMA_MAX_RESP_RES)
		*v = at_most(*v, most);
	return *v <= most ? 0 : EINVAL;
}

/* convert translates the parameters of a connection into those of the driver. */
static int convert(struct id *i, const struct rdma_conn_param *p, struct svpi_conn_param *q)
{
	struct ibv_device_attr a;
	int error = i->id.verbs ? ibv_query_device(i->id.verbs, &a) : EINVAL;

	if (error)
		return error;
	q->responder_resources = p->responder_resources;
	q->initiator_depth = p->initiator_depth;
	if (limit(&q->responder_resources, a.max_qp_rd_atom) || limit(&q->initiator_depth, a.max_qp_init_rd_atom))
		return EINVAL;
	q->flow_control = p->flow_control != 0;
	q->retry_count = at_most(p->retry_count, MOST_RETRIES);
	q->rnr_retry = at_most(p->rnr_retry_count, MOST_RETRIES);
	q->srq = p->srq != 0;
	q->qpn = i->id.qp ? i->id.qp->qp_num : p->qp_num;
	if (p->private_data_len > sizeof(q->private) || (p->private_data_len && !p->private_data))
		return EINVAL;
	if (p->private_data && p->private_data_len) {
		q->private_len = p->private_data_len;
		memcpy(q->private, p->private_data, p->private_data_len);
	}
	return 0;
}

/* moved returns the QP that the driver has to move through its states: not one for datagrams, which is ready and may
 * serve any number of ids. */
static uint32_t moved(const struct id *i) { return i->id.qp && !is_datagram(i) ? i->id.qp->handle : 0; }

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	static const struct rdma_conn_param usual = { .responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH, .retry_count = MOST_RETRIES, .rnr_retry_count = MOST_RETRIES };
	struct id *i = to_id(id);
	struct svpi_cm_connect q = { .id = i->handle, .qp = moved(i) };
	uint32_t handle;
	int error = to_endpoint(&id->route.addr.dst_addr, &q.remote);

	if (!endpoint_is_any(&i->itself))
		q.remote = i->itself;
	if (!error)
		error = convert(i, param ? param : &usual, &q.param);
	if (error)
		return result(error);
	i->active = true;
	error = svpi_call(i->home->svpi, SVPI_CM_CONNECT, &q, sizeof(q), &handle, sizeof(handle));
	return result(error ? error : id_complete(i));
}

EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	struct id *i = to_id(id);
	struct svpi_handle_args q = { i->handle };

	if (id->qp)
		return result(EINVAL); /* the answer has already done it */
	return result(svpi_ask(i, SVPI_CM_ESTABLISH, &q, sizeof(q)));
}

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct id *i = to_id(id);
	struct svpi_listen_args q = { i->handle, backlog > 0 && backlog <= 65536 ? (uint32_t)backlog : 1024 };
	int error = svpi_ask(i, SVPI_CM_LISTEN, &q, sizeof(q));

	if (!error && !rdma_get_src_port(id))
		error = id_learn(i);
	return result(error);
}

/* limit_to_request applies the limits in the peer's request, unless the device has or the program asks for less. */
static void limit_to_request(const struct id *i, struct svpi_conn_param *p)
{
	p->responder_resources = at_most(p->responder_resources, i->responder_resources);
	p->initiator_depth = at_most(p->initiator_depth, i->initiator_depth);
}

EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct id *i = to_id(id);
	struct svpi_cm_accept q = { .id = i->handle, .qp = moved(i) };
	struct rdma_conn_param p = { .responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH,
				     .flow_control = 1, .rnr_retry_count = MOST_RETRIES };
	int error;

	if (param)
		p = *param;
	error = convert(i, &p, &q.param);
	if (!error) {
		limit_to_request(i, &q.param);
		error = svpi_ask(i, SVPI_CM_ACCEPT, &q, sizeof(q));
	}
	if (error) {
		id_fail_qp(i);
		return result(error);
	}
	if (q.qp)
		id->qp->state = IBV_QPS_RTS;
	return result(is_datagram(i) ? 0 : id_complete(i));
}

static int reject(struct rdma_cm_id *id, uint32_t reason, const void *data, uint8_t len)
{
	struct id *i = to_id(id);
	struct svpi_cm_reject q = { .id = i->handle, .reason = reason };

	if (len > sizeof(q.private) || (len && !data))
		return result(EINVAL);
	q.private_len = len;
	if (len)
		memcpy(q.private, data, len);
	return result(svpi_ask(i, SVPI_CM_REJECT, &q, sizeof(q)));
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len) { return reject(id, 0, data, len); }

enum { REJECT_VENDOR_OPTION = 35 }; /* IBA 12.6.7.2: vendor option not supported */

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return reject(id, REJECT_VENDOR_OPTION, data, len);
}

/* It is not an error to disconnect if the peer has already done so. */
EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	struct id *i = to_id(id);
	struct svpi_handle_args q = { i->handle };
	int error;

	if (!i->connected && !i->active)
		return result(EINVAL);
	error = svpi_ask(i, SVPI_CM_DISCONNECT, &q, sizeof(q));
	if (error && error != EINVAL)
		return result(error);
	id_fail_qp(i);
	return result(id_complete(i));
}

EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct id *i = to_id(id);
	struct svpi_cm_notify q = { i->handle, SVPI_EVENT_COMMUNICATION_ESTABLISHED };

	return result(event == IBV_EVENT_COMM_EST ? svpi_ask(i, SVPI_CM_NOTIFY, &q, sizeof(q)) : EINVAL);
}

/* Enhanced connection establishment is specific to vendors, and this vendor has no options. Setting any is refused,
 * and no peer is reported to have any. */
EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return result(EINVAL);
	return result(EOPNOTSUPP);
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return result(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}
