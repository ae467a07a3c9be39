/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What staghorn-explore writes for those who judge images: bases, images, images.json. */
#include <glib.h>

#include "crash/crash_image.h"
#include "program_rig.h"

enum { LOG = 0, STATUS = 8192 };

#define TOLD "persistence-domain=memory-controller\n"

static uint8_t content[XR_SIZE] __attribute__((aligned(8)));

static void save_traces(struct xr *r)
{
    xr_end(r);
    pr_save("target.trace", r->machine[XR_TARGET].file->data, r->machine[XR_TARGET].file->len);
    pr_save("client.trace", r->machine[XR_CLIENT].file->data, r->machine[XR_CLIENT].file->len);
    xr_free(r);
}

/* Two records and a status that may be lost. */
static void record(void)
{
    struct xr r;

    for (unsigned i = 0; i < XR_SIZE; i++) {
        content[i] = i % 4096 < 64 ? (uint8_t)(i / 4096 + 1) : 0;
    }
    xr_init_content(&r, TOLD, content);
    xr_connect(&r, 1, 7000);
    xr_write(&r, 1, LOG, 0x1111, false);
    xr_write(&r, 1, LOG + 64, 0x2222, false);
    xr_flush(&r, 1, LOG, 128);
    xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS, 8);
    save_traces(&r);
}

static char *hex(const uint8_t *octets, unsigned len)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", octets[i]);
    }
    return g_string_free(text, FALSE);
}

/* An image of the folder is a difference from this memory. */
static void expect_based(const char *name, const uint8_t hash[SG_TRACE_HASH])
{
    char *leaf = g_build_filename("out/images", name, NULL);
    struct sg_crash_image image;
    struct sg_crash_image_run run;
    gsize len;
    char *octets = pr_contents(leaf, &len);

    T_NULL(sg_crash_image_open(&image, (const uint8_t *)octets, len));
    T_EQ_MEM(image.head.base[0], hash, SG_TRACE_HASH);
    while (sg_crash_image_next(&image, &run)) {
        T_TRUE(memcmp(content + (run.addr - XR_BASE), run.octets, run.len) != 0);
    }
    sg_crash_image_clear(&image);
    g_free(octets);
    g_free(leaf);
}

static void base(void)
{
    uint8_t hash[SG_TRACE_HASH];
    char *octets, *text, *folder;
    const char *name;
    unsigned count = 0;
    gsize len;
    GDir *dir;

    record();
    pr_expect("--out out --strategy only target.trace client.trace", 1, "Bug 1");
    octets = pr_contents("out/base/pmem.raw", &len);
    T_EQ_U64(len, XR_SIZE);
    T_EQ_MEM(octets, content, XR_SIZE);
    sg_trace_hash_memory(content, XR_SIZE, hash);
    text = hex(hash, SG_TRACE_HASH);
    pr_expect_in("out/images.json", text);
    pr_expect_in("out/images.json", "\"name\": \"pmem\"");
    pr_expect_in("out/images.json", "\"address\": \"0x100000000\"");
    pr_expect_in("out/images.json", "\"size\": 16384");
    pr_expect_in("out/images.json", "\"file\": \"base/pmem.raw\"");
    pr_expect_in("out/images.json", "\"target\": \"target\"");
    pr_expect_in("out/images.json", "\"run\": \"01000000000000000000000000000000\"");
    folder = pr_path("out/images");
    dir = g_dir_open(folder, 0, NULL);
    while ((name = g_dir_read_name(dir))) {
        expect_based(name, hash);
        count++;
    }
    T_TRUE(count > 2);
    g_dir_close(dir);
    g_free(folder);
    g_free(text);
    g_free(octets);
}

static const struct t_case cases[] = {
    { "the base of the images is written", base },
};

int main(int argc, char **argv)
{
    return pr_main(cases, G_N_ELEMENTS(cases), argc, argv);
}
