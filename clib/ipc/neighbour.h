/*
 * What a program knows of its neighbours, the programs that it shares the direct path with: docs/ipc.md, "The direct
 * path". The driver says it on the stream, without having been asked; whoever reads the stream notes it here.
 */
#ifndef SVPI_NEIGHBOUR_H
#define SVPI_NEIGHBOUR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct svpi;
struct svpi_initiator;
struct svpi_key;
struct svpi_ring_at;

/* Where a queue pair finds its initiator once the driver has introduced it. */
struct svpi_slot {
	struct svpi_slot *next;
	uint32_t handle, number;
	_Atomic(struct svpi_initiator *) initiator; /* NULL: none yet */
	_Atomic(const uint32_t *) peers_lease;	    /* of the direction that takes receives; NULL: none yet */
};

/* Memory that was mapped. */
struct svpi_mapping {
	void *at;
	size_t size;
};

/* A segment of a neighbour. */
struct svpi_lent_segment {
	uint32_t number;
	bool refused;
	struct svpi_mapping memory; /* none while it is asked for */
};

/* A neighbour. Everything is under the lock of the attachment but what never changes. */
struct svpi_program {
	struct svpi_program *next;
	uint32_t id;
	uint32_t users; /* initiators, and the list */
	bool gone;
	bool incomplete; /* something could not be mapped: nothing is done directly */
	struct svpi_mapping keys;
	struct svpi_mapping *areas, *arenas;
	uint32_t nareas, narenas;
	struct svpi_lent_segment *segments; /* by number */
	uint32_t nsegments;
	_Atomic uint32_t generation; /* of the segments: another one where one was taken away */
};

enum { SVPI_SLOTS = 1024 };

/* The neighbours of an attachment. */
struct svpi_neighbours {
	struct svpi_mapping own; /* key table */
	struct svpi_program *programs;
	struct svpi_slot *slots[SVPI_SLOTS];
	_Atomic uint32_t took; /* frames */
};

#pragma GCC visibility push(default)

/* svpi_slot_add notes a queue pair, before it is connected; svpi_slot_remove forgets it, when it has ended. */
void svpi_slot_add(struct svpi *, struct svpi_slot *, uint32_t handle, uint32_t number);
void svpi_slot_remove(struct svpi *, struct svpi_slot *);

#pragma GCC visibility pop

/* svpi_neighbour_frame takes share, introduce or drop, with the descriptor of share or -1, which is closed; false: it
 * breaks the protocol. The lock is held. */
bool svpi_neighbour_frame(struct svpi *, uint16_t op, const void *body, size_t len, int fd);
/* svpi_neighbours_end gives everything back. */
void svpi_neighbours_end(struct svpi *);

/* svpi_ring_at is the memory of a ring in the arenas of a program, NULL: in this one's own; NULL where it is not mapped. */
void *svpi_ring_memory(struct svpi *, struct svpi_program *, const struct svpi_ring_at *, uint64_t size);

/* svpi_segment_of finds a segment of a neighbour; NULL: it is not mapped. refused: nor will it be. */
void *svpi_segment_of(struct svpi *, struct svpi_program *, uint32_t number, size_t *size, bool *refused);
/* svpi_segment_map asks the driver for a segment and maps it; false: it cannot be had. Outside of operations. */
bool svpi_segment_map(struct svpi *, struct svpi_program *, uint32_t number);

void svpi_program_put(struct svpi *, struct svpi_program *);

#endif
