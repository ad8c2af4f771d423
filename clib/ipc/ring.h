/*
 * The rings that a program shares with the driver, seen from the program's side: docs/spec/ipc.md, "Rings". Each ring is
 * used by one thread at a time; doorbells by any number.
 */
#ifndef SVPI_RING_H
#define SVPI_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct svpi_ring_header {
	_Alignas(64) _Atomic uint32_t producer;
	_Alignas(64) _Atomic uint32_t consumer;
	_Alignas(64) _Atomic uint32_t arm;
	_Atomic uint32_t sequence;
	_Atomic uint32_t sleepers;
	_Alignas(64) _Atomic uint32_t flags;
	_Atomic uint32_t told, taken; /* in the doorbell ring: number of unasked frames, sent by the driver and handled here */
};
_Static_assert(sizeof(struct svpi_ring_header) == 256, "layout");

enum { SVPI_RING_ERROR = 1, SVPI_RING_MOVED = 2 };
enum { SVPI_ARM_NONE, SVPI_ARM_ERRORS, SVPI_ARM_SOLICITED, SVPI_ARM_ANY };

/* A ring that this side fills. */
struct svpi_producer {
	struct svpi_ring_header *h;
	uint8_t *entries;
	uint32_t mask, stride;
	uint32_t next; /* index of the next entry */
	uint32_t seen; /* consumer index when last read */
};

static inline void svpi_producer_open(struct svpi_producer *p, void *memory, uint32_t depth, uint32_t stride)
{
	p->h = memory;
	p->entries = (uint8_t *)memory + sizeof(struct svpi_ring_header);
	p->mask = depth - 1;
	p->stride = stride;
	p->next = atomic_load(&p->h->producer);
	p->seen = atomic_load(&p->h->consumer);
}

/* svpi_slot returns the next entry to fill, or NULL if the ring is full. */
static inline uint8_t *svpi_slot(struct svpi_producer *p)
{
	if (__builtin_expect(p->next - p->seen > p->mask, 0)) {
		p->seen = atomic_load_explicit(&p->h->consumer, memory_order_acquire);
		if (p->next - p->seen > p->mask)
			return NULL;
	}
	return p->entries + (size_t)(p->next & p->mask) * p->stride;
}

/* svpi_filled counts the entry that svpi_slot returned as filled; svpi_publish hands all filled entries to the
 * driver. */
static inline void svpi_filled(struct svpi_producer *p) { p->next++; }
static inline void svpi_publish(struct svpi_producer *p) { atomic_store(&p->h->producer, p->next); }

/* svpi_producer_idle tells whether the driver has given back everything in the ring. */
static inline bool svpi_producer_idle(struct svpi_producer *p)
{
	p->seen = atomic_load_explicit(&p->h->consumer, memory_order_acquire);
	return p->seen == p->next;
}

/* svpi_ahead prefetches the entry after the next. The other side read its cache lines one lap ago, and waiting for
 * them is the slowest part of publishing. */
static inline void svpi_ahead(const struct svpi_producer *p)
{
	const uint8_t *e = p->entries + (size_t)((p->next + 1) & p->mask) * p->stride;

	__builtin_prefetch(e, 1);
	__builtin_prefetch(e + 64, 1);
}

/* A send request; inline data or SGEs follow. */
struct svpi_send_entry {
	uint8_t op, flags, sges, none;
	uint32_t imm;
	uint64_t id;
	uint64_t remote;
	uint32_t rkey, inline_bytes;
	uint64_t compare_add, swap;
	uint32_t ah, qpn, qkey, access;
};
_Static_assert(sizeof(struct svpi_send_entry) == 64, "layout");

enum { SVPI_WR_SEND = 1, SVPI_WR_SEND_IMM, SVPI_WR_SEND_INV, SVPI_WR_WRITE, SVPI_WR_WRITE_IMM, SVPI_WR_READ, SVPI_WR_CAS,
       SVPI_WR_FADD, SVPI_WR_BIND, SVPI_WR_LOCAL_INV, SVPI_WR_ATOMIC_WRITE, SVPI_WR_FLUSH, SVPI_WR_LARGE_SEND };
enum { SVPI_WR_SIGNALED = 1, SVPI_WR_SOLICITED = 2, SVPI_WR_FENCE = 4, SVPI_WR_INLINE = 8, SVPI_WR_CHECKSUMS = 16 };

struct svpi_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

/* A receive request; SGEs follow. */
struct svpi_recv_entry {
	uint64_t id;
	uint32_t sges, none;
};

/* A completion. stamp and state are used in the second ring only. */
struct svpi_cqe {
	uint64_t id, context;
	uint32_t qpn, bytes, imm, src_qp;
	uint8_t status, op, flags, vendor;
	uint16_t pkey_index;
	uint8_t sl, path_bits;
	uint64_t time;
	uint32_t stamp;
	uint16_t slid, none;
	_Atomic uint64_t state;
};
_Static_assert(sizeof(struct svpi_cqe) == 64, "layout");

enum { SVPI_CQE_VOID = 0 /* op: of a queue pair that was reset; only this side writes it */ };
enum { SVPI_CQE_IMM = 1, SVPI_CQE_INVALIDATED = 2, SVPI_CQE_GRH = 4, SVPI_CQE_SOLICITED = 8, SVPI_CQE_RECEIVE = 16,
       SVPI_CQE_CHECKSUMS = 32 /* of a receive of a raw packet queue pair: they are right */ };

/* The second ring of a CQ: completions made by programs of the direct path. */
enum { SVPI_SHARED_HEADER = 64, SVPI_MAX_SHARED = 4096 };
enum { SVPI_PHASE_FREE, SVPI_PHASE_CLAIMED, SVPI_PHASE_READY, SVPI_PHASE_VOID };

/* A completion ring that this side empties. */
struct svpi_consumer {
	struct svpi_ring_header *h;
	struct svpi_cqe *entries;
	uint32_t mask;
	uint32_t next; /* index of the next entry */
	uint32_t seen; /* producer index when last read */

	struct svpi_cqe *shared; /* second ring, NULL if there is none */
	uint32_t shared_count, shared_shift;
	uint32_t head;
};

static inline void svpi_consumer_open(struct svpi_consumer *c, void *memory, uint32_t depth, uint64_t size)
{
	uint64_t first = sizeof(struct svpi_ring_header) + (uint64_t)depth * sizeof(struct svpi_cqe);
	uint32_t count = depth < SVPI_MAX_SHARED ? depth : SVPI_MAX_SHARED;

	memset(c, 0, sizeof(*c));
	c->h = memory;
	c->entries = (struct svpi_cqe *)((uint8_t *)memory + sizeof(struct svpi_ring_header));
	c->mask = depth - 1;
	if (size >= first + SVPI_SHARED_HEADER + (uint64_t)count * sizeof(struct svpi_cqe)) {
		c->shared = (struct svpi_cqe *)((uint8_t *)memory + first + SVPI_SHARED_HEADER);
		c->shared_count = count;
		c->shared_shift = (uint32_t)__builtin_ctz(count);
	}
}

static inline uint32_t svpi_lap(const struct svpi_consumer *c, uint32_t index) { return index >> c->shared_shift; }

/* svpi_shared_peek skips void entries of the second ring, and returns the phase of the oldest other one. */
static inline int svpi_shared_peek(struct svpi_consumer *c, struct svpi_cqe **e)
{
	for (;;) {
		struct svpi_cqe *x = &c->shared[c->head & (c->shared_count - 1)];
		uint64_t v = atomic_load_explicit(&x->state, memory_order_acquire);

		*e = x;
		if ((uint32_t)(v >> 32) != svpi_lap(c, c->head))
			return SVPI_PHASE_FREE;
		if ((v & 3) != SVPI_PHASE_VOID)
			return (int)(v & 3);
		atomic_store(&x->state, (uint64_t)svpi_lap(c, c->head + c->shared_count) << 32);
		c->head++;
	}
}

static inline void svpi_shared_free(struct svpi_consumer *c, struct svpi_cqe *e)
{
	atomic_store_explicit(&e->state, (uint64_t)svpi_lap(c, c->head + c->shared_count) << 32, memory_order_release);
	c->head++;
}

/* svpi_poll passes up to n completions to take, in order of arrival, and returns their number: see "The second ring
 * of a CQ". */
static inline int svpi_poll(struct svpi_consumer *c, int n, void (*take)(void *arg, int i, const struct svpi_cqe *), void *arg)
{
	uint32_t limit = atomic_load_explicit(&c->h->producer, memory_order_acquire);
	uint32_t from = c->next;
	int k = 0;

	while (k < n) {
		if (c->shared) {
			struct svpi_cqe *e;
			int phase = svpi_shared_peek(c, &e);

			if (phase == SVPI_PHASE_CLAIMED)
				break;
			if (phase == SVPI_PHASE_READY) {
				if ((int32_t)(e->stamp - c->next) <= 0) {
					take(arg, k++, e);
					svpi_shared_free(c, e);
					continue;
				}
				if ((int32_t)(e->stamp - limit) > 0)
					limit = e->stamp;
			}
		}
		if (c->next == limit)
			break;
		if (c->seen == c->next) {
			c->seen = atomic_load_explicit(&c->h->producer, memory_order_acquire);
			if (c->seen == c->next)
				break;
		}

		const struct svpi_cqe *e = &c->entries[c->next++ & c->mask];

		if (__builtin_expect(e->op != SVPI_CQE_VOID, 1))
			take(arg, k++, e);
	}
	if (c->next != from)
		atomic_store_explicit(&c->h->consumer, c->next, memory_order_release);
	return k;
}

/* svpi_consumer_forget makes the completions of a queue pair void that wait to be polled. */
static inline void svpi_consumer_forget(struct svpi_consumer *c, uint32_t qpn)
{
	uint32_t waiting = atomic_load_explicit(&c->h->producer, memory_order_acquire) - c->next;

	for (uint32_t i = 0; i < waiting && i <= c->mask; i++) {
		struct svpi_cqe *e = &c->entries[(c->next + i) & c->mask];

		if (e->qpn == qpn)
			e->op = SVPI_CQE_VOID;
	}
	for (uint32_t i = 0; c->shared && i < c->shared_count; i++) {
		struct svpi_cqe *e = &c->shared[i];
		uint64_t v = atomic_load_explicit(&e->state, memory_order_acquire);

		if ((v & 3) == SVPI_PHASE_READY && e->qpn == qpn)
			atomic_store(&e->state, v | SVPI_PHASE_VOID);
	}
}

static inline bool svpi_consumer_empty(struct svpi_consumer *c)
{
	struct svpi_cqe *e;

	return atomic_load(&c->h->producer) == c->next && (!c->shared || svpi_shared_peek(c, &e) == SVPI_PHASE_FREE);
}

/* svpi_arm asks for one event at the next completion of this kind. It never weakens an earlier request. */
static inline void svpi_arm(struct svpi_consumer *c, uint32_t kind)
{
	uint32_t old = atomic_load(&c->h->arm);

	do {
		if (old >= kind && old <= SVPI_ARM_ANY) {
			kind = old; /* exchanged all the same: its barrier is needed before the next look */
		}
	} while (!atomic_compare_exchange_weak(&c->h->arm, &old, kind));
}

/* The doorbell queue. */
struct svpi_doorbells {
	struct svpi_ring_header *h;
	uint8_t *entries;
	uint32_t count;
	_Atomic uint32_t seen; /* consumer index when last read; the driver writes the index whenever it looks */
};

enum { SVPI_BELL_VALID = 0x80000000u };

static inline _Atomic uint32_t *svpi_bell(struct svpi_doorbells *d, uint32_t index)
{
	return (_Atomic uint32_t *)(d->entries + (size_t)(index & (d->count - 1)) * 8);
}

/* svpi_noted tells whether the doorbell that was rung for a queue at *last is still in the ring. If so the driver has
 * yet to take it and to look at the queue, and will see everything published so far. Threads may have a *last each
 * for a queue, or share one under a lock. */
static inline bool svpi_noted(struct svpi_doorbells *d, uint32_t handle, const uint32_t *last)
{
	return atomic_load(svpi_bell(d, *last)) == (handle | SVPI_BELL_VALID);
}

/* svpi_bell_room tells whether there is room for the doorbell with this index. */
static inline bool svpi_bell_room(struct svpi_doorbells *d, uint32_t index)
{
	if (index - atomic_load_explicit(&d->seen, memory_order_relaxed) < d->count)
		return true;
	atomic_store_explicit(&d->seen, atomic_load(&d->h->consumer), memory_order_relaxed);
	return index - atomic_load_explicit(&d->seen, memory_order_relaxed) < d->count;
}

/* svpi_ring puts a queue's handle into the doorbell ring, and tells whether the driver sleeps and has to be woken. */
static inline bool svpi_ring(struct svpi_doorbells *d, uint32_t handle, uint32_t *last)
{
	uint32_t p = atomic_load(&d->h->producer);

	for (;;) {
		if (!svpi_bell_room(d, p)) {
			atomic_store(&d->h->flags, 1);
			break;
		}
		if (atomic_compare_exchange_weak(&d->h->producer, &p, p + 1)) {
			atomic_store(svpi_bell(d, p), handle | SVPI_BELL_VALID);
			*last = p;
			break;
		}
	}
	return atomic_load(&d->h->arm) != 0 && atomic_exchange(&d->h->arm, 0) != 0;
}

#endif
