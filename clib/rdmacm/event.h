/* What programs are told of the driver's events. */
#ifndef SVPI_CM_EVENT_H
#define SVPI_CM_EVENT_H

#include "id.h"

/* event_take makes an event of the driver's one of the program's. *out is NULL where the program has nothing to learn. 0, or
 * an errno. */
int event_take(struct channel *, const struct svpi_event *, struct rdma_cm_event **out);

/* event_is_idle tells that the program has nothing to learn of an event, as it is of an id that was destroyed since. */
bool event_is_idle(struct channel *, const struct svpi_event *);

#endif
