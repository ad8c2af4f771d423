/*
 * Event channels: each is the reading end of a pipe into which the driver writes whole events, so that programs may
 * poll it and make it non-blocking.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "event.h"
#include "id.h"

enum { CHANNEL_CONNECTIONS = 2, KIND_CHANNEL = 9 };

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct svpi_create_channel q = { .kind = CHANNEL_CONNECTIONS };
	struct channel *c = calloc(1, sizeof(*c));
	int error;

	if (!c)
		return NULL;
	c->channel.fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	c->home = home_get();
	if (!c->home) {
		free(c);
		return NULL;
	}
	error = svpi_call_fd(c->home->svpi, SVPI_CREATE_CHANNEL, &q, sizeof(q), &c->handle, sizeof(c->handle), &c->channel.fd);
	if (!error && c->channel.fd < 0)
		error = EPROTO;
	if (error) {
		home_put(c->home);
		free(c);
		errno = error;
		return NULL;
	}
	return &c->channel;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct channel *c = to_channel(channel);

	bool read;

	pthread_mutex_lock(&c->lock);
	c->ended = true;
	read = c->readers > 0;
	pthread_mutex_unlock(&c->lock);
	svpi_destroy(c->home->svpi, KIND_CHANNEL, c->handle);
	close(channel->fd);
	home_put(c->home);
	if (!read)
		free(c);
}

/* read_event reads one event, which the pipe delivers whole. Returns 0 or an errno. */
static int read_event(int fd, struct svpi_event *e)
{
	ssize_t n = read(fd, e, sizeof(*e));

	if (n == (ssize_t)sizeof(*e))
		return 0;
	if (n < 0)
		return errno;
	return n == 0 ? ENODEV : EPROTO; /* the driver is gone */
}

/* begin_read and end_read count the readers of a channel. A thread that reads a channel while another thread destroys
 * it stays blocked, as with the kernel's channels: programs leave such threads behind when they exit, and would take
 * an error for a real one. */
static void begin_read(struct channel *c)
{
	pthread_mutex_lock(&c->lock);
	c->readers++;
	pthread_mutex_unlock(&c->lock);
}

static void end_read(struct channel *c)
{
	bool ended;

	pthread_mutex_lock(&c->lock);
	c->readers--;
	ended = c->ended;
	pthread_mutex_unlock(&c->lock);
	while (ended)
		pause();
}

/* peek copies the next event and leaves it in the pipe; false: there is none. */
static bool peek(int fd, struct svpi_event *e)
{
	int copy[2], bytes = 0;
	bool there;

	if (ioctl(fd, FIONREAD, &bytes) || bytes < (int)sizeof(*e) || pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return false;
	there = tee(fd, copy[1], sizeof(*e), SPLICE_F_NONBLOCK) == (ssize_t)sizeof(*e) && !read_event(copy[0], e);
	close(copy[0]);
	close(copy[1]);
	return there;
}

/* take_idle removes the next event if it does not concern the program. Nobody may read meanwhile, or another event
 * might be removed instead. */
static bool take_idle(struct channel *c, struct svpi_event *e)
{
	bool taken;

	pthread_mutex_lock(&c->lock);
	taken = c->readers == 0 && peek(c->channel.fd, e) && event_is_idle(c, e) && !read_event(c->channel.fd, e);
	pthread_mutex_unlock(&c->lock);
	return taken;
}

void channel_tidy(struct channel *c)
{
	struct rdma_cm_event *none;
	struct svpi_event e;

	while (take_idle(c, &e))
		event_take(c, &e, &none);
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct channel *c = to_channel(channel);
	struct svpi_event e;
	int error;

	if (!out)
		return result(EINVAL);
	do {
		begin_read(c);
		error = read_event(channel->fd, &e);
		end_read(c);
		if (error)
			return result(error);
		error = event_take(c, &e, out);
	} while (!error && !*out);
	channel_tidy(c);
	return result(error);
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct event *e = (struct event *)event;

	if (!e)
		return result(EINVAL);
	id_acknowledge(e->counted);
	free(e);
	return 0;
}

/* id_complete returns the result of a synchronous operation: the status of its event, which the id keeps. */
int id_complete(struct id *i)
{
	int status;

	if (!is_sync(i))
		return 0;
	if (i->id.event) {
		rdma_ack_cm_event(i->id.event);
		i->id.event = NULL;
	}
	if (rdma_get_cm_event(i->id.channel, &i->id.event))
		return errno;
	status = i->id.event->status;
	if (i->id.event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return status < 0 ? -status : status;
}

/* reopen opens the writing end of a pipe. If the driver runs as another user that is not permitted. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

/* move_events moves an id's events that the driver has already written to its new channel. If it cannot, they stay
 * and are delivered by the old channel. */
static void move_events(const struct channel *from, const struct channel *to, uint32_t handle)
{
	struct svpi_event e;
	int old, new, bytes = 0;

	if (ioctl(from->channel.fd, FIONREAD, &bytes) || bytes < (int)sizeof(e))
		return;
	old = reopen(from->channel.fd);
	new = reopen(to->channel.fd);
	for (; old >= 0 && new >= 0 && bytes >= (int)sizeof(e) && !read_event(from->channel.fd, &e); bytes -= (int)sizeof(e)) {
		ssize_t n = write(e.object == handle ? new : old, &e, sizeof(e));

		(void)n; /* fails only if the pipe is full of others' events: this event is lost then */
	}
	if (old >= 0)
		close(old);
	if (new >= 0)
		close(new);
}

EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct id *i = to_id(id);
	struct channel *from = to_channel(id->channel), *to;
	struct svpi_cm_set_channel q;
	bool own = !channel;
	int error;

	if (own && !(channel = rdma_create_event_channel()))
		return -1;
	to = to_channel(channel);
	q = (struct svpi_cm_set_channel){ i->handle, to->handle };
	error = to->home == i->home ? svpi_ask(i, SVPI_CM_SET_CHANNEL, &q, sizeof(q)) : EINVAL;
	if (error) {
		if (own)
			rdma_destroy_event_channel(channel);
		return result(error);
	}
	move_events(from, to, i->handle);
	id->channel = channel;
	if (own)
		to->owner = i;
	if (from->owner == i) {
		if (id->event) {
			rdma_ack_cm_event(id->event);
			id->event = NULL;
		}
		rdma_destroy_event_channel(&from->channel);
	}
	id_acknowledged(i);
	return 0;
}
