/*
 * The objects behind event channels and ids.
 */
#ifndef SVPI_CM_ID_H
#define SVPI_CM_ID_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "../ipc/attach.h"
#include "../verbs/object.h"
#include "cma.h"

/* An attachment, and the ids of the connection manager that were created through it. */
struct home {
	struct svpi *svpi;
	struct svpi_table ids;
	int users;
	struct home *next;
};

struct channel {
	struct rdma_event_channel channel;
	struct home *home;
	uint32_t handle;
	pthread_mutex_t lock;
	uint32_t readers;
	bool ended;
	struct id *owner; /* the synchronous id whose own channel this is, or NULL */
};

/* A multicast group that an id has joined. */
struct group {
	struct group *next;
	uint8_t addr[16];
	uint32_t qp; /* handle of the attached QP, 0 if none */
	void *context;
};

struct id {
	struct rdma_cm_id id;
	struct home *home;
	uint32_t handle;
	bool active;	/* this side connects: it reports Established itself */
	bool connected; /* a message has been exchanged with a peer */
	uint32_t got;	/* events given to the program; the table counts here */
	uint32_t done;	/* events that the program has acknowledged */
	pthread_mutex_t lock;
	pthread_cond_t news;

	struct svpi_endpoint itself; /* the address that a loopback address was resolved to; zeros: it was another one */

	uint8_t responder_resources, initiator_depth; /* limits set by the peer's request */
	struct group *groups;

	/* for a listening endpoint: what the QPs of its requests are created with */
	struct ibv_pd *request_pd;
	struct ibv_qp_init_attr *request_attr;
};

/* The driver's options of an id. */
enum { OPTION_TOS = 1, OPTION_REUSE, OPTION_IPV6_ONLY, OPTION_ACK_TIMEOUT, OPTION_QP_TYPE };

/* An event that the program holds. */
struct event {
	struct rdma_cm_event event;
	struct id *counted; /* the id in whose got it is counted */
	uint8_t private_data[224];
};

static inline struct id *to_id(struct rdma_cm_id *i) { return (struct id *)i; }
static inline struct channel *to_channel(struct rdma_event_channel *c) { return (struct channel *)c; }
static inline bool is_sync(const struct id *i) { return ((struct channel *)i->id.channel)->owner != NULL; }
static inline bool is_datagram(const struct id *i) { return i->id.ps == RDMA_PS_UDP; }

/* result returns 0, or sets errno and returns -1, as the functions of this interface do. */
static inline int result(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static inline int svpi_ask(const struct id *i, enum svpi_op op, const void *body, size_t len)
{
	return svpi_call(i->home->svpi, op, body, len, NULL, 0);
}

/* home.c */
struct home *home_get(void);
void home_put(struct home *);
struct home *home_join(struct home *);

/* device.c: each device is opened once and stays open. */
struct ibv_context *device_context(struct svpi *, uint32_t adapter);
struct ibv_pd *device_pd(struct ibv_context *);
struct ibv_xrcd *device_xrcd(struct ibv_context *); /* NULL with errno */

/* address.c */
int to_endpoint(const struct sockaddr *, struct svpi_endpoint *); /* returns 0 or an errno */
void from_endpoint(const struct svpi_endpoint *, struct sockaddr_storage *);
void endpoint_set_addr(struct svpi_endpoint *, bool four, const uint8_t *); /* 4 or 16 bytes */
socklen_t sockaddr_size(const struct sockaddr_storage *);
bool endpoint_same(const struct svpi_endpoint *, const struct svpi_endpoint *);
bool endpoint_is_four(const struct svpi_endpoint *);
bool endpoint_is_any(const struct svpi_endpoint *);
bool endpoint_is_localhost(const struct svpi_endpoint *);
void endpoint_make_any(struct svpi_endpoint *); /* keeps the address family */

/* id.c */
int id_create(struct rdma_event_channel *, void *context, enum rdma_port_space, enum ibv_qp_type, struct rdma_cm_id **);
struct id *id_of_request(struct id *listener, const struct svpi_event *);
int id_place(struct id *, uint32_t adapter); /* sets its device */
int id_learn(struct id *);		     /* asks the driver for its addresses */
void id_path(struct id *);		     /* fills its path record */
void id_fail_qp(struct id *);		     /* moves its QP to the error state */

/* id_acknowledged waits until the program has acknowledged all events of an id that it was given; id_acknowledge
 * counts one. */
static inline void id_acknowledged(struct id *i) { svpi_acknowledged(&i->lock, &i->news, &i->done, &i->got); }
static inline void id_acknowledge(struct id *i) { svpi_acknowledge(&i->lock, &i->news, &i->done, 1); }

/* channel.c: if the id is synchronous, waits for the event that ends the operation. */
int id_complete(struct id *);

/* channel_tidy removes events that do not concern the program, up to the first that does: a program that has seen a
 * channel become readable reads it, and is not prepared to wait. */
void channel_tidy(struct channel *);

/* group.c */
void groups_leave(struct id *);
void groups_forget_qp(struct id *);
struct group *group_find(struct id *, const uint8_t addr[16]);

/* resolve.c: the address handle attributes of a destination. */
void address_attr(struct id *, const uint8_t addr[16], struct ibv_ah_attr *);

#endif
