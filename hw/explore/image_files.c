/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of images: their base, the images, images.json. */
#include <string.h>

#include "images_impl.h"
#include "json.h"
#include "output.h"

/* ---- The base ---- */

/* A name for a file: of the extent's letters and digits, different from those before it. */
static char *base_file(const struct sg_explore_images *x, unsigned extent)
{
    char *name = g_strdup(x->head.extent[extent].name), *file;
    bool taken = !*name;

    g_strcanon(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_", '_');
    file = g_strdup_printf("base/%s.raw", name);
    for (unsigned i = 0; i < extent; i++) {
        taken |= strcmp(file, x->base_file[i]) == 0;
    }
    if (taken) {
        g_free(file);
        file = g_strdup_printf("base/%s.%u.raw", name, extent); /* no name has a dot */
    }
    g_free(name);
    return file;
}

static bool make_folder(const struct sg_explore_images *x, const char *name)
{
    char *path = g_build_filename(x->folder, name, NULL);
    bool good = g_mkdir_with_parents(path, 0777) == 0 || sg_explore_not_written(path);

    g_free(path);
    return good;
}

bool images_write_base(struct sg_explore_images *x, const struct sg_explore_content *content)
{
    bool good = make_folder(x, "images") && make_folder(x, "base");

    for (unsigned i = 0; good && i < x->head.extent_count; i++) {
        char *path;

        x->base_file[i] = base_file(x, i);
        path = g_build_filename(x->folder, x->base_file[i], NULL);
        good = sg_explore_content_save(content, i, x->head.extent[i].size, path) ||
               sg_explore_not_written(path);
        g_free(path);
    }
    return good;
}

/* ---- An image ---- */

bool images_write_image(struct sg_explore_images *x, const struct sg_explore_memories *c,
                        const GArray *bad, const struct identity *id)
{
    struct sg_crash_image_writer w;
    GByteArray *file = g_byte_array_new();
    char name[IMAGE_NAME], *leaf;
    bool good;

    sg_crash_image_begin(&w, file, &x->head);
    for (guint i = 0; i < x->lines->len; i++) {
        uint64_t addr = g_array_index(x->lines, uint64_t, i);

        for (unsigned k = 0; k < x->head.extent_count; k++) {
            uint64_t at = addr - x->head.extent[k].base;

            if (at < x->head.extent[k].size) {
                sg_crash_image_add(&w, addr, c->media[k].octets + at, SG_PERSIST_LINE);
            }
        }
    }
    for (guint i = 0; i < bad->len; i++) {
        const struct sg_persist_bad *b = &g_array_index(bad, struct sg_persist_bad, i);

        sg_crash_image_add_bad(&w, b->addr, b->len, (enum sg_persist_bad_kind)b->kind);
    }
    sg_crash_image_end(&w);
    images_name(id, name);
    leaf = g_strconcat("images/", name, ".image", NULL);
    good = sg_explore_write(x->folder, leaf, file->data, file->len);
    g_free(leaf);
    g_byte_array_unref(file);
    return good;
}

/* ---- images.json ---- */

static void put_octets(struct json *j, const char *key, const uint8_t *octets, unsigned len)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", octets[i]);
    }
    json_text(j, key, text->str);
    g_string_free(text, TRUE);
}

static void put_extents(struct json *j, const struct sg_explore_images *x)
{
    json_open(j, "extents", '[');
    for (unsigned i = 0; i < x->head.extent_count; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", x->head.extent[i].name);
        json_hex(j, "address", x->head.extent[i].base);
        json_number(j, "size", x->head.extent[i].size);
        put_octets(j, "hash", x->head.base[i], SG_TRACE_HASH);
        json_text(j, "file", x->base_file[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* One on a line: there are many. */
static void put_deviation(struct json *j, const struct sg_crash_deviations *all,
                          const struct sg_crash_deviation *d)
{
    GString *text = g_string_new(NULL), *agent = g_string_new(NULL);
    const struct sg_crash_asked *q = &d->asked;
    bool first = true;

    g_string_append_printf(text, "{\"question\": %u, \"what\": \"%s\", \"answer\": %u, \"of\": %u",
                           d->question, sg_crash_asked_name(q), q->taken, q->n);
    if (q->what == SG_PERSIST_CHOICE_LINE) {
        g_string_append_printf(text, ", \"addr\": \"0x%" G_GINT64_MODIFIER "x\", \"len\": %d",
                               q->addr, SG_PERSIST_LINE);
    }
    if (sg_crash_asked_agent(q, agent)) {
        g_string_append_printf(text, ", \"agent\": \"%s\"", agent->str);
    }
    g_string_append(text, ", \"lost\": [");
    for (guint i = 0; i < d->lost_count; i++) {
        uint64_t event = g_array_index(all->lost, uint64_t, d->lost + i);

        if (event) {
            g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, first ? "" : ", ", event);
            first = false;
        }
    }
    g_string_append(text, "]}");
    json_raw(j, NULL, text->str);
    g_string_free(text, TRUE);
    g_string_free(agent, TRUE);
}

static void put_deviations(struct json *j, const struct occurrence *o)
{
    if (!o->deviations) {
        json_number(j, "deviations-omitted", o->omitted);
        return;
    }
    json_open(j, "deviations", '[');
    for (guint i = 0; i < o->deviations->all->len; i++) {
        put_deviation(j, o->deviations,
                      &g_array_index(o->deviations->all, struct sg_crash_deviation, i));
    }
    json_close(j, ']');
}

/* What arrived early in the past of an image; nothing: all was late. */
static void put_arrivals(struct json *j, const struct occurrence *o)
{
    json_open(j, "arrivals", '[');
    for (guint i = 0; i < o->early->len; i++) {
        const struct sg_crash_answer *a = &g_array_index(o->early, struct sg_crash_answer, i);

        json_open(j, NULL, '{');
        json_number(j, "question", a->question);
        json_number(j, "answer", a->answer);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_occurrence(struct json *j, const struct occurrence *o,
                           const struct sg_crash_platform *platform)
{
    char name[IMAGE_NAME], of[SG_CRASH_PLATFORM_NAME];

    images_name(&o->id, name);
    json_open(j, NULL, '{');
    json_text(j, "image", name);
    json_number(j, "behind", o->behind);
    json_number(j, "promises", o->promises);
    json_text(j, "plan", o->plan);
    put_deviations(j, o);
    if (o->early->len) {
        put_arrivals(j, o);
    }
    json_open(j, "platforms", '[');
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        if (o->platforms >> i & 1) {
            sg_crash_platform_name(&platform[i], of);
            json_text(j, NULL, of);
        }
    }
    json_close(j, ']');
    json_close(j, '}');
}

bool images_write_list(const struct sg_explore_images *x, const struct sg_crash_platform *platform)
{
    struct json j = { .out = g_string_new(NULL) };
    bool good;

    json_open(&j, NULL, '{');
    json_number(&j, "version", 1);
    put_octets(&j, "run", x->head.run, SG_TRACE_ID);
    json_text(&j, "target", x->target);
    put_extents(&j, x);
    json_open(&j, "images", '[');
    for (guint i = 0; i < x->all->len; i++) {
        put_occurrence(&j, g_ptr_array_index(x->all, i), platform);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    g_string_append_c(j.out, '\n');
    good = sg_explore_write(x->folder, "images.json", j.out->str, j.out->len);
    g_string_free(j.out, TRUE);
    return good;
}
