/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crash images: writer and reader.
 */
#include "crash/crash_image.h"

#define MAGIC "SGIMAG\r\n"

/* Offsets and sizes in the file. */
enum layout {
    VERSION_AT = 8,
    RUN_AT = 16,
    MACHINE_AT = 32,
    EXTENTS_AT = 48,
    TEXT_AT = 52,
    RUNS_AT = 56,
    BAD_AT = 64,
    HEAD = 72,
    EXTENT = 112, /* base, size, hash, name */
    HASH_AT = 16,
    NAME_AT = 48,
    NAME = SG_TRACE_EXTENT_NAME_MAX + 1,
    RUN_HEAD = 16, /* address, length */
    BAD = 24,      /* address, length, kind */
    CHECKSUM = 4,
};

const char *sg_crash_image_head_wrong(const struct sg_crash_image_head *head)
{
    struct sg_trace_header as_trace = { .extent_count = head->extent_count };
    size_t len = head->text ? strlen(head->text) : 0;

    if (!head->extent_count) {
        return "no extent";
    }
    if (len > SG_CRASH_IMAGE_TEXT_MAX || !sg_trace_is_text((const uint8_t *)head->text, len)) {
        return "a text that is too long or no text";
    }
    memcpy(as_trace.extent, head->extent, sizeof(as_trace.extent));
    return sg_trace_header_wrong(&as_trace);
}

/* Is it a range of whole lines within one extent? */
static bool is_lines(const struct sg_crash_image_head *head, uint64_t addr, uint64_t len)
{
    for (unsigned i = 0; i < head->extent_count; i++) {
        const struct sg_trace_extent *x = &head->extent[i];

        if (addr >= x->base && sg_range_ok(addr - x->base, len, x->size)) {
            return len && !(addr % SG_PERSIST_LINE) && !(len % SG_PERSIST_LINE);
        }
    }
    return false;
}

/* Does an extent begin here?  Then a run before it is another run. */
static bool is_border(const struct sg_crash_image_head *head, uint64_t addr)
{
    for (unsigned i = 0; i < head->extent_count; i++) {
        if (head->extent[i].base == addr) {
            return true;
        }
    }
    return false;
}

/* ---- Writing ---- */

static void put(GByteArray *out, const void *octets, size_t len)
{
    sg_assert(len <= G_MAXUINT - out->len);
    g_byte_array_append(out, octets, (guint)len);
}

static void put_64(GByteArray *out, uint64_t value)
{
    uint8_t octets[8];

    sg_put_le64(octets, value);
    put(out, octets, sizeof(octets));
}

void sg_crash_image_begin(struct sg_crash_image_writer *w, GByteArray *out,
                          const struct sg_crash_image_head *head)
{
    uint8_t fixed[HEAD] = MAGIC, extent[EXTENT];
    size_t len = head->text ? strlen(head->text) : 0;

    sg_assert(!sg_crash_image_head_wrong(head));
    *w = (struct sg_crash_image_writer){ .out = out, .head = *head };
    sg_put_le32(fixed + VERSION_AT, SG_CRASH_IMAGE_VERSION);
    memcpy(fixed + RUN_AT, head->run, SG_TRACE_ID);
    memcpy(fixed + MACHINE_AT, head->machine, SG_TRACE_ID);
    sg_put_le32(fixed + EXTENTS_AT, head->extent_count);
    sg_put_le32(fixed + TEXT_AT, (uint32_t)len);
    g_byte_array_set_size(out, 0);
    put(out, fixed, sizeof(fixed));
    for (unsigned i = 0; i < head->extent_count; i++) {
        memset(extent, 0, sizeof(extent));
        sg_put_le64(extent, head->extent[i].base);
        sg_put_le64(extent + 8, head->extent[i].size);
        memcpy(extent + HASH_AT, head->base[i], SG_TRACE_HASH);
        memcpy(extent + NAME_AT, head->extent[i].name, strlen(head->extent[i].name));
        put(out, extent, sizeof(extent));
    }
    put(out, head->text ? head->text : "", len);
}

void sg_crash_image_add(struct sg_crash_image_writer *w, uint64_t addr, const uint8_t *octets,
                        uint64_t len)
{
    sg_assert(is_lines(&w->head, addr, len) && addr >= w->next && !w->bad_ranges);
    if (w->runs && addr == w->next && !is_border(&w->head, addr)) {
        uint8_t *last = w->out->data + w->last + 8;

        sg_put_le64(last, sg_get_le64(last) + len);
    } else {
        w->last = w->out->len;
        w->runs++;
        put_64(w->out, addr);
        put_64(w->out, len);
    }
    w->next = addr + len;
    put(w->out, octets, len);
}

void sg_crash_image_add_differing(struct sg_crash_image_writer *w, uint64_t addr,
                                  const uint8_t *base, const uint8_t *now, uint64_t len)
{
    enum { STEP = 4096 };

    for (uint64_t at = 0, n; at < len; at += n) {
        n = SG_MIN(len - at, (uint64_t)STEP);
        for (uint64_t i = at; memcmp(base + at, now + at, n) && i < at + n; i += SG_PERSIST_LINE) {
            if (memcmp(base + i, now + i, SG_PERSIST_LINE)) {
                sg_crash_image_add(w, addr + i, now + i, SG_PERSIST_LINE);
            }
        }
    }
}

void sg_crash_image_add_bad(struct sg_crash_image_writer *w, uint64_t addr, uint64_t len,
                            enum sg_persist_bad_kind kind)
{
    sg_assert(is_lines(&w->head, addr, len) && (!w->bad_ranges || addr >= w->next_bad));
    sg_assert(kind == SG_PERSIST_UNCORRECTABLE || kind == SG_PERSIST_POISONED);
    put_64(w->out, addr);
    put_64(w->out, len);
    put_64(w->out, kind);
    w->bad_ranges++;
    w->next_bad = addr + len;
}

void sg_crash_image_end(struct sg_crash_image_writer *w)
{
    uint8_t crc[CHECKSUM];

    sg_put_le64(w->out->data + RUNS_AT, w->runs);
    sg_put_le64(w->out->data + BAD_AT, w->bad_ranges);
    sg_put_le32(crc, sg_crc32c(0, w->out->data, w->out->len));
    put(w->out, crc, sizeof(crc));
}

/* ---- Reading ---- */

/* The head; NULL, or what is wrong.  Sets at to what follows. */
static const char *read_head(struct sg_crash_image *image, const uint8_t *p)
{
    struct sg_crash_image_head *head = &image->head;
    uint64_t count = sg_get_le32(p + EXTENTS_AT), len = sg_get_le32(p + TEXT_AT);
    const uint8_t *x = p + HEAD;

    memcpy(head->run, p + RUN_AT, SG_TRACE_ID);
    memcpy(head->machine, p + MACHINE_AT, SG_TRACE_ID);
    if (count > SG_TRACE_EXTENTS || len > SG_CRASH_IMAGE_TEXT_MAX ||
        count * EXTENT + len > (uint64_t)(image->end - x)) {
        return "the image has a head that no image has";
    }
    head->extent_count = (unsigned)count;
    for (unsigned i = 0; i < count; i++, x += EXTENT) {
        head->extent[i].base = sg_get_le64(x);
        head->extent[i].size = sg_get_le64(x + 8);
        memcpy(head->base[i], x + HASH_AT, SG_TRACE_HASH);
        memcpy(head->extent[i].name, x + NAME_AT, NAME);
        if (x[EXTENT - 1]) {
            return "the image has an extent's name that does not end";
        }
    }
    image->text = g_strndup((const char *)x, len);
    head->text = image->text;
    image->first = x + len;
    return strlen(image->text) != len || sg_crash_image_head_wrong(head)
               ? "the image has a head that no image has"
               : NULL;
}

/* The run at the cursor; false: it is not within the file. */
static bool take_run(struct sg_crash_image *image, struct sg_crash_image_run *run)
{
    if (image->end - image->at < RUN_HEAD) {
        return false;
    }
    *run = (struct sg_crash_image_run){
        .addr = sg_get_le64(image->at),
        .len = sg_get_le64(image->at + 8),
        .octets = image->at + RUN_HEAD,
    };
    image->at += RUN_HEAD;
    if (run->len > (uint64_t)(image->end - image->at)) {
        return false;
    }
    image->at += run->len;
    return true;
}

static bool take_bad(struct sg_crash_image *image, struct sg_crash_image_run *range)
{
    uint64_t kind;

    if (image->end - image->at < BAD) {
        return false;
    }
    kind = sg_get_le64(image->at + 16);
    *range = (struct sg_crash_image_run){
        .addr = sg_get_le64(image->at),
        .len = sg_get_le64(image->at + 8),
        .bad = (uint8_t)kind,
    };
    image->at += BAD;
    return kind == SG_PERSIST_UNCORRECTABLE || kind == SG_PERSIST_POISONED;
}

/* All runs and bad ranges, from the cursor to the file's end. */
static const char *examine(struct sg_crash_image *image)
{
    struct sg_crash_image_run run;
    uint64_t next = 0;

    for (uint64_t i = 0; i < image->runs; i++) {
        if (!take_run(image, &run) || !is_lines(&image->head, run.addr, run.len)) {
            return "the image has a run that is no range of its lines";
        }
        if (i && (run.addr < next || (run.addr == next && !is_border(&image->head, run.addr)))) {
            return "the image has runs out of order";
        }
        next = run.addr + run.len;
        image->lines += run.len / SG_PERSIST_LINE;
    }
    for (uint64_t i = 0; i < image->bad_ranges; i++) {
        if (!take_bad(image, &run) || !is_lines(&image->head, run.addr, run.len)) {
            return "the image has a bad range that is none of its lines";
        }
        if (i && run.addr < next) {
            return "the image has bad ranges out of order";
        }
        next = run.addr + run.len;
    }
    return image->at == image->end ? NULL : "the image has octets behind its end";
}

static const char *open_at(struct sg_crash_image *image, const uint8_t *octets, size_t len)
{
    const char *wrong;

    if (len < VERSION_AT || memcmp(octets, MAGIC, VERSION_AT)) {
        return "it is no image";
    }
    if (len >= RUN_AT && sg_get_le32(octets + VERSION_AT) != SG_CRASH_IMAGE_VERSION) {
        return "the image has another version";
    }
    if (len < HEAD + CHECKSUM ||
        sg_get_le32(octets + len - CHECKSUM) != sg_crc32c(0, octets, len - CHECKSUM)) {
        return "the image is cut short or damaged: its checksum is wrong";
    }
    if (sg_get_le32(octets + VERSION_AT + 4)) {
        return "the image has a head that no image has";
    }
    image->end = octets + len - CHECKSUM;
    image->runs = sg_get_le64(octets + RUNS_AT);
    image->bad_ranges = sg_get_le64(octets + BAD_AT);
    wrong = read_head(image, octets);
    if (!wrong) {
        image->at = image->first;
        wrong = examine(image);
    }
    return wrong;
}

const char *sg_crash_image_open(struct sg_crash_image *image, const uint8_t *octets, size_t len)
{
    const char *wrong;

    memset(image, 0, sizeof(*image));
    wrong = open_at(image, octets, len);
    if (wrong) {
        sg_crash_image_clear(image);
    }
    image->at = image->first;
    return wrong;
}

void sg_crash_image_clear(struct sg_crash_image *image)
{
    g_free(image->text);
    memset(image, 0, sizeof(*image));
}

bool sg_crash_image_next(struct sg_crash_image *image, struct sg_crash_image_run *run)
{
    if (image->passed < image->runs) {
        image->passed++;
        return take_run(image, run);
    }
    if (image->passed < image->runs + image->bad_ranges) {
        image->passed++;
        return take_bad(image, run);
    }
    image->passed = 0;
    image->at = image->first;
    return false;
}
