/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crash images: what is written is read, in one form only; files that are damaged, cut short or
 * of a hostile author are refused.
 */
#include "base/prng.h"
#include "crash/crash_image.h"
#include "tap.h"

enum { LINE = SG_PERSIST_LINE, SIZE = 64 * LINE, EXTENTS = 2, MAX_ROUNDS = 300 };

#define BASE 0x100000000ull

static struct sg_crash_image_head head(void)
{
    struct sg_crash_image_head h = {
        .extent_count = EXTENTS,
        /* Neighbours: a run ends at their border. */
        .extent = { { .base = BASE, .size = SIZE, .name = "pmem0" },
                    { .base = BASE + SIZE, .size = SIZE, .name = "pmem1" } },
        .text = "platform=adr\npoint=17\n",
    };

    memset(h.run, 1, sizeof(h.run));
    memset(h.machine, 2, sizeof(h.machine));
    memset(h.base, 3, sizeof(h.base));
    return h;
}

static void fill(uint8_t *p, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t)sg_prng(&seed);
    }
}

/* An image of both extents, as a caller who compares memories writes it. */
static GByteArray *written(const uint8_t *base, const uint8_t *now, uint64_t bad)
{
    struct sg_crash_image_head h = head();
    struct sg_crash_image_writer w;
    GByteArray *out = g_byte_array_new();

    sg_crash_image_begin(&w, out, &h);
    for (unsigned i = 0; i < EXTENTS; i++) {
        sg_crash_image_add_differing(&w, BASE + i * SIZE, base + i * SIZE, now + i * SIZE, SIZE);
    }
    for (unsigned i = 0; i < 64; i++) {
        if (bad >> i & 1) {
            sg_crash_image_add_bad(&w, BASE + i * LINE, LINE,
                                   i % 2 ? SG_PERSIST_POISONED : SG_PERSIST_UNCORRECTABLE);
        }
    }
    sg_crash_image_end(&w);
    return out;
}

/* Applies the image to the memory; returns the bad lines of the first extent. */
static uint64_t applied(struct sg_crash_image *image, uint8_t *memory)
{
    struct sg_crash_image_run run;
    uint64_t bad = 0, last = 0, lines = 0;

    while (sg_crash_image_next(image, &run)) {
        uint64_t at = run.addr - BASE;

        if (run.bad) {
            T_NULL(run.octets);
            T_EQ_U64(run.bad, at / LINE % 2 ? SG_PERSIST_POISONED : SG_PERSIST_UNCORRECTABLE);
            bad |= 1ull << at / LINE;
            continue;
        }
        T_TRUE(!bad && (!lines || at > last || at == SIZE));
        T_TRUE(at / SIZE == (at + run.len - 1) / SIZE);
        memcpy(memory + at, run.octets, run.len);
        last = at + run.len;
        lines += run.len / LINE;
    }
    T_EQ_U64(lines, image->lines);
    return bad;
}

static void round_trip(void)
{
    static uint8_t base[EXTENTS * SIZE], now[EXTENTS * SIZE], got[EXTENTS * SIZE];
    uint64_t rng = 5;

    for (unsigned round = 0; round < MAX_ROUNDS; round++) {
        unsigned changes = (unsigned)(sg_prng(&rng) % 40);
        uint64_t bad = sg_prng(&rng); /* one line of eight is bad */
        struct sg_crash_image image;
        GByteArray *out;

        bad &= sg_prng(&rng);
        bad &= sg_prng(&rng);
        fill(base, sizeof(base), round);
        memcpy(now, base, sizeof(base));
        memcpy(got, base, sizeof(base));
        while (changes--) {
            now[sg_prng(&rng) % sizeof(now)] ^= 1;
        }
        if (round == 0) {
            fill(now, sizeof(now), 99); /* everything differs: one run for each extent */
        }
        out = written(base, now, round == 1 ? UINT64_MAX : bad);
        T_CONTEXT("round %u", round);
        T_NULL(sg_crash_image_open(&image, out->data, out->len));
        T_TRUE(round || image.runs == EXTENTS);
        T_EQ_STR(image.head.text, "platform=adr\npoint=17\n");
        T_EQ_STR(image.head.extent[1].name, "pmem1");
        T_EQ_U64(image.head.base[1][31], 3);
        T_EQ_U64(image.head.machine[0], 2);
        T_EQ_U64(applied(&image, got), round == 1 ? UINT64_MAX : bad);
        T_EQ_MEM(got, now, sizeof(now));
        T_EQ_U64(applied(&image, got), round == 1 ? UINT64_MAX : bad); /* again */
        sg_crash_image_clear(&image);
        g_byte_array_free(out, TRUE);
    }
}

/* The same content, told in another way, is the same octets. */
static void one_form(void)
{
    static uint8_t base[EXTENTS * SIZE], now[EXTENTS * SIZE];
    struct sg_crash_image_head h = head();
    struct sg_crash_image_writer w;
    GByteArray *one, *other = g_byte_array_new();

    fill(now + 3 * LINE, 4 * LINE, 1);
    fill(now + SIZE - LINE, 2 * LINE, 2);
    one = written(base, now, 0);
    sg_crash_image_begin(&w, other, &h);
    sg_crash_image_add(&w, BASE + 3 * LINE, now + 3 * LINE, LINE);
    sg_crash_image_add(&w, BASE + 4 * LINE, now + 4 * LINE, 3 * LINE);
    sg_crash_image_add(&w, BASE + SIZE - LINE, now + SIZE - LINE, LINE);
    sg_crash_image_add(&w, BASE + SIZE, now + SIZE, LINE);
    sg_crash_image_end(&w);
    T_EQ_U64(w.runs, 3);
    T_EQ_U64(one->len, other->len);
    T_EQ_MEM(one->data, other->data, one->len);
    g_byte_array_free(one, TRUE);
    g_byte_array_free(other, TRUE);
}

static const char *opened(const uint8_t *p, size_t len)
{
    struct sg_crash_image image;
    /* Just as long as the file is, so that a sanitizer sees what is read beyond. */
    uint8_t *copy = g_memdup2(p, len);
    const char *wrong = sg_crash_image_open(&image, copy, len);

    if (!wrong) {
        sg_crash_image_clear(&image);
    }
    g_free(copy);
    return wrong;
}

static void damage(void)
{
    static uint8_t base[EXTENTS * SIZE], now[EXTENTS * SIZE];
    GByteArray *out;

    fill(now + 5 * LINE, 100, 1);
    out = written(base, now, 0x11);
    for (size_t len = 0; len < out->len; len++) {
        T_CONTEXT("%zu octets", len);
        T_NOT_NULL(opened(out->data, len));
    }
    for (size_t bit = 0; bit < 8 * (size_t)out->len; bit++) {
        out->data[bit / 8] ^= 1u << bit % 8;
        T_CONTEXT("bit %zu", bit);
        T_NOT_NULL(opened(out->data, out->len));
        out->data[bit / 8] ^= 1u << bit % 8;
    }
    T_NULL(opened(out->data, out->len));
    g_byte_array_append(out, base, 1);
    T_NOT_NULL(opened(out->data, out->len));
    g_byte_array_free(out, TRUE);
}

/* Offsets in the file of damage(), and a value of so many octets there; the checksum is right. */
static void hostile(void)
{
    enum { TEXT = 22, FIRST = 72 + 2 * 112 + TEXT, RUN = 16 + 2 * LINE, BAD = FIRST + RUN };
    static const struct {
        const char *what, *wrong;
        size_t at, size;
        uint64_t value;
    } rows[] = {
        { "another magic", "no image", 0, 1, 'T' },
        { "another version", "another version", 8, 4, 2 },
        { "a flag", "head", 12, 4, 1 },
        { "no extent", "head", 48, 4, 0 },
        { "17 extents", "head", 48, 4, 17 },
        { "extents without end", "head", 48, 4, UINT32_MAX },
        { "a long text", "head", 52, 4, UINT32_MAX },
        { "a text that reaches into the runs", "head", 52, 4, TEXT + 3 },
        { "an extent that overlaps", "head", 72 + 112, 8, BASE + LINE },
        { "an extent that wraps", "head", 72 + 112, 8, 0 - (uint64_t)LINE },
        { "an extent of no octets", "head", 72 + 8, 8, 0 },
        { "an odd extent", "head", 72 + 8, 8, SIZE - 1 },
        { "a name that does not end", "does not end", 72 + 111, 1, 'x' },
        { "a name that is no text", "head", 72 + 48, 1, 7 },
        { "more runs", "no range", 56, 8, 2 },
        { "runs without end", "no range", 56, 8, UINT64_MAX },
        { "fewer runs", "bad range", 56, 8, 0 },
        { "fewer bad ranges", "behind its end", 64, 8, 1 },
        { "more bad ranges", "bad range", 64, 8, 3 },
        { "a run elsewhere", "no range", FIRST, 8, 0 },
        { "a run across the border", "no range", FIRST, 8, BASE + SIZE - LINE },
        { "an odd run", "no range", FIRST, 8, BASE + 1 },
        { "a run of odd length", "no range", FIRST + 8, 8, LINE + 1 },
        { "an empty run", "no range", FIRST + 8, 8, 0 },
        { "a run that is longer than the file", "no range", FIRST + 8, 8, SIZE },
        { "a run that wraps", "no range", FIRST + 8, 8, 0 - (uint64_t)LINE },
        { "a bad range elsewhere", "bad range", BAD, 8, BASE + 2 * SIZE },
        { "bad ranges out of order", "out of order", BAD, 8, BASE + 40 * LINE },
        { "a bad range that wraps", "bad range", BAD + 8, 8, 0 - (uint64_t)LINE },
        { "a kind that is none", "bad range", BAD + 16, 8, 3 },
        { "a kind of nine bits", "bad range", BAD + 16, 8, 0x101 },
    };
    static uint8_t base[EXTENTS * SIZE], now[EXTENTS * SIZE];

    fill(now + 5 * LINE, 100, 1);
    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        GByteArray *out = written(base, now, 0x11);
        uint8_t value[8];
        const char *wrong;

        sg_put_le64(value, rows[i].value);
        memcpy(out->data + rows[i].at, value, rows[i].size);
        sg_put_le32(out->data + out->len - 4, sg_crc32c(0, out->data, out->len - 4));
        wrong = opened(out->data, out->len);
        T_CONTEXT("%s: %s", rows[i].what, wrong ? wrong : "accepted");
        T_TRUE(wrong && strstr(wrong, rows[i].wrong));
        g_byte_array_free(out, TRUE);
    }
}

/* Two runs, of which the second one is told to be elsewhere. */
static void order(void)
{
    static const struct {
        uint64_t line;
        bool good;
    } rows[] = { { 9, true }, { 8, true }, { 7, false }, { 6, false }, { 2, false }, { 64, true } };
    static uint8_t base[EXTENTS * SIZE], now[EXTENTS * SIZE];

    memset(now + 5 * LINE, 1, 2 * LINE);
    memset(now + 9 * LINE, 1, LINE);
    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        GByteArray *out = written(base, now, 0);

        sg_put_le64(out->data + out->len - 4 - LINE - 16, BASE + rows[i].line * LINE);
        sg_put_le32(out->data + out->len - 4, sg_crc32c(0, out->data, out->len - 4));
        T_CONTEXT("line %u", (unsigned)rows[i].line);
        T_EQ_INT(!opened(out->data, out->len), rows[i].good);
        g_byte_array_free(out, TRUE);
    }
}

static void heads(void)
{
    struct sg_crash_image_head h = head();
    char *text = g_strnfill(SG_CRASH_IMAGE_TEXT_MAX + 1, 'x');

    T_NULL(sg_crash_image_head_wrong(&h));
    h.text = text;
    T_NOT_NULL(sg_crash_image_head_wrong(&h));
    text[SG_CRASH_IMAGE_TEXT_MAX] = '\0';
    T_NULL(sg_crash_image_head_wrong(&h));
    h.text = "\t";
    T_NOT_NULL(sg_crash_image_head_wrong(&h));
    h.text = NULL;
    T_NULL(sg_crash_image_head_wrong(&h));
    h.extent_count = 0;
    T_NOT_NULL(sg_crash_image_head_wrong(&h));
    h.extent_count = SG_TRACE_EXTENTS + 1;
    T_NOT_NULL(sg_crash_image_head_wrong(&h));
    g_free(text);
}

static const struct t_case cases[] = {
    { "what is written is read", round_trip },
    { "the same content is the same octets", one_form },
    { "damaged and cut short", damage },
    { "what no writer writes, with a right checksum", hostile },
    { "runs in order", order },
    { "heads", heads },
};

T_MAIN(cases)
