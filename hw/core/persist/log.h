/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of a persistence domain: inputs, spontaneous events and acknowledgements in one order, in
 * a ring.  persist.h includes this, and has the domain itself.
 */
#ifndef SG_PERSIST_LOG_H
#define SG_PERSIST_LOG_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sg_persist;

enum sg_persist_event_kind {
    /* Inputs: replaying them with the same configuration and seed reproduces everything else. */
    SG_PERSIST_EV_DMA_WRITE = 1,
    SG_PERSIST_EV_ATOM_STORE,
    SG_PERSIST_EV_SETTLE, /* this and the next two: logged only when there is something */
    SG_PERSIST_EV_FORGET,
    SG_PERSIST_EV_DEVICE_FENCE,
    SG_PERSIST_EV_FLUSH, /* arg: flags; 0x100: its begin, 0x200: its end */
    SG_PERSIST_EV_OTHER_WRITE,
    SG_PERSIST_EV_CPU_STORE, /* arg: SG_PERSIST_STORE_*; data: the octets if at most 8 */
    SG_PERSIST_EV_CPU_FLUSH, /* arg: kind */
    SG_PERSIST_EV_CPU_FENCE, /* arg: kind; logged only when there is something */
    SG_PERSIST_EV_CPU_SYNC,  /* likewise */
    SG_PERSIST_EV_ORDERLY,
    SG_PERSIST_EV_DEEP_FLUSH,
    SG_PERSIST_EV_MARK_BAD, /* arg: kind */
    SG_PERSIST_EV_CLEAR_BAD,
    SG_PERSIST_EV_SET_FAULTS, /* addr: extent; arg: bits; msn: flush_fails; data: lines_left */
    SG_PERSIST_EV_MILESTONE,  /* arg: enum sg_pm_milestone */
    SG_PERSIST_EV_TICK,       /* logged only when something is due */
    SG_PERSIST_EV_CONFIGURE,
    SG_PERSIST_EV_CUT, /* arg: outcome; data: seed; addr and at: the policy's range */
    SG_PERSIST_EV_RESTART,
    SG_PERSIST_EV_DMA_READ, /* logged only when something of the range was in S2' */
    SG_PERSIST_EV_CPU_LOAD, /* logged only when it moved something */
    SG_PERSIST_EV_INPUTS,
    /* Consequences and acknowledgements. */
    SG_PERSIST_EV_POSTED = 64, /* S0 -> S1 */
    SG_PERSIST_EV_VISIBLE,     /* S1 -> visible */
    SG_PERSIST_EV_EVICTED,     /* S2 -> S3 by itself */
    SG_PERSIST_EV_DRAINED,     /* S3 -> S4 by itself */
    SG_PERSIST_EV_FLUSH_DONE,  /* an acknowledgement: the range is where arg (flags) promises */
    SG_PERSIST_EV_FLUSH_FAILED,
    SG_PERSIST_EV_REFUSED, /* the medium took no more */
};

/*
 * 64 octets; in the exported log little-endian.  Payload of more than 8 octets: data counts the
 * payload octets logged before, UINT64_MAX if payload is not kept.
 */
struct sg_persist_event {
    uint64_t seq; /* 1.. */
    uint64_t now_ns;
    uint64_t addr;
    uint64_t at;   /* program counter or Tagged Offset */
    uint64_t data; /* payload up to 8 octets in memory order; else its place, below */
    uint32_t len;
    uint32_t qpn;
    uint32_t msn;
    uint32_t arg;
    uint16_t unit;
    uint8_t kind;      /* enum sg_persist_event_kind */
    uint8_t agent;     /* enum sg_persist_agent */
    uint32_t reserved; /* 0 */
};

const char *sg_persist_event_name(unsigned kind);
/* Oldest sequence number still kept and the newest; 0 and 0: empty. */
void sg_persist_log_bounds(const struct sg_persist *p, uint64_t *oldest, uint64_t *newest);
/* False: not kept (any more). */
bool sg_persist_log_event(const struct sg_persist *p, uint64_t seq, struct sg_persist_event *e);
/* Append the log in its versioned format (docs/persistence.md). */
void sg_persist_log_export(const struct sg_persist *p, GByteArray *out);
/*
 * Apply the inputs of an exported log to p, whose extents are set up as the recorded ones were and
 * whose limits are equal.  The log must reach back to its first event and have all payload.
 * NULL, or a static text.  Cuts are applied; the visible memories are made equal to the media.
 */
const char *sg_persist_log_replay(struct sg_persist *p, const uint8_t *log, size_t len);

#endif
