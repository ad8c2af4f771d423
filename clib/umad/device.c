/* The adapters of the machine, and their ports. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

enum { MOST = 32 };

EXPORT int umad_init(void)
{
	TRACE("umad_init");
	return 0;
}

EXPORT int umad_done(void)
{
	TRACE("umad_done");
	return 0;
}

/* names asks the service for the adapters. Returns their number, or -errno. */
static int names(char list[MOST][UMAD_CA_NAME_LEN])
{
	struct {
		struct svpi_umad_answer a;
		char names[MOST][UMAD_CA_NAME_LEN];
	} r;
	int n = svpi_umad_ask(SVPI_UMAD_LIST, NULL, -1, &r, sizeof(r)), count;

	if (n < 0)
		return n;
	count = (n - (int)sizeof(r.a)) / UMAD_CA_NAME_LEN;
	if (r.a.value < (uint32_t)count)
		count = (int)r.a.value;
	for (int i = 0; i < count; i++) {
		memcpy(list[i], r.names[i], UMAD_CA_NAME_LEN);
		list[i][UMAD_CA_NAME_LEN - 1] = 0;
	}
	return count;
}

EXPORT int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	char list[MOST][UMAD_CA_NAME_LEN];
	int n = names(list);

	TRACE("max %d", max);
	if (n < 0) {
		DEBUG("no fabric: %s", strerror(-n));
		return 0;
	}
	if (n > max)
		n = max > 0 ? max : 0;
	for (int i = 0; i < n; i++)
		memcpy(cas[i], list[i], UMAD_CA_NAME_LEN);
	return n;
}

/* ask_port asks the service for a port of an adapter. Returns 0 or -errno. */
static int ask_port(const char *name, int number, struct svpi_umad_port *r)
{
	int n = svpi_umad_ask(SVPI_UMAD_PORT, name, number, r, sizeof(*r));

	if (n < 0)
		return n;
	if (n < (int)offsetof(struct svpi_umad_port, pkeys) || r->pkeys_size > 256 ||
	    n < (int)(offsetof(struct svpi_umad_port, pkeys) + 2 * r->pkeys_size))
		return -EPROTO;
	return 0;
}

/* fill translates an answer into the program's structure. */
static int fill(const char *name, const struct svpi_umad_port *r, umad_port_t *port)
{
	memset(port, 0, sizeof(*port));
	snprintf(port->ca_name, sizeof(port->ca_name), "%s", name);
	port->portnum = (int)r->number;
	port->base_lid = r->lid;
	port->lmc = r->lmc;
	port->sm_lid = r->sm_lid;
	port->sm_sl = r->sm_sl;
	port->state = r->state;
	port->phys_state = r->physical;
	port->rate = r->rate;
	memcpy(&port->capmask, r->capabilities, 4);
	memcpy(&port->gid_prefix, r->prefix, 8);
	memcpy(&port->port_guid, r->guid, 8);
	snprintf(port->link_layer, sizeof(port->link_layer), "%.*s", (int)sizeof(r->link_layer) - 1, r->link_layer);
	port->pkeys_size = r->pkeys_size;
	port->pkeys = calloc(r->pkeys_size ? r->pkeys_size : 1, sizeof(uint16_t));
	if (!port->pkeys)
		return -ENOMEM;
	memcpy(port->pkeys, r->pkeys, r->pkeys_size * sizeof(uint16_t));
	return 0;
}

/* resolve finds the adapter with a name, or the first one if there is no name. Returns 0 or -errno. */
static int resolve(const char *name, char out[UMAD_CA_NAME_LEN])
{
	char list[MOST][UMAD_CA_NAME_LEN];
	int n;

	if (name) {
		if (strlen(name) >= UMAD_CA_NAME_LEN)
			return -ENODEV;
		memcpy(out, name, strlen(name) + 1);
		return 0;
	}
	n = names(list);
	if (n <= 0)
		return -ENODEV;
	memcpy(out, list[0], UMAD_CA_NAME_LEN);
	return 0;
}

EXPORT int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	char name[UMAD_CA_NAME_LEN];
	struct svpi_umad_port r;
	int n = resolve(ca_name, name);

	TRACE("ca_name %s portnum %d", ca_name ? ca_name : "none", portnum);
	if (n < 0)
		return n;
	/* Port 0 means any port, except on a switch, where it is the only one. */
	n = ask_port(name, portnum > 0 ? portnum : -1, &r);
	if (n < 0)
		return portnum > 0 ? -EIO : n;
	return fill(name, &r, port);
}

EXPORT int umad_release_port(umad_port_t *port)
{
	TRACE("port %s:%d", port->ca_name, port->portnum);
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

EXPORT int umad_release_ca(umad_ca_t *ca)
{
	TRACE("ca_name %s", ca->ca_name);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

EXPORT int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	char name[UMAD_CA_NAME_LEN];
	struct svpi_umad_adapter r;
	struct svpi_umad_port p;
	int n = resolve(ca_name, name);

	TRACE("ca_name %s", ca_name ? ca_name : "none");
	if (n < 0)
		return n;
	n = svpi_umad_ask(SVPI_UMAD_ADAPTER, name, -1, &r, sizeof(r));
	if (n != (int)sizeof(r))
		return -ENOENT;
	memset(ca, 0, sizeof(*ca));
	memcpy(ca->ca_name, name, sizeof(name));
	ca->node_type = r.node_type;
	ca->numports = (int)(r.last < UMAD_CA_MAX_PORTS ? r.last : UMAD_CA_MAX_PORTS - 1);
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), "%.19s", r.firmware);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "%.39s", r.type);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "%.19s", r.hardware);
	memcpy(&ca->node_guid, r.node_guid, 8);
	memcpy(&ca->system_guid, r.system_guid, 8);
	for (int i = (int)r.first; i <= ca->numports; i++) {
		n = ask_port(name, i, &p);
		if (!n) {
			ca->ports[i] = calloc(1, sizeof(umad_port_t));
			n = ca->ports[i] ? fill(name, &p, ca->ports[i]) : -ENOMEM;
		}
		if (n < 0) {
			umad_release_ca(ca);
			return n == -ENOMEM ? n : -EIO;
		}
	}
	return 0;
}

EXPORT int umad_get_ca_portguids(const char *ca_name, uint64_t *portguids, int max)
{
	umad_ca_t ca;
	int n;

	TRACE("ca name %s max port guids %d", ca_name ? ca_name : "none", max);
	if (umad_get_ca(ca_name, &ca) < 0)
		return -1;
	n = ca.numports + 1;
	if (portguids && n > max)
		n = -ENOMEM;
	for (int i = 0; portguids && i < n; i++)
		portguids[i] = ca.ports[i] ? ca.ports[i]->port_guid : 0;
	umad_release_ca(&ca);
	return n;
}

EXPORT int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct {
		struct svpi_umad_answer a;
		char path[256];
	} r;
	char name[UMAD_CA_NAME_LEN];
	int n = resolve(ca_name, name);

	TRACE("ca %s port %d", ca_name ? ca_name : "none", portnum);
	if (n < 0)
		return n;
	n = svpi_umad_ask(SVPI_UMAD_MANAGER_AT, name, portnum > 0 ? portnum : -1, &r, sizeof(r));
	if (n < 0)
		return -EINVAL;
	n -= (int)sizeof(r.a);
	if (n >= max)
		return -ENAMETOOLONG;
	memcpy(path, r.path, (size_t)n);
	path[n] = 0;
	return 0;
}

EXPORT void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free((char *)head->ca_name);
		free(head);
		head = next;
	}
}

EXPORT struct umad_device_node *umad_get_ca_device_list(void)
{
	char list[MOST][UMAD_CA_NAME_LEN];
	struct umad_device_node *head = NULL;
	int n = names(list);

	if (n < 0) {
		errno = -n;
		return NULL;
	}
	while (n-- > 0) {
		struct umad_device_node *d = calloc(1, sizeof(*d));

		if (d && (d->ca_name = strdup(list[n])) == NULL) {
			free(d);
			d = NULL;
		}
		if (!d) {
			umad_free_ca_device_list(head);
			errno = ENOMEM;
			return NULL;
		}
		d->next = head;
		head = d;
	}
	return head;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct umad_device_node *const *)a)->ca_name, (*(struct umad_device_node *const *)b)->ca_name);
}

EXPORT int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **all, *d;
	size_t n = 0;

	if (!head || !*head)
		return 0;
	for (d = *head; d; d = d->next)
		n++;
	if (size && size != n)
		return EINVAL;
	if (n == 1)
		return 0;
	all = calloc(n, sizeof(*all));
	if (!all)
		return ENOMEM;
	n = 0;
	for (d = *head; d; d = d->next)
		all[n++] = d;
	qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++)
		all[i]->next = i + 1 < n ? all[i + 1] : NULL;
	*head = all[0];
	free(all);
	return 0;
}
