/*
 * The files of this process's tree (see tree.h). Names are those that programs use, like /sys/class/infiniband.
 */
#ifndef SVPI_FILES_H
#define SVPI_FILES_H

#include <limits.h>
#include <stdbool.h>

#include "library.h"

/* The directory that has them; empty: there is none. Like all here it is protected by the lock of tree.c. */
extern char svpi_root[PATH_MAX];

/* svpi_put writes a file, svpi_put_link a link, unless they are so already. False: it could not be done. */
__attribute__((format(printf, 2, 3))) bool svpi_put(const char *name, const char *format, ...);
bool svpi_put_link(const char *name, const char *to);
/* svpi_put_name makes a file another name of one that is there: names cost the system less than files. */
bool svpi_put_name(const char *name, const char *of);
/* svpi_drop removes a file, a link or an empty directory, if it is there. */
void svpi_drop(const char *name);

/* svpi_show_device writes what is to be seen of a device, and what has changed since the last time. A device that cannot
 * be opened is left as it was. False: a file could not be written. */
bool svpi_show_device(struct ibv_device *);
/* svpi_empty_gid tells whether a name is that of an empty row of a GID table. The files of all of them are one. */
#define SVPI_EMPTY_GID "/.empty-gid"
bool svpi_empty_gid(const char *name);
/* The empty rows of P_Key tables, most of them, are names of this file. */
#define SVPI_EMPTY_PKEY "/.empty-pkey"
/* The files about the link-layer address of a network interface, in its directory; NULL is after the last. */
extern const char *const svpi_link_files[];
/* svpi_show_anew forgets what was written: there is a new directory. */
void svpi_show_anew(void);

#endif
