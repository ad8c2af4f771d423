/* Protection domains, and parent and thread domains. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "object.h"

/* ALIGNMENT: that of what allocators are asked for, so that objects of two domains share no cache line. */
enum { ALIGNMENT = 64 };

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct svpi_pd *p = calloc(1, sizeof(*p));
	struct svpi_adapter_args q = { to_context(context)->adapter };
	int error = p ? svpi_call(to_svpi(context), SVPI_ALLOC_PD, &q, sizeof(q), &p->pd.handle, 4) : ENOMEM;

	if (error) {
		free(p);
		errno = error;
		return NULL;
	}
	p->pd.context = context;
	return &p->pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct svpi_pd *p = (struct svpi_pd *)pd;
	int error = 0;

	if (atomic_load(&p->users))
		return EBUSY;
	if (p->parent)
		atomic_fetch_sub(&p->parent->users, 1);
	else
		error = svpi_destroy(to_svpi(pd->context), SVPI_KIND_PD, pd->handle);
	if (!error)
		free(p);
	return error;
}

/* A parent domain is its domain under another name, with allocators for the state of its objects. Rings are not among it: they
 * lie in memory of the driver. Locks are cheap enough to be taken even if no other thread wants them. */
struct ibv_pd *svpi_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *a)
{
	bool allocators = a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct svpi_pd *p;

	if (!a->pd || (allocators && (!a->alloc || !a->free)) ||
	    a->comp_mask & ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EINVAL;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pd.context = context;
	p->pd.handle = a->pd->handle;
	p->parent = (struct svpi_pd *)a->pd;
	if (allocators) {
		p->alloc = a->alloc;
		p->free = a->free;
	}
	if (a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		p->pd_context = a->pd_context;
	atomic_fetch_add(&p->parent->users, 1);
	return &p->pd;
}

/* placed returns memory from the domain's allocator, or NULL with errno; or IBV_ALLOCATOR_USE_DEFAULT. */
static void *placed(struct svpi_pd *d, size_t size, uint64_t type)
{
	void *p = d->alloc ? d->alloc(&d->pd, d->pd_context, size, ALIGNMENT, type) : IBV_ALLOCATOR_USE_DEFAULT;

	if (p && p != IBV_ALLOCATOR_USE_DEFAULT && (uintptr_t)p % ALIGNMENT) {
		d->free(&d->pd, d->pd_context, p, type);
		errno = EINVAL;
		return NULL;
	}
	if (!p)
		errno = ENOMEM;
	return p;
}

void *svpi_home_new(struct svpi_home *h, struct ibv_pd *pd, size_t size, enum svpi_resource type)
{
	size_t room = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct svpi_pd *d = (struct svpi_pd *)pd;
	void *p = IBV_ALLOCATOR_USE_DEFAULT;

	*h = (struct svpi_home){ .type = SVPI_RESOURCES | type, .domain = d && d->parent ? d : NULL };
	if (h->domain)
		p = placed(h->domain, room, h->type);
	if (!p)
		return NULL;
	h->placed = p != IBV_ALLOCATOR_USE_DEFAULT;
	if (h->placed)
		memset(p, 0, room);
	else
		p = calloc(1, size);
	if (p && h->domain)
		atomic_fetch_add(&h->domain->users, 1);
	return p;
}

void svpi_home_free(struct svpi_home h, void *p)
{
	if (!p)
		return;
	if (h.placed)
		h.domain->free(&h.domain->pd, h.domain->pd_context, p, h.type);
	else
		free(p);
	if (h.domain)
		atomic_fetch_sub(&h.domain->users, 1);
}

struct ibv_td *svpi_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *a)
{
	struct ibv_td *t = a->comp_mask ? NULL : calloc(1, sizeof(*t));

	if (a->comp_mask)
		errno = EINVAL;
	if (t)
		t->context = context;
	return t;
}

int svpi_dealloc_td(struct ibv_td *t)
{
	free(t);
	return 0;
}
