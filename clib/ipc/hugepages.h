/*
 * Memory in large pages, which the kernel copies between processes several times as fast.
 */
#ifndef SVPI_HUGEPAGES_H
#define SVPI_HUGEPAGES_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* svpi_gather_pages asks the system to put the length bytes from base into large pages as far as whole ones fit,
 * including pages that were touched already, and takes some 10 ms at most. Without large pages everything works the
 * same. */
void svpi_gather_pages(void *base, size_t length);

#pragma GCC visibility pop

#endif
