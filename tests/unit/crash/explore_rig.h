/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces of two machines, a client and a target with persistent memory, as files in memory; and
 * their exploration, without staghorn-explore.
 *
 * A queue pair has the same number at both ends.  Each message is a frame of its own.
 */
#ifndef SG_TESTS_EXPLORE_RIG_H
#define SG_TESTS_EXPLORE_RIG_H

#include "crash/timeline.h"
#include "trace/writer.h"

enum { XR_TARGET, XR_CLIENT, XR_MACHINES, XR_QPS = 4, XR_SIZE = 16384 };

#define XR_BASE 0x100000000ull

struct xr_machine {
    struct sg_trace_writer *writer;
    GByteArray *file;
};

struct xr {
    struct xr_machine machine[XR_MACHINES];
    uint32_t frames;
    uint64_t ordinal[XR_QPS], wr_id;
    /* The result: */
    struct sg_trace_reader *reader[XR_MACHINES];
    struct sg_crash_order *order;
    struct sg_crash_promises *promises;
    struct sg_crash_issuers issuers;
    struct sg_crash_platform platform[SG_CRASH_PLATFORMS];
    unsigned platforms;
    uint8_t arrivals; /* of all of them: enum sg_crash_arrivals; to be set before the exploration */
    uint8_t *memory[SG_CRASH_PLATFORMS][SG_CRASH_PASTS]; /* visible memory, then the media */
    struct sg_crash_explorer *explorer;
    const char *wrong; /* sg_crash_explorer_event() */
    GArray *bugs;
    struct sg_crash_teller *teller; /* as the next ones: after xr_tell() */
    struct sg_crash_timelines *timelines;
    sg_crash_point *point; /* of the exploration; may be set before it */
    void *opaque;
};

/* told: the header's text SG_TRACE_PLATFORM. */
void xr_init(struct xr *r, const char *told);
/* With this content of the memory at the start; within: the trace has it. */
void xr_init_content(struct xr *r, const char *told, const uint8_t content[XR_SIZE], bool within);
/* The client has a memory, too, at the same addresses. */
void xr_init_both(struct xr *r, const char *told);
void xr_free(struct xr *r);
/* Adds an event; returns its number. */
uint64_t xr_event(struct xr *r, unsigned machine, struct sg_trace_event e);
/* A frame from one machine to the other. */
void xr_frame(struct xr *r, unsigned from);
void xr_connect(struct xr *r, uint32_t qpn, uint16_t port);
/*
 * An RDMA Write of `value` eight octets long to an offset of the memory; its completion is
 * delivered if wanted.  Returns the event of its placement.
 */
uint64_t xr_write(struct xr *r, uint32_t qpn, uint64_t off, uint64_t value, bool completes);
/* An RDMA Flush, which has to reach what the queue pair wrote.  Returns its completion's event. */
uint64_t xr_flush(struct xr *r, uint32_t qpn, uint64_t off, uint64_t len);
/* CPU 0 of the target, at an instruction. */
uint64_t xr_store(struct xr *r, uint64_t pc, uint64_t off, uint64_t value, unsigned flags);
void xr_clwb(struct xr *r, uint64_t off);
void xr_sfence(struct xr *r);
void xr_mark(struct xr *r, unsigned machine, const char *kind, const char *text);
/* The text of a durable mark. */
void xr_durable(struct xr *r, uint64_t off, uint64_t len);

/* Ends the traces. */
void xr_end(struct xr *r);
/* Ends the traces and explores them on these platforms. */
void xr_explore(struct xr *r, const char *domains, const char *ddio, unsigned acks);
/* Afterwards: tells the bugs' stories, and plots their timelines. */
void xr_tell(struct xr *r);
/* At a crash point: both memories of its past. */
const uint8_t *xr_memory(const struct xr *r, unsigned platform);
/* The number of a platform; fails the case if it is not there. */
unsigned xr_platform(const struct xr *r, const char *name);
/* The platforms on which something is broken, "none,ddio=on adr,ddio=on". The caller frees it. */
char *xr_broken(const struct xr *r);

#endif
