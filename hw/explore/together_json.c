/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pairs.json, and what people read of it. */
#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "output.h"
#include "together.h"

static const char *name_of(const struct sg_explore_both *x, unsigned k)
{
    const struct sg_explore_session *s = x->side[k];

    return s->trace[s->target].machine;
}

/* A number that may exceed 2^53. */
static void put_count(struct json *j, const char *key, uint64_t count)
{
    char text[32];

    g_snprintf(text, sizeof(text), "%" PRIu64, count);
    json_text(j, key, text);
}

static void put_platform(struct json *j, const struct sg_explore_both *x, unsigned p)
{
    char name[SG_CRASH_PLATFORM_NAME];
    const struct sg_crash_pairs *pairs = &x->pairs[p];

    sg_crash_platform_name(&x->side[0]->o.platform[p], name);
    json_open(j, NULL, '{');
    json_text(j, "platform", name);
    json_open(j, "intervals", '[');
    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        json_number(j, NULL, pairs->side[k].bounds->len);
    }
    json_close(j, ']');
    put_count(j, "cuts", pairs->cuts);
    json_number(j, "point-pairs", pairs->count);
    json_number(j, "point-pairs-explored", x->explored[p]);
    json_number(j, "intervals-alone", pairs->alone);
    json_close(j, '}');
}

/* One on a line: there are many. */
static void put_pair(struct json *j, const struct sg_explore_both *x,
                     const struct sg_explore_pair *pair)
{
    GString *text = g_string_new(NULL);
    char name[SG_CRASH_PLATFORM_NAME];
    bool first = true;

    g_string_append_printf(text, "{\"images\": [%u, %u], \"platforms\": [", pair->image[0],
                           pair->image[1]);
    for (unsigned p = 0; p < SG_CRASH_PLATFORMS; p++) {
        if (pair->platforms >> p & 1) {
            sg_crash_platform_name(&x->side[0]->o.platform[p], name);
            g_string_append_printf(text, "%s\"%s\"", first ? "" : ", ", name);
            first = false;
        }
    }
    g_string_append(text, "]}");
    json_raw(j, NULL, text->str);
    g_string_free(text, TRUE);
}

static void put_all(struct json *j, const struct sg_explore_both *x)
{
    const struct sg_explore_session *s = x->side[0];

    json_open(j, NULL, '{');
    json_number(j, "version", 1);
    json_open(j, "machines", '[');
    for (unsigned k = 0; k < SG_EXPLORE_SIDES; k++) {
        json_text(j, NULL, name_of(x, k));
    }
    json_close(j, ']');
    put_count(j, "seed", s->o.pair_seed);
    json_number(j, "max-pairs", s->o.max_pairs);
    json_open(j, "platforms", '[');
    for (unsigned p = 0; p < s->o.platforms; p++) {
        put_platform(j, x, p);
    }
    json_close(j, ']');
    json_number(j, "point-pairs-without-images", x->bare);
    json_number(j, "point-pairs-contrary", x->contrary);
    put_count(j, "image-pairs", x->one_sided + x->others);
    put_count(j, "image-pairs-one-sided", x->one_sided);
    json_number(j, "image-pairs-explored", x->taken);
    json_open(j, "pairs", '[');
    for (guint i = 0; i < x->rows->len; i++) {
        put_pair(j, x, &g_array_index(x->rows, struct sg_explore_pair, i));
    }
    json_close(j, ']');
    json_close(j, '}');
    g_string_append_c(j->out, '\n');
}

static void print(const struct sg_explore_both *x)
{
    const struct sg_explore_session *s = x->side[0];

    printf("%s and %s, one power failure of both\n\n", name_of(x, 0), name_of(x, 1));
    printf("platform             consistent cuts  pairs of points  explored\n");
    for (unsigned p = 0; p < s->o.platforms; p++) {
        char name[SG_CRASH_PLATFORM_NAME];

        sg_crash_platform_name(&s->o.platform[p], name);
        printf("%-16s %19" PRIu64 " %16" PRIu64 " %9" PRIu64 "\n", name, x->pairs[p].cuts,
               x->pairs[p].count, x->explored[p]);
    }
    printf("\n%" PRIu64 " pairs of images there; %" PRIu64 " explored, %u of them different\n",
           x->one_sided + x->others, x->taken, x->rows->len);
    if (x->bare) {
        printf("%" PRIu64 " pairs of points have no pair of images: --max-images\n", x->bare);
    }
}

bool sg_explore_write_pairs(const struct sg_explore_both *x, const char *folder)
{
    struct json j = { .out = g_string_new(NULL) };
    bool good;

    put_all(&j, x);
    good = sg_explore_write(folder, "pairs.json", j.out->str, j.out->len);
    g_string_free(j.out, TRUE);
    if (good) {
        print(x);
        good = fflush(stdout) == 0;
    }
    return good;
}
