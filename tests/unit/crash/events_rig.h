/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces in memory as lists of events: what a few machines did, without their persistent memory. */
#ifndef SG_TESTS_EVENTS_RIG_H
#define SG_TESTS_EVENTS_RIG_H

#include <glib.h>

#include "crash/order.h"

struct er_list {
    GArray *events; /* struct sg_trace_event, numbered from 1 */
    GPtrArray *data;
    bool cut_short;
    unsigned next; /* of the source */
};

struct er {
    unsigned machines;
    struct er_list list[SG_CRASH_MACHINES];
};

void er_init(struct er *r, unsigned machines);
void er_free(struct er *r);
/* Adds an event; its payload is copied.  Returns its number. */
uint64_t er_add(struct er *r, unsigned machine, struct sg_trace_event e);
/* A frame with this content. */
uint64_t er_sent(struct er *r, unsigned machine, uint64_t content);
uint64_t er_received(struct er *r, unsigned machine, uint64_t content);
/* Any other event. */
uint64_t er_local(struct er *r, unsigned machine);
/* The machine's own address ends with its number; port: own, peer's. */
uint64_t er_connected(struct er *r, unsigned machine, uint32_t qpn, unsigned port, unsigned peer,
                      unsigned peer_port);
uint64_t er_mark(struct er *r, unsigned machine, const char *name, const char *text);
/* The name of an event of er_mark(). */
const char *er_name(const struct sg_trace_event *e);
/* The events from the first one on. */
struct sg_crash_source er_source(struct er *r, unsigned machine);
/* Scans and runs until it is settled; begin before each run.  The order is still to be freed. */
typedef void er_begin(void *opaque);
struct sg_crash_order *er_run(struct er *r, er_begin *begin, sg_crash_ordered ordered,
                              void *opaque);

#endif
