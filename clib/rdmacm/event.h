/* Translating the driver's events into those of the program. */
#ifndef SVPI_CM_EVENT_H
#define SVPI_CM_EVENT_H

#include "id.h"

/* event_take translates an event of the driver. *out is NULL if it does not concern the program. Returns 0 or an
 * errno. */
int event_take(struct channel *, const struct svpi_event *, struct rdma_cm_event **out);

/* event_is_idle tells whether an event does not concern the program, for example because its id has been destroyed.
 * */
bool event_is_idle(struct channel *, const struct svpi_event *);

#endif
