/*
 * What a program knows about its neighbours, the programs with which it shares the direct path: docs/spec/ipc.md, "The
 * direct path". The driver sends it unasked on the stream; the thread that reads the stream records it here.
 */
#ifndef SVPI_NEIGHBOUR_H
#define SVPI_NEIGHBOUR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process.h"

struct svpi;
struct svpi_initiator;
struct svpi_key;
struct svpi_ring_at;

/* Where a queue pair finds its initiator after the driver has introduced the two. */
struct svpi_slot {
	struct svpi_slot *next;
	uint32_t handle, number;
	_Atomic(struct svpi_initiator *) initiator; /* NULL: none yet */
	_Atomic(const uint32_t *) peers_lease;	    /* lease of the direction in which this queue pair receives; NULL: none yet */
};

/* A mapped piece of memory. */
struct svpi_mapping {
	void *at;
	size_t size;
};

/* A segment of a neighbour's memory. */
struct svpi_lent_segment {
	uint32_t number;
	bool refused;
	struct svpi_mapping memory; /* empty while the driver is being asked for it */
};

/* A neighbour. Everything that changes is protected by the lock of the attachment. */
struct svpi_program {
	struct svpi_program *next;
	uint32_t id;
	uint32_t users; /* initiators that refer to it, and 1 for the list */
	bool gone;
	bool incomplete; /* something could not be mapped: nothing is carried out directly */
	struct svpi_mapping keys;
	struct svpi_mapping *areas, *arenas;
	uint32_t nareas, narenas;
	struct svpi_lent_segment *segments; /* sorted by number */
	uint32_t nsegments;
	_Atomic uint32_t generation; /* of the segments: changes when one is taken away */
	struct svpi_process process;
};

enum { SVPI_SLOTS = 1024 };

/* The neighbours of an attachment. */
struct svpi_neighbours {
	struct svpi_mapping own; /* this program's own key table */
	struct svpi_program *programs;
	struct svpi_slot *slots[SVPI_SLOTS];
	_Atomic uint32_t took; /* frames handled so far */
};

#pragma GCC visibility push(default)

/* svpi_slot_add records a queue pair before it is connected; svpi_slot_remove forgets it when it has ended. */
void svpi_slot_add(struct svpi *, struct svpi_slot *, uint32_t handle, uint32_t number);
void svpi_slot_remove(struct svpi *, struct svpi_slot *);

#pragma GCC visibility pop

/* svpi_neighbour_frame handles share, introduce, process and drop. fd is the descriptor that came with share, or -1; it is
 * closed. Returns false if the frame breaks the protocol. The lock is held. */
bool svpi_neighbour_frame(struct svpi *, uint16_t op, const void *body, size_t len, int fd);
/* svpi_neighbours_recall ends the use of the direct path when there is no driver any more to do so: when it returns, no
 * peer is in an operation that may use this program's memory, nor will begin one. The lock is held. */
void svpi_neighbours_recall(struct svpi *);
/* svpi_neighbours_end forgets all neighbours and unmaps their memory. */
void svpi_neighbours_end(struct svpi *);

/* svpi_ring_memory returns the memory of a ring in the arenas of a program, or for NULL in this program's own; NULL:
 * it is not mapped. */
void *svpi_ring_memory(struct svpi *, struct svpi_program *, const struct svpi_ring_at *, uint64_t size);

/* svpi_segment_of finds a segment of a neighbour; NULL: it is not mapped, and with refused never will be. */
void *svpi_segment_of(struct svpi *, struct svpi_program *, uint32_t number, size_t *size, bool *refused);
/* svpi_segment_map asks the driver for a segment and maps it; false: it is not available. Not to be called within an
 * operation. */
bool svpi_segment_map(struct svpi *, struct svpi_program *, uint32_t number);

void svpi_program_put(struct svpi *, struct svpi_program *);

#endif
