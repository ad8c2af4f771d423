/*
 * The attachment to the driver: the stream of docs/spec/ipc.md, the memory that is shared, and the requests and events
 * that wait.
 *
 * The library has no threads for this. A thread that needs an answer reads the stream unless another one already
 * does, and hands on what belongs to others; svpi_pump takes what has arrived, without waiting.
 */
#ifndef SVPI_ATTACH_H
#define SVPI_ATTACH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "layouts.h"
#include "neighbour.h"
#include "ring.h"
#include "turn.h"

enum { SVPI_FEATURE_SEGMENTS = 1, SVPI_FEATURE_PROCESS_VM = 2, SVPI_FEATURE_COPIER = 4, SVPI_FEATURE_DIRECT = 16,
       SVPI_FEATURE_PROCESS = 64 };
enum { SVPI_MAX_ARENAS = 65536 };
enum { SVPI_TIMES_MINOR = 6, SVPI_QP_FLAGS_MINOR = 11, SVPI_PLACED_MINOR = 13, SVPI_TAGS_MINOR = 14,
       SVPI_FLOW_MINOR = 15, SVPI_FRAME_PORT_MINOR = 17, SVPI_LIMIT_MINOR = 20, SVPI_STATIC_RATE_MINOR = 21,
       SVPI_FIRMWARE_MINOR = 22 };
/* Those are the versions with flags of CQs, with all of queue pairs, with atomic writes and flushes, with tag
 * matching, with flows, and so on. */
enum { SVPI_QP_SIGNAL_ALL = 1, SVPI_QP_BLOCK_SELF = 2, SVPI_QP_STRIP_VLAN = 4, SVPI_QP_SCATTER_FCS = 8,
       SVPI_QP_DELAY_DROP = 16 }; /* flags of CreateQP */
enum { SVPI_CQ_TIMESTAMPS = 1, SVPI_CQ_IGNORE_OVERRUN = 2 }; /* flags of CreateCQ */
enum { SVPI_PATH_PROCESS_VM = 2, SVPI_PATH_COPIER = 3 }; /* how the driver reaches memory that is in no segment */
enum { SVPI_KIND_PD = 1, SVPI_KIND_MEMORY, SVPI_KIND_WINDOW, SVPI_KIND_CQ, SVPI_KIND_SRQ, SVPI_KIND_QP, SVPI_KIND_AH,
       SVPI_KIND_CM, SVPI_KIND_DM = 10, SVPI_KIND_XRCD, SVPI_KIND_FLOW, SVPI_KIND_RSS };
enum { SVPI_XRC_INITIATOR = 4, SVPI_XRC_TARGET, SVPI_RAW_PACKET }; /* types of queue pairs */
enum { SVPI_XRC_MINOR = 9 }; /* version of the protocol that has extended reliable connections */
enum { SVPI_IB_SPACE_MINOR = 10 }; /* and the one in which the connection manager connects them */

#pragma GCC visibility push(default)

struct svpi_call;

/* An event that waits to be taken, in order of arrival. */
struct svpi_queued {
	struct svpi_queued *next;
	struct svpi_event event;
};

/* An attachment. Only this library uses its fields, except about, which does not change. */
struct svpi {
	struct svpi_welcome about;
	struct svpi *next; /* in the list of this process's attachments */
	pid_t pid;	   /* the process that attached, or that the attachment moved to */
	int users;
	_Atomic bool moved; /* this is a forked child of that process: see svpi_here */
	uint32_t moves;	    /* how often the attachment moved */
	pthread_mutex_t move_lock;

	int fd;
	struct svpi_turn *turn;

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t news;
	bool shared;	/* the process has forked, or is a child that may go on with this */
	bool reading;	/* a thread reads the stream */
	bool broken;	/* the attachment has ended; reason says why */
	char reason[160];
	struct svpi_call *calls;
	uint32_t looks, heard, asked; /* looks so far; their number at the last answer; their number when a sign of life was asked for */
	uint64_t next_look;    /* in ms, see svpi_now_ms */
	int *fds, nfds, fdcap; /* descriptors that have arrived before their frames */
	uint8_t *frame;
	size_t framecap;

	/* Queued events, oldest first. Each taker selects its own (svpi_take). */
	struct svpi_queued *events, **events_end;
	uint32_t taken; /* events taken since credit was last granted */
	pthread_cond_t event_news;

	void *arenas[SVPI_MAX_ARENAS];
	uint64_t arena_size[SVPI_MAX_ARENAS];
	uint32_t narenas;
	struct svpi_doorbells doorbells;
	int wake;

	bool direct; /* takes part in the direct path */
	uint8_t probe[32]; /* the nonce of hello or moved, which the driver and neighbours read, and what the driver writes behind it */
	struct svpi_neighbours neighbours;

	void *copier;
	pthread_t copier_thread;
};

/* svpi_get returns this process's attachment and makes it at the first call; NULL with errno: ENOENT or ECONNREFUSED
 * if no driver runs. svpi_put gives it back. */
struct svpi *svpi_get(void);
void svpi_put(struct svpi *);

/* svpi_move tells the driver that this forked child continues with the attachment of its parent. Returns 0 or an
 * errno. */
int svpi_move(struct svpi *);
/* svpi_here has to be called before anything that makes the driver access the program's memory. */
static inline int svpi_here(struct svpi *s) { return __builtin_expect(s->moved, 0) ? svpi_move(s) : 0; }

/* svpi_call sends a request and waits for its answer, which must be exactly size bytes long. Returns 0 or an errno,
 * which svpi_detail explains. ETIMEDOUT: the driver has answered nobody for a minute; if it does carry the request
 * out later, what the request made lasts until the program detaches. */
int svpi_call(struct svpi *, enum svpi_op, const void *body, size_t len, void *answer, size_t size);
/* svpi_call_fd also returns the descriptor that comes with the answer. */
int svpi_call_fd(struct svpi *, enum svpi_op, const void *body, size_t len, void *answer, size_t size, int *fd);
/* svpi_list asks for a list of elements of size bytes; the caller frees the list. */
int svpi_list(struct svpi *, enum svpi_op, const void *body, size_t len, size_t size, void **list, size_t *count);

/* svpi_detail is the driver's explanation of this thread's last failed call. */
const char *svpi_detail(void);

/* svpi_refusal is that if the driver itself has answered so, and NULL if it was not asked or did not answer. */
const char *svpi_refusal(void);

/* svpi_pump handles what the driver has sent, without waiting. */
void svpi_pump(struct svpi *);

/* svpi_listen calls svpi_pump if frames of the direct path have arrived, which the driver sends unasked. */
static inline void svpi_listen(struct svpi *s)
{
	uint32_t told = atomic_load_explicit(&s->doorbells.h->told, memory_order_relaxed);

	if (__builtin_expect((int32_t)(told - atomic_load_explicit(&s->neighbours.took, memory_order_relaxed)) > 0, 0))
		svpi_pump(s);
}

/* svpi_take takes the oldest event for which wants is true, without waiting. */
bool svpi_take(struct svpi *, bool (*wants)(const struct svpi_event *, void *), void *arg, struct svpi_event *out);

/* svpi_doorbell tells the driver that a queue has work. *last must be 0 at first; see svpi_noted. */
void svpi_doorbell_ring(struct svpi *, uint32_t handle, uint32_t *last);
static inline void svpi_doorbell(struct svpi *s, uint32_t handle, uint32_t *last)
{
	if (!svpi_noted(&s->doorbells, handle, last))
		svpi_doorbell_ring(s, handle, last);
}

/* svpi_memory returns the memory of a ring, or NULL if the driver's description of it is impossible. */
void *svpi_memory(struct svpi *, const struct svpi_ring *);

/* svpi_errno translates a class of refusals into an errno. */
int svpi_errno(uint32_t code);

#pragma GCC visibility pop

#endif
