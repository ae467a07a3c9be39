/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One member on a line, so that two results can be compared line by line. */
#include <inttypes.h>

#include "json.h"

/* Octets of a text that is not UTF-8 count as Latin-1. */
static void quote(GString *out, const char *text)
{
    bool utf8 = g_utf8_validate(text, -1, NULL);

    g_string_append_c(out, '"');
    for (const char *s = text; *s; s++) {
        if (*s == '"' || *s == '\\') {
            g_string_append_printf(out, "\\%c", *s);
        } else if ((unsigned char)*s < 0x20 || *s == 0x7f || ((unsigned char)*s > 0x7f && !utf8)) {
            g_string_append_printf(out, "\\u%04x", (unsigned char)*s);
        } else {
            g_string_append_c(out, *s);
        }
    }
    g_string_append_c(out, '"');
}

static void begin(struct json *j, const char *key)
{
    if (j->depth) {
        g_string_append_printf(j->out, "%s\n%*s", j->filled ? "," : "", (int)(2 * j->depth), "");
    }
    if (key) {
        quote(j->out, key);
        g_string_append(j->out, ": ");
    }
    j->filled = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    g_string_append_c(j->out, bracket);
    j->depth++;
    j->filled = false;
}

void json_close(struct json *j, char bracket)
{
    j->depth--;
    if (j->filled) {
        g_string_append_printf(j->out, "\n%*s", (int)(2 * j->depth), "");
    }
    g_string_append_c(j->out, bracket);
    j->filled = true;
}

void json_text(struct json *j, const char *key, const char *text)
{
    begin(j, key);
    quote(j->out, text);
}

void json_raw(struct json *j, const char *key, const char *text)
{
    begin(j, key);
    g_string_append(j->out, text);
}

void json_number(struct json *j, const char *key, uint64_t number)
{
    begin(j, key);
    g_string_append_printf(j->out, "%" PRIu64, number);
}

void json_hex(struct json *j, const char *key, uint64_t number)
{
    begin(j, key);
    g_string_append_printf(j->out, "\"0x%" PRIx64 "\"", number);
}

void json_switch(struct json *j, const char *key, bool value)
{
    json_raw(j, key, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    json_raw(j, key, "null");
}
