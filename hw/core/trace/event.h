/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a trace: what happened in one machine, in one order.
 *
 * A kind of event is one row of the table in event.c, which names its fields, their limits and its
 * payload.  Writer and reader know no kind by itself, except that stores are compressed in runs.
 * docs/trace-format.md has the rows and the octets.
 *
 * An argument's numbers are those of persist/persist.h and include/staghorn.
 */
#ifndef SG_TRACE_EVENT_H
#define SG_TRACE_EVENT_H

#include "base/bytes.h"

/* The number is in the file: a row is never renumbered. */
enum sg_trace_kind {
    SG_TRACE_NOTHING, /* no event */
    SG_TRACE_TICK,    /* time passes; every other event has the time of the last tick */

    /* Inputs of CPUs. */
    SG_TRACE_STORE,      /* one instruction's store, or a part of it */
    SG_TRACE_CPU_FLUSH,  /* CLWB, CLFLUSHOPT, CLFLUSH */
    SG_TRACE_CPU_FENCE,  /* SFENCE, MFENCE, locked and serialising instructions */
    SG_TRACE_CPU_SYNC,   /* a device is told something */
    SG_TRACE_ORDERLY,    /* an orderly end of the machine */
    SG_TRACE_WRITE_BACK, /* untracked CPUs write back a range */
    SG_TRACE_DEEP_FLUSH, /* flush hint */

    /* Inputs of adapters. */
    SG_TRACE_PLACE,        /* payload of a segment goes to persistent memory */
    SG_TRACE_ATOMIC_WRITE, /* one atom */
    SG_TRACE_ATOMIC,       /* compare and exchange of one atom */
    SG_TRACE_SETTLE,       /* what a connection has in the adapter is placed */
    SG_TRACE_FORGET,       /* a connection is gone */
    SG_TRACE_DEVICE_FENCE, /* any other DMA of an adapter */
    SG_TRACE_DMA_READ,
    SG_TRACE_FLUSH_BEGIN, /* an RDMA Flush reaches the machine's memory */
    SG_TRACE_FLUSH_END,   /* its outcome is known */
    SG_TRACE_MEDIA_READ,  /* a Verify reads */
    SG_TRACE_VERIFY,      /* its outcome; payload: the hash that the peer expected */
    SG_TRACE_POISON,      /* it failed */
    SG_TRACE_MILESTONE,

    /* Other inputs. */
    SG_TRACE_OTHER_WRITE, /* DMA of another device */
    SG_TRACE_MARK_BAD,
    SG_TRACE_CLEAR_BAD,
    SG_TRACE_FAULTS,    /* of an extent */
    SG_TRACE_CONFIGURE, /* name: the new configuration as text */
    SG_TRACE_FREEZE,    /* an armed cut is due: inputs count again after the restart */
    SG_TRACE_CUT,
    SG_TRACE_RESTART, /* after a cut */
    SG_TRACE_RESET,   /* of the machine, without a cut */

    /* What connections and the port did. */
    SG_TRACE_CONNECTED, /* payload: struct of docs/trace-format.md */
    SG_TRACE_DISCONNECTED,
    SG_TRACE_WORK,      /* a work request starts */
    SG_TRACE_COMPLETED, /* a completion is delivered */
    SG_TRACE_ANSWERED,  /* a response is given to the wire */
    SG_TRACE_FRAME,     /* an Ethernet frame passes the port */

    SG_TRACE_MARK, /* of the guest; name: its kind, payload: the state that holds from now on */
    SG_TRACE_LOAD, /* a CPU has loaded from a line that somebody else wrote since its last load */
    SG_TRACE_KINDS,
};

/* A row lists the fields that it has.  These numbers are in no file. */
enum sg_trace_field {
    SG_TRACE_NO_FIELD,
    SG_TRACE_NOW,     /* ns */
    SG_TRACE_UNIT,    /* vCPU, adapter, extent */
    SG_TRACE_ADDR,    /* address of the machine */
    SG_TRACE_LEN,     /* octets from addr, and of the payload of events that have one */
    SG_TRACE_AT,      /* program counter, or Tagged Offset */
    SG_TRACE_ROOT,    /* address of the page tables */
    SG_TRACE_ARG,     /* kind, flags, mode, milestone, opcode */
    SG_TRACE_STATUS,  /* 0: as asked */
    SG_TRACE_QPN,     /* queue pair */
    SG_TRACE_MSN,     /* message sequence number, 0: none */
    SG_TRACE_ORDINAL, /* which message of its connection and direction, from 1 */
    SG_TRACE_STAG,
    SG_TRACE_VALUE, /* wr_id; seed; compared value; CRC32c; lines_left */
    SG_TRACE_SWAP,  /* the value that an atomic sets; flush_fails */
    SG_TRACE_FOUND, /* the value that it found */
    SG_TRACE_NAME,  /* number of a name (sg_trace_writer_name()), 0: none */
    SG_TRACE_FIELDS,
};

enum sg_trace_bounds {
    SG_TRACE_DATA_MAX = 65536, /* octets of an event's payload */
    SG_TRACE_STORE_MAX = 64,   /* of a store's */
    SG_TRACE_STORE_FLAGS = 8,  /* a store's argument is less than that */
    SG_TRACE_MARK_MAX = 4096,  /* of a mark's */
    SG_TRACE_ROW_FIELDS = 12,  /* fields of a kind */
};

/* Fields that a kind does not have are 0. */
struct sg_trace_event {
    uint64_t number;     /* from 1; the writer counts by itself */
    const uint8_t *data; /* payload, len octets; from a reader: valid until its next call */
    uint8_t kind;        /* enum sg_trace_kind */
    union {
        uint64_t field[SG_TRACE_FIELDS];
        struct {
            uint64_t no_field, now_ns, unit, addr, len, at, root, arg, status, qpn, msn, ordinal,
                stag, value, swap, found, name;
        };
    };
};

struct sg_trace_row {
    const char *name; /* "cpu-flush" */
    /* unit first if there is one, then those that change most often; ends with NO_FIELD */
    uint8_t field[SG_TRACE_ROW_FIELDS];
    uint8_t step;     /* without len: addr advances by so much from event to event */
    bool has_data;    /* then len is one of the fields */
    uint32_t len_min; /* with payload: its limits */
    uint32_t len_max;
    uint32_t arg_limit; /* arg is less than that; 0: any 32 bits */
};

/* The row of a kind, or NULL: there is none. */
const struct sg_trace_row *sg_trace_row(unsigned kind);
/* Highest value of a field in any event. */
extern const uint64_t sg_trace_field_max[SG_TRACE_FIELDS];
const char *sg_trace_field_name(enum sg_trace_field field); /* "addr" */
/* Are argument and payload of the row, provided that no field is beyond its highest value? */
static inline bool sg_trace_fits(const struct sg_trace_row *row, const struct sg_trace_event *e)
{
    return (!row->arg_limit || e->arg < row->arg_limit) &&
           (!row->has_data || (e->len >= row->len_min && e->len <= row->len_max));
}

/* NULL, or what is wrong with an event's kind, fields and payload, as a static text. */
const char *sg_trace_event_wrong(const struct sg_trace_event *e);

#endif
