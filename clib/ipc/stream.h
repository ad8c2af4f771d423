/*
 * The stream between a program and the driver: docs/ipc.md, "The stream". Within the library.
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

/* How long a driver may answer nothing, as in Go (internal/ipc/overdue.go). What waits for it looks up every
 * svpi_look_ms, asks it something that it answers at once when half of the looks have passed in silence, and gives up when all
 * have. It is 5 seconds; tests have no patience. */
enum { SVPI_PATIENCE_LOOKS = 12 };
extern unsigned svpi_look_ms;

/* stream.c. All that return an int: 0, or an errno. */

/* svpi_stream_set_limits has nothing wait for the stream for longer than a look without looking up. */
void svpi_stream_set_limits(int fd);
/* svpi_now_ms is a clock, in ms. */
uint64_t svpi_now_ms(void);
/* svpi_frame_send sends a frame; ETIMEDOUT where the driver took nothing for all its patience, and the stream is of no use then. */
int svpi_frame_send(struct svpi *, uint16_t op, uint64_t id, const void *body, size_t len);
/* svpi_frame_read reads a frame, its body into s->frame; EAGAIN where there is none and the caller does not wait, or none came
 * for a look; ETIMEDOUT where the rest of one does not come. One thread at a time. */
int svpi_frame_read(struct svpi *, struct svpi_frame *, bool wait);
/* svpi_fd_take takes the oldest descriptor that came, -1: there is none. */
int svpi_fd_take(struct svpi *);
/* svpi_map maps shared memory, NULL where that cannot be. */
void *svpi_map(int fd, uint64_t size);

/* The lock is held in these. */

/* svpi_dispatch handles the frame that was read (frames.c). */
int svpi_dispatch(struct svpi *, const struct svpi_frame *);
int svpi_arena_take(struct svpi *, size_t len);
/* svpi_answer gives a request its answer (call.c). */
int svpi_answer(struct svpi *, const struct svpi_frame *, size_t len);
/* svpi_events_take queues events (queued.c). */
int svpi_events_take(struct svpi *, size_t len);

/* hello.c. */

/* svpi_dial connects to the driver: a descriptor, or -1 with errno. */
int svpi_dial(void);
/* svpi_say_hello introduces the program, and takes welcome and the first arena. */
int svpi_say_hello(struct svpi *);
/* svpi_show lets the driver look at the memory of this process, where the kernel has such a rule, and puts a nonce where it
 * will look. */
int svpi_show(struct svpi *, uint8_t probe[64], uint64_t *addr, uint8_t nonce[16]);

/* refusal.c. Both return the errno, and keep the words for svpi_detail. */
int svpi_fail(int error, const char *why);
/* svpi_refused is for the body of an error, of 8 bytes at least. */
int svpi_refused(const uint8_t *body, size_t len);

#endif
