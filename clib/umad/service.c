/* Connections to the service of a fabric. Nothing is kept between calls: a port is its descriptor, so threads and
 * forked children may share it as they may share a file. */
#define _GNU_SOURCE
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../ipc/own.h"

enum { PATIENCE = 10000 }; /* ms to wait for an answer */

/* given reports whether the environment names a fabric. */
static bool given(void)
{
	const char *fabric = getenv("SOFTVPI_FABRIC");

	return fabric && *fabric;
}

/* path writes the path of the service's socket: SOFTVPI_FABRIC, or the socket of the fabric named sim, which is
 * beside the driver's socket. */
static int path(char *p, size_t size)
{
	const char *given = getenv("SOFTVPI_FABRIC"), *dir = getenv("XDG_RUNTIME_DIR");
	char tmp[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int n;

	if (given && *given)
		n = snprintf(p, size, "%s", given);
	else if (dir && *dir == '/')
		n = snprintf(p, size, "%s/softvpi/fabric-sim.sock", dir);
	else if ((n = svpi_temporary(tmp, sizeof(tmp))) < (int)sizeof(tmp))
		n = snprintf(p, size, "%.*s/fabric-sim.sock", n, tmp);
	return n < (int)size ? -svpi_own(p) : -ENAMETOOLONG;
}

static int dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, n = path(a.sun_path, sizeof(a.sun_path));

	if (n < 0)
		return n;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		n = connect(fd, (struct sockaddr *)&a, sizeof(a));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		n = -errno;
		close(fd);
		return n;
	}
	return fd;
}

/* answer waits for a message. Returns its length, or -errno. */
static int answer(int fd, void *p, size_t size)
{
	struct pollfd f = { .fd = fd, .events = POLLIN };
	ssize_t n;

	do
		n = poll(&f, 1, PATIENCE);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	do
		n = recv(fd, p, size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n < (ssize_t)sizeof(struct svpi_umad_answer) ? -EPROTO : (int)n;
}

/* verdict returns value, or -errno if the answer reports an error. */
static int verdict(const struct svpi_umad_answer *a, int value)
{
	if (a->error)
		return a->error < 4096 ? -(int)a->error : -EPROTO;
	return value < 0 ? -EPROTO : value;
}

static int ask(int fd, enum svpi_umad_kind kind, const char *name, int port, void *p, size_t size)
{
	struct svpi_umad_request r = { .kind = kind, .version = SVPI_UMAD_VERSION, .port = port };
	const char *node = getenv("SOFTVPI_NODE");
	int n;

	if ((name && strlen(name) >= sizeof(r.name)) || (node && strlen(node) >= sizeof(r.node)))
		return -ENODEV;
	if (name)
		memcpy(r.name, name, strlen(name));
	if (node)
		memcpy(r.node, node, strlen(node));
	if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		return -EIO;
	n = answer(fd, p, size);
	return n < 0 ? n : verdict(p, n);
}

int svpi_umad_ask(enum svpi_umad_kind kind, const char *name, int port, void *p, size_t size)
{
	int fd = dial(), n;

	if ((fd == -ENOENT || fd == -ECONNREFUSED) && !given()) {
		n = svpi_umad_tree(kind, name, port, p, size);
		return n == -ENODEV ? fd : n;
	}
	if (fd < 0)
		return fd;
	n = ask(fd, kind, name, port, p, size);
	close(fd);
	return n;
}

int svpi_umad_open(const char *name, int port)
{
	struct svpi_umad_answer a;
	int fd = dial(), n;

	if (fd < 0)
		return fd;
	n = ask(fd, SVPI_UMAD_OPEN, name, port, &a, sizeof(a));
	if (n < 0) {
		close(fd);
		return n;
	}
	return fd;
}

int svpi_umad_say(int fd, const void *message, size_t size)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec v = { .iov_base = (void *)message, .iov_len = size };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct svpi_umad_answer a;
	int pair[2], n;
	ssize_t sent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	memset(&control, 0, sizeof(control));
	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.h), &pair[1], sizeof(int));
	do
		sent = sendmsg(fd, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	n = sent < 0 ? -errno : 0;
	close(pair[1]);
	if (!n)
		n = answer(pair[0], &a, sizeof(a));
	close(pair[0]);
	return n < 0 ? n : verdict(&a, (int)a.value);
}
