/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program_rig.h"
#include "crash/crash_image.h"
#include <glib/gstdio.h>
#include <sys/wait.h>

static char *folder;

char *pr_path(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

void pr_save(const char *name, const uint8_t *octets, size_t len)
{
    char *path = pr_path(name);

    T_TRUE(g_file_set_contents(path, (const char *)octets, (gssize)len, NULL));
    g_free(path);
}

void pr_save_traces(struct xr *r)
{
    xr_end(r);
    pr_save("target.trace", r->machine[XR_TARGET].file->data, r->machine[XR_TARGET].file->len);
    pr_save("client.trace", r->machine[XR_CLIENT].file->data, r->machine[XR_CLIENT].file->len);
    xr_free(r);
}

struct pr_ran pr_run(const char *arguments)
{
    char *line = g_strdup_printf("%s %s", getenv("SG_EXPLORE"), arguments);
    struct pr_ran ran;

    T_TRUE(g_spawn_command_line_sync(line, &ran.out, &ran.err, &ran.status, NULL));
    T_TRUE(WIFEXITED(ran.status));
    ran.status = WEXITSTATUS(ran.status);
    T_CONTEXT("%s: %s", arguments, ran.err);
    g_free(line);
    return ran;
}

void pr_expect(const char *arguments, int status, const char *piece)
{
    struct pr_ran ran = pr_run(arguments);

    T_EQ_INT(ran.status, status);
    T_TRUE(strstr(ran.out, piece) || strstr(ran.err, piece));
    T_TRUE(status > 1 || !*ran.err);
    g_free(ran.out);
    g_free(ran.err);
}

char *pr_contents(const char *name, gsize *len)
{
    char *path = pr_path(name), *text;

    T_CONTEXT("%s", name);
    T_TRUE(g_file_get_contents(path, &text, len, NULL));
    g_free(path);
    return text;
}

void pr_expect_in(const char *name, const char *piece)
{
    char *text = pr_contents(name, NULL);

    T_CONTEXT("%s: %s", name, text);
    T_NOT_NULL(strstr(text, piece));
    g_free(text);
}

const struct json_value *pr_item(const struct json_value *list, guint i)
{
    return g_ptr_array_index(list->items, i);
}

uint64_t pr_number(const struct json_value *v, const char *key)
{
    return json_member(v, key, JSON_NUMBER)->number;
}

struct json_value *pr_json(const char *name)
{
    gsize len;
    char *wrong, *text = pr_contents(name, &len);
    struct json_value *v = json_read(text, len, &wrong);

    T_CONTEXT("%s: %s", name, wrong ? wrong : "");
    T_NOT_NULL(v);
    g_free(text);
    return v;
}

void pr_image(const char *folder, const char *image, uint8_t memory[XR_SIZE])
{
    char *leaf = g_strdup_printf("%s/images/%s.image", folder, image);
    struct sg_crash_image_run run;
    struct sg_crash_image x;
    gsize len;
    char *octets = pr_contents(leaf, &len);

    memset(memory, 0, XR_SIZE);
    T_NULL(sg_crash_image_open(&x, (const uint8_t *)octets, len));
    while (sg_crash_image_next(&x, &run)) {
        memcpy(memory + (run.addr - XR_BASE), run.octets, run.len);
    }
    sg_crash_image_clear(&x);
    g_free(octets);
    g_free(leaf);
}

int pr_main(const struct t_case *cases, unsigned count, int argc, char **argv)
{
    char *top = g_get_current_dir();
    int status;

    folder = g_dir_make_tmp("sg-explore-XXXXXX", NULL);
    if (!folder || !getenv("SG_EXPLORE") || g_chdir(folder) < 0) {
        puts("Bail out! no folder, or no SG_EXPLORE");
        return 1;
    }
    status = t_main(cases, count, argc, argv);
    if (g_chdir(top) == 0) {
        char *line = g_strdup_printf("rm -rf %s", folder);

        g_spawn_command_line_sync(line, NULL, NULL, NULL, NULL);
        g_free(line);
    }
    g_free(folder);
    g_free(top);
    return status;
}
