/*
 * What a kernel shows of RDMA devices in /dev/infiniband and /sys/class (infiniband, infiniband_verbs, and the devices of
 * network interfaces), as ordinary files for one process, because
 * some programs look there before they ask libibverbs (UCX: is /dev/infiniband/uverbs0 a character device?).
 */
#ifndef SVPI_TREE_H
#define SVPI_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* Link-layer addresses of IPoIB interfaces are shown in place of the system's files, which know none (links.h). */

/* svpi_tree_path writes where the file for path is in this process's tree, which is made at the first call that needs
 * it, and follows the devices. False: path is not one of those that the tree serves, or it exists, or there is no device. errno is preserved.
 * */
bool svpi_tree_path(const char *path, char *to, size_t size);

#endif
