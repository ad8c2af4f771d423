/* The attachment of a process, and what becomes of it when the process forks. */
#define _GNU_SOURCE
#include "attach.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copier.h"
#include "stream.h"
#include "ticks.h"

static void release(struct svpi *s)
{
	svpi_neighbours_end(s);
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake >= 0)
		close(s->wake);
	for (uint32_t i = 0; i < s->narenas; i++)
		if (s->arenas[i])
			munmap(s->arenas[i], s->arena_size[i]);
	while (s->nfds > 0)
		close(s->fds[--s->nfds]);
	while (s->events) {
		struct svpi_queued *q = s->events;

		s->events = q->next;
		free(q);
	}
	if (s->copier)
		munmap(s->copier, s->about.copier_bytes);
	free(s->fds);
	free(s->frame);
	svpi_turn_free(s->turn);
	munmap(s, sizeof(*s));
}

static void locks(struct svpi *s)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->move_lock, NULL);
	pthread_cond_init(&s->news, NULL);
	pthread_cond_init(&s->event_news, NULL);
}

static struct svpi *attach(void)
{
	struct svpi *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (s == MAP_FAILED)
		return NULL;
	s->wake = s->fd = -1;
	s->turn = svpi_turn_make();
	if (!s->turn) {
		error = errno;
		release(s);
		errno = error;
		return NULL;
	}
	s->pid = getpid();
	s->events_end = &s->events;
	locks(s);
	s->fd = svpi_dial();
	if (s->fd < 0) {
		error = svpi_fail(errno, "no driver answers (start it with softvpi up)");
		release(s);
		errno = error;
		return NULL;
	}
	svpi_stream_set_limits(s->fd);
	svpi_counted(); /* reads a file, which the program may not be able to do later */
	error = svpi_say_hello(s);
	if (!error && s->copier)
		error = svpi_copier_start(s);
	if (error) {
		release(s);
		errno = error;
		return NULL;
	}
	return s;
}

/* The attachment of this process, and all that are still in use. A child of fork makes its own as soon as it asks for
 * one. */
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static struct svpi *current, *all;

/* No other thread holds a lock while the process forks: the child has only the forking thread, which owns them all.
 * From now on requests take turns with the child's; those under way end first. */
static void before_fork(void)
{
	pthread_mutex_lock(&current_lock);
	for (struct svpi *s = all; s; s = s->next) {
		pthread_mutex_lock(&s->lock);
		while (!s->shared && (s->calls || s->reading))
			pthread_cond_wait(&s->news, &s->lock);
		s->shared = true;
	}
}

static void in_parent(void)
{
	for (struct svpi *s = all; s; s = s->next)
		pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&current_lock);
}

static void in_child(void)
{
	pthread_mutex_init(&current_lock, NULL);
	current = NULL;
	for (struct svpi *s = all; s; s = s->next) {
		locks(s);
		s->reading = false;
		while (s->nfds > 0) /* of a frame that the parent reads */
			close(s->fds[--s->nfds]);
		s->calls = NULL; /* they belong to threads that do not exist in the child */
		s->moved = true;
	}
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

int svpi_move(struct svpi *s)
{
	struct svpi_moved q;
	int error = 0;

	pthread_mutex_lock(&s->move_lock);
	if (s->moved) {
		error = svpi_show(s, &q.probe_addr, q.nonce);
		if (!error)
			error = svpi_call(s, SVPI_MOVED, &q, sizeof(q), NULL, 0);
		if (!error && s->copier)
			error = svpi_copier_start(s);
		if (!error) {
			s->pid = getpid();
			s->moves++;
			s->moved = false;
		}
	}
	pthread_mutex_unlock(&s->move_lock);
	return error;
}

struct svpi *svpi_get(void)
{
	struct svpi *s;

	pthread_mutex_lock(&current_lock);
	if (current && current->broken)
		current = NULL; /* those who still use it keep it */
	if (!current) {
		current = attach();
		if (current) {
			current->next = all;
			all = current;
		}
	}
	s = current;
	if (s)
		s->users++;
	pthread_mutex_unlock(&current_lock);
	return s;
}

void svpi_put(struct svpi *s)
{
	int users;

	pthread_mutex_lock(&current_lock);
	users = --s->users;
	if (users == 0) {
		struct svpi **p = &all;

		if (current == s)
			current = NULL;
		while (*p != s)
			p = &(*p)->next;
		*p = s->next;
	}
	pthread_mutex_unlock(&current_lock);
	if (users > 0)
		return;
	if (!s->moved)
		svpi_frame_send(s, SVPI_GOODBYE, 0, NULL, 0);
	if (s->copier && !s->moved)
		svpi_copier_stop(s);
	release(s);
}
