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
		endpoint_set_addr(e, true, (const uint8_t *)&four->sin_addr);
		e->port = ntohs(four->sin_port);
		return 0;
	case AF_INET6:
		endpoint_set_addr(e, false, six->sin6_addr.s6_addr);
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
	if (endpoint_is_four(e)) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, e->addr + 12, 4);
		four->sin_port = htons(e->port);
		return;
	}
	six->sin6_family = AF_INET6;
	memcpy(&six->sin6_addr, e->addr, 16);
	six->sin6_port = htons(e->port);
}

void endpoint_set_addr(struct svpi_endpoint *e, bool four, const uint8_t *addr)
{
	memcpy(e->addr, four ? mapped : addr, 12);
	memcpy(e->addr + 12, four ? addr : addr + 12, 4);
}

socklen_t sockaddr_size(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

bool endpoint_same(const struct svpi_endpoint *a, const struct svpi_endpoint *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, 16);
}

bool endpoint_is_four(const struct svpi_endpoint *e)
{
	return !memcmp(e->addr, mapped, 12);
}

bool endpoint_is_any(const struct svpi_endpoint *e)
{
	static const uint8_t none[16];

	return !memcmp(e->addr, none, 16) || (endpoint_is_four(e) && !memcmp(e->addr + 12, none, 4));
}

bool endpoint_is_localhost(const struct svpi_endpoint *e)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };

	return !memcmp(e->addr, six, 16) || (endpoint_is_four(e) && !memcmp(e->addr + 12, four, 4));
}

void endpoint_make_any(struct svpi_endpoint *e)
{
	bool four = endpoint_is_four(e);

	memset(four ? e->addr + 12 : e->addr, 0, four ? 4 : 16);
}
