/* Large pages, as internal/hugepages asks for them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hugepages.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* What is collapsed at once, at most: some 1 ms each MB. */
enum { HUGE = 2 << 20, MOST = 64 << 20 };

/* refused tells that whoever runs the system wants no large pages. */
static bool refused(void)
{
	static _Atomic int known; /* 1: refused, 2: not */
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

void svpi_gather_pages(void *base, size_t length)
{
	uintptr_t from = ((uintptr_t)base + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
	uintptr_t to = ((uintptr_t)base + length) & ~(uintptr_t)(HUGE - 1);
	int saved = errno;

	if (from >= (uintptr_t)base && to > from && !refused()) {
		madvise((void *)from, to - from, MADV_HUGEPAGE);
		madvise((void *)from, to - from < MOST ? to - from : MOST, MADV_COLLAPSE);
	}
	errno = saved;
}
