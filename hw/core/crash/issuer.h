/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who issued a store: an instruction, a kind of message for a service, another device.
 *
 * Stores of one issuer are stores of one place in a program, as far as a trace tells: a program
 * counter with its page tables (not in the kernel, where all processes share it), or the kind of
 * message and the port of the connection's passive side.  Queue pairs come and go; the port of a
 * service stays.
 *
 * Memory: 4 octets for an event, and a small structure for each issuer.
 */
#ifndef SG_CRASH_ISSUER_H
#define SG_CRASH_ISSUER_H

#include <glib.h>

#include "trace/event.h"

enum sg_crash_issuer_kind {
    SG_CRASH_NOBODY, /* the event stores nothing */
    SG_CRASH_BY_CPU,
    SG_CRASH_BY_WRITE, /* RDMA Write: a tagged message */
    SG_CRASH_BY_SEND,
    SG_CRASH_BY_ATOMIC_WRITE,
    SG_CRASH_BY_ATOMIC,
    SG_CRASH_BY_DEVICE, /* that is no adapter */
    SG_CRASH_ISSUER_KINDS,
};

struct sg_crash_issuer {
    uint8_t kind; /* enum sg_crash_issuer_kind */
    uint32_t unit;
    uint32_t port; /* of messages; 0: the trace does not have the connection */
    uint64_t pc, root;
};

struct sg_crash_issuers {
    GArray *of_event; /* uint32_t: number of the issuer */
    GArray *all;      /* struct sg_crash_issuer; number 0: nobody */
    GHashTable *known;
    GHashTable *ports; /* (adapter, QP) to port */
    uint32_t last;     /* of the last store, which is often that of the next */
};

void sg_crash_issuers_init(struct sg_crash_issuers *x);
void sg_crash_issuers_fini(struct sg_crash_issuers *x);
/* The next event of the trace. */
void sg_crash_issuers_add(struct sg_crash_issuers *x, const struct sg_trace_event *e);
/* The number of an event's issuer; 0: nobody. */
uint32_t sg_crash_issuers_of(const struct sg_crash_issuers *x, uint64_t event);
const struct sg_crash_issuer *sg_crash_issuers_at(const struct sg_crash_issuers *x, uint32_t n);
/* "cpu", "write"... as in result.json */
const char *sg_crash_issuer_kind_name(unsigned kind);
/* Appends it for people: "the store at 0xffffffff81000000", "an RDMA Write to port 7000". */
void sg_crash_issuer_text(const struct sg_crash_issuer *x, GString *out);

#endif
