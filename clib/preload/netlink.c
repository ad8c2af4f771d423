/*
 * The C library's functions by which programs ask the system for the link-layer addresses of interfaces: netlink, as ip(8)
 * does, and the ioctl of older ones. getifaddrs, which asks by itself, is in interfaces.c. Everything else is passed on
 * unchanged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "links.h"

#define EXPORT __attribute__((visibility("default")))
enum { MOST_MESSAGES = 512, MOST_FDS = 4096 };

/* Descriptors that sockets of NETLINK_ROUTE were made with, as bits; they may have become others since. */
static _Atomic uint64_t routes[MOST_FDS / 64];

static bool is_route(int fd)
{
	int domain = 0, protocol = 0, saved = errno;
	socklen_t n = sizeof(domain), m = sizeof(protocol);
	bool is;

	if (fd < 0 || fd >= MOST_FDS || __builtin_expect(!(atomic_load_explicit(&routes[fd / 64], memory_order_relaxed) >> fd % 64 & 1), 1))
		return false;
	is = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_NETLINK &&
	     getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &m) == 0 && protocol == NETLINK_ROUTE;
	if (!is)
		atomic_fetch_and(&routes[fd / 64], ~((uint64_t)1 << fd % 64));
	errno = saved;
	return is && !svpi_busy;
}

EXPORT int socket(int domain, int type, int protocol)
{
	static int (*next)(int, int, int);

	if (!next)
		next = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	int fd = next(domain, type, protocol);

	if (domain == AF_NETLINK && protocol == NETLINK_ROUTE && fd >= 0 && fd < MOST_FDS)
		atomic_fetch_or(&routes[fd / 64], (uint64_t)1 << fd % 64);
	return fd;
}

static ssize_t system_recvmsg(int fd, struct msghdr *m, int flags)
{
	static ssize_t (*next)(int, struct msghdr *, int);

	if (!next)
		next = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
	return next(fd, m, flags);
}

/* place copies a datagram to the caller's memory, and returns how much of it that holds. */
static size_t place(const struct msghdr *m, const char *from, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < m->msg_iovlen && done < n; i++) {
		size_t k = m->msg_iov[i].iov_len < n - done ? m->msg_iov[i].iov_len : n - done;

		memcpy(m->msg_iov[i].iov_base, from + done, k);
		done += k;
	}
	return done;
}

/* room_for returns how long a datagram may become: not longer than what the caller has room for, if it has room for it as it is;
 * if it has not, it is to learn how much it needs. */
static size_t room_for(const struct msghdr *m, size_t n, size_t most)
{
	size_t has = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++)
		has += m->msg_iov[i].iov_len;
	return has < n || has > most ? most : has;
}

/* receive takes a datagram whole, tells what it leaves out, and gives the caller what it asked for. */
static ssize_t receive(int fd, struct msghdr *m, int flags)
{
	struct msghdr whole = *m, peek = { 0 };
	ssize_t n = system_recvmsg(fd, &peek, (flags & MSG_DONTWAIT) | MSG_PEEK | MSG_TRUNC);
	size_t room = n < 0 ? 0 : (size_t)n + MOST_MESSAGES * SVPI_LINK_GROWS, placed;
	struct iovec v = { n < 0 ? NULL : malloc(room), n < 0 ? 0 : (size_t)n };

	if (!v.iov_base)
		return system_recvmsg(fd, m, flags);
	whole.msg_iov = &v;
	whole.msg_iovlen = 1;
	n = system_recvmsg(fd, &whole, flags | MSG_TRUNC);
	if (n < 0 || (size_t)n > v.iov_len) { /* another thread took the one that was seen: this one is larger, and cut off */
		placed = n < 0 ? 0 : place(m, v.iov_base, v.iov_len);
	} else {
		n = (ssize_t)svpi_links_told(v.iov_base, (size_t)n, room_for(m, (size_t)n, room));
		placed = place(m, v.iov_base, (size_t)n);
	}
	free(v.iov_base);
	if (n < 0)
		return n;
	m->msg_namelen = whole.msg_namelen;
	m->msg_controllen = whole.msg_controllen;
	m->msg_flags = (whole.msg_flags & ~MSG_TRUNC) | (placed < (size_t)n ? MSG_TRUNC : 0);
	return flags & MSG_TRUNC ? n : (ssize_t)placed;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return is_route(fd) ? receive(fd, m, flags) : system_recvmsg(fd, m, flags);
}

EXPORT ssize_t recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *len)
{
	static ssize_t (*next)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	struct iovec v = { to, n };
	struct msghdr m = { .msg_name = from, .msg_namelen = from && len ? *len : 0, .msg_iov = &v, .msg_iovlen = 1 };

	if (!next)
		next = (ssize_t(*)(int, void *, size_t, int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "recvfrom");
	if (!is_route(fd))
		return next(fd, to, n, flags, from, len);
	ssize_t got = receive(fd, &m, flags);

	if (got >= 0 && from && len)
		*len = m.msg_namelen;
	return got;
}

EXPORT ssize_t recv(int fd, void *to, size_t n, int flags)
{
	static ssize_t (*next)(int, void *, size_t, int);

	if (!next)
		next = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	return is_route(fd) ? recvfrom(fd, to, n, flags, NULL, NULL) : next(fd, to, n, flags);
}

/* Programs compiled with -D_FORTIFY_SOURCE call these. */
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

EXPORT ssize_t __recv_chk(int fd, void *to, size_t n, size_t room, int flags)
{
	static ssize_t (*next)(int, void *, size_t, size_t, int);

	if (!next)
		next = (ssize_t(*)(int, void *, size_t, size_t, int))dlsym(RTLD_NEXT, "__recv_chk");
	return n <= room && is_route(fd) ? recvfrom(fd, to, n, flags, NULL, NULL) : next(fd, to, n, room, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *len)
{
	static ssize_t (*next)(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

	if (!next)
		next = (ssize_t(*)(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "__recvfrom_chk");
	return n <= room && is_route(fd) ? recvfrom(fd, to, n, flags, from, len) : next(fd, to, n, room, flags, from, len);
}

/* Of 20 bytes the system shows the first 14 here, as it does of InfiniBand's own interfaces. */
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, void *);
	struct svpi_link_address link;
	va_list args;

	if (!next)
		next = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
	va_start(args, request);
	void *arg = va_arg(args, void *);
	va_end(args);
	int result = next(fd, request, arg);

	if (request == SIOCGIFHWADDR && result == 0) {
		struct ifreq *r = arg;

		if (r->ifr_hwaddr.sa_family == ARPHRD_NONE && !svpi_busy && svpi_link(if_nametoindex(r->ifr_name), &link)) {
			r->ifr_hwaddr.sa_family = link.hardware;
			memcpy(r->ifr_hwaddr.sa_data, link.address, sizeof(r->ifr_hwaddr.sa_data));
		}
	}
	return result;
}
