/* Queue pairs of ids, with the queues that they need and the program did not supply. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

/* destroy_cqs destroys the CQs that were created for an id, but not that of its SRQ for extended reliable connections. */
static int destroy_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return 0;
	struct ibv_cq *recv = id->recv_cq_channel ? id->recv_cq : NULL, *send = id->send_cq_channel ? id->send_cq : NULL;

	if (recv) {
		ibv_destroy_cq(recv);
		ibv_destroy_comp_channel(id->recv_cq_channel);
		id->recv_cq_channel = NULL;
	}
	if (send && send != recv)
		ibv_destroy_cq(send);
	if (id->send_cq_channel) {
		ibv_destroy_comp_channel(id->send_cq_channel);
		id->send_cq_channel = NULL;
	}
	id->recv_cq = id->send_cq = NULL;
	return 0;
}

static int create_cq(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->verbs, depth ? (int)depth : 1, id, *channel, 0);
	if (*cq)
		return 0;
	int error = errno;

	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return error;
}

static int complete_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *a)
{
	bool sends = a->qp_type != IBV_QPT_XRC_RECV, receives = sends && a->qp_type != IBV_QPT_XRC_SEND;
	int error = 0;

	if (receives && !a->recv_cq && !id->recv_cq)
		error = create_cq(id, a->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
	if (!error && sends && !a->send_cq && !id->send_cq)
		error = create_cq(id, a->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
	if (error) {
		destroy_cqs(id);
		return error;
	}
	a->recv_cq = a->recv_cq ? a->recv_cq : id->recv_cq;
	a->send_cq = a->send_cq ? a->send_cq : id->send_cq;
	return 0;
}

enum { ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

/* ready moves a QP to the state in which receives can be posted; one for datagrams to the state in which it can send.
 * */
static int ready(struct ibv_qp *qp, bool datagrams)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY, .qp_access_flags = ALL_ACCESS };
	int error = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));

	if (error || !datagrams)
		return error;
	a.qp_state = IBV_QPS_RTR;
	error = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	return error ? error : ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *qp;
	int error;

	if (id->qp || !id->verbs)
		return result(EINVAL);
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd) {
		a->comp_mask |= IBV_QP_INIT_ATTR_PD;
		a->pd = id->pd;
	}
	if (a->pd->context != id->verbs || (id->recv_cq && a->recv_cq && id->recv_cq != a->recv_cq) ||
	    (id->send_cq && a->send_cq && id->send_cq != a->send_cq))
		return result(EINVAL);
	error = complete_cqs(id, a);
	if (error)
		return result(error);
	if (a->qp_type == IBV_QPT_XRC_RECV && (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !a->xrcd)) {
		a->xrcd = device_xrcd(id->verbs);
		if (!a->xrcd)
			return -1;
		a->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	if (!a->srq && a->qp_type != IBV_QPT_XRC_SEND && a->qp_type != IBV_QPT_XRC_RECV)
		a->srq = id->srq;
	qp = to_context(id->verbs)->verbs.create_qp_ex(id->verbs, a);
	error = qp ? ready(qp, a->qp_type == IBV_QPT_UD) : errno;
	if (error) {
		if (qp)
			ibv_destroy_qp(qp);
		destroy_cqs(id);
		return result(error);
	}
	id->pd = a->pd;
	id->qp = qp;
	return 0;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ibv_qp_init_attr_ex x = { .qp_context = a->qp_context, .send_cq = a->send_cq, .recv_cq = a->recv_cq,
		.srq = a->srq, .cap = a->cap, .qp_type = a->qp_type, .sq_sig_all = a->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	if (rdma_create_qp_ex(id, &x))
		return -1;
	a->send_cq = x.send_cq;
	a->recv_cq = x.recv_cq;
	a->srq = x.srq;
	a->cap = x.cap;
	return 0;
}

EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		ibv_destroy_qp(id->qp);
	id->qp = NULL;
	groups_forget_qp(to_id(id));
	destroy_cqs(id);
}

/* complete_xrc supplies the domain and the CQ of an SRQ for extended reliable connections. Returns 0 or an errno. */
static int complete_xrc(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *a)
{
	int error = 0;

	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !a->xrcd) {
		a->xrcd = device_xrcd(id->verbs);
		if (!a->xrcd)
			return errno;
		a->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	}
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !a->cq) {
		if (!id->recv_cq)
			error = create_cq(id, a->attr.max_wr, &id->recv_cq_channel, &id->recv_cq);
		a->cq = id->recv_cq;
		a->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	}
	return error;
}

EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *a)
{
	struct ibv_srq *srq;
	int error;

	if (id->srq || !id->verbs)
		return result(EINVAL);
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd) {
		a->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		a->pd = id->pd;
	}
	if (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type == IBV_SRQT_XRC) {
		error = complete_xrc(id, a);
		if (error)
			return result(error);
	}
	srq = to_context(id->verbs)->verbs.create_srq_ex(id->verbs, a);
	if (!srq) {
		error = errno;
		if (id->qp_type == IBV_QPT_XRC_RECV)
			destroy_cqs(id);
		return result(error);
	}
	id->srq = srq;
	return 0;
}

EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct ibv_srq_init_attr_ex x = { .srq_context = a->srq_context, .attr = a->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .pd = pd,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC };

	if (rdma_create_srq_ex(id, &x))
		return -1;
	a->attr = x.attr;
	return 0;
}

EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (!id->qp || id->qp_type == IBV_QPT_XRC_RECV)
		destroy_cqs(id);
}

EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	struct id *i = to_id(id);
	struct svpi_attributes_args q = { i->handle, (uint32_t)a->qp_state };
	struct svpi_modify_qp m;
	int error;

	if (!id->verbs)
		return result(EINVAL);
	error = svpi_call(i->home->svpi, SVPI_CM_ATTRIBUTES, &q, sizeof(q), &m, sizeof(m));
	if (error)
		return result(error);
	*mask = svpi_qp_attributes(&m, a);
	if (*mask & IBV_QP_PKEY_INDEX)
		*mask |= IBV_QP_PORT;
	return 0;
}
