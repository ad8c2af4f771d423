/*
 * The interface of librdmacm against which unmodified programs are compiled: names, numbers and layouts, as they are
 * in the programs' binaries. test/layout_cma.c compares every structure with the distribution's own header where that
 * is installed.
 */
#ifndef SOFTVPI_CMA_H
#define SOFTVPI_CMA_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "../verbs/verbs.h"

enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR,
	RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_ERROR,
	RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED,
	RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_MULTICAST_JOIN, RDMA_CM_EVENT_MULTICAST_ERROR,
	RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

enum rdma_port_space { RDMA_PS_IPOIB = 0x0002, RDMA_PS_TCP = 0x0106, RDMA_PS_UDP = 0x0111, RDMA_PS_IB = 0x013F };

#define RDMA_UDP_QKEY 0x01234567

/* A path record of subnet administration (IBA 15.2.5.16), as laid out in the SA header of libibverbs. */
struct ibv_sa_path_rec {
	union ibv_gid dgid, sgid;
	uint16_t dlid, slid; /* big endian */
	int raw_traffic;
	uint32_t flow_label; /* big endian */
	uint8_t hop_limit, traffic_class;
	int reversible;
	uint8_t numb_path;
	uint16_t pkey; /* big endian */
	uint8_t sl, mtu_selector, mtu, rate_selector, rate, packet_life_time_selector, packet_life_time, preference;
};

struct rdma_ib_addr {
	union ibv_gid sgid, dgid;
	uint16_t pkey; /* big endian */
};

struct rdma_addr {
	union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec;
	int num_paths;
};

struct rdma_event_channel { int fd; };

struct rdma_cm_id {
	struct ibv_context *verbs;
	struct rdma_event_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num;
	struct rdma_cm_event *event;
	struct ibv_comp_channel *send_cq_channel;
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	enum ibv_qp_type qp_type;
};

enum { RDMA_MAX_RESP_RES = 0xFF, RDMA_MAX_INIT_DEPTH = 0xFF };

struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count;
	uint8_t srq; /* srq and qp_num are used if the id has no QP */
	uint32_t qp_num;
};

struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num, qkey;
};

struct rdma_cm_event {
	struct rdma_cm_id *id, *listen_id;
	enum rdma_cm_event_type event;
	int status;
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
};

enum { RAI_PASSIVE = 1, RAI_NUMERICHOST = 2, RAI_NOROUTE = 4, RAI_FAMILY = 8 };

struct rdma_addrinfo {
	int ai_flags, ai_family, ai_qp_type, ai_port_space;
	socklen_t ai_src_len, ai_dst_len;
	struct sockaddr *ai_src_addr, *ai_dst_addr;
	char *ai_src_canonname, *ai_dst_canonname;
	size_t ai_route_len;
	void *ai_route;
	size_t ai_connect_len;
	void *ai_connect;
	struct rdma_addrinfo *ai_next;
};

enum { RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1, RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 2 };
enum { RDMA_MC_JOIN_FLAG_FULLMEMBER, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER };

struct rdma_cm_join_mc_attr_ex {
	uint32_t comp_mask, join_flags;
	struct sockaddr *addr;
};

enum { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 };
enum { RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_REUSEADDR, RDMA_OPTION_ID_AFONLY, RDMA_OPTION_ID_ACK_TIMEOUT };
enum { RDMA_OPTION_IB_PATH = 1 };

/* Functions of this library that it calls itself. */
struct rdma_event_channel *rdma_create_event_channel(void);
void rdma_destroy_event_channel(struct rdma_event_channel *);
int rdma_create_id(struct rdma_event_channel *, struct rdma_cm_id **, void *, enum rdma_port_space);
int rdma_destroy_id(struct rdma_cm_id *);
int rdma_bind_addr(struct rdma_cm_id *, struct sockaddr *);
int rdma_resolve_addr(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int);
int rdma_resolve_route(struct rdma_cm_id *, int);
int rdma_create_qp(struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *);
int rdma_create_qp_ex(struct rdma_cm_id *, struct ibv_qp_init_attr_ex *);
void rdma_destroy_qp(struct rdma_cm_id *);
void rdma_destroy_srq(struct rdma_cm_id *);
int rdma_connect(struct rdma_cm_id *, struct rdma_conn_param *);
int rdma_listen(struct rdma_cm_id *, int);
int rdma_accept(struct rdma_cm_id *, struct rdma_conn_param *);
int rdma_reject(struct rdma_cm_id *, const void *, uint8_t);
int rdma_disconnect(struct rdma_cm_id *);
int rdma_get_cm_event(struct rdma_event_channel *, struct rdma_cm_event **);
int rdma_ack_cm_event(struct rdma_cm_event *);
int rdma_migrate_id(struct rdma_cm_id *, struct rdma_event_channel *);
int rdma_set_option(struct rdma_cm_id *, int, int, void *, size_t);
int rdma_join_multicast_ex(struct rdma_cm_id *, struct rdma_cm_join_mc_attr_ex *, void *);
int rdma_init_qp_attr(struct rdma_cm_id *, struct ibv_qp_attr *, int *);
uint16_t rdma_get_src_port(struct rdma_cm_id *);
uint16_t rdma_get_dst_port(struct rdma_cm_id *);

/* Functions of libibverbs that it calls. */
struct ibv_device **ibv_get_device_list(int *);
void ibv_free_device_list(struct ibv_device **);
int ibv_get_device_index(struct ibv_device *);
struct ibv_context *ibv_open_device(struct ibv_device *);
int ibv_close_device(struct ibv_context *);
int ibv_query_device(struct ibv_context *, struct ibv_device_attr *);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *);
int ibv_dealloc_pd(struct ibv_pd *);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *, void *, size_t, int);
int ibv_dereg_mr(struct ibv_mr *);
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *);
int ibv_destroy_comp_channel(struct ibv_comp_channel *);
struct ibv_cq *ibv_create_cq(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
int ibv_destroy_cq(struct ibv_cq *);
int ibv_get_cq_event(struct ibv_comp_channel *, struct ibv_cq **, void **);
void ibv_ack_cq_events(struct ibv_cq *, unsigned);
int ibv_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int);
int ibv_destroy_qp(struct ibv_qp *);
int ibv_destroy_srq(struct ibv_srq *);
struct ibv_ah *ibv_create_ah(struct ibv_pd *, struct ibv_ah_attr *);
int ibv_destroy_ah(struct ibv_ah *);
int ibv_query_ece(struct ibv_qp *, struct ibv_ece *);
int ibv_set_ece(struct ibv_qp *, struct ibv_ece *);

#endif
