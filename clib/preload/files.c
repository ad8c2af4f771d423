/* Writing the files of the tree. What is there already is replaced as a whole: programs may be reading it. */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char svpi_root[PATH_MAX];

static bool path_of(const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s%s", svpi_root, name) < PATH_MAX;
}

static bool make_dirs(char *path)
{
	for (char *p = path + strlen(svpi_root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
		*p = '/';
		if (!made)
			return false;
	}
	return true;
}

/* has tells whether a file holds a text. */
static bool has(const char *path, const char *text, size_t n)
{
	char old[257];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, old, sizeof(old));

	if (fd >= 0)
		close(fd);
	return got == (ssize_t)n && !memcmp(old, text, n);
}

static bool write_new(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0)
		return false;
	bool done = write(fd, text, n) == (ssize_t)n;

	close(fd);
	return done;
}

bool svpi_put(const char *name, const char *format, ...)
{
	char path[PATH_MAX], other[PATH_MAX], text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n >= (int)sizeof(text) || !path_of(name, path))
		return false;
	if (write_new(path, text, (size_t)n))
		return true;
	if (errno == ENOENT)
		return make_dirs(path) && write_new(path, text, (size_t)n);
	if (errno != EEXIST || !path_of("/.new", other))
		return false;
	if (has(path, text, (size_t)n))
		return true;
	unlink(other);
	return write_new(other, text, (size_t)n) && rename(other, path) == 0;
}

bool svpi_put_link(const char *name, const char *to)
{
	char path[PATH_MAX], old[PATH_MAX];
	ssize_t n;

	if (!path_of(name, path) || !make_dirs(path))
		return false;
	if (symlink(to, path) == 0)
		return true;
	n = readlink(path, old, sizeof(old));
	if (n == (ssize_t)strlen(to) && !memcmp(old, to, (size_t)n))
		return true;
	return unlink(path) == 0 && symlink(to, path) == 0;
}

/* same tells whether two paths are names of one file. */
static bool same(const char *a, const char *b)
{
	struct stat x, y;

	return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool svpi_put_name(const char *name, const char *of)
{
	char path[PATH_MAX], file[PATH_MAX], other[PATH_MAX];

	if (!path_of(name, path) || !path_of(of, file) || !path_of("/.new", other))
		return false;
	if (link(file, path) == 0 || (errno == ENOENT && make_dirs(path) && link(file, path) == 0))
		return true;
	if (errno != EEXIST)
		return false;
	if (same(path, file))
		return true;
	unlink(other);
	return link(file, other) == 0 && rename(other, path) == 0;
}

void svpi_drop(const char *name)
{
	char path[PATH_MAX];

	if (path_of(name, path))
		remove(path);
}
