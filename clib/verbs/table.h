/* Objects by the handles that events name them by. */
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

/* svpi_table_count finds an object, NULL where there is none, and adds 1 to the counter at this offset in it before it
 * can go away: whoever ends the object waits for what was counted. */
void *svpi_table_count(struct svpi_table *, uint32_t handle, unsigned counter);

#endif
