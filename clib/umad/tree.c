/* The adapters that /sys/class/infiniband shows, for programs of a machine without a fabric's service: those of a driver
 * under softvpi verbs run, where the preloaded library shows them there. They answer the questions about adapters and
 * ports; management datagrams need a fabric. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

#define TREE "/sys/class/infiniband"

enum { MOST = 32 };

/* line reads the first line of a file of an adapter; 0, or -errno. */
static int line(const char *adapter, const char *file, char *text, size_t size)
{
	char path[512];
	FILE *f;
	bool got;

	if (snprintf(path, sizeof(path), TREE "/%s/%s", adapter, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	got = fgets(text, (int)size, f);
	fclose(f);
	if (!got)
		return -EIO;
	text[strcspn(text, "\n")] = 0;
	return 0;
}

/* number reads a number, which a name may follow; 0 if there is none. */
static unsigned long number(const char *adapter, const char *file)
{
	char text[64];

	return line(adapter, file, text, sizeof(text)) ? 0 : strtoul(text, NULL, 0);
}

/* port_number reads a number of a port. */
static uint32_t port_number(const char *adapter, int port, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "ports/%d/%s", port, file);
	return (uint32_t)number(adapter, path);
}

/* words reads groups of four hexadecimal digits into bytes. */
static void words(const char *text, uint8_t *out, int groups)
{
	for (int i = 0; i < groups; i++) {
		char *end;
		unsigned long v = strtoul(text, &end, 16);

		out[2 * i] = (uint8_t)(v >> 8);
		out[2 * i + 1] = (uint8_t)v;
		text = *end == ':' ? end + 1 : end;
	}
}

/* ports returns the number of the highest port. */
static int ports(const char *adapter)
{
	char path[512];
	struct dirent *e;
	DIR *d;
	int most = 0;

	snprintf(path, sizeof(path), TREE "/%.64s/ports", adapter);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		int n = atoi(e->d_name);

		if (n > most && n < UMAD_CA_MAX_PORTS)
			most = n;
	}
	if (d)
		closedir(d);
	return most;
}

static int list(void *p, size_t size)
{
	struct svpi_umad_answer a = { 0 };
	struct dirent *e;
	char *at = (char *)p + sizeof(a);
	DIR *d = opendir(TREE);

	if (!d)
		return -ENODEV;
	memset(p, 0, size);
	while ((e = readdir(d)) && a.value < MOST && (size_t)(at - (char *)p) + UMAD_CA_NAME_LEN <= size) {
		if (e->d_name[0] == '.' || strlen(e->d_name) >= UMAD_CA_NAME_LEN)
			continue;
		memcpy(at, e->d_name, strlen(e->d_name));
		at += UMAD_CA_NAME_LEN;
		a.value++;
	}
	closedir(d);
	memcpy(p, &a, sizeof(a));
	return (int)(at - (char *)p);
}

static int adapter(const char *name, struct svpi_umad_adapter *r)
{
	char text[64];

	memset(r, 0, sizeof(*r));
	if (line(name, "node_guid", text, sizeof(text)))
		return -ENODEV;
	words(text, r->node_guid, 4);
	if (!line(name, "sys_image_guid", text, sizeof(text)))
		words(text, r->system_guid, 4);
	r->node_type = (uint32_t)number(name, "node_type");
	r->first = 1;
	r->last = (uint32_t)ports(name);
	line(name, "fw_ver", r->firmware, sizeof(r->firmware));
	line(name, "hca_type", r->type, sizeof(r->type));
	line(name, "hw_rev", r->hardware, sizeof(r->hardware));
	return sizeof(*r);
}

/* port answers about a port; -1 is the first active one, or else the first. */
static int port(const char *name, int n, struct svpi_umad_port *r)
{
	char file[64], text[64];
	uint32_t capabilities;
	uint8_t gid[16];

	for (int i = 1; n < 0 && i <= ports(name); i++) {
		if (port_number(name, i, "state") == 4)
			n = i;
	}
	if (n < 0)
		n = 1;
	memset(r, 0, sizeof(*r));
	snprintf(file, sizeof(file), "ports/%d/gids/0", n);
	if (line(name, file, text, sizeof(text)))
		return -EINVAL;
	words(text, gid, 8);
	memcpy(r->prefix, gid, 8);
	memcpy(r->guid, gid + 8, 8);
	r->number = (uint32_t)n;
	r->lid = port_number(name, n, "lid");
	r->lmc = port_number(name, n, "lid_mask_count");
	r->sm_lid = port_number(name, n, "sm_lid");
	r->sm_sl = port_number(name, n, "sm_sl");
	r->state = port_number(name, n, "state");
	r->physical = port_number(name, n, "phys_state");
	r->rate = port_number(name, n, "rate");
	capabilities = htonl(port_number(name, n, "cap_mask"));
	memcpy(r->capabilities, &capabilities, 4);
	snprintf(file, sizeof(file), "ports/%d/link_layer", n);
	line(name, file, r->link_layer, sizeof(r->link_layer));
	for (r->pkeys_size = 0; r->pkeys_size < 256; r->pkeys_size++) {
		snprintf(file, sizeof(file), "ports/%d/pkeys/%u", n, r->pkeys_size);
		if (line(name, file, text, sizeof(text)))
			break;
		r->pkeys[r->pkeys_size] = (uint16_t)strtoul(text, NULL, 0);
	}
	return sizeof(*r);
}

int svpi_umad_tree(enum svpi_umad_kind kind, const char *name, int number, void *p, size_t size)
{
	switch (kind) {
	case SVPI_UMAD_LIST:
		return list(p, size);
	case SVPI_UMAD_ADAPTER:
		return name && size >= sizeof(struct svpi_umad_adapter) ? adapter(name, p) : -EINVAL;
	case SVPI_UMAD_PORT:
		return name && size >= sizeof(struct svpi_umad_port) ? port(name, number, p) : -EINVAL;
	default:
		return -ENODEV;
	}
}
