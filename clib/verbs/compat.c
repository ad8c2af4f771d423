/* Rarely used functions: sysfs, fork, the kernel's own formats. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "object.h"

EXPORT const char *ibv_get_sysfs_path(void)
{
	const char *p = getenv("SYSFS_PATH");

	return p ? p : "/sys";
}

/* identity_of reads a file that tells who a device of ours is: programs that are not started by softvpi verbs run do not see it in
 * /sys. */
static int identity_of(const char *dir, const char *file, char *buf, size_t size)
{
	struct svpi_firmware f;
	struct svpi *s = NULL;
	unsigned number;
	int n = -1, end = 0;

	if (sscanf(dir, "/sys/class/infiniband/softvpi%u%n", &number, &end) != 1 || dir[end] || !size ||
	    (strcmp(file, "board_id") && strcmp(file, "fw_ver")) || !(s = svpi_get()))
		return -1;
	if (svpi_firmware_of(s, number, &f))
		n = snprintf(buf, size, "%s", (const char *)(*file == 'b' ? f.board : f.version));
	svpi_put(s);
	return n < (int)size ? n : (int)size - 1;
}

EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	FILE *f;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -1;
	if (!(f = fopen(path, "re")))
		return identity_of(dir, file, buf, size);
	n = fread(buf, 1, size, f);
	fclose(f);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = 0;
	else if (n < size)
		buf[n] = 0;
	return (int)n;
}

/* The driver copies from the process's memory as it is at that moment, so no memory has to be protected from
 * copy-on-write. */
EXPORT int ibv_fork_init(void) { return 0; }
EXPORT enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }
EXPORT int ibv_dontfork_range(void *base, size_t size) { (void)base, (void)size; return 0; }
EXPORT int ibv_dofork_range(void *base, size_t size) { (void)base, (void)size; return 0; }

/* Conversions from the kernel's structures, which do not occur here. */
EXPORT void ibv_copy_ah_attr_from_kern(void *dst, void *src) { (void)dst, (void)src; }
EXPORT void ibv_copy_qp_attr_from_kern(void *dst, void *src) { (void)dst, (void)src; }
EXPORT void ibv_copy_path_rec_from_kern(void *dst, void *src) { (void)dst, (void)src; }
EXPORT void ibv_copy_path_rec_to_kern(void *dst, void *src) { (void)dst, (void)src; }
