/* Objects by handle, as events name them. */
#ifndef SVPI_TABLE_H
#define SVPI_TABLE_H

#include <pthread.h>
#include <stdint.h>

struct svpi_table {
	pthread_mutex_t lock;
	struct svpi_row { uint32_t handle; void *object; } *rows; /* object NULL: free */
	uint32_t size, used; /* size is a power of two, or 0 */
};

int svpi_table_add(struct svpi_table *, uint32_t handle, void *object); /* 0, or ENOMEM */
void svpi_table_remove(struct svpi_table *, uint32_t handle);

/* svpi_table_count finds an object, or returns NULL. Under the table's lock it adds 1 to the counter at this offset
 * in the object; whoever destroys the object waits until all counted events are acknowledged, so it cannot go away
 * before. */
void *svpi_table_count(struct svpi_table *, uint32_t handle, unsigned counter);

/* svpi_table_look calls look, under the table's lock, with an object, or with NULL if there is none. */
void svpi_table_look(struct svpi_table *, uint32_t handle, void (*look)(const void *object, void *arg), void *arg);

#endif
