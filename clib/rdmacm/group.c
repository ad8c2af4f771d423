/* Multicast groups. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

enum { SEND_ONLY = 1 };

struct group *group_find(struct id *i, const uint8_t addr[16])
{
	struct group *g;

	pthread_mutex_lock(&i->lock);
	for (g = i->groups; g && memcmp(g->addr, addr, 16); g = g->next)
		;
	pthread_mutex_unlock(&i->lock);
	return g;
}

static struct group *unlink_group(struct id *i, const uint8_t addr[16])
{
	struct group **p, *g;

	pthread_mutex_lock(&i->lock);
	for (p = &i->groups; *p && memcmp((*p)->addr, addr, 16); p = &(*p)->next)
		;
	g = *p;
	if (g)
		*p = g->next;
	pthread_mutex_unlock(&i->lock);
	return g;
}

static int join(struct id *i, const struct svpi_endpoint *to, uint32_t flags, void *context)
{
	struct svpi_cm_join q = { .id = i->handle, .qp = i->id.qp ? i->id.qp->handle : 0, .flags = flags };
	struct group *g;
	int error;

	if (group_find(i, to->addr))
		return EADDRINUSE;
	g = calloc(1, sizeof(*g));
	if (!g)
		return ENOMEM;
	memcpy(q.group, to->addr, 16);
	memcpy(g->addr, to->addr, 16);
	g->qp = flags & SEND_ONLY ? 0 : q.qp;
	g->context = context;
	pthread_mutex_lock(&i->lock); /* the event may arrive before the answer */
	g->next = i->groups;
	i->groups = g;
	pthread_mutex_unlock(&i->lock);
	error = svpi_ask(i, SVPI_CM_JOIN, &q, sizeof(q));
	if (error)
		free(unlink_group(i, to->addr));
	return error ? error : id_complete(i);
}

EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *a, void *context)
{
	struct svpi_endpoint to;
	int error;

	if (a->comp_mask & ~(uint32_t)(RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS))
		return result(EOPNOTSUPP);
	if (!(a->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) || !(a->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) || !a->addr ||
	    a->join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER || !id->verbs)
		return result(EINVAL);
	error = to_endpoint(a->addr, &to);
	if (!error)
		error = join(to_id(id), &to, a->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER ? SEND_ONLY : 0, context);
	return result(error);
}

EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex a = { RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					     RDMA_MC_JOIN_FLAG_FULLMEMBER, addr };

	return rdma_join_multicast_ex(id, &a, context);
}

static int leave(struct id *i, struct group *g)
{
	struct svpi_cm_leave q = { .id = i->handle, .qp = g->qp };
	int error;

	memcpy(q.group, g->addr, 16);
	error = svpi_ask(i, SVPI_CM_LEAVE, &q, sizeof(q));
	free(g);
	return error;
}

EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct svpi_endpoint to;
	struct group *g;
	int error = to_endpoint(addr, &to);

	if (error)
		return result(error);
	g = unlink_group(to_id(id), to.addr);
	return result(g ? leave(to_id(id), g) : EADDRNOTAVAIL);
}

void groups_leave(struct id *i)
{
	while (i->groups)
		leave(i, unlink_group(i, i->groups->addr));
}

/* A QP that is destroyed leaves its groups. */
void groups_forget_qp(struct id *i)
{
	pthread_mutex_lock(&i->lock);
	for (struct group *g = i->groups; g; g = g->next)
		g->qp = 0;
	pthread_mutex_unlock(&i->lock);
}
