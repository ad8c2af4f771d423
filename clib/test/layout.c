/*
 * Prints the layout of every structure of libibverbs' interface. It is compiled once with our header and once with
 * the distribution's (-DSYSTEM); both must print the same.
 */
#include <stdio.h>
#ifdef SYSTEM
#include <infiniband/verbs.h>
#else
#include "../verbs/verbs.h"
#endif

#define SIZE(t) printf("%s %zu\n", #t, sizeof(struct t))
#define AT(t, f) printf("%s.%s %zu %zu\n", #t, #f, offsetof(struct t, f), sizeof(((struct t *)0)->f))
#define IS(v) printf("%s %lld\n", #v, (long long)(v))

int main(void)
{
	SIZE(ibv_gid_entry); AT(ibv_gid_entry, gid_type); AT(ibv_gid_entry, ndev_ifindex);
	SIZE(ibv_device_attr); AT(ibv_device_attr, max_mr_size); AT(ibv_device_attr, max_sge);
	AT(ibv_device_attr, atomic_cap); AT(ibv_device_attr, max_ah); AT(ibv_device_attr, max_srq_sge);
	AT(ibv_device_attr, phys_port_cnt);
	SIZE(ibv_device_attr_ex); AT(ibv_device_attr_ex, odp_caps); AT(ibv_device_attr_ex, completion_timestamp_mask);
	AT(ibv_device_attr_ex, rss_caps); AT(ibv_device_attr_ex, packet_pacing_caps); AT(ibv_device_attr_ex, tm_caps);
	AT(ibv_device_attr_ex, cq_mod_caps); AT(ibv_device_attr_ex, pci_atomic_caps); AT(ibv_device_attr_ex, phys_port_cnt_ex);
	SIZE(ibv_port_attr); AT(ibv_port_attr, lid); AT(ibv_port_attr, link_layer); AT(ibv_port_attr, port_cap_flags2);
	SIZE(ibv_async_event); AT(ibv_async_event, event_type);
	SIZE(ibv_wc); AT(ibv_wc, imm_data); AT(ibv_wc, wc_flags); AT(ibv_wc, dlid_path_bits);
	SIZE(ibv_mw_bind_info); SIZE(ibv_pd); SIZE(ibv_mr); AT(ibv_mr, rkey); SIZE(ibv_mw); AT(ibv_mw, type);
	SIZE(ibv_global_route); SIZE(ibv_grh); SIZE(ibv_ah_attr); AT(ibv_ah_attr, port_num); SIZE(ibv_ah);
	SIZE(ibv_srq_attr); SIZE(ibv_srq_init_attr); SIZE(ibv_srq_init_attr_ex); AT(ibv_srq_init_attr_ex, tm_cap);
	SIZE(ibv_qp_cap); SIZE(ibv_qp_init_attr); AT(ibv_qp_init_attr, sq_sig_all);
	SIZE(ibv_qp_init_attr_ex); AT(ibv_qp_init_attr_ex, pd); AT(ibv_qp_init_attr_ex, send_ops_flags);
	SIZE(ibv_wq); AT(ibv_wq, wq_num); AT(ibv_wq, post_recv); AT(ibv_wq, comp_mask); SIZE(ibv_wq_init_attr);
	AT(ibv_wq_init_attr, create_flags); SIZE(ibv_wq_attr); SIZE(ibv_rwq_ind_table); AT(ibv_rwq_ind_table, ind_tbl_num);
	SIZE(ibv_rwq_ind_table_init_attr); AT(ibv_rwq_ind_table_init_attr, ind_tbl); AT(ibv_qp_init_attr_ex, max_tso_header);
	AT(ibv_qp_init_attr_ex, rwq_ind_tbl); AT(ibv_qp_init_attr_ex, rx_hash_conf); SIZE(ibv_rx_hash_conf); IS(IBV_WQS_UNKNOWN);
	AT(ibv_send_wr, tso); AT(verbs_context, destroy_rwq_ind_table); AT(verbs_context, create_wq); AT(verbs_context, modify_wq);
	SIZE(ibv_qp_open_attr); SIZE(ibv_qp_attr); AT(ibv_qp_attr, ah_attr); AT(ibv_qp_attr, alt_timeout);
	AT(ibv_qp_attr, rate_limit); SIZE(ibv_qp_rate_limit_attr); AT(ibv_qp_rate_limit_attr, comp_mask);
	AT(verbs_context, modify_qp_rate_limit);
	SIZE(ibv_sge); SIZE(ibv_send_wr); AT(ibv_send_wr, wr); AT(ibv_send_wr, bind_mw); AT(ibv_send_wr, imm_data);
	SIZE(ibv_recv_wr); SIZE(ibv_mw_bind); SIZE(ibv_srq); AT(ibv_srq, events_completed);
	SIZE(ibv_qp); AT(ibv_qp, state); AT(ibv_qp, events_completed); /* ibv_qp_ex grows with the library */ AT(ibv_qp_ex, wr_send);
	AT(ibv_qp_ex, wr_set_sge); AT(ibv_qp_ex, wr_complete); AT(ibv_qp_ex, wr_atomic_write); SIZE(ibv_ece);
	SIZE(ibv_comp_channel); SIZE(ibv_cq); AT(ibv_cq, async_events_completed);
	SIZE(ibv_cq_ex); AT(ibv_cq_ex, status); AT(ibv_cq_ex, start_poll); AT(ibv_cq_ex, read_qp_num);
	AT(ibv_cq_ex, read_completion_wallclock_ns); SIZE(ibv_modify_cq_attr); SIZE(ibv_cq_init_attr_ex);
	AT(ibv_cq_init_attr_ex, wc_flags); AT(ibv_cq_init_attr_ex, parent_domain); SIZE(ibv_parent_domain_init_attr);
	SIZE(ibv_values_ex); SIZE(ibv_device); AT(ibv_device, name); AT(ibv_device, ibdev_path);
	SIZE(ibv_context_ops); AT(ibv_context_ops, alloc_mw); AT(ibv_context_ops, poll_cq); AT(ibv_context_ops, req_notify_cq);
	AT(ibv_context_ops, post_srq_recv); AT(ibv_context_ops, post_send); AT(ibv_context_ops, post_recv);
	SIZE(ibv_context); AT(ibv_context, cmd_fd); AT(ibv_context, async_fd); AT(ibv_context, abi_compat);
	SIZE(verbs_context); AT(verbs_context, query_port); AT(verbs_context, alloc_dm); AT(verbs_context, reg_dm_mr);
	AT(verbs_context, alloc_parent_domain); AT(verbs_context, alloc_td); AT(verbs_context, modify_cq);
	AT(verbs_context, post_srq_ops); SIZE(ibv_ops_wr); AT(ibv_ops_wr, tm); AT(ibv_ops_wr, tm.handle); AT(ibv_ops_wr, tm.add.tag);
	IS(IBV_WC_TM_NO_TAG); IS(IBV_WC_TM_DATA_VALID); IS(IBV_WR_TAG_SYNC); IS(IBV_OPS_TM_SYNC);
	AT(verbs_context, query_rt_values); AT(verbs_context, create_cq_ex); AT(verbs_context, query_device_ex);
	AT(verbs_context, open_qp); AT(verbs_context, create_qp_ex); AT(verbs_context, create_srq_ex);
	AT(verbs_context, get_srq_num); AT(verbs_context, open_xrcd); AT(verbs_context, sz); AT(verbs_context, context);
	IS(IBV_RATE_1200_GBPS); IS(IBV_RATE_400_GBPS); IS(IBV_RATE_5_GBPS); IS(IBV_EVENT_WQ_FATAL);
	IS(IBV_WC_TM_RNDV_INCOMPLETE); IS(IBV_WC_RECV_RDMA_WITH_IMM); IS(IBV_QPT_XRC_RECV); IS(IBV_WR_TSO);
	IS(IBV_QPS_UNKNOWN); IS(IBV_QP_RATE_LIMIT); IS(IBV_ACCESS_RELAXED_ORDERING); IS(IBV_ACCESS_OPTIONAL_RANGE);
	IS(IBV_WC_WITH_INV); IS(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	return 0;
}
