#define _GNU_SOURCE
#include "turn.h"

#include <errno.h>
#include <sys/mman.h>

struct svpi_turn *svpi_turn_make(void)
{
	struct svpi_turn *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;

	if (t == MAP_FAILED)
		return NULL;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); /* a process that dies gives it up */
	pthread_mutex_init(&t->asks, &a);
	pthread_mutex_init(&t->sends, &a);
	pthread_mutexattr_destroy(&a);
	return t;
}

void svpi_turn_free(struct svpi_turn *t)
{
	if (t)
		munmap(t, sizeof(*t));
}

int svpi_turn_lock(pthread_mutex_t *m, const bool *begun, bool wait)
{
	int error = wait ? pthread_mutex_lock(m) : pthread_mutex_trylock(m);

	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(m);
	if (error || !*begun)
		return error;
	pthread_mutex_unlock(m);
	return ECONNRESET;
}
