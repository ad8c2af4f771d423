/* Telling the driver that there is work. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "attach.h"

/* wake wakes the driver. It writes to a pipe: where the driver has died that is a SIGPIPE, which is none of the program's.
 * Posting is no point where threads are cancelled. */
static void wake(struct svpi *s)
{
	static const struct timespec now = { 0, 0 };
	sigset_t pipe, old, pending;
	int saved = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	if (write(s->wake, "\0\0\0\0\0\0\0\1", 8) < 0 && errno == EPIPE) { /* full is as good as written */
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
