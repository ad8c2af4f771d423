/*
 * Sockets over RDMA, with the protocol that librdmacm's rsockets speak, so that these may be the peers.
 *
 * A socket writes what is sent into the peer's receive buffer and says so with immediate data. The receive buffer has two
 * halves; when one was read the peer is told of it by a write to its list of targets. Messages use receives of the peer,
 * of which it grants some with every such write.
 */
#ifndef SVPI_RSOCKET_H
#define SVPI_RSOCKET_H

#include "id.h"

struct rs_sge {
	uint64_t addr;
	uint32_t key, length;
};

/* A part of the peer's memory that the program may write to, by its offset. */
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

/* The private data of REQ and REP. Numbers are big endian. */
struct rs_hello {
	uint8_t version; /* 1 */
	uint8_t flags;
	uint16_t credits;
	uint8_t none[3], iomaps; /* places for iomaps, see rs_scale */
	struct rs_sge targets;	 /* length: how many */
	struct rs_sge buffer;
};

enum { RS_VERSION = 1, RS_FLAG_BIG_ENDIAN = 1, RS_FLAG_IOMAP = 2, RS_TARGETS = 2 };

/* The upper three bits of immediate data, and what the others say. */
enum rs_op { RS_DATA = 0 /* bytes */, RS_WRITE = 2 /* no message */, RS_CREDIT = 4 /* granted, 16 bits */,
	     RS_IOMAP = 6 /* index */, RS_CONTROL = 7 };
enum rs_control { RS_DISCONNECT = 0, RS_KEEPALIVE = 1, RS_SHUTDOWN = 2 };
enum { RS_SHIFT = 29 };
static inline uint32_t rs_message(enum rs_op op, uint32_t v) { return (uint32_t)op << RS_SHIFT | v; }
static inline enum rs_op rs_op_of(uint32_t m) { return (enum rs_op)(m >> RS_SHIFT); }
static inline uint32_t rs_value_of(uint32_t m) { return m & ((1u << RS_SHIFT) - 1); }

enum rs_state { RS_NEW, RS_BOUND, RS_LISTENING, RS_CONNECTING, RS_ACCEPTING, RS_CONNECTED, RS_CLOSED, RS_FAILED };

/* Sends that only the protocol's own messages use. */
enum { RS_RESERVED = 4, RS_MAX_TRANSFER = 65536, RS_LOW_WATER = 2048 };

/* How long a thread that waits may not see that another one closes the socket. */
enum { RS_LOOK_MS = 500 };

struct rs_mapping {
	struct rs_mapping *next;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index;
	bool told;
};

struct rs {
	int fd; /* of the id's channel: what the program holds */
	struct rdma_cm_id *id;
	pthread_mutex_t lock; /* of everything here; given up while waiting */
	pthread_cond_t news;  /* whoever waited for the descriptors is back */
	bool waiting, armed, ending;
	uint32_t users; /* calls under way */

	enum rs_state state;
	bool readable, writable;
	int error;    /* of RS_FAILED, or that an attempt ended with */
	bool nonblock;
	int keepalive, reuse, ipv6_only, nodelay, linger_on, linger_s;

	/* sizes, that can be set until there is a connection */
	uint32_t send_size, recv_size, inline_size, send_bytes, recv_bytes, iomap_size;

	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *send_mr, *recv_mr, *target_mr;
	uint8_t *send_buffer, *recv_buffer;

	/* sending */
	uint32_t send_at, send_free; /* next byte of the buffer; bytes free */
	uint32_t slots, controls;    /* sends that may be posted; of the protocol's own */
	uint16_t sent, granted;	     /* messages, modulo 2^16 */
	struct rs_sge *targets;	     /* the peer's buffers; the peer writes them */
	volatile struct rs_iomap *iomaps; /* the peer's mappings, likewise */
	uint32_t target;
	struct rs_sge peer_targets, peer_iomaps; /* where the lists of the peer are */
	uint32_t peer_target;
	bool swap; /* the peer has another byte order */

	/* receiving */
	uint32_t *messages; /* bytes of each message that was not read: a ring */
	uint32_t head, tail;
	uint32_t recv_at;    /* next byte to read */
	uint32_t give_at;    /* the half of the buffer to give next */
	uint32_t read_bytes; /* read and not given back */
	uint16_t taken, told; /* messages read; when the peer is to be told */

	struct rs_mapping *mappings;
	struct datagrams *datagrams; /* instead of id and all that belongs to a connection */
};

/* rsocket.c */
struct rs *rs_enter(int fd); /* locked; NULL with errno */
void rs_leave(struct rs *);
struct rs *rs_new_at(int fd);
struct rs *rs_new(struct rdma_cm_id *); /* of an id with a channel of its own, whose descriptor it gets */
void rs_free(struct rs *);

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
void rs_take_events(struct rs *); /* of the completion channel */
int rs_post(struct rs *, uint32_t message, struct ibv_sge *, int nsge, uint64_t remote, uint32_t key, bool inlined);
int rs_post_control(struct rs *, enum rs_control);
void rs_credit(struct rs *);
/* rs_await waits until done; 0, EAGAIN where it is not to wait, or another errno. */
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
