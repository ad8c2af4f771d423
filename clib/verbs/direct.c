/*
 * The direct path of queue pairs. There is no thread for it: requests that cannot be carried out yet wait in the
 * ring, and posts to the queue pair and polls of its CQs carry them out. If the program does neither for some time
 * the driver does.
 */
#define _GNU_SOURCE
#include "object.h"

static void reap(struct svpi_qp *q, struct svpi_initiator *i)
{
	svpi_spin_lock(&q->recv_lock); /* a thread that posts receives reads what is freed here */
	svpi_initiator_reap(i);
	svpi_spin_unlock(&q->recv_lock);
}

struct svpi_initiator *svpi_direct_lent(struct svpi_qp *q, struct svpi_initiator *i)
{
	if (__builtin_expect(i->older != NULL, 0))
		reap(q, i);
	return svpi_lent(i) && svpi_catch_up(i, &q->send) ? i : NULL;
}

static bool make_room(struct svpi_cq *c)
{
	uint32_t room = c->late_room ? 2 * c->late_room : 8;
	struct svpi_qp **more;

	if (c->lates < c->late_room)
		return true;
	more = realloc(c->late, sizeof(*more) * room);
	if (!more)
		return false;
	c->late = more;
	c->late_room = room;
	return true;
}

/* The CQs whose polls carry out a queue pair's requests: its send CQ, and its receive CQ, since a program may poll
 * only that, for an answer. */
static struct svpi_cq *cq_of(struct svpi_qp *q, int k) { return to_cq(k == 0 ? q->qp.send_cq : q->qp.recv_cq); }

static void follow_in(struct svpi_qp *q, int k)
{
	struct svpi_cq *c = cq_of(q, k);

	if (q->followed[k] || (k == 1 && c == cq_of(q, 0)))
		return;
	svpi_spin_lock(&c->late_lock);
	if (make_room(c)) { /* otherwise the driver carries them out, somewhat later */
		c->late[c->lates++] = q;
		q->followed[k] = true;
	}
	svpi_spin_unlock(&c->late_lock);
}

/* follow lists a queue pair in its CQs, so that their polls carry out its requests. */
static void follow(struct svpi_qp *q)
{
	follow_in(q, 0);
	follow_in(q, 1);
}

/* unfollow removes a queue pair from the list of a CQ. */
static void unfollow(struct svpi_cq *c, struct svpi_qp *q)
{
	q->followed[c == cq_of(q, 0) ? 0 : 1] = false;
	for (uint32_t n = 0; n < c->lates; n++) {
		if (c->late[n] == q) {
			c->late[n] = c->late[--c->lates];
			return;
		}
	}
}

/* svpi_direct_wait publishes the requests of a queue pair that has an initiator. */
void svpi_direct_wait(struct svpi_qp *q, struct svpi_initiator *lent, uint32_t from)
{
	bool idle = atomic_load_explicit(&q->send.h->consumer, memory_order_acquire) == from;

	svpi_publish(&q->send);
	/* While the queue is lent the driver watches it once it has been told of it. */
	if (!lent || idle || !svpi_lent(lent))
		svpi_doorbell(q->svpi, q->qp.handle, &q->send_bell);
	follow(q);
}

/* go_on carries out as many of a queue pair's waiting requests as it can. */
static void go_on(struct svpi_cq *c, struct svpi_qp *q)
{
	struct svpi_initiator *i = atomic_load_explicit(&q->direct.initiator, memory_order_acquire);
	if (i && svpi_lent(i) && !svpi_catch_up(i, &q->send) && !svpi_lent(i))
		svpi_doorbell(q->svpi, q->qp.handle, &q->send_bell);
	if (svpi_producer_idle(&q->send))
		unfollow(c, q);
}

void svpi_direct_late(struct svpi_cq *c)
{
	struct svpi_qp *q;

	svpi_spin_lock(&c->late_lock);
	q = c->lates ? c->late[++c->turn % c->lates] : NULL;
	if (q && !q->svpi->moved && svpi_spin_try(&q->send_lock)) { /* otherwise the thread that has the lock carries them out */
		go_on(c, q);
		svpi_spin_unlock(&q->send_lock);
	}
	svpi_spin_unlock(&c->late_lock);
}

void svpi_direct_forget(struct svpi_qp *q)
{
	for (int k = 0; k < 2; k++) {
		struct svpi_cq *c = cq_of(q, k);

		if (!c)
			continue;
		svpi_spin_lock(&c->late_lock);
		unfollow(c, q);
		svpi_spin_unlock(&c->late_lock);
	}
	svpi_slot_remove(q->svpi, &q->direct);
}
