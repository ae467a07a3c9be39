/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that end early, have changed octets or come from elsewhere, and sinks that take no more:
 * the reader delivers what comes before the damage, and says what is wrong.
 */
#include "rig.h"

enum { SEED = 3, EVENTS = 400 };

static struct tr_file file;
static size_t block_end[64]; /* of the file's blocks, in order */
static unsigned block_count;

/* A trace of random events in blocks of about 20. */
static void make(unsigned events)
{
    struct sg_trace_writer *w;

    tr_file_init(&file);
    w = tr_begin(&file, false);
    for (unsigned done = 0; done < events; done += 20) {
        /* One writer, several seeds: the times of each part begin at 0 and count as staying. */
        tr_write_random(w, SEED + done, SG_MIN(20, events - done));
        T_TRUE(sg_trace_writer_flush(w));
    }
    tr_end(w);
}

static void find_blocks(void)
{
    size_t at = SG_TRACE_OPENING;

    block_count = 0;
    while (at < file.octets->len) {
        at += SG_TRACE_BLOCK_HEAD + sg_get_le32(file.octets->data + at + 8);
        block_end[block_count++] = at;
    }
    T_EQ_U64(at, file.octets->len);
}

/* What a reader finds in some octets: CRC32c of all events, their number, the status. */
struct found {
    uint32_t crc;
    unsigned events;
    enum sg_trace_status status;
    char message[240];
};

static uint32_t event_crc(uint32_t crc, const struct sg_trace_event *e)
{
    crc = sg_crc32c(crc, &e->kind, 1);
    crc = sg_crc32c(crc, e->field, sizeof(e->field));
    return e->data ? sg_crc32c(crc, e->data, e->len) : crc;
}

/* If crcs is not NULL: of the events up to each number. */
static struct found find(const uint8_t *octets, size_t len, uint32_t *crcs)
{
    struct found found = { .status = SG_TRACE_GOOD };
    const struct sg_trace_event *e;
    struct tr_view view;

    tr_open(&view, octets, len);
    while (view.opened == SG_TRACE_GOOD && (e = sg_trace_next(view.r))) {
        found.crc = event_crc(found.crc, e);
        found.events++;
        if (crcs) {
            crcs[found.events] = found.crc;
        }
    }
    found.status = sg_trace_status(view.r);
    g_strlcpy(found.message, sg_trace_message(view.r), sizeof(found.message));
    tr_close(&view);
    return found;
}

static bool is_near_end_of_block(size_t len)
{
    for (unsigned i = 0; i < block_count; i++) {
        if (len + 1 >= block_end[i] && len <= block_end[i] + 1) {
            return true;
        }
    }
    return false;
}

static void cut_anywhere(void)
{
    static uint32_t crcs[EVENTS + 1];
    struct found found;
    unsigned blocks = 0, before = 0, stride = t_stride(1);
    uint8_t *copy;

    make(EVENTS);
    find_blocks();
    T_TRUE(block_count > 20);
    found = find(file.octets->data, file.octets->len, crcs);
    T_EQ_INT(found.status, SG_TRACE_END);
    T_EQ_U64(found.events, EVENTS);
    for (size_t len = 0; len < file.octets->len; len++) {
        T_CONTEXT("%zu of %u octets", len, file.octets->len);
        if (len % stride && !is_near_end_of_block(len)) {
            continue;
        }
        /* A copy of just this length, so that a sanitizer sees what is beyond. */
        copy = g_memdup2(file.octets->data, len);
        found = find(copy, len, NULL);
        g_free(copy);
        T_EQ_INT(found.status, len ? SG_TRACE_CUT_SHORT : SG_TRACE_EMPTY);
        T_EQ_U64(found.crc, crcs[found.events]);
        T_TRUE(found.events >= before);
        if (blocks < block_count && len == block_end[blocks]) {
            blocks++;
        } else if (len > SG_TRACE_OPENING) {
            /* Only whole blocks say anything. */
            T_EQ_U64(found.events, before);
        }
        before = found.events;
    }
    T_EQ_U64(before, EVENTS);
    T_TRUE(strstr(found.message, "cut short") && strstr(found.message, "events 1 to 400"));
    tr_file_free(&file);
}

static void each_bit(void)
{
    static uint32_t crcs[61];
    struct found found;
    uint8_t *p;

    make(60);
    p = file.octets->data;
    T_EQ_INT(find(p, file.octets->len, crcs).status, SG_TRACE_END);
    for (size_t bit = 0; bit < 8 * (size_t)file.octets->len; bit++) {
        T_CONTEXT("bit %zu of octet %zu", bit % 8, bit / 8);
        p[bit / 8] ^= 1u << bit % 8;
        found = find(p, file.octets->len, NULL);
        p[bit / 8] ^= 1u << bit % 8;
        T_TRUE(found.status > SG_TRACE_END && found.events <= 60);
        T_EQ_U64(found.crc, crcs[found.events]);
    }
    tr_file_free(&file);
}

/* Blocks that are missing, repeated, exchanged, or of another trace with the same beginning. */
static void blocks_elsewhere(void)
{
    struct tr_file other;
    struct sg_trace_writer *w;
    size_t from, to, len;
    uint8_t *copy;

    make(EVENTS);
    find_blocks();
    len = file.octets->len;
    for (unsigned i = 0; i + 1 < block_count; i++) {
        T_CONTEXT("block %u", i + 1);
        from = block_end[i];
        to = block_end[i + 1];
        copy = g_malloc(2 * len);
        memcpy(copy, file.octets->data, from);
        memcpy(copy + from, file.octets->data + to, len - to);
        T_EQ_INT(find(copy, len - (to - from), NULL).status,
                 to == len ? SG_TRACE_CUT_SHORT : SG_TRACE_WRONG_BLOCK);
        memcpy(copy, file.octets->data, to);
        memcpy(copy + to, file.octets->data + from, len - from);
        T_EQ_INT(find(copy, len + to - from, NULL).status,
                 to == len ? SG_TRACE_INVALID : SG_TRACE_WRONG_BLOCK);
        g_free(copy);
    }
    tr_file_init(&other);
    w = tr_begin(&other, false);
    tr_write_random(w, 99, 40);
    tr_end(w);
    copy = g_malloc(len + other.octets->len);
    to = block_end[6];
    memcpy(copy, file.octets->data, to);
    from = SG_TRACE_OPENING;
    while (sg_get_le16(other.octets->data + from + 4) != SG_TRACE_BLOCK_EVENTS) {
        from += SG_TRACE_BLOCK_HEAD + sg_get_le32(other.octets->data + from + 8);
    }
    memcpy(copy + to, other.octets->data + from, other.octets->len - from);
    T_EQ_INT(find(copy, to + other.octets->len - from, NULL).status, SG_TRACE_WRONG_BLOCK);
    g_free(copy);
    tr_file_free(&other);
    tr_file_free(&file);
}

static void other_files(void)
{
    static const struct {
        const char *what;
        size_t len;
        uint8_t octets[40];
        enum sg_trace_status status;
        const char *text;
    } rows[] = {
        { "nothing", 0, "", SG_TRACE_EMPTY, "empty" },
        { "one wrong octet", 1, "X", SG_TRACE_NO_TRACE, "not a trace" },
        { "one good octet", 1, "S", SG_TRACE_CUT_SHORT, "cut short" },
        { "a log of the domain", 40, "SGPLOG\r\n\1\0\0\0", SG_TRACE_NO_TRACE, "not a trace" },
        { "zeros", 40, "", SG_TRACE_NO_TRACE, "not a trace" },
        { "an old version", 40, "SGTRAC\r\n\0\0\0\0", SG_TRACE_OTHER_VERSION, "version 0" },
        { "a new version", 40, "SGTRAC\r\n\2\0\0\0", SG_TRACE_OTHER_VERSION,
          "version 2, and this program reads version 1" },
        { "the opening alone", 16, "SGTRAC\r\n\1\0\0\0", SG_TRACE_CUT_SHORT, "no event" },
        { "no block", 40, "SGTRAC\r\n\1\0\0\0", SG_TRACE_WRONG_BLOCK, "octet 16" },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct found found = find(rows[i].octets, rows[i].len, NULL);

        T_CONTEXT("%s: %s", rows[i].what, found.message);
        T_EQ_INT(found.status, rows[i].status);
        T_NOT_NULL(strstr(found.message, rows[i].text));
    }
}

static int64_t failing_source(void *opaque, uint8_t *buf, size_t len)
{
    unsigned *calls = opaque;

    return *calls == 0 ? -1 : sg_trace_read_octets(&(struct sg_trace_octets){ 0 }, buf, (*calls)--);
}

static void unreadable(void)
{
    struct sg_trace_reader *r;
    unsigned calls = 0;

    r = sg_trace_reader_new(failing_source, &calls);
    T_EQ_INT(sg_trace_open(r, NULL, NULL), SG_TRACE_UNREADABLE);
    T_NOT_NULL(strstr(sg_trace_message(r), "cannot be read"));
    T_NULL(sg_trace_next(r));
    sg_trace_reader_free(r);
}

/* A sink that refuses its nth block: what it took before is a readable beginning. */
static void full_disk(void)
{
    static uint32_t crcs[EVENTS + 1];
    struct sg_trace_event mark = { .kind = SG_TRACE_MARK, .data = (const uint8_t *)"" };
    struct sg_trace_writer *w;
    struct tr_file full;
    struct found found;
    unsigned calls, wrote;

    make(EVENTS);
    calls = file.calls;
    find(file.octets->data, file.octets->len, crcs);
    tr_file_free(&file);
    for (unsigned n = 1; n <= calls; n++) {
        T_CONTEXT("refuses call %u of %u", n, calls);
        tr_file_init(&full);
        full.refuse_from = n;
        w = tr_begin(&full, false);
        for (wrote = 0; !sg_trace_writer_error(w) && wrote < EVENTS; wrote += 20) {
            tr_write_random(w, SEED + wrote, 20);
            sg_trace_writer_flush(w);
        }
        T_FALSE(sg_trace_writer_error(w) ? sg_trace_write(w, &mark) : sg_trace_writer_end(w, NULL));
        T_EQ_STR(sg_trace_writer_error(w),
                 n == 1 ? "the trace's file takes nothing" : "the trace's file takes no more");
        sg_trace_writer_free(w);
        found = find(full.octets->data, full.octets->len, NULL);
        T_EQ_INT(found.status, n == 1 ? SG_TRACE_EMPTY : SG_TRACE_CUT_SHORT);
        T_EQ_U64(found.crc, crcs[found.events]);
        tr_file_free(&full);
    }
}

static void too_many_names(void)
{
    struct sg_trace_writer *w;
    struct sg_trace_event mark = { .kind = SG_TRACE_MARK, .data = (const uint8_t *)"" };
    char text[20];

    tr_file_init(&file);
    w = tr_begin(&file, true);
    for (unsigned i = 1; i <= SG_TRACE_NAMES_MAX; i++) {
        snprintf(text, sizeof(text), "%u", i);
        sg_trace_writer_name(w, text);
    }
    T_NULL(sg_trace_writer_error(w));
    T_TRUE(sg_trace_write(w, &mark));
    T_EQ_U64(sg_trace_writer_name(w, "one more"), 0);
    T_EQ_STR(sg_trace_writer_error(w), "the trace has too many names");
    T_FALSE(sg_trace_write(w, &mark));
    sg_trace_writer_free(w);
    T_EQ_INT(find(file.octets->data, file.octets->len, NULL).status, SG_TRACE_CUT_SHORT);
    tr_file_free(&file);
}

static void other_base(void)
{
    uint8_t memory[TR_SIZE] = { 0 };
    struct tr_view view;

    make(20);
    tr_open(&view, file.octets->data, file.octets->len);
    memset(memory + 100, 7, 200);
    memory[TR_SIZE - 1] = 9;
    T_TRUE(sg_trace_check_base(view.r, 0, memory));
    T_EQ_INT(sg_trace_status(view.r), SG_TRACE_GOOD);
    memory[TR_SIZE - 1] = 8;
    T_FALSE(sg_trace_check_base(view.r, 0, memory));
    T_EQ_INT(sg_trace_status(view.r), SG_TRACE_OTHER_BASE);
    T_EQ_STR(sg_trace_message(view.r),
             "the trace begins with another content than this copy of extent 0, nv0");
    T_NULL(sg_trace_next(view.r));
    tr_close(&view);
    tr_file_free(&file);
}

static const struct t_case cases[] = {
    { "a trace that ends anywhere has the events of its whole blocks", cut_anywhere },
    { "each changed bit is noticed", each_bit },
    { "blocks that are missing, repeated or of another trace", blocks_elsewhere },
    { "files that are no trace, or of another version", other_files },
    { "a copy of the media that is another", other_base },
    { "a source that fails", unreadable },
    { "a sink that takes no more", full_disk },
    { "too many names", too_many_names },
};

T_MAIN(cases)
