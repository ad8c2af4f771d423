/* Frames from the driver: each is given to the part of the library that handles it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"

int svpi_arena_take(struct svpi *s, size_t len)
{
	struct svpi_arena_body a;
	int fd = svpi_fd_take(s);
	void *p;

	if (len != sizeof(a) || fd < 0)
		return EPROTO;
	memcpy(&a, s->frame, sizeof(a));
	/* Another process that shares the attachment may have taken some between. */
	if (a.id < s->narenas || (a.id > s->narenas && !s->shared) || a.id >= SVPI_MAX_ARENAS) {
		close(fd);
		return EPROTO;
	}
	p = svpi_map(fd, a.size);
	close(fd);
	if (!p)
		return ENOMEM;
	s->arena_size[a.id] = a.size;
	s->arenas[a.id] = p;
	s->narenas = a.id + 1;
	return 0;
}

void *svpi_memory(struct svpi *s, const struct svpi_ring *r)
{
	void *p = NULL;

	pthread_mutex_lock(&s->lock);
	if (r->arena < s->narenas && s->arenas[r->arena] && r->offset <= s->arena_size[r->arena] && r->size <= s->arena_size[r->arena] - r->offset)
		p = (uint8_t *)s->arenas[r->arena] + r->offset;
	pthread_mutex_unlock(&s->lock);
	return p;
}

/* take_neighbour handles frames about the other programs of the direct path. */
static int take_neighbour(struct svpi *s, const struct svpi_frame *h, size_t len)
{
	int fds = h->flags >> 8 & 15, fd = fds == 1 ? svpi_fd_take(s) : -1;

	return fds > 1 || !svpi_neighbour_frame(s, h->op, s->frame, len, fd) ? EPROTO : 0;
}

/* svpi_dispatch handles the frame that has just been read. The lock is held. */
int svpi_dispatch(struct svpi *s, const struct svpi_frame *h)
{
	size_t len = h->length - SVPI_FRAME_HEADER;

	switch (h->op) {
	case SVPI_EVENTS:
		return svpi_events_take(s, len);
	case SVPI_ARENA:
		return svpi_arena_take(s, len);
	case SVPI_SHARE:
	case SVPI_INTRODUCE:
	case SVPI_DROP:
	case SVPI_PROCESS:
		return take_neighbour(s, h, len);
	case SVPI_GOODBYE:
		if (len >= sizeof(struct svpi_goodbye)) {
			const struct svpi_goodbye *g = (const void *)s->frame;

			snprintf(s->reason, sizeof(s->reason), "the driver disconnected this program: %.*s",
				 (int)(g->length < sizeof(g->reason) ? g->length : sizeof(g->reason)), (const char *)g->reason);
		}
		return ENODEV;
	}
	return svpi_answer(s, h, len);
}
