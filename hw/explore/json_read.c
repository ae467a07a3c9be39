/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One function for each kind of value; the first thing that is wrong ends the reading. */
#include <string.h>

#include "json_read.h"

struct reading {
    const char *start, *at, *end;
    const char *wrong; /* static text; NULL: nothing yet */
    unsigned depth;
};

static struct json_value *read_value(struct reading *r);

struct json_value *json_read_file(const char *path, char **wrong)
{
    struct json_value *found = NULL;
    GError *error = NULL;
    char *text = NULL;
    gsize len;

    if (!g_file_get_contents(path, &text, &len, &error)) {
        *wrong = g_strdup(error->message);
        g_error_free(error);
    } else {
        found = json_read(text, len, wrong);
    }
    g_free(text);
    return found;
}

void json_free(struct json_value *v)
{
    if (v) {
        g_free(v->text);
        g_free(v->key);
        if (v->items) {
            g_ptr_array_unref(v->items);
        }
        g_free(v);
    }
}

static void free_item(gpointer item)
{
    json_free(item);
}

static bool fail(struct reading *r, const char *wrong)
{
    r->wrong = r->wrong ? r->wrong : wrong;
    return false;
}

static void skip_space(struct reading *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) {
        r->at++;
    }
}

/* Takes this character if it is the next one. */
static bool take(struct reading *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

static bool take_word(struct reading *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len)) {
        return false;
    }
    r->at += len;
    return true;
}

static bool read_number(struct reading *r, uint64_t *number)
{
    const char *first = r->at;

    *number = 0;
    for (; r->at < r->end && g_ascii_isdigit(*r->at); r->at++) {
        uint64_t digit = (uint64_t)(*r->at - '0');

        if (*number > (UINT64_MAX - digit) / 10) {
            return fail(r, "a number of more than 64 bits");
        }
        *number = *number * 10 + digit;
    }
    if (r->at == first) {
        return fail(r, "no value");
    }
    if (r->at < r->end && *r->at && strchr(".eE", *r->at)) {
        return fail(r, "a number that is not whole");
    }
    return true;
}

/* Four digits of a character that is no half of a pair. */
static bool read_code(struct reading *r, GString *out)
{
    gunichar code = 0;

    for (unsigned i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end || !g_ascii_isxdigit(*r->at)) {
            return fail(r, "an escape without four digits");
        }
        code = code * 16 + (gunichar)g_ascii_xdigit_value(*r->at);
    }
    if (!code || !g_unichar_validate(code)) {
        return fail(r, "an escape of no character");
    }
    g_string_append_unichar(out, code);
    return true;
}

static bool read_escape(struct reading *r, GString *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (r->at == r->end) {
        return fail(r, "a text that does not end");
    }
    if (*r->at == 'u') {
        r->at++;
        return read_code(r, out);
    }
    found = *r->at ? strchr(from, *r->at) : NULL;
    if (!found) {
        return fail(r, "an unknown escape");
    }
    g_string_append_c(out, to[found - from]);
    r->at++;
    return true;
}

/* Behind the first quote.  NULL: it is wrong. */
static char *read_text(struct reading *r)
{
    GString *out = g_string_new(NULL);

    while (!r->wrong && r->at < r->end && *r->at != '"') {
        unsigned char c = (unsigned char)*r->at++;

        if (c == '\\') {
            read_escape(r, out);
        } else if (c < 0x20) {
            fail(r, "a text with a control character");
        } else {
            g_string_append_c(out, (char)c);
        }
    }
    if (r->at == r->end) {
        fail(r, "a text that does not end");
    } else {
        r->at++;
    }
    if (!g_utf8_validate(out->str, (gssize)out->len, NULL)) {
        fail(r, "a text that is not UTF-8");
    }
    return g_string_free(out, r->wrong != NULL);
}

/* Elements, or members with their keys, up to the bracket. */
static void read_items(struct reading *r, struct json_value *v, char bracket)
{
    v->items = g_ptr_array_new_with_free_func(free_item);
    if (r->depth == JSON_DEPTH) {
        fail(r, "values within more than 16 others");
        return;
    }
    r->depth++;
    while (!r->wrong && !take(r, bracket)) {
        struct json_value *item = NULL;
        char *key = NULL;

        if (v->items->len && !take(r, ',')) {
            fail(r, "no comma, and no end of the list");
        } else if (v->type == JSON_OBJECT && !take(r, '"')) {
            fail(r, "a member without a name");
        } else if (v->type == JSON_OBJECT) {
            key = read_text(r);
            if (!take(r, ':')) {
                fail(r, "a member without a colon");
            }
        }
        item = r->wrong ? NULL : read_value(r);
        if (item) {
            item->key = key;
            g_ptr_array_add(v->items, item);
        } else {
            g_free(key);
        }
    }
    r->depth--;
}

/* NULL: it is wrong. */
static struct json_value *read_value(struct reading *r)
{
    struct json_value *v = g_new0(struct json_value, 1);

    skip_space(r);
    if (take(r, '{')) {
        v->type = JSON_OBJECT;
        read_items(r, v, '}');
    } else if (take(r, '[')) {
        v->type = JSON_ARRAY;
        read_items(r, v, ']');
    } else if (take(r, '"')) {
        v->type = JSON_TEXT;
        v->text = read_text(r);
    } else if (take_word(r, "true") || take_word(r, "false")) {
        v->type = JSON_SWITCH;
        v->number = r->at[-2] == 'u';
    } else if (!take_word(r, "null")) {
        v->type = JSON_NUMBER;
        read_number(r, &v->number);
    }
    if (r->wrong) {
        json_free(v);
        return NULL;
    }
    return v;
}

struct json_value *json_read(const char *text, size_t len, char **wrong)
{
    struct reading r = { .start = text, .at = text, .end = text + len };
    struct json_value *v = NULL;
    size_t line = 1;

    *wrong = NULL;
    if (len > JSON_FILE_MAX) {
        r.wrong = "more than 256 MiB";
    } else {
        v = read_value(&r);
        skip_space(&r);
        if (v && r.at < r.end) {
            r.wrong = "something behind the last bracket";
        }
    }
    if (r.wrong) {
        for (const char *s = text; s < r.at; s++) {
            line += *s == '\n';
        }
        *wrong = g_strdup_printf("line %zu: %s", line, r.wrong);
        json_free(v);
        return NULL;
    }
    return v;
}

const struct json_value *json_member(const struct json_value *v, const char *key,
                                     enum json_type type)
{
    for (guint i = 0; v->type == JSON_OBJECT && i < v->items->len; i++) {
        const struct json_value *item = g_ptr_array_index(v->items, i);

        if (item->type == type && strcmp(item->key, key) == 0) {
            return item;
        }
    }
    return NULL;
}
