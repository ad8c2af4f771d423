/*
 * The private symbols of libibverbs. Some programs load the distribution's providers (libmlx5, libefa) for their own
 * functions. These import the symbols, so the symbols must exist; they are never called, because there is no device
 * of that kind.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "object.h"

EXPORT bool verbs_allow_disassociate_destroy;

#define STUB(name) \
	EXPORT int name(void) { return ENOSYS; }

STUB(__ioctl_final_num_attrs)
STUB(execute_ioctl)
STUB(ibv_cmd_advise_mr)
STUB(ibv_cmd_alloc_dm)
STUB(ibv_cmd_alloc_mw)
STUB(ibv_cmd_alloc_pd)
STUB(ibv_cmd_attach_mcast)
STUB(ibv_cmd_close_xrcd)
STUB(ibv_cmd_create_ah)
STUB(ibv_cmd_create_counters)
STUB(ibv_cmd_create_cq)
STUB(ibv_cmd_create_cq_ex)
STUB(ibv_cmd_create_flow)
STUB(ibv_cmd_create_flow_action_esp)
STUB(ibv_cmd_create_qp)
STUB(ibv_cmd_create_qp_ex)
STUB(ibv_cmd_create_qp_ex2)
STUB(ibv_cmd_create_rwq_ind_table)
STUB(ibv_cmd_create_srq)
STUB(ibv_cmd_create_srq_ex)
STUB(ibv_cmd_create_wq)
STUB(ibv_cmd_dealloc_mw)
STUB(ibv_cmd_dealloc_pd)
STUB(ibv_cmd_dereg_mr)
STUB(ibv_cmd_destroy_ah)
STUB(ibv_cmd_destroy_counters)
STUB(ibv_cmd_destroy_cq)
STUB(ibv_cmd_destroy_flow)
STUB(ibv_cmd_destroy_flow_action)
STUB(ibv_cmd_destroy_qp)
STUB(ibv_cmd_destroy_rwq_ind_table)
STUB(ibv_cmd_destroy_srq)
STUB(ibv_cmd_destroy_wq)
STUB(ibv_cmd_detach_mcast)
STUB(ibv_cmd_free_dm)
STUB(ibv_cmd_get_context)
STUB(ibv_cmd_modify_cq)
STUB(ibv_cmd_modify_flow_action_esp)
STUB(ibv_cmd_modify_qp)
STUB(ibv_cmd_modify_qp_ex)
STUB(ibv_cmd_modify_srq)
STUB(ibv_cmd_modify_wq)
STUB(ibv_cmd_open_qp)
STUB(ibv_cmd_open_xrcd)
STUB(ibv_cmd_poll_cq)
STUB(ibv_cmd_post_recv)
STUB(ibv_cmd_post_send)
STUB(ibv_cmd_post_srq_recv)
STUB(ibv_cmd_query_context)
STUB(ibv_cmd_query_device_any)
STUB(ibv_cmd_query_mr)
STUB(ibv_cmd_query_port)
STUB(ibv_cmd_query_qp)
STUB(ibv_cmd_query_srq)
STUB(ibv_cmd_read_counters)
STUB(ibv_cmd_reg_dm_mr)
STUB(ibv_cmd_reg_dmabuf_mr)
STUB(ibv_cmd_reg_mr)
STUB(ibv_cmd_req_notify_cq)
STUB(ibv_cmd_rereg_mr)
STUB(ibv_cmd_resize_cq)
STUB(ibv_read_ibdev_sysfs_file)
STUB(verbs_init_cq)

/* Providers register themselves when they are loaded. */
EXPORT void verbs_register_driver_34(const void *ops) { (void)ops; }
EXPORT void verbs_set_ops(void *context, const void *ops) { (void)context, (void)ops; }
EXPORT void verbs_uninit_context(void *context) { (void)context; }
EXPORT void __verbs_log(void *context, uint32_t level, const char *format, ...) { (void)context, (void)level, (void)format; }

EXPORT void *_verbs_init_and_alloc_context(void)
{
	errno = ENOSYS;
	return NULL;
}

EXPORT void *verbs_open_device(void)
{
	errno = ENOSYS;
	return NULL;
}
