/*
 * The layouts and numbers of docs/spec/ipc.md, made from the Go structures:
 * go test ./internal/ipc/proto -run Header -update
 */
#ifndef SVPI_LAYOUTS_H
#define SVPI_LAYOUTS_H

#include <stdint.h>

#define SVPI_MAGIC 0x49505653u
enum { SVPI_MAJOR = 2, SVPI_MINOR = 22 };

enum svpi_op {
	SVPI_HELLO = 1,
	SVPI_GOODBYE = 2,
	SVPI_CANCEL = 3,
	SVPI_CREDIT = 4,
	SVPI_EVENTS = 5,
	SVPI_ARENA = 6,
	SVPI_ALLOC_SEGMENT = 7,
	SVPI_FREE_SEGMENT = 8,
	SVPI_SHARE = 9,
	SVPI_INTRODUCE = 10,
	SVPI_DROP = 11,
	SVPI_TRACKS = 12,
	SVPI_WAKE_UP = 13,
	SVPI_PROCESS = 14,
	SVPI_ADAPTERS = 32,
	SVPI_GIDS = 33,
	SVPI_COUNTERS = 34,
	SVPI_ALLOC_PD = 35,
	SVPI_REGISTER_MEMORY = 36,
	SVPI_ALLOC_WINDOW = 37,
	SVPI_CREATE_CQ = 38,
	SVPI_RESIZE_CQ = 39,
	SVPI_MODERATE_CQ = 40,
	SVPI_CREATE_SRQ = 41,
	SVPI_MODIFY_SRQ = 42,
	SVPI_QUERY_SRQ = 43,
	SVPI_CREATE_QP = 44,
	SVPI_MODIFY_QP = 45,
	SVPI_QUERY_QP = 46,
	SVPI_CREATE_AH = 47,
	SVPI_ATTACH_MULTICAST = 48,
	SVPI_DETACH_MULTICAST = 49,
	SVPI_DESTROY = 50,
	SVPI_CM_CREATE = 51,
	SVPI_CM_BIND = 52,
	SVPI_CM_LISTEN = 53,
	SVPI_CM_CONNECT = 54,
	SVPI_CM_ACCEPT = 55,
	SVPI_CM_ESTABLISH = 56,
	SVPI_CM_REJECT = 57,
	SVPI_CM_DISCONNECT = 58,
	SVPI_CM_QUERY = 59,
	SVPI_CM_ATTRIBUTES = 60,
	SVPI_RESIZE_SRQ = 61,
	SVPI_MAP_SEGMENT = 62,
	SVPI_CREATE_CHANNEL = 63,
	SVPI_CM_SET_CHANNEL = 64,
	SVPI_CM_RESOLVE_ADDR = 65,
	SVPI_CM_RESOLVE_ROUTE = 66,
	SVPI_CM_JOIN = 67,
	SVPI_CM_LEAVE = 68,
	SVPI_CM_OPTION = 69,
	SVPI_CM_NOTIFY = 70,
	SVPI_REGISTER_MEMORY_AT = 71,
	SVPI_MOVED = 72,
	SVPI_PORT = 73,
	SVPI_REREGISTER_MEMORY = 74,
	SVPI_CLOCK = 75,
	SVPI_INTERFACES = 76,
	SVPI_ALLOC_DM = 77,
	SVPI_MEMORY_INFO = 78,
	SVPI_EXPORT = 79,
	SVPI_IMPORT = 80,
	SVPI_OPEN_XRCD = 81,
	SVPI_CREATE_XRC_SRQ = 82,
	SVPI_OPEN_QP = 83,
	SVPI_CREATE_TAG_SRQ = 88,
	SVPI_TAG = 89,
	SVPI_LINK_ADDRESSES = 94,
	SVPI_FRAME_PORT = 100,
	SVPI_FLOW_COUNTERS = 101,
	SVPI_CREATE_FLOW = 115,
	SVPI_CREATE_RSS = 116,
	SVPI_SET_FRAME_FLAGS = 117,
	SVPI_SET_RSS = 118,
	SVPI_LIMIT_QP = 120,
	SVPI_FIRMWARE = 121,
};

/* Classes of refused commands. */
enum svpi_code {
	SVPI_CODE_INVALID = 1, /* invalid value */
	SVPI_CODE_NOT_FOUND = 2, /* no such object */
	SVPI_CODE_BUSY = 3, /* object in use */
	SVPI_CODE_EXHAUSTED = 4, /* limit reached */
	SVPI_CODE_STATE = 5, /* not allowed in this state */
	SVPI_CODE_UNSUPPORTED = 6, /* not supported */
	SVPI_CODE_IN_USE = 7, /* in use */
	SVPI_CODE_ADDR_NOT_AVAILABLE = 8, /* address not available */
	SVPI_CODE_NETWORK_UNREACHABLE = 9, /* network unreachable */
	SVPI_CODE_HOST_UNREACHABLE = 10, /* host unreachable */
	SVPI_CODE_REFUSED = 11, /* connection refused */
	SVPI_CODE_TIMED_OUT = 12, /* timed out */
	SVPI_CODE_ABORTED = 13, /* connection aborted */
	SVPI_CODE_CANCELED = 14, /* canceled */
	SVPI_CODE_REMOVED = 15, /* adapter removed or disabled */
	SVPI_CODE_INTERNAL = 16, /* internal error */
	SVPI_CODE_ACCESS = 17, /* access violation */
};

enum svpi_event_type {
	SVPI_EVENT_COMMUNICATION_ESTABLISHED = 1,
	SVPI_EVENT_SQ_DRAINED = 2,
	SVPI_EVENT_LAST_WQE = 3,
	SVPI_EVENT_QP_FATAL = 4,
	SVPI_EVENT_QP_REQUEST_ERROR = 5,
	SVPI_EVENT_QP_ACCESS_ERROR = 6,
	SVPI_EVENT_CQ_ERROR = 7,
	SVPI_EVENT_SRQ_LIMIT = 8,
	SVPI_EVENT_SRQ_ERROR = 9,
	SVPI_EVENT_PATH_MIGRATED = 10,
	SVPI_EVENT_GID_CHANGE = 11,
	SVPI_EVENT_PORT_ACTIVE = 12,
	SVPI_EVENT_PORT_DOWN = 13,
	SVPI_EVENT_DEVICE_FATAL = 14,
	SVPI_EVENT_LID_CHANGE = 15,
	SVPI_EVENT_PKEY_CHANGE = 16,
	SVPI_EVENT_SM_CHANGE = 17,
	SVPI_EVENT_CLIENT_REREGISTER = 18,
	SVPI_EVENT_CONNECT_REQUEST = 64,
	SVPI_EVENT_CONNECT_RESPONSE = 65,
	SVPI_EVENT_ESTABLISHED = 66,
	SVPI_EVENT_REJECTED = 67,
	SVPI_EVENT_UNREACHABLE = 68,
	SVPI_EVENT_CONNECT_ERROR = 69,
	SVPI_EVENT_DISCONNECTED = 70,
	SVPI_EVENT_TIMEWAIT_EXIT = 71,
	SVPI_EVENT_ADDR_CHANGE = 72,
	SVPI_EVENT_DEVICE_REMOVAL = 73,
	SVPI_EVENT_MULTICAST_JOINED = 74,
	SVPI_EVENT_MULTICAST_ERROR = 75,
	SVPI_EVENT_ADDRESS_RESOLVED = 76,
	SVPI_EVENT_ADDRESS_ERROR = 77,
	SVPI_EVENT_ROUTE_RESOLVED = 78,
	SVPI_EVENT_ROUTE_ERROR = 79,
};

struct svpi_hello {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint64_t features;
	uint8_t name[64];
	uint64_t probe_addr;
	uint8_t nonce[16];
	uint32_t path;
	uint32_t none8;
};
_Static_assert(sizeof(struct svpi_hello) == 112, "layout");

struct svpi_welcome {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint64_t features;
	uint8_t driver[64];
	uint32_t pid;
	uint32_t path;
	uint32_t doorbells;
	uint32_t credits;
	uint32_t max_requests;
	uint32_t max_segments;
	uint64_t segment_bytes;
	uint64_t copier_bytes;
};
_Static_assert(sizeof(struct svpi_welcome) == 120, "layout");

struct svpi_goodbye {
	uint32_t code;
	uint32_t length;
	uint8_t reason[120];
};
_Static_assert(sizeof(struct svpi_goodbye) == 128, "layout");

struct svpi_arena_body {
	uint32_t id;
	uint32_t none1;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_arena_body) == 16, "layout");

struct svpi_credit {
	uint32_t events;
};
_Static_assert(sizeof(struct svpi_credit) == 4, "layout");

struct svpi_adapter_args {
	uint32_t adapter;
};
_Static_assert(sizeof(struct svpi_adapter_args) == 4, "layout");

struct svpi_handle_args {
	uint32_t handle;
};
_Static_assert(sizeof(struct svpi_handle_args) == 4, "layout");

struct svpi_window_args {
	uint32_t pd;
	uint32_t type;
};
_Static_assert(sizeof(struct svpi_window_args) == 8, "layout");

struct svpi_resize_args {
	uint32_t queue;
	uint32_t depth;
};
_Static_assert(sizeof(struct svpi_resize_args) == 8, "layout");

struct svpi_multicast_args {
	uint32_t qp;
	uint32_t none1;
	uint8_t group[16];
};
_Static_assert(sizeof(struct svpi_multicast_args) == 24, "layout");

struct svpi_destroy_args {
	uint32_t kind;
	uint32_t handle;
};
_Static_assert(sizeof(struct svpi_destroy_args) == 8, "layout");

struct svpi_endpoint {
	uint8_t addr[16];
	uint16_t port;
	uint8_t none2[6];
};
_Static_assert(sizeof(struct svpi_endpoint) == 24, "layout");

struct svpi_bind_args {
	uint32_t id;
	uint32_t none1;
	struct svpi_endpoint local;
};
_Static_assert(sizeof(struct svpi_bind_args) == 32, "layout");

struct svpi_listen_args {
	uint32_t id;
	uint32_t backlog;
};
_Static_assert(sizeof(struct svpi_listen_args) == 8, "layout");

struct svpi_attributes_args {
	uint32_t id;
	uint32_t state;
};
_Static_assert(sizeof(struct svpi_attributes_args) == 8, "layout");

struct svpi_segment_args {
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_segment_args) == 8, "layout");

struct svpi_segment_reply {
	uint32_t number;
	uint32_t none1;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_segment_reply) == 16, "layout");

struct svpi_share_body {
	uint32_t kind;
	uint32_t program;
	uint32_t number;
	uint32_t none3;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_share_body) == 24, "layout");

struct svpi_introduction {
	uint32_t qp;
	uint32_t number;
	uint32_t role;
	uint32_t owner;
	uint32_t program;
	uint32_t area;
	uint64_t offset;
	uint64_t clock;
};
_Static_assert(sizeof(struct svpi_introduction) == 40, "layout");

struct svpi_drop_body {
	uint32_t program;
	uint32_t segment;
};
_Static_assert(sizeof(struct svpi_drop_body) == 8, "layout");

struct svpi_tracks_body {
	uint32_t bytes;
	uint32_t none1;
};
_Static_assert(sizeof(struct svpi_tracks_body) == 8, "layout");

struct svpi_map_segment_args {
	uint32_t program;
	uint32_t segment;
};
_Static_assert(sizeof(struct svpi_map_segment_args) == 8, "layout");

struct svpi_process_body {
	uint32_t program;
	uint32_t number;
	uint32_t pid;
	uint32_t none3;
	uint64_t address;
	uint8_t nonce[16];
};
_Static_assert(sizeof(struct svpi_process_body) == 40, "layout");

struct svpi_moved {
	uint64_t probe_addr;
	uint8_t nonce[16];
};
_Static_assert(sizeof(struct svpi_moved) == 24, "layout");

struct svpi_exported {
	uint8_t token[16];
};
_Static_assert(sizeof(struct svpi_exported) == 16, "layout");

struct svpi_import_args {
	uint8_t token[16];
	uint32_t kind;
	uint32_t handle;
	uint32_t pd;
	uint32_t none4;
};
_Static_assert(sizeof(struct svpi_import_args) == 32, "layout");

struct svpi_imported {
	uint32_t handle;
	uint32_t l_key;
	uint32_t r_key;
	uint32_t segment;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_imported) == 24, "layout");

struct svpi_adapter_info {
	uint32_t index;
	uint32_t port;
	uint8_t name[64];
	uint64_t guid;
	uint8_t addr[16];
	uint32_t up;
	uint32_t ro_ce;
	uint32_t active_mtu;
	uint32_t link_mtu;
	uint32_t udp_port;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t max_qp;
	uint32_t max_cq;
	uint32_t max_srq;
	uint32_t max_mr;
	uint32_t max_mw;
	uint32_t max_pd;
	uint32_t max_ah;
	uint32_t max_qp_depth;
	uint32_t max_cq_depth;
	uint32_t max_srq_depth;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t max_read_responder;
	uint32_t max_read_initiator;
	uint32_t max_multicast;
	uint64_t max_message;
	uint64_t max_region;
	uint32_t processor_atomics;
	uint32_t line_rate;
};
_Static_assert(sizeof(struct svpi_adapter_info) == 208, "layout");

struct svpi_gid {
	uint32_t index;
	uint32_t ro_ce;
	uint8_t gid[16];
};
_Static_assert(sizeof(struct svpi_gid) == 24, "layout");

struct svpi_interface {
	uint32_t row;
	uint32_t index;
	uint64_t namespace;
	uint8_t name[16];
};
_Static_assert(sizeof(struct svpi_interface) == 32, "layout");

struct svpi_port_info {
	uint8_t state;
	uint8_t physical;
	uint8_t lmc;
	uint8_t smsl;
	uint16_t lid;
	uint16_t smlid;
	uint8_t width;
	uint8_t subnet_timeout;
	uint16_t max_mtu;
	uint32_t lane;
	uint32_t capabilities;
	uint32_t p_key_count;
	uint64_t prefix;
	uint64_t node_guid;
	uint16_t p_keys[128];
};
_Static_assert(sizeof(struct svpi_port_info) == 296, "layout");

struct svpi_counter {
	uint8_t name[64];
	uint64_t value;
};
_Static_assert(sizeof(struct svpi_counter) == 72, "layout");

struct svpi_register_memory {
	uint32_t pd;
	uint32_t access;
	uint64_t base;
	uint64_t length;
	uint32_t segment;
	uint32_t none5;
	uint64_t segment_offset;
};
_Static_assert(sizeof(struct svpi_register_memory) == 40, "layout");

struct svpi_memory {
	uint32_t handle;
	uint32_t l_key;
	uint32_t r_key;
	uint32_t path;
};
_Static_assert(sizeof(struct svpi_memory) == 16, "layout");

struct svpi_create_cq {
	uint32_t adapter;
	uint32_t depth;
	uint32_t channel;
	uint32_t flags;
};
_Static_assert(sizeof(struct svpi_create_cq) == 16, "layout");

struct svpi_clock {
	uint64_t zero;
};
_Static_assert(sizeof(struct svpi_clock) == 8, "layout");

struct svpi_ring {
	uint32_t arena;
	uint32_t none1;
	uint64_t offset;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_ring) == 24, "layout");

struct svpi_queue {
	uint32_t handle;
	uint32_t number;
	uint32_t depth;
	uint32_t stride;
	struct svpi_ring ring;
};
_Static_assert(sizeof(struct svpi_queue) == 40, "layout");

struct svpi_moderate_cq {
	uint32_t cq;
	uint32_t count;
	uint32_t microseconds;
	uint32_t none3;
};
_Static_assert(sizeof(struct svpi_moderate_cq) == 16, "layout");

struct svpi_create_srq {
	uint32_t pd;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t limit;
};
_Static_assert(sizeof(struct svpi_create_srq) == 16, "layout");

struct svpi_modify_srq {
	uint32_t srq;
	uint32_t limit;
};
_Static_assert(sizeof(struct svpi_modify_srq) == 8, "layout");

struct svpi_srq_info {
	uint32_t depth;
	uint32_t max_sge;
	uint32_t limit;
	uint32_t posted;
};
_Static_assert(sizeof(struct svpi_srq_info) == 16, "layout");

struct svpi_create_qp {
	uint32_t pd;
	uint32_t type;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_sge;
	uint32_t recv_sge;
	uint32_t inline_bytes;
	uint32_t flags;
	uint32_t xrcd;
	uint64_t context;
};
_Static_assert(sizeof(struct svpi_create_qp) == 56, "layout");

struct svpi_queue_pair {
	uint32_t handle;
	uint32_t number;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_stride;
	uint32_t recv_stride;
	uint32_t inline_bytes;
	uint32_t none7;
	struct svpi_ring send;
	struct svpi_ring recv;
};
_Static_assert(sizeof(struct svpi_queue_pair) == 80, "layout");

struct svpi_address_vector {
	uint8_t addr[16];
	uint16_t src_index;
	uint8_t static_rate;
	uint8_t none3;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t path;
	uint32_t flow_label;
	uint16_t src_port;
	uint16_t lid;
};
_Static_assert(sizeof(struct svpi_address_vector) == 32, "layout");

struct svpi_modify_qp {
	uint32_t qp;
	uint32_t mask;
	uint32_t state;
	uint32_t access;
	uint32_t p_key_index;
	uint32_t q_key;
	struct svpi_address_vector route;
	uint32_t mtu;
	uint8_t timeout;
	uint8_t retry;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint32_t rqpsn;
	uint32_t sqpsn;
	uint8_t initiator_depth;
	uint8_t responder_resources;
	uint8_t flow_control;
	uint8_t sqd_notify;
	uint32_t dest_qpn;
};
_Static_assert(sizeof(struct svpi_modify_qp) == 80, "layout");

struct svpi_qp_info {
	struct svpi_modify_qp attr;
	uint32_t type;
	uint32_t number;
	uint32_t path;
	uint32_t draining;
	uint32_t send_posted;
	uint32_t recv_posted;
};
_Static_assert(sizeof(struct svpi_qp_info) == 104, "layout");

struct svpi_create_ah {
	uint32_t pd;
	uint32_t none1;
	struct svpi_address_vector av;
};
_Static_assert(sizeof(struct svpi_create_ah) == 40, "layout");

struct svpi_cm_create {
	uint32_t adapter;
	uint32_t space;
	uint64_t context;
};
_Static_assert(sizeof(struct svpi_cm_create) == 16, "layout");

struct svpi_conn_param {
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t srq;
	uint8_t private_len;
	uint8_t none7;
	uint32_t qpn;
	uint32_t q_key;
	uint8_t private[224];
};
_Static_assert(sizeof(struct svpi_conn_param) == 240, "layout");

struct svpi_cm_connect {
	uint32_t id;
	uint32_t qp;
	struct svpi_endpoint remote;
	struct svpi_conn_param param;
	uint32_t timeout;
	uint32_t space;
	uint32_t adapter;
	uint32_t none7;
	uint64_t context;
};
_Static_assert(sizeof(struct svpi_cm_connect) == 296, "layout");

struct svpi_cm_accept {
	uint32_t id;
	uint32_t qp;
	struct svpi_conn_param param;
};
_Static_assert(sizeof(struct svpi_cm_accept) == 248, "layout");

struct svpi_cm_reject {
	uint32_t id;
	uint32_t reason;
	uint32_t private_len;
	uint8_t private[148];
};
_Static_assert(sizeof(struct svpi_cm_reject) == 160, "layout");

struct svpi_create_channel {
	uint32_t kind;
	uint32_t adapter;
};
_Static_assert(sizeof(struct svpi_create_channel) == 8, "layout");

struct svpi_register_memory_at {
	struct svpi_register_memory register_memory;
	uint64_t iova;
};
_Static_assert(sizeof(struct svpi_register_memory_at) == 48, "layout");

struct svpi_reregister_memory {
	struct svpi_register_memory_at register_memory_at;
	uint32_t memory;
	uint32_t none2;
};
_Static_assert(sizeof(struct svpi_reregister_memory) == 56, "layout");

struct svpi_cm_set_channel {
	uint32_t id;
	uint32_t channel;
};
_Static_assert(sizeof(struct svpi_cm_set_channel) == 8, "layout");

struct svpi_cm_resolve_addr {
	uint32_t id;
	uint32_t none1;
	struct svpi_endpoint local;
	struct svpi_endpoint remote;
	uint32_t timeout;
	uint32_t none5;
};
_Static_assert(sizeof(struct svpi_cm_resolve_addr) == 64, "layout");

struct svpi_cm_resolve_route {
	uint32_t id;
	uint32_t timeout;
};
_Static_assert(sizeof(struct svpi_cm_resolve_route) == 8, "layout");

struct svpi_alloc_dm {
	uint32_t adapter;
	uint32_t none1;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_alloc_dm) == 16, "layout");

struct svpi_device_memory {
	uint32_t handle;
	uint32_t segment;
	uint64_t size;
};
_Static_assert(sizeof(struct svpi_device_memory) == 16, "layout");

struct svpi_memory_info {
	uint64_t size;
	uint64_t free;
	uint64_t none2[6];
};
_Static_assert(sizeof(struct svpi_memory_info) == 64, "layout");

struct svpi_cm_join {
	uint32_t id;
	uint32_t qp;
	uint8_t group[16];
	uint32_t flags;
	uint32_t none4;
};
_Static_assert(sizeof(struct svpi_cm_join) == 32, "layout");

struct svpi_cm_leave {
	uint32_t id;
	uint32_t qp;
	uint8_t group[16];
};
_Static_assert(sizeof(struct svpi_cm_leave) == 24, "layout");

struct svpi_cm_option {
	uint32_t id;
	uint32_t option;
	uint32_t value;
	uint32_t none3;
};
_Static_assert(sizeof(struct svpi_cm_option) == 16, "layout");

struct svpi_cm_notify {
	uint32_t id;
	uint32_t event;
};
_Static_assert(sizeof(struct svpi_cm_notify) == 8, "layout");

struct svpi_link_address {
	uint32_t index;
	uint16_t hardware;
	uint16_t none2;
	uint64_t namespace;
	uint8_t address[20];
	uint8_t broadcast[20];
};
_Static_assert(sizeof(struct svpi_link_address) == 56, "layout");

struct svpi_open_xrcd {
	uint32_t adapter;
	uint32_t flags;
	uint64_t device;
	uint64_t inode;
};
_Static_assert(sizeof(struct svpi_open_xrcd) == 24, "layout");

struct svpi_create_xrcsrq {
	struct svpi_create_srq create_srq;
	uint32_t xrcd;
	uint32_t cq;
};
_Static_assert(sizeof(struct svpi_create_xrcsrq) == 24, "layout");

struct svpi_open_qp {
	uint32_t xrcd;
	uint32_t number;
	uint64_t context;
};
_Static_assert(sizeof(struct svpi_open_qp) == 16, "layout");

struct svpi_create_tag_srq {
	struct svpi_create_srq create_srq;
	uint32_t cq;
	uint32_t tags;
};
_Static_assert(sizeof(struct svpi_create_tag_srq) == 24, "layout");

struct svpi_tag_op {
	uint32_t srq;
	uint32_t kind;
	uint32_t flags;
	uint32_t unexpected;
	uint64_t id;
	uint32_t entry;
	uint32_t num_sge;
	uint64_t recv_id;
	uint64_t tag;
	uint64_t mask;
	uint64_t sge[8];
};
_Static_assert(sizeof(struct svpi_tag_op) == 120, "layout");

struct svpi_flow_key {
	uint8_t dst[6];
	uint8_t src[6];
	uint16_t ether_type;
	uint16_t vlan;
	uint8_t src_addr[16];
	uint8_t dst_addr[16];
	uint32_t flow_label;
	uint16_t src_port;
	uint16_t dst_port;
	uint8_t protocol;
	uint8_t class;
	uint8_t hops;
	uint8_t ip_flags;
};
_Static_assert(sizeof(struct svpi_flow_key) == 60, "layout");

struct svpi_create_flow {
	uint32_t qp;
	uint32_t type;
	uint16_t priority;
	uint8_t layers;
	uint8_t none4;
	uint32_t none5;
	struct svpi_flow_key value;
	struct svpi_flow_key mask;
};
_Static_assert(sizeof(struct svpi_create_flow) == 136, "layout");

struct svpi_flow_counters {
	uint64_t frames;
	uint64_t bytes;
	uint64_t lost;
};
_Static_assert(sizeof(struct svpi_flow_counters) == 24, "layout");

struct svpi_frame_port {
	uint8_t mac[6];
	uint16_t offloads;
	uint32_t longest;
};
_Static_assert(sizeof(struct svpi_frame_port) == 12, "layout");

struct svpi_create_rss {
	uint32_t entries;
	uint32_t fields;
	uint8_t key[40];
	uint32_t table[128];
};
_Static_assert(sizeof(struct svpi_create_rss) == 560, "layout");

struct svpi_set_frame_flags {
	uint32_t qp;
	uint32_t flags;
	uint32_t mask;
	uint32_t none3;
};
_Static_assert(sizeof(struct svpi_set_frame_flags) == 16, "layout");

struct svpi_set_rss {
	uint32_t rss;
	uint32_t entries;
	uint32_t table[128];
};
_Static_assert(sizeof(struct svpi_set_rss) == 520, "layout");

struct svpi_limit_qp {
	uint32_t qp;
	uint32_t rate;
	uint32_t max_burst;
	uint16_t typical_packet;
	uint16_t none4;
};
_Static_assert(sizeof(struct svpi_limit_qp) == 16, "layout");

struct svpi_firmware {
	uint8_t version[64];
	uint8_t board[64];
};
_Static_assert(sizeof(struct svpi_firmware) == 128, "layout");

struct svpi_cm_info {
	struct svpi_endpoint local;
	struct svpi_endpoint remote;
	uint32_t adapter;
	uint32_t state;
	uint32_t qpn;
	uint32_t remote_qpn;
	uint32_t src_port;
	uint32_t none7;
};
_Static_assert(sizeof(struct svpi_cm_info) == 72, "layout");

struct svpi_event {
	uint32_t type;
	uint32_t object;
	uint64_t context;
	uint32_t new_id;
	uint32_t adapter;
	uint32_t status;
	uint16_t lid;
	uint8_t sl;
	uint8_t path;
	struct svpi_endpoint remote;
	struct svpi_endpoint local;
	struct svpi_conn_param param;
};
_Static_assert(sizeof(struct svpi_event) == 320, "layout");

struct svpi_key {
	uint32_t key;
	uint32_t adapter;
	uint32_t pd;
	uint32_t access;
	uint64_t start;
	uint64_t length;
	uint64_t address;
	uint32_t segment;
	uint32_t none8;
	uint64_t offset;
	uint64_t none10;
};
_Static_assert(sizeof(struct svpi_key) == 64, "layout");

struct svpi_ring_at {
	uint32_t arena;
	uint32_t entries;
	uint32_t stride;
	uint32_t none3;
	uint64_t offset;
};
_Static_assert(sizeof(struct svpi_ring_at) == 24, "layout");

struct svpi_terms {
	struct svpi_ring_at send_cq;
	struct svpi_ring_at recv_cq;
	struct svpi_ring_at receive;
	uint32_t send_stamp;
	uint32_t recv_stamp;
	uint32_t own_pd;
	uint32_t peer_pd;
	uint32_t own_adapter;
	uint32_t peer_adapter;
	uint32_t own_qpn;
	uint32_t peer_qpn;
	uint64_t own_context;
	uint64_t peer_context;
	uint32_t access;
	uint32_t flags;
	uint16_t p_key_index;
	uint16_t service_level;
	uint32_t mtu;
	uint32_t peer_process;
	uint8_t none19[52];
};
_Static_assert(sizeof(struct svpi_terms) == 192, "layout");

struct svpi_direction {
	uint32_t lease;
	uint32_t reason;
	uint8_t none2[56];
	uint32_t op;
	uint32_t taken;
	uint32_t raised;
	uint8_t none6[52];
	uint64_t messages[4];
	uint64_t packets[4];
	uint64_t bytes[4];
	uint64_t none10[4];
	struct svpi_terms terms;
};
_Static_assert(sizeof(struct svpi_direction) == 448, "layout");

#endif
