/*
 * Sockets over RDMA, with the protocol of librdmacm's rsockets, so that the peer may use either library.
 *
 * A socket writes data into the peer's receive buffer and announces it by immediate data. The receive buffer has two
 * halves; when one has been read the peer is told by a write to its list of targets. Each message uses one receive of
 * the peer; with every such write the peer is granted further ones.
 */
#ifndef SVPI_RSOCKET_H
#define SVPI_RSOCKET_H

#include "../ipc/waiting.h"
#include "id.h"

struct rs_sge {
	uint64_t addr;
	uint32_t key, length;
};

/* A part of the peer's memory to which the program may write, addressed by offset. */
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

/* The private data of REQ and REP. Numbers are big endian. */
struct rs_hello {
	uint8_t version; /* 1 */
	uint8_t flags;
	uint16_t credits;
	uint8_t none[3], iomaps; /* room for iomaps, see rs_scale */
	struct rs_sge targets;	 /* length: number of targets */
	struct rs_sge buffer;
};

enum { RS_VERSION = 1, RS_FLAG_BIG_ENDIAN = 1, RS_FLAG_IOMAP = 2, RS_TARGETS = 2 };

/* The upper three bits of immediate data; the comments say what the other bits contain. */
enum rs_op { RS_DATA = 0 /* bytes */, RS_WRITE = 2 /* no message */, RS_CREDIT = 4 /* granted, 16 bits */,
	     RS_IOMAP = 6 /* index */, RS_CONTROL = 7 };
enum rs_control { RS_DISCONNECT = 0, RS_KEEPALIVE = 1, RS_SHUTDOWN = 2 };
enum { RS_SHIFT = 29 };
static inline uint32_t rs_message(enum rs_op op, uint32_t v) { return (uint32_t)op << RS_SHIFT | v; }
static inline enum rs_op rs_op_of(uint32_t m) { return (enum rs_op)(m >> RS_SHIFT); }
static inline uint32_t rs_value_of(uint32_t m) { return m & ((1u << RS_SHIFT) - 1); }

enum rs_state { RS_NEW, RS_BOUND, RS_LISTENING, RS_CONNECTING, RS_ACCEPTING, RS_CONNECTED, RS_CLOSED, RS_FAILED };

/* RS_RESERVED: sends kept for the protocol's own messages. */
enum { RS_RESERVED = 4, RS_MAX_TRANSFER = 65536, RS_LOW_WATER = 2048 };


struct rs_mapping {
	struct rs_mapping *next;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index;
	bool told;
};

struct rs {
	int fd; /* of the id's channel: the program's descriptor */
	struct rdma_cm_id *id;
	pthread_mutex_t lock; /* protects everything here; released while waiting */
	pthread_cond_t news;  /* signalled when the thread that waited for the descriptors is back */
	bool waiting, armed, ending;
	uint32_t users; /* calls in progress */

	enum rs_state state;
	bool readable, writable;
	int error;    /* of RS_FAILED, or the result of the last attempt */
	bool nonblock;
	int keepalive, reuse, ipv6_only, nodelay, linger_on, linger_s;

	/* sizes, which can be set until there is a connection */
	uint32_t send_size, recv_size, inline_size, send_bytes, recv_bytes, iomap_size;

	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *send_mr, *recv_mr, *target_mr;
	void *memory; /* the buffers, and the lists that the peer writes */
	uint8_t *send_buffer, *recv_buffer;

	/* sending */
	uint32_t send_at, send_free; /* next byte to use in the buffer; bytes free */
	uint32_t slots, controls;    /* sends that may be posted; of these the protocol's own */
	uint16_t sent, granted;	     /* message counts, modulo 2^16 */
	struct rs_sge *targets;	     /* the peer's buffers; written by the peer */
	volatile struct rs_iomap *iomaps; /* the peer's mappings; written by the peer */
	uint32_t target;
	struct rs_sge peer_targets, peer_iomaps; /* where the peer's own lists are */
	uint32_t peer_target;
	bool swap; /* the peer's byte order differs */

	/* receiving */
	uint32_t *messages; /* a ring: bytes of each message that has not been read */
	uint32_t head, tail;
	uint32_t recv_at;    /* next byte to read */
	uint32_t give_at;    /* the half of the buffer to give back next */
	uint32_t read_bytes; /* bytes read and not given back */
	uint16_t taken, told; /* messages read; at how many the peer has to be told */

	struct rs_mapping *mappings;
	struct datagrams *datagrams; /* for datagram sockets, instead of id and the connection's fields */
};

/* rsocket.c */
struct rs *rs_enter(int fd); /* returns the socket locked, or NULL with errno */
void rs_leave(struct rs *);
struct rs *rs_new_at(int fd);
struct rs *rs_new(struct rdma_cm_id *); /* takes over the descriptor of the id's own channel */
void rs_free(struct rs *);

/* rs_memory.c. rs_memory_get returns zeroed memory that begins at a page, if possible in a segment; NULL with errno. */
void *rs_memory_get(size_t);
void rs_memory_put(void *);

/* rs_setup.c */
int rs_setup(struct rs *);
void rs_hello(const struct rs *, struct rs_hello *);
int rs_greeted(struct rs *, const struct rdma_conn_param *);
uint8_t rs_scale(uint32_t v);
uint32_t rs_unscale(uint8_t v);

/* rs_progress.c */
void rs_fail(struct rs *, int error);
void rs_poll_queue(struct rs *);
bool rs_can_send(const struct rs *);
bool rs_sends_done(const struct rs *);
void rs_take_events(struct rs *); /* takes the events of the completion channel */
int rs_post(struct rs *, uint32_t message, struct ibv_sge *, int nsge, uint64_t remote, uint32_t key, bool inlined);
int rs_post_control(struct rs *, enum rs_control);
void rs_credit(struct rs *);
/* rs_await waits until done. Returns 0, EAGAIN if it must not wait, or another errno. */
int rs_await(struct rs *, bool (*done)(const struct rs *), bool nonblock);

/* rs_connect.c */
void rs_cm_events(struct rs *);
int rs_opened(struct rs *, bool nonblock);

/* rs_iomap.c */
void rs_tell_mappings(struct rs *);
void rs_unmap_all(struct rs *);

/* rs_poll.c */
short rs_ready(struct rs *, short events);

#endif
