/* Advice on memory regions on demand (ibv_advise_mr(3)). */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "object.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

bool svpi_pages_on_demand(const struct svpi *s) { return s->about.minor >= 8; }

/* Advice on one range of addresses of a region. */
struct advice {
	const struct ibv_pd *pd;
	const struct ibv_sge *sge;
	bool write;
	uintptr_t from; /* where the range begins in the program */
	int error;
};

/* check finds out whether the advice is for memory that the region has, and where in the program that is. */
static void check(const void *object, void *arg)
{
	const struct svpi_mr *m = object;
	struct advice *a = arg;
	uint64_t at;

	a->error = EFAULT;
	if (!m || !(m->access & IBV_ACCESS_ON_DEMAND) || m->mr.pd->handle != a->pd->handle ||
	    (a->write && !(m->access & IBV_ACCESS_LOCAL_WRITE)))
		return;
	at = a->sge->addr - m->iova;
	if (at > m->mr.length || a->sge->length > m->mr.length - at)
		return;
	a->from = (uintptr_t)m->mr.addr + (uintptr_t)at;
	a->error = 0;
}

/* touch reads a byte of each page, for kernels older than 5.14. */
static int touch(uintptr_t from, uintptr_t to, uintptr_t page)
{
	char byte;

	for (; from < to; from += page) {
		struct iovec here = { &byte, 1 }, there = { (void *)from, 1 };

		if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
			return EFAULT;
	}
	return 0;
}

/* populate makes the pages of a range, for writing if write is set. Returns 0 or an errno. */
static int populate(uintptr_t from, uintptr_t to, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = from & ~(page - 1), end = (to + page - 1) & ~(page - 1);

	if (from == to)
		return 0;
	while (madvise((void *)begin, end - begin, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0) {
		if (errno == EINVAL)
			return touch(begin, to, page);
		if (errno != EINTR && errno != EAGAIN)
			return EFAULT;
	}
	return 0;
}

/* Advice is followed before the call returns, with or without IBV_ADVISE_MR_FLAG_FLUSH. If some of it is refused
 * nothing of it is followed. */
int svpi_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t count)
{
	struct svpi_context *c = to_context(pd->context);
	struct advice a = { .pd = pd, .write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE };
	int saved = errno;

	if (!svpi_pages_on_demand(c->svpi) || advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || count == 0)
		return EINVAL;
	for (int follow = 0; follow < 2 && !a.error; follow++) {
		for (uint32_t i = 0; i < count && !a.error; i++) {
			a.sge = &list[i];
			svpi_table_look(&c->mrs, list[i].lkey, check, &a);
			if (!a.error && follow && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
				a.error = populate(a.from, a.from + list[i].length, a.write);
		}
	}
	errno = saved;
	return a.error;
}
