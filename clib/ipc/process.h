/*
 * The process of a neighbour, to and from whose memory this program copies with the kernel's help: docs/spec/ipc.md, "The
 * direct path".
 */
#ifndef SVPI_PROCESS_H
#define SVPI_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct svpi_process_body;

/* Nothing but number and trusted changes while an operation uses it. */
struct svpi_process {
	_Atomic uint32_t number; /* 0: the driver has not told of one */
	bool reached;		 /* this program may copy to and from it */
	pid_t pid;
	uint64_t address; /* of the nonce */
	uint8_t nonce[16];
	_Atomic uint64_t trusted; /* until when, in ns of CLOCK_MONOTONIC, it is taken for the neighbour's process */
};

/* svpi_process_take takes over what the driver tells. No operation may be using the previous process. */
void svpi_process_take(struct svpi_process *, const struct svpi_process_body *);

/* svpi_process_copy copies n bytes to (writes) or from the process, piece by piece, with one system call; false: not
 * all of them were copied. */
bool svpi_process_copy(struct svpi_process *, bool writes, const struct iovec *own, int owns, const struct iovec *theirs,
		       int their_count, size_t n);

#endif
