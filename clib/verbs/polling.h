/*
 * Polling a completion queue, in both interfaces.
 */
#ifndef SVPI_POLLING_H
#define SVPI_POLLING_H

#include <arpa/inet.h>

#include "../ipc/waiting.h"
#include "object.h"

typedef void svpi_each(void *arg, int i, const struct svpi_cqe *);

/* svpi_cq_lock and svpi_cq_unlock enclose what one thread at a time may do with a queue. */
static inline void svpi_cq_lock(struct svpi_cq *c)
{
	if (!c->single)
		svpi_spin_lock(&c->lock);
}

static inline void svpi_cq_unlock(struct svpi_cq *c)
{
	if (!c->single)
		svpi_spin_unlock(&c->lock);
}

static inline enum ibv_wc_opcode svpi_opcode_of(const struct svpi_cqe *e) { return e->op < IBV_WC_RECV ? e->op - 1 : e->op; }

static inline unsigned svpi_flags_of(const struct svpi_cqe *e)
{
	unsigned f = (e->flags & SVPI_CQE_IMM ? IBV_WC_WITH_IMM : 0) | (e->flags & SVPI_CQE_INVALIDATED ? IBV_WC_WITH_INV : 0) |
		     (e->flags & SVPI_CQE_GRH ? IBV_WC_GRH : 0);

	if (e->op == IBV_WC_RECV)
		return f | (e->flags & SVPI_CQE_CHECKSUMS ? IBV_WC_IP_CSUM_OK : 0);
	return f | (unsigned)(e->flags >> 1 & (IBV_WC_TM_SYNC_REQ | IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
}

static inline uint32_t svpi_imm_of(const struct svpi_cqe *e) { return e->flags & SVPI_CQE_INVALIDATED ? e->imm : htonl(e->imm); }

/* svpi_next_ring goes on to the ring that a resize has made; the one before it is empty. */
void svpi_next_ring(struct svpi_cq *);

/* svpi_take_ring polls the ring, and goes on to the rings that resizes have made when it is empty. */
static inline int svpi_take_ring(struct svpi_cq *c, int n, svpi_each *each, void *arg)
{
	int k = svpi_poll(&c->ring, n, each, arg);

	while (k == 0 && __builtin_expect(c->later != NULL, 0) && atomic_load(&c->ring.h->flags) & SVPI_RING_MOVED &&
	       svpi_consumer_empty(&c->ring)) {
		svpi_next_ring(c);
		k = svpi_poll(&c->ring, n, each, arg);
	}
	return k;
}

/* svpi_take_late carries out requests that wait in rings, and polls again. */
__attribute__((noinline)) int svpi_take_late(struct svpi_cq *, int n, svpi_each *, void *arg);

static inline int svpi_poll_some(struct svpi_cq *c, int n, svpi_each *each, void *arg)
{
	int k = svpi_take_ring(c, n, each, arg);

	return k == 0 && __builtin_expect(c->lates > 0, 0) ? svpi_take_late(c, n, each, arg) : k;
}

/* svpi_offer yields the processor to the driver, and checks that the driver is still there. -1: nothing will arrive any
 * more. */
__attribute__((noinline)) int svpi_offer(struct svpi_cq *);
/* svpi_calm lets some time pass. A stream of messages arrives faster if it is not watched all the time but collected a
 * few messages at a time. */
__attribute__((noinline)) void svpi_calm(void);

/* svpi_missed is called after every empty poll. */
static inline int svpi_missed(struct svpi_cq *c)
{
	if (++c->idle <= SVPI_STREAM_LOOKS && __atomic_load_n(&c->streamed, __ATOMIC_RELAXED))
		svpi_calm();
	return __builtin_expect(c->idle < c->patience, 1) ? 0 : svpi_offer(c);
}

/* svpi_found is called after every other; received: the last completion was that of a receive. */
static inline void svpi_found(struct svpi_cq *c, bool received)
{
	c->idle = 0;
	c->patience = SVPI_POLL_LOOKS;
	if (received && c->ring.head != c->taken) {
		c->taken = c->ring.head;
		if (!__atomic_load_n(&c->streamed, __ATOMIC_RELAXED))
			__atomic_store_n(&c->streamed, true, __ATOMIC_RELAXED);
	}
}

#endif
