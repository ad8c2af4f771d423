/* Segments: memory that the driver makes and maps too (docs/spec/ipc.md, "Shared memory"), so that it can copy without the
 * kernel's help. It has to be allocated deliberately, because a forked child shares it with its parent instead of
 * getting a copy. */
#ifndef SVPI_SEGMENT_H
#define SVPI_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct svpi;

#pragma GCC visibility push(default)

/* svpi_segment_alloc returns zeroed memory in a new segment, aligned to align, a power of two; NULL with errno if
 * there is no driver, or its memory budget is used up. */
void *svpi_segment_alloc(size_t size, size_t align);
/* svpi_segment_free frees what svpi_segment_alloc returned, and returns false for any other pointer. Memory regions
 * in it stay registered: peers can still access the bytes. */
bool svpi_segment_free(void *p);
/* svpi_segment_size returns the usable size of the segment at p, or 0 if p is not the beginning of one. */
size_t svpi_segment_size(void *p);

#pragma GCC visibility pop

/* svpi_segment_held tells whether a segment of an attachment has not been freed yet. svpi_segment_generation changes
 * whenever one is freed. */
bool svpi_segment_held(struct svpi *, uint32_t number);
uint32_t svpi_segment_generation(void);

/* svpi_segment_adopt maps a segment that the driver has made otherwise, and passed as fd; NULL: there is no memory.
 * svpi_segment_leave unmaps it. */
void *svpi_segment_adopt(struct svpi *, uint32_t number, int fd, size_t size);
void svpi_segment_leave(void *);

/* svpi_segment_find finds the segment of an attachment in which a range lies, and returns its number and the offset
 * within it; 0: none. */
uint32_t svpi_segment_find(struct svpi *, const void *from, size_t length, uint64_t *offset);

#endif
