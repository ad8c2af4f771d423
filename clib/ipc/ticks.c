#define _GNU_SOURCE
#include "ticks.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

__thread struct svpi_watch svpi_watch;

static uint64_t system_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* kernel_has tells whether the kernel keeps its time by a counter of this name. */
static bool kernel_has(const char *name)
{
	char now[32] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, now, sizeof(now) - 1);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(name) + 1 && strncmp(now, name, strlen(name)) == 0 && now[n - 1] == '\n';
}

/* look_for finds out about the counter. On amd64 it must tick at one rate whatever the processor does (invariant TSC: CPUID
 * 0x80000007, EDX bit 8), and the kernel must have found that all processors' counters agree: it uses it only then. */
static bool look_for(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1 << 8 && kernel_has("tsc");
#elif defined(__aarch64__)
	return kernel_has("arch_sys_counter");
#else
	return kernel_has(""); /* false */
#endif
}

bool svpi_counted(void)
{
	static int known; /* 1: no, 2: yes; the same for all who find out at once */
	int k = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (k == 0)
		__atomic_store_n(&known, k = 1 + look_for(), __ATOMIC_RELAXED);
	return k == 2;
}

/* width returns how many ticks the two readings around one of the clock may be apart: up to half a microsecond. */
static uint64_t width(void)
{
#if defined(__aarch64__)
	uint64_t a_second;

	__asm__("mrs %0, cntfrq_el0" : "=r"(a_second));
	return a_second / 2000000 + 2;
#else
	return 1000; /* counters of 2 GHz and more; with slower ones up to a microsecond */
#endif
}

/* measure goes on measuring how long a tick is. */
static void measure(struct svpi_watch *w, struct svpi_moment m)
{
	uint64_t ns = m.ns - w->from.ns, ticks = m.ticks - w->from.ticks, before = w->measured;

	if (w->from.ns && ns < SVPI_WATCH_SHORTEST)
		return;
	if (!w->from.ns || ns > SVPI_WATCH_LONGEST || ticks == 0) {
		w->measured = w->rate = 0;
	} else {
		w->measured = (ns << 32) / ticks;
		uint64_t apart = w->measured > before ? w->measured - before : before - w->measured;

		w->rate = apart < before / SVPI_WATCH_AGREE ? w->measured : 0;
	}
	w->from = m;
}

void svpi_watch_set(struct svpi_watch *w, struct svpi_moment m)
{
	measure(w, m);
	w->at = m;
	w->most = w->rate ? ((uint64_t)SVPI_WATCH_NS << 32) / w->rate : 0;
}

uint64_t svpi_watch_look(struct svpi_watch *w)
{
	struct svpi_moment m;

	if (!svpi_counted())
		return system_clock();
	for (int tries = 0; tries < 4; tries++) {
		uint64_t before = svpi_ticks(), apart;

		m.ns = system_clock();
		apart = svpi_ticks() - before;
		if (apart <= width()) {
			m.ticks = before + apart / 2;
			svpi_watch_set(w, m);
			return m.ns;
		}
	}
	w->most = 0; /* interrupted each time: the next one looks again */
	return m.ns;
}
