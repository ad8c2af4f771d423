/* The life of an id. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

enum { ANY_ADAPTER = 0xffffffff };

static void release(struct id *i)
{
	home_put(i->home);
	pthread_mutex_destroy(&i->lock);
	pthread_cond_destroy(&i->news);
	free(i->request_attr);
	free(i->id.route.path_rec);
	free(i);
}

/* prepare creates the part of an id that the driver does not know. */
static struct id *prepare(struct home *h, struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			  enum ibv_qp_type type)
{
	struct id *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	pthread_mutex_init(&i->lock, NULL);
	pthread_cond_init(&i->news, NULL);
	i->home = home_join(h);
	i->id.channel = channel;
	i->id.context = context;
	i->id.ps = ps;
	i->id.qp_type = type;
	return i;
}

/* tell_type tells the driver the type of the queue pair of an id in RDMA_PS_IB, as the kernel is told: a listener hears only
 * of requests that suit it. In the other port spaces it follows from the port space. */
static int tell_type(struct id *i)
{
	struct svpi_cm_option q = { .id = i->handle, .option = OPTION_QP_TYPE };

	if (i->id.ps != RDMA_PS_IB)
		return 0;
	switch (i->id.qp_type) {
	case IBV_QPT_RC: q.value = 1; break;
	case IBV_QPT_UC: q.value = 2; break;
	case IBV_QPT_XRC_SEND: q.value = SVPI_XRC_INITIATOR; break;
	case IBV_QPT_XRC_RECV: q.value = SVPI_XRC_TARGET; break;
	default: return EOPNOTSUPP;
	}
	return svpi_ask(i, SVPI_CM_OPTION, &q, sizeof(q));
}

static int create(struct channel *c, void *context, enum rdma_port_space ps, enum ibv_qp_type type, struct rdma_cm_id **out)
{
	struct svpi_cm_create q = { .adapter = ANY_ADAPTER, .space = ps };
	struct svpi_cm_set_channel s;
	struct id *i = prepare(c->home, &c->channel, context, ps, type);
	int error;

	if (!i)
		return ENOMEM;
	if (ps == RDMA_PS_IB && i->home->svpi->about.minor < SVPI_IB_SPACE_MINOR)
		error = EOPNOTSUPP;
	else
		error = svpi_call(i->home->svpi, SVPI_CM_CREATE, &q, sizeof(q), &i->handle, sizeof(i->handle));
	if (error) {
		release(i);
		return error;
	}
	s = (struct svpi_cm_set_channel){ i->handle, c->handle };
	error = svpi_ask(i, SVPI_CM_SET_CHANNEL, &s, sizeof(s));
	if (!error)
		error = tell_type(i);
	if (!error)
		error = svpi_table_add(&i->home->ids, i->handle, i);
	if (error) {
		svpi_destroy(i->home->svpi, SVPI_KIND_CM, i->handle);
		release(i);
		return error;
	}
	*out = &i->id;
	return 0;
}

/* An id without a channel gets one of its own, and its operations become synchronous. */
int id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type,
	      struct rdma_cm_id **out)
{
	struct rdma_event_channel *own = NULL;
	int error;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB)
		return ps == RDMA_PS_IPOIB ? EOPNOTSUPP : EINVAL;
	if (!channel) {
		channel = own = rdma_create_event_channel();
		if (!own)
			return errno;
	}
	error = create(to_channel(channel), context, ps, type, out);
	if (error && own)
		rdma_destroy_event_channel(own);
	else if (own)
		to_channel(own)->owner = to_id(*out);
	return error;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	return result(id_create(channel, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC, id));
}

struct id *id_of_request(struct id *listener, const struct svpi_event *e)
{
	struct id *i = prepare(listener->home, listener->id.channel, listener->id.context, listener->id.ps, listener->id.qp_type);

	if (!i)
		return NULL;
	i->handle = e->new_id;
	i->connected = true;
	i->responder_resources = e->param.responder_resources;
	i->initiator_depth = e->param.initiator_depth;
	if (id_place(i, e->adapter) || svpi_table_add(&i->home->ids, i->handle, i)) {
		release(i);
		return NULL;
	}
	from_endpoint(&e->local, &i->id.route.addr.src_storage);
	from_endpoint(&e->remote, &i->id.route.addr.dst_storage);
	id_path(i);
	return i;
}

int id_place(struct id *i, uint32_t adapter)
{
	if (i->id.verbs && to_context(i->id.verbs)->adapter == adapter)
		return 0;
	i->id.verbs = device_context(i->home->svpi, adapter);
	if (!i->id.verbs)
		return ENODEV;
	i->id.pd = device_pd(i->id.verbs); /* programs use it without allocating one (UCX) */
	i->id.port_num = 1;
	return i->id.pd ? 0 : errno;
}

int id_learn(struct id *i)
{
	struct svpi_handle_args q = { i->handle };
	struct svpi_cm_info r;
	int error = svpi_call(i->home->svpi, SVPI_CM_QUERY, &q, sizeof(q), &r, sizeof(r));

	if (!error)
		from_endpoint(&r.local, &i->id.route.addr.src_storage);
	return error;
}

/* gid_of returns the GID of an address: in RoCE v2 the GID is the address. */
static void gid_of(const struct sockaddr_storage *a, union ibv_gid *gid)
{
	struct svpi_endpoint e;

	if (!to_endpoint((const struct sockaddr *)a, &e))
		memcpy(gid->raw, e.addr, 16);
}

void id_path(struct id *i)
{
	struct ibv_sa_path_rec *p = i->id.route.path_rec;

	if (!p)
		p = i->id.route.path_rec = calloc(1, sizeof(*p));
	if (!p)
		return;
	gid_of(&i->id.route.addr.src_storage, &p->sgid);
	gid_of(&i->id.route.addr.dst_storage, &p->dgid);
	i->id.route.addr.addr.ibaddr.sgid = p->sgid;
	i->id.route.addr.addr.ibaddr.dgid = p->dgid;
	i->id.route.addr.addr.ibaddr.pkey = p->pkey = 0xffff;
	p->hop_limit = 64;
	p->reversible = 1;
	p->numb_path = 1;
	p->mtu_selector = p->rate_selector = p->packet_life_time_selector = 2; /* exactly: IBA 15.2.5.16 */
	struct ibv_port_attr a;
	struct verbs_context *v = &to_context(i->id.verbs)->verbs;

	if (!v->query_port(i->id.verbs, 1, &a, sizeof(a)))
		p->mtu = (uint8_t)a.active_mtu;
	p->rate = 7; /* IBV_RATE_40_GBPS; Ethernet has no rate of its own */
	p->packet_life_time = 18;
	i->id.route.num_paths = 1;
}

void id_fail_qp(struct id *i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	if (i->id.qp && !is_datagram(i))
		ibv_modify_qp(i->id.qp, &a, IBV_QP_STATE);
}

/* After the driver has destroyed the id no more events come for it; those that the program already has must be
 * acknowledged. */
EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct id *i = to_id(id);
	bool own = is_sync(i);
	int error;

	groups_leave(i);
	error = svpi_destroy(i->home->svpi, SVPI_KIND_CM, i->handle);
	if (error)
		return result(error);
	svpi_table_remove(&i->home->ids, i->handle);
	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	id_acknowledged(i);
	if (own)
		rdma_destroy_event_channel(id->channel);
	else
		channel_tidy(to_channel(id->channel));
	release(i);
	return 0;
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
	switch (a->ss_family) {
	case AF_INET: return ((const struct sockaddr_in *)a)->sin_port;
	case AF_INET6: return ((const struct sockaddr_in6 *)a)->sin6_port;
	}
	return 0;
}

EXPORT uint16_t rdma_get_src_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.src_storage); }

EXPORT uint16_t rdma_get_dst_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.dst_storage); }
