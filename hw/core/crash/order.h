/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One order over the machines of a recording: by what was sent and received, never by clocks.
 *
 * Each machine's trace is in the machine's own order.  Between machines there is one kind of edge:
 * a frame that one of them sent is before the event that another one received it.  Frames are
 * known by length and CRC32c.  The caller reads each trace twice: sg_crash_order_scan() counts the
 * frames that were sent; sg_crash_order_run() delivers all events of all machines in one order
 * that contradicts no edge, and with each event its past: for each machine the number of the last
 * event that is among its causes.
 *
 * If several sendings could be what was received, all of them that are possible are in its past:
 * a past is never too small, so no promise begins too early.  Where each frame differs from all
 * others, a past is exactly what is known.  A frame that no recorded machine sent has no edge; it
 * is counted.  What a peer passes on that is not recorded is not known.
 *
 * A trace without its end is a beginning of what the machine did.  What it sent behind that is not
 * known: a frame that nobody sent, and that is received when such a machine has no more events,
 * may come from there.  The receiver's past of that machine is SG_CRASH_BEYOND from then on, which
 * no event number of the trace reaches.
 *
 * How a caller uses it, with one struct sg_trace_reader for each trace and pass:
 *
 *     o = sg_crash_order_new(machines);
 *     for each machine i: open a reader; sg_crash_order_scan(o, i, sg_crash_reader_source(r));
 *     for each machine i: open a new reader; source[i] = sg_crash_reader_source(r);
 *     while (!sg_crash_order_run(o, source, ordered, opaque)) {
 *         new readers and sources; forget what was delivered (new promises)
 *     }
 *     sg_crash_order_counts(o); sg_crash_order_free(o);
 *
 * Memory: for each frame that is sent 4 octets, at most 80 MiB whatever the traces are; of each
 * machine the last SG_CRASH_FRAMES / machines frames that it sent, with their pasts, at most 90 MB
 * together; 60 MB at most for frames that are not unique.  The time of a frame is proportional to
 * the number of machines.  Whatever the traces say, a run delivers each event once, those of a
 * machine in their order, and ends.
 */
#ifndef SG_CRASH_ORDER_H
#define SG_CRASH_ORDER_H

#include "trace/reader.h"

struct sg_crash_order;

enum {
    SG_CRASH_MACHINES = 16,
    SG_CRASH_FRAMES = 1 << 18, /* remembered; half of them is the horizon */
    SG_CRASH_RUNS = 20,
};

/* In a past: a cause is behind the end of that machine's trace. */
#define SG_CRASH_BEYOND UINT64_MAX

/* Events of one machine in their order, numbered from 1 without gaps. */
struct sg_crash_source {
    /* Valid until the next call; NULL: there are no more. */
    const struct sg_trace_event *(*next)(void *opaque);
    /* After NULL: is that the orderly end of the trace? */
    bool (*complete)(void *opaque);
    void *opaque;
};

/* The rest of a trace that is open.  The reader's status says afterwards why it ended. */
struct sg_crash_source sg_crash_reader_source(struct sg_trace_reader *r);

/*
 * An event, with its past: one number for each machine, 0: none.  past[machine] is the event's own
 * number.  Both are valid during the call.
 */
typedef void (*sg_crash_ordered)(void *opaque, unsigned machine, const struct sg_trace_event *e,
                                 const uint64_t *past);

struct sg_crash_order_counts {
    unsigned runs;
    uint64_t events;         /* of this run, as all that follow */
    uint64_t sent, received; /* frames */
    uint64_t matched;        /* received, and sent by another machine */
    uint64_t own;            /* received, and only sent by the machine itself: no edge */
    uint64_t unmatched;      /* received, and sent by none: peers that are not recorded */
    uint64_t ambiguous;      /* of the matched ones: several sendings could be it */
    uint64_t given_up;       /* too many sendings could be it: the past became SG_CRASH_BEYOND */
    uint64_t beyond;         /* of the unmatched ones: may come from behind the end of a trace */
    bool cut_short[SG_CRASH_MACHINES]; /* the trace has no end */
};

/* machines: 1 to SG_CRASH_MACHINES.  Never NULL. */
struct sg_crash_order *sg_crash_order_new(unsigned machines);
void sg_crash_order_free(struct sg_crash_order *o); /* NULL is allowed */
/* Takes all events of the machine; once for each machine, before the run. */
void sg_crash_order_scan(struct sg_crash_order *o, unsigned machine, struct sg_crash_source source);
/*
 * Takes the same events again, and delivers them.  source has one element per machine.  False: the
 * pasts were not great enough, because frames of the same content could be later ones.  Forget what
 * was delivered and run again with new sources: at most SG_CRASH_RUNS times, mostly once.
 */
bool sg_crash_order_run(struct sg_crash_order *o, const struct sg_crash_source *source,
                        sg_crash_ordered ordered, void *opaque);
const struct sg_crash_order_counts *sg_crash_order_counts(const struct sg_crash_order *o);

#endif
