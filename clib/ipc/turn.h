/*
 * The turn: processes that share an attachment since a fork ask one after the other, since the answers come by one
 * stream. Internal to the library.
 */
#ifndef SVPI_TURN_H
#define SVPI_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct svpi;

/* What all processes that use an attachment have in common. */
struct svpi_turn {
	pthread_mutex_t asks;  /* held from a request to its answer, by processes that share the attachment */
	pthread_mutex_t sends; /* held while a frame is sent */
	/* Those tell that a frame was begun and not finished: when nobody holds the lock, a process died in its middle, and
	 * the stream is of no use any more. */
	bool reading, sending;
	uint64_t last_id; /* of a request; protected by svpi.lock, and by asks */
};

/* svpi_turn_make returns one in memory that children of fork share; NULL with errno. svpi_turn_free unmaps it. */
struct svpi_turn *svpi_turn_make(void);
void svpi_turn_free(struct svpi_turn *);

/* svpi_turn_lock takes one of the locks, at once or not at all if it may not wait: EBUSY. ECONNRESET: a process died in
 * the middle of a frame; the lock is not taken. */
int svpi_turn_lock(pthread_mutex_t *, const bool *begun, bool wait);

#endif
