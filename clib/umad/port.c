/* Open ports: registering agents, sending and receiving. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service.h"

EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	int fd;

	TRACE("ca %s port %d", ca_name ? ca_name : "none", portnum);
	fd = svpi_umad_open(ca_name, portnum > 0 ? portnum : -1);
	if (fd >= 0) {
		DEBUG("opened %s port %d fd %d", ca_name ? ca_name : "the first", portnum, fd);
		return fd;
	}
	DEBUG("cannot open the port: %s", strerror(-fd));
	switch (-fd) {
	case ENODEV:
		return ca_name ? -EINVAL : -ENODEV;
	case EINVAL:
		return -EINVAL;
	case ENOENT:
	case ECONNREFUSED:
		return -EOPNOTSUPP; /* no service runs: like a missing kernel module */
	}
	return -EIO;
}

EXPORT int umad_close_port(int portid)
{
	close(portid);
	DEBUG("closed fd %d", portid);
	return 0;
}

EXPORT int umad_get_fd(int portid)
{
	TRACE("portid %d", portid);
	return portid;
}

EXPORT int umad_poll(int portid, int timeout_ms)
{
	struct pollfd f = { .fd = portid, .events = POLLIN };
	int n;

	TRACE("portid %d timeout %d", portid, timeout_ms);
	n = poll(&f, 1, timeout_ms);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0)
		return -errno;
	return f.revents & (POLLIN | POLLHUP) ? 0 : -EIO;
}

/* long_file puts a MAD that is too long for a message into a memory file that cannot shrink. A seal against writing is not
 * needed, as the service copies it, and the kernel refuses that one while it holds a page itself. Returns a descriptor, or -1. */
static int long_file(const void *data, size_t size)
{
	const uint8_t *p = data;
	size_t at = 0;
	int fd = memfd_create("softvpi-mad", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	while (at < size) {
		ssize_t n = write(fd, p + at, size - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	if (at < size || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *mad = umad;
	uint32_t head[2] = { SVPI_UMAD_SEND, 0 };
	struct iovec v[2] = { { head, sizeof(head) }, { umad, 0 } };
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	int fd = -1;
	ssize_t n;

	TRACE("portid %d agentid %d umad %p timeout %u", portid, agentid, umad, timeout_ms);
	if (agentid < 0 || agentid >= UMAD_CA_MAX_AGENTS || length < 0 || length > SVPI_UMAD_LONGEST) {
		errno = EINVAL;
		return -EIO;
	}
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	mad->agent_id = (uint32_t)agentid;
	mad->length = (uint32_t)length;
	v[1].iov_len = sizeof(*mad) + (size_t)length;
	if (length > SVPI_UMAD_INLINE) {
		fd = long_file(mad->data, (size_t)length);
		if (fd < 0)
			return -EIO;
		memset(&control, 0, sizeof(control));
		control.h.cmsg_level = SOL_SOCKET;
		control.h.cmsg_type = SCM_RIGHTS;
		control.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.h), &fd, sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		v[1].iov_len = sizeof(*mad) + SVPI_UMAD_MAD;
	}
	do
		n = sendmsg(portid, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (fd >= 0)
		close(fd);
	if (n == (ssize_t)(v[0].iov_len + v[1].iov_len))
		return 0;
	DEBUG("send returned %zd: %s", n, strerror(errno));
	if (!errno)
		errno = EIO;
	return -EIO;
}

/* take_long takes a message with a memory file, and reads the MAD that is in it. Returns 0 or -errno. */
static int take_long(int portid, struct ib_user_mad *mad, int *length)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec v = { mad, sizeof(*mad) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	size_t size, at = 0;
	int fd;

	if (recvmsg(portid, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(*mad))
		return -EIO;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -EIO;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	size = mad->length - sizeof(*mad);
	while (at < size && size <= (size_t)*length) {
		ssize_t n = pread(fd, mad->data + at, size - at, (off_t)at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(fd);
	if (at < size)
		return -EIO;
	*length = (int)size;
	return 0;
}

/* take reads the next MAD. One that is longer than the buffer stays queued: then take returns -ENOSPC with its length
 * and its beginning. */
static int take(int portid, struct ib_user_mad *mad, int *length)
{
	size_t room = sizeof(*mad) + (size_t)*length;
	ssize_t n;
	char none;
	int all;

	do
		n = recv(portid, mad, room, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(*mad) || mad->length < sizeof(*mad)) {
		recv(portid, &none, 1, MSG_DONTWAIT);
		return -EIO; /* the service is gone, or is not one */
	}
	all = (int)(mad->length - sizeof(*mad));
	if (all > *length) {
		*length = all;
		return -ENOSPC;
	}
	if (n < (ssize_t)mad->length)
		return take_long(portid, mad, length);
	do
		n = recv(portid, &none, 1, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno; /* another thread has taken it */
	*length = all;
	return 0;
}

EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	int n;

	errno = 0;
	TRACE("portid %d umad %p timeout %u", portid, umad, timeout_ms);
	if (!umad || !length || *length < 0) {
		errno = EINVAL;
		return -EINVAL;
	}
	if (timeout_ms && (n = umad_poll(portid, timeout_ms)) < 0) {
		if (!errno)
			errno = -n;
		return n;
	}
	n = take(portid, mad, length);
	if (n == 0) {
		DEBUG("mad received by agent %d length %d", mad->agent_id, *length);
		return (int)mad->agent_id;
	}
	if (!errno)
		errno = -n;
	return n;
}

/* say_register registers an agent. Returns its number, or -errno. */
static int say_register(int portid, struct svpi_umad_registration *r)
{
	r->kind = SVPI_UMAD_REGISTER;
	r->version = SVPI_UMAD_VERSION;
	r->qpn = r->mgmt_class != 0x01 && r->mgmt_class != 0x81;
	return svpi_umad_say(portid, r, sizeof(*r));
}

EXPORT int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version, long method_mask[16 / sizeof(long)])
{
	struct svpi_umad_registration r = { .mgmt_class = (uint8_t)mgmt_class, .class_version = (uint8_t)mgmt_version,
					    .rmpp_version = rmpp_version, .oui = 0x001405 };
	int n;

	TRACE("portid %d mgmt_class %u mgmt_version %u rmpp_version %d method_mask %p", portid, mgmt_class, mgmt_version, rmpp_version,
	      (void *)method_mask);
	if (method_mask)
		memcpy(r.methods, method_mask, 16);
	n = say_register(portid, &r);
	if (n >= 0)
		return n;
	DEBUG("portid %d registering class 0x%x version %d failed: %s", portid, mgmt_class, mgmt_version, strerror(-n));
	errno = -n;
	return -EPERM;
}

EXPORT int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3], long method_mask[16 / sizeof(long)])
{
	struct svpi_umad_registration r = { .mgmt_class = (uint8_t)mgmt_class, .class_version = 1, .rmpp_version = rmpp_version };
	int n;

	TRACE("portid %d mgmt_class %u rmpp_version %d oui 0x%x%x%x", portid, mgmt_class, rmpp_version, oui[0], oui[1], oui[2]);
	if (mgmt_class < 0x30 || mgmt_class > 0x4f) {
		DEBUG("mgmt class %d not in vendor range 2", mgmt_class);
		return -EINVAL;
	}
	r.oui = (uint32_t)oui[0] << 16 | (uint32_t)oui[1] << 8 | oui[2];
	if (method_mask)
		memcpy(r.methods, method_mask, 16);
	n = say_register(portid, &r);
	if (n >= 0)
		return n;
	DEBUG("portid %d registering class 0x%x failed: %s", portid, mgmt_class, strerror(-n));
	errno = -n;
	return -EPERM;
}

EXPORT int umad_register2(int portid, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct svpi_umad_registration r = { 0 };
	int n;

	if (!attr || !agent_id)
		return EINVAL;
	TRACE("portid %d mgmt_class %u mgmt_class_version %u flags 0x%08x rmpp_version %d", portid, attr->mgmt_class,
	      attr->mgmt_class_version, attr->flags, attr->rmpp_version);
	if (attr->flags & ~(uint32_t)UMAD_USER_RMPP) {
		attr->flags = UMAD_USER_RMPP; /* the flags that exist */
		return EINVAL;
	}
	r.mgmt_class = attr->mgmt_class;
	r.class_version = attr->mgmt_class_version;
	r.rmpp_version = attr->rmpp_version;
	r.flags = attr->flags;
	r.oui = attr->oui;
	memcpy(r.methods, attr->method_mask, 16);
	n = say_register(portid, &r);
	if (n < 0)
		return -n;
	*agent_id = (uint32_t)n;
	return 0;
}

EXPORT int umad_unregister(int portid, int agentid)
{
	uint32_t m[2] = { SVPI_UMAD_UNREGISTER, (uint32_t)agentid };
	int n;

	TRACE("portid %d unregistering agent %d", portid, agentid);
	n = svpi_umad_say(portid, m, sizeof(m));
	if (n >= 0)
		return 0;
	errno = -n;
	return -1;
}
