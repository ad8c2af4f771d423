/* What programs are told of the driver's events. */
#ifndef SVPI_CM_EVENT_H
#define SVPI_CM_EVENT_H

#include "id.h"

/* event_take makes an event of the driver's one of the program's. *out is NULL where the program has nothing to learn. 0, or
 * an errno. */
int event_take(struct channel *, const struct svpi_event *, struct rdma_cm_event **out);

#endif
