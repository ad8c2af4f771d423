/* Datagram sockets, as the files of rsockets use them; see rs_datagram.c. The socket's lock is held in all functions but the first. */
#ifndef SVPI_RS_DATAGRAM_H
#define SVPI_RS_DATAGRAM_H

#include "rsocket.h"

int rs_datagram_open(int domain, struct datagrams **); /* returns a descriptor to poll, or -1 */
void rs_datagram_close(struct rs *);
void rs_datagram_progress(struct rs *);
short rs_datagram_ready(struct rs *, short events);
bool rs_datagram_sleep(struct rs *);
void rs_datagram_wake(struct rs *);
ssize_t rs_datagram_send(struct rs *, const void *, size_t, int flags, const struct sockaddr *to);
ssize_t rs_datagram_receive(struct rs *, void *, size_t, int flags, struct sockaddr *from, socklen_t *);
int rs_datagram_bind(struct rs *, const struct sockaddr *, socklen_t);
int rs_datagram_connect(struct rs *, const struct sockaddr *);
int rs_datagram_name(struct rs *, bool peer, struct sockaddr_storage *);

#endif
