/*
 * CLOCK_MONOTONIC, read by the processor's counter of time. The clock itself takes more than twice as long, because it waits
 * for the instructions before it and converts with values that it reads under a lock; what stamps completions wants neither.
 *
 * A watch keeps one moment at which it knows both the clock and the counter, and how long a tick is. It counts on from that
 * moment for SVPI_WATCH_NS only, then reads the clock again, so that it follows the clock wherever the clock is slewed. The
 * length of a tick is measured between such moments; until two measurements in a row agree, and on machines whose counter
 * is not what the kernel keeps its time by, each reading is one of the clock.
 */
#ifndef SVPI_TICKS_H
#define SVPI_TICKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SVPI_WATCH_NS = 500000,		/* how long a moment is counted on from */
	SVPI_WATCH_SHORTEST = 10000000, /* between which times, in ns, the length of a tick is measured: the errors of the two */
	SVPI_WATCH_LONGEST = 1000000000, /* moments should not matter, nor what the machine slept or was slewed long ago */
	SVPI_WATCH_AGREE = 1000,	/* measurements agree if they differ by less than this part: the clock is slewed by 1/2000 at most */
};

struct svpi_moment { uint64_t ticks, ns; };

struct svpi_watch {
	struct svpi_moment at;
	uint64_t rate; /* nanoseconds a tick takes, in 2^-32 */
	uint64_t most; /* ticks that are counted on from at */
	struct svpi_moment from; /* where the measurement that runs began; ns is 0 if none does */
	uint64_t measured;	 /* the last measurement, like rate; 0: none */
};

/* svpi_watch_set has the watch count on from a moment, if it knows how long a tick is. It is the pure part of svpi_now. */
void svpi_watch_set(struct svpi_watch *, struct svpi_moment);

/* svpi_watch_look has the watch read the clock, and set itself. It returns what the clock says. */
uint64_t svpi_watch_look(struct svpi_watch *);

/* svpi_counted tells whether this machine's counter is one that can be used. */
bool svpi_counted(void);

static inline uint64_t svpi_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

/* svpi_watch_read returns CLOCK_MONOTONIC at a reading of the counter, or now if the watch does not know. A counter that went
 * back is far ahead in unsigned numbers. */
static inline uint64_t svpi_watch_read(struct svpi_watch *w, uint64_t ticks)
{
	uint64_t gone = ticks - w->at.ticks;

	return __builtin_expect(gone < w->most, 1) ? w->at.ns + (gone * w->rate >> 32) : svpi_watch_look(w);
}

/* svpi_in_order sees that the times of a queue's completions do not go back: who makes one reads the clock before it has its
 * place, so two peers may come in the other order. What is earlier by more than a second is no such accident, but a peer's
 * clock that was wrong, and is left as it is. */
static inline uint64_t svpi_in_order(uint64_t *last, uint64_t time)
{
	if (*last - time > 1000000000)
		*last = time;
	return *last;
}

/* Each thread has a watch of its own, so that none waits for another. (Not in static storage, which would save 1.5 ns: programs
 * that load this library late may have none left.) */
extern __thread struct svpi_watch svpi_watch __attribute__((visibility("hidden")));

/* svpi_now returns CLOCK_MONOTONIC in nanoseconds. It is off by at most a microsecond, usually by less than a tenth of one, and
 * may be so in either direction from one call to the next. */
static inline uint64_t svpi_now(void) { return svpi_watch_read(&svpi_watch, svpi_ticks()); }

#endif
