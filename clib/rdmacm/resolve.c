/* Addresses: binding and resolving. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

/* keep records to what an id is bound. If it is bound to a port only, it has no device. */
static int keep(struct id *i, const struct svpi_endpoint *e, sa_family_t family)
{
	struct svpi_handle_args q = { i->handle };
	struct svpi_cm_info r;
	int error;

	from_endpoint(e, &i->id.route.addr.src_storage);
	if (endpoint_is_any(e)) {
		struct sockaddr_storage *a = &i->id.route.addr.src_storage;

		if (a->ss_family != family && family == AF_INET) { /* :: stands for both families */
			uint16_t port = ((struct sockaddr_in6 *)a)->sin6_port;

			memset(a, 0, sizeof(*a));
			((struct sockaddr_in *)a)->sin_port = port;
			a->ss_family = AF_INET;
		}
		return 0;
	}
	error = svpi_call(i->home->svpi, SVPI_CM_QUERY, &q, sizeof(q), &r, sizeof(r));
	return error ? error : id_place(i, r.adapter);
}

/* itself finds the adapter by which a program reaches itself: the id's, else the first one whose port is up and has an
 * address. False: there is none. */
static bool itself(struct id *i, struct svpi_adapter_info *out)
{
	static const uint8_t none[16];
	struct svpi_adapter_info *all;
	bool found = false;
	size_t n;

	if (svpi_list(i->home->svpi, SVPI_ADAPTERS, NULL, 0, sizeof(*all), (void **)&all, &n))
		return false;
	for (size_t k = 0; k < n && !found; k++) {
		found = all[k].up && memcmp(all[k].addr, none, 16) &&
			(!i->id.verbs || to_context(i->id.verbs)->adapter == all[k].index);
		if (found)
			*out = all[k];
	}
	free(all);
	return found;
}

/* bind_localhost binds a loopback address as if it were any address. Linux does so too, because none of its devices
 * has one. The id shows the address to which it was bound. */
static int bind_localhost(struct id *i, struct svpi_bind_args *q)
{
	struct svpi_endpoint local = q->local, r;
	int error;

	endpoint_make_any(&q->local);
	error = svpi_call(i->home->svpi, SVPI_CM_BIND, q, sizeof(*q), &r, sizeof(r));
	local.port = r.port;
	if (!error)
		from_endpoint(&local, &i->id.route.addr.src_storage);
	return error;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct id *i = to_id(id);
	struct svpi_bind_args q = { .id = i->handle };
	struct svpi_endpoint r;
	int error = addr ? to_endpoint(addr, &q.local) : EINVAL;

	if (error)
		return result(error);
	error = svpi_call(i->home->svpi, SVPI_CM_BIND, &q, sizeof(q), &r, sizeof(r));
	if (error == EADDRNOTAVAIL && endpoint_is_localhost(&q.local))
		return result(bind_localhost(i, &q));
	return result(error ? error : keep(i, &r, addr->sa_family));
}

/* is_own tells whether an adapter has an address. */
static bool is_own(struct id *i, const struct svpi_endpoint *e)
{
	struct svpi *s = i->home->svpi;
	struct svpi_adapter_info *all;
	bool found = false;
	size_t n;

	if (svpi_list(s, SVPI_ADAPTERS, NULL, 0, sizeof(*all), (void **)&all, &n))
		return false;
	for (size_t k = 0; k < n && !found; k++) {
		struct svpi_adapter_args q = { all[k].index };
		struct svpi_gid *gids;
		size_t count;

		if (svpi_list(s, SVPI_GIDS, &q, sizeof(q), sizeof(*gids), (void **)&gids, &count))
			continue;
		for (size_t g = 0; g < count; g++)
			found = found || !memcmp(gids[g].gid, e->addr, 16);
		free(gids);
	}
	free(all);
	return found;
}

/* resolve_localhost replaces a loopback address that no adapter has by that of the adapter by which a program reaches
 * itself, as Linux does. */
static void resolve_localhost(struct id *i, struct svpi_cm_resolve_addr *q)
{
	struct svpi_adapter_info a;

	if (is_own(i, &q->remote) || !itself(i, &a))
		return;
	if (endpoint_is_localhost(&q->local))
		endpoint_make_any(&q->local);
	memcpy(q->remote.addr, a.addr, 16);
	i->itself = q->remote;
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct id *i = to_id(id);
	struct svpi_cm_resolve_addr q = { .id = i->handle, .timeout = timeout_ms > 0 ? (uint32_t)timeout_ms : 0 };
	int error = dst ? to_endpoint(dst, &q.remote) : EINVAL;

	if (!error && src)
		error = to_endpoint(src, &q.local);
	if (error)
		return result(error);
	from_endpoint(&q.remote, &i->id.route.addr.dst_storage);
	memset(&i->itself, 0, sizeof(i->itself));
	if (endpoint_is_localhost(&q.remote))
		resolve_localhost(i, &q);
	error = svpi_ask(i, SVPI_CM_RESOLVE_ADDR, &q, sizeof(q));
	return result(error ? error : id_complete(i));
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct id *i = to_id(id);
	struct svpi_cm_resolve_route q = { i->handle, timeout_ms > 0 ? (uint32_t)timeout_ms : 0 };
	int error = svpi_ask(i, SVPI_CM_RESOLVE_ROUTE, &q, sizeof(q));

	return result(error ? error : id_complete(i));
}

/* address_attr sets how datagrams from the id reach an address: through the entry of the GID table for the id's own
 * address. */
void address_attr(struct id *i, const uint8_t addr[16], struct ibv_ah_attr *a)
{
	struct svpi_adapter_args q = { to_context(i->id.verbs)->adapter };
	struct svpi_endpoint local;
	struct svpi_gid *gids;
	size_t n;

	memset(a, 0, sizeof(*a));
	a->is_global = 1;
	a->port_num = 1;
	a->grh.hop_limit = 64;
	memcpy(a->grh.dgid.raw, addr, 16);
	if (to_endpoint(&i->id.route.addr.src_addr, &local) ||
	    svpi_list(i->home->svpi, SVPI_GIDS, &q, sizeof(q), sizeof(*gids), (void **)&gids, &n))
		return;
	for (size_t k = 0; k < n; k++) {
		if (gids[k].ro_ce == 3 && !memcmp(gids[k].gid, local.addr, 16)) {
			a->grh.sgid_index = (uint8_t)gids[k].index;
			break;
		}
	}
	free(gids);
}
