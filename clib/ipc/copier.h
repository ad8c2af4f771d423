/* The copier: copies in this program's memory for a driver that may not reach it (docs/ipc.md). Its thread is the
 * only one that the library ever has, and only where the kernel leaves no other way. */
#ifndef SVPI_COPIER_H
#define SVPI_COPIER_H

struct svpi;

int svpi_copier_start(struct svpi *); /* 0, or an errno */
void svpi_copier_stop(struct svpi *);

#endif
