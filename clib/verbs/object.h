/*
 * The objects behind the handles that programs hold.
 */
#ifndef SVPI_OBJECT_H
#define SVPI_OBJECT_H

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "../ipc/attach.h"
#include "../ipc/initiator.h"
#include "table.h"
#include "verbs.h"

/* A lock that is held for nanoseconds only. A thread that finds it taken yields the processor. */
struct svpi_spin { _Atomic int taken; };

/* Set by the C library while the program has only one thread, if the C library knows (glibc 2.32). */
extern char __libc_single_threaded __attribute__((weak));
static inline bool svpi_alone(void) { return &__libc_single_threaded && __libc_single_threaded; }

static inline void svpi_spin_lock(struct svpi_spin *l)
{
	while (__builtin_expect(atomic_exchange_explicit(&l->taken, 1, memory_order_acquire), 0))
		sched_yield();
}

static inline bool svpi_spin_try(struct svpi_spin *l)
{
	return atomic_exchange_explicit(&l->taken, 1, memory_order_acquire) == 0;
}

static inline void svpi_spin_unlock(struct svpi_spin *l) { atomic_store_explicit(&l->taken, 0, memory_order_release); }

/* svpi_spin_brief is svpi_spin_lock for sections that start no thread before they unlock: a program with only one
 * thread is spared the barrier. */
static inline void svpi_spin_brief(struct svpi_spin *l)
{
	if (svpi_alone())
		atomic_store_explicit(&l->taken, 1, memory_order_relaxed);
	else
		svpi_spin_lock(l);
}

struct svpi_device {
	struct ibv_device device;
	struct svpi_adapter_info info;
	uint64_t node_guid;
	char driver[64];
	int references; /* from device lists and contexts */
};

struct svpi_context {
	struct svpi *svpi;
	uint32_t adapter;
	uint32_t events; /* channel of asynchronous events, 0 if the driver has none */
	int ticket; /* cmd_fd, if others can import from it; else -1 */
	uint8_t token[16]; /* of the program whose objects can be imported */
	_Atomic bool ended; /* the program has been told that the driver is gone */
	_Atomic uint32_t frames; /* svpi_frame_offloads, with SVPI_FRAME_KNOWN; 0: not asked for yet */
	struct svpi_table cqs, qps, srqs;
	struct svpi_table mrs; /* by lkey */
	struct verbs_context verbs; /* the handle that programs have is &verbs.context */
};

struct svpi_pd {
	struct ibv_pd pd;
	struct svpi_pd *parent; /* of a parent domain: the domain that it was made from */
	_Atomic int users;	/* number of parent domains made from this one; of a parent domain of objects, too */
	/* of a parent domain, if it has allocators */
	void *(*alloc)(struct ibv_pd *, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* What a parent domain's allocators are asked for: the lower half of resource_type. The upper half keeps them apart from what
 * other drivers ask for. docs/verbs.md tells programs. */
enum svpi_resource { SVPI_RESOURCE_QP = 1, SVPI_RESOURCE_CQ, SVPI_RESOURCE_SRQ };
#define SVPI_RESOURCES ((uint64_t)0x5f01 << 32)

/* Where an object's state lies. */
struct svpi_home {
	struct svpi_pd *domain; /* parent domain, if it has one */
	uint64_t type;
	bool placed; /* by the domain's allocator, which has to free it */
};

/* svpi_home_new returns zeroed memory for an object of a domain, which may be NULL; or NULL with errno. While there is such memory
 * a parent domain is in use. svpi_home_free takes what it returned, NULL too. */
void *svpi_home_new(struct svpi_home *, struct ibv_pd *, size_t, enum svpi_resource);
void svpi_home_free(struct svpi_home, void *);

struct svpi_dm {
	struct ibv_dm dm;
	struct svpi *svpi; /* a reference is held */
	uint8_t *base;
	size_t length;
	uint32_t segment;
};

struct svpi_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t handle;
};

struct svpi_mr {
	struct ibv_mr mr;
	bool stays; /* in device memory, or imported: it cannot be registered anew */
	bool imported; /* another program's */
	uint64_t iova;
	unsigned access;
};

/* A ring made by a resize, to be used when all older ones are empty. */
struct svpi_later {
	struct svpi_later *next;
	struct svpi_consumer ring;
};

/* Room in a CQ beyond what the program asked for, as adapters have: a program with one request under way in a CQ of
 * one entry (perftest's ib_send_lat) may post the next before it has polled. */
enum { SVPI_CQ_SPARE = 1 };

struct svpi_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct svpi *svpi;
	struct svpi_spin lock;
	struct svpi_consumer ring;
	struct svpi_later *later;
	struct svpi_spin late_lock; /* protects the four below; lock is held during an extended poll */
	struct svpi_qp **late;	    /* queue pairs with requests in their rings that polls may carry out */
	uint32_t turn, late_room;
	_Atomic uint32_t lates;
	uint32_t idle, patience; /* empty polls since the processor was last offered to others, and how many make another offer */
	uint32_t offers;
	bool streamed;	    /* a peer on the direct path has completed receives here since a request was last posted to a queue */
	uint32_t taken;	    /* pair that receives here; and the position in the second ring at that time */
	uint32_t got, got_async; /* events given to the program; those acknowledged are in cq */
	bool single;		 /* the program uses the queue in one thread at a time, so that lock is not needed */
	struct svpi_cqe current; /* of an extended poll */
	bool timed;		 /* its completions say when they were made */
	uint64_t zero;		 /* CLOCK_MONOTONIC when the clock of completions was 0 */
	uint64_t made;		 /* the time of the last completion */
	uint64_t wall, wall_at;	 /* what the time of day is ahead of that clock, and the time of the completion for which it was read */
	struct svpi_home home;
};

struct svpi_srq {
	struct ibv_srq srq;
	struct svpi *svpi;
	struct svpi_spin lock;
	struct svpi_producer ring;
	uint32_t bell;
	uint32_t max_sge, number;
	bool xrc;
	struct ibv_cq *tag_cq; /* of a queue that matches tags; else NULL */
	uint32_t got; /* events given to the program */
	struct svpi_home home;
};

struct svpi_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct svpi *svpi;
	struct svpi_spin send_lock, recv_lock;
	struct svpi_producer send, recv;
	uint32_t send_bell, recv_bell;
	uint32_t send_sge, recv_sge, inline_max;
	uint32_t send_depth, recv_depth;
	uint32_t operations; /* operations of this type of queue pair, as bits 1 << ibv_wr_opcode */
	bool signal_all;
	struct ibv_qp_rate_limit_attr limit; /* of its rate, as its program has set it */
	uint8_t static_rate; /* of its path: enum ibv_rate */
	bool limited; /* the driver has been told of a rate */
	bool checksums; /* sends may ask for them: a raw packet queue pair of a driver that makes them */
	uint16_t tso_header; /* bytes of headers that a large send may have; 0: there are none */
	struct svpi_wq *wq; /* that it is the queue pair of */
	struct svpi_table_of_wqs *spreads; /* of a queue pair that spreads what it receives, and has no rings of its own */
	uint32_t got; /* events given to the program */
	struct svpi_slot direct;
	bool followed[2]; /* listed in late of its send and its receive CQ; written under the lock of the send queue */
	/* of an extended post: number of entries filled and not yet published */
	uint32_t started;
	struct svpi_send_entry *building;
	int build_error;
	struct svpi_initiator *lent; /* the initiator that carries them out; NULL: the driver does */
	struct svpi_home home;
};

struct svpi_channel {
	struct ibv_comp_channel channel;
	uint32_t handle;
};

struct svpi_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

static inline struct svpi_context *to_context(struct ibv_context *c)
{
	return (struct svpi_context *)((char *)c - offsetof(struct svpi_context, verbs.context));
}
static inline struct svpi *to_svpi(struct ibv_context *c) { return to_context(c)->svpi; }
static inline struct svpi_device *to_device(struct ibv_device *d) { return (struct svpi_device *)d; }
static inline struct svpi_cq *to_cq(struct ibv_cq *c) { return (struct svpi_cq *)c; }
static inline struct svpi_qp *to_qp(struct ibv_qp *q) { return (struct svpi_qp *)q; }
static inline struct svpi_xrcd *to_xrcd(struct ibv_xrcd *x) { return (struct svpi_xrcd *)x; }
static inline struct svpi_srq *to_srq(struct ibv_srq *s) { return (struct svpi_srq *)s; }

/* svpi_data_of returns where an entry's SGEs are: behind the headers of a large send. */
static inline uint8_t *svpi_data_of(struct svpi_send_entry *e)
{
	return (uint8_t *)(e + 1) + (e->op == SVPI_WR_LARGE_SEND ? (e->inline_bytes + 15) & ~15u : 0);
}

/* svpi_may_send and svpi_may_receive tell whether a queue pair is in a state in which requests may be posted (IBA
 * 10.3.1): 0 or an errno. In the error state they may, and are flushed. An XRC initiator has no receive queue, a target
 * neither. */
static inline int svpi_may_send(const struct svpi_qp *q)
{
	return __builtin_expect(q->qp.state < IBV_QPS_RTS || !q->send.h, 0) ? EINVAL : svpi_here(q->svpi);
}

static inline int svpi_may_receive(const struct svpi_qp *q)
{
	return __builtin_expect(q->qp.state < IBV_QPS_INIT || q->qp.srq || !q->recv.h, 0) ? EINVAL : svpi_here(q->svpi);
}

/* at_least_1 is for sizes: programs may ask for none, the driver's queues hold at least one. */
static inline uint32_t at_least_1(uint32_t n) { return n ? n : 1; }

/* svpi_destroy ends an object of the driver. Returns 0 or an errno. */
int svpi_destroy(struct svpi *, uint32_t kind, uint32_t handle);

/* The operations in a context's tables (set by device.c). */
int svpi_post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
int svpi_post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
int svpi_post_srq_recv(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
int svpi_poll_cq(struct ibv_cq *, int, struct ibv_wc *);
int svpi_req_notify_cq(struct ibv_cq *, int);
struct ibv_mw *svpi_alloc_mw(struct ibv_pd *, enum ibv_mw_type);
int svpi_dealloc_mw(struct ibv_mw *);
int svpi_bind_mw(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
/* svpi_cq_new creates a completion queue with flags of CreateCQ, in a parent domain unless it is NULL; NULL with errno. */
struct svpi_cq *svpi_cq_new(struct ibv_context *, struct ibv_pd *, uint32_t cqe, void *cq_context, struct ibv_comp_channel *,
			    uint32_t flags);
struct ibv_dm *svpi_alloc_dm(struct ibv_context *, struct ibv_alloc_dm_attr *);
int svpi_free_dm(struct ibv_dm *);
struct ibv_mr *svpi_reg_dm_mr(struct ibv_pd *, struct ibv_dm *, uint64_t offset, size_t length, unsigned access);
/* svpi_dm_size returns how much device memory the adapter has, 0 if the driver knows of none. */
uint64_t svpi_dm_size(struct ibv_context *);
/* svpi_dm_made maps device memory that the driver has passed as fd. Returns 0 or an errno. */
int svpi_dm_made(struct svpi_dm *, struct ibv_context *, const struct svpi_imported *, int fd);
/* svpi_export makes a context one that others can import from (import.c), until svpi_export_end. */
void svpi_export(struct svpi_context *);
void svpi_export_end(struct svpi_context *);
/* svpi_mr_made completes a region that the driver has made. NULL: it was given up, with errno set. */
struct ibv_mr *svpi_mr_made(struct svpi_mr *, struct ibv_pd *, void *addr, size_t length, const struct svpi_memory *);
int svpi_advise_mr(struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t flags, struct ibv_sge *, uint32_t);
/* svpi_pages_on_demand tells whether the driver knows regions on demand. */
bool svpi_pages_on_demand(const struct svpi *);
/* svpi_cq_forget drops the completions of a queue pair that was reset. */
void svpi_cq_forget(struct ibv_cq *, uint32_t qpn);
struct ibv_cq_ex *svpi_create_cq_ex(struct ibv_context *, struct ibv_cq_init_attr_ex *);
int svpi_modify_cq(struct ibv_cq *, struct ibv_modify_cq_attr *);
/* svpi_qp_new creates a queue pair with flags of CreateQP beside those of its attributes. */
struct svpi_qp *svpi_qp_new(struct ibv_pd *, struct ibv_qp_init_attr_ex *, uint32_t flags);
struct ibv_qp *svpi_create_qp_ex(struct ibv_context *, struct ibv_qp_init_attr_ex *);
struct ibv_srq *svpi_create_srq_ex(struct ibv_context *, struct ibv_srq_init_attr_ex *);
/* svpi_check_tags tells whether a queue that matches tags can be like that: 0 or an errno. */
int svpi_check_tags(const struct svpi *, const struct ibv_srq_init_attr_ex *);
int svpi_post_srq_ops(struct ibv_srq *, struct ibv_ops_wr *, struct ibv_ops_wr **);
void svpi_fill_tag_caps(const struct svpi *, struct ibv_device_attr_ex *);
int svpi_get_srq_num(struct ibv_srq *, uint32_t *);
bool svpi_has_xrc(const struct svpi *);
struct ibv_xrcd *svpi_open_xrcd(struct ibv_context *, struct ibv_xrcd_init_attr *);
int svpi_close_xrcd(struct ibv_xrcd *);
struct ibv_qp *svpi_open_qp(struct ibv_context *, struct ibv_qp_open_attr *);
struct svpi_qp *svpi_create_target(struct ibv_context *, struct ibv_qp_init_attr_ex *);
struct ibv_pd *svpi_alloc_parent_domain(struct ibv_context *, struct ibv_parent_domain_init_attr *);
struct ibv_td *svpi_alloc_td(struct ibv_context *, struct ibv_td_init_attr *);
int svpi_dealloc_td(struct ibv_td *);
int svpi_query_port(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
int svpi_query_device_ex(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *, size_t);
/* svpi_has_times tells whether the driver says when completions were made. */
static inline bool svpi_has_times(const struct svpi *s) { return s->about.minor >= SVPI_TIMES_MINOR; }
/* svpi_has_placed tells whether the driver has atomic writes and flushes. */
static inline bool svpi_has_placed(const struct svpi *s) { return s->about.minor >= SVPI_PLACED_MINOR; }
/* svpi_firmware_of asks what an adapter's device runs. False: the driver does not tell. */
bool svpi_firmware_of(struct svpi *s, uint32_t adapter, struct svpi_firmware *f);
/* svpi_identity tells what the device of a context runs, and the kind of its board. */
void svpi_identity(struct ibv_context *context, char version[64], char board[64]);
/* svpi_has_limits tells whether the driver has rates of queue pairs, and which there are, in kbit/s. */
static inline bool svpi_has_limits(const struct svpi *s) { return s->about.minor >= SVPI_LIMIT_MINOR; }
/* svpi_has_static_rates tells whether the driver keeps those of address vectors. */
static inline bool svpi_has_static_rates(const struct svpi *s) { return s->about.minor >= SVPI_STATIC_RATE_MINOR; }
enum { SVPI_LEAST_RATE = 1 };
int svpi_modify_qp_rate_limit(struct ibv_qp *, struct ibv_qp_rate_limit_attr *);
int ibv_rate_to_mbps(enum ibv_rate);
/* What the driver does for raw packet queue pairs: bits of svpi_frame_port.offloads, and how much. */
enum { SVPI_FRAME_CHECKSUMS = 1, SVPI_FRAME_LARGE_SENDS = 2, SVPI_FRAME_RSS = 4, SVPI_FRAME_FLAGS = 8 };
enum { SVPI_MOST_LARGE_SEND = 256 << 10, SVPI_MOST_LARGE_HEADERS = 128, SVPI_MOST_HEADER_ROOM = 512, SVPI_MOST_FLOWS = 256 };
/* svpi_frame_offloads returns the bits; 0 if this program may have no such queue pairs on the adapter (flow.c). They stay those of the
 * first answer, as a device's do while it is open: what queries a device asks the driver no more, also in forked children, which have
 * one connection to the driver with their parent. */
enum { SVPI_FRAME_KNOWN = 1 << 16 };
uint16_t svpi_frame_offloads(struct ibv_context *);
int ibv_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int mask);
/* svpi_destroy_qp destroys a queue pair once its events are acknowledged where these say. */
int svpi_destroy_qp(struct ibv_qp *, pthread_mutex_t *, pthread_cond_t *, const uint32_t *acknowledged);
/* Work queues and what is made of them (wq.c). svpi_fill_frame_caps says what there is of these, and of large sends and checksums. */
struct svpi_wq {
	struct ibv_wq wq;
	struct ibv_qp *qp;
	_Atomic int tables; /* that it is in */
};
struct ibv_wq *svpi_create_wq(struct ibv_context *, struct ibv_wq_init_attr *);
int svpi_modify_wq(struct ibv_wq *, struct ibv_wq_attr *);
int svpi_destroy_wq(struct ibv_wq *);
struct ibv_rwq_ind_table *svpi_create_rwq_ind_table(struct ibv_context *, struct ibv_rwq_ind_table_init_attr *);
int svpi_destroy_rwq_ind_table(struct ibv_rwq_ind_table *);
struct ibv_qp *svpi_create_rss_qp(struct ibv_context *, struct ibv_qp_init_attr_ex *);
int svpi_destroy_rss_qp(struct svpi_qp *);
void svpi_fill_frame_caps(struct ibv_context *, struct ibv_device_attr_ex *);

/* svpi_has_flows tells whether the driver has raw packet queue pairs with flows. */
static inline bool svpi_has_flows(const struct svpi *s) { return s->about.minor >= SVPI_FLOW_MINOR; }
struct ibv_flow *svpi_create_flow(struct ibv_qp *, struct ibv_flow_attr *);
int svpi_destroy_flow(struct ibv_flow *);
int svpi_query_rt_values(struct ibv_context *, struct ibv_values_ex *);

/* The direct path (direct.c). svpi_direct_begin has to be called before requests are filled in. It returns the
 * initiator that may carry them out, or NULL if the driver does. svpi_direct_end publishes those from index on that
 * were not carried out. The lock of the send queue is held. */
struct svpi_initiator *svpi_direct_lent(struct svpi_qp *, struct svpi_initiator *);
static inline struct svpi_initiator *svpi_direct_begin(struct svpi_qp *q)
{
	struct svpi_initiator *i;

	__builtin_prefetch(&q->send.h->producer, 1);
	__builtin_prefetch(svpi_bell(&q->svpi->doorbells, q->send_bell));
	svpi_listen(q->svpi);
	i = atomic_load_explicit(&q->direct.initiator, memory_order_acquire);
	return __builtin_expect(i != NULL, 0) ? svpi_direct_lent(q, i) : NULL;
}

void svpi_direct_wait(struct svpi_qp *, struct svpi_initiator *lent, uint32_t from);
static inline void svpi_direct_end(struct svpi_qp *q, struct svpi_initiator *lent, uint32_t from)
{
	if (__builtin_expect(atomic_load_explicit(&q->direct.initiator, memory_order_acquire) != NULL, 0)) {
		svpi_direct_wait(q, lent, from);
		return;
	}
	svpi_publish(&q->send);
	svpi_doorbell(q->svpi, q->qp.handle, &q->send_bell);
	svpi_ahead(&q->send);
}

/* svpi_answered notes that a request is posted to a queue pair: if it follows a receive, the program may be waiting
 * for an answer and should poll without pauses. Other threads may poll meanwhile; at worst one poll pauses, or does
 * not, for some microseconds. */
static inline void svpi_answered(struct svpi_qp *q)
{
	struct svpi_cq *c = to_cq(q->qp.recv_cq);

	if (c && __builtin_expect(__atomic_load_n(&c->streamed, __ATOMIC_RELAXED), 0))
		__atomic_store_n(&c->streamed, false, __ATOMIC_RELAXED);
}

/* svpi_direct_late carries out requests of one of the queue pairs in the CQ's list. */
void svpi_direct_late(struct svpi_cq *);
/* svpi_direct_forget removes a queue pair that ends. */
void svpi_direct_forget(struct svpi_qp *);

/* Channels: see events.c. */
int svpi_events_open(struct svpi_context *);
void svpi_events_close(struct svpi_context *);
static inline uint32_t svpi_channel_handle(struct ibv_comp_channel *c) { return c ? ((struct svpi_channel *)c)->handle : 0; }

/* svpi_acknowledge counts n events as acknowledged by the program. */
void svpi_acknowledge(pthread_mutex_t *, pthread_cond_t *, uint32_t *done, uint32_t n);

/* svpi_acknowledged waits until *done has reached *given. No more events may come for the object. */
void svpi_acknowledged(pthread_mutex_t *, pthread_cond_t *, const uint32_t *done, const uint32_t *given);

/* svpi_fill_send_ops gives a queue pair the operations of the extended interface (post_ex.c). */
void svpi_fill_send_ops(struct svpi_qp *);
/* svpi_qp_attributes translates the driver's attributes into those of verbs, and returns the mask of those present.
 * */
int svpi_qp_attributes(const struct svpi_modify_qp *, struct ibv_qp_attr *);
/* svpi_route translates an address into the driver's address vector. Returns 0 or an errno. */
int svpi_route(struct ibv_context *, const struct ibv_ah_attr *, struct svpi_address_vector *);

/* The rows of an Ethernet port's GID table, as docs/spec/ipc.md has it; and the minor version since which the driver tells
 * network interfaces. */
enum { SVPI_GID_ROWS = 128, SVPI_SINCE_INTERFACES = 7, SVPI_SINCE_LINKS = 12 };

/* svpi_gid_rows reads how many rows a port's GID table has, with the empty ones. Returns 0 or an errno. */
int svpi_gid_rows(struct ibv_context *, uint32_t *count);

/* svpi_port_interface writes the name of the network interface to which a port belongs. False: there is none in this
 * process's network namespace. */
bool svpi_port_interface(struct ibv_context *, char name[16]);

/* svpi_link_address_of finds the link-layer address of a network interface of the device's in this process's network namespace.
 * False: the interface has none that the system does not know. */
bool svpi_link_address_of(struct ibv_context *, uint32_t index, struct svpi_link_address *);

/* on_fabric tells whether the device's port is an InfiniBand port. */
static inline bool on_fabric(const struct ibv_context *c) { return to_device(c->device)->info.ro_ce == 4; }

/* svpi_port reads the attributes that only InfiniBand ports have. Returns 0 or an errno. */
int svpi_port(struct ibv_context *, uint32_t port, struct svpi_port_info *);

#define EXPORT __attribute__((visibility("default")))

#endif
