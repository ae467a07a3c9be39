/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * docs/trace-format.md has a row for each kind of event, with its number, name, fields in their
 * order and limits of the payload.
 */
#include "rig.h"

/* "| 2 | `store` | unit, at, addr, len, root, arg | 1 to 64 |" */
static void expected_row(unsigned kind, GString *out)
{
    const struct sg_trace_row *row = sg_trace_row(kind);

    g_string_printf(out, "\n| %u | `%s` | ", kind, row->name);
    for (const uint8_t *f = row->field; *f; f++) {
        g_string_append_printf(out, "%s%s", f > row->field ? ", " : "", sg_trace_field_name(*f));
    }
    g_string_append(out, row->field[0] ? " |" : "|");
    if (!row->has_data) {
        g_string_append(out, " |");
    } else if (row->len_min == row->len_max) {
        g_string_append_printf(out, " %u |", row->len_max);
    } else {
        g_string_append_printf(out, " %u to %u |", row->len_min, row->len_max);
    }
}

static void document(void)
{
    char *path = g_build_filename(g_getenv("SG_TOP") ? g_getenv("SG_TOP") : ".", "docs",
                                  "trace-format.md", NULL);
    GString *row = g_string_new(NULL);
    unsigned missing = 0;
    char *text;

    T_TRUE(g_file_get_contents(path, &text, NULL, NULL));
    for (unsigned kind = 1; kind < SG_TRACE_KINDS; kind++) {
        expected_row(kind, row);
        if (!strstr(text, row->str)) {
            T_NOTE("missing: %s", row->str + 1);
            missing++;
        }
    }
    T_EQ_U64(missing, 0);
    g_string_free(row, TRUE);
    g_free(text);
    g_free(path);
}

/* The table itself: fields are not repeated, unit is the first one, a payload has its length. */
static void table(void)
{
    for (unsigned kind = 1; kind < SG_TRACE_KINDS; kind++) {
        const struct sg_trace_row *row = sg_trace_row(kind);
        unsigned seen = 0;

        T_NOT_NULL(row);
        T_NOT_NULL(row->name);
        T_CONTEXT("%s", row->name);
        T_EQ_INT(row->field[SG_TRACE_ROW_FIELDS - 1], SG_TRACE_NO_FIELD);
        for (const uint8_t *f = row->field; *f; f++) {
            T_TRUE(*f < SG_TRACE_FIELDS && !(seen & 1u << *f));
            T_TRUE(*f != SG_TRACE_UNIT || f == row->field);
            seen |= 1u << *f;
        }
        T_EQ_INT(row->has_data, row->len_max > 0);
        T_TRUE(!row->has_data || seen & 1u << SG_TRACE_LEN);
        T_TRUE(!row->arg_limit || seen & 1u << SG_TRACE_ARG);
        T_TRUE(row->len_max <= SG_TRACE_DATA_MAX);
    }
    T_NULL(sg_trace_row(SG_TRACE_NOTHING));
    T_NULL(sg_trace_row(SG_TRACE_KINDS));
}

static const struct t_case cases[] = {
    { "the table of events", table },
    { "the document has its rows", document },
};

T_MAIN(cases)
