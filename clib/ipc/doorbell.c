/* Telling the driver that there is work. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "attach.h"

/* wake wakes the driver by writing to a pipe. If the driver has died this raises SIGPIPE, which must not reach the
 * program. Posting must not become a point at which threads are cancelled. */
static void wake(struct svpi *s)
{
	static const struct timespec now = { 0, 0 };
	sigset_t pipe, old, pending;
	int saved = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	if (write(s->wake, "\0\0\0\0\0\0\0\1", 8) < 0 && errno == EPIPE) { /* a full pipe wakes as well */
		sigpending(&pending);
		if (sigismember(&pending, SIGPIPE) && !sigismember(&old, SIGPIPE))
			sigtimedwait(&pipe, NULL, &now);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void svpi_doorbell_ring(struct svpi *s, uint32_t handle, uint32_t *last)
{
	if (__builtin_expect(svpi_ring(&s->doorbells, handle, last), 0))
		wake(s);
}
