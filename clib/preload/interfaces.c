/*
 * The list of network interfaces, in which libfabric looks for the addresses of devices. libfabric skips loopback
 * interfaces, since no device of the kernel has one; but the driver's adapters usually have addresses in 127.0.0.0/8,
 * which the list does not contain. So each such address is added to the list as one of an interface that is not the
 * loopback.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

#define EXPORT __attribute__((visibility("default")))
enum { MOST_ADDRESSES = 64 };

/* The added entries, in one block of memory; their netmask tells them from the C library's entries. */
struct added {
	struct ifaddrs entry;
	struct sockaddr_in address;
	char name[IFNAMSIZ];
};

static struct sockaddr_in mask;

/* take keeps the address of a GID if it is in 127.0.0.0/8. */
static void take(const union ibv_gid *g, in_addr_t to[MOST_ADDRESSES], int *n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	in_addr_t a;

	if (memcmp(g->raw, mapped, 12) || g->raw[12] != 127 || *n == MOST_ADDRESSES)
		return;
	memcpy(&a, g->raw + 12, 4);
	for (int i = 0; i < *n; i++)
		if (to[i] == a)
			return;
	to[(*n)++] = a;
}

static void take_device(struct ibv_device *d, in_addr_t to[MOST_ADDRESSES], int *n)
{
	struct ibv_context *c = svpi_verbs.open_device(d);
	struct ibv_gid_entry rows[SVPI_MOST_GIDS];
	ssize_t count;

	if (!c)
		return;
	count = svpi_verbs.query_gid_table(c, rows, SVPI_MOST_GIDS, 0, sizeof(*rows));
	for (ssize_t i = 0; i < count; i++)
		take(&rows[i].gid, to, n);
	svpi_verbs.close_device(c);
}

/* loopback_addresses returns those of the adapters; none in programs that have not loaded libibverbs. */
static int loopback_addresses(in_addr_t to[MOST_ADDRESSES])
{
	struct ibv_device **list;
	int n = 0;

	if (!svpi_library_load(false))
		return 0;
	list = svpi_verbs.get_device_list(NULL);
	for (int i = 0; list && list[i]; i++)
		take_device(list[i], to, &n);
	if (list)
		svpi_verbs.free_device_list(list);
	return n;
}

/* add appends entries for addresses to the list, with the interface name of like. */
static void add(struct ifaddrs **end, const struct ifaddrs *like, const in_addr_t *addresses, int n)
{
	struct added *a = n ? calloc((size_t)n, sizeof(*a)) : NULL;

	if (!a)
		return;
	mask.sin_family = AF_INET;
	mask.sin_addr.s_addr = htonl(IN_CLASSA_NET);
	for (int i = 0; i < n; i++) {
		a[i].address.sin_family = AF_INET;
		a[i].address.sin_addr.s_addr = addresses[i];
		strncpy(a[i].name, like->ifa_name, sizeof(a[i].name) - 1);
		a[i].entry.ifa_name = a[i].name;
		a[i].entry.ifa_flags = like->ifa_flags & ~(unsigned)IFF_LOOPBACK;
		a[i].entry.ifa_addr = (struct sockaddr *)&a[i].address;
		a[i].entry.ifa_netmask = (struct sockaddr *)&mask;
		*end = &a[i].entry;
		end = &a[i].entry.ifa_next;
	}
}

EXPORT int getifaddrs(struct ifaddrs **out)
{
	static int (*next)(struct ifaddrs **);
	const struct ifaddrs *loopback = NULL;
	struct ifaddrs **end = out;
	in_addr_t addresses[MOST_ADDRESSES];

	if (!next)
		next = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
	int failed = next(out);

	if (failed || svpi_busy)
		return failed;
	for (; *end; end = &(*end)->ifa_next)
		if ((*end)->ifa_flags & IFF_LOOPBACK)
			loopback = *end;
	if (!loopback)
		return 0;
	svpi_busy = true;
	add(end, loopback, addresses, loopback_addresses(addresses));
	svpi_busy = false;
	return 0;
}

EXPORT void freeifaddrs(struct ifaddrs *list)
{
	static void (*next)(struct ifaddrs *);
	struct ifaddrs **at = &list;

	if (!next)
		next = (void (*)(struct ifaddrs *))dlsym(RTLD_NEXT, "freeifaddrs");
	while (*at && (*at)->ifa_netmask != (struct sockaddr *)&mask)
		at = &(*at)->ifa_next;
	free(*at); /* the first added entry begins the block */
	*at = NULL;
	next(list);
}
