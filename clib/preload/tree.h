/*
 * What a kernel shows of RDMA devices in /dev/infiniband and /sys/class, made as ordinary files for one process, because
 * some programs look there (UCX: is /dev/infiniband/uverbs0 a character device?) before they ask libibverbs.
 */
#ifndef SVPI_TREE_H
#define SVPI_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* svpi_tree_path writes where the file of a path is in this process's tree, which is made when a path is asked for
 * first. False: the path is none of those that are served, or exists, or there is no device. errno stays as it was. */
bool svpi_tree_path(const char *path, char *to, size_t size);

#endif
