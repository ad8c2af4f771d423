/*
 * Memory in large pages, which the kernel copies to another process several times as fast.
 */
#ifndef SVPI_HUGEPAGES_H
#define SVPI_HUGEPAGES_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* svpi_gather_pages has length bytes from base lie in large pages as far as whole ones fit, those of them too that were touched
 * already, for some 10 ms. Where there are none, everything works the same. */
void svpi_gather_pages(void *base, size_t length);

#pragma GCC visibility pop

#endif
