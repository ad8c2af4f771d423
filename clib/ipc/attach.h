/*
 * Attaching to the driver: the stream of docs/ipc.md, its memory, and who waits for what.
 *
 * There are no threads here. Whoever needs an answer reads the stream while nobody else does, and hands what is for
 * others to them; svpi_pump takes what is there without waiting.
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

enum { SVPI_FEATURE_SEGMENTS = 1, SVPI_FEATURE_PROCESS_VM = 2, SVPI_FEATURE_COPIER = 4, SVPI_FEATURE_DIRECT = 16 };
enum { SVPI_MAX_ARENAS = 65536 };
enum { SVPI_PATH_PROCESS_VM = 2, SVPI_PATH_COPIER = 3 }; /* how the driver reaches memory that is in no segment */
enum { SVPI_KIND_PD = 1, SVPI_KIND_MEMORY, SVPI_KIND_WINDOW, SVPI_KIND_CQ, SVPI_KIND_SRQ, SVPI_KIND_QP, SVPI_KIND_AH,
       SVPI_KIND_CM };

#pragma GCC visibility push(default)

struct svpi_call;

/* An event that waits for its taker, in the order of its coming. */
struct svpi_queued {
	struct svpi_queued *next;
	struct svpi_event event;
};

/* An attachment. All fields are this library's own but about, which does not change. */
struct svpi {
	struct svpi_welcome about;
	struct svpi *next; /* of this process */
	pid_t pid;	   /* of the process that attached, or that it moved to */
	int users;
	_Atomic bool moved; /* this is a child of that process: see svpi_here */
	uint32_t moves;	    /* how often it moved */
	pthread_mutex_t move_lock;

	int fd;
	pthread_mutex_t send_lock;

	pthread_mutex_t lock; /* of everything below */
	pthread_cond_t news;
	bool reading;	/* somebody reads the stream */
	bool broken;	/* it has ended, for the reason */
	char reason[160];
	uint64_t last_id;
	struct svpi_call *calls;
	uint32_t looks, heard, asked; /* looks so far; how many there were at the last answer; when life was asked for */
	uint64_t next_look;    /* in ms, see svpi_now_ms */
	int *fds, nfds, fdcap; /* descriptors that came and whose frames did not */
	uint8_t *frame;
	size_t framecap;

	/* Events go to the queue that their object's kind has, in order. */
	struct svpi_queued *events, **events_end;
	uint32_t taken; /* events taken since credit was granted */
	pthread_cond_t event_news;

	void *arenas[SVPI_MAX_ARENAS];
	uint64_t arena_size[SVPI_MAX_ARENAS];
	uint32_t narenas;
	struct svpi_doorbells doorbells;
	int wake;

	bool direct; /* takes part in the direct path */
	struct svpi_neighbours neighbours;

	void *copier;
	pthread_t copier_thread;
};

/* svpi_get returns this process's attachment, made when it is asked for first; NULL with errno: ENOENT or
 * ECONNREFUSED where no driver is there. svpi_put gives it back. */
struct svpi *svpi_get(void);
void svpi_put(struct svpi *);

/* svpi_move tells the driver that this child of the process that attached goes on with the attachment; 0, or an errno. */
int svpi_move(struct svpi *);
/* svpi_here is called before the driver is to look at the program's memory. */
static inline int svpi_here(struct svpi *s) { return __builtin_expect(s->moved, 0) ? svpi_move(s) : 0; }

/* svpi_call asks the driver. The answer has exactly size bytes. 0, or an errno; svpi_detail has the words. ETIMEDOUT: the driver
 * has answered nothing to anybody for a minute, and what the request makes, should it be carried out after all, lasts until
 * the program detaches. */
int svpi_call(struct svpi *, enum svpi_op, const void *body, size_t len, void *answer, size_t size);
/* svpi_call_fd takes the descriptor that comes with the answer too. */
int svpi_call_fd(struct svpi *, enum svpi_op, const void *body, size_t len, void *answer, size_t size, int *fd);
/* svpi_list asks for a list of elements of size bytes, which the caller frees. */
int svpi_list(struct svpi *, enum svpi_op, const void *body, size_t len, size_t size, void **list, size_t *count);

/* svpi_detail is what the driver said of this thread's last call that failed. */
const char *svpi_detail(void);

/* svpi_pump takes what the driver has sent, without waiting. */
void svpi_pump(struct svpi *);

/* svpi_listen does so where there is something of the direct path, which nobody has asked for. */
static inline void svpi_listen(struct svpi *s)
{
	uint32_t told = atomic_load_explicit(&s->doorbells.h->told, memory_order_relaxed);

	if (__builtin_expect((int32_t)(told - atomic_load_explicit(&s->neighbours.took, memory_order_relaxed)) > 0, 0))
		svpi_pump(s);
}

/* svpi_take takes the oldest event that wants accepts (false: another's), without waiting. */
bool svpi_take(struct svpi *, bool (*wants)(const struct svpi_event *, void *), void *arg, struct svpi_event *out);

/* svpi_doorbell says that there is work on a queue; *last is 0 at first, see svpi_noted. */
void svpi_doorbell_ring(struct svpi *, uint32_t handle, uint32_t *last);
static inline void svpi_doorbell(struct svpi *s, uint32_t handle, uint32_t *last)
{
	if (!svpi_noted(&s->doorbells, handle, last))
		svpi_doorbell_ring(s, handle, last);
}

/* svpi_memory is the memory of a ring, NULL where the driver's answer cannot be. */
void *svpi_memory(struct svpi *, const struct svpi_ring *);

/* svpi_errno is the errno of a class of refusals. */
int svpi_errno(uint32_t code);

#pragma GCC visibility pop

#endif
