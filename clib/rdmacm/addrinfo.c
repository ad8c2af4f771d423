/* Resolving names to addresses by the system's resolver. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

static int copy_address(const struct sockaddr *from, socklen_t len, struct sockaddr **to, socklen_t *to_len)
{
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static int copy_name(const char *from, char **to)
{
	if (from && !(*to = strdup(from)))
		return EAI_MEMORY;
	return 0;
}

/* spaces chooses port space and QP type, and refuses contradictory hints. */
static int spaces(struct rdma_addrinfo *a, const struct rdma_addrinfo *hints)
{
	int type = hints ? hints->ai_qp_type : 0, space = hints ? hints->ai_port_space : 0;

	if (!space)
		space = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!type)
		type = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	a->ai_qp_type = type;
	a->ai_port_space = space;
	return (type == IBV_QPT_UD) == (space == RDMA_PS_UDP || space == RDMA_PS_IPOIB) ? 0 : EAI_SOCKTYPE;
}

static int lookup(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo *a)
{
	struct addrinfo h = { .ai_flags = a->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0 }, *list;
	int error;

	h.ai_socktype = a->ai_port_space == RDMA_PS_UDP ? SOCK_DGRAM : SOCK_STREAM;
	if (a->ai_flags & RAI_NUMERICHOST)
		h.ai_flags |= AI_NUMERICHOST;
	if (hints && (a->ai_flags & RAI_FAMILY || hints->ai_family))
		h.ai_family = hints->ai_family;
	error = getaddrinfo(node, service, &h, &list);
	if (error)
		return error;
	a->ai_family = list->ai_family;
	if (a->ai_flags & RAI_PASSIVE) {
		error = copy_address(list->ai_addr, list->ai_addrlen, &a->ai_src_addr, &a->ai_src_len);
		if (!error)
			error = copy_name(list->ai_canonname, &a->ai_src_canonname);
	} else {
		error = copy_address(list->ai_addr, list->ai_addrlen, &a->ai_dst_addr, &a->ai_dst_len);
		if (!error)
			error = copy_name(list->ai_canonname, &a->ai_dst_canonname);
	}
	freeaddrinfo(list);
	return error;
}

/* from_hints copies the addresses of the hints that are not looked up. */
static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *a)
{
	int error = 0;

	if (!hints)
		return 0;
	if (!a->ai_src_addr && hints->ai_src_len)
		error = copy_address(hints->ai_src_addr, hints->ai_src_len, &a->ai_src_addr, &a->ai_src_len);
	if (!error && !a->ai_dst_addr && hints->ai_dst_len)
		error = copy_address(hints->ai_dst_addr, hints->ai_dst_len, &a->ai_dst_addr, &a->ai_dst_len);
	if (!a->ai_family && a->ai_src_addr)
		a->ai_family = a->ai_src_addr->sa_family;
	if (!a->ai_family && a->ai_dst_addr)
		a->ai_family = a->ai_dst_addr->sa_family;
	return error;
}

EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *a)
{
	while (a) {
		struct rdma_addrinfo *next = a->ai_next;

		free(a->ai_src_addr);
		free(a->ai_dst_addr);
		free(a->ai_src_canonname);
		free(a->ai_dst_canonname);
		free(a->ai_route);
		free(a->ai_connect);
		free(a);
		a = next;
	}
}

/* Returns 0 or, as getaddrinfo does, a code for gai_strerror. */
EXPORT int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **out)
{
	struct rdma_addrinfo *a;
	int error;

	if (!node && !service && !hints) {
		errno = EINVAL;
		return EAI_NONAME;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return EAI_MEMORY;
	a->ai_flags = hints ? hints->ai_flags : 0;
	error = spaces(a, hints);
	if (!error && (node || service))
		error = lookup(node, service, hints, a);
	if (!error)
		error = from_hints(hints, a);
	if (error) {
		rdma_freeaddrinfo(a);
		return error;
	}
	*out = a;
	return 0;
}
