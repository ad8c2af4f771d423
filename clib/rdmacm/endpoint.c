/* Endpoints: ids with synchronous operations and a QP. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

enum { RESOLVE_MS = 2000 };

/* remember keeps what the QPs of requests will be created with. */
static int remember(struct id *i, struct ibv_pd *pd, const struct ibv_qp_init_attr *a)
{
	if (!a)
		return 0;
	i->request_attr = malloc(sizeof(*a));
	if (!i->request_attr)
		return ENOMEM;
	*i->request_attr = *a;
	i->request_attr->qp_type = i->id.qp_type;
	i->request_pd = pd;
	return 0;
}

static int reach(struct rdma_cm_id *id, struct rdma_addrinfo *to)
{
	if (rdma_resolve_addr(id, to->ai_src_addr, to->ai_dst_addr, RESOLVE_MS))
		return -1;
	return rdma_resolve_route(id, RESOLVE_MS);
}

static int furnish(struct rdma_cm_id *id, struct rdma_addrinfo *to, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	if (to->ai_flags & RAI_PASSIVE) {
		if (rdma_bind_addr(id, to->ai_src_addr))
			return -1;
		return result(remember(to_id(id), pd, a));
	}
	if (reach(id, to))
		return -1;
	if (!a)
		return 0;
	a->qp_type = (enum ibv_qp_type)to->ai_qp_type;
	return rdma_create_qp(id, pd, a);
}

EXPORT int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *to, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct rdma_cm_id *id;
	int error = id_create(NULL, NULL, (enum rdma_port_space)to->ai_port_space, (enum ibv_qp_type)to->ai_qp_type, &id);

	if (error)
		return result(error);
	if (furnish(id, to, pd, a)) {
		error = errno;
		rdma_destroy_id(id);
		return result(error);
	}
	*out = id;
	return 0;
}

EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* rdma_get_request waits for a request to a listening endpoint. The new id keeps the event and its parameters. */
EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct id *l = to_id(listen);
	struct rdma_cm_event *e;
	int error = 0;

	if (!is_sync(l))
		return result(EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &e))
		return -1;
	if (e->status)
		error = e->status < 0 ? -e->status : e->status;
	else if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		error = EINVAL;
	if (!error && l->request_attr) {
		struct ibv_qp_init_attr a = *l->request_attr;

		error = rdma_create_qp(e->id, l->request_pd, &a) ? errno : 0;
		if (error)
			rdma_destroy_id(e->id);
	}
	if (error) {
		rdma_ack_cm_event(e);
		return result(error);
	}
	*out = e->id;
	e->id->event = e;
	return 0;
}
