/*
 * What a datagram socket consists of, for the files that implement it: rs_datagram.c is the socket, rs_datagram_qp.c its
 * queue pairs, and rs_datagram_peer.c the sockets with which it exchanges datagrams. The socket's lock is held in all
 * functions.
 */
#ifndef SVPI_RS_DATAGRAM_STATE_H
#define SVPI_RS_DATAGRAM_STATE_H

#include "rsocket.h"

/* The UD queue pair of a local address. */
struct datagram_qp {
	struct datagram_qp *next;
	struct svpi_endpoint local;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	bool armed; /* the next completion is told to the channel */
	struct ibv_mr *mr;
	uint8_t *memory; /* slots to receive into, followed by slots to send from */
	uint32_t free, at; /* of the slots to send from */
};

/* Another socket. Until it has told the number of its QP, ah is NULL. */
struct datagram_peer {
	struct datagram_peer *next;
	struct svpi_endpoint addr;
	struct datagram_qp *by;
	struct ibv_ah *ah;
	uint32_t qpn;
};

struct datagram {
	struct datagram *next;
	struct svpi_endpoint from;
	size_t len;
	uint8_t data[];
};

struct datagrams {
	int udp, domain;
	struct datagram_qp *qps;
	struct datagram_peer *peers;
	struct datagram *first, **last; /* those that wait to be received */
	uint32_t waiting, sleeping; /* datagrams; threads that sleep, or are about to */
	bool connected;
	struct svpi_endpoint to;
};

/* rs_datagram.c */
void datagram_keep(struct datagrams *, const struct svpi_endpoint *from, const void *, size_t); /* until it is received */

/* rs_datagram_qp.c */
int datagram_qp_at(struct rs *, const struct svpi_endpoint *local, struct datagram_qp **); /* finds or creates it */
void datagram_qp_end(struct datagram_qp *);
void datagram_qp_poll(struct rs *, struct datagram_qp *); /* handles its completions */
bool datagram_qp_arm(struct datagram_qp *); /* false: it was armed already, or cannot be */
int datagram_qp_send(struct rs *, struct datagram_peer *, const struct iovec *);

/* rs_datagram_peer.c */
/* datagram_peer_at finds or creates a peer. Without a local address, the peer's datagrams are sent from the address to
 * which the socket is bound, or from the adapter's that reaches the peer. */
int datagram_peer_at(struct rs *, const struct svpi_endpoint *, const struct svpi_endpoint *local, struct datagram_peer **);
void datagram_peer_end(struct datagram_peer *);
int datagram_udp_send(struct rs *, const struct datagram_peer *, enum rs_op, const struct iovec *);
bool datagram_udp_receive(struct rs *); /* handles one message; false: there is none */

#endif
