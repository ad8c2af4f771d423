/* Events that wait until they are asked for. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "stream.h"

int svpi_events_take(struct svpi *s, size_t len)
{
	if (len % sizeof(struct svpi_event))
		return EPROTO;
	for (size_t at = 0; at < len; at += sizeof(struct svpi_event)) {
		struct svpi_queued *q = malloc(sizeof(*q));

		if (!q)
			return ENOMEM;
		q->next = NULL;
		memcpy(&q->event, s->frame + at, sizeof(q->event));
		*s->events_end = q;
		s->events_end = &q->next;
	}
	return 0;
}

bool svpi_take(struct svpi *s, bool (*wants)(const struct svpi_event *, void *), void *arg, struct svpi_event *out)
{
	struct svpi_queued **p, *q;
	uint32_t credit = 0;

	pthread_mutex_lock(&s->lock);
	for (p = &s->events; *p && !wants(&(*p)->event, arg); p = &(*p)->next)
		;
	q = *p;
	if (q) {
		*p = q->next;
		if (s->events_end == &q->next)
			s->events_end = p;
		if (++s->taken >= s->about.credits / 4) {
			credit = s->taken;
			s->taken = 0;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (credit) {
		struct svpi_credit c = { credit };

		svpi_frame_send(s, SVPI_CREDIT, 0, &c, sizeof(c));
	}
	if (!q)
		return false;
	*out = q->event;
	free(q);
	return true;
}
