/*
 * Completion channels and asynchronous events. Each is the reading end of a pipe into which the driver writes, so
 * that programs may poll it, make it non-blocking, and read it in any thread.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "object.h"

enum { CHANNEL_COMPLETIONS = 1, CHANNEL_CONNECTIONS, CHANNEL_ASYNCHRONOUS };
enum { KIND_CHANNEL = 9 };

static int create_channel(struct svpi_context *c, uint32_t kind, uint32_t *handle, int *fd)
{
	struct svpi_create_channel q = { kind, c->adapter };

	*fd = -1;
	int error = svpi_call_fd(c->svpi, SVPI_CREATE_CHANNEL, &q, sizeof(q), handle, sizeof(*handle), fd);

	return !error && *fd < 0 ? EPROTO : error;
}

/* A driver of an earlier version has no asynchronous events for programs: then the descriptor never becomes readable.
 * */
int svpi_events_open(struct svpi_context *c)
{
	int *fd = &c->verbs.context.async_fd;
	int error = create_channel(c, CHANNEL_ASYNCHRONOUS, &c->events, fd);

	if (error != EOPNOTSUPP && error != EINVAL)
		return error;
	c->events = 0;
	*fd = eventfd(0, EFD_CLOEXEC);
	return *fd < 0 ? errno : 0;
}

void svpi_events_close(struct svpi_context *c)
{
	if (c->events && !c->svpi->moved) /* otherwise it still belongs to the parent */
		svpi_destroy(c->svpi, KIND_CHANNEL, c->events);
	close(c->verbs.context.async_fd);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct svpi_channel *c = calloc(1, sizeof(*c));
	int error = c ? create_channel(to_context(context), CHANNEL_COMPLETIONS, &c->handle, &c->channel.fd) : ENOMEM;

	if (error) {
		free(c);
		errno = error;
		return NULL;
	}
	c->channel.context = context;
	return &c->channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int error;

	if (__atomic_load_n(&channel->refcnt, __ATOMIC_SEQ_CST) > 0)
		return EBUSY;
	error = svpi_destroy(to_svpi(channel->context), KIND_CHANNEL, svpi_channel_handle(channel));
	if (error)
		return error;
	close(channel->fd);
	free(channel);
	return 0;
}

/* read_message reads one message, which a pipe delivers whole. Returns 0, or -1 with errno: ENODEV if the driver is
 * gone. */
static int read_message(int fd, void *message, size_t size)
{
	ssize_t n = read(fd, message, size);

	if (n == (ssize_t)size)
		return 0;
	if (n >= 0)
		errno = n == 0 ? ENODEV : EPROTO;
	return -1;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct { uint32_t cq, none; } m;
	struct svpi_cq *c;

	do {
		if (read_message(channel->fd, &m, sizeof(m)))
			return -1;
		c = svpi_table_count(&to_context(channel->context)->cqs, m.cq, offsetof(struct svpi_cq, got));
	} while (!c); /* skips an event of a queue that has been destroyed since */
	*cq = &c->cq;
	*cq_context = c->cq.cq_context;
	return 0;
}

EXPORT void svpi_acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *done, uint32_t n)
{
	pthread_mutex_lock(mutex);
	*done += n;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

EXPORT void svpi_acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *done, const uint32_t *given)
{
	pthread_mutex_lock(mutex);
	while (*done != __atomic_load_n(given, __ATOMIC_SEQ_CST))
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	svpi_acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, n);
}

/* For each event of the driver: the event of verbs, and the kind of object that it concerns. */
enum element { OF_PORT, OF_QP, OF_CQ, OF_SRQ };
static const struct { uint8_t known, element; enum ibv_event_type type; } kinds[] = {
	[SVPI_EVENT_COMMUNICATION_ESTABLISHED] = { 1, OF_QP, IBV_EVENT_COMM_EST },
	[SVPI_EVENT_SQ_DRAINED] = { 1, OF_QP, IBV_EVENT_SQ_DRAINED },
	[SVPI_EVENT_LAST_WQE] = { 1, OF_QP, IBV_EVENT_QP_LAST_WQE_REACHED },
	[SVPI_EVENT_QP_FATAL] = { 1, OF_QP, IBV_EVENT_QP_FATAL },
	[SVPI_EVENT_QP_REQUEST_ERROR] = { 1, OF_QP, IBV_EVENT_QP_REQ_ERR },
	[SVPI_EVENT_QP_ACCESS_ERROR] = { 1, OF_QP, IBV_EVENT_QP_ACCESS_ERR },
	[SVPI_EVENT_CQ_ERROR] = { 1, OF_CQ, IBV_EVENT_CQ_ERR },
	[SVPI_EVENT_SRQ_LIMIT] = { 1, OF_SRQ, IBV_EVENT_SRQ_LIMIT_REACHED },
	[SVPI_EVENT_SRQ_ERROR] = { 1, OF_SRQ, IBV_EVENT_SRQ_ERR },
	[SVPI_EVENT_PATH_MIGRATED] = { 1, OF_QP, IBV_EVENT_PATH_MIG },
	[SVPI_EVENT_GID_CHANGE] = { 1, OF_PORT, IBV_EVENT_GID_CHANGE },
	[SVPI_EVENT_PORT_ACTIVE] = { 1, OF_PORT, IBV_EVENT_PORT_ACTIVE },
	[SVPI_EVENT_PORT_DOWN] = { 1, OF_PORT, IBV_EVENT_PORT_ERR },
	[SVPI_EVENT_DEVICE_FATAL] = { 1, OF_PORT, IBV_EVENT_DEVICE_FATAL },
	[SVPI_EVENT_LID_CHANGE] = { 1, OF_PORT, IBV_EVENT_LID_CHANGE },
	[SVPI_EVENT_PKEY_CHANGE] = { 1, OF_PORT, IBV_EVENT_PKEY_CHANGE },
	[SVPI_EVENT_SM_CHANGE] = { 1, OF_PORT, IBV_EVENT_SM_CHANGE },
	[SVPI_EVENT_CLIENT_REREGISTER] = { 1, OF_PORT, IBV_EVENT_CLIENT_REREGISTER },
};

/* of_work_queue turns an event of a work queue's queue pair into one of the work queue; false: work queues have none like it. */
static bool of_work_queue(struct ibv_async_event *e)
{
	struct svpi_qp *q = to_qp(e->element.qp);

	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		e->event_type = IBV_EVENT_WQ_FATAL;
		e->element.wq = &q->wq->wq;
		return true;
	default:
		svpi_acknowledge(&q->wq->wq.mutex, &q->wq->wq.cond, &q->wq->wq.events_completed, 1);
		return false;
	}
}

/* find finds the object of an event; false: it no longer exists, or is not told of it. */
static bool find(struct svpi_context *c, enum element of, uint32_t handle, struct ibv_async_event *e)
{
	switch (of) {
	case OF_QP:
		e->element.qp = svpi_table_count(&c->qps, handle, offsetof(struct svpi_qp, got));
		return e->element.qp && (!to_qp(e->element.qp)->wq || of_work_queue(e));
	case OF_CQ:
		e->element.cq = svpi_table_count(&c->cqs, handle, offsetof(struct svpi_cq, got_async));
		return e->element.cq;
	case OF_SRQ:
		e->element.srq = svpi_table_count(&c->srqs, handle, offsetof(struct svpi_srq, got));
		return e->element.srq;
	case OF_PORT:
		break;
	}
	e->element.port_num = 1;
	return true;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *e)
{
	struct svpi_event m;

	for (;;) {
		if (read_message(context->async_fd, &m, sizeof(m))) {
			if (errno != ENODEV || atomic_exchange(&to_context(context)->ended, true))
				return -1;
			e->event_type = IBV_EVENT_DEVICE_FATAL; /* reported once */
			e->element.port_num = 1;
			return 0;
		}
		if (m.type >= sizeof(kinds) / sizeof(*kinds) || !kinds[m.type].known)
			continue; /* event of a later version */
		e->event_type = kinds[m.type].type;
		if (find(to_context(context), kinds[m.type].element, m.object, e))
			return 0;
	}
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		svpi_acknowledge(&e->element.cq->mutex, &e->element.cq->cond, &e->element.cq->async_events_completed, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		svpi_acknowledge(&e->element.srq->mutex, &e->element.srq->cond, &e->element.srq->events_completed, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		svpi_acknowledge(&e->element.qp->mutex, &e->element.qp->cond, &e->element.qp->events_completed, 1);
		break;
	case IBV_EVENT_WQ_FATAL:
		svpi_acknowledge(&e->element.wq->mutex, &e->element.wq->cond, &e->element.wq->events_completed, 1);
		break;
	default:
		break;
	}
}
