/* Carrying out requests on the direct path, as docs/spec/ipc.md describes. */
#include "initiator.h"
#include "place.h"
#include "ticks.h"

/* Bits of Terms.Flags and of Direction.Raised, and the kinds of operations that a direction counts. */
enum { SIGNAL_ALL = 1, RECEIVES = 2, ANSWERS = 4, SEND_CHANNEL = 8, RECV_CHANNEL = 16, SEND_TIMES = SVPI_SEND_TIMES,
       RECV_TIMES = SVPI_RECV_TIMES };
enum { RAISE_SEND = 1, RAISE_RECV = 2 };
enum { COUNT_SEND, COUNT_WRITE, COUNT_READ, COUNT_ATOMIC };

/* How often to look for a receive before leaving the request in the ring, and how long to pause in between: some
 * three microseconds in all, since a responder that polls is probably about to post one. */
enum { LOOKS = 10, PAUSE = 1000 };

/* Opcodes of completions, indexed by those of requests. */
enum { CQ_SEND = 1, CQ_WRITE, CQ_READ, CQ_CAS, CQ_FADD, CQ_RECV = 128, CQ_RECV_WRITE };
static const uint8_t completed[] = {
	[SVPI_WR_SEND] = CQ_SEND, [SVPI_WR_SEND_IMM] = CQ_SEND, [SVPI_WR_WRITE] = CQ_WRITE, [SVPI_WR_WRITE_IMM] = CQ_WRITE,
	[SVPI_WR_READ] = CQ_READ, [SVPI_WR_CAS] = CQ_CAS, [SVPI_WR_FADD] = CQ_FADD,
};

/* now returns the time for completions in queues with one of these flags, 0 if no such queue wants it. */
static uint64_t now(const struct svpi_initiator *i, uint32_t of)
{
	return i->terms.flags & of ? svpi_now() - i->clock : 0;
}

static bool signaled(const struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	return e->flags & SVPI_WR_SIGNALED || i->terms.flags & SIGNAL_ALL;
}

/* claim takes the slot for the completion of a request, if it needs one; false: there is no room. */
static bool claim(struct svpi_initiator *i, const struct svpi_send_entry *e, uint32_t *slot)
{
	return !signaled(i, e) || svpi_claim(&i->send_cq, i->owner, slot);
}

/* event raises the event that is due now that a slot was filled with c, or given up if c is NULL; or has the driver
 * raise it if it comes through a channel, which only the driver may write to. */
static void event(struct svpi_initiator *i, struct svpi_pusher *cq, uint32_t slot, const struct svpi_cqe *c, bool channel, uint32_t bit)
{
	if (!svpi_due(cq, slot, c))
		return;
	if (channel) {
		__atomic_fetch_or(&i->dir->raised, bit, __ATOMIC_SEQ_CST);
		i->rings = true;
	} else if (svpi_raise(cq)) {
		i->wake[i->wakes++] = cq->h;
	}
}

/* publish fills a claimed slot with a completion, and raises the event that is due. */
static void publish(struct svpi_initiator *i, struct svpi_pusher *cq, uint32_t slot, const struct svpi_cqe *c, bool channel,
		    uint32_t bit)
{
	if (svpi_fill(cq, slot, i->owner, c))
		event(i, cq, slot, c, channel, bit);
}

static void count(struct svpi_initiator *i, int op, size_t n)
{
	struct svpi_direction *d = i->dir;
	uint64_t packets = (n + ((uint64_t)1 << i->shift) - 1) >> i->shift;

	d->messages[op]++;
	d->packets[op] += packets ? packets : 1;
	d->bytes[op] += n;
}

static void finish_at(struct svpi_initiator *i, const struct svpi_send_entry *e, uint32_t slot, size_t n, uint64_t time)
{
	const struct svpi_terms *t = &i->terms;
	struct svpi_cqe c = { .id = e->id, .context = t->own_context, .qpn = t->own_qpn, .bytes = (uint32_t)n,
			      .op = completed[e->op], .time = time, .stamp = t->send_stamp };

	publish(i, &i->send_cq, slot, &c, t->flags & SEND_CHANNEL, RAISE_SEND);
}

/* finish counts a request that has been carried out, and completes it. */
static void finish(struct svpi_initiator *i, const struct svpi_send_entry *e, uint32_t slot, int op, size_t n)
{
	count(i, op, n);
	if (signaled(i, e))
		finish_at(i, e, slot, n, now(i, SEND_TIMES));
}

/* target finds the peer's memory that a write or read names. IBA 9.7.4.1 requires no R_Key check for a length of 0.
 * */
static enum svpi_reason target(struct svpi_initiator *i, const struct svpi_send_entry *e, size_t n, uint32_t need,
			       struct svpi_pieces *p)
{
	p->far = false;
	if (!(i->terms.access & need))
		return SVPI_REMOTE_MEMORY;
	p->list[0] = (struct svpi_piece){ NULL, n, false };
	p->count = 1;
	return n > 0 ? svpi_reach(i, e->rkey, e->remote, n, need, &p->list[0].at, &p->far) : SVPI_DONE;
}

/* do_move carries out a write or a read, which differ in direction only. */
static enum svpi_reason do_move(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	bool reads = e->op == SVPI_WR_READ;
	struct svpi_pieces local, remote;
	uint32_t slot = 0;
	enum svpi_reason why;

	if (reads && (!(i->terms.flags & ANSWERS) || e->flags & SVPI_WR_INLINE))
		return SVPI_OTHER_REQUEST;
	why = svpi_gather(i, e, reads ? SVPI_LOCAL_WRITE : 0, &local);
	if (why == SVPI_DONE)
		why = target(i, e, local.total, reads ? SVPI_REMOTE_READ : SVPI_REMOTE_WRITE, &remote);
	if (why == SVPI_DONE)
		why = svpi_transfer(i, reads ? &remote : &local, reads ? &local : &remote, local.total);
	if (why != SVPI_DONE)
		return why;
	if (!claim(i, e, &slot))
		return SVPI_NO_COMPLETION;
	finish(i, e, slot, reads ? COUNT_READ : COUNT_WRITE, local.total);
	return SVPI_DONE;
}

static enum svpi_reason do_atomic(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	struct svpi_pieces local, remote;
	uint32_t slot = 0;
	enum svpi_reason why;
	uint64_t old;

	if (!(i->terms.flags & ANSWERS) || e->flags & SVPI_WR_INLINE || e->remote % 8)
		return SVPI_OTHER_REQUEST;
	why = svpi_gather(i, e, SVPI_LOCAL_WRITE, &local);
	if (why != SVPI_DONE)
		return why;
	/* If storing the result could fail, the driver carries it out: an atomic must not be done twice. */
	if (local.total != 8 || local.count != 1 || local.list[0].own)
		return SVPI_OTHER_REQUEST;
	why = target(i, e, 8, SVPI_REMOTE_ATOMIC, &remote);
	if (why != SVPI_DONE)
		return why;
	if (remote.far) /* the kernel copies, but not atomically */
		return SVPI_NOT_SHARED;
	_Atomic uint64_t *p = (void *)remote.list[0].at;

	if ((uintptr_t)p % 8)
		return SVPI_OTHER_REQUEST;
	if (!claim(i, e, &slot)) /* claimed before the atomic is done, for the same reason */
		return SVPI_NO_COMPLETION;
	if (e->op == SVPI_WR_FADD) {
		old = atomic_fetch_add(p, e->compare_add);
	} else {
		old = e->compare_add;
		atomic_compare_exchange_strong(p, &old, e->swap);
	}
	svpi_place(local.list[0].at, &old, 8);
	finish(i, e, slot, COUNT_ATOMIC, 8);
	return SVPI_DONE;
}

/* The peer's receives. */

/* peek returns the next receive without taking it; NULL: there is none, or the ring's contents are impossible. */
static const struct svpi_recv_entry *peek(struct svpi_borrowed *q)
{
	const struct svpi_recv_entry *e;

	if (q->seen == q->next) {
		uint32_t p = atomic_load_explicit(&q->h->producer, memory_order_acquire);

		if (p == q->next || p - q->next > q->mask + 1)
			return NULL;
		q->seen = p;
	}
	e = (const void *)(q->entries + (size_t)(q->next & q->mask) * q->stride);
	return e->sges <= SVPI_MAX_SGE && sizeof(*e) + e->sges * sizeof(struct svpi_sge) <= q->stride ? e : NULL;
}

/* wait_a_little takes some hundred nanoseconds. Looking all the time would take the cache line away from the
 * responder, which is about to post. */
static __attribute__((noinline)) void wait_a_little(void)
{
	for (int n = 0; n < PAUSE; n++)
		__asm__ volatile("");
}

static const struct svpi_recv_entry *next_receive(struct svpi_initiator *i)
{
	/* If the last wait was in vain, look once only: the responder may need this processor. */
	for (int looks = i->waited ? 1 : LOOKS; looks > 0; looks--) {
		const struct svpi_recv_entry *r = peek(&i->receive);

		if (r) {
			i->waited = false;
			return r;
		}
		if (!svpi_lent(i))
			break;
		if (looks > 1)
			wait_a_little();
	}
	i->waited = true;
	return NULL;
}

/* deliver takes the receive and completes both sides. The initiator's slot is claimed first, so that an answer of the
 * peer cannot overtake the completion. */
static enum svpi_reason deliver(struct svpi_initiator *i, const struct svpi_send_entry *e, struct svpi_cqe *c, int op, size_t n)
{
	const struct svpi_terms *t = &i->terms;
	uint32_t own = 0, theirs;

	if (!claim(i, e, &own))
		return SVPI_NO_COMPLETION;
	c->context = t->peer_context;
	c->qpn = t->peer_qpn;
	c->bytes = (uint32_t)n;
	c->flags |= SVPI_CQE_RECEIVE | (e->flags & SVPI_WR_SOLICITED ? SVPI_CQE_SOLICITED : 0);
	c->pkey_index = t->p_key_index;
	c->sl = (uint8_t)t->service_level;
	c->time = now(i, SEND_TIMES | RECV_TIMES);
	c->stamp = t->recv_stamp;
	if (!svpi_claim(&i->recv_cq, i->owner, &theirs)) {
		if (signaled(i, e)) {
			svpi_cancel(&i->send_cq, own, i->owner);
			event(i, &i->send_cq, own, NULL, t->flags & SEND_CHANNEL, RAISE_SEND);
		}
		return SVPI_NO_COMPLETION;
	}
	/* Until dir->taken is stored, the claim tells the driver that a receive was taken and has not completed. */
	atomic_store_explicit(&i->receive.h->consumer, ++i->receive.next, memory_order_release);
	publish(i, &i->recv_cq, theirs, c, t->flags & RECV_CHANNEL, RAISE_RECV);
	__atomic_store_n(&i->dir->taken, i->receive.next, __ATOMIC_RELEASE);
	count(i, op, n);
	if (signaled(i, e))
		finish_at(i, e, own, n, c->time);
	/* The next entry is in the responder's cache, and the next message could not be copied before it arrives. */
	__builtin_prefetch(i->receive.entries + (size_t)(i->receive.next & i->receive.mask) * i->receive.stride);
	return SVPI_DONE;
}

/* places finds the memory of a receive, as far as a message of n bytes reaches; the rest need not be usable. */
static enum svpi_reason places(struct svpi_initiator *i, const struct svpi_recv_entry *r, uint32_t sges, size_t n,
			       struct svpi_pieces *p)
{
	struct svpi_sge g;
	bool far;

	p->count = 0;
	p->total = 0;
	p->far = false;
	for (uint32_t k = 0; k < sges; k++) {
		memcpy(&g, (const struct svpi_sge *)(r + 1) + k, sizeof(g)); /* copied, so that the checked value is the one used */
		if (g.length && p->total < n) {
			struct svpi_piece *to = &p->list[p->count++];
			enum svpi_reason why = svpi_reach(i, g.lkey, g.addr, g.length, SVPI_LOCAL_WRITE, &to->at, &far);

			if (why != SVPI_DONE)
				return why;
			if (p->count > 1 && far != p->far)
				return SVPI_NOT_SHARED; /* partly in segments */
			p->far = far;
			to->length = g.length;
			to->own = false;
		}
		p->total += g.length;
	}
	return SVPI_DONE;
}

static enum svpi_reason do_send(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	struct svpi_pieces local, remote;
	const struct svpi_recv_entry *r;
	enum svpi_reason why;

	if (!(i->terms.flags & RECEIVES))
		return SVPI_OTHER_REQUEST;
	svpi_expect(&i->recv_cq);
	why = svpi_gather(i, e, 0, &local);
	if (why != SVPI_DONE)
		return why;
	r = next_receive(i);
	if (!r)
		return SVPI_NO_RECEIVE;
	struct svpi_cqe c = { .id = r->id, .op = CQ_RECV };

	why = places(i, r, r->sges <= SVPI_MAX_SGE ? r->sges : 0, local.total, &remote);
	if (why != SVPI_DONE)
		return why;
	if (local.total > remote.total)
		return SVPI_TOO_SHORT;
	why = svpi_transfer(i, &local, &remote, local.total);
	if (why != SVPI_DONE)
		return why;
	if (e->op == SVPI_WR_SEND_IMM) {
		c.imm = e->imm;
		c.flags = SVPI_CQE_IMM;
	}
	return deliver(i, e, &c, COUNT_SEND, local.total);
}

static enum svpi_reason do_write_imm(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	struct svpi_pieces local, remote;
	const struct svpi_recv_entry *r;
	enum svpi_reason why;

	if (!(i->terms.flags & RECEIVES))
		return SVPI_OTHER_REQUEST;
	svpi_expect(&i->recv_cq);
	why = svpi_gather(i, e, 0, &local);
	if (why == SVPI_DONE)
		why = target(i, e, local.total, SVPI_REMOTE_WRITE, &remote);
	if (why != SVPI_DONE)
		return why;
	r = next_receive(i);
	if (!r)
		return SVPI_NO_RECEIVE;
	struct svpi_cqe c = { .id = r->id, .op = CQ_RECV_WRITE, .imm = e->imm, .flags = SVPI_CQE_IMM };

	why = svpi_transfer(i, &local, &remote, local.total);
	if (why != SVPI_DONE)
		return why;
	return deliver(i, e, &c, COUNT_WRITE, local.total);
}

enum svpi_reason svpi_carry_out(struct svpi_initiator *i, const struct svpi_send_entry *e)
{
	switch (e->op) {
	case SVPI_WR_WRITE:
	case SVPI_WR_READ:
		return do_move(i, e);
	case SVPI_WR_SEND:
	case SVPI_WR_SEND_IMM:
		return do_send(i, e);
	case SVPI_WR_WRITE_IMM:
		return do_write_imm(i, e);
	case SVPI_WR_CAS:
	case SVPI_WR_FADD:
		return do_atomic(i, e);
	}
	return SVPI_OTHER_REQUEST;
}
