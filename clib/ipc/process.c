#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "layouts.h"

/* How long, in ns, a process is taken for the one that it was: its id cannot be given to another one so soon, since
 * all others have their turn first. */
enum { TRUST = 1000000 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* verify reads the nonce. */
static bool verify(struct svpi_process *p, uint64_t at)
{
	uint8_t nonce[sizeof(p->nonce)];
	struct iovec own = { nonce, sizeof(nonce) }, theirs = { (void *)(uintptr_t)p->address, sizeof(nonce) };

	if (process_vm_readv(p->pid, &own, 1, &theirs, 1, 0) != sizeof(nonce) || memcmp(nonce, p->nonce, sizeof(nonce)))
		return false;
	atomic_store_explicit(&p->trusted, at + TRUST, memory_order_relaxed);
	return true;
}

void svpi_process_take(struct svpi_process *p, const struct svpi_process_body *b)
{
	atomic_store(&p->number, 0);
	p->pid = (pid_t)b->pid;
	p->address = b->address;
	memcpy(p->nonce, b->nonce, sizeof(p->nonce));
	p->reached = p->pid > 0 && verify(p, now());
	atomic_store(&p->number, b->number);
}

bool svpi_process_copy(struct svpi_process *p, bool writes, const struct iovec *own, int owns, const struct iovec *theirs,
		       int their_count, size_t n)
{
	uint64_t at = now();
	ssize_t done;

	/* It may have ended, or run another program, and the driver not have noticed. */
	if (at >= atomic_load_explicit(&p->trusted, memory_order_relaxed) && !verify(p, at))
		return false;
	do
		done = writes ? process_vm_writev(p->pid, own, (unsigned long)owns, theirs, (unsigned long)their_count, 0)
			      : process_vm_readv(p->pid, own, (unsigned long)owns, theirs, (unsigned long)their_count, 0);
	while (done < 0 && errno == EINTR);
	return done >= 0 && (size_t)done == n;
}
