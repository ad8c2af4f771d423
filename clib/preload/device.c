/* What is to be seen of a device, and when it changes. */
#define _GNU_SOURCE
#include "files.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PKEYS = 128, NAME = sizeof(((struct ibv_device *)NULL)->name) };

/* What may change of a device, as it was last written. */
struct shown {
	char name[NAME];
	char version[64], board[64]; /* of what the device runs */
	struct ibv_port_attr port;
	struct ibv_gid_entry gids[SVPI_MOST_GIDS]; /* by their rows; GIDs of zeros are empty rows */
	uint16_t pkeys[MOST_PKEYS];
	char net[IF_NAMESIZE]; /* network interface of the port; empty: none */
	struct svpi_link_address link; /* its link-layer address, if the system does not know it; index 0: it does */
};

static struct shown **shown;
static size_t count;

void svpi_show_anew(void)
{
	for (size_t i = 0; i < count; i++)
		free(shown[i]);
	free(shown);
	shown = NULL;
	count = 0;
}

/* file_of returns the path of a device's file. It is valid until the next call. */
static const char *file_of(const char *device, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	return path;
}

static const char *words(uint64_t guid)
{
	static char text[20];
	uint8_t b[8];

	memcpy(b, &guid, 8); /* network byte order */
	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
	return text;
}

static bool is_empty(const union ibv_gid *g)
{
	static const union ibv_gid none;

	return !memcmp(g, &none, sizeof(none));
}

/* put_gid writes a row of the GID table. Of an empty one there are no files: most rows are empty, and svpi_empty_gid finds
 * its GID. */
static bool put_gid(const char *device, int row, const struct ibv_gid_entry *e)
{
	static const char *const types[] = { "IB/RoCE v1", "IB/RoCE v1", "RoCE v2" }; /* by enum ibv_gid_type */
	char file[64], text[40], name[IF_NAMESIZE], *p = text;

	for (int b = 0; b < 16; b += 2)
		p += sprintf(p, "%s%02x%02x", b ? ":" : "", e->gid.raw[b], e->gid.raw[b + 1]);
	snprintf(file, sizeof(file), "ports/1/gids/%d", row);
	if (!svpi_put(file_of(device, file), "%s\n", text))
		return false;
	snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", row);
	if (!svpi_put(file_of(device, file), "%s\n", e->gid_type < 3 ? types[e->gid_type] : "?"))
		return false;
	snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", row);
	if (e->ndev_ifindex && if_indextoname(e->ndev_ifindex, name))
		return svpi_put(file_of(device, file), "%s\n", name);
	svpi_drop(file_of(device, file));
	return true;
}

static void drop_gid(const char *device, int row)
{
	static const char *const files[] = { "gids", "gid_attrs/types", "gid_attrs/ndevs" };
	char file[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(file, sizeof(file), "ports/1/%s/%d", files[i], row);
		svpi_drop(file_of(device, file));
	}
}

bool svpi_empty_gid(const char *name)
{
	char device[NAME];
	int row, end = 0;

	if (sscanf(name, "/sys/class/infiniband/%63[^/]/ports/1/gids/%d%n", device, &row, &end) != 2 || name[end])
		return false;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(shown[i]->name, device))
			return row >= 0 && row < shown[i]->port.gid_tbl_len;
	return false;
}

/* put_net shows a network interface as the one of a port: what the system shows of it, or where that is of another network
 * namespace its index. */
static bool put_net(const char *device, const char *net)
{
	char file[64], from[64];

	snprintf(file, sizeof(file), "device/net/%s", net);
	snprintf(from, sizeof(from), "/sys/class/net/%s", net);
	if (access(from, F_OK) == 0)
		return svpi_put_link(file_of(device, file), from);
	snprintf(file, sizeof(file), "device/net/%s/ifindex", net);
	return svpi_put(file_of(device, file), "%u\n", if_nametoindex(net));
}

const char *const svpi_link_files[] = { "address", "broadcast", "type", "addr_len", NULL };

/* link_file returns the path of a file about the link-layer address of an interface. It is valid until the next call. */
static const char *link_file(const char *net, const char *file)
{
	static char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", net, file);
	return path;
}

static bool put_bytes(const char *file, const uint8_t b[20])
{
	char text[64], *p = text;

	for (int i = 0; i < 20; i++)
		p += sprintf(p, "%s%02x", i ? ":" : "", b[i]);
	return svpi_put(file, "%s\n", text);
}

/* put_link writes what the system shows of interfaces that have such addresses. */
static bool put_link(const char *net, const struct svpi_link_address *l)
{
	return put_bytes(link_file(net, "address"), l->address) && put_bytes(link_file(net, "broadcast"), l->broadcast) &&
	       svpi_put(link_file(net, "type"), "%u\n", l->hardware) && svpi_put(link_file(net, "addr_len"), "20\n");
}

static void drop_link(const char *net)
{
	for (size_t i = 0; svpi_link_files[i]; i++)
		svpi_drop(link_file(net, svpi_link_files[i]));
}

static void drop_net(const char *device, const char *net)
{
	char file[64];

	drop_link(net);
	snprintf(file, sizeof(file), "device/net/%s/ifindex", net);
	svpi_drop(file_of(device, file));
	snprintf(file, sizeof(file), "device/net/%s", net);
	svpi_drop(file_of(device, file));
	snprintf(file, sizeof(file), "/sys/class/net/%s/device", net);
	svpi_drop(file);
}

/* put_network links the network interface of a port and the device to each other, as a card's are. Of several adapters
 * with one interface, that shows the first. */
static bool put_network(const char *device, const char *before, const char *now)
{
	char file[64], back[NAME + 32];

	if (before[0] && strcmp(before, now))
		drop_net(device, before);
	if (!now[0])
		return true;
	if (!put_net(device, now))
		return false;
	for (size_t i = 0; i < count && strcmp(shown[i]->name, device); i++)
		if (!strcmp(shown[i]->net, now))
			return true;
	snprintf(file, sizeof(file), "/sys/class/net/%s/device", now);
	snprintf(back, sizeof(back), "../../infiniband/%s/device", device);
	return svpi_put_link(file, back);
}

/* put_links writes the link-layer address of a port's interface, or takes it back. */
static bool put_links(const struct shown *before, const struct shown *now)
{
	if (now->link.index)
		return put_link(now->net, &now->link);
	if (before->link.index)
		drop_link(before->net);
	return true;
}

/* put_rate writes the speed of a port as Linux does: number of lanes times lane speed. */
static bool put_rate(const char *file, const struct ibv_port_attr *a)
{
	static const struct { uint8_t code; const char *name; int rate; } speeds[] = { /* in tenths of Gb/s a lane */
		{ 1, "SDR", 25 }, { 2, "DDR", 50 }, { 4, "QDR", 100 }, { 8, "FDR10", 100 }, { 16, "FDR", 140 }, { 32, "EDR", 250 },
		{ 64, "HDR", 500 }, { 128, "NDR", 1000 },
	};
	static const uint8_t widths[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	int lanes = a->active_width < sizeof(widths) && widths[a->active_width] ? widths[a->active_width] : 1;
	size_t i = 0;

	if (!a->active_speed) /* the port is down */
		return svpi_put(file, "0 Gb/sec (%dX)\n", lanes);
	while (i + 1 < sizeof(speeds) / sizeof(*speeds) && speeds[i].code != a->active_speed)
		i++;
	int rate = lanes * speeds[i].rate;

	return rate % 10 ? svpi_put(file, "%d.%d Gb/sec (%dX %s)\n", rate / 10, rate % 10, lanes, speeds[i].name)
			 : svpi_put(file, "%d Gb/sec (%dX %s)\n", rate / 10, lanes, speeds[i].name);
}

/* name_of returns an entry of a table, or "?" if there is none. */
static const char *name_of(const char *const *names, size_t n, unsigned i) { return i < n && names[i] ? names[i] : "?"; }

static bool put_port(const char *device, const struct shown *before, const struct shown *now)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	static const char *const physical[] = { NULL, "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
						"LinkErrorRecovery", "Phy Test" };
	const struct ibv_port_attr *a = &now->port;
	char file[64];

	for (int i = 0; i < a->pkey_tbl_len && i < MOST_PKEYS; i++) {
		snprintf(file, sizeof(file), "ports/1/pkeys/%d", i);
		if (!(now->pkeys[i] ? svpi_put(file_of(device, file), "0x%04x\n", now->pkeys[i]) :
				      svpi_put_name(file_of(device, file), SVPI_EMPTY_PKEY)))
			return false;
	}
	for (int i = 0; i < SVPI_MOST_GIDS; i++) {
		if (!is_empty(&now->gids[i].gid) && !put_gid(device, i, &now->gids[i]))
			return false;
		if (is_empty(&now->gids[i].gid) && !is_empty(&before->gids[i].gid))
			drop_gid(device, i);
	}
	return svpi_put(file_of(device, "ports/1/state"), "%d: %s\n", a->state, name_of(states, sizeof(states) / sizeof(*states), a->state)) &&
	       svpi_put(file_of(device, "ports/1/phys_state"), "%d: %s\n", a->phys_state,
			name_of(physical, sizeof(physical) / sizeof(*physical), a->phys_state)) &&
	       svpi_put(file_of(device, "ports/1/link_layer"),
			a->link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand\n" : "Ethernet\n") &&
	       put_rate(file_of(device, "ports/1/rate"), a) &&
	       svpi_put(file_of(device, "ports/1/lid"), "0x%x\n", a->lid) &&
	       svpi_put(file_of(device, "ports/1/lid_mask_count"), "%d\n", a->lmc) &&
	       svpi_put(file_of(device, "ports/1/sm_lid"), "0x%x\n", a->sm_lid) &&
	       svpi_put(file_of(device, "ports/1/sm_sl"), "%d\n", a->sm_sl) &&
	       svpi_put(file_of(device, "ports/1/cap_mask"), "0x%08x\n", a->port_cap_flags);
}

/* put_identity writes what never changes. */
static bool put_identity(struct ibv_device *d, struct ibv_context *c)
{
	struct ibv_device_attr a;
	char name[PATH_MAX], self[NAME + 32];

	if (svpi_verbs.query_device(c, &a))
		return true; /* the driver has gone meanwhile */
	snprintf(name, sizeof(name), "/dev/infiniband/%s", d->dev_name);
	if (!svpi_put(SVPI_EMPTY_GID, "0000:0000:0000:0000:0000:0000:0000:0000\n") || !svpi_put(SVPI_EMPTY_PKEY, "0x0000\n") ||
	    !svpi_put_link(name, "/dev/null")) /* a character device that everybody may open */
		return false;
	snprintf(name, sizeof(name), "/sys/class/infiniband_verbs/%s/ibdev", d->dev_name);
	if (!svpi_put(name, "%s\n", d->name))
		return false;
	snprintf(name, sizeof(name), "/sys/class/infiniband_verbs/%s/abi_version", d->dev_name);
	if (!svpi_put(name, "1\n"))
		return false;
	snprintf(name, sizeof(name), "../../../%s", d->name);
	snprintf(self, sizeof(self), "device/infiniband/%s", d->name);
	return svpi_put_link(file_of(d->name, self), name) && svpi_put(file_of(d->name, "node_type"), "1: CA\n") &&
	       svpi_put(file_of(d->name, "node_desc"), "%s\n", d->name) &&
	       svpi_put(file_of(d->name, "hca_type"), "SoftVPI\n") && svpi_put(file_of(d->name, "hw_rev"), "%x\n", a.hw_ver) &&
	       svpi_put(file_of(d->name, "node_guid"), "%s\n", words(a.node_guid)) &&
	       svpi_put(file_of(d->name, "sys_image_guid"), "%s\n", words(a.sys_image_guid));
}

/* put_firmware writes the version that a device runs, and the kind of its board if it has one. */
static bool put_firmware(const struct shown *now)
{
	return svpi_put(file_of(now->name, "fw_ver"), "%s\n", now->version) &&
	       (!now->board[0] || svpi_put(file_of(now->name, "board_id"), "%s\n", now->board));
}

/* look reads what may change. */
static bool look(struct ibv_device *d, struct ibv_context *c, struct shown *now)
{
	struct ibv_gid_entry list[SVPI_MOST_GIDS];
	ssize_t n;

	memset(now, 0, sizeof(*now));
	memcpy(now->name, d->name, sizeof(now->name));
	if (svpi_verbs.query_port(c, 1, &now->port))
		return false;
	svpi_verbs.identity(c, now->version, now->board);
	n = svpi_verbs.query_gid_table(c, list, SVPI_MOST_GIDS, 0, sizeof(*list));
	for (ssize_t i = 0; i < n; i++)
		if (list[i].gid_index < SVPI_MOST_GIDS)
			now->gids[list[i].gid_index] = list[i];
	for (int i = 0; i < now->port.pkey_tbl_len && i < MOST_PKEYS; i++) {
		uint16_t key = 0;

		svpi_verbs.query_pkey(c, 1, i, &key);
		now->pkeys[i] = ntohs(key);
	}
	if (!svpi_verbs.port_interface(c, now->net))
		memset(now->net, 0, sizeof(now->net));
	else if (!svpi_verbs.link_address_of(c, if_nametoindex(now->net), &now->link))
		memset(&now->link, 0, sizeof(now->link));
	return true;
}

/* known returns what was last written of a device, anew with zeros for one that was not there. */
static struct shown *known(const char *name, bool *first)
{
	*first = false;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(shown[i]->name, name))
			return shown[i];
	struct shown **list = realloc(shown, (count + 1) * sizeof(*list));

	if (!list)
		return NULL;
	shown = list;
	shown[count] = calloc(1, sizeof(**shown));
	if (!shown[count])
		return NULL;
	snprintf(shown[count]->name, sizeof(shown[count]->name), "%s", name);
	*first = true;
	return shown[count++];
}

bool svpi_show_device(struct ibv_device *d)
{
	struct ibv_context *c = svpi_verbs.open_device(d);
	struct shown now, *before;
	bool first, done = true;

	if (!c)
		return true;
	before = known(d->name, &first);
	if (!before)
		done = false;
	else if (first)
		done = put_identity(d, c);
	if (done && look(d, c, &now) && memcmp(before, &now, sizeof(now))) {
		done = put_firmware(&now) && put_network(d->name, before->net, now.net) && put_links(before, &now) && put_port(d->name, before, &now);
		*before = now;
	}
	svpi_verbs.close_device(c);
	return done;
}
