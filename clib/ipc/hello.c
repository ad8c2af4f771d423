/* The exchange of hello and welcome between program and driver. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "own.h"
#include "stream.h"

enum { HELLO_LOOKS = 2 };

int svpi_dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *path = getenv("SOFTVPI_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");
	const char *function = getenv("SOFTVPI_FUNCTION");
	char tmp[sizeof(a.sun_path)];
	int fd, n;

	if (path && *path)
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	else if (dir && *dir == '/')
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/softvpi/driver.sock", dir);
	else if ((n = svpi_temporary(tmp, sizeof(tmp))) < (int)sizeof(tmp))
		n = snprintf(a.sun_path, sizeof(a.sun_path), "%.*s/driver.sock", n, tmp);
	if (n >= (int)sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = svpi_own(a.sun_path);
	if (fd) {
		errno = fd;
		return -1;
	}
	/* The socket of the virtual function that the program is to have is beside the driver's. */
	if (function && *function && !strstr(a.sun_path, ".functions/"))
		n += snprintf(a.sun_path + n, sizeof(a.sun_path) - n, ".functions/%s.sock", function);
	if (n >= (int)sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	do
		n = connect(fd, (struct sockaddr *)&a, sizeof(a));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		n = errno;
		close(fd);
		errno = n;
		return -1;
	}
	return fd;
}

static void program_name(uint8_t name[64])
{
	extern char *program_invocation_short_name;

	memset(name, 0, 64);
	strncpy((char *)name, program_invocation_short_name, 63);
}

/* svpi_show permits the driver to access this process's memory, if the kernel requires permission, and writes a nonce
 * that the driver and neighbours read to prove that they can. Returns 0 or an errno. */
int svpi_show(struct svpi *s, uint64_t *addr, uint8_t nonce[16])
{
	struct ucred driver;
	socklen_t n = sizeof(driver);

	if (getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &driver, &n) == 0 && driver.pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)driver.pid, 0, 0, 0);
	if (getrandom(s->probe, 16, 0) != 16)
		return EIO;
	memcpy(nonce, s->probe, 16);
	*addr = (uintptr_t)s->probe;
	return 0;
}

/* hear waits briefly for a frame that the driver should send at once. */
static int hear(struct svpi *s, struct svpi_frame *h)
{
	int error = EAGAIN;

	for (int looks = 0; error == EAGAIN && looks < HELLO_LOOKS; looks++)
		error = svpi_frame_read(s, h, true);
	return error == EAGAIN ? svpi_fail(ETIMEDOUT, "the driver does not answer") : error;
}

/* svpi_say_hello introduces the program, and takes the driver's welcome and the first arena. */
int svpi_say_hello(struct svpi *s)
{
	struct svpi_hello q = { .magic = SVPI_MAGIC, .major = SVPI_MAJOR, .minor = SVPI_MINOR,
				.features = SVPI_FEATURE_SEGMENTS | SVPI_FEATURE_PROCESS_VM | SVPI_FEATURE_COPIER };
	const char *path = getenv("SOFTVPI_MEMORY_PATH"), *direct = getenv("SOFTVPI_DIRECT");
	struct svpi_frame h;
	int error, wake, copier;

	error = svpi_show(s, &q.probe_addr, q.nonce);
	if (error)
		return error;
	if (path && *path)
		q.path = !strcmp(path, "process_vm") ? SVPI_PATH_PROCESS_VM : !strcmp(path, "copier") ? SVPI_PATH_COPIER : 0;
	if (!direct || strcmp(direct, "off"))
		q.features |= SVPI_FEATURE_DIRECT | SVPI_FEATURE_PROCESS;
	program_name(q.name);
	error = svpi_frame_send(s, SVPI_HELLO, 1, &q, sizeof(q));
	if (!error)
		error = hear(s, &h);
	if (error)
		return error;
	if (h.op != SVPI_HELLO || !(h.flags & SVPI_FLAG_RESPONSE))
		return EPROTO;
	if (h.flags & SVPI_FLAG_ERROR)
		return h.length < SVPI_FRAME_HEADER + 8 ? EPROTO : svpi_refused(s->frame, h.length - SVPI_FRAME_HEADER);
	if (h.length != SVPI_FRAME_HEADER + sizeof(s->about))
		return EPROTO;
	memcpy(&s->about, s->frame, sizeof(s->about));
	s->direct = s->about.features & SVPI_FEATURE_DIRECT;
	wake = svpi_fd_take(s);
	copier = s->about.copier_bytes ? svpi_fd_take(s) : -1;
	s->wake = wake;
	if (wake < 0 || s->about.magic != SVPI_MAGIC || s->about.major != SVPI_MAJOR || s->about.credits == 0)
		return EPROTO;
	fcntl(wake, F_SETFL, fcntl(wake, F_GETFL) | O_NONBLOCK);
	if (s->about.copier_bytes) {
		s->copier = copier < 0 ? NULL : svpi_map(copier, s->about.copier_bytes);
		if (copier >= 0)
			close(copier);
		if (!s->copier)
			return EPROTO;
	}
	error = hear(s, &h);
	if (error)
		return error;
	if (h.op != SVPI_ARENA || (error = svpi_arena_take(s, h.length - SVPI_FRAME_HEADER)))
		return EPROTO;
	s->doorbells.h = s->arenas[0];
	s->doorbells.entries = (uint8_t *)s->arenas[0] + sizeof(struct svpi_ring_header);
	s->doorbells.count = s->about.doorbells;
	return 0;
}
