/*
 * A library to be preloaded. When a program allocates whole pages aligned to a page (posix_memalign, aligned_alloc,
 * memalign, valloc), as verbs programs do for their buffers, it gets a segment of the driver's, so that the driver
 * copies without the kernel. All other allocations, those that the driver refuses, and those before libibverbs is
 * loaded are left to the C library.
 *
 * Not for programs that fork and continue in both processes: parent and child would share the memory.
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

/* Set while this library itself asks for a segment: allocations meanwhile go to the C library. */
static __thread bool within;

/* The constructor runs before any thread. Functions that are called even earlier call it themselves. */
__attribute__((constructor)) static void find_next(void)
{
	static bool finding; /* the dynamic linker allocates memory as well */

	if (next_free || finding)
		return;
	finding = true;
	next_realloc = dlsym(RTLD_NEXT, "realloc");
	next_memalign = dlsym(RTLD_NEXT, "memalign");
	next_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
	next_free = dlsym(RTLD_NEXT, "free");
	finding = false;
}

/* find_segments looks up the library that talks to the driver, once it is loaded. */
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

/* mine returns the size of the segment at p, or 0 if there is none. */
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
		next_free(p); /* otherwise allocated by the dynamic linker while free is looked up: leaked */
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
