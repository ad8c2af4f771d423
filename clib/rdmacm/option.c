/* Options of ids. */
#include <string.h>

#include "id.h"

/* The options of an id: their sizes, and the driver's numbers for them. */
static const struct { size_t size; uint32_t option; } options[] = {
	[RDMA_OPTION_ID_TOS] = { sizeof(uint8_t), OPTION_TOS },
	[RDMA_OPTION_ID_REUSEADDR] = { sizeof(int), OPTION_REUSE },
	[RDMA_OPTION_ID_AFONLY] = { sizeof(int), OPTION_IPV6_ONLY },
	[RDMA_OPTION_ID_ACK_TIMEOUT] = { sizeof(uint8_t), OPTION_ACK_TIMEOUT },
};

EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	struct id *i = to_id(id);
	struct svpi_cm_option q = { .id = i->handle };
	int n = 0;

	if (level == RDMA_OPTION_IB)
		return result(EOPNOTSUPP); /* InfiniBand paths; here the system chooses the route */
	if (level != RDMA_OPTION_ID || name < 0 || name >= (int)(sizeof(options) / sizeof(*options)))
		return result(ENOSYS);
	if (!value || len != options[name].size)
		return result(EINVAL);
	q.option = options[name].option;
	if (len == sizeof(n)) {
		memcpy(&n, value, sizeof(n));
		q.value = n != 0;
	} else {
		q.value = *(uint8_t *)value;
	}
	return result(svpi_ask(i, SVPI_CM_OPTION, &q, sizeof(q)));
}
