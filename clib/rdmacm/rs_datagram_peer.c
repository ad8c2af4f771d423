/*
 * The peers of datagram sockets, and the UDP socket through which two sockets first tell each other the numbers of
 * their queue pairs.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rs_datagram_state.h"

/* The header of messages sent by UDP, with or without data behind it. */
struct udp_header {
	uint32_t tag; /* tag and qpn are big endian, as addresses are */
	uint8_t version, op, length, none;
	uint32_t qpn;
	uint8_t addr[16]; /* the receiver's address, 4 or 16 bytes */
};

enum { TAG = 0x55555555, UDP_FIXED = 12, RESOLVE_MS = 2000 };

/* chosen finds the adapter's address from which a destination is reached. */
static int chosen(const struct svpi_endpoint *to, struct svpi_endpoint *local)
{
	struct sockaddr_storage a;
	struct rdma_cm_id *id;
	int error = 0;

	from_endpoint(to, &a);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return errno;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, RESOLVE_MS))
		error = errno;
	else
		error = to_endpoint(&id->route.addr.src_addr, local);
	rdma_destroy_id(id);
	return error;
}

/* local_for returns the address to send from: the one to which the socket is bound, or the adapter's. A UDP socket
 * that is not bound is bound to it, so that both ways of sending show the same address. */
static int local_for(const struct datagrams *d, const struct svpi_endpoint *to, struct svpi_endpoint *local)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof(a);
	uint16_t port = 0;
	int error;

	if (getsockname(d->udp, (struct sockaddr *)&a, &n) == 0 && !to_endpoint((struct sockaddr *)&a, local)) {
		if (!endpoint_is_any(local))
			return 0;
		port = local->port;
	}
	error = chosen(to, local);
	local->port = 0;
	if (error || port)
		return error;
	from_endpoint(local, &a);
	return bind(d->udp, (struct sockaddr *)&a, sockaddr_size(&a)) ? errno : 0;
}

int datagram_peer_at(struct rs *s, const struct svpi_endpoint *addr, const struct svpi_endpoint *local, struct datagram_peer **out)
{
	struct svpi_endpoint mine;
	struct datagram_peer *p;
	int error;

	for (p = s->datagrams->peers; p && !endpoint_same(&p->addr, addr); p = p->next)
		;
	*out = p;
	if (p)
		return 0;
	error = local ? 0 : local_for(s->datagrams, addr, &mine);
	p = error ? NULL : calloc(1, sizeof(*p));
	if (!p)
		return error ? error : ENOMEM;
	p->addr = *addr;
	error = datagram_qp_at(s, local ? local : &mine, &p->by);
	if (error) {
		free(p);
		return error;
	}
	p->next = s->datagrams->peers;
	*out = s->datagrams->peers = p;
	return 0;
}

void datagram_peer_end(struct datagram_peer *p)
{
	if (p->ah)
		ibv_destroy_ah(p->ah);
	free(p);
}

/* from_address makes a message leave from the QP's address, even if the UDP socket is bound to all: the peer
 * identifies the sender by it. */
static void from_address(struct msghdr *m, const struct svpi_endpoint *local, bool four)
{
	struct in_pktinfo v4 = { 0 };
	struct in6_pktinfo v6 = { 0 };
	size_t n = four ? sizeof(v4) : sizeof(v6);
	struct cmsghdr *c;

	memcpy(&v4.ipi_spec_dst, local->addr + 12, 4);
	memcpy(&v6.ipi6_addr, local->addr, 16);
	m->msg_controllen = CMSG_SPACE(n);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = four ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = four ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), four ? (void *)&v4 : (void *)&v6, n);
}

/* datagram_udp_send sends by UDP, together with what the peer needs to answer by QP. */
int datagram_udp_send(struct rs *s, const struct datagram_peer *p, enum rs_op op, const struct iovec *data)
{
	bool four = endpoint_is_four(&p->addr);
	struct udp_header h = { .tag = htobe32(TAG), .version = four ? 4 : 6, .op = (uint8_t)op,
				.length = UDP_FIXED + (four ? 4 : 16), .qpn = htobe32(p->by->id->qp->qp_num) };
	struct sockaddr_storage to;
	struct iovec v[2] = { { &h, h.length }, data ? *data : (struct iovec){ 0 } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct msghdr m = { .msg_name = &to, .msg_iov = v, .msg_iovlen = 2, .msg_control = control };

	from_address(&m, &p->by->local, four);
	memcpy(h.addr, four ? p->addr.addr + 12 : p->addr.addr, four ? 4 : 16);
	from_endpoint(&p->addr, &to);
	m.msg_namelen = sockaddr_size(&to);
	return sendmsg(s->datagrams->udp, &m, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* learn records the number of a peer's QP. */
static void learn(struct datagram_peer *p, uint32_t qpn)
{
	struct ibv_ah_attr a;

	if (p->ah && p->qpn == qpn)
		return;
	if (!p->ah) {
		address_attr(to_id(p->by->id), p->addr.addr, &a);
		p->ah = ibv_create_ah(p->by->id->qp->pd, &a);
	}
	p->qpn = qpn;
}

bool datagram_udp_receive(struct rs *s)
{
	uint8_t buffer[65536];
	struct udp_header h;
	struct sockaddr_storage a;
	struct svpi_endpoint from, mine = { 0 };
	socklen_t alen = sizeof(a);
	struct datagram_peer *p;
	ssize_t n = recvfrom(s->datagrams->udp, buffer, sizeof(buffer), 0, (struct sockaddr *)&a, &alen);

	if (n < 0)
		return false;
	memset(&h, 0, sizeof(h));
	memcpy(&h, buffer, (size_t)n < sizeof(h) ? (size_t)n : sizeof(h));
	if (h.tag != htobe32(TAG) || (h.version != 4 && h.version != 6) || h.length != UDP_FIXED + (h.version == 4 ? 4 : 16) ||
	    n < h.length || to_endpoint((struct sockaddr *)&a, &from))
		return true; /* not this protocol */
	endpoint_set_addr(&mine, h.version == 4, h.addr);
	if (datagram_peer_at(s, &from, h.op == RS_DATA ? &mine : NULL, &p))
		return true;
	learn(p, be32toh(h.qpn) & 0xffffff);
	if (h.op == RS_DATA) {
		datagram_keep(s->datagrams, &from, buffer + h.length, (size_t)n - h.length);
		datagram_udp_send(s, p, RS_CONTROL, NULL);
	}
	return true;
}
