/* The tree: a directory for each process that asks for it, removed when the process ends. */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "library.h"

#define PREFIX "softvpi-tree-"

static const char *const served[] = { "/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX]; /* empty: the tree has not been made */
static pid_t owner;

/* Files. Everything is made below root; the first failure ends it. */

static bool make_dirs(char *path)
{
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
		*p = '/';
		if (!made)
			return false;
	}
	return true;
}

__attribute__((format(printf, 2, 3))) static bool put(const char *name, const char *format, ...)
{
	char path[PATH_MAX], text[256];
	va_list args;
	int n, fd;

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path) || !make_dirs(path))
		return false;
	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return false;
	bool done = n < (int)sizeof(text) && write(fd, text, (size_t)n) == n;

	close(fd);
	return done;
}

static bool put_link(const char *name, const char *to)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s%s", root, name) < (int)sizeof(path) && make_dirs(path) && symlink(to, path) == 0;
}

/* path_of returns the path of a device's file. It is valid until the next call. */
static const char *path_of(const char *device, const char *file)
{
	static char path[PATH_MAX]; /* protected by lock */

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

/* interface_of returns the network interface that has a GID's address. The loopback interface has all of 127.0.0.0/8.
 * */
static const char *interface_of(const union ibv_gid *g, struct ifaddrs *all)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(g->raw, mapped, 12);

	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (v4 && family == AF_INET && !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, g->raw + 12, 4))
			return i->ifa_name;
		if (!v4 && family == AF_INET6 && !memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr, g->raw, 16))
			return i->ifa_name;
		if (v4 && g->raw[12] == 127 && i->ifa_flags & IFF_LOOPBACK)
			return i->ifa_name;
	}
	return NULL;
}

static bool put_interface(const char *file, const union ibv_gid *g)
{
	struct ifaddrs *all;
	const char *name;
	bool done;

	if (getifaddrs(&all))
		return true;
	name = interface_of(g, all);
	done = !name || put(file, "%s\n", name);
	freeifaddrs(all);
	return done;
}

static bool put_gids(struct ibv_context *c, const char *device, int count, bool fabric)
{
	for (int i = 0; i < count; i++) {
		char file[64], text[40], *p = text;
		union ibv_gid g;

		if (svpi_verbs.query_gid(c, 1, i, &g))
			memset(&g, 0, sizeof(g));
		for (int b = 0; b < 16; b += 2)
			p += sprintf(p, "%s%02x%02x", b ? ":" : "", g.raw[b], g.raw[b + 1]);
		snprintf(file, sizeof(file), "ports/1/gids/%d", i);
		if (!put(path_of(device, file), "%s\n", text))
			return false;
		snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
		if (!put(path_of(device, file), fabric ? "IB/RoCE v1\n" : "RoCE v2\n"))
			return false;
		snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", i);
		if (!put_interface(path_of(device, file), &g))
			return false;
	}
	return true;
}

/* put_network shows the network interface of an Ethernet port where a card has it. An adapter at a loopback address has
 * none. */
static bool put_network(struct ibv_context *c, const char *device)
{
	union ibv_gid g;
	struct ifaddrs *all;
	const char *name = NULL;
	char file[64];
	bool done = true;

	if (svpi_verbs.query_gid(c, 1, 0, &g) || getifaddrs(&all))
		return true;
	name = interface_of(&g, all);
	for (struct ifaddrs *i = all; name && i; i = i->ifa_next)
		if (!strcmp(i->ifa_name, name) && i->ifa_flags & IFF_LOOPBACK)
			name = NULL;
	if (name) {
		snprintf(file, sizeof(file), "device/net/%s/ifindex", name);
		done = put(path_of(device, file), "%u\n", if_nametoindex(name));
	}
	freeifaddrs(all);
	return done;
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

	while (i + 1 < sizeof(speeds) / sizeof(*speeds) && speeds[i].code != a->active_speed)
		i++;
	int rate = lanes * speeds[i].rate;

	return rate % 10 ? put(file, "%d.%d Gb/sec (%dX %s)\n", rate / 10, rate % 10, lanes, speeds[i].name)
			 : put(file, "%d Gb/sec (%dX %s)\n", rate / 10, lanes, speeds[i].name);
}

static bool put_pkeys(struct ibv_context *c, const char *device, int count)
{
	for (int i = 0; i < count; i++) {
		char file[32];
		uint16_t key = 0;

		snprintf(file, sizeof(file), "ports/1/pkeys/%d", i);
		svpi_verbs.query_pkey(c, 1, i, &key);
		if (!put(path_of(device, file), "0x%04x\n", ntohs(key)))
			return false;
	}
	return true;
}

/* name_of returns an entry of a table, or "?" if there is none. */
static const char *name_of(const char *const *names, size_t n, unsigned i) { return i < n && names[i] ? names[i] : "?"; }

static bool put_port(struct ibv_context *c, const char *device)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	static const char *const physical[] = { NULL, "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
						"LinkErrorRecovery", "Phy Test" };
	struct ibv_port_attr a;

	memset(&a, 0, sizeof(a));
	if (svpi_verbs.query_port(c, 1, &a))
		return true; /* the adapter has gone away meanwhile */
	bool fabric = a.link_layer == IBV_LINK_LAYER_INFINIBAND;

	return put(path_of(device, "ports/1/state"), "%d: %s\n", a.state, name_of(states, sizeof(states) / sizeof(*states), a.state)) &&
	       put(path_of(device, "ports/1/phys_state"), "%d: %s\n", a.phys_state,
		   name_of(physical, sizeof(physical) / sizeof(*physical), a.phys_state)) &&
	       put(path_of(device, "ports/1/link_layer"), fabric ? "InfiniBand\n" : "Ethernet\n") &&
	       put_rate(path_of(device, "ports/1/rate"), &a) &&
	       put(path_of(device, "ports/1/lid"), "0x%x\n", a.lid) && put(path_of(device, "ports/1/lid_mask_count"), "%d\n", a.lmc) &&
	       put(path_of(device, "ports/1/sm_lid"), "0x%x\n", a.sm_lid) && put(path_of(device, "ports/1/sm_sl"), "%d\n", a.sm_sl) &&
	       put(path_of(device, "ports/1/cap_mask"), "0x%08x\n", a.port_cap_flags) &&
	       put_pkeys(c, device, a.pkey_tbl_len) && put_gids(c, device, a.gid_tbl_len, fabric);
}

static bool put_device(struct ibv_device *d)
{
	struct ibv_context *c = svpi_verbs.open_device(d);
	struct ibv_device_attr a;
	char name[PATH_MAX];
	bool done;

	if (!c)
		return true;
	svpi_verbs.query_device(c, &a);
	snprintf(name, sizeof(name), "/dev/infiniband/%s", d->dev_name);
	done = put_link(name, "/dev/null"); /* a character device that everybody may open */
	snprintf(name, sizeof(name), "/sys/class/infiniband_verbs/%s/ibdev", d->dev_name);
	done = done && put(name, "%s\n", d->name);
	snprintf(name, sizeof(name), "/sys/class/infiniband_verbs/%s/abi_version", d->dev_name);
	done = done && put(name, "1\n") && put(path_of(d->name, "node_type"), "1: CA\n") &&
	       put(path_of(d->name, "node_desc"), "%s\n", d->name) && put(path_of(d->name, "fw_ver"), "%s\n", a.fw_ver) &&
	       put(path_of(d->name, "hca_type"), "SoftVPI\n") && put(path_of(d->name, "hw_rev"), "%x\n", a.hw_ver) &&
	       put(path_of(d->name, "node_guid"), "%s\n", words(a.node_guid)) &&
	       put(path_of(d->name, "sys_image_guid"), "%s\n", words(a.sys_image_guid)) && put_network(c, d->name) &&
	       put_port(c, d->name);
	svpi_verbs.close_device(c);
	return done;
}

/* Removal. */

static int take_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	remove(path);
	return 0;
}

static void take_away(const char *path) { nftw(path, take_one, 8, FTW_DEPTH | FTW_PHYS); }

__attribute__((destructor)) static void end(void)
{
	if (!root[0] || owner != getpid())
		return;
	svpi_busy = true;
	take_away(root);
	root[0] = 0;
}

/* pid_space is the number of the PID namespace. A directory may be shared with containers that have one of their own, in
 * which processes have other numbers: their trees are theirs to sweep. */
static unsigned long pid_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (unsigned long)st.st_ino;
}

/* sweep removes the trees that killed processes of this user have left. */
static void sweep(const char *dir)
{
	unsigned long here = pid_space(), of;
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[PATH_MAX];
		struct stat st;
		int pid;

		if (sscanf(e->d_name, PREFIX "%d-%lu-", &pid, &of) != 2 || pid <= 0 || of != here || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path) && lstat(path, &st) == 0 &&
		    S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			take_away(path);
	}
	if (d)
		closedir(d);
}

static bool make_root(void)
{
	const char *dirs[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		if (!dirs[i] || dirs[i][0] != '/')
			continue;
		sweep(dirs[i]);
		if (snprintf(root, sizeof(root), "%s/" PREFIX "%d-%lu-XXXXXX", dirs[i], (int)getpid(), pid_space()) < PATH_MAX / 2 && mkdtemp(root))
			return true;
	}
	root[0] = 0;
	return false;
}

/* build makes the tree of the present devices. */
static bool build(void)
{
	struct ibv_device **list;
	int n = 0;
	bool done;

	root[0] = 0;
	if (!svpi_library_load(true))
		return false;
	list = svpi_verbs.get_device_list(&n);
	done = list && n > 0 && make_root();
	for (int i = 0; done && i < n; i++)
		done = put_device(list[i]);
	if (list)
		svpi_verbs.free_device_list(list);
	if (done) {
		owner = getpid();
		return true;
	}
	if (root[0])
		take_away(root);
	root[0] = 0;
	return false;
}

static bool is_served(const char *path)
{
	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++) {
		size_t n = strlen(served[i]);

		if (!strncmp(path, served[i], n) && (path[n] == 0 || path[n] == '/'))
			return !strstr(path + n, "/..");
	}
	return false;
}

/* A forked child makes its own tree, because its parent's is removed when the parent ends. */
static bool have(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = root[0] && owner == getpid();
	if (!ready)
		ready = build();
	pthread_mutex_unlock(&lock);
	return ready;
}

bool svpi_tree_path(const char *path, char *to, size_t size)
{
	int saved = errno;
	bool found = false;

	if (svpi_busy || !path || path[0] != '/' || !is_served(path))
		return false;
	svpi_busy = true;
	if (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0 && have())
		found = snprintf(to, size, "%s%s", root, path) < (int)size && syscall(SYS_faccessat, AT_FDCWD, to, F_OK) == 0;
	svpi_busy = false;
	errno = saved;
	return found;
}
