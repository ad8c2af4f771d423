/* The GID table: its rows, those in use and the empty ones, and the network interfaces that have their addresses. */
#include "bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

static bool is_empty(const union ibv_gid *g)
{
	static const union ibv_gid none;

	return !memcmp(g, &none, sizeof(none));
}

/* holds tells whether an interface has an IPv4 address, as the loopback interface has all of 127.0.0.0/8. */
static bool holds(const char *name, const uint8_t addr[4])
{
	struct ifaddrs *all;
	bool found = false;

	MUST(getifaddrs(&all) == 0);
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (strcmp(i->ifa_name, name) || !i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		found = found || !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, addr, 4) ||
			(addr[0] == 127 && i->ifa_flags & IFF_LOOPBACK);
	}
	freeifaddrs(all);
	return found;
}

/* row compares what the ways to read a row say. Returns whether it is in use. */
static bool row(struct ibv_context *ctx, uint32_t index, const struct ibv_gid_entry *listed)
{
	struct ibv_gid_entry e;
	union ibv_gid g;
	int error = ibv_query_gid_ex(ctx, 1, index, &e, 0);
	char name[IF_NAMESIZE];

	CHECK(ibv_query_gid(ctx, 1, (int)index, &g) == 0, ": row %u", index);
	if (!listed) {
		CHECK(error == ENODATA && is_empty(&g), ": row %u, error %d", index, error);
		return false;
	}
	CHECK(error == 0 && !memcmp(&e, listed, sizeof(e)), ": row %u, error %d", index, error);
	CHECK(!memcmp(&g, &e.gid, sizeof(g)) && e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.port_num == 1, ": row %u", index);
	CHECK(if_indextoname(e.ndev_ifindex, name) && holds(name, e.gid.raw + 12), ": row %u, interface %u", index, e.ndev_ifindex);
	return true;
}

void test_gids(void)
{
	struct ibv_gid_entry list[128], e;
	struct ibv_port_attr port;
	union ibv_gid g;
	struct end a;
	ssize_t n;
	int used = 0;

	open_end(&a, 0);
	MUST(ibv_query_port(a.ctx, 1, &port) == 0);
	CHECK(port.gid_tbl_len == 128, ": %d", port.gid_tbl_len);
	n = ibv_query_gid_table(a.ctx, list, 128, 0);
	MUST(n > 0);
	for (uint32_t i = 0; i < (uint32_t)port.gid_tbl_len; i++) {
		const struct ibv_gid_entry *listed = NULL;

		for (ssize_t k = 0; k < n; k++)
			if (list[k].gid_index == i)
				listed = &list[k];
		used += row(a.ctx, i, listed);
	}
	CHECK(used == n, ": %d rows, %zd listed", used, n);
	CHECK(ibv_query_gid_table(a.ctx, list, 0, 0) == -EINVAL, ".");
	CHECK(ibv_query_gid_table(a.ctx, list, 128, 1) == -EINVAL, ".");
	CHECK(ibv_query_gid_ex(a.ctx, 1, 0, &e, 1) == EINVAL && ibv_query_gid_ex(a.ctx, 2, 0, &e, 0) == EINVAL, ".");
	CHECK(ibv_query_gid_ex(a.ctx, 1, 128, &e, 0) == EINVAL && ibv_query_gid(a.ctx, 1, 128, &g) == -1 && errno == EINVAL, ".");
	close_end(&a);
}
