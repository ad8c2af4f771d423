/* Large pages, asked for in the way of internal/cpu/hugepages. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hugepages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* How long a registration waits for large pages, which take 0.3 to 5 ms for each MB that was already touched. The
 * system converts the rest in its own time: the library has no thread for it. */
enum { HUGE = 2 << 20, PATIENCE = 10 * 1000 * 1000 /* ns */ };

/* refused tells whether the system's administrator has turned large pages off. */
static bool refused(void)
{
	static _Atomic int known; /* 1: refused, 2: not refused */
	char text[128];
	ssize_t n = -1;
	int fd;

	if (!known) {
		fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			n = read(fd, text, sizeof(text) - 1);
			close(fd);
		}
		text[n < 0 ? 0 : n] = 0;
		known = n <= 0 || strstr(text, "[never]") ? 1 : 2;
	}
	return known == 1;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void svpi_gather_pages(void *base, size_t length)
{
	uintptr_t from = ((uintptr_t)base + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
	uintptr_t to = ((uintptr_t)base + length) & ~(uintptr_t)(HUGE - 1);
	int saved = errno;
	int64_t begin;

	if (from >= (uintptr_t)base && to > from && !refused()) {
		begin = now();
		madvise((void *)from, to - from, MADV_HUGEPAGE);
		for (; from < to && now() - begin < PATIENCE; from += HUGE)
			madvise((void *)from, HUGE, MADV_COLLAPSE);
	}
	errno = saved;
}
