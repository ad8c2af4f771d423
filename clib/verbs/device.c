/* Devices: one for each adapter of the driver. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "object.h"

/* fill describes the device of an adapter. Two ports of one device have its node GUID, but are two devices here. */
static void fill(struct svpi_device *d, const struct svpi_adapter_info *info, struct svpi *s)
{
	uint32_t number = info->index;
	struct svpi_adapter_args q = { number };
	struct svpi_port_info p;

	d->info = *info;
	d->node_guid = svpi_call(s, SVPI_PORT, &q, sizeof(q), &p, sizeof(p)) ? info->guid : p.node_guid;
	memcpy(d->driver, s->about.driver, sizeof(d->driver) - 1);
	d->device.node_type = IBV_NODE_CA;
	d->device.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->device.name, sizeof(d->device.name), "softvpi%u", number);
	snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", number);
	snprintf(d->device.dev_path, sizeof(d->device.dev_path), "/sys/class/infiniband_verbs/uverbs%u", number);
	snprintf(d->device.ibdev_path, sizeof(d->device.ibdev_path), "/sys/class/infiniband/softvpi%u", number);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void drop(struct svpi_device *d)
{
	int left;

	pthread_mutex_lock(&lock);
	left = --d->references;
	pthread_mutex_unlock(&lock);
	if (left == 0)
		free(d);
}

/* say_why says why this program sees no device: where a driver runs and turns it away, since it then has a reason that the program does not
 * know, once; and always if that is asked for. */
static void say_why(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (getenv("SOFTVPI_DEBUG") || (svpi_refusal() && !atomic_flag_test_and_set(&said)))
		fprintf(stderr, "softvpi: %s\n", svpi_detail());
}

/* If there is no driver the list is empty. That is not an error: programs that can do without RDMA ask first. errno then says why. */
EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	struct svpi *s = svpi_get();
	struct svpi_adapter_info *info = NULL;
	struct ibv_device **list;
	size_t n = 0;
	int error = s ? 0 : errno;

	if (num)
		*num = 0;
	if (!s)
		say_why();
	if (s && svpi_list(s, SVPI_ADAPTERS, NULL, 0, sizeof(*info), (void **)&info, &n))
		n = 0;
	list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		struct svpi_device *d = calloc(1, sizeof(*d));

		if (!d)
			break;
		d->references = 1;
		fill(d, &info[i], s);
		list[i] = &d->device;
		if (num)
			*num = (int)i + 1;
	}
	free(info);
	if (s)
		svpi_put(s);
	if (list && error)
		errno = error;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	for (int i = 0; list && list[i]; i++)
		drop(to_device(list[i]));
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }

EXPORT int ibv_get_device_index(struct ibv_device *d) { return (int)to_device(d)->info.index; }

EXPORT uint64_t ibv_get_device_guid(struct ibv_device *d) { return htobe64(to_device(d)->node_guid); }

static void set_ops(struct svpi_context *c)
{
	struct verbs_context *v = &c->verbs;

	v->sz = sizeof(*v);
	v->context.abi_compat = VERBS_ABI_IS_EXTENDED;
	v->query_port = svpi_query_port;
	v->advise_mr = svpi_advise_mr;
	v->reg_dm_mr = svpi_reg_dm_mr;
	v->alloc_dm = svpi_alloc_dm;
	v->free_dm = svpi_free_dm;
	v->query_device_ex = svpi_query_device_ex;
	v->query_rt_values = svpi_query_rt_values;
	v->create_cq_ex = svpi_create_cq_ex;
	v->modify_cq = svpi_modify_cq;
	v->create_qp_ex = svpi_create_qp_ex;
	v->create_srq_ex = svpi_create_srq_ex;
	v->post_srq_ops = svpi_post_srq_ops;
	v->get_srq_num = svpi_get_srq_num;
	v->open_xrcd = svpi_open_xrcd;
	v->close_xrcd = svpi_close_xrcd;
	v->modify_qp_rate_limit = svpi_modify_qp_rate_limit;
	v->open_qp = svpi_open_qp;
	v->create_flow = svpi_create_flow;
	v->destroy_flow = svpi_destroy_flow;
	v->create_wq = svpi_create_wq;
	v->modify_wq = svpi_modify_wq;
	v->destroy_wq = svpi_destroy_wq;
	v->create_rwq_ind_table = svpi_create_rwq_ind_table;
	v->destroy_rwq_ind_table = svpi_destroy_rwq_ind_table;
	v->alloc_parent_domain = svpi_alloc_parent_domain;
	v->alloc_td = svpi_alloc_td;
	v->dealloc_td = svpi_dealloc_td;
	v->context.ops.alloc_mw = svpi_alloc_mw;
	v->context.ops.bind_mw = svpi_bind_mw;
	v->context.ops.dealloc_mw = svpi_dealloc_mw;
	v->context.ops.poll_cq = svpi_poll_cq;
	v->context.ops.req_notify_cq = svpi_req_notify_cq;
	v->context.ops.post_srq_recv = svpi_post_srq_recv;
	v->context.ops.post_send = svpi_post_send;
	v->context.ops.post_recv = svpi_post_recv;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct svpi_context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->svpi = svpi_get();
	if (!c->svpi) {
		free(c);
		return NULL;
	}
	c->adapter = to_device(device)->info.index;
	set_ops(c);
	c->verbs.context.device = device;
	c->verbs.context.num_comp_vectors = 1;
	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	pthread_mutex_init(&c->cqs.lock, NULL);
	pthread_mutex_init(&c->qps.lock, NULL);
	pthread_mutex_init(&c->srqs.lock, NULL);
	pthread_mutex_init(&c->mrs.lock, NULL);
	int error = svpi_events_open(c);

	if (error) {
		svpi_put(c->svpi);
		free(c);
		errno = error;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	to_device(device)->references++;
	pthread_mutex_unlock(&lock);
	svpi_export(c);
	return &c->verbs.context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct svpi_context *c = to_context(context);

	svpi_events_close(c);
	svpi_export_end(c);
	free(c->cqs.rows);
	free(c->qps.rows);
	free(c->srqs.rows);
	free(c->mrs.rows);
	drop(to_device(context->device));
	svpi_put(c->svpi);
	free(c);
	return 0;
}

bool svpi_firmware_of(struct svpi *s, uint32_t adapter, struct svpi_firmware *f)
{
	struct svpi_adapter_args q = { adapter };

	if (s->about.minor < SVPI_FIRMWARE_MINOR || svpi_call(s, SVPI_FIRMWARE, &q, sizeof(q), f, sizeof(*f)))
		return false;
	f->version[sizeof(f->version) - 1] = f->board[sizeof(f->board) - 1] = 0;
	return true;
}

/* Of a driver too old to tell the version is the driver's own, and the board empty. */
EXPORT void svpi_identity(struct ibv_context *context, char version[64], char board[64])
{
	struct svpi_device *d = to_device(context->device);
	const char *own = strrchr(d->driver, ' ');
	struct svpi_firmware f = { .board[0] = 0 };

	if (svpi_firmware_of(to_svpi(context), d->info.index, &f))
		memcpy(version, f.version, sizeof(f.version));
	else
		snprintf(version, sizeof(f.version), "%s", own ? own + 1 : d->driver);
	memcpy(board, f.board, sizeof(f.board));
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	struct svpi_device *d = to_device(context->device);
	const struct svpi_adapter_info *i = &d->info;
	struct svpi_port_info p;
	char board[64];

	memset(a, 0, sizeof(*a));
	svpi_identity(context, a->fw_ver, board);
	a->node_guid = a->sys_image_guid = htobe64(i->guid);
	a->max_mr_size = i->max_region;
	a->page_size_cap = ~(uint64_t)4095;
	a->vendor_id = i->vendor_id;
	a->vendor_part_id = i->device_id;
	a->max_qp = (int)i->max_qp;
	a->max_qp_wr = (int)i->max_qp_depth;
	a->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD |
			      IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
			      IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	if (svpi_has_xrc(to_svpi(context)))
		a->device_cap_flags |= IBV_DEVICE_XRC;
	if (svpi_frame_offloads(context) & SVPI_FRAME_CHECKSUMS)
		a->device_cap_flags |= IBV_DEVICE_RAW_IP_CSUM;
	a->max_sge = a->max_sge_rd = a->max_srq_sge = (int)i->max_sge;
	a->max_cq = (int)i->max_cq;
	a->max_cqe = (int)(i->max_cq_depth - SVPI_CQ_SPARE);
	a->max_mr = (int)i->max_mr;
	a->max_mw = (int)i->max_mw;
	a->max_pd = (int)i->max_pd;
	a->max_qp_rd_atom = (int)i->max_read_responder;
	a->max_qp_init_rd_atom = (int)i->max_read_initiator;
	a->max_res_rd_atom = a->max_qp_rd_atom * a->max_qp;
	a->atomic_cap = i->processor_atomics ? IBV_ATOMIC_GLOB : IBV_ATOMIC_HCA;
	a->max_ah = (int)i->max_ah;
	a->max_srq = (int)i->max_srq;
	a->max_srq_wr = (int)i->max_srq_depth;
	a->max_mcast_grp = a->max_mcast_qp_attach = a->max_total_mcast_qp_attach = (int)i->max_multicast; /* the driver has one limit for all three */
	a->max_pkeys = 1;
	if (!svpi_port(context, 1, &p)) {
		a->max_pkeys = on_fabric(context) ? 128 : 1;
		a->node_guid = a->sys_image_guid = htobe64(p.node_guid);
	}
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = 1;
	return 0;
}

/* What is offered on demand: everything, because no memory is ever pinned. */
static void fill_odp(const struct svpi *s, struct ibv_device_attr_ex *a)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;

	if (!svpi_pages_on_demand(s))
		return;
	a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a->odp_caps.per_transport_caps.ud_odp_caps = both;
	a->odp_caps.per_transport_caps.uc_odp_caps = both | IBV_ODP_SUPPORT_WRITE;
	a->odp_caps.per_transport_caps.rc_odp_caps = both | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	a->xrc_odp_caps = a->odp_caps.per_transport_caps.rc_odp_caps;
	if (svpi_has_placed(s))
		a->odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_FLUSH | IBV_ODP_SUPPORT_ATOMIC_WRITE;
}

int svpi_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
			 struct ibv_device_attr_ex *out, size_t size)
{
	struct ibv_device_attr_ex a;

	if (in && in->comp_mask)
		return EINVAL;
	memset(&a, 0, sizeof(a));
	ibv_query_device(context, &a.orig_attr);
	fill_odp(to_svpi(context), &a);
	svpi_fill_tag_caps(to_svpi(context), &a);
	a.max_dm_size = svpi_dm_size(context);
	if (svpi_has_times(to_svpi(context))) {
		a.completion_timestamp_mask = UINT64_MAX;
		a.hca_core_clock = 1000000; /* kHz: timestamps count nanoseconds */
	}
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	if (svpi_frame_offloads(context) & SVPI_FRAME_FLAGS)
		a.device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS;
	svpi_fill_frame_caps(context, &a);
	if (svpi_has_placed(to_svpi(context)))
		a.device_cap_flags_ex |= IBV_DEVICE_FLUSH_GLOBAL | IBV_DEVICE_ATOMIC_WRITE;
	if (svpi_has_limits(to_svpi(context)))
		a.packet_pacing_caps = (struct ibv_packet_pacing_caps){ SVPI_LEAST_RATE, UINT32_MAX,
			1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | 1 << IBV_QPT_RAW_PACKET | 1 << IBV_QPT_XRC_SEND };
	a.cq_mod_caps.max_cq_count = UINT16_MAX;
	a.cq_mod_caps.max_cq_period = UINT16_MAX;
	a.phys_port_cnt_ex = 1;
	memset(out, 0, size);
	memcpy(out, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* The raw clock is one number, that of completion timestamps, and stands in tv_nsec alone, as programs expect it of
 * cards. */
int svpi_query_rt_values(struct ibv_context *context, struct ibv_values_ex *v)
{
	struct timespec t;

	if (v->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (!svpi_has_times(to_svpi(context)))
		return EOPNOTSUPP;
	if (v->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		v->raw_clock.tv_sec = 0;
		v->raw_clock.tv_nsec = t.tv_sec * 1000000000L + t.tv_nsec;
	}
	return 0;
}
