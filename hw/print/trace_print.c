/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * staghorn-trace [--json] [--kinds KIND[,KIND...]] FILE: shows what a trace has.
 *
 * A line for its header, a line for each event (of these kinds), a line for its end.  With --json
 * each line is an object of JSON: the first has "header", the last has "status".  Status 0: the
 * trace is complete; 1: it is not, and everything before its damage was shown; 2: wrong arguments.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "trace/reader.h"

static struct {
    gboolean json;
    char *kinds;
} options;

static bool wanted[SG_TRACE_KINDS];

static int64_t read_file(void *opaque, uint8_t *buf, size_t len)
{
    size_t n = fread(buf, 1, len, opaque);

    return ferror((FILE *)opaque) ? -1 : (int64_t)n;
}

/* ---- Values ---- */

/* Texts of a trace are printable ASCII and line ends; anything else became a refusal. */
static void append_text(GString *out, const char *text, size_t len)
{
    g_string_append_c(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\') {
            g_string_append_printf(out, "\\%c", c);
        } else if (c < ' ' || c > '~') {
            g_string_append_printf(out, "\\u%04x", c);
        } else {
            g_string_append_c(out, (char)c);
        }
    }
    g_string_append_c(out, '"');
}

static void append_octets(GString *out, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        g_string_append_printf(out, "%02x", p[i]);
    }
}

/* Is the number more readable in hexadecimal? */
static bool is_place(enum sg_trace_field field)
{
    return field == SG_TRACE_ADDR || field == SG_TRACE_AT || field == SG_TRACE_ROOT ||
           field == SG_TRACE_STAG;
}

static void append_field(GString *out, enum sg_trace_field field, uint64_t value,
                         const struct sg_trace_reader *r)
{
    const char *name = field == SG_TRACE_NAME ? sg_trace_name(r, value) : NULL;

    g_string_append_printf(out, options.json ? ", \"%s\": " : " %s=", sg_trace_field_name(field));
    if (field == SG_TRACE_NAME) {
        append_text(out, name ? name : "", name ? strlen(name) : 0);
    } else if (is_place(field) && !options.json) {
        g_string_append_printf(out, "0x%" G_GINT64_MODIFIER "x", value);
    } else {
        g_string_append_printf(out, "%" G_GUINT64_FORMAT, value);
    }
}

/* ---- Lines ---- */

static void show_header(const struct sg_trace_reader *r, GString *out)
{
    const struct sg_trace_header *h = sg_trace_header(r);
    static const char *const names[SG_TRACE_TEXTS] = {
        [SG_TRACE_MACHINE] = "machine",
        [SG_TRACE_PLATFORM] = "platform",
        [SG_TRACE_CONFIG] = "configuration",
        [SG_TRACE_VERSIONS] = "versions",
    };

    g_string_append(out, options.json ? "{\"header\": true, \"run\": \"" : "run=");
    append_octets(out, h->run, SG_TRACE_ID);
    g_string_append(out, options.json ? "\"" : "");
    for (unsigned i = 0; i < SG_TRACE_TEXTS; i++) {
        const char *text = h->text[i] ? h->text[i] : "";

        g_string_append_printf(out, options.json ? ", \"%s\": " : " %s=", names[i]);
        append_text(out, text, strlen(text));
    }
    g_string_append(out, options.json ? ", \"extents\": [" : "");
    for (unsigned i = 0; i < h->extent_count; i++) {
        g_string_append_printf(out,
                               options.json ? "%s{\"name\": \"%s\", \"base\": %" G_GUINT64_FORMAT
                                              ", \"size\": %" G_GUINT64_FORMAT "}"
                                            : "%s %s@0x%" G_GINT64_MODIFIER "x+%" G_GUINT64_FORMAT,
                               options.json && i ? ", " : "", h->extent[i].name, h->extent[i].base,
                               h->extent[i].size);
    }
    g_string_append(out, options.json ? "]}\n" : "\n");
}

static void show_event(const struct sg_trace_reader *r, const struct sg_trace_event *e,
                       uint64_t now_ns, GString *out)
{
    const struct sg_trace_row *row = sg_trace_row(e->kind);

    g_string_append_printf(out,
                           options.json ? "{\"number\": %" G_GUINT64_FORMAT
                                          ", \"time\": %" G_GUINT64_FORMAT ", \"kind\": \"%s\""
                                        : "%8" G_GUINT64_FORMAT " %14" G_GUINT64_FORMAT " %s",
                           e->number, now_ns, row->name);
    for (unsigned i = 0; i < SG_TRACE_ROW_FIELDS && row->field[i]; i++) {
        if (row->field[i] != SG_TRACE_NOW) {
            append_field(out, row->field[i], e->field[row->field[i]], r);
        }
    }
    if (row->has_data) {
        g_string_append(out, options.json ? ", \"data\": \"" : " data=");
        append_octets(out, e->data, e->len);
        g_string_append(out, options.json ? "\"" : "");
    }
    if (e->kind == SG_TRACE_MARK) {
        g_string_append(out, options.json ? ", \"text\": " : " text=");
        append_text(out, (const char *)e->data, e->len);
    }
    g_string_append(out, options.json ? "}\n" : "\n");
}

static bool show(struct sg_trace_reader *r)
{
    g_autoptr(GString) out = g_string_new("");
    const struct sg_trace_event *e;
    uint64_t now_ns = 0;

    if (sg_trace_open(r, NULL, NULL) == SG_TRACE_GOOD) {
        show_header(r, out);
        while ((e = sg_trace_next(r))) {
            now_ns = e->kind == SG_TRACE_TICK ? e->now_ns : now_ns;
            if (wanted[e->kind]) {
                show_event(r, e, now_ns, out);
            }
            fwrite(out->str, 1, out->len, stdout);
            g_string_truncate(out, 0);
        }
    }
    if (options.json) {
        g_string_append_printf(
            out, "{\"status\": \"%s\", \"message\": ", sg_trace_status_name(sg_trace_status(r)));
        append_text(out, sg_trace_message(r), strlen(sg_trace_message(r)));
        g_string_append(out, "}\n");
    } else {
        g_string_append_printf(out, "%s: %s\n", sg_trace_status_name(sg_trace_status(r)),
                               sg_trace_message(r));
    }
    fwrite(out->str, 1, out->len, stdout);
    return sg_trace_status(r) == SG_TRACE_END;
}

/* ---- Arguments ---- */

static bool choose_kinds(void)
{
    g_auto(GStrv) words = options.kinds ? g_strsplit(options.kinds, ",", 0) : NULL;

    for (unsigned kind = 1; !words && kind < SG_TRACE_KINDS; kind++) {
        wanted[kind] = kind != SG_TRACE_TICK;
    }
    for (char **word = words; word && *word; word++) {
        unsigned kind = 1;

        while (kind < SG_TRACE_KINDS && strcmp(sg_trace_row(kind)->name, *word) != 0) {
            kind++;
        }
        if (kind == SG_TRACE_KINDS) {
            fprintf(stderr, "staghorn-trace: there is no kind of event '%s'\n", *word);
            return false;
        }
        wanted[kind] = true;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "a line is an object of JSON", NULL },
        { "kinds", 0, 0, G_OPTION_ARG_STRING, &options.kinds, "events of these kinds only",
          "KIND[,KIND...]" },
        { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new("FILE");
    g_autoptr(GError) error = NULL;
    struct sg_trace_reader *r;
    bool complete;
    FILE *file;

    g_option_context_set_summary(context, "Shows what a trace of a run has.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc != 2) {
        fprintf(stderr, "staghorn-trace: %s; see --help\n",
                error ? error->message : "one FILE is needed");
        return 2;
    }
    if (!choose_kinds()) {
        return 2;
    }
    file = fopen(argv[1], "rb");
    if (!file) {
        fprintf(stderr, "staghorn-trace: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    r = sg_trace_reader_new(read_file, file);
    complete = show(r);
    sg_trace_reader_free(r);
    fclose(file);
    g_free(options.kinds);
    return complete ? 0 : 1;
}
