/* Waiting for several sockets and ordinary files at once. */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

#include "rs_datagram.h"

/* rs_ready returns which of the events a socket is ready for, and those that poll always reports. */
short rs_ready(struct rs *s, short events)
{
	short got = 0;

	if (s->datagrams)
		return rs_datagram_ready(s, events);
	if (s->state == RS_CONNECTING || s->state == RS_ACCEPTING)
		rs_cm_events(s);
	rs_poll_queue(s);
	switch (s->state) {
	case RS_LISTENING: {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };

		return poll(&p, 1, 0) > 0 ? (short)(events & POLLIN) : 0;
	}
	case RS_NEW:
	case RS_BOUND:
		return POLLOUT | POLLHUP;
	case RS_CONNECTING:
	case RS_ACCEPTING:
		return 0;
	case RS_FAILED:
		got = POLLERR;
		break;
	case RS_CLOSED:
		got = POLLHUP;
		break;
	case RS_CONNECTED:
		break;
	}
	if (events & POLLIN && (s->head != s->tail || !s->readable))
		got |= POLLIN;
	if (events & POLLOUT && (rs_can_send(s) || s->state != RS_CONNECTED))
		got |= POLLOUT;
	return got;
}

/* look checks all of them without waiting, and returns how many are ready. */
static int look(struct pollfd *fds, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		struct rs *s = fds[i].fd < 0 ? NULL : rs_enter(fds[i].fd);

		fds[i].revents = 0;
		if (s) {
			fds[i].revents = rs_ready(s, fds[i].events);
			rs_leave(s);
		} else if (fds[i].fd >= 0) {
			poll(&fds[i], 1, 0);
		}
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* watch fills in what to sleep on for each; true: something may have arrived meanwhile. */
static bool watch(const struct pollfd *fds, struct pollfd *sleep_on, nfds_t n)
{
	bool again = false;

	for (nfds_t i = 0; i < n; i++) {
		struct rs *s = fds[i].fd < 0 ? NULL : rs_enter(fds[i].fd);

		sleep_on[i] = fds[i];
		if (!s)
			continue;
		sleep_on[i].events = POLLIN;
		if (s->datagrams)
			again |= rs_datagram_sleep(s);
		if (s->channel && s->state != RS_CONNECTING && s->state != RS_ACCEPTING) {
			sleep_on[i].fd = s->channel->fd;
			if (!s->armed) {
				s->armed = true;
				s->cq->context->ops.req_notify_cq(s->cq, 0);
				again = true;
			}
		}
		rs_leave(s);
	}
	return again;
}

/* woken ends what watch began, and handles the events that ended the sleep. */
static void woken(const struct pollfd *fds, const struct pollfd *slept_on, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		struct rs *s = fds[i].fd < 0 ? NULL : rs_enter(fds[i].fd);

		if (!s)
			continue;
		if (s->datagrams) {
			rs_datagram_wake(s);
		} else if (slept_on[i].revents) {
			rs_take_events(s);
			if (s->state != RS_LISTENING)
				rs_cm_events(s);
		}
		rs_leave(s);
	}
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int wait_all(struct pollfd *fds, struct pollfd *sleep_on, nfds_t n, int timeout)
{
	int64_t end = timeout > 0 ? now_us() + timeout * INT64_C(1000) : 0;

	for (int looks = 0;; looks++) {
		int ready = look(fds, n), rest = timeout;

		if (ready || timeout == 0)
			return ready;
		if (timeout > 0) {
			int64_t us = end - now_us();

			if (us <= 0)
				return 0;
			rest = (int)((us + 999) / 1000);
		}
		if (looks < SVPI_SOCKET_LOOKS) {
			sched_yield();
			continue;
		}
		if (watch(fds, sleep_on, n))
			rest = 0;
		int error = poll(sleep_on, n, rest) < 0 ? errno : 0;

		woken(fds, sleep_on, n);
		if (error)
			return result(error);
	}
}

int rpoll(struct pollfd *fds, nfds_t n, int timeout);
EXPORT int rpoll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct pollfd few[16], *sleep_on = n <= 16 ? few : calloc(n, sizeof(*sleep_on));
	int ready;

	if (!sleep_on)
		return result(ENOMEM);
	ready = wait_all(fds, sleep_on, n, timeout);
	if (sleep_on != few)
		free(sleep_on);
	return ready;
}

static nfds_t from_sets(int n, const fd_set *r, const fd_set *w, const fd_set *x, struct pollfd *fds)
{
	nfds_t k = 0;

	for (int fd = 0; fd < n; fd++) {
		short events = 0;

		if (r && FD_ISSET(fd, r))
			events |= POLLIN;
		if (w && FD_ISSET(fd, w))
			events |= POLLOUT;
		if (x && FD_ISSET(fd, x))
			events |= POLLPRI;
		if (events)
			fds[k++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return k;
}

static int mark(const struct pollfd *p, short events, fd_set *set)
{
	if (!set || !FD_ISSET(p->fd, set))
		return 0;
	if (p->revents & events)
		return 1;
	FD_CLR(p->fd, set);
	return 0;
}

int rselect(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout);
EXPORT int rselect(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout)
{
	struct pollfd *fds;
	int ms = timeout ? (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000) : -1, ready;
	nfds_t k;

	if (n < 0 || n > FD_SETSIZE)
		return result(EINVAL);
	fds = calloc((size_t)n + 1, sizeof(*fds));
	if (!fds)
		return result(ENOMEM);
	k = from_sets(n, r, w, x, fds);
	ready = rpoll(fds, k, ms);
	if (ready >= 0) {
		ready = 0;
		for (nfds_t i = 0; i < k; i++)
			ready += mark(&fds[i], POLLIN | POLLHUP | POLLERR, r) + mark(&fds[i], POLLOUT | POLLERR, w) +
				 mark(&fds[i], POLLPRI, x);
	}
	free(fds);
	return ready;
}
