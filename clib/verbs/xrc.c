/* Extended reliable connections: domains, their shared receive queues, and target queue pairs that programs share. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "object.h"

enum { XRCD_CREATE = 1, XRCD_EXCLUSIVE = 2, XRCD_FILE = 4 };
enum { XRCD_FD = 1, XRCD_OFLAGS = 2 }; /* bits of ibv_xrcd_init_attr.comp_mask */
enum { OPEN_NUM = 1, OPEN_XRCD = 2, OPEN_CONTEXT = 4, OPEN_TYPE = 8 }; /* of ibv_qp_open_attr.comp_mask */

bool svpi_has_xrc(const struct svpi *s) { return s->about.minor >= SVPI_XRC_MINOR; }

/* name says which domain is meant: that of a file, or with -1 a new one. Returns 0 or an errno. */
static int name(const struct ibv_xrcd_init_attr *a, struct svpi_open_xrcd *q)
{
	struct stat st;

	if (a->comp_mask != (XRCD_FD | XRCD_OFLAGS) || a->oflags & ~(O_CREAT | O_EXCL))
		return EINVAL;
	if (a->oflags & O_CREAT)
		q->flags |= XRCD_CREATE;
	if (a->oflags & O_EXCL)
		q->flags |= XRCD_EXCLUSIVE;
	if (a->fd == -1)
		return a->oflags & O_CREAT ? 0 : EAGAIN; /* as in the kernel */
	if (fstat(a->fd, &st))
		return errno;
	q->flags |= XRCD_FILE;
	q->device = st.st_dev;
	q->inode = st.st_ino;
	return 0;
}

struct ibv_xrcd *svpi_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *a)
{
	struct svpi_open_xrcd q = { .adapter = to_context(context)->adapter };
	struct svpi_xrcd *x = calloc(1, sizeof(*x));
	int error = !x ? ENOMEM : !svpi_has_xrc(to_svpi(context)) ? EOPNOTSUPP : name(a, &q);

	if (!error) {
		error = svpi_call(to_svpi(context), SVPI_OPEN_XRCD, &q, sizeof(q), &x->handle, 4);
		if (error == ENOENT)
			error = EAGAIN; /* the kernel's error for a file without a domain */
		else if (error == EADDRINUSE)
			error = EINVAL; /* and for one that has a domain, with O_EXCL */
	}
	if (error) {
		free(x);
		errno = error;
		return NULL;
	}
	x->xrcd.context = context;
	return &x->xrcd;
}

int svpi_close_xrcd(struct ibv_xrcd *xrcd)
{
	int error = svpi_destroy(to_svpi(xrcd->context), SVPI_KIND_XRCD, to_xrcd(xrcd)->handle);

	if (!error)
		free(to_xrcd(xrcd));
	return error;
}

/* enter makes a target queue pair, which has no rings, known to its context. */
static struct svpi_qp *enter(struct ibv_context *context, struct svpi_qp *q, const struct svpi_queue_pair *r, void *qp_context)
{
	int error = svpi_table_add(&to_context(context)->qps, r->handle, q);

	if (error) {
		svpi_destroy(to_svpi(context), SVPI_KIND_QP, r->handle);
		free(q);
		errno = error;
		return NULL;
	}
	q->svpi = to_svpi(context);
	q->qp.context = context;
	q->qp.qp_context = qp_context;
	q->qp.handle = r->handle;
	q->qp.qp_num = r->number;
	q->qp.qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&q->qp.mutex, NULL);
	pthread_cond_init(&q->qp.cond, NULL);
	return q;
}

struct svpi_qp *svpi_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	struct svpi_create_qp c = { .type = SVPI_XRC_TARGET, .xrcd = a->xrcd ? to_xrcd(a->xrcd)->handle : 0 };
	struct svpi_qp *q = calloc(1, sizeof(*q));
	struct svpi_queue_pair r;
	int error = !q ? ENOMEM : !a->xrcd ? EINVAL : 0;

	c.context = (uintptr_t)q;
	if (!error)
		error = svpi_call(to_svpi(context), SVPI_CREATE_QP, &c, sizeof(c), &r, sizeof(r));
	if (error) {
		free(q);
		errno = error;
		return NULL;
	}
	a->cap = (struct ibv_qp_cap){ 0 };
	return enter(context, q, &r, a->qp_context);
}

struct ibv_qp *svpi_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *a)
{
	const uint32_t need = OPEN_NUM | OPEN_XRCD | OPEN_TYPE;
	struct svpi_open_qp c = { .number = a->qp_num };
	struct svpi_queue_pair r;
	struct svpi_qp *q;
	int error = 0;

	if ((a->comp_mask & need) != need || a->comp_mask & ~(need | OPEN_CONTEXT) || !a->xrcd || a->qp_type != IBV_QPT_XRC_RECV) {
		errno = EINVAL;
		return NULL;
	}
	q = calloc(1, sizeof(*q));
	c.xrcd = to_xrcd(a->xrcd)->handle;
	c.context = (uintptr_t)q;
	error = q ? svpi_call(to_svpi(context), SVPI_OPEN_QP, &c, sizeof(c), &r, sizeof(r)) : ENOMEM;
	if (error) {
		free(q);
		errno = error == ENOENT ? EINVAL : error; /* as the kernel says that there is no such queue pair */
		return NULL;
	}
	q = enter(context, q, &r, a->comp_mask & OPEN_CONTEXT ? a->qp_context : NULL);
	return q ? &q->qp : NULL;
}
