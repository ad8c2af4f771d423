/*
 * The clock that stamps completions: clock. It is never off by more than a microsecond: with counters of several speeds, a
 * clock that is slewed as fast as a kernel may, and machines that sleep or go on elsewhere; and on this machine.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../ipc/ticks.h"

enum { BOUND = 1000 };

static int failures;

static void expect(const char *what, double hertz, int64_t got, int64_t most)
{
	if (got <= most)
		return;
	failures++;
	fprintf(stderr, "clock: %s, counter of %.0f Hz: %lld, want at most %lld\n", what, hertz, (long long)got, (long long)most);
}

/* A machine: a counter that ticks on, and a clock that is slewed. */
struct machine {
	struct svpi_watch w;
	double hertz, slew, ticks, ns;
	int looks; /* how often the clock was read */
};

static void pass(struct machine *m, double ns)
{
	m->ticks += ns * m->hertz / 1e9;
	m->ns += ns * (1 + m->slew);
}

/* off returns by how much the watch is off now. Readings of a moment are off themselves, by up to a quarter of the bound. */
static int64_t off(struct machine *m)
{
	uint64_t ticks = (uint64_t)m->ticks, gone = ticks - m->w.at.ticks, got;

	if (gone < m->w.most) {
		got = m->w.at.ns + (gone * m->w.rate >> 32);
	} else {
		got = (uint64_t)m->ns + (uint64_t)(rand() % (BOUND / 2)) - BOUND / 4;
		svpi_watch_set(&m->w, (struct svpi_moment){ ticks, got });
		m->looks++;
	}
	return llabs((int64_t)(got - (uint64_t)m->ns));
}

/* watch reads the clock at times for a while, and returns by how much it was off at most. */
static int64_t watch(struct machine *m, double ns, double every)
{
	int64_t most = 0, now;

	for (double t = 0; t < ns; t += every) {
		pass(m, every * rand() / RAND_MAX * 2);
		now = off(m);
		most = now > most ? now : most;
	}
	return most;
}

/* steady: once the watch knows the counter it seldom reads the clock, and follows it however it is slewed. */
static void steady(double hertz)
{
	struct machine m = { .hertz = hertz, .ns = 5e12, .ticks = 1e15 };
	int64_t tick = (int64_t)(1e9 / hertz) + 1;

	expect("while it learns", hertz, watch(&m, 5e7, 2000), BOUND);
	m.looks = 0;
	for (int k = 0; k < 20; k++) {
		m.slew = (rand() % 1001 - 500) * 1e-6;
		expect("slewed", hertz, watch(&m, 7e6, 2000), BOUND + tick);
	}
	expect("readings of the clock in 140 ms", hertz, m.looks, 500);
	m.slew = 500e-6;
	watch(&m, 5e7, 2000);
	m.slew = -500e-6;
	expect("slewed the other way at once", hertz, watch(&m, 5e7, 2000), BOUND + tick);
	expect("read rarely", hertz, watch(&m, 5e9, 4e6), BOUND + tick);
}

/* interrupted: after a sleep in which only one of the two went on, and with a counter that begins anew, it is right too. */
static void interrupted(double hertz)
{
	struct machine m = { .hertz = hertz, .ns = 5e12, .ticks = 1e15 };
	int64_t tick = (int64_t)(1e9 / hertz) + 1;

	watch(&m, 5e7, 2000);
	m.ticks += 10 * hertz;
	expect("the counter alone went on", hertz, watch(&m, 5e7, 2000), BOUND + tick);
	m.ns += 1e10;
	pass(&m, 1e6);
	expect("the clock alone went on", hertz, watch(&m, 5e7, 2000), BOUND + tick);
	m.ticks = 1000;
	expect("the counter began anew", hertz, watch(&m, 5e7, 2000), BOUND + tick);
	m.hertz *= 1.5;
	pass(&m, 1e6);
	watch(&m, 1.2e7, 2000); /* it goes on at another speed: one measurement finds out */
	expect("the counter has another speed", hertz, watch(&m, 5e7, 2000), BOUND + tick);
	m.looks = 0;
	watch(&m, 1e8, 2000);
	expect("readings of the clock in 100 ms after all that", hertz, m.looks, 400);
}

static uint64_t system_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* here compares it with the clock of this machine. */
static void here(void)
{
	uint64_t began = system_clock(), before = began;
	int64_t most = 0;

	while (before - began < 100000000) {
		before = system_clock();
		uint64_t now = svpi_now(), after = system_clock();
		int64_t early = (int64_t)(before - now), late = (int64_t)(now - after);

		most = early > most ? early : most;
		most = late > most ? late : most;
	}
	expect("this machine's", 0, most, BOUND);
	if (svpi_counted() != (svpi_watch.most > 0)) {
		failures++;
		fprintf(stderr, "clock: the counter %s, but %llu ticks are counted on\n", svpi_counted() ? "can be used" : "cannot be used",
			(unsigned long long)svpi_watch.most);
	}
}

/* order: times of a queue do not go back, but a wrong one does not hold for all after it. */
static void order(void)
{
	static const uint64_t in[] = { 5, 9, 7, 8, 10, 1000000010, 10, 9, 11, (uint64_t)1 << 63, 20, 19 };
	static const uint64_t out[] = { 5, 9, 9, 9, 10, 1000000010, 1000000010, 9, 11, (uint64_t)1 << 63, 20, 20 };
	uint64_t last = 0;

	for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++) {
		uint64_t got = svpi_in_order(&last, in[i]);

		if (got == out[i])
			continue;
		failures++;
		fprintf(stderr, "clock: time %zu of a queue, %llu, is %llu, want %llu\n", i, (unsigned long long)in[i],
			(unsigned long long)got, (unsigned long long)out[i]);
	}
}

int main(void)
{
	static const double speeds[] = { 24e6, 1e9, 2.6e9, 5e9 };

	for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++) {
		steady(speeds[i]);
		interrupted(speeds[i]);
	}
	here();
	order();
	if (failures == 0)
		printf("clock      ok\n");
	return failures != 0;
}
