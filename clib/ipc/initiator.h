/*
 * The direct path: the initiator of a connection carries its requests out in the memory of its peer while the driver
 * lends it the direction (docs/ipc.md, "The direct path"). Only what succeeds is done here; for everything else the
 * direction is given back with the request untouched.
 */
#ifndef SVPI_INITIATOR_H
#define SVPI_INITIATOR_H

#include "attach.h"
#include "pusher.h"

enum { SVPI_TABLE_KEYS = 8192 };

/* Bits of the rights of regions and queue pairs. */
enum { SVPI_LOCAL_WRITE = 1, SVPI_REMOTE_WRITE = 2, SVPI_REMOTE_READ = 4, SVPI_REMOTE_ATOMIC = 8 };

/* The receive ring of the peer. */
struct svpi_borrowed {
	struct svpi_ring_header *h; /* NULL: not open */
	uint8_t *entries;
	uint32_t mask, stride;
	uint32_t next, seen;
};

enum { SVPI_SEGMENTS_KNOWN = 16 };

/* One queue pair's. It is used under the lock of the send queue. */
struct svpi_initiator {
	struct svpi *s;
	struct svpi_program *peer;
	struct svpi_direction *dir;
	const struct svpi_key *own, *theirs; /* tables; NULL: nothing can be done here */
	struct svpi_initiator *older;	     /* that it replaced */
	uint32_t qp, owner;
	uint32_t bell;	/* see svpi_ring */
	uint64_t clock; /* CLOCK_MONOTONIC at time 0 of completions */

	uint32_t op, current; /* the operation, and the lease that it has */
	uint32_t moves;	      /* of the process, when op was read */
	uint32_t lease;	      /* that the terms are of */
	struct svpi_terms terms;
	uint8_t shift; /* of the path MTU */
	struct svpi_pusher send_cq, recv_cq;
	struct svpi_borrowed receive;
	bool waited;	  /* for a receive, in vain */
	bool rings;	  /* the driver has to raise events */
	uint32_t missing; /* segment that is to be mapped */
	struct svpi_ring_header *wake[2];
	int wakes;

	/* Segments as they were found last, as long as none was taken away since. */
	uint32_t generation, own_generation;
	struct { uint32_t number; uint8_t *at; size_t size; } known[SVPI_SEGMENTS_KNOWN];
	uint32_t own_known[SVPI_SEGMENTS_KNOWN];
};

struct svpi_initiator *svpi_initiator_new(struct svpi *, struct svpi_program *, const struct svpi_introduction *,
					  struct svpi_direction *record);
void svpi_initiator_free(struct svpi_initiator *);

#pragma GCC visibility push(default)

/* svpi_execute carries out a request whose predecessors have all completed, and completes it; false: it did not. The
 * request is the driver's then, unless the direction is still lent: then it may stand in the ring for svpi_catch_up. */
bool svpi_execute(struct svpi_initiator *, const struct svpi_send_entry *);
/* svpi_catch_up carries out what stands in the ring, the oldest first, and tells whether nothing is left there. */
bool svpi_catch_up(struct svpi_initiator *, struct svpi_producer *);
/* svpi_initiator_reap frees those that an initiator has replaced. Nobody looks at peers_lease meanwhile. */
void svpi_initiator_reap(struct svpi_initiator *);

#pragma GCC visibility pop

/* svpi_lent tells whether requests may be carried out here. */
static inline bool svpi_lent(const struct svpi_initiator *i) { return __atomic_load_n(&i->dir->lease, __ATOMIC_SEQ_CST) != 0; }

/* svpi_receiving tells whether the peer takes receives itself: the driver need not be told of those that are posted.
 * Called after a receive was published. */
static inline bool svpi_receiving(struct svpi_slot *slot)
{
	const uint32_t *lease = atomic_load_explicit(&slot->peers_lease, memory_order_acquire);

	return lease && __atomic_load_n(lease, __ATOMIC_SEQ_CST) != 0;
}

/* Within the direct path. */

/* Why a request was not carried out: docs/ipc.md, Direction.Reason. Before NO_RECEIVE the direction is given back. */
enum svpi_reason { SVPI_DONE, SVPI_OTHER_REQUEST, SVPI_LOCAL_MEMORY, SVPI_REMOTE_MEMORY, SVPI_NOT_SHARED, SVPI_TOO_SHORT,
		   SVPI_NO_RECEIVE, SVPI_NO_COMPLETION, SVPI_NOT_MAPPED, SVPI_NOT_INTRODUCED };

/* svpi_carry_out does a request within an operation. */
enum svpi_reason svpi_carry_out(struct svpi_initiator *, const struct svpi_send_entry *);

/* A piece of memory. */
struct svpi_piece {
	uint8_t *at;
	size_t length;
	bool own; /* this program's alone, which may have taken it away */
};

enum { SVPI_MAX_SGE = 32 };
struct svpi_pieces {
	size_t total;
	int count;
	struct svpi_piece list[SVPI_MAX_SGE];
};

/* svpi_gather finds the program's memory that a request names, with the rights that are needed. */
enum svpi_reason svpi_gather(struct svpi_initiator *, const struct svpi_send_entry *, uint32_t need, struct svpi_pieces *);
/* svpi_reach finds n bytes of the peer's memory. */
enum svpi_reason svpi_reach(struct svpi_initiator *, uint32_t key, uint64_t addr, uint64_t n, uint32_t need, uint8_t **at);
/* svpi_check_key holds a key of the peer to a range of local memory, as a receive names it. */
bool svpi_check_key(struct svpi_initiator *, const struct svpi_sge *);
/* svpi_transfer copies n bytes from pieces to pieces, the last of them last; false: memory is not there any more. */
bool svpi_transfer(struct svpi_initiator *, const struct svpi_pieces *from, const struct svpi_pieces *to, size_t n);

#endif
