/*
 * Datagrams of netlink about interfaces whose link-layer address the system does not know: links. They get the address; all
 * others, and what is no such datagram, stay as they are.
 */
#define _GNU_SOURCE
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../preload/links.h"

enum { ROOM = 4096, OURS = 7 };

static int failures;

#define CHECK(ok) do { if (!(ok)) { failures++; fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #ok); } } while (0)

/* The driver has one adapter, whose interface OURS has an address, and a broadcast address if it has. */
static bool has_broadcast = true;
static struct ibv_device *devices[2] = { (struct ibv_device *)&devices };

static struct ibv_device **list(int *n) { return (void)n, devices; }
static void free_list(struct ibv_device **l) { (void)l; }
static struct ibv_context *open_device(struct ibv_device *d) { return (struct ibv_context *)d; }
static int close_device(struct ibv_context *c) { return (void)c, 0; }

static bool address_of(struct ibv_context *c, uint32_t index, struct svpi_link_address *to)
{
	(void)c;
	*to = (struct svpi_link_address){ .index = index, .hardware = ARPHRD_INFINIBAND };
	memset(to->address, 0xaa, sizeof(to->address));
	memset(to->broadcast, has_broadcast ? 0xbb : 0, sizeof(to->broadcast));
	return index == OURS;
}

struct svpi_verbs svpi_verbs = { .get_device_list = list, .free_device_list = free_list, .open_device = open_device,
				 .close_device = close_device, .link_address_of = address_of };
__thread bool svpi_busy;

bool svpi_library_load(bool anyway) { return (void)anyway, true; }

/* put appends a message about an interface, with a name of n bytes and perhaps an address. Returns the new length. */
static size_t put(uint8_t *b, size_t at, uint16_t kind, unsigned short type, int index, unsigned short n, bool address)
{
	struct nlmsghdr *h = (void *)(b + at);
	struct ifinfomsg *i = NLMSG_DATA(h);
	struct rtattr *a = IFLA_RTA(i);

	memset(h, 0, NLMSG_SPACE(sizeof(*i)));
	*i = (struct ifinfomsg){ .ifi_type = type, .ifi_index = index };
	h->nlmsg_type = kind;
	a->rta_type = IFLA_IFNAME;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	memset(RTA_DATA(a), 'n', RTA_ALIGN(n));
	h->nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(*i)) + a->rta_len);
	if (address) {
		a = (void *)((uint8_t *)a + RTA_ALIGN(a->rta_len));
		a->rta_type = IFLA_ADDRESS;
		a->rta_len = RTA_LENGTH(6);
		memset(RTA_DATA(a), 0xcc, RTA_ALIGN(6));
		h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + a->rta_len;
	}
	return at + NLMSG_ALIGN(h->nlmsg_len);
}

/* addresses counts the attributes of a kind in a message, and checks their contents. */
static int addresses(const struct nlmsghdr *h, unsigned short kind, uint8_t fill)
{
	struct ifinfomsg *i = NLMSG_DATA(h);
	int n = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*i)), found = 0;

	for (struct rtattr *a = IFLA_RTA(i); RTA_OK(a, n); a = RTA_NEXT(a, n)) {
		const uint8_t *p = RTA_DATA(a);

		if (a->rta_type == kind) {
			found++;
			for (size_t k = 0; k < RTA_PAYLOAD(a); k++)
				CHECK(p[k] == fill);
		}
	}
	CHECK(n <= 3); /* all of it could be read */
	return found;
}

/* one has a datagram of three messages, the second about ours. */
static void told(bool broadcast, unsigned short name)
{
	uint8_t b[ROOM], was[ROOM];
	size_t second, third, n, got;
	const struct nlmsghdr *h;

	has_broadcast = broadcast;
	second = put(b, 0, RTM_NEWLINK, ARPHRD_NONE, OURS + 1, 4, false); /* somebody else's TUN device */
	third = put(b, second, RTM_NEWLINK, ARPHRD_NONE, OURS, name, false);
	n = put(b, third, RTM_NEWLINK, ARPHRD_ETHER, OURS, 5, true);
	memcpy(was, b, n);
	got = svpi_links_told(b, n, ROOM);
	CHECK(got == n + (broadcast ? 48 : 24) && memcmp(b, was, second) == 0);
	h = (void *)(b + second);
	CHECK(addresses(h, IFLA_ADDRESS, 0xaa) == 1 && addresses(h, IFLA_BROADCAST, 0xbb) == broadcast);
	CHECK(((struct ifinfomsg *)NLMSG_DATA(h))->ifi_type == ARPHRD_INFINIBAND && addresses(h, IFLA_IFNAME, 'n') == 1);
	CHECK(memcmp(b + second + NLMSG_ALIGN(h->nlmsg_len), was + third, n - third) == 0);
}

/* left has datagrams that stay: of other kinds, with an address, of another type, without room. */
static void left(void)
{
	static const struct { uint16_t kind; unsigned short type; bool address; size_t room; } cases[] = {
		{ RTM_DELLINK, ARPHRD_NONE, false, ROOM }, { RTM_NEWLINK, ARPHRD_NONE, true, ROOM },
		{ RTM_NEWLINK, ARPHRD_LOOPBACK, false, ROOM }, { RTM_NEWADDR, ARPHRD_NONE, false, ROOM }, { RTM_NEWLINK, ARPHRD_NONE, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t b[ROOM], was[ROOM];
		size_t n = put(b, 0, cases[i].kind, cases[i].type, OURS, 5, cases[i].address);

		memcpy(was, b, n);
		CHECK(svpi_links_told(b, n, cases[i].room ? cases[i].room : n + 47) == n && memcmp(b, was, n) == 0);
	}
}

/* hostile has datagrams whose lengths are anything: nothing beyond the room is touched, which the sanitizers see, and nothing of
 * the datagram is lost. */
static void hostile(void)
{
	for (int round = 0; round < 200000; round++) {
		uint8_t b[512];
		size_t n = 0, room;

		for (int k = rand() % 4; k >= 0; k--)
			n = put(b, n, RTM_NEWLINK, rand() % 3 ? ARPHRD_NONE : ARPHRD_ETHER, rand() % 2 ? OURS : 1,
				(unsigned short)(rand() % 12), rand() % 4 == 0);
		for (int k = rand() % 4; k > 0; k--)
			b[(size_t)rand() % n] = (uint8_t)(rand() % 3 ? rand() % 64 : rand());
		n -= (size_t)(rand() % 8);
		room = n + (size_t)(rand() % 200);

		uint8_t *exact = malloc(room);
		size_t got;

		memcpy(exact, b, n);
		got = svpi_links_told(exact, n, room);
		CHECK(got >= n && got <= room);
		free(exact);
	}
}

int main(void)
{
	for (unsigned short name = 0; name < 8; name++) {
		told(true, name);
		told(false, name);
	}
	left();
	hostile();
	if (failures == 0)
		printf("links      ok\n");
	return failures != 0;
}
