/* Options of sockets. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#include "rsocket.h"

enum { SOL_RDMA = 0x10000, RDMA_SQSIZE = 0, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE, RDMA_ROUTE };

/* size sets a size, within its limits. Sizes can be set until there is a connection. */
static int size(struct rs *s, uint32_t *field, int value, uint32_t least, uint32_t most)
{
	if (s->state > RS_LISTENING)
		return EINVAL;
	if (value < 0)
		return EINVAL;
	*field = (uint32_t)value < least ? least : (uint32_t)value > most ? most : (uint32_t)value;
	return 0;
}

static int set_socket(struct rs *s, int name, int v, const void *raw, socklen_t len)
{
	switch (name) {
	case SO_REUSEADDR: {
		int on = v != 0;

		s->reuse = on;
		if (!s->id)
			return 0; /* only its UDP socket has a port */
		return rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) ? errno : 0;
	}
	case SO_RCVBUF:
		v = (v + 1) & ~1; /* rounded up, as it has two halves */
		return size(s, &s->recv_bytes, v, 2 * RS_LOW_WATER, 1u << 28);
	case SO_SNDBUF:
		return size(s, &s->send_bytes, v, 2 * RS_LOW_WATER, 1u << 28);
	case SO_LINGER: {
		struct linger l;

		if (len < sizeof(l))
			return EINVAL;
		memcpy(&l, raw, sizeof(l));
		s->linger_on = l.l_onoff;
		s->linger_s = l.l_linger;
		return 0;
	}
	case SO_KEEPALIVE: /* the queue pair notices a lost peer only when something is sent */
		s->keepalive = v != 0;
		return v ? EOPNOTSUPP : 0;
	case SO_OOBINLINE:
		return 0; /* there is no out-of-band data */
	}
	return ENOPROTOOPT;
}

static int set_rdma(struct rs *s, int name, int v)
{
	switch (name) {
	case RDMA_SQSIZE: return size(s, &s->send_size, v, 2 * RS_RESERVED, 65535);
	case RDMA_RQSIZE: return size(s, &s->recv_size, v, 2, 32767);
	case RDMA_INLINE: return size(s, &s->inline_size, v, sizeof(struct rs_iomap), 65535);
	case RDMA_IOMAPSIZE: {
		int error = size(s, &s->iomap_size, v, 0, 128);

		return error;
	}
	}
	return ENOPROTOOPT;
}

static int set(struct rs *s, int level, int name, int v, const void *raw, socklen_t len)
{
	switch (level) {
	case SOL_SOCKET:
		return set_socket(s, name, v, raw, len);
	case IPPROTO_TCP:
		if (name != TCP_NODELAY)
			return ENOPROTOOPT;
		s->nodelay = v != 0; /* nothing is delayed anyway */
		return 0;
	case IPPROTO_IPV6:
		if (name != IPV6_V6ONLY)
			return ENOPROTOOPT;
		s->ipv6_only = v != 0;
		if (!s->id)
			return 0;
		return rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &s->ipv6_only, sizeof(int)) ? errno : 0;
	case SOL_RDMA:
		return set_rdma(s, name, v);
	}
	return ENOPROTOOPT;
}

int rsetsockopt(int fd, int level, int name, const void *value, socklen_t len);
EXPORT int rsetsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct rs *s = rs_enter(fd);
	int v = 0, error;

	if (!s)
		return -1;
	if (value && len >= sizeof(v))
		memcpy(&v, value, sizeof(v));
	error = !value || len < sizeof(v) ? EINVAL : set(s, level, name, v, value, len);
	rs_leave(s);
	return result(error);
}

/* get reads the value of an option. Returns 0 or an errno. */
static int get(struct rs *s, int level, int name, int *v)
{
	switch (level) {
	case SOL_SOCKET:
		switch (name) {
		case SO_REUSEADDR: *v = s->reuse; return 0;
		case SO_RCVBUF: *v = (int)s->recv_bytes; return 0;
		case SO_SNDBUF: *v = (int)s->send_bytes; return 0;
		case SO_KEEPALIVE: *v = s->keepalive; return 0;
		case SO_OOBINLINE: *v = 1; return 0;
		case SO_TYPE: *v = SOCK_STREAM; return 0;
		case SO_ERROR:
			*v = s->error;
			s->error = 0;
			return 0;
		}
		return ENOPROTOOPT;
	case IPPROTO_TCP:
		*v = name == TCP_NODELAY ? s->nodelay : RS_MAX_TRANSFER;
		return name == TCP_NODELAY || name == TCP_MAXSEG ? 0 : ENOPROTOOPT;
	case IPPROTO_IPV6:
		*v = s->ipv6_only;
		return name == IPV6_V6ONLY ? 0 : ENOPROTOOPT;
	case SOL_RDMA:
		switch (name) {
		case RDMA_SQSIZE: *v = (int)s->send_size; return 0;
		case RDMA_RQSIZE: *v = (int)s->recv_size; return 0;
		case RDMA_INLINE: *v = (int)s->inline_size; return 0;
		case RDMA_IOMAPSIZE: *v = (int)s->iomap_size; return 0;
		}
	}
	return ENOPROTOOPT;
}

int rgetsockopt(int fd, int level, int name, void *value, socklen_t *len);
EXPORT int rgetsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct rs *s = rs_enter(fd);
	struct linger l;
	int v = 0, error;

	if (!s)
		return -1;
	if (level == SOL_SOCKET && name == SO_LINGER) {
		l = (struct linger){ s->linger_on, s->linger_s };
		error = *len < sizeof(l) ? EINVAL : 0;
		if (!error)
			memcpy(value, &l, *len = sizeof(l));
	} else {
		error = *len < sizeof(v) ? EINVAL : get(s, level, name, &v);
		if (!error)
			memcpy(value, &v, *len = sizeof(v));
	}
	rs_leave(s);
	return result(error);
}

int rfcntl(int fd, int cmd, ...);
EXPORT int rfcntl(int fd, int cmd, ...)
{
	struct rs *s = rs_enter(fd);
	int flags, out = 0;
	va_list args;

	if (!s)
		return -1;
	va_start(args, cmd);
	flags = va_arg(args, int);
	va_end(args);
	switch (cmd) {
	case F_GETFL:
		out = O_RDWR | (s->nonblock ? O_NONBLOCK : 0);
		break;
	case F_SETFL:
		s->nonblock = flags & O_NONBLOCK;
		break;
	default:
		out = result(EINVAL);
	}
	rs_leave(s);
	return out;
}
