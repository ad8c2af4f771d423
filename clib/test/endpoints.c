/* Extended reliable connections by librdmacm (RDMA_PS_IB), with synchronous endpoints and with events. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>

#include "bed.h"
#include "manager.h"

enum { ROUNDS = 3 };

static char port[8];

/* found returns an endpoint's addresses: of the first adapter. */
static struct rdma_addrinfo *found(int flags, enum ibv_qp_type type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_IB, .ai_qp_type = type }, *res;
	struct sockaddr_in at = address(0, 0);
	char name[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &at.sin_addr, name, sizeof(name));
	MUST(!rdma_getaddrinfo(name, port, &hints, &res));
	CHECK(res->ai_port_space == RDMA_PS_IB && res->ai_qp_type == (int)type, ".");
	return res;
}

/* serve takes a connection for each round: an SRQ of the endpoint's own receives a message, and another one too. */
static void *serve(void *listening)
{
	struct rdma_cm_id *l = listening, *id;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };
		struct rdma_conn_param p = { .responder_resources = RDMA_MAX_RESP_RES, .rnr_retry_count = 7 };
		uint32_t numbers[2];
		uint8_t got[2][64] = { 0 };
		struct ibv_mr *mr;
		struct ibv_wc wc;

		MUST(!rdma_get_request(l, &id));
		CHECK(id->qp_type == IBV_QPT_XRC_RECV && id->qp && id->qp->qp_type == IBV_QPT_XRC_RECV && id->ps == RDMA_PS_IB, ".");
		CHECK(id->event->param.conn.private_data_len >= 5 && !memcmp(id->event->param.conn.private_data, "hello", 5), ".");
		MUST(!rdma_create_srq(id, NULL, &a));
		CHECK(rdma_create_srq(id, NULL, &a) == -1 && errno == EINVAL, ": it has one");
		CHECK(id->recv_cq && id->recv_cq_channel && !id->send_cq, ".");
		CHECK(!ibv_get_srq_num(id->srq, &numbers[0]) && numbers[0], ".");

		/* another queue of the same domain, which the library has opened */
		struct ibv_srq_init_attr_ex x = { .attr = { .max_wr = 4, .max_sge = 1 }, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
						  .srq_type = IBV_SRQT_XRC };
		struct ibv_srq *first = id->srq;

		id->srq = NULL; /* the program keeps it */
		x.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
		x.cq = id->recv_cq;
		MUST(!rdma_create_srq_ex(id, &x));
		CHECK(x.xrcd && x.pd == id->pd && !ibv_get_srq_num(id->srq, &numbers[1]) && numbers[1] != numbers[0], ".");

		MUST(mr = rdma_reg_msgs(id, got, sizeof(got)));
		MUST(!rdma_post_recv(id, got, got[1], 64, mr));
		struct ibv_srq *second = id->srq;

		id->srq = first;
		MUST(!rdma_post_recv(id, got, got[0], 64, mr));
		p.private_data = numbers;
		p.private_data_len = sizeof(numbers);
		MUST(!rdma_accept(id, &p));
		for (int k = 0; k < 2; k++) {
			MUST(rdma_get_recv_comp(id, &wc) == 1);
			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 64 && wc.qp_num == id->qp->qp_num, ": %s",
			      ibv_wc_status_str(wc.status));
		}
		CHECK(got[0][0] == 1 && got[1][63] == 2, ": %u, %u", got[0][0], got[1][63]);
		MUST(!rdma_disconnect(id));
		CHECK(!ibv_destroy_srq(second), ".");
		rdma_dereg_mr(mr);
		if (i) /* in either order */
			rdma_destroy_srq(id);
		rdma_destroy_ep(id);
	}
	return NULL;
}

void test_xrc_endpoints(void)
{
	struct ibv_qp_init_attr target = { .cap = { .max_recv_wr = 1, .max_recv_sge = 1 } };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *l;
	pthread_t server;

	strcpy(port, "0");
	res = found(RAI_PASSIVE, IBV_QPT_XRC_RECV);
	MUST(!rdma_create_ep(&l, res, NULL, &target) && !rdma_listen(l, 4));
	rdma_freeaddrinfo(res);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(l)));
	MUST(!pthread_create(&server, NULL, serve, l));
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_qp_init_attr a = { .cap = { .max_send_wr = 2, .max_send_sge = 1, .max_inline_data = 64 }, .sq_sig_all = 1 };
		struct rdma_conn_param p = { .private_data = "hello", .private_data_len = 5, .initiator_depth = 1, .retry_count = 7 };
		uint32_t numbers[2];
		struct rdma_cm_id *id;
		struct ibv_wc wc;

		res = found(0, IBV_QPT_XRC_SEND);
		MUST(!rdma_create_ep(&id, res, NULL, &a));
		rdma_freeaddrinfo(res);
		CHECK(id->qp->qp_type == IBV_QPT_XRC_SEND && id->send_cq && !id->recv_cq, ".");
		MUST(!rdma_connect(id, &p));
		CHECK(id->event->param.conn.qp_num && id->event->param.conn.srq == 1 && id->event->param.conn.flow_control == 0, ".");
		memcpy(numbers, id->event->param.conn.private_data, sizeof(numbers));
		for (int k = 0; k < 2; k++) {
			uint8_t text[64];
			struct ibv_sge s = { .addr = (uintptr_t)text, .length = sizeof(text) };
			struct ibv_send_wr *bad, wr = { .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
							.qp_type.xrc.remote_srqn = numbers[k] };

			memset(text, k + 1, sizeof(text));
			MUST(!ibv_post_send(id->qp, &wr, &bad));
			MUST(rdma_get_send_comp(id, &wc) == 1);
			CHECK(wc.status == IBV_WC_SUCCESS, ": %s", ibv_wc_status_str(wc.status));
		}
		rdma_disconnect(id);
		rdma_destroy_ep(id);
	}
	pthread_join(server, NULL);
	rdma_destroy_ep(l);
}

static struct rdma_cm_event *take(struct rdma_event_channel *c, enum rdma_cm_event_type want, int line)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	MUST(poll(&p, 1, 10000) == 1 && !rdma_get_cm_event(c, &e));
	check(e->event == want, __FILE__, line, "e->event == want", ": %s (%d), want %s", rdma_event_str(e->event), e->status,
	      rdma_event_str(want));
	return e;
}

/* Requests for another type of queue pair than a listener's are refused (REJ reason 9), and the port spaces are apart. */
void test_xrc_requests(void)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_addrinfo *res;
	struct rdma_cm_id *l, *id, *plain;
	struct rdma_cm_event *e;
	struct sockaddr_in at;

	MUST(c);
	CHECK(rdma_create_id(c, &id, NULL, RDMA_PS_IPOIB) == -1 && errno == EOPNOTSUPP, ": %d", errno);
	strcpy(port, "0");
	res = found(RAI_PASSIVE, IBV_QPT_XRC_RECV);
	MUST(!rdma_create_ep(&l, res, NULL, NULL) && !rdma_listen(l, 4)); /* for XRC */
	rdma_freeaddrinfo(res);
	at = address(0, rdma_get_src_port(l));
	MUST(!rdma_create_id(c, &plain, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(plain, (struct sockaddr *)&at), ": the same port of another space");

	MUST(!rdma_create_id(c, &id, NULL, RDMA_PS_IB)); /* for RC, as in Linux */
	CHECK(id->qp_type == IBV_QPT_RC, ".");
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 2000));
	rdma_ack_cm_event(take(c, RDMA_CM_EVENT_ADDR_RESOLVED, __LINE__));
	MUST(!rdma_resolve_route(id, 2000));
	rdma_ack_cm_event(take(c, RDMA_CM_EVENT_ROUTE_RESOLVED, __LINE__));

	struct ibv_qp_init_attr a = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	MUST(!rdma_create_qp(id, NULL, &a));
	MUST(!rdma_connect(id, NULL));
	e = take(c, RDMA_CM_EVENT_REJECTED, __LINE__);
	CHECK(e->status == 9, ": %d", e->status);
	rdma_ack_cm_event(e);
	rdma_destroy_qp(id);
	CHECK(!rdma_destroy_id(id) && !rdma_destroy_id(plain), ".");
	rdma_destroy_ep(l);

	/* the other way round: an endpoint for XRC and a listener for RC */
	struct ibv_qp_init_attr x = { .cap = { .max_send_wr = 1, .max_send_sge = 1 } };

	MUST(!rdma_create_id(c, &l, NULL, RDMA_PS_IB));
	at = address(0, 0);
	MUST(!rdma_bind_addr(l, (struct sockaddr *)&at) && !rdma_listen(l, 4));
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(l)));
	res = found(0, IBV_QPT_XRC_SEND);
	MUST(!rdma_create_ep(&id, res, NULL, &x));
	rdma_freeaddrinfo(res);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	CHECK(!rdma_init_qp_attr(id, &attr, &mask) && mask & IBV_QP_ACCESS_FLAGS, ": %#x", mask);
	CHECK(rdma_connect(id, NULL) == -1 && errno == ECONNREFUSED && id->event && id->event->status == 9, ": %d", errno);
	rdma_destroy_ep(id);
	CHECK(!rdma_destroy_id(l), ".");

	/* an endpoint's queue pair has to be of its type: the TCP port space has no XRC */
	struct rdma_addrinfo odd = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_XRC_SEND };
	struct ibv_qp_init_attr again = { .cap = { .max_send_wr = 1, .max_send_sge = 1 } }; /* x names the first one's CQ now */

	at = address(0, htons(7));
	odd.ai_dst_addr = (struct sockaddr *)&at;
	odd.ai_dst_len = sizeof(at);
	MUST(!rdma_create_ep(&id, &odd, NULL, &again));
	CHECK(rdma_connect(id, NULL) == -1 && errno == EINVAL, ": %d", errno);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(c);
}
