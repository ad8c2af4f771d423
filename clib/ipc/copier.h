/* The copier: copies in this program's memory for a driver that may not access it (docs/spec/ipc.md). It is the only
 * thread that the library ever starts, and only if the kernel leaves no other way. */
#ifndef SVPI_COPIER_H
#define SVPI_COPIER_H

struct svpi;

int svpi_copier_start(struct svpi *); /* returns 0 or an errno */
void svpi_copier_stop(struct svpi *);

#endif
