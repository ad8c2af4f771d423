/* The memory of sockets: pieces of segments, which the driver maps too, so that a peer on the same host takes the direct
 * path and the driver copies without the kernel. A program's own memory cannot be moved there without its consent
 * (a forked child would share it), but no program ever sees this. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../ipc/segment.h"
#include "rsocket.h"

/* MOST_PIECES in one segment: the driver has a limit for segments, and programs may have thousands of sockets. */
enum { PAGE = 4096, MOST_PIECES = 16 };

struct chunk {
	struct chunk *next;
	uint8_t *base;
	size_t size; /* of a piece */
	uint32_t pieces, used; /* used: a bit for each */
	bool inherited; /* from the parent of a fork, which shares it: nothing more is taken from it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct chunk *chunks;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	for (struct chunk *c = chunks; c; c = c->next)
		c->inherited = true;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* piece takes a free piece of a chunk; NULL: there is none. The lock is held. */
static void *piece(struct chunk *c)
{
	for (uint32_t i = 0; i < c->pieces && !c->inherited; i++)
		if (!(c->used & 1u << i)) {
			c->used |= 1u << i;
			return c->base + i * c->size;
		}
	return NULL;
}

/* more makes a segment with as many pieces as are in use, so that it takes few segments for many sockets, and little
 * memory for few. It returns the first piece, or NULL. */
static void *more(size_t size, uint32_t pieces)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->size = size;
	c->pieces = pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : pieces;
	c->used = 1;
	c->base = svpi_segment_alloc(c->size * c->pieces, PAGE);
	if (!c->base) {
		free(c);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	c->next = chunks;
	chunks = c;
	pthread_mutex_unlock(&lock);
	return c->base;
}

void *rs_memory_get(size_t size)
{
	uint32_t held = 0;
	void *p = NULL;

	size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
	pthread_mutex_lock(&lock);
	for (struct chunk *c = chunks; c && !p; c = c->next)
		if (c->size == size) {
			held += c->pieces;
			p = piece(c);
		}
	pthread_mutex_unlock(&lock);
	if (!p)
		p = more(size, held);
	if (!p && posix_memalign(&p, PAGE, size)) /* no more of the driver's memory for this program */
		p = NULL;
	if (p)
		memset(p, 0, size);
	else
		errno = ENOMEM;
	return p;
}

void rs_memory_put(void *p)
{
	struct chunk **at, *c, *empty = NULL;

	pthread_mutex_lock(&lock);
	for (at = &chunks; (c = *at); at = &c->next)
		if ((uint8_t *)p >= c->base && (uint8_t *)p < c->base + c->size * c->pieces)
			break;
	if (c)
		c->used &= ~(1u << ((size_t)((uint8_t *)p - c->base) / c->size));
	if (c && !c->used) {
		*at = c->next;
		empty = c;
	}
	pthread_mutex_unlock(&lock);
	if (!c)
		free(p);
	else if (empty)
		svpi_segment_free(empty->base);
	free(empty);
}
