/*
 * Preloaded, gives a program segments of the driver where it asks for whole pages on a boundary of pages
 * (posix_memalign, aligned_alloc, memalign, valloc), as verbs programs do for their buffers: the driver then copies
 * without the kernel. What is no page, is more than the driver grants, or comes before there is libibverbs, is the C library's.
 *
 * Not for programs that fork and go on in both processes: the memory is one for parent and child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { PAGE = 4096 };

static void (*next_free)(void *);
static void *(*next_realloc)(void *, size_t);
static void *(*next_memalign)(size_t, size_t);
static size_t (*next_usable)(void *);

static void *(*segment_alloc)(size_t, size_t);
static bool (*segment_free)(void *);
static size_t (*segment_size)(void *);

/* Set while this library asks for a segment: what is allocated meanwhile is none. */
static __thread bool within;

/* The constructor comes before any thread; who allocates earlier than that comes here by itself. */
__attribute__((constructor)) static void find_next(void)
{
	static bool finding; /* the dynamic linker allocates as well */

	if (next_free || finding)
		return;
	finding = true;
	next_realloc = dlsym(RTLD_NEXT, "realloc");
	next_memalign = dlsym(RTLD_NEXT, "memalign");
	next_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
	next_free = dlsym(RTLD_NEXT, "free");
	finding = false;
}

/* find_segments finds the library that speaks with the driver, once it is there. */
static bool find_segments(void)
{
	if (segment_alloc)
		return true;
	void *size = dlsym(RTLD_DEFAULT, "svpi_segment_size"), *end = dlsym(RTLD_DEFAULT, "svpi_segment_free");
	void *alloc = dlsym(RTLD_DEFAULT, "svpi_segment_alloc");

	if (!size || !end || !alloc)
		return false;
	segment_size = (size_t (*)(void *))size;
	segment_free = (bool (*)(void *))end;
	segment_alloc = (void *(*)(size_t, size_t))alloc;
	return true;
}

static void *shared(size_t align, size_t size)
{
	int saved = errno;
	void *p = NULL;

	if (within || align < PAGE || size < PAGE)
		return NULL;
	within = true;
	if (find_segments())
		p = segment_alloc(size, align);
	within = false;
	errno = saved;
	return p;
}

/* mine tells whether memory is a segment, and how large. */
static size_t mine(void *p)
{
	return p && segment_alloc && (uintptr_t)p % PAGE == 0 && !within ? segment_size(p) : 0;
}

EXPORT void *memalign(size_t align, size_t size)
{
	void *p = shared(align, size);

	find_next();
	return p ? p : next_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
EXPORT void *valloc(size_t size) { return memalign(PAGE, size); }

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	int saved = errno;
	void *p;

	if (align < sizeof(void *) || align & (align - 1))
		return EINVAL;
	p = memalign(align, size);
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

EXPORT void free(void *p)
{
	if (mine(p)) {
		within = true;
		segment_free(p);
		within = false;
		return;
	}
	find_next();
	if (next_free)
		next_free(p); /* else the dynamic linker's, while it looks for free: lost */
}

EXPORT void *realloc(void *p, size_t size)
{
	size_t have = mine(p);
	void *to;

	find_next();
	if (!have)
		return next_realloc(p, size);
	to = size ? malloc(size) : NULL;
	if (to)
		memcpy(to, p, size < have ? size : have);
	if (to || !size)
		free(p);
	return to;
}

EXPORT size_t malloc_usable_size(void *p)
{
	size_t have = mine(p);

	find_next();
	return have ? have : next_usable(p);
}
