/*
 * Functions of libibverbs that the preloaded library calls. It is not linked with libibverbs, because programs that
 * use no device must run without it.
 */
#ifndef SVPI_LIBRARY_H
#define SVPI_LIBRARY_H

#include <stdbool.h>
#include <sys/types.h>

#include "../ipc/layouts.h"
#include "../verbs/verbs.h"

extern struct svpi_verbs {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_device)(struct ibv_context *, struct ibv_device_attr *);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	ssize_t (*query_gid_table)(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t);
	bool (*port_interface)(struct ibv_context *, char name[16]);
	bool (*link_address_of)(struct ibv_context *, uint32_t index, struct svpi_link_address *);
	void (*identity)(struct ibv_context *, char version[64], char board[64]);
	int (*query_pkey)(struct ibv_context *, uint8_t, int, uint16_t *);
} svpi_verbs;

/* The rows of the largest GID table. */
enum { SVPI_MOST_GIDS = 128 };

/* svpi_library_load fills svpi_verbs. If anyway is false it uses libibverbs only if the program has already loaded
 * it. False: there is none, or it is another implementation, which has devices of its own. */
bool svpi_library_load(bool anyway);

/* Set while this thread is in the preloaded library: its own calls go straight to the C library. */
extern __thread bool svpi_busy;

#endif
