/* Memory regions and windows. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ipc/hugepages.h"
#include "../ipc/segment.h"
#include "object.h"

EXPORT int svpi_destroy(struct svpi *s, uint32_t kind, uint32_t handle)
{
	struct svpi_destroy_args q = { kind, handle };
	int error = svpi_call(s, SVPI_DESTROY, &q, sizeof(q), NULL, 0);

	return error == ENODEV || error == ENOENT ? 0 : error; /* it no longer exists */
}

/* there tells whether a range is mapped completely: an error at registration is better than one in a completion. */
static bool there(void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr & ~(page - 1), to = (uintptr_t)addr + length;
	int saved = errno;
	bool mapped = to >= (uintptr_t)addr && msync((void *)from, to - from, MS_ASYNC) == 0; /* msync with MS_ASYNC has no other effect */

	errno = saved;
	return mapped;
}

/* describe fills in what the driver is told of a region; its keys cover addresses from iova on. Returns 0 or an errno.
 * */
static int describe(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access, struct svpi_register_memory_at *q)
{
	bool on_demand = access & IBV_ACCESS_ON_DEMAND;
	int error = svpi_here(to_svpi(pd->context));

	if (error)
		return error;
	if (on_demand && !svpi_pages_on_demand(to_svpi(pd->context)))
		return EOPNOTSUPP;
	if (length && !on_demand && !there(addr, length))
		return EFAULT;
	*q = (struct svpi_register_memory_at){ .iova = iova, .register_memory = { .pd = pd->handle, .base = (uintptr_t)addr,
		.length = length,
		.access = access & ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB | IBV_ACCESS_ZERO_BASED) } };
	if (on_demand) /* whatever is at these addresses when they are used, which need not be the segment any more */
		return 0;
	q->register_memory.segment = svpi_segment_find(to_svpi(pd->context), addr, length, &q->register_memory.segment_offset);
	return 0;
}

/* enroll registers a region with the driver. Returns 0 or an errno. */
static int enroll(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access, struct svpi_memory *r)
{
	struct svpi_register_memory_at q;
	bool plain = iova == (uintptr_t)addr;
	int error = describe(pd, addr, length, iova, access, &q);

	if (!error)
		error = svpi_call(to_svpi(pd->context), plain ? SVPI_REGISTER_MEMORY : SVPI_REGISTER_MEMORY_AT, &q,
				  plain ? sizeof(q.register_memory) : sizeof(q), r, sizeof(*r));
	if (!error && r->path == SVPI_PATH_PROCESS_VM && !(access & IBV_ACCESS_ON_DEMAND))
		svpi_gather_pages(addr, length);
	return error;
}

static void take(struct svpi_mr *m, struct ibv_pd *pd, void *addr, size_t length, const struct svpi_memory *r)
{
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = addr;
	m->mr.length = length;
	m->mr.handle = r->handle;
	m->mr.lkey = r->l_key;
	m->mr.rkey = r->r_key;
}

struct ibv_mr *svpi_mr_made(struct svpi_mr *m, struct ibv_pd *pd, void *addr, size_t length, const struct svpi_memory *r)
{
	int error;

	take(m, pd, addr, length, r);
	error = svpi_table_add(&to_context(pd->context)->mrs, m->mr.lkey, m);
	if (!error)
		return &m->mr;
	svpi_destroy(to_svpi(pd->context), SVPI_KIND_MEMORY, m->mr.handle);
	free(m);
	errno = error;
	return NULL;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct svpi_mr *m = calloc(1, sizeof(*m));
	struct svpi_memory r;
	int error;

	if (access & IBV_ACCESS_ZERO_BASED && iova == (uintptr_t)addr)
		iova = 0;
	error = m ? enroll(pd, addr, length, iova, access, &r) : ENOMEM;
	if (error) {
		free(m);
		errno = error;
		return NULL;
	}
	m->iova = iova;
	m->access = access;
	return svpi_mr_made(m, pd, addr, length, &r);
}

#undef ibv_reg_mr
EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

/* reenroll changes a region of the driver, which keeps its keys. If that fails the region stays as it is. Returns 0 or
 * an errno. */
static int reenroll(struct ibv_mr *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct svpi *s = to_svpi(mr->context);
	struct svpi_reregister_memory q = { .memory = mr->handle };
	struct svpi_memory r;
	int error = s->about.minor < 4 ? EOPNOTSUPP : describe(pd, addr, length, iova, access, &q.register_memory_at);

	if (!error)
		error = svpi_call(s, SVPI_REREGISTER_MEMORY, &q, sizeof(q), &r, sizeof(r));
	if (!error && r.path == SVPI_PATH_PROCESS_VM && !(access & IBV_ACCESS_ON_DEMAND))
		svpi_gather_pages(addr, length);
	if (!error)
		take((struct svpi_mr *)mr, pd, addr, length, &r);
	return error;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
	struct svpi_mr *m = (struct svpi_mr *)mr;
	unsigned rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : m->access;
	uint64_t iova = m->iova;
	int error;

	if (!flags || flags & ~known || m->stays || (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length)) ||
	    (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->context))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (!(flags & IBV_REREG_MR_CHANGE_PD))
		pd = mr->pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		iova = rights & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	} else {
		addr = mr->addr;
		length = mr->length;
	}
	error = reenroll(mr, pd, addr, length, iova, rights);
	if (error) {
		errno = error;
		return IBV_REREG_MR_ERR_CMD;
	}
	m->iova = iova;
	m->access = rights;
	return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *m)
{
	int error;

	if (((struct svpi_mr *)m)->imported) /* it ends with the program that has registered it */
		return EINVAL;
	error = svpi_destroy(to_svpi(m->context), SVPI_KIND_MEMORY, m->handle);
	if (!error) {
		svpi_table_remove(&to_context(m->context)->mrs, m->lkey);
		free((struct svpi_mr *)m);
	}
	return error;
}

/* Windows. */

struct ibv_mw *svpi_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *w = calloc(1, sizeof(*w));
	struct svpi_window_args q = { pd->handle, type };
	struct svpi_memory r;
	int error = w ? svpi_call(to_svpi(pd->context), SVPI_ALLOC_WINDOW, &q, sizeof(q), &r, sizeof(r)) : ENOMEM;

	if (error) {
		free(w);
		errno = error;
		return NULL;
	}
	w->context = pd->context;
	w->pd = pd;
	w->handle = r.handle;
	w->rkey = r.r_key;
	w->type = type;
	return w;
}

int svpi_dealloc_mw(struct ibv_mw *w)
{
	int error = svpi_destroy(to_svpi(w->context), SVPI_KIND_WINDOW, w->handle);

	if (!error)
		free(w);
	return error;
}

int svpi_bind_mw(struct ibv_qp *qp, struct ibv_mw *w, struct ibv_mw_bind *b)
{
	struct ibv_send_wr *bad, wr = { .wr_id = b->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = b->send_flags };
	uint32_t next = (w->rkey & ~0xffu) | ((w->rkey + 1) & 0xff);
	int error;

	if (w->type != IBV_MW_TYPE_1 || (b->bind_info.mr && b->bind_info.mr->pd != w->pd && b->bind_info.length))
		return EINVAL;
	wr.bind_mw.mw = w;
	wr.bind_mw.rkey = w->rkey; /* type 1: the adapter derives the new key from it */
	wr.bind_mw.bind_info = b->bind_info;
	error = svpi_post_send(qp, &wr, &bad);
	if (!error)
		w->rkey = next;
	return error;
}
