/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections as cm.c and upcalls.c see them.
 */
#ifndef SG_VERBS_CONNECTIONS_CM_IMPL_H
#define SG_VERBS_CONNECTIONS_CM_IMPL_H

#include "verbs/connections/cm.h"

/* An event for the driver, if it knows of the connection. */
void sg_cm_emit(struct sg_cm *cm, enum sg_event event, enum sg_conn_end end);
/* Stores what CM_DATA returns from now on; false: no memory for the private data. */
bool sg_cm_keep_params(struct sg_cm *cm, const struct sg_conn_params *p);
/* The connection has ended for the queue pair; finally: TCP is gone as well. */
void sg_cm_lose_peer(struct sg_cm *cm, bool finally, const char *why);
/* TCP is gone: the last event of this connection. */
void sg_cm_gone(struct sg_cm *cm, enum sg_conn_end why);
/* observe.c: its queue pair has no more to do with it; may be called again. */
void sg_cm_observe_end(struct sg_cm *cm, enum sg_conn_end why);

#endif
