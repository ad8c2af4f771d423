/* The tables of ports: GIDs and P_Keys. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/stat.h>

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

/* rows returns how many rows the table has, most of them empty. That of an InfiniBand port has the blocks of its
 * GUIDInfo that are in use, of 8 rows each (IBA 14.2.5.5). */
static uint32_t rows(struct ibv_context *context, const struct svpi_gid *list, size_t n)
{
	uint32_t used = 1;

	if (!on_fabric(context))
		return SVPI_GID_ROWS;
	for (size_t i = 0; i < n; i++)
		if (list[i].index >= used)
			used = list[i].index + 1;
	return (used + 7) & ~7u;
}

int svpi_gid_rows(struct ibv_context *context, uint32_t *count)
{
	struct svpi_gid *list;
	size_t n;
	int error = gids_of(context, &list, &n);

	if (error)
		return error;
	*count = rows(context, list, n);
	free(list);
	return 0;
}

/* gid_at reads a row. ENODATA: it is empty. */
static int gid_at(struct ibv_context *context, uint32_t port, uint32_t index, struct svpi_gid *out)
{
	struct svpi_gid *list;
	size_t n;
	int error = port == 1 ? gids_of(context, &list, &n) : EINVAL;

	if (error)
		return error;
	error = index < rows(context, list, n) ? ENODATA : EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (list[i].index == index) {
			*out = list[i];
			error = 0;
		}
	}
	free(list);
	return error;
}

/* An empty row is a GID of zeros here. */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct svpi_gid g = { 0 };
	int error = index < 0 ? EINVAL : gid_at(context, port, (uint32_t)index, &g);

	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	memcpy(gid, g.gid, 16);
	return 0;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	struct svpi_gid g = { 0 };
	int error = gid_at(context, port, index, &g);

	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	*type = g.ro_ce == 3 ? IBV_GID_TYPE_SYSFS_ROCE_V2 : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

/* here tells whether an interface is one of this process's network namespace: in another one its name and index mean
 * something else. */
static bool is_here(uint64_t namespace)
{
	struct stat st;

	return namespace && !stat("/proc/self/ns/net", &st) && st.st_ino == namespace;
}

static bool here(const struct svpi_interface *i) { return is_here(i->namespace); }

/* interfaces_of lists the network interfaces of an adapter; none if the driver does not tell. */
static void interfaces_of(struct ibv_context *context, struct svpi_interface **list, size_t *n)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };

	if (to_svpi(context)->about.minor < SVPI_SINCE_INTERFACES ||
	    svpi_list(to_svpi(context), SVPI_INTERFACES, &q, sizeof(q), sizeof(**list), (void **)list, n)) {
		*list = NULL;
		*n = 0;
	}
}

/* index_of returns the index of the interface that has the address of a row, 0 if none has. */
static uint32_t index_of(const struct svpi_interface *list, size_t n, uint32_t row)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].row == row && here(&list[i]))
			return list[i].index;
	return 0;
}

EXPORT bool svpi_link_address_of(struct ibv_context *context, uint32_t index, struct svpi_link_address *to)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };
	struct svpi_link_address *list = NULL;
	bool found = false;
	size_t n = 0;

	if (to_svpi(context)->about.minor < SVPI_SINCE_LINKS ||
	    svpi_list(to_svpi(context), SVPI_LINK_ADDRESSES, &q, sizeof(q), sizeof(*list), (void **)&list, &n))
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		found = list[i].index == index && is_here(list[i].namespace);
		if (found)
			*to = list[i];
	}
	free(list);
	return found;
}

EXPORT bool svpi_port_interface(struct ibv_context *context, char name[16])
{
	struct svpi_interface *list;
	bool found = false;
	size_t n;

	interfaces_of(context, &list, &n);
	for (size_t i = 0; i < n && !found; i++) {
		found = list[i].row == UINT32_MAX && here(&list[i]);
		if (found)
			memcpy(name, list[i].name, 16);
	}
	free(list);
	name[15] = 0;
	return found;
}

static void entry_of(const struct svpi_gid *g, const struct svpi_interface *list, size_t n, struct ibv_gid_entry *e)
{
	memcpy(e->gid.raw, g->gid, 16);
	e->gid_index = g->index;
	e->port_num = 1;
	e->gid_type = gid_type(g);
	e->ndev_ifindex = index_of(list, n, g->index);
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	struct svpi_interface *list;
	struct ibv_gid_entry e;
	struct svpi_gid g;
	size_t n;
	int error = flags ? EINVAL : gid_at(context, port, index, &g);

	if (error) {
		errno = error;
		return error;
	}
	interfaces_of(context, &list, &n);
	entry_of(&g, list, n, &e);
	free(list);
	memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
	return 0;
}

/* The table is that of the present rows. */
EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
				    size_t size)
{
	struct svpi_interface *interfaces;
	struct svpi_gid *list;
	size_t n, count;
	int error = flags || size < sizeof(*entries) ? EINVAL : gids_of(context, &list, &n);

	if (error)
		return -error;
	if (n > max) {
		free(list);
		return -EINVAL;
	}
	interfaces_of(context, &interfaces, &count);
	memset(entries, 0, n * size);
	for (size_t i = 0; i < n; i++)
		entry_of(&list[i], interfaces, count, (struct ibv_gid_entry *)((char *)entries + i * size));
	free(interfaces);
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
