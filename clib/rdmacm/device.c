/* Devices: each is opened when it is first needed and stays open, so that all its ids share a context. */
#include <fcntl.h>
#include <stdlib.h>

#include "id.h"

struct device {
	struct device *next;
	struct ibv_context *context;
	struct ibv_pd *pd; /* the default PD */
	struct ibv_xrcd *xrcd; /* the default XRC domain, which no other program shares */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;

/* find looks among the open devices. A forked child with an attachment of its own has contexts of its own. */
static struct device *find(const struct svpi *s, uint32_t adapter)
{
	struct device *d = devices;

	while (d && (to_context(d->context)->svpi != s || to_context(d->context)->adapter != adapter))
		d = d->next;
	return d;
}

static struct device *open_device(struct svpi *s, struct ibv_device *device)
{
	struct device *d = find(s, (uint32_t)ibv_get_device_index(device));

	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->context = ibv_open_device(device);
	if (!d->context) {
		free(d);
		return NULL;
	}
	d->next = devices;
	devices = d;
	return d;
}

/* open_one opens an adapter. The device list is that of the present attachment, which need not be the id's. */
static struct ibv_context *open_one(struct svpi *s, uint32_t adapter)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct device *d = NULL;

	for (int i = 0; list && list[i]; i++)
		if ((uint32_t)ibv_get_device_index(list[i]) == adapter)
			d = open_device(s, list[i]);
	ibv_free_device_list(list);
	return d && to_context(d->context)->svpi == s ? d->context : NULL;
}

struct ibv_context *device_context(struct svpi *s, uint32_t adapter)
{
	struct ibv_context *c;
	struct device *d;

	pthread_mutex_lock(&lock);
	d = find(s, adapter);
	c = d ? d->context : open_one(s, adapter);
	pthread_mutex_unlock(&lock);
	return c;
}

struct ibv_pd *device_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = NULL;

	pthread_mutex_lock(&lock);
	for (struct device *d = devices; d; d = d->next) {
		if (d->context != context)
			continue;
		if (!d->pd)
			d->pd = ibv_alloc_pd(context);
		pd = d->pd;
	}
	pthread_mutex_unlock(&lock);
	return pd;
}

struct ibv_xrcd *device_xrcd(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr a = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = NULL;

	pthread_mutex_lock(&lock);
	for (struct device *d = devices; d; d = d->next) {
		if (d->context != context)
			continue;
		if (!d->xrcd)
			d->xrcd = to_context(context)->verbs.open_xrcd(context, &a);
		xrcd = d->xrcd;
	}
	pthread_mutex_unlock(&lock);
	return xrcd;
}

EXPORT struct ibv_context **rdma_get_devices(int *num)
{
	struct home *h = home_get();
	struct ibv_device **list;
	struct ibv_context **out;
	int n = 0, found = 0;

	if (num)
		*num = 0;
	if (!h)
		return NULL;
	list = ibv_get_device_list(&n);
	out = calloc((size_t)n + 1, sizeof(*out));
	pthread_mutex_lock(&lock);
	for (int i = 0; out && list && list[i]; i++) {
		struct device *d = open_device(h->svpi, list[i]);

		if (d)
			out[found++] = d->context;
	}
	pthread_mutex_unlock(&lock);
	ibv_free_device_list(list);
	home_put(h);
	if (num)
		*num = found;
	if (out && found == 0) {
		free(out);
		out = NULL;
		errno = ENODEV;
	}
	return out;
}

EXPORT void rdma_free_devices(struct ibv_context **list) { free(list); }
