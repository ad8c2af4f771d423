#define _GNU_SOURCE
#include "segment.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"

struct segment {
	struct segment *next;
	struct svpi *s; /* a reference is held */
	uint32_t number;
	uint8_t *base;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *list;
/* Bounds of all segments so far: most pointers that are freed lie outside. */
static _Atomic uintptr_t lowest = UINTPTR_MAX, highest;
static _Atomic uint32_t generation; /* number of segments freed so far */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) { pthread_mutex_init(&lock, NULL); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* place maps a descriptor at a multiple of align. */
static void *place(int fd, size_t size, size_t align)
{
	uint8_t *room = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;

	if (room == MAP_FAILED)
		return NULL;
	at = (uint8_t *)(((uintptr_t)room + align - 1) & ~(uintptr_t)(align - 1));
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(room, size + align);
		return NULL;
	}
	if (at > room)
		munmap(room, (size_t)(at - room));
	if (at + size < room + size + align)
		munmap(at + size, (size_t)(room + align - at));
	return at;
}

static void note(struct segment *g)
{
	uintptr_t from = (uintptr_t)g->base, to = from + g->size, was;

	for (was = lowest; from < was && !atomic_compare_exchange_weak(&lowest, &was, from);)
		;
	for (was = highest; to > was && !atomic_compare_exchange_weak(&highest, &was, to);)
		;
	pthread_mutex_lock(&lock);
	g->next = list;
	list = g;
	pthread_mutex_unlock(&lock);
}

void *svpi_segment_alloc(size_t size, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct svpi_segment_args q = { (size + page - 1) & ~(page - 1) };
	struct svpi_segment_reply r;
	struct segment *g;
	int error, fd = -1;

	if (size == 0 || q.size < size || q.size > SIZE_MAX / 4 || align & (align - 1) || align > SIZE_MAX / 4) {
		errno = EINVAL;
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g || !(g->s = svpi_get())) {
		free(g);
		return NULL;
	}
	error = g->s->moved ? ENOTSUP : svpi_call_fd(g->s, SVPI_ALLOC_SEGMENT, &q, sizeof(q), &r, sizeof(r), &fd);
	if (!error && (fd < 0 || r.size != q.size))
		error = EPROTO;
	if (!error) {
		g->number = r.number;
		g->size = q.size;
		g->base = place(fd, q.size, align < page ? page : align);
		if (!g->base) {
			struct svpi_handle_args h = { r.number };

			error = ENOMEM;
			svpi_call(g->s, SVPI_FREE_SEGMENT, &h, sizeof(h), NULL, 0);
		}
	}
	if (fd >= 0)
		close(fd);
	if (error) {
		svpi_put(g->s);
		free(g);
		errno = error;
		return NULL;
	}
	note(g);
	return g->base;
}

void *svpi_segment_adopt(struct svpi *s, uint32_t number, int fd, size_t size)
{
	struct segment *g = calloc(1, sizeof(*g));

	if (g)
		g->base = place(fd, size, (size_t)sysconf(_SC_PAGESIZE));
	if (!g || !g->base) {
		free(g);
		return NULL;
	}
	g->s = s;
	g->number = number;
	g->size = size;
	note(g);
	return g->base;
}

/* outside quickly recognizes most addresses that lie in no segment. */
static bool outside(const void *p) { return (uintptr_t)p < lowest || (uintptr_t)p >= highest; }

/* take unlinks the segment that begins at p. */
static struct segment *take(const void *p)
{
	struct segment *g, **at;

	pthread_mutex_lock(&lock);
	for (at = &list; *at && (*at)->base != p; at = &(*at)->next)
		;
	g = *at;
	if (g)
		*at = g->next;
	atomic_fetch_add(&generation, g != NULL);
	pthread_mutex_unlock(&lock);
	return g;
}

void svpi_segment_leave(void *p)
{
	struct segment *g = take(p);

	if (g)
		munmap(g->base, g->size);
	free(g);
}

uint32_t svpi_segment_generation(void) { return atomic_load_explicit(&generation, memory_order_acquire); }

bool svpi_segment_held(struct svpi *s, uint32_t number)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct segment *g = list; g && !found; g = g->next)
		found = g->s == s && g->number == number;
	pthread_mutex_unlock(&lock);
	return found;
}

bool svpi_segment_free(void *p)
{
	struct segment *g = outside(p) ? NULL : take(p);
	struct svpi_handle_args q;
	int saved = errno;

	if (!g)
		return false;
	munmap(g->base, g->size);
	q.handle = g->number;
	if (!g->s->moved) /* a forked child that has not moved shares it with its parent */
		svpi_call(g->s, SVPI_FREE_SEGMENT, &q, sizeof(q), NULL, 0);
	svpi_put(g->s);
	free(g);
	errno = saved;
	return true;
}

size_t svpi_segment_size(void *p)
{
	size_t size = 0;

	if (outside(p))
		return 0;
	pthread_mutex_lock(&lock);
	for (struct segment *g = list; g && !size; g = g->next)
		if (g->base == p)
			size = g->size;
	pthread_mutex_unlock(&lock);
	return size;
}

uint32_t svpi_segment_find(struct svpi *s, const void *from, size_t length, uint64_t *offset)
{
	uint32_t number = 0;

	if (outside(from))
		return 0;
	pthread_mutex_lock(&lock);
	for (struct segment *g = list; g && !number; g = g->next) {
		size_t at = (size_t)((const uint8_t *)from - g->base);

		if (g->s == s && (const uint8_t *)from >= g->base && at <= g->size && length <= g->size - at) {
			number = g->number;
			*offset = at;
		}
	}
	pthread_mutex_unlock(&lock);
	return number;
}
