/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events as octets: the part of the writer that runs for each event.
 *
 * A record has only the fields that differ from the prediction.  A store at the same instruction
 * as the store before, a constant step behind it, becomes part of a repetition: a memcpy costs its
 * payload, a memset nothing.  A repetition never makes a block longer than plain records would by
 * more than an octet.
 */
#include <assert.h>

#include "trace/writer_impl.h"

enum {
    STEP_MAX = 4096, /* a repetition's step costs at most two octets */
    RECORD_MAX = 1 + 3 + SG_TRACE_ROW_FIELDS * SG_TRACE_VARINT_MAX, /* without payload */
    REPEAT_HEAD = 1 + 3 + 2,
};

static_assert((int)SG_TRACE_KINDS <= (int)SG_TRACE_REPEAT, "a tag has room for all kinds");
static_assert(SG_TRACE_EVENTS_HEAD + RECORD_MAX + SG_TRACE_DATA_MAX <= SG_TRACE_BLOCK_MAX,
              "a block has room for the longest record");

static void begin_block(struct sg_trace_writer *w)
{
    uint8_t *head = sg_trace_block_at(w, 0);

    sg_put_le64(head, w->events + 1);
    sg_put_le64(head + 8, w->now_ns);
    w->used = SG_TRACE_EVENTS_HEAD;
    memset(&w->expected, 0, sizeof(w->expected));
    w->expected.field[SG_TRACE_TICK][0][SG_TRACE_NOW] = w->now_ns;
}

/* Room for one more event of so many octets; closes the block that has none. */
static bool make_room(struct sg_trace_writer *w, size_t len)
{
    if (w->block_events &&
        (w->used + len > SG_TRACE_BLOCK_FULL || w->block_events == SG_TRACE_BLOCK_EVENTS_MAX) &&
        !sg_trace_writer_close_events(w)) {
        return false;
    }
    if (!w->block_events) {
        begin_block(w);
    }
    return true;
}

/* Fields that differ, from the lowest bit of the mask on. */
static unsigned differences(struct sg_trace_prediction *expected, const struct sg_trace_row *row,
                            const struct sg_trace_event *e, uint64_t *difference, unsigned *count)
{
    const uint8_t *f = row->field;
    unsigned mask = 0, bit = 1, n = 0;
    uint64_t *last;

    if (*f == SG_TRACE_UNIT) {
        if (e->unit != expected->unit[e->kind]) {
            sg_assert(e->unit <= sg_trace_field_max[SG_TRACE_UNIT]);
            difference[n++] = e->unit - expected->unit[e->kind];
            expected->unit[e->kind] = e->unit;
            mask = bit;
        }
        bit <<= 1;
        f++;
    }
    last = expected->field[e->kind][e->unit % SG_TRACE_UNITS];
    for (; *f; f++, bit <<= 1) {
        if (e->field[*f] != last[*f]) {
            sg_assert(e->field[*f] <= sg_trace_field_max[*f]);
            difference[n++] = e->field[*f] - last[*f];
            last[*f] = e->field[*f];
            mask |= bit;
        }
    }
    sg_trace_predict_addr(row, last);
    *count = n;
    return mask;
}

static unsigned form_of(unsigned mask)
{
    switch (mask) {
    case 0:
        return SG_TRACE_FORM_NONE;
    case 0x2:
        return SG_TRACE_FORM_ONE;
    case 0x6:
        return SG_TRACE_FORM_TWO;
    default:
        return SG_TRACE_FORM_MASK;
    }
}

static void put_record(struct sg_trace_writer *w, const struct sg_trace_row *row,
                       const struct sg_trace_event *e)
{
    uint64_t difference[SG_TRACE_ROW_FIELDS];
    unsigned count, mask = differences(&w->expected, row, e, difference, &count);
    uint8_t *start = sg_trace_block_at(w, 0), *p = start + w->used;

    *p++ = (uint8_t)(e->kind | form_of(mask) << SG_TRACE_TAG_FORM);
    if (form_of(mask) == SG_TRACE_FORM_MASK) {
        p = sg_trace_put_varint(p, mask);
    }
    for (unsigned i = 0; i < count; i++) {
        p = sg_trace_put_varint(p, sg_trace_zigzag(difference[i]));
    }
    if (row->has_data) {
        memcpy(p, e->data, e->len);
        p += e->len;
    }
    w->used = (size_t)(p - start);
}

/* ---- Repetitions ---- */

static void remember_store(struct sg_trace_writer *w, const struct sg_trace_store *s)
{
    w->run.open = true;
    w->run.count = 0;
    w->run.data = w->used - s->len;
    w->run.last = *s;
}

/* Is it the store before, at another address, perhaps with other octets? */
static bool resembles(const struct sg_trace_store *last, const struct sg_trace_store *s)
{
    return s->at == last->at && s->len == last->len && s->unit == last->unit &&
           s->root == last->root && s->arg == last->arg;
}

/* The compiler copies eight octets by two instructions, and others by a call. */
static inline bool same_octets(const uint8_t *a, const uint8_t *b, size_t len)
{
    return len == 8 ? !memcmp(a, b, 8) : *a == *b && !memcmp(a, b, len);
}

static inline void copy_octets(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len == 8) {
        memcpy(to, from, 8);
    } else {
        memcpy(to, from, len);
    }
}

static void begin_repetition(struct sg_trace_writer *w, uint64_t step, uint64_t len, bool same)
{
    uint8_t *start = sg_trace_block_at(w, 0), *p = start + w->used;

    *p++ = SG_TRACE_REPEAT | (step == len ? SG_TRACE_NO_STEP : 0) | (same ? SG_TRACE_SAME_DATA : 0);
    if (step != len) {
        p = sg_trace_put_varint(p, sg_trace_zigzag(step));
    }
    w->run.count = (size_t)(p - start);
    sg_put_le16(p, 0);
    w->used = w->run.count + 2;
    w->run.step = step;
    w->run.same = same;
}

/* Appends the store to the records as a repetition of the last one; false: it is none. */
static bool repeat_store(struct sg_trace_writer *w, const struct sg_trace_store *s)
{
    struct sg_trace_run *run = &w->run;
    uint64_t step = s->addr - run->last.addr;
    bool same = same_octets(sg_trace_block_at(w, run->data), s->data, s->len), goes_on;
    uint8_t *count;

    if (w->used + REPEAT_HEAD + s->len > SG_TRACE_BLOCK_FULL ||
        w->block_events == SG_TRACE_BLOCK_EVENTS_MAX) {
        return false;
    }
    goes_on = run->count && step == run->step && (same || !run->same) &&
              sg_get_le16(sg_trace_block_at(w, run->count)) < SG_TRACE_REPEAT_MAX;
    if (!goes_on) {
        if (sg_trace_zigzag(step) > 2 * STEP_MAX) {
            return false;
        }
        begin_repetition(w, step, s->len, same);
    }
    if (!run->same) {
        run->data = w->used;
        copy_octets(sg_trace_block_at(w, w->used), s->data, s->len);
        w->used += s->len;
    }
    count = sg_trace_block_at(w, run->count);
    sg_put_le16(count, sg_get_le16(count) + 1);
    run->last.addr = s->addr;
    w->expected.field[SG_TRACE_STORE][s->unit % SG_TRACE_UNITS][SG_TRACE_ADDR] = s->addr + s->len;
    return true;
}

/* ---- Events ---- */

static void count_event(struct sg_trace_writer *w)
{
    w->block_events++;
    w->events++;
}

static bool write_one(struct sg_trace_writer *w, const struct sg_trace_row *row,
                      const struct sg_trace_event *e)
{
    if (!make_room(w, RECORD_MAX + (row->has_data ? e->len : 0))) {
        return false;
    }
    put_record(w, row, e);
    w->run.open = false;
    count_event(w);
    return true;
}

/* DMA of other devices has no limit. */
static bool write_in_pieces(struct sg_trace_writer *w, const struct sg_trace_row *row,
                            const struct sg_trace_event *e)
{
    struct sg_trace_event piece = *e;
    uint64_t done;
    bool good = true;

    for (done = 0; good && done < e->len; done += piece.len) {
        piece.len = SG_MIN(e->len - done, SG_TRACE_DATA_MAX);
        piece.addr = e->addr + done;
        piece.data = e->data + done;
        good = write_one(w, row, &piece);
    }
    return good;
}

/* ---- Stores ---- */

/*
 * Most stores differ from the prediction in program counter and address only: the same octets as
 * put_record() writes, without its loops.  False: nothing is written.
 */
static bool put_frequent_store(struct sg_trace_writer *w, const struct sg_trace_store *s)
{
    uint64_t *last = w->expected.field[SG_TRACE_STORE][s->unit % SG_TRACE_UNITS];
    uint64_t at = s->at - last[SG_TRACE_AT], addr = s->addr - last[SG_TRACE_ADDR];
    uint8_t *start = sg_trace_block_at(w, 0), *p = start + w->used;

    if (s->unit != w->expected.unit[SG_TRACE_STORE] || s->len != last[SG_TRACE_LEN] ||
        s->root != last[SG_TRACE_ROOT] || s->arg != last[SG_TRACE_ARG] || (addr && !at)) {
        return false;
    }
    *p++ = (uint8_t)(SG_TRACE_STORE | (addr ? SG_TRACE_FORM_TWO
                                       : at ? SG_TRACE_FORM_ONE
                                            : SG_TRACE_FORM_NONE)
                                          << SG_TRACE_TAG_FORM);
    if (at) {
        p = sg_trace_put_varint(p, sg_trace_zigzag(at));
    }
    if (addr) {
        p = sg_trace_put_varint(p, sg_trace_zigzag(addr));
    }
    copy_octets(p, s->data, s->len);
    last[SG_TRACE_AT] = s->at;
    last[SG_TRACE_ADDR] = s->addr + s->len;
    w->used = (size_t)(p + s->len - start);
    return true;
}

static void put_store(struct sg_trace_writer *w, const struct sg_trace_store *s)
{
    const struct sg_trace_event e = {
        .kind = SG_TRACE_STORE,
        .unit = s->unit,
        .at = s->at,
        .addr = s->addr,
        .len = s->len,
        .root = s->root,
        .arg = s->arg,
        .data = s->data,
    };

    put_record(w, sg_trace_row(SG_TRACE_STORE), &e);
}

bool sg_trace_write_store(struct sg_trace_writer *w, const struct sg_trace_store *s)
{
    sg_assert(w->phase == SG_TRACE_EVENTS && s->len && s->len <= SG_TRACE_STORE_MAX);
    sg_assert(s->arg < SG_TRACE_STORE_FLAGS);
    if (w->error) {
        return false;
    }
    if (w->run.open && resembles(&w->run.last, s) && repeat_store(w, s)) {
        count_event(w);
        return true;
    }
    if (!make_room(w, RECORD_MAX + s->len)) {
        return false;
    }
    if (!put_frequent_store(w, s)) {
        put_store(w, s);
    }
    remember_store(w, s);
    count_event(w);
    return true;
}

static bool write_store(struct sg_trace_writer *w, const struct sg_trace_event *e)
{
    struct sg_trace_store s = {
        .addr = e->addr,
        .at = e->at,
        .root = e->root,
        .data = e->data,
        .unit = (uint16_t)e->unit,
        .len = (uint8_t)e->len,
        .arg = (uint8_t)e->arg,
    };

    return sg_trace_write_store(w, &s);
}

bool sg_trace_write(struct sg_trace_writer *w, const struct sg_trace_event *e)
{
    const struct sg_trace_row *row = sg_trace_row(e->kind);

    sg_assert(w->phase == SG_TRACE_EVENTS);
    if (w->error) {
        return false;
    }
    if (e->kind == SG_TRACE_OTHER_WRITE && e->len > SG_TRACE_DATA_MAX) {
        return write_in_pieces(w, row, e);
    }
    sg_assert(row && sg_trace_fits(row, e) && e->name <= w->name_count);
    if (e->kind == SG_TRACE_STORE) {
        sg_assert(e->unit <= sg_trace_field_max[SG_TRACE_UNIT]);
        return write_store(w, e);
    }
    if (e->kind == SG_TRACE_TICK) {
        struct sg_trace_event tick = *e;
        bool good;

        tick.now_ns = SG_MAX(tick.now_ns, w->now_ns);
        good = write_one(w, row, &tick);
        w->now_ns = tick.now_ns;
        return good;
    }
    return write_one(w, row, e);
}
