/*
 * The stream between a program and the driver: docs/spec/ipc.md, "The stream". Internal to the library.
 */
#ifndef SVPI_STREAM_H
#define SVPI_STREAM_H

#include "attach.h"

enum { SVPI_FRAME_HEADER = 16 };
enum { SVPI_FLAG_RESPONSE = 1, SVPI_FLAG_ERROR = 2 };

struct svpi_frame {
	uint32_t length;
	uint16_t op, flags;
	uint64_t id;
};
_Static_assert(sizeof(struct svpi_frame) == SVPI_FRAME_HEADER, "layout");

/* How long a driver may stay silent, as in Go (internal/ipc/client/overdue.go). A waiting thread looks up every
 * svpi_look_ms. When half of the looks have passed in silence it asks the driver for something that is answered at
 * once; when all have passed it gives up. svpi_look_ms is 5 seconds; tests set less. */
enum { SVPI_PATIENCE_LOOKS = 12 };
extern unsigned svpi_look_ms;

/* stream.c. Functions that return int return 0 or an errno, unless they say otherwise. */

/* svpi_stream_set_limits makes every system call on the stream return after a look at the latest. */
void svpi_stream_set_limits(int fd);
/* svpi_now_ms reads a monotonic clock, in ms. */
uint64_t svpi_now_ms(void);
/* svpi_frame_send sends a frame. ETIMEDOUT: the driver has taken nothing for too long; the stream is unusable then.
 * */
int svpi_frame_send(struct svpi *, uint16_t op, uint64_t id, const void *body, size_t len);
/* svpi_frame_read reads a frame, its body into s->frame. EAGAIN: no frame has arrived, and the caller does not wait
 * or a look has passed. ETIMEDOUT: the rest of a frame does not arrive. Only one thread may call it at a time. */
int svpi_frame_read(struct svpi *, struct svpi_frame *, bool wait);
/* svpi_fd_take takes the oldest descriptor that has arrived; -1: there is none. */
int svpi_fd_take(struct svpi *);
/* svpi_map maps shared memory; NULL: that failed. */
void *svpi_map(int fd, uint64_t size);

/* The caller of these holds the lock. */

/* svpi_dispatch handles the frame that has just been read (frames.c). */
int svpi_dispatch(struct svpi *, const struct svpi_frame *);
int svpi_arena_take(struct svpi *, size_t len);
/* svpi_answer gives an answer to the request that waits for it (call.c). */
int svpi_answer(struct svpi *, const struct svpi_frame *, size_t len);
/* svpi_events_take queues events (queued.c). */
int svpi_events_take(struct svpi *, size_t len);

/* hello.c. */

/* svpi_dial connects to the driver. Returns a descriptor, or -1 with errno. */
int svpi_dial(void);
/* svpi_say_hello introduces the program, and takes the driver's welcome and the first arena. */
int svpi_say_hello(struct svpi *);
/* svpi_show permits the driver to access this process's memory, if the kernel requires permission, and writes a nonce
 * that the driver reads to prove that it can. */
int svpi_show(struct svpi *, uint64_t *addr, uint8_t nonce[16]);

/* refusal.c. Both functions return the errno, and keep the explanation for svpi_detail. */
int svpi_fail(int error, const char *why);
/* svpi_refused takes the body of an error frame, at least 8 bytes. */
int svpi_refused(const uint8_t *body, size_t len);

#endif
