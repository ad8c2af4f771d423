/*
 * Prints the layout of every structure of librdmacm's interface. It is compiled once with our header and once with
 * the distribution's (-DSYSTEM); both must print the same.
 */
#include <stddef.h>
#include <stdio.h>
#ifdef SYSTEM
#include <rdma/rdma_cma.h>
#else
#include "../rdmacm/cma.h"
#endif

#define SIZE(t) printf("%s %zu\n", #t, sizeof(struct t))
#define AT(t, f) printf("%s.%s %zu %zu\n", #t, #f, offsetof(struct t, f), sizeof(((struct t *)0)->f))
#define IS(v) printf("%s %lld\n", #v, (long long)(v))

int main(void)
{
	SIZE(ibv_sa_path_rec); AT(ibv_sa_path_rec, slid); AT(ibv_sa_path_rec, raw_traffic); AT(ibv_sa_path_rec, hop_limit);
	AT(ibv_sa_path_rec, reversible); AT(ibv_sa_path_rec, pkey); AT(ibv_sa_path_rec, mtu); AT(ibv_sa_path_rec, preference);
	SIZE(rdma_ib_addr); AT(rdma_ib_addr, pkey); SIZE(rdma_addr); AT(rdma_addr, dst_addr); AT(rdma_addr, addr);
	SIZE(rdma_route); AT(rdma_route, path_rec); AT(rdma_route, num_paths); SIZE(rdma_event_channel);
	SIZE(rdma_cm_id); AT(rdma_cm_id, verbs); AT(rdma_cm_id, channel); AT(rdma_cm_id, context); AT(rdma_cm_id, qp);
	AT(rdma_cm_id, route); AT(rdma_cm_id, ps); AT(rdma_cm_id, port_num); AT(rdma_cm_id, event);
	AT(rdma_cm_id, send_cq_channel); AT(rdma_cm_id, send_cq); AT(rdma_cm_id, recv_cq_channel); AT(rdma_cm_id, recv_cq);
	AT(rdma_cm_id, srq); AT(rdma_cm_id, pd); AT(rdma_cm_id, qp_type);
	SIZE(rdma_conn_param); AT(rdma_conn_param, private_data_len); AT(rdma_conn_param, responder_resources);
	AT(rdma_conn_param, initiator_depth); AT(rdma_conn_param, flow_control); AT(rdma_conn_param, retry_count);
	AT(rdma_conn_param, rnr_retry_count); AT(rdma_conn_param, srq); AT(rdma_conn_param, qp_num);
	SIZE(rdma_ud_param); AT(rdma_ud_param, ah_attr); AT(rdma_ud_param, qp_num); AT(rdma_ud_param, qkey);
	SIZE(rdma_cm_event); AT(rdma_cm_event, listen_id); AT(rdma_cm_event, event); AT(rdma_cm_event, status);
	AT(rdma_cm_event, param);
	SIZE(rdma_addrinfo); AT(rdma_addrinfo, ai_port_space); AT(rdma_addrinfo, ai_src_len); AT(rdma_addrinfo, ai_src_addr);
	AT(rdma_addrinfo, ai_dst_canonname); AT(rdma_addrinfo, ai_route); AT(rdma_addrinfo, ai_connect_len);
	AT(rdma_addrinfo, ai_next);
	SIZE(rdma_cm_join_mc_attr_ex); AT(rdma_cm_join_mc_attr_ex, join_flags); AT(rdma_cm_join_mc_attr_ex, addr);
	IS(RDMA_CM_EVENT_ROUTE_ERROR); IS(RDMA_CM_EVENT_ESTABLISHED); IS(RDMA_CM_EVENT_TIMEWAIT_EXIT); IS(RDMA_PS_IPOIB);
	IS(RDMA_PS_TCP); IS(RDMA_PS_UDP); IS(RDMA_PS_IB); IS(RDMA_UDP_QKEY); IS(RDMA_MAX_RESP_RES); IS(RDMA_MAX_INIT_DEPTH);
	IS(RAI_PASSIVE); IS(RAI_NUMERICHOST); IS(RAI_NOROUTE); IS(RAI_FAMILY); IS(RDMA_CM_JOIN_MC_ATTR_ADDRESS);
	IS(RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS); IS(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER); IS(RDMA_OPTION_IB);
	IS(RDMA_OPTION_ID_TOS); IS(RDMA_OPTION_ID_REUSEADDR); IS(RDMA_OPTION_ID_AFONLY); IS(RDMA_OPTION_ID_ACK_TIMEOUT);
	IS(RDMA_OPTION_IB_PATH);
	return 0;
}
