/*
 * Objects that programs share (ibv_import_device(3)). A context's cmd_fd is a descriptor that can be passed on: a sealed
 * memory file with the adapter's number and the token by which others name this program to the driver. Whoever imports the
 * device from it has an attachment of his own, and handles of his own.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ipc/segment.h"
#include "object.h"

/* Of this library. */
struct ibv_device **ibv_get_device_list(int *);
void ibv_free_device_list(struct ibv_device **);
struct ibv_context *ibv_open_device(struct ibv_device *);
int ibv_close_device(struct ibv_context *);
int ibv_dealloc_pd(struct ibv_pd *);

/* What is in the file. */
struct ticket {
	char magic[8];
	uint32_t version, adapter;
	uint8_t token[16];
};
static const char magic[8] = "SVPIfd";
enum { TICKET_VERSION = 1 };

/* issue makes the file. Returns the descriptor, or -1. */
static int issue(uint32_t adapter, const uint8_t token[16])
{
	struct ticket t = { .version = TICKET_VERSION, .adapter = adapter };
	int fd = memfd_create("softvpi-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	memcpy(t.magic, magic, sizeof(magic));
	memcpy(t.token, token, sizeof(t.token));
	if (write(fd, &t, sizeof(t)) != sizeof(t) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Without a file the context is as good for everything else, and its cmd_fd is one that nobody can import from. */
void svpi_export(struct svpi_context *c)
{
	struct svpi *s = c->svpi;
	struct svpi_exported r;
	int saved = errno;

	c->verbs.context.cmd_fd = s->fd;
	c->ticket = -1;
	if (s->about.minor >= 8 && !svpi_call(s, SVPI_EXPORT, NULL, 0, &r, sizeof(r))) {
		memcpy(c->token, r.token, sizeof(c->token));
		c->ticket = issue(c->adapter, r.token);
	}
	if (c->ticket >= 0)
		c->verbs.context.cmd_fd = c->ticket;
	errno = saved;
}

void svpi_export_end(struct svpi_context *c)
{
	if (c->ticket >= 0)
		close(c->ticket);
}

/* import asks the driver for an object of the program that the context is from. Returns 0 or an errno. */
static int import(struct ibv_context *context, uint32_t kind, uint32_t handle, uint32_t pd, struct svpi_imported *r, int *fd)
{
	struct svpi_context *c = to_context(context);
	struct svpi_import_args q = { .kind = kind, .handle = handle, .pd = pd };

	if (c->svpi->about.minor < 8)
		return EOPNOTSUPP;
	memcpy(q.token, c->token, sizeof(q.token));
	return svpi_call_fd(c->svpi, SVPI_IMPORT, &q, sizeof(q), r, sizeof(*r), fd);
}

/* open_adapter opens the device of an adapter. */
static struct ibv_context *open_adapter(uint32_t adapter)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *c = NULL;

	errno = ENODEV;
	for (int i = 0; list && i < n && !c; i++)
		if (to_device(list[i])->info.index == adapter)
			c = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return c;
}

/* ibv_import_device takes the descriptor over if it succeeds: ibv_close_device closes it. */
EXPORT struct ibv_context *ibv_import_device(int fd)
{
	struct svpi_imported r;
	struct ibv_context *context;
	struct svpi_context *c;
	struct ticket t;

	if (pread(fd, &t, sizeof(t), 0) != sizeof(t) || memcmp(t.magic, magic, sizeof(magic)) || t.version != TICKET_VERSION) {
		errno = EINVAL;
		return NULL;
	}
	context = open_adapter(t.adapter);
	if (!context)
		return NULL;
	c = to_context(context);
	memcpy(c->token, t.token, sizeof(c->token));
	int error = import(context, 0, 0, 0, &r, NULL); /* the program may have ended, or have another driver */

	if (error) {
		ibv_close_device(context);
		errno = error == ENOENT ? EINVAL : error;
		return NULL;
	}
	svpi_export_end(c);
	c->ticket = context->cmd_fd = fd;
	return context;
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct svpi_pd *p = calloc(1, sizeof(*p));
	struct svpi_imported r;
	int error = p ? import(context, SVPI_KIND_PD, handle, 0, &r, NULL) : ENOMEM;

	if (error) {
		free(p);
		errno = error;
		return NULL;
	}
	p->pd.context = context;
	p->pd.handle = r.handle;
	return &p->pd;
}

/* The handle is this program's own, so that destroying it takes nothing from the other. */
EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	ibv_dealloc_pd(pd);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct svpi_mr *m = calloc(1, sizeof(*m));
	struct svpi_imported r;
	int error = m ? import(pd->context, SVPI_KIND_MEMORY, handle, pd->handle, &r, NULL) : ENOMEM;

	if (error) {
		free(m);
		errno = error;
		return NULL;
	}
	m->imported = m->stays = true;
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.handle = handle;
	m->mr.lkey = r.l_key;
	m->mr.rkey = r.r_key;
	return &m->mr;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	free((struct svpi_mr *)mr);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct svpi_dm *d = calloc(1, sizeof(*d));
	struct svpi_imported r;
	int fd = -1, error = d ? import(context, SVPI_KIND_DM, handle, 0, &r, &fd) : ENOMEM;

	if (!error)
		error = svpi_dm_made(d, context, &r, fd);
	if (fd >= 0)
		close(fd);
	if (error) {
		free(d);
		errno = error;
		return NULL;
	}
	return &d->dm;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	svpi_free_dm(dm);
}
