/* Conversion between socket addresses and the driver's endpoints, which hold IPv4 addresses in IPv6 form. */
#include <arpa/inet.h>
#include <string.h>

#include "id.h"

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

int to_endpoint(const struct sockaddr *a, struct svpi_endpoint *e)
{
	const struct sockaddr_in *four = (const void *)a;
	const struct sockaddr_in6 *six = (const void *)a;

	memset(e, 0, sizeof(*e));
	switch (a->sa_family) {
	case AF_INET:
		memcpy(e->addr, mapped, 12);
		memcpy(e->addr + 12, &four->sin_addr, 4);
		e->port = ntohs(four->sin_port);
		return 0;
	case AF_INET6:
		memcpy(e->addr, &six->sin6_addr, 16);
		e->port = ntohs(six->sin6_port);
		return 0;
	}
	return EAFNOSUPPORT; /* including AF_IB: the adapters have IP addresses */
}

void from_endpoint(const struct svpi_endpoint *e, struct sockaddr_storage *a)
{
	struct sockaddr_in *four = (void *)a;
	struct sockaddr_in6 *six = (void *)a;

	memset(a, 0, sizeof(*a));
	if (!memcmp(e->addr, mapped, 12)) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, e->addr + 12, 4);
		four->sin_port = htons(e->port);
		return;
	}
	six->sin6_family = AF_INET6;
	memcpy(&six->sin6_addr, e->addr, 16);
	six->sin6_port = htons(e->port);
}

bool endpoint_is_any(const struct svpi_endpoint *e)
{
	static const uint8_t none[16];

	return !memcmp(e->addr, none, 16) || (!memcmp(e->addr, mapped, 12) && !memcmp(e->addr + 12, none, 4));
}

bool endpoint_is_localhost(const struct svpi_endpoint *e)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };

	return !memcmp(e->addr, six, 16) || (!memcmp(e->addr, mapped, 12) && !memcmp(e->addr + 12, four, 4));
}

void endpoint_make_any(struct svpi_endpoint *e)
{
	memset(!memcmp(e->addr, mapped, 12) ? e->addr + 12 : e->addr, 0, !memcmp(e->addr, mapped, 12) ? 4 : 16);
}
