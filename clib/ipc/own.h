/* Who owns the directory of a socket. internal/os/paths applies the same rule for the driver, Go programs and the tools.
 * */
#ifndef SVPI_OWN_H
#define SVPI_OWN_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* svpi_temporary writes the directory of this user's sockets for when XDG_RUNTIME_DIR is not set. Returns its length,
 * as snprintf does. */
static inline int svpi_temporary(char *dir, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	size_t n;

	if (!tmp || !*tmp)
		tmp = "/tmp";
	for (n = strlen(tmp); n > 1 && tmp[n - 1] == '/'; n--)
		;
	return snprintf(dir, size, "%.*s/softvpi-%d", (int)n, tmp, (int)getuid());
}

/* svpi_own tells whether a socket may be trusted: 0, or an errno if it lies in that directory and another user made
 * the directory or can change its contents. Sockets anywhere else are the user's responsibility. */
static inline int svpi_own(const char *socket)
{
	char dir[256];
	struct stat s;
	int n = svpi_temporary(dir, sizeof(dir));

	if (n >= (int)sizeof(dir) || strncmp(socket, dir, (size_t)n) || socket[n] != '/' || strchr(socket + n + 1, '/'))
		return 0;
	if (lstat(dir, &s))
		return errno == ENOENT ? 0 : errno;
	return S_ISDIR(s.st_mode) && s.st_uid == getuid() && !(s.st_mode & 022) ? 0 : EPERM;
}

#endif
