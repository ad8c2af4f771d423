/*
 * A directory of another user: trust. In the temporary directory a socket is trusted only if no other user can write
 * to this user's directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../ipc/own.h"
#include "../ipc/stream.h"

static int failures;

/* dials tries to attach with the directory in this mode. Returns 0 or an errno. */
static int dials(const char *dir, mode_t mode)
{
	int fd;

	if (chmod(dir, mode))
		return -1;
	fd = svpi_dial();
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void expect(const char *what, int got, int want)
{
	if (got == want)
		return;
	failures++;
	fprintf(stderr, "trust: %s: errno %d, want %d\n", what, got, want);
}

int main(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char base[] = "/tmp/trustXXXXXX", tmp[32], dir[64], moved[80];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!mkdtemp(base))
		return 1;
	snprintf(tmp, sizeof(tmp), "%s//", base);
	unsetenv("SOFTVPI_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	setenv("TMPDIR", tmp, 1);
	expect("nothing there", svpi_dial() < 0 ? errno : 0, ENOENT);
	svpi_temporary(dir, sizeof(dir));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/driver.sock", dir);
	if (mkdir(dir, 0700) || bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 8))
		return 1;
	expect("this user's alone", dials(dir, 0700), 0);
	expect("others may write", dials(dir, 0702), EPERM);
	expect("a group may write", dials(dir, 0720), EPERM);
	setenv("SOFTVPI_SOCKET", a.sun_path, 1);
	expect("the same, asked for", dials(dir, 0702), EPERM);
	unsetenv("SOFTVPI_SOCKET");
	chmod(dir, 0700);
	snprintf(moved, sizeof(moved), "%s-moved", dir);
	if (rename(dir, moved) || symlink(moved, dir))
		return 1;
	expect("a link", svpi_dial() < 0 ? errno : 0, EPERM);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/driver.sock", moved);
	setenv("SOFTVPI_SOCKET", a.sun_path, 1);
	expect("another place", dials(moved, 0702), 0);
	unlink(a.sun_path);
	unlink(dir);
	rmdir(moved);
	rmdir(base);
	if (failures == 0)
		printf("trust      ok\n");
	return failures != 0;
}
