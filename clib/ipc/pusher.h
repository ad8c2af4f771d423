/*
 * The second ring of a CQ, as filled by several programs of the direct path at a time: docs/spec/ipc.md, "The second ring
 * of a CQ". The consumer's side is in ring.h.
 */
#ifndef SVPI_PUSHER_H
#define SVPI_PUSHER_H

#include "ring.h"

struct svpi_pusher {
	struct svpi_ring_header *h; /* header of the first ring; NULL: not open */
	_Atomic uint32_t *tail;
	struct svpi_cqe *slots;
	uint32_t count, shift;
};

static inline uint64_t svpi_pusher_size(uint32_t entries)
{
	uint32_t count = entries < SVPI_MAX_SHARED ? entries : SVPI_MAX_SHARED;

	return sizeof(struct svpi_ring_header) + ((uint64_t)entries + count) * sizeof(struct svpi_cqe) + SVPI_SHARED_HEADER;
}

/* svpi_pusher_open opens the ring in memory of svpi_pusher_size bytes; entries is a power of two. */
static inline void svpi_pusher_open(struct svpi_pusher *p, void *memory, uint32_t entries)
{
	uint8_t *second = (uint8_t *)memory + sizeof(struct svpi_ring_header) + (size_t)entries * sizeof(struct svpi_cqe);

	p->h = memory;
	p->tail = (_Atomic uint32_t *)second;
	p->slots = (struct svpi_cqe *)(second + SVPI_SHARED_HEADER);
	p->count = entries < SVPI_MAX_SHARED ? entries : SVPI_MAX_SHARED;
	p->shift = (uint32_t)__builtin_ctz(p->count);
}

static inline struct svpi_cqe *svpi_pusher_slot(const struct svpi_pusher *p, uint32_t index)
{
	return &p->slots[index & (p->count - 1)];
}

/* svpi_expect prefetches the slot that will be claimed next: it is in the cache of the consumer, which gave it back
 * and looks at it. */
static inline void svpi_expect(const struct svpi_pusher *p)
{
	__builtin_prefetch(svpi_pusher_slot(p, atomic_load_explicit(p->tail, memory_order_relaxed)), 1);
}

static inline uint64_t svpi_pusher_lap(const struct svpi_pusher *p, uint32_t index)
{
	return (uint64_t)(index >> p->shift) << 32;
}

static inline uint64_t svpi_claim_of(uint32_t owner) { return (uint64_t)owner << 2 | SVPI_PHASE_CLAIMED; }

/* svpi_claim takes a slot for owner. It returns false if none is free, or if none is found within twice the ring's
 * length, as when the ring is full of nonsense.
 *
 * All slots before the tail have been claimed, and perhaps some behind it: filling a slot stores the tail without
 * checking whether others have stored a higher one meanwhile, and the next to claim a slot moves it on if nobody has.
 * The state is not read before it is swapped: the consumer looks at the slot all the while, and every extra read
 * would fetch the cache line once more. */
static inline bool svpi_claim(const struct svpi_pusher *p, uint32_t owner, uint32_t *index)
{
	for (uint32_t tries = 0; tries <= 2 * p->count; tries++) {
		uint32_t t = atomic_load_explicit(p->tail, memory_order_acquire), was = t;
		uint64_t lap = svpi_pusher_lap(p, t), v = lap;

		if (atomic_compare_exchange_strong(&svpi_pusher_slot(p, t)->state, &v, lap | svpi_claim_of(owner))) {
			*index = t;
			return true;
		}
		/* how many entries the slot's lap is ahead of the index's */
		uint32_t ahead = ((uint32_t)(v >> 32) << p->shift) - (t & ~(p->count - 1));

		if (ahead == -p->count)
			return false; /* still holds an entry of the lap before, which was not taken */
		/* in the same lap, another has claimed it; a lap ahead, all slots before it must have been claimed */
		atomic_compare_exchange_strong(p->tail, &was, ahead == 0 ? t + 1 : t + ahead - p->count + 1);
	}
	return false;
}

/* svpi_passed moves the tail behind a claimed slot. */
static inline void svpi_passed(const struct svpi_pusher *p, uint32_t index)
{
	if (atomic_load_explicit(p->tail, memory_order_relaxed) == index)
		atomic_store_explicit(p->tail, index + 1, memory_order_release);
}

/* svpi_fill publishes a completion in a slot that owner has claimed; false: the claim was revoked. */
static inline bool svpi_fill(const struct svpi_pusher *p, uint32_t index, uint32_t owner, const struct svpi_cqe *c)
{
	struct svpi_cqe *e = svpi_pusher_slot(p, index);
	uint64_t lap = svpi_pusher_lap(p, index), claim = lap | svpi_claim_of(owner);

	memcpy(e, c, offsetof(struct svpi_cqe, state));

	bool filled = atomic_compare_exchange_strong(&e->state, &claim, lap | SVPI_PHASE_READY);

	svpi_passed(p, index);
	return filled;
}

/* svpi_cancel gives up a claimed slot. */
static inline void svpi_cancel(const struct svpi_pusher *p, uint32_t index, uint32_t owner)
{
	uint64_t lap = svpi_pusher_lap(p, index), claim = lap | svpi_claim_of(owner);

	atomic_compare_exchange_strong(&svpi_pusher_slot(p, index)->state, &claim, lap | SVPI_PHASE_VOID);
	svpi_passed(p, index);
}

/* svpi_hides tells whether something may have waited behind a slot. */
static inline bool svpi_hides(const struct svpi_pusher *p, uint32_t index)
{
	uint64_t v = atomic_load(&svpi_pusher_slot(p, index + 1)->state), lap = svpi_pusher_lap(p, index + 1);

	return atomic_load(&p->h->producer) != atomic_load(&p->h->consumer) ||
	       (p->count > 1 && (v == (lap | SVPI_PHASE_READY) || v == (lap | SVPI_PHASE_VOID)));
}

/* svpi_hidden tells whether a slot before this one, that the consumer has not passed, is claimed but not filled. */
static inline bool svpi_hidden(const struct svpi_pusher *p, uint32_t index)
{
	for (uint32_t n = 1; n < p->count; n++) {
		uint64_t v = atomic_load(&svpi_pusher_slot(p, index - n)->state);

		if (v >> 32 != svpi_pusher_lap(p, index - n) >> 32)
			return false;
		if ((v & 3) == SVPI_PHASE_CLAIMED)
			return true;
	}
	return false;
}

/* svpi_due tells whether an event must be raised because a slot was filled with c, or given up if c is NULL. A claimed
 * slot hides what is behind it: whoever fills it raises the event for that too, and a completion behind it raises none.
 * Each stores its own slot before it looks at the other's. Completions made here are all successes. */
static inline bool svpi_due(const struct svpi_pusher *p, uint32_t index, const struct svpi_cqe *c)
{
	uint32_t arm = atomic_load(&p->h->arm);
	bool asked = c && (arm == SVPI_ARM_SOLICITED ? (c->flags & SVPI_CQE_SOLICITED) != 0 : arm > SVPI_ARM_SOLICITED);

	return __builtin_expect(arm != SVPI_ARM_NONE, 0) && (asked || svpi_hides(p, index)) && !svpi_hidden(p, index);
}

/* svpi_raise raises the event, and tells whether threads sleep on the sequence word. */
static inline bool svpi_raise(const struct svpi_pusher *p)
{
	if (atomic_exchange(&p->h->arm, SVPI_ARM_NONE) == SVPI_ARM_NONE)
		return false;
	atomic_fetch_add(&p->h->sequence, 1);
	return atomic_load(&p->h->sleepers) != 0;
}

#endif
