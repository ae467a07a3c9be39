/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of events.  To add a kind: a number at the end of its enumeration, a row here, and a
 * row of docs/trace-format.md.  Readers of older versions refuse a kind that they do not know.
 */
#include <assert.h>

#include "trace/event.h"

#define NOW SG_TRACE_NOW
#define UNIT SG_TRACE_UNIT
#define ADDR SG_TRACE_ADDR
#define LEN SG_TRACE_LEN
#define AT SG_TRACE_AT
#define ROOT SG_TRACE_ROOT
#define ARG SG_TRACE_ARG
#define STATUS SG_TRACE_STATUS
#define QPN SG_TRACE_QPN
#define MSN SG_TRACE_MSN
#define ORDINAL SG_TRACE_ORDINAL
#define STAG SG_TRACE_STAG
#define VALUE SG_TRACE_VALUE
#define SWAP SG_TRACE_SWAP
#define FOUND SG_TRACE_FOUND
#define NAME SG_TRACE_NAME

enum {
    LINE = 64,
    ATOM = 8,
    HASH_MAX = 64,
    ADDRESSES = 36, /* two addresses of 16 octets, two ports */
    FLUSH_KINDS = 3,
    FENCE_KINDS = 5,
    MODES = 3,
    MILESTONES = 5,
    BAD_KINDS = 3,
    OUTCOMES = 4,
    DIRECTIONS = 2,
};

/* clang-format off */
static const struct sg_trace_row rows[SG_TRACE_KINDS] = {
    [SG_TRACE_TICK] = { "tick", { NOW } },
    [SG_TRACE_STORE] = { "store", { UNIT, AT, ADDR, LEN, ROOT, ARG }, .has_data = true,
                         .len_min = 1, .len_max = SG_TRACE_STORE_MAX,
                         .arg_limit = SG_TRACE_STORE_FLAGS },
    [SG_TRACE_CPU_FLUSH] = { "cpu-flush", { UNIT, AT, ADDR, ROOT, ARG }, .step = LINE,
                             .arg_limit = FLUSH_KINDS },
    [SG_TRACE_CPU_FENCE] = { "cpu-fence", { UNIT, AT, ROOT, ARG }, .arg_limit = FENCE_KINDS },
    [SG_TRACE_CPU_SYNC] = { "cpu-sync", { UNIT, AT, ROOT } },
    [SG_TRACE_ORDERLY] = { "orderly", { UNIT, AT, ROOT } },
    [SG_TRACE_WRITE_BACK] = { "write-back", { ADDR, LEN } },
    [SG_TRACE_DEEP_FLUSH] = { "deep-flush", { UNIT, AT, ADDR, LEN, ROOT } },

    [SG_TRACE_PLACE] = { "place", { UNIT, AT, ADDR, LEN, ORDINAL, MSN, QPN, ARG },
                         .has_data = true, .len_max = SG_TRACE_DATA_MAX, .arg_limit = MODES },
    [SG_TRACE_ATOMIC_WRITE] = { "atomic-write",
                                { UNIT, AT, ADDR, MSN, ORDINAL, QPN, ARG, STATUS, LEN },
                                .has_data = true, .len_min = ATOM, .len_max = ATOM,
                                .arg_limit = MODES },
    [SG_TRACE_ATOMIC] = { "atomic", { UNIT, VALUE, SWAP, FOUND, AT, ADDR, MSN, ORDINAL, QPN, ARG,
                                      STATUS }, .step = ATOM, .arg_limit = MODES },
    [SG_TRACE_SETTLE] = { "settle", { UNIT, QPN } },
    [SG_TRACE_FORGET] = { "forget", { UNIT, QPN } },
    [SG_TRACE_DEVICE_FENCE] = { "device-fence", { UNIT } },
    [SG_TRACE_DMA_READ] = { "dma-read", { UNIT, ADDR, LEN } },
    [SG_TRACE_FLUSH_BEGIN] = { "flush-begin", { UNIT, MSN, AT, ADDR, LEN, ORDINAL, QPN, ARG } },
    [SG_TRACE_FLUSH_END] = { "flush-end", { UNIT, MSN, AT, ADDR, LEN, ORDINAL, QPN, ARG,
                                            STATUS } },
    [SG_TRACE_MEDIA_READ] = { "media-read", { UNIT, ADDR, LEN } },
    [SG_TRACE_VERIFY] = { "verify", { UNIT, MSN, AT, ADDR, VALUE, ORDINAL, QPN, ARG, STATUS, LEN },
                          .has_data = true, .len_max = HASH_MAX },
    [SG_TRACE_POISON] = { "poison", { ADDR, LEN } },
    [SG_TRACE_MILESTONE] = { "milestone", { UNIT, MSN, AT, ORDINAL, QPN, ARG },
                             .arg_limit = MILESTONES },

    [SG_TRACE_OTHER_WRITE] = { "other-write", { UNIT, ADDR, LEN, ARG }, .has_data = true,
                               .len_min = 1, .len_max = SG_TRACE_DATA_MAX,
                               .arg_limit = SG_TRACE_STORE_FLAGS },
    [SG_TRACE_MARK_BAD] = { "mark-bad", { ADDR, LEN, ARG }, .arg_limit = BAD_KINDS },
    [SG_TRACE_CLEAR_BAD] = { "clear-bad", { ADDR, LEN } },
    [SG_TRACE_FAULTS] = { "faults", { UNIT, ARG, VALUE, SWAP } },
    [SG_TRACE_CONFIGURE] = { "configure", { NAME } },
    [SG_TRACE_FREEZE] = { "freeze", { SG_TRACE_NO_FIELD } },
    [SG_TRACE_CUT] = { "cut", { ARG, VALUE, ADDR, LEN }, .arg_limit = OUTCOMES },
    [SG_TRACE_RESTART] = { "restart", { SG_TRACE_NO_FIELD } },
    [SG_TRACE_RESET] = { "reset", { SG_TRACE_NO_FIELD } },

    [SG_TRACE_CONNECTED] = { "connected", { UNIT, QPN, ARG, LEN }, .has_data = true,
                             .len_min = ADDRESSES, .len_max = ADDRESSES, .arg_limit = DIRECTIONS },
    [SG_TRACE_DISCONNECTED] = { "disconnected", { UNIT, QPN, STATUS } },
    [SG_TRACE_WORK] = { "work", { UNIT, VALUE, ORDINAL, AT, LEN, ARG, QPN, STAG } },
    [SG_TRACE_COMPLETED] = { "completed", { UNIT, VALUE, ORDINAL, LEN, ARG, QPN, STATUS } },
    [SG_TRACE_ANSWERED] = { "answered", { UNIT, MSN, ORDINAL, VALUE, ARG, QPN, STATUS } },
    [SG_TRACE_FRAME] = { "frame", { UNIT, VALUE, LEN, ARG }, .arg_limit = DIRECTIONS },

    [SG_TRACE_MARK] = { "mark", { UNIT, AT, LEN, ROOT, NAME }, .has_data = true,
                        .len_max = SG_TRACE_MARK_MAX },
    [SG_TRACE_LOAD] = { "load", { UNIT, AT, ADDR, LEN, ROOT } },
};
/* clang-format on */

const uint64_t sg_trace_field_max[SG_TRACE_FIELDS] = {
    [NOW] = UINT64_MAX,   [UNIT] = UINT16_MAX, [ADDR] = UINT64_MAX,    [LEN] = UINT64_MAX,
    [AT] = UINT64_MAX,    [ROOT] = UINT64_MAX, [ARG] = UINT32_MAX,     [STATUS] = UINT16_MAX,
    [QPN] = UINT32_MAX,   [MSN] = UINT32_MAX,  [ORDINAL] = UINT64_MAX, [STAG] = UINT32_MAX,
    [VALUE] = UINT64_MAX, [SWAP] = UINT64_MAX, [FOUND] = UINT64_MAX,   [NAME] = UINT32_MAX,
};

static const char *const field_name[SG_TRACE_FIELDS] = {
    [NOW] = "now",     [UNIT] = "unit", [ADDR] = "addr",       [LEN] = "len",
    [AT] = "at",       [ROOT] = "root", [ARG] = "arg",         [STATUS] = "status",
    [QPN] = "qpn",     [MSN] = "msn",   [ORDINAL] = "ordinal", [STAG] = "stag",
    [VALUE] = "value", [SWAP] = "swap", [FOUND] = "found",     [NAME] = "name",
};

static_assert(offsetof(struct sg_trace_event, name) ==
                  offsetof(struct sg_trace_event, field[SG_TRACE_NAME]),
              "names and numbers of fields agree");

const struct sg_trace_row *sg_trace_row(unsigned kind)
{
    return kind > SG_TRACE_NOTHING && kind < SG_TRACE_KINDS ? &rows[kind] : NULL;
}

const char *sg_trace_field_name(enum sg_trace_field field)
{
    return field > SG_TRACE_NO_FIELD && field < SG_TRACE_FIELDS ? field_name[field] : "?";
}

const char *sg_trace_event_wrong(const struct sg_trace_event *e)
{
    const struct sg_trace_row *row = sg_trace_row(e->kind);

    if (!row) {
        return "an event of a kind that does not exist";
    }
    for (const uint8_t *f = row->field; *f; f++) {
        if (e->field[*f] > sg_trace_field_max[*f]) {
            return "a field beyond its limit";
        }
    }
    return sg_trace_fits(row, e)
               ? NULL
               : "an argument beyond its limit, or a payload of a length that cannot be";
}
