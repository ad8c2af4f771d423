/* What is refused for good, and what comes with the Ethernet function: each with the error of docs/verbs.md's table. */
#include "bed.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

/* REFUSED checks that a call that would make something makes nothing, for the reason that is meant. */
#define REFUSED(call, error) do { errno = 0; CHECK(!(call), "."); CHECK(errno == (error), ": errno %d", errno); } while (0)

static void queue_pairs(struct end *a)
{
	struct ibv_qp_init_attr q = { .send_cq = a->cq, .recv_cq = a->cq, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr_ex x = { .send_cq = a->cq, .recv_cq = a->cq, .cap = { 1, 1, 1, 1, 0 }, .pd = a->pd,
					 .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct ibv_rwq_ind_table_init_attr t = { 0 };
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = a->pd, .cq = a->cq };

	q.qp_type = IBV_QPT_DRIVER; /* DC, SRD */
	REFUSED(ibv_create_qp(a->pd, &q), EOPNOTSUPP);
	x.qp_type = IBV_QPT_DRIVER;
	REFUSED(ibv_create_qp_ex(a->ctx, &x), EOPNOTSUPP);
	q.qp_type = IBV_QPT_RAW_PACKET; /* the wire carries no Ethernet frames */
	REFUSED(ibv_create_qp(a->pd, &q), EOPNOTSUPP);
	x.qp_type = IBV_QPT_RAW_PACKET;
	REFUSED(ibv_create_qp_ex(a->ctx, &x), EOPNOTSUPP);
	x.qp_type = IBV_QPT_UD;
	x.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	REFUSED(ibv_create_qp_ex(a->ctx, &x), EOPNOTSUPP);
	REFUSED(ibv_create_wq(a->ctx, &w), EOPNOTSUPP);
	REFUSED(ibv_create_rwq_ind_table(a->ctx, &t), EOPNOTSUPP);
}

static void flows(struct end *a)
{
	struct ibv_flow_attr f = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(f), .port = 1 };
	struct ibv_counters_init_attr c = { 0 };
	struct ibv_flow_action_esp_attr e = { 0 };

	make_qp(a, IBV_QPT_UD, NULL);
	REFUSED(ibv_create_flow(a->qp, &f), EOPNOTSUPP);
	MUST(ibv_destroy_qp(a->qp) == 0);
	a->qp = NULL;
	REFUSED(ibv_create_counters(a->ctx, &c), EOPNOTSUPP);
	REFUSED(ibv_create_flow_action_esp(a->ctx, &e), EOPNOTSUPP);
}

static void memory(struct end *a)
{
	void *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REFUSED(ibv_reg_dmabuf_mr(a->pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
	MUST(gone != MAP_FAILED && munmap(gone, 4096) == 0);
	REFUSED(ibv_reg_mr(a->pd, gone, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT); /* as is that of a GPU */
}

/* vendors asks the distribution's libraries for other vendors' devices, where they are installed. */
static void vendors(struct end *a)
{
	static const char *const names[][3] = { { "libmlx5.so.1", "mlx5dv_is_supported", "mlx5dv_query_device" },
						{ "libefa.so.1", NULL, "efadv_query_device" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *l = dlopen(names[i][0], RTLD_NOW);
		char room[1024] = { 0 };

		if (!l)
			continue;
		bool (*is_supported)(struct ibv_device *) = names[i][1] ? dlsym(l, names[i][1]) : NULL;
		int (*query)(struct ibv_context *, void *, uint32_t) = dlsym(l, names[i][2]);

		if (is_supported)
			CHECK(!is_supported(a->ctx->device), ": %s", names[i][0]);
		if (query) {
			int error = query(a->ctx, room, sizeof(room));

			CHECK(error == EOPNOTSUPP, ": %s, %d", names[i][2], error);
		}
	}
}

void test_refused(void)
{
	struct end a;

	open_end(&a, 0);
	queue_pairs(&a);
	flows(&a);
	memory(&a);
	vendors(&a);
	close_end(&a);
}
