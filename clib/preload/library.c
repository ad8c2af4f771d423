#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>

struct svpi_verbs svpi_verbs;
__thread bool svpi_busy;

bool svpi_library_load(bool anyway)
{
	void *l = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | (anyway ? 0 : RTLD_NOLOAD));
	struct svpi_verbs v;

	if (!l || !dlsym(l, "svpi_get"))
		return false;
	v.get_device_list = (struct ibv_device **(*)(int *))dlsym(l, "ibv_get_device_list");
	v.free_device_list = (void (*)(struct ibv_device **))dlsym(l, "ibv_free_device_list");
	v.open_device = (struct ibv_context *(*)(struct ibv_device *))dlsym(l, "ibv_open_device");
	v.close_device = (int (*)(struct ibv_context *))dlsym(l, "ibv_close_device");
	v.query_device = (int (*)(struct ibv_context *, struct ibv_device_attr *))dlsym(l, "ibv_query_device");
	v.query_port = (int (*)(struct ibv_context *, uint8_t, struct ibv_port_attr *))dlsym(l, "ibv_query_port");
	v.query_pkey = (int (*)(struct ibv_context *, uint8_t, int, uint16_t *))dlsym(l, "ibv_query_pkey");
	v.query_gid_table = (ssize_t (*)(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t))dlsym(l, "_ibv_query_gid_table");
	v.port_interface = (bool (*)(struct ibv_context *, char *))dlsym(l, "svpi_port_interface");
	v.link_address_of = (bool (*)(struct ibv_context *, uint32_t, struct svpi_link_address *))dlsym(l, "svpi_link_address_of");
	v.identity = (void (*)(struct ibv_context *, char *, char *))dlsym(l, "svpi_identity");
	if (!v.get_device_list || !v.free_device_list || !v.open_device || !v.close_device || !v.query_device || !v.query_port ||
	    !v.query_gid_table || !v.query_pkey || !v.port_interface || !v.link_address_of || !v.identity)
		return false;
	svpi_verbs = v;
	return true;
}
