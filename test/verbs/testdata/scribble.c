/*
 * A hostile program: it attaches, makes queues, and writes noise over all of its rings and doorbells until it is told to
 * end or the driver has had enough of it. Its arguments are a device and a seed.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/object.h"

struct ibv_device **ibv_get_device_list(int *);
const char *ibv_get_device_name(struct ibv_device *);
struct ibv_context *ibv_open_device(struct ibv_device *);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *, void *, size_t, int);
struct ibv_cq *ibv_create_cq(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
struct ibv_srq *ibv_create_srq(struct ibv_pd *, struct ibv_srq_init_attr *);
struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *);

static uint64_t state;

static uint64_t noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* scribble changes some words of an arena: noise, or counters that are a little off. */
static void scribble(volatile uint32_t *words, size_t n)
{
	for (int i = 0; i < 64; i++) {
		size_t at = noise() % n;

		switch (noise() % 4) {
		case 0:
			words[at] = (uint32_t)noise();
			break;
		case 1:
			words[at] += (uint32_t)(noise() % 5);
			break;
		case 2:
			words[noise() % 64] += (uint32_t)(noise() % 3); /* the doorbells' header */
			break;
		default:
			words[at] = UINT32_MAX;
		}
	}
}

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_context *c = argc == 3 ? open_named(argv[1]) : NULL;
	struct ibv_qp_init_attr a = { .cap = { 16, 16, 4, 4, 64 } };
	static char buffer[65536];
	struct svpi *s;

	if (!c)
		return 2;
	state = strtoull(argv[2], NULL, 10) | 1;
	s = to_svpi(c);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_srq_init_attr sa = { .attr = { 16, 2, 0 } };

	a.send_cq = a.recv_cq = ibv_create_cq(c, 64, NULL, NULL, 0);
	if (!pd || !a.send_cq || !ibv_reg_mr(pd, buffer, sizeof(buffer), 7) || !ibv_create_srq(pd, &sa))
		return 2;
	for (int type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		a.qp_type = type;
		if (!ibv_create_qp(pd, &a))
			return 2;
	}
	puts("attached");
	fflush(stdout);
	for (;;) {
		for (uint32_t i = 0; i < s->narenas; i++)
			scribble(s->arenas[i], s->arena_size[i] / 4);
		if (write(s->wake, "\0\0\0\0\0\0\0\1", 8) < 0 && errno != EAGAIN)
			return 2;
		svpi_pump(s);
		if (s->broken)
			return 0; /* thrown out */
		usleep(100);
	}
}
