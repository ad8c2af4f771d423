/* Segments: memory that the driver made and maps too (docs/ipc.md, "Shared memory"), so that it copies without asking the
 * kernel. For who allocates memory on purpose: a child of fork has this memory with its parent, not a copy of it. */
#ifndef SVPI_SEGMENT_H
#define SVPI_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct svpi;

#pragma GCC visibility push(default)

/* svpi_segment_alloc returns zeroed memory in a segment of its own, on a multiple of align, a power of two; NULL with
 * errno where there is no driver, or its budget is used up. */
void *svpi_segment_alloc(size_t size, size_t align);
/* svpi_segment_free ends what svpi_segment_alloc returned, and is false where p is no such memory. Regions in it go on:
 * for peers the bytes are still there. */
bool svpi_segment_free(void *p);
/* svpi_segment_size is how much may be used from p on, 0 where p is no such memory. */
size_t svpi_segment_size(void *p);

#pragma GCC visibility pop

/* svpi_segment_held tells whether a segment of an attachment was not freed yet, and svpi_segment_generation changes with
 * each that is. */
bool svpi_segment_held(struct svpi *, uint32_t number);
uint32_t svpi_segment_generation(void);

/* svpi_segment_find finds the segment of an attachment that a range lies in: its number and the offset there; 0: none. */
uint32_t svpi_segment_find(struct svpi *, const void *from, size_t length, uint64_t *offset);

#endif
