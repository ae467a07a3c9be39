/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON that somebody gives, as values in memory.
 *
 * Numbers are whole and not negative: no file that is read here has others.  Depth and size are
 * bounded; texts are UTF-8 without an octet of zero.
 */
#ifndef SG_EXPLORE_JSON_READ_H
#define SG_EXPLORE_JSON_READ_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH = 16, JSON_FILE_MAX = 256 << 20 };

enum json_type { JSON_NULL, JSON_SWITCH, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    uint8_t type;     /* enum json_type */
    uint64_t number;  /* or switch */
    char *text;       /* of a text; otherwise NULL */
    char *key;        /* of a member of an object; otherwise NULL */
    GPtrArray *items; /* struct json_value: elements or members; otherwise NULL */
};

/* NULL: *wrong says why and where; the caller frees it. */
struct json_value *json_read(const char *text, size_t len, char **wrong);
/* The same of a file. */
struct json_value *json_read_file(const char *path, char **wrong);
void json_free(struct json_value *v);
/* The first member of this name and type; NULL: there is none, or v is no object. */
const struct json_value *json_member(const struct json_value *v, const char *key,
                                     enum json_type type);

#endif
