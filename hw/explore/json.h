/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON as text, member by member.  A key of NULL: an element of an array, or the whole.
 *
 * Numbers that may exceed 2^53 are texts, because many readers of JSON keep no more.
 */
#ifndef SG_EXPLORE_JSON_H
#define SG_EXPLORE_JSON_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct json {
    GString *out;
    unsigned depth;
    bool filled; /* the object or array that is open has a member */
};

void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, uint64_t number);
void json_hex(struct json *j, const char *key, uint64_t number); /* a text "0x..." */
void json_switch(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* As it is: a number of any size. */
void json_raw(struct json *j, const char *key, const char *text);

#endif
