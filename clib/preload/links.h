/*
 * Link-layer addresses of IPoIB interfaces. The system takes such an interface for one without (it is a TUN device, which can
 * have none), but it has one, by which its peers on the fabric know it.
 */
#ifndef SVPI_LINKS_H
#define SVPI_LINKS_H

#include "library.h"

/* svpi_link finds the link-layer address of an interface that the system shows without. errno is preserved. */
bool svpi_link(uint32_t index, struct svpi_link_address *);

/* svpi_links_told changes the messages of a datagram of n bytes from NETLINK_ROUTE, in which room bytes are available: those
 * about such interfaces have their addresses. Returns its new length, at most room. */
size_t svpi_links_told(void *datagram, size_t n, size_t room);

/* SVPI_LINK_GROWS: by how much a message can grow. */
enum { SVPI_LINK_GROWS = 48 };

#endif
