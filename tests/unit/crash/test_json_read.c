/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON that somebody gives: values, and what is refused. */
#include "json_read.h"
#include "tap.h"

static struct json_value *read_text(const char *text, char **wrong)
{
    return json_read(text, strlen(text), wrong);
}

static void values(void)
{
    char *wrong;
    struct json_value *v =
        read_text(" { \"a\" : [ 1, 18446744073709551615, \"x\\n\\u00e9\\\"\" ],\n"
                  "  \"b\": {\"c\": true, \"d\": false}, \"e\": null, \"f\": [] }\n",
                  &wrong);
    const struct json_value *a, *b;

    T_NULL(wrong);
    T_NOT_NULL(v);
    a = json_member(v, "a", JSON_ARRAY);
    T_NOT_NULL(a);
    T_EQ_INT(a->items->len, 3);
    T_EQ_U64(((struct json_value *)g_ptr_array_index(a->items, 0))->number, 1);
    T_EQ_U64(((struct json_value *)g_ptr_array_index(a->items, 1))->number, UINT64_MAX);
    T_EQ_STR(((struct json_value *)g_ptr_array_index(a->items, 2))->text, "x\n\xc3\xa9\"");
    b = json_member(v, "b", JSON_OBJECT);
    T_NOT_NULL(b);
    T_EQ_U64(json_member(b, "c", JSON_SWITCH)->number, 1);
    T_EQ_U64(json_member(b, "d", JSON_SWITCH)->number, 0);
    T_NOT_NULL(json_member(v, "e", JSON_NULL));
    T_EQ_INT(json_member(v, "f", JSON_ARRAY)->items->len, 0);
    T_NULL(json_member(v, "a", JSON_TEXT));
    T_NULL(json_member(v, "g", JSON_NULL));
    T_NULL(json_member(a, "a", JSON_NUMBER));
    json_free(v);
}

static void refused(void)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        { "", "no value" },
        { "nul", "no value" },
        { "-1", "no value" },
        { "1.0", "not whole" },
        { "1e3", "not whole" },
        { "18446744073709551616", "64 bits" },
        { "[1 2]", "no comma" },
        { "[1,]", "no value" },
        { "[1", "no comma" },
        { "[1]]", "behind the last" },
        { "{1: 2}", "without a name" },
        { "{\"a\" 2}", "without a colon" },
        { "{\"a\":\n\n}", "line 3" },
        { "\"a", "does not end" },
        { "\"\\", "does not end" },
        { "\"\\x\"", "unknown escape" },
        { "\"\\u12\"", "four digits" },
        { "\"\\u0000\"", "no character" },
        { "\"\\ud800\"", "no character" },
        { "\"\t\"", "control character" },
        { "\"\xff\"", "UTF-8" },
        { "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "more than 16" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        char *wrong;

        T_CONTEXT("%s", row[i].text);
        T_NULL(read_text(row[i].text, &wrong));
        T_NOT_NULL(wrong);
        T_CONTEXT("%s: %s", row[i].text, wrong);
        T_NOT_NULL(strstr(wrong, row[i].why));
        g_free(wrong);
    }
}

/* The beginnings of a text are refused, or whole; with sanitizers, nothing is read behind them. */
static void beginnings(void)
{
    const char *text = "[{\"a\": \"\\u00e9\\n\", \"b\": [12, null, true]}, {}]";

    for (size_t len = 0; len < strlen(text); len++) {
        char *copy = g_memdup2(text, len), *wrong;

        T_NULL(json_read(copy, len, &wrong));
        T_NOT_NULL(wrong);
        g_free(wrong);
        g_free(copy);
    }
}

static const struct t_case cases[] = {
    { "values", values },
    { "what is no JSON, or not ours, is refused with its line", refused },
    { "beginnings are refused", beginnings },
};

T_MAIN(cases)
