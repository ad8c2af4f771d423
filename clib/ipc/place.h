/*
 * Copying data for a peer that may wait for it by looking at the last byte: the last bytes are stored after all
 * others (docs/spec/ipc.md, "Writes, reads, atomics").
 */
#ifndef SVPI_PLACE_H
#define SVPI_PLACE_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* svpi_tail returns how many of the last of n bytes can be stored by one instruction. */
static inline size_t svpi_tail(const void *to, size_t n)
{
	uintptr_t end = (uintptr_t)to + n;

	return n >= 8 && end % 8 == 0 ? 8 : n >= 4 && end % 4 == 0 ? 4 : n > 0;
}

/* svpi_store_tail stores those last bytes, after everything stored before. */
static inline void svpi_store_tail(void *to, const void *from, size_t tail)
{
	uint64_t v8;
	uint32_t v4;

	switch (tail) {
	case 8:
		memcpy(&v8, from, 8);
		__atomic_store_n((uint64_t *)to, v8, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&v4, from, 4);
		__atomic_store_n((uint32_t *)to, v4, __ATOMIC_RELEASE);
		break;
	case 1:
		__atomic_store_n((uint8_t *)to, *(const uint8_t *)from, __ATOMIC_RELEASE);
	}
}

/* svpi_place copies n bytes, the last bytes last. */
static inline void svpi_place(void *to, const void *from, size_t n)
{
	size_t tail = svpi_tail(to, n), body = n - tail;

	memcpy(to, from, body);
	svpi_store_tail((uint8_t *)to + body, (const uint8_t *)from + body, tail);
}

#endif
