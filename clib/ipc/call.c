/* Requests and their answers. A thread that waits for an answer reads the stream unless another thread already does.
 * */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"

/* A request that waits for its answer. */
struct svpi_call {
	struct svpi_call *next;
	uint64_t id;
	uint32_t since; /* s->looks when it began */
	bool done;
	int error;
	uint8_t *body;
	size_t len;
	int fd;
};

/* svpi_answer gives an answer to the request that waits for it. */
int svpi_answer(struct svpi *s, const struct svpi_frame *h, size_t len)
{
	int fds = h->flags >> 8 & 15, fd = -1;
	struct svpi_call *c = s->calls;

	for (int i = 0; i < fds; i++) {
		int one = svpi_fd_take(s);

		if (one < 0)
			return EPROTO;
		if (fd >= 0)
			close(one);
		else
			fd = one;
	}
	if (h->flags & SVPI_FLAG_RESPONSE)
		s->heard = s->looks;
	while (c && c->id != h->id)
		c = c->next;
	if (!c || !(h->flags & SVPI_FLAG_RESPONSE)) {
		if (fd >= 0)
			close(fd);
		return 0; /* unknown push of a later minor version, answer to an abandoned request, or sign of life */
	}
	c->fd = fd;
	c->len = len;
	c->body = malloc(len ? len : 1);
	c->error = c->body ? 0 : ENOMEM;
	if (c->body)
		memcpy(c->body, s->frame, len);
	if (h->flags & SVPI_FLAG_ERROR)
		c->error = len >= 8 ? -1 : EPROTO;
	c->done = true;
	return 0;
}

/* end breaks the attachment, and wakes everything that waits. The lock is held. */
static void end(struct svpi *s, int error)
{
	if (!s->broken && !s->reason[0])
		snprintf(s->reason, sizeof(s->reason), "the driver is gone: %s", strerror(error));
	if (!s->broken)
		svpi_neighbours_recall(s);
	s->broken = true;
	for (struct svpi_call *c = s->calls; c; c = c->next) {
		if (!c->done) {
			c->done = true;
			c->error = ENODEV;
		}
	}
	pthread_cond_broadcast(&s->event_news);
}

/* read_some reads and handles frames. The lock is held, but released while the stream is read. Without wait it takes
 * what has arrived; with wait one frame, or none if none arrives within one look. */
static void read_some(struct svpi *s, bool wait)
{
	struct svpi_frame h;
	int error;

	s->reading = true;
	do {
		pthread_mutex_unlock(&s->lock);
		error = svpi_frame_read(s, &h, wait);
		pthread_mutex_lock(&s->lock);
		if (!error)
			error = svpi_dispatch(s, &h);
		if (error && error != EAGAIN)
			end(s, error);
	} while (!wait && !error);
	s->reading = false;
	pthread_cond_broadcast(&s->news);
}

/* lock_turn takes the lock, and the turn before it if other processes read the stream, too. It returns whether it took
 * the turn, which lasts until unlock_turn; without wait it does not take one that another process or thread has, and then
 * *taken is set. */
static bool lock_turn(struct svpi *s, bool wait, bool *taken)
{
	bool turn;
	int error;

	*taken = false;
	pthread_mutex_lock(&s->lock);
	turn = s->shared;
	if (!turn)
		return false;
	pthread_mutex_unlock(&s->lock);
	error = svpi_turn_lock(&s->turn->asks, &s->turn->reading, wait);
	pthread_mutex_lock(&s->lock);
	if (error == EBUSY)
		*taken = true;
	else if (error)
		end(s, error);
	return !error;
}

static void unlock_turn(struct svpi *s, bool turn)
{
	pthread_mutex_unlock(&s->lock);
	if (turn)
		pthread_mutex_unlock(&s->turn->asks);
}

void svpi_pump(struct svpi *s)
{
	bool taken, turn;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	turn = lock_turn(s, false, &taken);
	if (!s->reading && !s->broken && !taken)
		read_some(s, false);
	unlock_turn(s, turn);
	pthread_setcancelstate(cancel, NULL);
}

static void unlink_call(struct svpi *s, struct svpi_call *c)
{
	struct svpi_call **p = &s->calls;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	if (!s->calls)
		pthread_cond_broadcast(&s->news); /* a fork waits for it */
}

/* look counts the time for which a request has waited, and gives the request up when the driver has answered nothing
 * for too long. Time is counted in looks of svpi_look_ms: a look counts when it is over and a thread notices, so a
 * pause of the program itself counts as one. The lock is held, but released while the driver is asked for a sign of
 * life. */
static void look(struct svpi *s, struct svpi_call *c)
{
	uint64_t now = svpi_now_ms(), id;
	uint32_t silent;
	int error;

	if (now >= s->next_look) {
		s->next_look = now + svpi_look_ms;
		s->looks++;
	}
	silent = s->looks - (c->since > s->heard ? c->since : s->heard);
	if (silent > SVPI_PATIENCE_LOOKS) {
		c->done = true;
		c->error = ETIMEDOUT;
		return;
	}
	if (silent <= SVPI_PATIENCE_LOOKS / 2 || s->asked == s->looks)
		return;
	s->asked = s->looks;
	id = ++s->turn->last_id;
	pthread_mutex_unlock(&s->lock);
	error = svpi_frame_send(s, SVPI_ADAPTERS, id, NULL, 0);
	pthread_mutex_lock(&s->lock);
	if (error)
		end(s, error);
}

/* about_adapter tells whether an operation only asks about an adapter. */
static bool about_adapter(enum svpi_op op)
{
	return op == SVPI_ADAPTERS || op == SVPI_GIDS || op == SVPI_COUNTERS || op == SVPI_PORT || op == SVPI_MEMORY_INFO;
}

static int ask(struct svpi *s, enum svpi_op op, const void *body, size_t len, struct svpi_call *c);

/* ask_in_child asks in a forked child that may not go on with its parent's attachment, which other children and the
 * parent use too: answers would go to whoever reads first. */
static int ask_in_child(struct svpi *s, enum svpi_op op, const void *body, size_t len, struct svpi_call *c)
{
	struct svpi *own = svpi_get();
	int error;

	if (!own || own == s) {
		memset(c, 0, sizeof(*c));
		c->fd = -1;
		return own ? ENODEV : errno;
	}
	error = ask(own, op, body, len, c);
	svpi_put(own);
	return error;
}

/* ask sends a request and waits for its answer. The thread cannot be cancelled meanwhile, because it may be reading
 * what others need. */
static int ask(struct svpi *s, enum svpi_op op, const void *body, size_t len, struct svpi_call *c)
{
	int error, cancel;
	bool taken, turn;

	if (s->moved && about_adapter(op))
		return ask_in_child(s, op, body, len, c);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	turn = lock_turn(s, true, &taken);
	if (s->broken) {
		error = svpi_fail(ENODEV, s->reason);
		unlock_turn(s, turn);
		pthread_setcancelstate(cancel, NULL);
		return error;
	}
	c->id = ++s->turn->last_id;
	c->since = s->looks;
	c->next = s->calls;
	s->calls = c;
	pthread_mutex_unlock(&s->lock);
	error = svpi_frame_send(s, (uint16_t)op, c->id, body, len);
	pthread_mutex_lock(&s->lock);
	if (error)
		end(s, error);
	while (!c->done) {
		if (s->reading)
			pthread_cond_wait(&s->news, &s->lock);
		else
			read_some(s, true);
		if (!c->done)
			look(s, c);
	}
	unlink_call(s, c);
	error = c->error;
	if (error == -1) /* the driver refused */
		error = svpi_refused(c->body, c->len);
	else if (error)
		svpi_fail(error, s->broken ? s->reason : error == ETIMEDOUT ? "the driver does not answer" : strerror(error));
	unlock_turn(s, turn);
	pthread_setcancelstate(cancel, NULL);
	return error;
}

int svpi_call_fd(struct svpi *s, enum svpi_op op, const void *body, size_t len, void *answer, size_t size, int *fd)
{
	struct svpi_call c;
	int error = ask(s, op, body, len, &c);

	if (!error && c.len != size)
		error = svpi_fail(EPROTO, "the driver's answer does not have the size that the protocol requires");
	if (!error && size)
		memcpy(answer, c.body, size);
	free(c.body);
	if (fd && !error)
		*fd = c.fd;
	else if (c.fd >= 0)
		close(c.fd);
	if (error)
		errno = error; /* as a system call would leave it: programs print "%m" when libibverbs fails */
	return error;
}

int svpi_call(struct svpi *s, enum svpi_op op, const void *body, size_t len, void *answer, size_t size)
{
	return svpi_call_fd(s, op, body, len, answer, size, NULL);
}

int svpi_list(struct svpi *s, enum svpi_op op, const void *body, size_t len, size_t size, void **list, size_t *count)
{
	struct svpi_call c;
	int error = ask(s, op, body, len, &c);

	if (!error && c.len % size)
		error = svpi_fail(EPROTO, "the driver's list does not have a size that the protocol allows");
	if (c.fd >= 0)
		close(c.fd);
	if (error) {
		free(c.body);
		errno = error;
		return error;
	}
	*list = c.body;
	*count = c.len / size;
	return 0;
}
