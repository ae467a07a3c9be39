/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both contents are known by their hashes: that of the base and that of the trace's start. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "onto.h"

static bool complain(const struct sg_explore_onto *o, const char *what)
{
    fprintf(stderr, "staghorn-explore: %s: %s\n", o->path, what);
    return false;
}

bool sg_explore_onto_open(struct sg_explore_onto *o, const char *path)
{
    GError *error = NULL;
    const char *wrong;
    gsize len;

    *o = (struct sg_explore_onto){ .path = path };
    if (!g_file_get_contents(path, &o->octets, &len, &error)) {
        complain(o, error->message);
        g_error_free(error);
        return false;
    }
    wrong = sg_crash_image_open(&o->image, (const uint8_t *)o->octets, len);
    if (wrong) {
        g_free(o->octets);
        o->octets = NULL;
        return complain(o, wrong);
    }
    return true;
}

void sg_explore_onto_close(struct sg_explore_onto *o)
{
    if (o->octets) {
        sg_crash_image_clear(&o->image);
        g_free(o->octets);
    }
    o->octets = NULL;
}

static bool has_hash(const struct sg_explore_mapping *m, const uint8_t *hash)
{
    uint8_t is[SG_TRACE_HASH];

    sg_trace_hash_memory(m->octets, m->size, is);
    return memcmp(is, hash, SG_TRACE_HASH) == 0;
}

static void apply(struct sg_explore_onto *o, const struct sg_trace_extent *x,
                  struct sg_explore_mapping *m)
{
    struct sg_crash_image_run run;

    while (sg_crash_image_next(&o->image, &run)) {
        if (!run.bad && run.addr - x->base < x->size) {
            memcpy(m->octets + (run.addr - x->base), run.octets, run.len);
        }
    }
}

bool sg_explore_onto_extent(struct sg_explore_onto *o, const struct sg_trace_reader *reader,
                            unsigned extent, const struct sg_explore_content *base,
                            struct sg_explore_content *content)
{
    const struct sg_trace_header *header = sg_trace_header(reader);
    const struct sg_trace_extent *x = &header->extent[extent], *of = &o->image.head.extent[extent];
    struct sg_explore_mapping m;
    bool good;

    if (o->image.head.extent_count != header->extent_count || x->base != of->base ||
        x->size != of->size) {
        return complain(o, "the image is not of the extents of the trace");
    }
    if (!sg_explore_map(&m, base, extent, x->size)) {
        return complain(o, "no memory for its base");
    }
    good = has_hash(&m, o->image.head.base[extent]) ||
           complain(o, "the file of --base is not the base of the image");
    if (good) {
        apply(o, x, &m);
        good = has_hash(&m, sg_trace_start_hash(reader, extent)) ||
               complain(o, "the trace does not begin with the image on its base");
    }
    if (good && !x->has_content) {
        if (content->fd[extent] >= 0) {
            close(content->fd[extent]);
        }
        content->fd[extent] = m.fd;
        m.fd = -1;
    }
    sg_explore_unmap(&m);
    return good;
}
