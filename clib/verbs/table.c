#include "object.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t start(const struct svpi_table *t, uint32_t handle) { return (handle * 2654435761u) & (t->size - 1); }

static struct svpi_row *find(struct svpi_table *t, uint32_t handle)
{
	if (!t->size)
		return NULL;
	for (uint32_t i = start(t, handle); t->rows[i].object; i = (i + 1) & (t->size - 1))
		if (t->rows[i].handle == handle)
			return &t->rows[i];
	return NULL;
}

static void put(struct svpi_table *t, uint32_t handle, void *object)
{
	uint32_t i = start(t, handle);

	while (t->rows[i].object)
		i = (i + 1) & (t->size - 1);
	t->rows[i].handle = handle;
	t->rows[i].object = object;
}

static int grow(struct svpi_table *t)
{
	uint32_t old = t->size;
	struct svpi_row *rows = t->rows;

	t->rows = calloc(old ? 2 * (size_t)old : 64, sizeof(*rows));
	if (!t->rows) {
		t->rows = rows;
		return ENOMEM;
	}
	t->size = old ? 2 * old : 64;
	for (uint32_t i = 0; i < old; i++)
		if (rows[i].object)
			put(t, rows[i].handle, rows[i].object);
	free(rows);
	return 0;
}

EXPORT int svpi_table_add(struct svpi_table *t, uint32_t handle, void *object)
{
	int error = 0;

	pthread_mutex_lock(&t->lock);
	if (2 * (t->used + 1) > t->size)
		error = grow(t);
	if (!error) {
		put(t, handle, object);
		t->used++;
	}
	pthread_mutex_unlock(&t->lock);
	return error;
}

EXPORT void svpi_table_remove(struct svpi_table *t, uint32_t handle)
{
	pthread_mutex_lock(&t->lock);
	struct svpi_row *row = find(t, handle);

	if (row) {
		uint32_t i = (uint32_t)(row - t->rows);

		row->object = NULL;
		t->used--;
		/* Entries behind it may have to move into the gap, or a search would stop there. */
		for (i = (i + 1) & (t->size - 1); t->rows[i].object; i = (i + 1) & (t->size - 1)) {
			struct svpi_row moved = t->rows[i];

			t->rows[i].object = NULL;
			put(t, moved.handle, moved.object);
		}
	}
	pthread_mutex_unlock(&t->lock);
}

EXPORT void *svpi_table_count(struct svpi_table *t, uint32_t handle, unsigned counter)
{
	void *object = NULL;

	pthread_mutex_lock(&t->lock);
	struct svpi_row *row = find(t, handle);

	if (row) {
		object = row->object;
		__atomic_add_fetch((uint32_t *)((char *)object + counter), 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&t->lock);
	return object;
}

EXPORT void svpi_table_look(struct svpi_table *t, uint32_t handle, void (*look)(const void *, void *), void *arg)
{
	pthread_mutex_lock(&t->lock);
	struct svpi_row *row = find(t, handle);

	look(row ? row->object : NULL, arg);
	pthread_mutex_unlock(&t->lock);
}
