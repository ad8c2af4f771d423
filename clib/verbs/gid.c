/* The tables of ports: GIDs and P_Keys. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>

#include "object.h"

static int gids_of(struct ibv_context *context, struct svpi_gid **list, size_t *n)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };

	return svpi_list(to_svpi(context), SVPI_GIDS, &q, sizeof(q), sizeof(**list), (void **)list, n);
}

static uint32_t gid_type(const struct svpi_gid *g)
{
	return g->ro_ce == 4 ? IBV_GID_TYPE_IB : g->ro_ce == 3 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

static int gid_at(struct ibv_context *context, uint32_t port, uint32_t index, struct svpi_gid *out)
{
	struct svpi_gid *list;
	size_t n;
	int error = port == 1 ? gids_of(context, &list, &n) : EINVAL;

	if (error)
		return error;
	error = ENODATA;
	for (size_t i = 0; i < n; i++) {
		if (list[i].index == index) {
			*out = list[i];
			error = 0;
		}
	}
	free(list);
	return error;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct svpi_gid g;
	int error = index < 0 ? EINVAL : gid_at(context, port, (uint32_t)index, &g);

	if (error) {
		errno = error;
		return -1;
	}
	memcpy(gid, g.gid, 16);
	return 0;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	struct svpi_gid g;
	int error = gid_at(context, port, index, &g);

	if (error) {
		errno = error;
		return -1;
	}
	*type = g.ro_ce == 3 ? IBV_GID_TYPE_SYSFS_ROCE_V2 : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

static void entry_of(const struct svpi_gid *g, struct ibv_gid_entry *e)
{
	memcpy(e->gid.raw, g->gid, 16);
	e->gid_index = g->index;
	e->port_num = 1;
	e->gid_type = gid_type(g);
	e->ndev_ifindex = 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	struct ibv_gid_entry e;
	struct svpi_gid g;
	int error = flags ? EINVAL : gid_at(context, port, index, &g);

	if (error)
		return error;
	entry_of(&g, &e);
	memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
				    size_t size)
{
	struct svpi_gid *list;
	size_t n;
	int error = flags || size < sizeof(*entries) ? EINVAL : gids_of(context, &list, &n);

	if (error)
		return -error;
	if (n > max) {
		free(list);
		return -EINVAL;
	}
	memset(entries, 0, n * size);
	for (size_t i = 0; i < n; i++)
		entry_of(&list[i], (struct ibv_gid_entry *)((char *)entries + i * size));
	free(list);
	return (ssize_t)n;
}

/* pkeys reads the P_Key table. Over Ethernet it has one entry: full membership of the default partition. */
static int pkeys(struct ibv_context *context, uint8_t port, struct svpi_port_info *p)
{
	if (on_fabric(context))
		return svpi_port(context, port, p);
	p->p_key_count = 1;
	p->p_keys[0] = 0xffff;
	return port == 1 ? 0 : EINVAL;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey)
{
	struct svpi_port_info p;
	int error = pkeys(context, port, &p);

	if (!error && (index < 0 || (uint32_t)index >= p.p_key_count))
		error = EINVAL;
	if (error) {
		errno = error;
		return -1;
	}
	*pkey = htons(p.p_keys[index]);
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t pkey)
{
	struct svpi_port_info p;
	int error = pkeys(context, port, &p), limited = -1;

	for (uint32_t i = 0; !error && i < p.p_key_count; i++) {
		if ((p.p_keys[i] & 0x7fff) != (ntohs(pkey) & 0x7fff))
			continue;
		if (p.p_keys[i] & 0x8000)
			return (int)i; /* full membership takes precedence, as in Linux */
		if (limited < 0)
			limited = (int)i;
	}
	if (limited < 0)
		errno = error ? error : EINVAL;
	return limited;
}
