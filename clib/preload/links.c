#define _GNU_SOURCE
#include "links.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <string.h>

static bool find(uint32_t index, struct svpi_link_address *to)
{
	struct ibv_device **list;
	bool found = false;

	if (!svpi_library_load(true))
		return false;
	list = svpi_verbs.get_device_list(NULL);
	for (int i = 0; list && list[i] && !found; i++) {
		struct ibv_context *c = svpi_verbs.open_device(list[i]);

		if (!c)
			continue;
		found = svpi_verbs.link_address_of(c, index, to);
		svpi_verbs.close_device(c);
	}
	if (list)
		svpi_verbs.free_device_list(list);
	return found;
}

bool svpi_link(uint32_t index, struct svpi_link_address *to)
{
	int saved = errno;
	bool found;

	if (svpi_busy)
		return false;
	svpi_busy = true;
	found = find(index, to);
	svpi_busy = false;
	errno = saved;
	return found;
}

/* bare tells whether a message is about an interface without an address, of no type. */
static bool bare(const struct nlmsghdr *h)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);
	int n = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*i));

	if (h->nlmsg_type != RTM_NEWLINK || n < 0 || i->ifi_type != ARPHRD_NONE)
		return false;
	for (const struct rtattr *a = IFLA_RTA(i); RTA_OK(a, n); a = RTA_NEXT(a, n))
		if (a->rta_type == IFLA_ADDRESS)
			return false;
	return true;
}

static void attach(struct nlmsghdr *h, unsigned short type, const uint8_t address[20])
{
	struct rtattr *a = (struct rtattr *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(20);
	memcpy(RTA_DATA(a), address, 20);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + (uint32_t)RTA_LENGTH(20);
}

size_t svpi_links_told(void *datagram, size_t n, size_t room)
{
	static const uint8_t none[20];
	struct svpi_link_address link;

	for (size_t at = 0, step; at + sizeof(struct nlmsghdr) <= n; at += step) {
		struct nlmsghdr *h = (struct nlmsghdr *)((char *)datagram + at);

		if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > n - at)
			return n;
		step = NLMSG_ALIGN(h->nlmsg_len);
		if (step > n - at) /* the last one need not be padded */
			step = n - at;
		if (step % NLMSG_ALIGNTO || room - n < SVPI_LINK_GROWS || !bare(h) ||
		    !svpi_link((uint32_t)((struct ifinfomsg *)NLMSG_DATA(h))->ifi_index, &link))
			continue;
		bool broadcast = memcmp(link.broadcast, none, sizeof(none)) != 0;
		size_t more = (broadcast ? 2 : 1) * RTA_LENGTH(20);

		memmove((char *)h + step + more, (char *)h + step, n - at - step);
		((struct ifinfomsg *)NLMSG_DATA(h))->ifi_type = link.hardware;
		attach(h, IFLA_ADDRESS, link.address);
		if (broadcast)
			attach(h, IFLA_BROADCAST, link.broadcast);
		step += more;
		n += more;
	}
	return n;
}
