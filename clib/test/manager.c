/* librdmacm, with the driver of check.sh: what its manual pages promise. Compiled with the distribution's header. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include "bed.h"
#include "manager.h"

static struct rdma_event_channel *ours, *theirs;

struct sockaddr_in address(int device, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = port };
	struct ibv_context **list;
	union ibv_gid g;
	int n;

	MUST((list = rdma_get_devices(&n)) && device < n && !ibv_query_gid(list[device], 1, 0, &g));
	memcpy(&a.sin_addr, g.raw + 12, 4);
	rdma_free_devices(list);
	return a;
}

static struct sockaddr *plain(struct sockaddr_in *a) { return (struct sockaddr *)a; }

static struct rdma_cm_id *create(struct rdma_event_channel *c, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(c, &id, c, ps));
	return id;
}

/* take waits for an event of a type. */
static struct rdma_cm_event *take(struct rdma_event_channel *c, enum rdma_cm_event_type want, int line)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	if (poll(&p, 1, 10000) != 1 || rdma_get_cm_event(c, &e)) {
		printf("line %d: no event, want %s\n", line, rdma_event_str(want));
		exit(1);
	}
	check(e->event == want, __FILE__, line, "e->event == want", ": %s (%d), want %s", rdma_event_str(e->event), e->status,
	      rdma_event_str(want));
	return e;
}
static bool readable(struct rdma_event_channel *c, int ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

#define TAKE(c, want) take(c, want, __LINE__)
#define EXPECT_EVENT(c, want) rdma_ack_cm_event(take(c, want, __LINE__))

/* listener listens at an adapter, at a port that the driver chooses. */
static struct rdma_cm_id *listener(enum rdma_port_space ps, struct sockaddr_in *at)
{
	struct rdma_cm_id *id = create(theirs, ps);

	*at = address(0, 0);
	MUST(!rdma_bind_addr(id, plain(at)) && !rdma_listen(id, 8));
	at->sin_port = rdma_get_src_port(id);
	return id;
}

/* resolved returns an id that has resolved address and route. */
static struct rdma_cm_id *resolved(enum rdma_port_space ps, struct sockaddr_in *to)
{
	struct rdma_cm_id *id = create(ours, ps);

	MUST(!rdma_resolve_addr(id, NULL, plain(to), 2000));
	EXPECT_EVENT(ours, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(id->verbs && id->pd && id->pd->context == id->verbs && id->port_num == 1, ".");
	MUST(!rdma_resolve_route(id, 2000));
	EXPECT_EVENT(ours, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC };

	MUST(!rdma_create_qp(id, NULL, &a));
}

static void end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK(!rdma_destroy_id(id), ".");
}

/* Maximum lengths of private data: rdma_connect(3), rdma_accept(3), rdma_reject(3). */
static void private_data(void)
{
	static const struct { enum rdma_port_space ps; uint8_t connect, accept, reject; } most[] = {
		{ RDMA_PS_TCP, 56, 196, 148 }, { RDMA_PS_UDP, 180, 136, 136 },
	};
	uint8_t data[255];

	pattern(data, sizeof(data), 1);
	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_in at;
		struct rdma_cm_id *l = listener(most[i].ps, &at), *id = resolved(most[i].ps, &at), *theirs_id;
		struct rdma_conn_param p = { .private_data = data, .private_data_len = (uint8_t)(most[i].connect + 1) };
		struct rdma_cm_event *e;

		give_qp(id);
		CHECK(rdma_connect(id, &p) == -1 && errno == EINVAL, ": %d", errno);
		p.private_data_len--;
		MUST(!rdma_connect(id, &p));
		e = TAKE(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
		const struct rdma_conn_param *got = &e->param.conn;
		const void *bytes = i ? e->param.ud.private_data : got->private_data;
		uint8_t len = i ? e->param.ud.private_data_len : got->private_data_len;
		CHECK(len >= most[i].connect && !memcmp(bytes, data, most[i].connect), ": %d", len);
		theirs_id = e->id;
		CHECK(e->listen_id == l && theirs_id->verbs == l->verbs && theirs_id->context == l->context, ".");
		rdma_ack_cm_event(e);
		CHECK(rdma_reject(theirs_id, data, (uint8_t)(most[i].reject + 1)) == -1 && errno == EINVAL, ": %d", errno);
		MUST(!rdma_reject(theirs_id, data, most[i].reject));
		e = TAKE(ours, RDMA_CM_EVENT_REJECTED);
		if (!i)
			CHECK(e->status == 28 && e->param.conn.private_data_len >= 148 && !memcmp(e->param.conn.private_data, data, 148),
			      ": %d, %d bytes", e->status, e->param.conn.private_data_len); /* IBA 12.6.7.2: consumer */
		rdma_ack_cm_event(e);
		end(theirs_id);
		end(id);

		id = resolved(most[i].ps, &at);
		give_qp(id);
		p.private_data_len = 0;
		MUST(!rdma_connect(id, &p));
		e = TAKE(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
		theirs_id = e->id;
		rdma_ack_cm_event(e);
		give_qp(theirs_id);
		struct rdma_conn_param q = { .private_data = data, .private_data_len = (uint8_t)(most[i].accept + 1), .qp_num = theirs_id->qp->qp_num };
		CHECK(rdma_accept(theirs_id, &q) == -1 && errno == EINVAL, ": %d", errno);
		end(theirs_id); /* its QP is in the error state: the peer is told */
		rdma_ack_cm_event(TAKE(ours, RDMA_CM_EVENT_REJECTED));
		end(id);

		id = resolved(most[i].ps, &at);
		give_qp(id);
		MUST(!rdma_connect(id, &p));
		e = TAKE(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
		theirs_id = e->id;
		rdma_ack_cm_event(e);
		give_qp(theirs_id);
		q.private_data_len--;
		q.qp_num = theirs_id->qp->qp_num;
		MUST(!rdma_accept(theirs_id, &q));
		e = TAKE(ours, RDMA_CM_EVENT_ESTABLISHED);
		bytes = i ? e->param.ud.private_data : e->param.conn.private_data;
		CHECK(!memcmp(bytes, data, most[i].accept), ".");
		rdma_ack_cm_event(e);
		if (!i) {
			EXPECT_EVENT(theirs, RDMA_CM_EVENT_ESTABLISHED);
			CHECK(!readable(ours, 200), "."); /* there is nothing else to read */
			CHECK(!readable(theirs, 0), ".");
			CHECK(!rdma_disconnect(id), ".");
			EXPECT_EVENT(theirs, RDMA_CM_EVENT_DISCONNECTED);
			EXPECT_EVENT(ours, RDMA_CM_EVENT_DISCONNECTED);
		}
		end(theirs_id);
		end(id);
		end(l);
	}
}

static int set(struct rdma_cm_id *id, int option, int value)
{
	uint8_t byte = (uint8_t)value;
	bool small = option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT;

	return rdma_set_option(id, RDMA_OPTION_ID, option, small ? (void *)&byte : (void *)&value, small ? 1 : sizeof(value));
}

/* Port options REUSEADDR and AFONLY of rdma_set_option(3), and localhost. */
static void ports(void)
{
	struct rdma_cm_id *a = create(ours, RDMA_PS_TCP), *b = create(ours, RDMA_PS_TCP), *c = create(ours, RDMA_PS_TCP);
	struct sockaddr_in at = address(0, 0);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

	MUST(!set(a, RDMA_OPTION_ID_REUSEADDR, 1) && !set(b, RDMA_OPTION_ID_REUSEADDR, 1));
	MUST(!rdma_bind_addr(a, plain(&at)));
	at.sin_port = rdma_get_src_port(a);
	CHECK(rdma_bind_addr(c, plain(&at)) == -1 && errno == EADDRINUSE, ": %d", errno);
	CHECK(!rdma_bind_addr(b, plain(&at)) && rdma_get_src_port(b) == at.sin_port, ": %d", errno);
	CHECK(rdma_listen(a, 1) == -1 && errno == EADDRINUSE, ": %d", errno);
	end(b);
	CHECK(!rdma_listen(a, 1), ": %d", errno);
	CHECK(set(a, RDMA_OPTION_ID_REUSEADDR, 1) == -1 && errno == EINVAL, ": %d", errno);
	end(a);

	a = create(ours, RDMA_PS_TCP);
	b = create(ours, RDMA_PS_TCP);
	MUST(!rdma_bind_addr(a, (struct sockaddr *)&six));
	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = rdma_get_src_port(a) };
	CHECK(rdma_bind_addr(c, plain(&at)) == -1 && errno == EADDRINUSE, ": %d", errno);
	end(a);
	MUST(!set(b, RDMA_OPTION_ID_AFONLY, 1));
	six.sin6_port = at.sin_port;
	CHECK(!rdma_bind_addr(b, (struct sockaddr *)&six) && !rdma_bind_addr(c, plain(&at)), ": %d", errno);
	end(b);
	end(c);

	a = create(theirs, RDMA_PS_TCP);
	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	MUST(!rdma_bind_addr(a, plain(&at)) && !rdma_listen(a, 1));
	CHECK(!a->verbs && rdma_get_src_port(a) && a->route.addr.src_sin.sin_addr.s_addr == htonl(INADDR_LOOPBACK), ".");
	for (int way = 0; way < 2; way++) { /* at any adapter's address, and at the loopback address itself */
		at = way ? (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } : address(1, 0);
		at.sin_port = rdma_get_src_port(a);
		b = resolved(RDMA_PS_TCP, &at);
		give_qp(b);
		MUST(!rdma_connect(b, NULL));
		struct rdma_cm_event *e = TAKE(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);

		c = e->id;
		rdma_ack_cm_event(e);
		end(c);
		EXPECT_EVENT(ours, RDMA_CM_EVENT_REJECTED);
		end(b);
	}
	end(a);
	at.sin_addr.s_addr = htonl(INADDR_BROADCAST - 1);
	a = create(ours, RDMA_PS_TCP);
	CHECK(rdma_bind_addr(a, plain(&at)) == -1 && errno == EADDRNOTAVAIL, ": %d", errno);
	end(a);
}

/* Peers that do not exist: the events must be those of Linux. */
static void nobody(void)
{
	struct sockaddr_in at = address(0, htons(1));
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP, &at);
	struct rdma_cm_event *e;

	give_qp(id);
	MUST(!rdma_connect(id, NULL));
	e = TAKE(ours, RDMA_CM_EVENT_REJECTED);
	CHECK(e->status == 8, ": %d", e->status); /* IBA 12.6.7.2: invalid service ID */
	rdma_ack_cm_event(e);
	end(id);

	MUST(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)); /* its operations are synchronous */
	MUST(!rdma_resolve_addr(id, NULL, plain(&at), 2000) && !rdma_resolve_route(id, 2000));
	give_qp(id);
	CHECK(rdma_connect(id, NULL) == -1 && errno == ECONNREFUSED, ": %d", errno);
	end(id);

	id = create(ours, RDMA_PS_TCP);
	CHECK(rdma_resolve_route(id, 10) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(rdma_connect(id, NULL) == -1, ".");
	CHECK(rdma_disconnect(id) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(rdma_notify(id, IBV_EVENT_COMM_EST) == -1 && errno == EINVAL, ": %d", errno);
	end(id);
}

/* An address of this host is reached through the device that has it, unless the program names a source. */
static void here(void)
{
	for (int device = 0; device < 2; device++) {
		struct sockaddr_in at = address(device, htons(1)), from = address(0, 0), *src;
		struct rdma_cm_id *id = resolved(RDMA_PS_TCP, &at);

		src = (struct sockaddr_in *)rdma_get_local_addr(id);
		CHECK(src->sin_addr.s_addr == at.sin_addr.s_addr, ": %x, want %x", src->sin_addr.s_addr, at.sin_addr.s_addr);
		end(id);
		id = create(ours, RDMA_PS_TCP);
		MUST(!rdma_resolve_addr(id, plain(&from), plain(&at), 2000));
		EXPECT_EVENT(ours, RDMA_CM_EVENT_ADDR_RESOLVED);
		src = (struct sockaddr_in *)rdma_get_local_addr(id);
		CHECK(src->sin_addr.s_addr == from.sin_addr.s_addr, ": %x, want %x", src->sin_addr.s_addr, from.sin_addr.s_addr);
		end(id);
	}
}

/* no_ece: this vendor has no options of connection establishment, and no peer has any: rdma_set_local_ece(3). */
static void no_ece(struct rdma_cm_id *id)
{
	struct ibv_ece none = { 0 }, some = { .vendor_id = 0x15b3, .options = 1 };

	CHECK(rdma_set_local_ece(id, &some) == -1 && errno == EOPNOTSUPP, ": %d", errno);
	CHECK(rdma_set_local_ece(id, &none) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(rdma_set_local_ece(id, NULL) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(rdma_get_remote_ece(id, &some) == 0 && some.vendor_id == 0 && some.options == 0, ": vendor %x", some.vendor_id);
	CHECK(rdma_get_remote_ece(id, NULL) == -1 && errno == EINVAL, ": %d", errno);
}

/* Options of connections; and a program that moves its queue pairs itself and sees messages before the connection is
 * established: rdma_set_option(3), rdma_init_qp_attr(3), rdma_notify(3). */
static void options(void)
{
	struct sockaddr_in at;
	struct rdma_cm_id *l = listener(RDMA_PS_TCP, &at), *id = create(ours, RDMA_PS_TCP), *peer;
	struct rdma_conn_param p = { .qp_num = 0x1234, .retry_count = 7 };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	struct rdma_cm_event *e;
	int mask, n = 1;

	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &n, sizeof(n)) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, 99, &n, sizeof(n)) == -1 && errno == ENOSYS, ": %d", errno);
	CHECK(set(id, RDMA_OPTION_ID_ACK_TIMEOUT, 32) == -1 && errno == EINVAL, ": %d", errno);
	no_ece(id);
	end(id);
	id = resolved(RDMA_PS_TCP, &at);
	MUST(!set(id, RDMA_OPTION_ID_TOS, 96) && !set(id, RDMA_OPTION_ID_ACK_TIMEOUT, 19));
	MUST(!rdma_connect(id, &p));
	e = TAKE(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	peer = e->id;
	rdma_ack_cm_event(e);
	CHECK(set(peer, RDMA_OPTION_ID_REUSEADDR, 1) == -1 && errno == EINVAL, ": %d", errno);
	MUST(!set(peer, RDMA_OPTION_ID_ACK_TIMEOUT, 21));
	p.qp_num = 0x1235;
	MUST(!rdma_accept(peer, &p));
	EXPECT_EVENT(ours, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!rdma_init_qp_attr(id, &a, &mask) && a.timeout == 19 && mask & IBV_QP_TIMEOUT, ": %d", a.timeout);
	CHECK(!rdma_init_qp_attr(peer, &a, &mask) && a.timeout == 21, ": %d", a.timeout);
	a.qp_state = IBV_QPS_RTR;
	CHECK(!rdma_init_qp_attr(id, &a, &mask) && a.ah_attr.grh.traffic_class == 96 && a.dest_qp_num == 0x1235, ".");
	CHECK(!rdma_notify(peer, IBV_EVENT_COMM_EST), ": %d", errno); /* the connecting side has not sent anything yet */
	EXPECT_EVENT(theirs, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_notify(peer, IBV_EVENT_QP_FATAL) == -1 && errno == EINVAL, ": %d", errno);
	CHECK(!rdma_establish(id), ": %d", errno);
	end(id);
	EXPECT_EVENT(theirs, RDMA_CM_EVENT_DISCONNECTED);
	end(peer);
	end(l);
}

/* An id's waiting events move with it to another channel: rdma_migrate_id(3). */
static void migration(void)
{
	struct rdma_event_channel *one = rdma_create_event_channel(), *other = rdma_create_event_channel();
	struct sockaddr_in at;
	struct rdma_cm_id *l = listener(RDMA_PS_TCP, &at), *id = create(one, RDMA_PS_TCP);
	struct pollfd p = { .fd = one->fd, .events = POLLIN };

	MUST(!rdma_resolve_addr(id, NULL, plain(&at), 2000));
	CHECK(poll(&p, 1, 5000) == 1, ".");
	MUST(!rdma_migrate_id(id, other));
	CHECK(id->channel == other && poll(&p, 1, 0) == 0, ".");
	EXPECT_EVENT(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(!rdma_migrate_id(id, NULL)); /* a channel of its own: operations are synchronous now */
	CHECK(!rdma_resolve_route(id, 2000) && id->event && id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED, ".");
	MUST(!rdma_migrate_id(id, one));
	CHECK(!id->event, ".");
	end(id);
	end(l);
	rdma_destroy_event_channel(one);
	rdma_destroy_event_channel(other);
}

/* A readable channel has an event: destroying an id removes its waiting events. */
static void waiting(void)
{
	struct sockaddr_in at;
	struct rdma_cm_id *l = listener(RDMA_PS_TCP, &at), *first = create(ours, RDMA_PS_TCP), *second = create(ours, RDMA_PS_TCP);

	MUST(!rdma_resolve_addr(first, NULL, plain(&at), 2000) && !rdma_resolve_addr(second, NULL, plain(&at), 2000));
	CHECK(readable(ours, 5000), ".");
	end(first);
	EXPECT_EVENT(ours, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!readable(ours, 0), ".");
	MUST(!rdma_resolve_route(second, 2000));
	CHECK(readable(ours, 5000), ".");
	end(second);
	CHECK(!readable(ours, 0), ".");
	end(l);
}

/* Multicast groups: rdma_join_multicast(3), rdma_leave_multicast(3). */
static void groups(void)
{
	struct sockaddr_in at = address(0, 0), group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef4d0109) };
	struct rdma_cm_id *id = create(ours, RDMA_PS_UDP);
	struct rdma_cm_event *e;
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 0xef, [13] = 0x4d, [14] = 1, [15] = 9 };

	MUST(!rdma_bind_addr(id, plain(&at)));
	give_qp(id);
	for (int i = 0; i < 2; i++) {
		MUST(!rdma_join_multicast(id, plain(&group), &group));
		e = TAKE(ours, RDMA_CM_EVENT_MULTICAST_JOIN);
		CHECK(e->status == 0 && e->param.ud.private_data == &group && e->param.ud.qp_num == 0xffffff &&
		      e->param.ud.qkey == RDMA_UDP_QKEY && !memcmp(e->param.ud.ah_attr.grh.dgid.raw, mapped, 16), ": %d", e->status);
		rdma_ack_cm_event(e);
		CHECK(rdma_join_multicast(id, plain(&group), NULL) == -1 && errno == EADDRINUSE, ": %d", errno);
		CHECK(!rdma_leave_multicast(id, plain(&group)), ": %d", errno);
		CHECK(rdma_leave_multicast(id, plain(&group)) == -1 && errno == EADDRNOTAVAIL, ": %d", errno);
	}
	end(id);
}

static const struct { const char *name; void (*run)(void); } tests[] = {
	{ "private data", private_data }, { "ports", ports }, { "nobody", nobody }, { "here", here }, { "options", options },
	{ "migration", migration }, { "waiting", waiting }, { "groups", groups }, { "datagrams", test_datagram_sockets },
	{ "streams", test_stream_sockets },
	{ "kinds", test_kinds_of_sockets }, { "xrc", test_xrc_endpoints }, { "xrc requests", test_xrc_requests },
};

int main(void)
{
	MUST((ours = rdma_create_event_channel()) && (theirs = rdma_create_event_channel()));
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		int before = failures;

		tests[i].run();
		printf("%-12s %s\n", tests[i].name, failures > before ? "FAILED" : "ok");
		fflush(stdout);
	}
	rdma_destroy_event_channel(ours);
	rdma_destroy_event_channel(theirs);
	return failures != 0;
}
