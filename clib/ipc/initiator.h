/*
 * The direct path: the initiator of a connection carries out its requests in its peer's memory while the driver lends
 * it the direction (docs/spec/ipc.md, "The direct path"). Only requests that succeed are carried out here; for all others
 * the direction is given back with the request untouched.
 */
#ifndef SVPI_INITIATOR_H
#define SVPI_INITIATOR_H

#include "attach.h"
#include "pusher.h"

enum { SVPI_TABLE_KEYS = 8192 };

/* Bits of Terms.Flags: completions in the send CQ, and in the receive CQ, say when they were made. Drivers before
 * version 2.6 do not say it, and want it of all. */
enum { SVPI_SEND_TIMES = 32, SVPI_RECV_TIMES = 64 };

/* Access rights of regions and queue pairs. */
enum { SVPI_LOCAL_WRITE = 1, SVPI_REMOTE_WRITE = 2, SVPI_REMOTE_READ = 4, SVPI_REMOTE_ATOMIC = 8 };

/* The receive ring of the peer. */
struct svpi_borrowed {
	struct svpi_ring_header *h; /* NULL: not open */
	uint8_t *entries;
	uint32_t mask, stride;
	uint32_t next, seen;
};

enum { SVPI_SEGMENTS_KNOWN = 16 };

/* The initiator of one queue pair. It is used under the lock of the send queue. */
struct svpi_initiator {
	struct svpi *s;
	struct svpi_program *peer;
	struct svpi_direction *dir, *back; /* its own direction, and the peer's */
	const struct svpi_key *own, *theirs; /* key tables; NULL: nothing can be carried out here */
	struct svpi_initiator *older;	     /* the one that it replaced */
	uint32_t qp, owner;
	uint32_t bell;	/* see svpi_ring */
	uint64_t clock; /* CLOCK_MONOTONIC at time 0 of completions */

	uint32_t op, current; /* number of the operation, and the lease under which it runs */
	uint32_t moves;	      /* of the attachment, when op was read */
	uint32_t lease;	      /* the lease that terms belong to */
	struct svpi_terms terms;
	uint8_t shift; /* log2 of the path MTU */
	struct svpi_pusher send_cq, recv_cq;
	struct svpi_borrowed receive;
	bool waited;	  /* the last wait for a receive was in vain */
	bool rings;	  /* the driver has to be told to raise events */
	uint32_t missing; /* number of the segment that has to be mapped */
	struct svpi_ring_header *wake[2];
	int wakes;

	/* Segments as last found; forgotten when any is taken away (generation changes). */
	uint32_t generation, own_generation;
	struct { uint32_t number; uint8_t *at; size_t size; } known[SVPI_SEGMENTS_KNOWN];
	uint32_t own_known[SVPI_SEGMENTS_KNOWN];
};

struct svpi_initiator *svpi_initiator_new(struct svpi *, struct svpi_program *, const struct svpi_introduction *,
					  struct svpi_direction *record);
void svpi_initiator_free(struct svpi_initiator *);

#pragma GCC visibility push(default)

/* svpi_execute carries out a request whose predecessors have all completed, and completes it; false: it was not
 * carried out. It is then left to the driver or, while the direction is still lent, may stay in the ring for
 * svpi_catch_up. */
bool svpi_execute(struct svpi_initiator *, const struct svpi_send_entry *);
/* svpi_catch_up carries out the requests in the ring, oldest first, and tells whether none is left. */
bool svpi_catch_up(struct svpi_initiator *, struct svpi_producer *);
/* svpi_initiator_reap frees the initiators that this one has replaced. Nobody may be using the slot's peers_lease
 * meanwhile. */
void svpi_initiator_reap(struct svpi_initiator *);

#pragma GCC visibility pop

/* svpi_lent tells whether requests may be carried out here at the moment. */
static inline bool svpi_lent(const struct svpi_initiator *i) { return __atomic_load_n(&i->dir->lease, __ATOMIC_SEQ_CST) != 0; }

/* svpi_receiving tells whether the peer itself takes this side's receives, so that the driver need not be told of new
 * ones. It has to be called after a receive has been published. */
static inline bool svpi_receiving(struct svpi_slot *slot)
{
	const uint32_t *lease = atomic_load_explicit(&slot->peers_lease, memory_order_acquire);

	return lease && __atomic_load_n(lease, __ATOMIC_SEQ_CST) != 0;
}

/* Used within the direct path only. */

/* Why a request was not carried out: docs/spec/ipc.md, Direction.Reason. For reasons before NO_RECEIVE the direction is
 * given back, and for those behind NOT_INTRODUCED. */
enum svpi_reason { SVPI_DONE, SVPI_OTHER_REQUEST, SVPI_LOCAL_MEMORY, SVPI_REMOTE_MEMORY, SVPI_NOT_SHARED, SVPI_TOO_SHORT,
		   SVPI_NO_RECEIVE, SVPI_NO_COMPLETION, SVPI_NOT_MAPPED, SVPI_NOT_INTRODUCED, SVPI_NOT_REACHED, SVPI_NOT_COPIED };

/* svpi_carry_out carries out one request; the caller has begun an operation. */
enum svpi_reason svpi_carry_out(struct svpi_initiator *, const struct svpi_send_entry *);

/* A piece of memory. */
struct svpi_piece {
	uint8_t *at;
	size_t length;
	bool own; /* only this program's memory, which it may have unmapped */
};

enum { SVPI_MAX_SGE = 32 };
struct svpi_pieces {
	size_t total;
	int count;
	bool far; /* in the peer's process, at addresses of that */
	struct svpi_piece list[SVPI_MAX_SGE];
};

/* svpi_gather finds the program's own memory that a request names, and checks that it has the rights in need. */
enum svpi_reason svpi_gather(struct svpi_initiator *, const struct svpi_send_entry *, uint32_t need, struct svpi_pieces *);
/* svpi_reach finds n bytes of the peer's memory, and checks key and rights. *far tells whether they are not mapped
 * here: then *at is their address in the peer's process. */
enum svpi_reason svpi_reach(struct svpi_initiator *, uint32_t key, uint64_t addr, uint64_t n, uint32_t need, uint8_t **at,
			    bool *far);
/* svpi_transfer copies n bytes between lists of pieces, the last bytes last, unless some of the memory is no longer
 * there. One of the lists may be far. */
enum svpi_reason svpi_transfer(struct svpi_initiator *, const struct svpi_pieces *from, const struct svpi_pieces *to, size_t n);

#endif
