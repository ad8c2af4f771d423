#define _GNU_SOURCE
#include "initiator.h"

#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CATCH_UP_BYTES: how much svpi_catch_up moves before it leaves the rest for later. */
enum { CATCH_UP_BYTES = 1 << 20, MAX_ENTRIES = 1 << 22, MAX_STRIDE = 64 + 1024, TERMS_RECEIVES = 2 };

struct svpi_initiator *svpi_initiator_new(struct svpi *s, struct svpi_program *p, const struct svpi_introduction *b,
					  struct svpi_direction *record)
{
	struct svpi_initiator *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->s = s;
	i->peer = p;
	i->dir = &record[b->role];
	i->back = &record[1 - b->role];
	if (!p->incomplete) {
		i->own = s->neighbours.own.at;
		i->theirs = p->keys.at;
	}
	i->qp = b->qp;
	i->owner = b->owner;
	i->clock = b->clock;
	i->moves = s->moves;
	i->op = __atomic_load_n(&i->dir->op, __ATOMIC_SEQ_CST);
	return i;
}

void svpi_initiator_free(struct svpi_initiator *i)
{
	svpi_program_put(i->s, i->peer);
	free(i);
}

void svpi_initiator_reap(struct svpi_initiator *i)
{
	while (i->older) {
		struct svpi_initiator *older = i->older;

		i->older = older->older;
		svpi_initiator_free(older);
	}
}

/* leave ends an operation, and wakes those who wait for the completions it made. */
static void leave(struct svpi_initiator *i)
{
	__atomic_store_n(&i->dir->op, ++i->op, __ATOMIC_RELEASE);
	while (__builtin_expect(i->wakes > 0, 0))
		syscall(SYS_futex, &i->wake[--i->wakes]->sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	if (__builtin_expect(i->rings, 0)) {
		i->rings = false;
		svpi_doorbell(i->s, i->qp, &i->bell);
	}
}

/* enter begins an operation; false: the direction is not lent. A forked child must be known to the driver first. */
static bool enter(struct svpi_initiator *i)
{
	if (__atomic_load_n(&i->dir->lease, __ATOMIC_RELAXED) == 0 || i->s->moved)
		return false;
	if (__builtin_expect(i->moves != i->s->moves, 0)) {
		i->moves = i->s->moves;
		i->op = __atomic_load_n(&i->dir->op, __ATOMIC_SEQ_CST);
	}
	/* The driver takes the lease away first and reads op afterwards; hence the opposite order here. */
	__atomic_store_n(&i->dir->op, ++i->op, __ATOMIC_SEQ_CST);
	i->current = __atomic_load_n(&i->dir->lease, __ATOMIC_SEQ_CST);
	if (i->current)
		return true;
	leave(i);
	return false;
}

static void give_back(struct svpi_initiator *i, enum svpi_reason why)
{
	__atomic_store_n(&i->dir->reason, why, __ATOMIC_RELAXED);
	__atomic_store_n(&i->dir->lease, 0, __ATOMIC_SEQ_CST);
}

/* Terms. */

static bool same(const struct svpi_ring_at *a, const struct svpi_ring_at *b)
{
	return a->arena == b->arena && a->offset == b->offset && a->entries == b->entries && a->stride == b->stride;
}

static bool possible(const struct svpi_ring_at *r)
{
	return r->entries > 0 && r->entries <= MAX_ENTRIES && (r->entries & (r->entries - 1)) == 0 && r->stride >= 16 &&
	       r->stride <= MAX_STRIDE && r->stride % 8 == 0;
}

/* open_cq opens a CQ unless it is already open at the same place; was is that place. */
static bool open_cq(struct svpi_initiator *i, struct svpi_program *p, const struct svpi_ring_at *r, struct svpi_pusher *q,
		    struct svpi_ring_at *was)
{
	if (q->h && same(r, was))
		return true;

	void *at = possible(r) && r->stride == sizeof(struct svpi_cqe)
			   ? svpi_ring_memory(i->s, p, r, svpi_pusher_size(r->entries)) : NULL;

	q->h = NULL;
	if (!at)
		return false;
	svpi_pusher_open(q, at, r->entries);
	*was = *r;
	return true;
}

static bool open_receive(struct svpi_initiator *i, const struct svpi_ring_at *r, struct svpi_ring_at *was)
{
	struct svpi_borrowed *q = &i->receive;
	uint64_t size = sizeof(struct svpi_ring_header) + (uint64_t)r->entries * r->stride;

	if (q->h && same(r, was))
		return true;
	q->h = possible(r) ? svpi_ring_memory(i->s, i->peer, r, size) : NULL;
	if (!q->h)
		return false;
	q->entries = (uint8_t *)q->h + sizeof(struct svpi_ring_header);
	q->mask = r->entries - 1;
	q->stride = r->stride;
	*was = *r;
	return true;
}

/* adopt takes over the terms of a new lease; false: some memory of the peer is not mapped yet. */
static bool adopt(struct svpi_initiator *i)
{
	struct svpi_terms t, *old = &i->terms;

	memcpy(&t, &i->dir->terms, sizeof(t));
	i->lease = 0;
	if (!open_cq(i, NULL, &t.send_cq, &i->send_cq, &old->send_cq) ||
	    !open_cq(i, i->peer, &t.recv_cq, &i->recv_cq, &old->recv_cq))
		return false;
	if (t.flags & TERMS_RECEIVES) {
		if (!open_receive(i, &t.receive, &old->receive))
			return false;
		i->receive.next = i->receive.seen = atomic_load(&i->receive.h->consumer);
	} else {
		i->receive.h = NULL;
	}
	i->terms = t;
	if (i->s->about.minor < SVPI_TIMES_MINOR)
		i->terms.flags |= SVPI_SEND_TIMES | SVPI_RECV_TIMES;
	i->shift = (uint8_t)__builtin_ctz(t.mtu | 1u << 31);
	i->lease = i->current;
	return true;
}

/* final tells whether the direction has to be given back, because waiting is of no use. */
static bool final(enum svpi_reason why)
{
	return why != SVPI_DONE && (why < SVPI_NO_RECEIVE || why > SVPI_NOT_INTRODUCED);
}

static enum svpi_reason run(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	if (__builtin_expect(i->current != i->lease, 0)) {
		if (!i->own || !i->theirs)
			return SVPI_NOT_SHARED;
		if (!adopt(i))
			return SVPI_NOT_INTRODUCED;
	}
	return svpi_carry_out(i, e);
}

/* operate carries out a request as one operation. If consumer is not NULL the request is the one at index at of that
 * ring, and consumer is moved on once it is done. consumer is checked within the operation: since the program last
 * looked, the driver may have taken the path back, carried out the request, and lent the path again. */
static enum svpi_reason operate(struct svpi_initiator *i, const struct svpi_send_entry *e, _Atomic uint32_t *consumer, uint32_t at)
{
	enum svpi_reason why;

	do {
		if (!enter(i))
			return SVPI_OTHER_REQUEST;
		if (consumer && atomic_load(consumer) != at) {
			leave(i);
			return SVPI_DONE;
		}
		why = run(i, e);
		if (why == SVPI_DONE && consumer)
			atomic_store(consumer, at + 1);
		else if (final(why))
			give_back(i, why);
		leave(i);
	} while (__builtin_expect(why == SVPI_NOT_MAPPED, 0) && svpi_segment_map(i->s, i->peer, i->missing));
	return why;
}

bool svpi_execute(struct svpi_initiator *i, const struct svpi_send_entry *e) { return operate(i, e, NULL, 0) == SVPI_DONE; }

static uint64_t moved(const struct svpi_direction *d) { return d->bytes[0] + d->bytes[1] + d->bytes[2] + d->bytes[3]; }

bool svpi_catch_up(struct svpi_initiator *i, struct svpi_producer *p)
{
	uint64_t from = moved(i->dir);
	uint32_t at;

	while ((at = atomic_load_explicit(&p->h->consumer, memory_order_acquire)) != p->next) {
		if (p->next - at > p->mask + 1) /* impossible index in the ring: the driver deals with it */
			return false;
		const struct svpi_send_entry *e = (const void *)(p->entries + (size_t)(at & p->mask) * p->stride);

		if (operate(i, e, &p->h->consumer, at) != SVPI_DONE)
			return false;
		if (moved(i->dir) - from > CATCH_UP_BYTES)
			return atomic_load(&p->h->consumer) == p->next;
	}
	return true;
}
