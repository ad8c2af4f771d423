/* Attachments. An id keeps the attachment through which it was created, even after the driver has been restarted. */
#include <stdlib.h>

#include "id.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct home *homes;

struct home *home_get(void)
{
	struct svpi *s = svpi_get();
	struct home *h;

	if (!s) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			errno = ENODEV;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	for (h = homes; h && h->svpi != s; h = h->next)
		;
	if (h) {
		svpi_put(s);
	} else if ((h = calloc(1, sizeof(*h)))) {
		h->svpi = s;
		pthread_mutex_init(&h->ids.lock, NULL);
		h->next = homes;
		homes = h;
	}
	if (h)
		h->users++;
	pthread_mutex_unlock(&lock);
	if (!h) {
		svpi_put(s);
		errno = ENOMEM;
	}
	return h;
}

struct home *home_join(struct home *h)
{
	pthread_mutex_lock(&lock);
	h->users++;
	pthread_mutex_unlock(&lock);
	return h;
}

void home_put(struct home *h)
{
	struct home **p;
	bool last;

	pthread_mutex_lock(&lock);
	last = --h->users == 0;
	if (last) {
		for (p = &homes; *p != h; p = &(*p)->next)
			;
		*p = h->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	svpi_put(h->svpi);
	free(h->ids.rows);
	free(h);
}
