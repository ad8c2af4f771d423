/* Measures of cost: things done in turn, round after round, with medians, so that what else the machine does meets all alike. */
#ifndef COST_H
#define COST_H

#include "bed.h"

/* One connection: both ends, on two adapters. */
struct pair { struct end a, b; };

/* A thing that is measured: once does it, or a burst of it, and returns how many nanoseconds one took. */
struct measure {
	const char *what;
	double (*once)(void);
	double median; /* what compare found */
};

/* compare does things in turn, and prints medians: how long each takes, how many are done a second, and how that compares with the
 * first, which is the baseline. Returns the median of what the last took more than the one before it, in nanoseconds. */
double compare(const char *title, struct measure *, int things, int rounds);

/* nanoseconds reads CLOCK_MONOTONIC. */
double nanoseconds(void);

/* connect makes a pair whose requests complete in cq, or in queues of the ends' own if it is NULL. depth is that of the send queue. */
void connect_pair(struct pair *, struct ibv_cq_init_attr_ex *, struct ibv_cq_ex **, uint32_t depth);
void close_pair(struct pair *);

/* write_one has n bytes written to the peer, and waits for the completion. */
void write_one(struct pair *, uint64_t to, uint32_t rkey, uint32_t n);

/* What is measured in files of its own. */
void cost_stamps(void);
void cost_memory(void);

#endif
