/*
 * Where queue pairs meet the direct path. There is no thread: requests that cannot be carried out yet wait in the ring,
 * and posts and polls of its CQs go on with them; the driver does when the program does neither for some time.
 */
#define _GNU_SOURCE
#include "object.h"

static void reap(struct svpi_qp *q, struct svpi_initiator *i)
{
	svpi_spin_lock(&q->recv_lock); /* who posts receives looks at what is freed here */
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

/* The CQs whose polls go on with a queue pair's requests: a program may poll that of its receives alone, for an answer. */
static struct svpi_cq *cq_of(struct svpi_qp *q, int k) { return to_cq(k == 0 ? q->qp.send_cq : q->qp.recv_cq); }

static void follow_in(struct svpi_qp *q, int k)
{
	struct svpi_cq *c = cq_of(q, k);

	if (q->followed[k] || (k == 1 && c == cq_of(q, 0)))
		return;
	svpi_spin_lock(&c->late_lock);
	if (make_room(c)) { /* else the driver does them, somewhat later */
		c->late[c->lates++] = q;
		q->followed[k] = true;
	}
	svpi_spin_unlock(&c->late_lock);
}

/* follow has polls go on with the requests of a queue pair. */
static void follow(struct svpi_qp *q)
{
	follow_in(q, 0);
	follow_in(q, 1);
}

/* unfollow takes a queue pair out of the list of a CQ. */
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

/* svpi_direct_wait publishes requests of a queue pair that has an initiator. */
void svpi_direct_wait(struct svpi_qp *q, struct svpi_initiator *lent, uint32_t from)
{
	bool idle = atomic_load_explicit(&q->send.h->consumer, memory_order_acquire) == from;

	svpi_publish(&q->send);
	/* The driver watches over a queue that it was told of while it is lent. */
	if (!lent || idle || !svpi_lent(lent))
		svpi_doorbell(q->svpi, q->qp.handle, &q->send_bell);
	follow(q);
}

/* go_on carries out what it can of what stands in a ring. */
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
	if (q && !q->svpi->moved && svpi_spin_try(&q->send_lock)) { /* else whoever has it goes on itself */
		go_on(c, q);
		svpi_spin_unlock(&q->send_lock);
	}
	svpi_spin_unlock(&c->late_lock);
}

void svpi_direct_forget(struct svpi_qp *q)
{
	for (int k = 0; k < 2; k++) {
		struct svpi_cq *c = cq_of(q, k);

		svpi_spin_lock(&c->late_lock);
		unfollow(c, q);
		svpi_spin_unlock(&c->late_lock);
	}
	svpi_slot_remove(q->svpi, &q->direct);
}
