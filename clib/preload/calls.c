/*
 * The C library's functions by which programs look at files. Paths that do not exist are replaced by those of this
 * process's tree (see tree.h). Everything else is passed on unchanged.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tree.h"

#define EXPORT __attribute__((visibility("default")))

/* path_or_ours returns the path to use instead of path. */
static const char *path_or_ours(const char *path, char ours[PATH_MAX])
{
	return svpi_tree_path(path, ours, PATH_MAX) ? ours : path;
}

/* CALL defines a function; types are its parameters with their types, arguments without (one of them is path). */
#define CALL(type, name, types, arguments)                                                                             \
	EXPORT type name types                                                                                         \
	{                                                                                                              \
		static type(*next) types;                                                                              \
		char ours[PATH_MAX];                                                                                   \
                                                                                                                       \
		if (!next)                                                                                             \
			next = (type(*) types)dlsym(RTLD_NEXT, #name);                                                 \
		path = path_or_ours(path, ours);                                                                       \
		return next arguments;                                                                                 \
	}

/* Programs compiled against C libraries before 2.33 call these instead of stat, lstat and fstatat. */
int __xstat(int, const char *, struct stat *);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat(int, const char *, struct stat *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __fxstatat64(int, int, const char *, struct stat64 *, int);
/* Programs compiled with -D_FORTIFY_SOURCE call these. */
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
char *__realpath_chk(const char *, char *, size_t);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);

CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode))
CALL(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
CALL(int, __open_2, (const char *path, int flags), (path, flags))
CALL(int, __open64_2, (const char *path, int flags), (path, flags))
CALL(int, __openat_2, (int at, const char *path, int flags), (at, path, flags))
CALL(int, __openat64_2, (int at, const char *path, int flags), (at, path, flags))

CALL(int, stat, (const char *path, struct stat *s), (path, s))
CALL(int, stat64, (const char *path, struct stat64 *s), (path, s))
CALL(int, fstatat, (int at, const char *path, struct stat *s, int flags), (at, path, s, flags))
CALL(int, fstatat64, (int at, const char *path, struct stat64 *s, int flags), (at, path, s, flags))
CALL(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *s), (at, path, flags, mask, s))
CALL(int, __xstat, (int version, const char *path, struct stat *s), (version, path, s))
CALL(int, __xstat64, (int version, const char *path, struct stat64 *s), (version, path, s))
CALL(int, __fxstatat, (int version, int at, const char *path, struct stat *s, int flags), (version, at, path, s, flags))
CALL(int, __fxstatat64, (int version, int at, const char *path, struct stat64 *s, int flags), (version, at, path, s, flags))
CALL(int, access, (const char *path, int mode), (path, mode))
CALL(int, eaccess, (const char *path, int mode), (path, mode))
CALL(int, euidaccess, (const char *path, int mode), (path, mode))
CALL(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags))

CALL(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size))
CALL(ssize_t, readlinkat, (int at, const char *path, char *to, size_t size), (at, path, to, size))
CALL(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room), (path, to, size, room))
CALL(char *, realpath, (const char *path, char *to), (path, to))
CALL(char *, __realpath_chk, (const char *path, char *to, size_t room), (path, to, room))

CALL(ssize_t, getxattr, (const char *path, const char *name, void *to, size_t size), (path, name, to, size))
CALL(ssize_t, lgetxattr, (const char *path, const char *name, void *to, size_t size), (path, name, to, size))
CALL(ssize_t, listxattr, (const char *path, char *to, size_t size), (path, to, size))
CALL(ssize_t, llistxattr, (const char *path, char *to, size_t size), (path, to, size))

typedef int filter(const struct dirent *);
typedef int order(const struct dirent **, const struct dirent **);
typedef int filter64(const struct dirent64 *);
typedef int order64(const struct dirent64 **, const struct dirent64 **);

CALL(int, chdir, (const char *path), (path))
CALL(DIR *, opendir, (const char *path), (path))
CALL(int, scandir, (const char *path, struct dirent ***list, filter *f, order *o), (path, list, f, o))
CALL(int, scandir64, (const char *path, struct dirent64 ***list, filter64 *f, order64 *o), (path, list, f, o))

/* In the tree the devices are links, in /dev they are not: so lstat behaves as stat. */
#define CALL_LSTAT(name, types, arguments, without_link)                                                       \
	EXPORT int name types                                                                                          \
	{                                                                                                              \
		static int(*next) types;                                                                               \
		char ours[PATH_MAX];                                                                                   \
                                                                                                                       \
		if (!next)                                                                                             \
			next = (int(*) types)dlsym(RTLD_NEXT, #name);                                                  \
		return svpi_tree_path(path, ours, sizeof(ours)) ? without_link : next arguments;                       \
	}

CALL_LSTAT(lstat, (const char *path, struct stat *s), (path, s), stat(ours, s))
CALL_LSTAT(lstat64, (const char *path, struct stat64 *s), (path, s), stat64(ours, s))
CALL_LSTAT(__lxstat, (int version, const char *path, struct stat *s), (version, path, s), __xstat(version, ours, s))
CALL_LSTAT(__lxstat64, (int version, const char *path, struct stat64 *s), (version, path, s),
	   __xstat64(version, ours, s))

/* There is a mode argument only if the call may create a file. */
static mode_t mode_of(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

#define CALL_OPEN(name)                                                                                                \
	EXPORT int name(const char *path, int flags, ...)                                                              \
	{                                                                                                              \
		static int (*next)(const char *, int, ...);                                                            \
		char ours[PATH_MAX];                                                                                   \
		va_list args;                                                                                          \
                                                                                                                       \
		if (!next)                                                                                             \
			next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                               \
		va_start(args, flags);                                                                                 \
		mode_t mode = mode_of(flags, args);                                                                    \
		va_end(args);                                                                                          \
		return next(path_or_ours(path, ours), flags, mode);                                                    \
	}

#define CALL_OPENAT(name)                                                                                              \
	EXPORT int name(int at, const char *path, int flags, ...)                                                      \
	{                                                                                                              \
		static int (*next)(int, const char *, int, ...);                                                       \
		char ours[PATH_MAX];                                                                                   \
		va_list args;                                                                                          \
                                                                                                                       \
		if (!next)                                                                                             \
			next = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name);                          \
		va_start(args, flags);                                                                                 \
		mode_t mode = mode_of(flags, args);                                                                    \
		va_end(args);                                                                                          \
		return next(at, path_or_ours(path, ours), flags, mode);                                                \
	}

CALL_OPEN(open)
CALL_OPEN(open64)
CALL_OPENAT(openat)
CALL_OPENAT(openat64)
