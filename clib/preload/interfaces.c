/*
 * The list of network interfaces, in which libfabric looks for the addresses of devices. libfabric skips loopback
 * interfaces, since no device of the kernel has one; but the driver's adapters usually have addresses in 127.0.0.0/8,
 * which the list does not contain. So each such address is added to the list as one of an interface that is not the
 * loopback. So are link-layer addresses that the system does not know (links.h).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "links.h"

#define EXPORT __attribute__((visibility("default")))
enum { MOST_ADDRESSES = 64 };

/* The added entries, in one block of memory; their netmask tells them from the C library's entries. */
struct added {
	struct ifaddrs entry;
	union {
		struct sockaddr_in ip;
		struct { struct sockaddr_ll link; uint8_t rest[16]; }; /* addresses of 20 bytes do not fit into sockaddr_ll */
	};
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

/* like makes an entry one of the same interface as another. */
static void like(struct added *a, const struct ifaddrs *other)
{
	strncpy(a->name, other->ifa_name, sizeof(a->name) - 1);
	a->entry.ifa_name = a->name;
	a->entry.ifa_flags = other->ifa_flags & ~(unsigned)IFF_LOOPBACK;
	a->entry.ifa_addr = (struct sockaddr *)&a->ip;
	a->entry.ifa_netmask = (struct sockaddr *)&mask;
}

/* add_addresses makes entries for addresses, of the interface of another entry. */
static void add_addresses(struct added *a, const struct ifaddrs *loopback, const in_addr_t *addresses, int n)
{
	mask.sin_family = AF_INET;
	mask.sin_addr.s_addr = htonl(IN_CLASSA_NET);
	for (int i = 0; i < n; i++) {
		like(&a[i], loopback);
		a[i].ip = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = addresses[i] };
	}
}

/* bare tells whether an entry is about an interface itself, and the C library knows no link-layer address. */
static bool bare(const struct ifaddrs *e) { return !e->ifa_addr; }

/* add_links makes entries for the link-layer addresses that the system does not know. Returns their number, at most n. */
static int add_links(struct added *a, const struct ifaddrs *list, int n)
{
	struct svpi_link_address l;
	int done = 0;

	for (; list && done < n; list = list->ifa_next) {
		unsigned index = bare(list) ? if_nametoindex(list->ifa_name) : 0;

		if (!index || !svpi_link(index, &l))
			continue;
		like(&a[done], list);
		a[done].link = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_ifindex = (int)index, .sll_hatype = l.hardware,
						     .sll_halen = sizeof(l.address) };
		memcpy((char *)&a[done].link + offsetof(struct sockaddr_ll, sll_addr), l.address, sizeof(l.address));
		done++;
	}
	return done;
}

/* add appends entries to a list: n for addresses, and those of links. */
static void add(struct ifaddrs *list, const struct ifaddrs *loopback, const in_addr_t *addresses, int n)
{
	struct ifaddrs **end = &list;
	int links = 0;

	for (; *end; end = &(*end)->ifa_next)
		links += bare(*end);
	struct added *a = n + links ? calloc((size_t)(n + links), sizeof(*a)) : NULL;

	if (!a)
		return;
	add_addresses(a, loopback, addresses, n);
	n += add_links(a + n, list, links);
	if (n == 0)
		free(a);
	for (int i = 0; i < n; i++) {
		*end = &a[i].entry;
		end = &a[i].entry.ifa_next;
	}
}

EXPORT int getifaddrs(struct ifaddrs **out)
{
	static int (*next)(struct ifaddrs **);
	const struct ifaddrs *loopback = NULL;
	in_addr_t addresses[MOST_ADDRESSES];

	if (!next)
		next = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
	int failed = next(out), n = 0;

	if (failed || svpi_busy)
		return failed;
	for (const struct ifaddrs *e = *out; e; e = e->ifa_next)
		if (e->ifa_flags & IFF_LOOPBACK)
			loopback = e;
	if (loopback) {
		svpi_busy = true;
		n = loopback_addresses(addresses);
		svpi_busy = false;
	}
	if (*out)
		add(*out, loopback, addresses, n);
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
