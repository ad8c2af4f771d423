/* Sockets by descriptor, from rsocket to rclose. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rs_datagram.h"

/* The table of sockets. The descriptor's upper bits select a row; rows are allocated when needed. */
enum { ROWS = 4096, COLUMNS = 256 };
static struct rs **rows[ROWS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int put(int fd, struct rs *s)
{
	int error = 0;

	if (fd < 0 || fd >= ROWS * COLUMNS)
		return EMFILE;
	pthread_mutex_lock(&lock);
	if (!rows[fd / COLUMNS])
		rows[fd / COLUMNS] = calloc(COLUMNS, sizeof(**rows));
	if (rows[fd / COLUMNS])
		rows[fd / COLUMNS][fd % COLUMNS] = s;
	else
		error = ENOMEM;
	pthread_mutex_unlock(&lock);
	return error;
}

/* rs_enter finds a socket and keeps it from being closed. */
struct rs *rs_enter(int fd)
{
	struct rs *s = NULL;

	if (fd < 0 || fd >= ROWS * COLUMNS) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	if (rows[fd / COLUMNS])
		s = rows[fd / COLUMNS][fd % COLUMNS];
	if (s)
		__atomic_add_fetch(&s->users, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
	if (!s) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&s->lock);
	return s;
}

void rs_leave(struct rs *s)
{
	__atomic_sub_fetch(&s->users, 1, __ATOMIC_SEQ_CST);
	if (s->ending)
		pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
}

struct rs *rs_new(struct rdma_cm_id *id)
{
	struct rs *s = rs_new_at(id->channel->fd);

	if (s) {
		s->id = id;
		fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK);
	}
	return s;
}

/* rs_new_at makes a socket for a descriptor. */
struct rs *rs_new_at(int fd)
{
	struct rs *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->news, NULL);
	s->fd = fd;
	s->send_size = s->recv_size = 384;
	s->send_bytes = s->recv_bytes = 1 << 17;
	s->inline_size = 64;
	if (put(s->fd, s)) {
		free(s);
		return NULL;
	}
	return s;
}

static void free_memory(struct rs *s)
{
	if (s->send_mr)
		ibv_dereg_mr(s->send_mr);
	if (s->recv_mr)
		ibv_dereg_mr(s->recv_mr);
	if (s->target_mr)
		ibv_dereg_mr(s->target_mr);
	if (s->memory)
		rs_memory_put(s->memory);
	free(s->messages);
}

/* rs_free frees a socket that no call is using. */
void rs_free(struct rs *s)
{
	struct rdma_event_channel *channel = s->id ? s->id->channel : NULL;

	put(s->fd, NULL);
	if (s->datagrams) {
		rs_datagram_close(s);
		free(s);
		return;
	}
	rdma_destroy_qp(s->id);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	rs_unmap_all(s);
	free_memory(s);
	rdma_destroy_id(s->id);
	rdma_destroy_event_channel(channel);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->news);
	free(s);
}

static int datagram_socket(int domain)
{
	struct datagrams *d;
	struct rs *s;
	int fd = rs_datagram_open(domain, &d);

	if (fd < 0)
		return -1;
	s = rs_new_at(fd);
	if (!s) {
		struct rs gone = { .fd = fd, .datagrams = d };

		rs_datagram_close(&gone);
		return result(ENOMEM);
	}
	s->datagrams = d;
	return fd;
}

/* served tells whether there are sockets of a kind. Those with SOCK_CLOEXEC or SOCK_NONBLOCK are none: the programs that
 * ask for them go on to calls that librspreload does not have (accept4), and have to be left to the system's sockets. */
static bool served(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return false;
	return (type == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP)) ||
	       (type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP));
}

int rsocket(int domain, int type, int protocol);
EXPORT int rsocket(int domain, int type, int protocol)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rs *s;

	if (!served(domain, type, protocol))
		return result(ENOTSUP);
	if (type == SOCK_DGRAM)
		return datagram_socket(domain);
	channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		rdma_destroy_event_channel(channel);
		return -1;
	}
	s = rs_new(id);
	if (!s) {
		rdma_destroy_id(id);
		rdma_destroy_event_channel(channel);
		return result(ENOMEM);
	}
	id->route.addr.src_addr.sa_family = (sa_family_t)domain;
	return s->fd;
}

int rshutdown(int fd, int how);
EXPORT int rshutdown(int fd, int how)
{
	struct rs *s = rs_enter(fd);
	int error = 0;

	if (!s)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) {
		error = EINVAL;
	} else if (s->state != RS_CONNECTED) {
		error = ENOTCONN;
	} else {
		bool read = s->readable && how == SHUT_WR, write = s->writable && how == SHUT_RD;

		if (how != SHUT_RD || !write) { /* the peer need not know that this side reads no more */
			error = rs_await(s, rs_sends_done, false);
			if (!error)
				error = rs_post_control(s, read ? RS_SHUTDOWN : RS_DISCONNECT);
			if (!error)
				error = rs_await(s, rs_sends_done, false);
		}
		s->readable = read;
		s->writable = write;
		if (!read && !write)
			s->state = RS_CLOSED;
	}
	rs_leave(s);
	return result(error == ENOTCONN || error == EINVAL ? error : 0);
}

int rclose(int fd);
EXPORT int rclose(int fd)
{
	struct rs *s = rs_enter(fd);
	bool connected;

	if (!s)
		return -1;
	connected = s->state == RS_CONNECTED;
	rs_leave(s);
	if (connected)
		rshutdown(fd, SHUT_RDWR);
	s = rs_enter(fd);
	if (!s)
		return -1;
	put(fd, NULL);
	if (s->id && s->id->qp)
		rdma_disconnect(s->id); /* posted requests are flushed, which wakes those who wait */
	s->state = RS_CLOSED;
	s->ending = true;
	pthread_cond_broadcast(&s->news);
	while (__atomic_load_n(&s->users, __ATOMIC_SEQ_CST) > 1)
		pthread_cond_wait(&s->news, &s->lock);
	pthread_mutex_unlock(&s->lock);
	rs_free(s);
	return 0;
}
