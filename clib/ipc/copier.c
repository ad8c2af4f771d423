#define _GNU_SOURCE
#include "copier.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach.h"
#include "waiting.h"

enum { SLOTS = 64, PIECE = 64 << 10, ENTRIES = 256, STAGING = 8192 };
enum { COPY_READ = 1, COPY_WRITE, COPY_CAS, COPY_FADD };
enum { RESULT_DONE = 1, RESULT_FAULT = 2 };

struct header {
	_Alignas(64) _Atomic uint32_t issued;
	_Alignas(64) _Atomic uint32_t finished;
	_Alignas(64) _Atomic uint32_t asleep;
	_Alignas(64) _Atomic uint32_t owner; /* the process that copies: a child that the attachment moved to takes over from its parent */
};

struct entry {
	uint8_t kind, last, none[2];
	uint32_t length;
	uint64_t addr, compare, swap;
	uint32_t result, none2;
	uint64_t old;
	uint64_t none3[2];
};
_Static_assert(sizeof(struct entry) == 64, "layout");

/* copy moves bytes within this process. If addr is no longer mapped it fails instead of faulting. */
static int copy(int kind, uint64_t addr, void *staging, size_t n)
{
	struct iovec own = { (void *)(uintptr_t)addr, n }, piece = { staging, n };
	ssize_t done = kind == COPY_READ ? process_vm_readv(getpid(), &piece, 1, &own, 1, 0)
					 : process_vm_writev(getpid(), &piece, 1, &own, 1, 0);

	if (done < 0 && (errno == ENOSYS || errno == EPERM)) { /* a sandbox forbids the calls: only a plain copy is left */
		memcpy(kind == COPY_READ ? staging : own.iov_base, kind == COPY_READ ? own.iov_base : staging, n);
		return RESULT_DONE;
	}
	return done == (ssize_t)n ? RESULT_DONE : RESULT_FAULT;
}

static int carry_out(struct entry *e, uint8_t *staging)
{
	uint8_t probe;

	switch (e->kind) {
	case COPY_READ:
	case COPY_WRITE:
		if (e->length > PIECE)
			return RESULT_FAULT;
		if (e->length == 0)
			return RESULT_DONE;
		if (e->kind == COPY_WRITE && e->last && e->length > 8) { /* the last bytes must become visible last */
			size_t head = e->length - 8;
			int result = copy(COPY_WRITE, e->addr, staging, head);

			if (result != RESULT_DONE)
				return result;
			atomic_thread_fence(memory_order_seq_cst);
			return copy(COPY_WRITE, e->addr + head, staging + head, 8);
		}
		return copy(e->kind, e->addr, staging, e->length);
	case COPY_CAS:
	case COPY_FADD:
		if (e->addr % 8 || copy(COPY_READ, e->addr, &probe, 1) != RESULT_DONE)
			return RESULT_FAULT;
		_Atomic uint64_t *p = (void *)(uintptr_t)e->addr;

		if (e->kind == COPY_FADD) {
			e->old = atomic_fetch_add(p, e->swap);
		} else {
			uint64_t expected = e->compare;

			atomic_compare_exchange_strong(p, &expected, e->swap);
			e->old = expected;
		}
		return RESULT_DONE;
	}
	return RESULT_FAULT;
}

static void *serve(void *arg)
{
	struct svpi *s = arg;
	uint8_t *mem = s->copier;
	struct header *h = s->copier;
	uint32_t done = atomic_load(&h->finished);
	uint32_t bell = 0, own = (uint32_t)getpid();
	int idle = 0;

	while (atomic_load(&h->owner) == own) {
		uint32_t issued = atomic_load(&h->issued);

		if (issued == done) {
			struct timespec t = { 0, SVPI_COPIER_SLICE_MS * 1000000L };

			pthread_testcancel();
			if (++idle < SVPI_COPIER_LOOKS) {
				sched_yield();
				continue;
			}
			atomic_store(&h->asleep, 1);
			if (atomic_load(&h->issued) == done)
				syscall(SYS_futex, &h->issued, FUTEX_WAIT, done, &t, NULL, 0);
			atomic_store(&h->asleep, 0);
			continue;
		}
		for (idle = 0; done != issued; done++) {
			struct entry *e = (struct entry *)(mem + ENTRIES) + done % SLOTS;

			e->result = (uint32_t)carry_out(e, mem + STAGING + (size_t)(done % SLOTS) * PIECE);
			atomic_store(&h->finished, done + 1);
		}
		svpi_doorbell(s, 0, &bell);
	}
	return NULL;
}

int svpi_copier_start(struct svpi *s)
{
	sigset_t all, old;
	int error;

	atomic_store(&((struct header *)s->copier)->owner, (uint32_t)getpid());
	/* Signals to the program are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&s->copier_thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

void svpi_copier_stop(struct svpi *s)
{
	pthread_cancel(s->copier_thread);
	pthread_join(s->copier_thread, NULL);
}
