/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target "image": crash images that anybody may have written.
 *
 * The input is the file itself; or it is written from a list of runs, and then some of its octets
 * are changed and its checksum is made right.  What the reader accepts consists of whole lines of
 * its extents, in order, and written again it is the same file.
 */
#include <glib.h>

#include "crash/crash_image.h"
#include "fuzz.h"

enum { LINE = SG_PERSIST_LINE, EXTENT = 32 * LINE, EXTENTS = 2 };

static struct fuzz_in in;
static GByteArray *file;
static unsigned long long accepted, refused, runs, bad_ranges;

/* The image of the open reader, written again. */
static GByteArray *copy_of(struct sg_crash_image *image)
{
    GByteArray *out = g_byte_array_new();
    struct sg_crash_image_writer w;
    struct sg_crash_image_run run;

    sg_crash_image_begin(&w, out, &image->head);
    while (sg_crash_image_next(image, &run)) {
        if (run.bad) {
            sg_assert(!run.octets);
            sg_crash_image_add_bad(&w, run.addr, run.len, run.bad);
            bad_ranges++;
        } else {
            sg_crash_image_add(&w, run.addr, run.octets, run.len);
            runs++;
        }
    }
    sg_crash_image_end(&w);
    return out;
}

/* Names have zeros behind their end, which a hostile author may fill. */
static bool has_clean_names(const uint8_t *octets, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *name = octets + 72 + 112 * i + 48;
        size_t len = strlen((const char *)name);

        for (size_t at = len; at < 64; at++) {
            if (name[at]) {
                return false;
            }
        }
    }
    return true;
}

static void see(const uint8_t *octets, size_t len)
{
    /* Just as long as the file, so that a sanitizer sees what is read beyond. */
    uint8_t *exact = g_memdup2(octets, len);
    struct sg_crash_image image;
    GByteArray *again;

    if (sg_crash_image_open(&image, exact, len)) {
        refused++;
        g_free(exact);
        return;
    }
    accepted++;
    again = copy_of(&image);
    if (has_clean_names(exact, image.head.extent_count)) {
        sg_assert(again->len == len && !memcmp(again->data, exact, len));
    }
    g_byte_array_free(again, TRUE);
    sg_crash_image_clear(&image);
    g_free(exact);
}

static void author(void)
{
    struct sg_crash_image_head head = {
        .extent_count = 1 + fuzz_below(&in, EXTENTS),
        .extent = { { .base = 0x1000, .size = EXTENT, .name = "a" },
                    { .base = 0x1000 + EXTENT, .size = EXTENT, .name = "b" } },
        .text = "from=fuzz\n",
    };
    static uint8_t base[EXTENTS * EXTENT], now[EXTENTS * EXTENT];
    uint64_t bad = fuzz_rarely(&in, 2) ? fuzz_u32(&in) : 0;
    struct sg_crash_image_writer w;

    memset(now, 0, sizeof(now));
    for (unsigned n = fuzz_below(&in, 20); n; n--) {
        now[fuzz_u16(&in) % sizeof(now)] = 1;
    }
    sg_crash_image_begin(&w, file, &head);
    for (unsigned i = 0; i < head.extent_count; i++) {
        sg_crash_image_add_differing(&w, head.extent[i].base, base + i * EXTENT, now + i * EXTENT,
                                     EXTENT);
    }
    for (unsigned i = 0; i < 32; i++) {
        if (bad >> i & 1) {
            sg_crash_image_add_bad(&w, 0x1000 + i * LINE, LINE, SG_PERSIST_POISONED);
        }
    }
    sg_crash_image_end(&w);
    see(file->data, file->len);
    while (in.len > 1) {
        size_t at = fuzz_u16(&in) % file->len;

        file->data[at] = fuzz_u8(&in);
    }
    sg_put_le32(file->data + file->len - 4, sg_crc32c(0, file->data, file->len - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (struct fuzz_in){ data, size };
    file = g_byte_array_new();
    if (fuzz_rarely(&in, 8)) {
        g_byte_array_append(file, in.p, (guint)in.len);
    } else {
        author();
    }
    see(file->data, file->len);
    g_byte_array_free(file, TRUE);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len, "accepted %llu, refused %llu, runs %llu, bad ranges %llu", accepted, refused,
             runs, bad_ranges);
    return accepted && refused && runs && bad_ranges;
}
