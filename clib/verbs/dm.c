/* Device memory: memory of the driver, which the program has mapped. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "../ipc/segment.h"
#include "object.h"

enum { UNIT = 4, MAX_LOG_ALIGN = 12 }; /* of copies, and of what is allocated: pages */

static bool has_dm(const struct svpi *s) { return s->about.minor >= 8; }

uint64_t svpi_dm_size(struct ibv_context *context)
{
	struct svpi_adapter_args q = { to_context(context)->adapter };
	struct svpi_memory_info r;
	struct svpi *s = to_svpi(context);

	return has_dm(s) && !svpi_call(s, SVPI_MEMORY_INFO, &q, sizeof(q), &r, sizeof(r)) ? r.size : 0;
}

/* within tells whether a copy lies in the device memory. As on other devices it begins and ends at multiples of 4. */
static bool within(const struct svpi_dm *d, uint64_t offset, size_t length)
{
	return offset % UNIT == 0 && length % UNIT == 0 && offset <= d->length && length <= d->length - offset;
}

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	struct svpi_dm *d = (struct svpi_dm *)dm;

	if (!within(d, offset, length))
		return EINVAL;
	memcpy(d->base + offset, from, length);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct svpi_dm *d = (struct svpi_dm *)dm;

	if (!within(d, offset, length))
		return EINVAL;
	memcpy(to, d->base + offset, length);
	return 0;
}

/* interface makes it what programs see. */
static void interface(struct svpi_dm *d, struct ibv_context *context)
{
	d->dm.context = context;
	d->dm.memcpy_to_dm = copy_to;
	d->dm.memcpy_from_dm = copy_from;
}

/* allocate asks the driver for device memory and maps it. Returns 0 or an errno. */
static int allocate(struct svpi_dm *d, uint32_t adapter, size_t length)
{
	struct svpi_alloc_dm q = { .adapter = adapter, .size = length };
	struct svpi_device_memory r;
	int fd = -1, error = svpi_call_fd(d->svpi, SVPI_ALLOC_DM, &q, sizeof(q), &r, sizeof(r), &fd);

	if (error)
		return error;
	d->dm.handle = r.handle;
	d->segment = r.segment;
	d->length = length;
	if (fd < 0 || r.size < length)
		error = EPROTO;
	else if (!(d->base = svpi_segment_adopt(d->svpi, r.segment, fd, r.size)))
		error = ENOMEM;
	if (fd >= 0)
		close(fd);
	if (error)
		svpi_destroy(d->svpi, SVPI_KIND_DM, r.handle);
	return error;
}

/* It belongs to the process that allocates it: a forked child has an attachment of its own for it. */
struct ibv_dm *svpi_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *a)
{
	struct svpi_dm *d = calloc(1, sizeof(*d));
	int error = !d ? ENOMEM : a->comp_mask || !a->length || a->log_align_req > MAX_LOG_ALIGN ? EINVAL : 0;

	if (!error && !(d->svpi = svpi_get()))
		error = errno;
	if (!error) {
		error = has_dm(d->svpi) ? allocate(d, to_context(context)->adapter, a->length) : EOPNOTSUPP;
		if (error)
			svpi_put(d->svpi);
	}
	if (error) {
		free(d);
		errno = error;
		return NULL;
	}
	interface(d, context);
	return &d->dm;
}

int svpi_dm_made(struct svpi_dm *d, struct ibv_context *context, const struct svpi_imported *r, int fd)
{
	d->svpi = svpi_get();
	if (!d->svpi)
		return errno;
	d->dm.handle = r->handle;
	d->segment = r->segment;
	d->length = r->size;
	if (fd < 0 || d->svpi != to_svpi(context) || !(d->base = svpi_segment_adopt(d->svpi, r->segment, fd, r->size))) {
		svpi_destroy(to_svpi(context), SVPI_KIND_DM, r->handle);
		svpi_put(d->svpi);
		return fd < 0 ? EPROTO : ENOMEM;
	}
	interface(d, context);
	return 0;
}

int svpi_free_dm(struct ibv_dm *dm)
{
	struct svpi_dm *d = (struct svpi_dm *)dm;
	int error = svpi_destroy(d->svpi, SVPI_KIND_DM, dm->handle);

	if (error)
		return error;
	svpi_segment_leave(d->base);
	svpi_put(d->svpi);
	free(d);
	return 0;
}

struct ibv_mr *svpi_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;
	struct svpi_dm *d = (struct svpi_dm *)dm;
	struct svpi_register_memory_at q = { .iova = 0 };
	struct svpi_mr *m = NULL;
	struct svpi_memory r;
	int error = 0;

	if (access & ~known || !(access & IBV_ACCESS_ZERO_BASED) || d->svpi != to_svpi(pd->context) || offset > d->length ||
	    length > d->length - offset)
		error = EINVAL;
	else if (!(m = calloc(1, sizeof(*m))))
		error = ENOMEM;
	if (!error) {
		q.register_memory = (struct svpi_register_memory){ .pd = pd->handle, .base = (uintptr_t)d->base + offset, .length = length,
			.access = access & ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_ZERO_BASED), .segment = d->segment,
			.segment_offset = offset };
		error = svpi_call(d->svpi, SVPI_REGISTER_MEMORY_AT, &q, sizeof(q), &r, sizeof(r));
	}
	if (error) {
		free(m);
		errno = error;
		return NULL;
	}
	m->stays = true;
	m->access = access;
	return svpi_mr_made(m, pd, NULL, length, &r);
}
