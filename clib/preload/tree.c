/* The tree: a directory for each process that asks for it, removed when the process ends. */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "files.h"

#define PREFIX "softvpi-tree-"

static const char *const served[] = { "/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;
static struct timespec looked; /* when the tree was last compared with the devices */

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
	if (!svpi_root[0] || owner != getpid())
		return;
	svpi_busy = true;
	take_away(svpi_root);
	svpi_root[0] = 0;
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
		if (snprintf(svpi_root, sizeof(svpi_root), "%s/" PREFIX "%d-%lu-XXXXXX", dirs[i], (int)getpid(), pid_space()) < PATH_MAX / 2 && mkdtemp(svpi_root))
			return true;
	}
	svpi_root[0] = 0;
	return false;
}

/* build makes the tree of the present devices. */
static bool build(void)
{
	struct ibv_device **list;
	int n = 0;
	bool done;

	svpi_root[0] = 0;
	if (!svpi_library_load(true))
		return false;
	list = svpi_verbs.get_device_list(&n);
	svpi_show_anew();
	done = list && n > 0 && make_root();
	for (int i = 0; done && i < n; i++)
		done = svpi_show_device(list[i]);
	if (list)
		svpi_verbs.free_device_list(list);
	if (done) {
		owner = getpid();
		clock_gettime(CLOCK_MONOTONIC, &looked);
		return true;
	}
	if (svpi_root[0])
		take_away(svpi_root);
	svpi_root[0] = 0;
	return false;
}

/* follow makes the files those of the devices as they are now, at most 50 times a second. Without a driver they stay. */
static void follow(void)
{
	enum { APART = 20000000 }; /* ns */
	struct ibv_device **list;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((now.tv_sec - looked.tv_sec) * 1000000000L + now.tv_nsec - looked.tv_nsec < APART)
		return;
	list = svpi_verbs.get_device_list(NULL);
	for (int i = 0; list && list[i]; i++)
		svpi_show_device(list[i]);
	if (list)
		svpi_verbs.free_device_list(list);
	clock_gettime(CLOCK_MONOTONIC, &looked);
}

/* is_interface tells whether a path is that of the device of a network interface. */
static bool is_interface(const char *path)
{
	static const char dir[] = "/sys/class/net/", device[] = "/device";
	const char *rest = strncmp(path, dir, sizeof(dir) - 1) ? NULL : strchr(path + sizeof(dir) - 1, '/');

	return rest && !strncmp(rest, device, sizeof(device) - 1) && strchr("/", rest[sizeof(device) - 1]) && !strstr(rest, "/..");
}

/* may_be_ipoib tells whether the system shows an interface as a TUN device, or not at all. errno is preserved. */
static bool may_be_ipoib(const char *name)
{
	char file[96];
	int saved = errno, n = snprintf(file, sizeof(file), "/sys/class/net/%s/tun_flags", name);
	bool may = n < (int)sizeof(file) && syscall(SYS_faccessat, AT_FDCWD, file, F_OK) == 0;

	if (!may) {
		file[n - (int)strlen("/tun_flags")] = 0;
		may = syscall(SYS_faccessat, AT_FDCWD, file, F_OK) != 0;
	}
	errno = saved;
	return may;
}

/* is_link tells whether a path is that of a file about the link-layer address of an interface that may be IPoIB's: such
 * files are shown though the system has them. */
static bool is_link(const char *path)
{
	static const char dir[] = "/sys/class/net/";
	char name[64], file[16];
	int end = 0;

	if (strncmp(path, dir, sizeof(dir) - 1) || sscanf(path + sizeof(dir) - 1, "%63[^/]/%15[a-z_]%n", name, file, &end) != 2 ||
	    path[sizeof(dir) - 1 + (size_t)end] || !strcmp(name, ".."))
		return false;
	for (size_t i = 0; svpi_link_files[i]; i++)
		if (!strcmp(file, svpi_link_files[i]))
			return may_be_ipoib(name);
	return false;
}

static bool is_served(const char *path)
{
	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++) {
		size_t n = strlen(served[i]);

		if (!strncmp(path, served[i], n) && (path[n] == 0 || path[n] == '/'))
			return !strstr(path + n, "/..");
	}
	return is_interface(path);
}

/* A forked child makes its own tree, because its parent's is removed when the parent ends. */
static bool have(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = svpi_root[0] && owner == getpid();
	if (ready)
		follow();
	else
		ready = build();
	pthread_mutex_unlock(&lock);
	return ready;
}

static bool is_empty_gid(const char *path)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = svpi_empty_gid(path);
	pthread_mutex_unlock(&lock);
	return is;
}

bool svpi_tree_path(const char *path, char *to, size_t size)
{
	int saved = errno;
	bool found = false, link;

	if (svpi_busy || !path || path[0] != '/')
		return false;
	link = is_link(path);
	if (!link && !is_served(path))
		return false;
	svpi_busy = true;
	if ((link || syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0) && have()) {
		found = snprintf(to, size, "%s%s", svpi_root, path) < (int)size && syscall(SYS_faccessat, AT_FDCWD, to, F_OK) == 0;
		if (!found && is_empty_gid(path))
			found = snprintf(to, size, "%s" SVPI_EMPTY_GID, svpi_root) < (int)size;
	}
	svpi_busy = false;
	errno = saved;
	return found;
}
