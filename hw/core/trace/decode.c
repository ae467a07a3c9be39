/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Octets as events: the part of the reader that runs for each event.  encode.c has the other side.
 *
 * Everything is examined here against the row of the event's kind, because an author of a file can
 * compute checksums, too.
 */
#include "trace/reader_impl.h"

static bool invalid(struct sg_trace_reader *r, const char *what)
{
    return sg_trace_fail(r, SG_TRACE_INVALID, what);
}

bool sg_trace_begin_events(struct sg_trace_reader *r, const uint8_t *p, size_t len)
{
    if (sg_get_le64(p) != r->event.number + 1 || sg_get_le64(p + 8) != r->now_ns) {
        return invalid(r, "events are missing before it");
    }
    r->left = sg_get_le32(p + 16);
    if (!r->left || r->left > SG_TRACE_BLOCK_EVENTS_MAX) {
        r->left = 0;
        return invalid(r, "a block with no events or too many");
    }
    r->p = p + SG_TRACE_EVENTS_HEAD;
    r->end = p + len;
    r->after_store = false;
    r->repetitions = 0;
    memset(&r->expected, 0, sizeof(r->expected));
    r->expected.field[SG_TRACE_TICK][0][SG_TRACE_NOW] = r->now_ns;
    return true;
}

/* The store before again, at the next address. */
static bool repeat(struct sg_trace_reader *r)
{
    struct sg_trace_event *e = &r->event;

    if (!r->same_data) {
        if (e->len > (size_t)(r->end - r->p)) {
            return invalid(r, "a payload goes beyond its block");
        }
        e->data = r->p;
        r->p += e->len;
    }
    e->addr += r->step;
    r->repetitions--;
    if (!r->repetitions) {
        r->expected.field[SG_TRACE_STORE][e->unit % SG_TRACE_UNITS][SG_TRACE_ADDR] =
            e->addr + e->len;
    }
    return true;
}

static bool begin_repetition(struct sg_trace_reader *r, uint8_t tag)
{
    uint64_t step;

    if (!r->after_store) {
        return invalid(r, "a repetition of something that is no store");
    }
    r->step = r->event.len;
    if (!(tag & SG_TRACE_NO_STEP)) {
        r->p = sg_trace_get_varint(r->p, r->end, &step);
        if (!r->p) {
            r->p = r->end;
            return invalid(r, "a step that is not whole");
        }
        r->step = sg_trace_unzigzag(step);
    }
    if (r->end - r->p < 2 || !sg_get_le16(r->p)) {
        return invalid(r, "a repetition without count");
    }
    r->repetitions = sg_get_le16(r->p);
    r->p += 2;
    r->same_data = tag & SG_TRACE_SAME_DATA;
    return repeat(r);
}

/* Adds a difference of the block to a prediction. */
static inline bool add_difference(struct sg_trace_reader *r, uint64_t *value, uint64_t max)
{
    uint64_t v;
    const uint8_t *p = sg_trace_get_varint(r->p, r->end, &v);

    if (!p) {
        return invalid(r, "a record that is not whole");
    }
    r->p = p;
    *value += sg_trace_unzigzag(v);
    return *value <= max || invalid(r, "a field beyond its limit");
}

/* The fields whose bits are set in the mask come from the block, the others are as predicted. */
static bool take_fields(struct sg_trace_reader *r, const struct sg_trace_row *row, uint64_t mask)
{
    struct sg_trace_event *e = &r->event;
    const uint8_t *f = row->field;
    uint64_t *last;

    if (*f == SG_TRACE_UNIT) {
        if (mask & 1 &&
            !add_difference(r, &r->expected.unit[e->kind], sg_trace_field_max[SG_TRACE_UNIT])) {
            return false;
        }
        e->unit = r->expected.unit[e->kind];
        mask >>= 1;
        f++;
    }
    last = r->expected.field[e->kind][e->unit % SG_TRACE_UNITS];
    for (; *f; f++, mask >>= 1) {
        if (mask & 1 && !add_difference(r, &last[*f], sg_trace_field_max[*f])) {
            return false;
        }
        e->field[*f] = last[*f];
    }
    sg_trace_predict_addr(row, last);
    return !mask || invalid(r, "a record with more fields than its kind has");
}

/* The fields of the kind before are 0 again: the others are. */
static void change_kind(struct sg_trace_reader *r, unsigned kind)
{
    struct sg_trace_event *e = &r->event;
    const struct sg_trace_row *before = sg_trace_row(e->kind);

    for (const uint8_t *f = before ? before->field : NULL; f && *f; f++) {
        e->field[*f] = 0;
    }
    e->kind = (uint8_t)kind;
    e->data = NULL;
    e->now_ns = r->now_ns;
}

static bool take_record(struct sg_trace_reader *r, uint8_t tag)
{
    struct sg_trace_event *e = &r->event;
    const struct sg_trace_row *row = sg_trace_row(tag & SG_TRACE_TAG_KIND);
    uint64_t mask = sg_trace_form_mask[tag >> SG_TRACE_TAG_FORM];

    if (!row) {
        return invalid(r, "an event of a kind that does not exist");
    }
    if (tag >> SG_TRACE_TAG_FORM == SG_TRACE_FORM_MASK) {
        r->p = sg_trace_get_varint(r->p, r->end, &mask);
        if (!r->p) {
            r->p = r->end;
            return invalid(r, "a mask that is not whole");
        }
    }
    if (e->kind != (tag & SG_TRACE_TAG_KIND)) {
        change_kind(r, tag & SG_TRACE_TAG_KIND);
    }
    if (!take_fields(r, row, mask)) {
        return false;
    }
    if (!sg_trace_fits(row, e)) {
        return invalid(r, sg_trace_event_wrong(e));
    }
    if (e->name > r->names->len || e->now_ns < r->now_ns) {
        return invalid(r, "a name that is not known, or time that goes back");
    }
    r->now_ns = e->now_ns;
    if (row->has_data) {
        if (e->len > (size_t)(r->end - r->p)) {
            return invalid(r, "a payload goes beyond its block");
        }
        e->data = r->p;
        r->p += e->len;
    }
    r->after_store = e->kind == SG_TRACE_STORE;
    return true;
}

bool sg_trace_decode(struct sg_trace_reader *r)
{
    bool good;

    if (r->repetitions) {
        good = repeat(r);
    } else if (r->p == r->end) {
        return invalid(r, "a block has fewer events than it says");
    } else {
        uint8_t tag = *r->p++;

        good = (tag & SG_TRACE_TAG_KIND) == SG_TRACE_REPEAT ? begin_repetition(r, tag)
                                                            : take_record(r, tag);
    }
    if (good) {
        r->event.number++;
        r->left--;
    }
    return good;
}
