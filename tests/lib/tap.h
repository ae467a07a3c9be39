/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test library of the C tests: TAP on stdout, nothing else.
 *
 * A test program is a table of cases and one line:
 *
 *     static void parse__rejects_short_header(void)
 *     {
 *         T_SHOWS("MPA-30") {
 *             T_EQ_INT(mpa_parse(NULL, 0), -EINVAL);
 *         }
 *     }
 *
 *     static const struct t_case cases[] = {
 *         { "parse rejects a short header", parse__rejects_short_header },
 *     };
 *
 *     T_MAIN(cases)
 *
 * T_SHOWS names the ids of the checklist entries that the checks within it
 * prove; tools/build/check collects those of passed cases.  A failing check
 * prints its file, line and values and leaves the case at once (longjmp), so
 * later lines of a case may rely on earlier checks; memory it owned is not freed.  T_SKIP needs
 * a reason.  Arguments of the program are substrings: only cases whose name
 * contains one of them run; `-l` lists the names.
 *
 * SG_CASES=short in the environment asks for a short run, such as make check's: cases marked with
 * .takes_long are left out, and t_seeds() gives fewer seeds.
 *
 * For tests over a table of vectors, call T_CONTEXT() with a description of
 * the row: a failure prints it.
 */
#ifndef SG_TESTS_TAP_H
#define SG_TESTS_TAP_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct t_case {
    const char *name;
    void (*run)(void);
    bool (*applies)(void); /* NULL: always; otherwise the program has the case only if it is true */
    bool takes_long;       /* left out of short runs */
};

enum t_outcome { T_RUNNING = 0, T_FAILED, T_SKIPPED };

struct t_state {
    jmp_buf leave;
    char context[200];
    char reason[200];
    unsigned long checks; /* passed in this case */
    unsigned long claimed_at;
    const char *claimed; /* ids of the current T_SHOWS; NULL: none */
    char shown[2000];    /* ids of completed T_SHOWS, each followed by a blank */
};

/* Weak: one for the whole program, even if a helper in another file makes checks. */
__attribute__((weak)) struct t_state t_state;

#define T_UNUSED __attribute__((unused))
#define T_PRINTF(a, b) __attribute__((format(printf, a, b)))

/* Describe what the following checks look at; printed when one fails. */
static T_UNUSED T_PRINTF(1, 2) void T_CONTEXT(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(t_state.context, sizeof(t_state.context), fmt, ap);
    va_end(ap);
}

/* A line of diagnosis in the TAP stream. */
static T_UNUSED T_PRINTF(1, 2) void T_NOTE(const char *fmt, ...)
{
    va_list ap;

    fputs("# ", stdout);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    fputc('\n', stdout);
}

static T_UNUSED __attribute__((noreturn)) T_PRINTF(3, 4) void t_fail(const char *file, int line,
                                                                     const char *fmt, ...)
{
    va_list ap;

    printf("# %s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    fputc('\n', stdout);
    if (t_state.context[0]) {
        printf("#   at: %s\n", t_state.context);
    }
    longjmp(t_state.leave, T_FAILED);
}

static T_UNUSED __attribute__((noreturn)) T_PRINTF(1, 2) void T_SKIP(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(t_state.reason, sizeof(t_state.reason), fmt, ap);
    va_end(ap);
    longjmp(t_state.leave, T_SKIPPED);
}

#define T_FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)

/* ---- ids of the checklist ---- */

static T_UNUSED bool t_claim(const char *file, int line, const char *ids)
{
    if (t_state.claimed) {
        t_fail(file, line, "T_SHOWS within T_SHOWS, or the last one's body was left early");
    }
    t_state.claimed = ids;
    t_state.claimed_at = t_state.checks;
    return true;
}

static T_UNUSED void t_add_shown(const char *file, int line, const char *id, size_t len)
{
    size_t used = strlen(t_state.shown);
    const char *p;

    for (p = t_state.shown; *p; p += strcspn(p, " ")) {
        p++;
        if (strcspn(p, " ") == len && strncmp(p, id, len) == 0) {
            return;
        }
    }
    if (used + len + 2 > sizeof(t_state.shown)) {
        t_fail(file, line, "more ids than a case has room for");
    }
    snprintf(t_state.shown + used, sizeof(t_state.shown) - used, " %.*s", (int)len, id);
}

static T_UNUSED bool t_claim_ends(const char *file, int line)
{
    const char *ids = t_state.claimed;

    if (ids && t_state.checks == t_state.claimed_at) {
        t_fail(file, line, "T_SHOWS(\"%s\") without a check", ids);
    }
    for (; ids && *ids; ids += strcspn(ids, " ")) {
        ids += strspn(ids, " ");
        t_add_shown(file, line, ids, strcspn(ids, " "));
    }
    t_state.claimed = NULL;
    return false;
}

/*
 * T_SHOWS("RDM-54 RDM-50") { checks }: the checks show that these rows of docs/conformance.md
 * hold.  At least one check must be made; the body must not be left by break, continue, goto
 * or return.  NULL or "" claims nothing, for tables of which only some rows show something.
 */
#define T_SHOWS(ids)                                               \
    for (bool t_going = t_claim(__FILE__, __LINE__, ids); t_going; \
         t_going = t_claim_ends(__FILE__, __LINE__))

#define T_TRUE(cond)                                           \
    do {                                                       \
        if (!(cond)) {                                         \
            t_fail(__FILE__, __LINE__, "not true: %s", #cond); \
        }                                                      \
        t_state.checks++;                                      \
    } while (0)

#define T_FALSE(cond)                                           \
    do {                                                        \
        if (cond) {                                             \
            t_fail(__FILE__, __LINE__, "not false: %s", #cond); \
        }                                                       \
        t_state.checks++;                                       \
    } while (0)

#define T_NULL(ptr) T_TRUE((ptr) == NULL)
#define T_NOT_NULL(ptr) T_TRUE((ptr) != NULL)

static T_UNUSED void t_eq_u64(const char *file, int line, const char *text, uint64_t got,
                              uint64_t want)
{
    if (got != want) {
        t_fail(file, line,
               "%s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")", text, got,
               got, want, want);
    }
    t_state.checks++;
}

static T_UNUSED void t_eq_int(const char *file, int line, const char *text, int64_t got,
                              int64_t want)
{
    if (got != want) {
        t_fail(file, line, "%s is %" PRId64 ", expected %" PRId64, text, got, want);
    }
    t_state.checks++;
}

static T_UNUSED void t_eq_str(const char *file, int line, const char *text, const char *got,
                              const char *want)
{
    if (!got || strcmp(got, want) != 0) {
        t_fail(file, line, "%s is \"%s\", expected \"%s\"", text, got ? got : "(null)", want);
    }
    t_state.checks++;
}

static T_UNUSED void t_print_octets(const char *label, const uint8_t *bytes, size_t from, size_t to)
{
    size_t i;

    printf("#   %s", label);
    for (i = from; i < to; i++) {
        printf(" %02x", bytes[i]);
    }
    fputc('\n', stdout);
}

static T_UNUSED void t_eq_mem(const char *file, int line, const char *text, const void *got,
                              const void *want, size_t len)
{
    const uint8_t *a = got;
    const uint8_t *b = want;
    size_t i;

    for (i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            size_t from = i > 8 ? i - 8 : 0;
            size_t to = len - from > 24 ? from + 24 : len;

            printf("# octets %zu to %zu of %zu:\n", from, to - 1, len);
            t_print_octets("got     ", a, from, to);
            t_print_octets("expected", b, from, to);
            t_fail(file, line, "%s differs at octet %zu", text, i);
        }
    }
    t_state.checks++;
}

/* The value under test first, the expected one second. */
#define T_EQ_U64(got, want) t_eq_u64(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(want))
#define T_EQ_INT(got, want) t_eq_int(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(want))
#define T_EQ_STR(got, want) t_eq_str(__FILE__, __LINE__, #got, (got), (want))
#define T_EQ_MEM(got, want, len) t_eq_mem(__FILE__, __LINE__, #got, (got), (want), (len))

/* ---- how much of a program runs ---- */

static T_UNUSED bool t_env_is(const char *name, const char *value)
{
    const char *is = getenv(name);

    return is && strcmp(is, value) == 0;
}

/* Whether this is a program without sanitizers: for `applies` of cases in which they add time only,
   because nothing runs that other cases of the program do not run as well. */
static T_UNUSED bool t_not_sanitized(void)
{
    return !t_env_is("SG_SANITIZED", "1");
}

/*
 * The number of seeds to run of `all`, of which `sanitized` with sanitizers.  A short run has an
 * eighth of them, but at least 100 if there are as many.
 */
static T_UNUSED unsigned t_seeds(unsigned all, unsigned sanitized)
{
    unsigned n = t_not_sanitized() ? all : sanitized;

    if (!t_env_is("SG_CASES", "short") || n <= 100) {
        return n;
    }
    return n / 8 > 100 ? n / 8 : 100;
}

/* For a loop over everything: 1 if all are tried, otherwise every how many-th.  Where sanitizers
   make each try slow, every `sanitized`-th is enough. */
static T_UNUSED unsigned t_stride(unsigned sanitized)
{
    unsigned n = t_not_sanitized() ? 1 : sanitized;

    return t_env_is("SG_CASES", "short") ? 8 * n : n;
}

static T_UNUSED bool t_selected(const struct t_case *c, int argc, char **argv)
{
    int i;

    if (c->applies && !c->applies()) {
        return false;
    }
    for (i = 1; i < argc; i++) {
        if (strstr(c->name, argv[i])) {
            return true;
        }
    }
    return argc < 2;
}

/* Runs one case and prints its line; true unless it failed. */
static T_UNUSED bool t_run_case(const struct t_case *c, size_t number)
{
    t_state.context[0] = '\0';
    t_state.reason[0] = '\0';
    t_state.shown[0] = '\0';
    t_state.claimed = NULL;
    t_state.checks = 0;
    switch (setjmp(t_state.leave)) {
    case T_RUNNING:
        c->run();
        if (t_state.claimed) {
            printf("# the body of T_SHOWS(\"%s\") was left early\nnot ok %zu - %s\n",
                   t_state.claimed, number, c->name);
            return false;
        }
        if (t_state.shown[0]) {
            printf("# shows:%s\n", t_state.shown);
        }
        printf("ok %zu - %s\n", number, c->name);
        return true;
    case T_SKIPPED:
        printf("ok %zu - %s # SKIP %s\n", number, c->name, t_state.reason);
        return true;
    default:
        if (t_state.claimed) {
            printf("# does not show: %s\n", t_state.claimed);
        }
        printf("not ok %zu - %s\n", number, c->name);
        return false;
    }
}

/* Returns the exit status of the program: 0 if no case failed, else 1. */
static T_UNUSED int t_main(const struct t_case *cases, size_t count, int argc, char **argv)
{
    bool is_short = t_env_is("SG_CASES", "short"), good = true;
    size_t i, number = 0, selected = 0, left_out = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        for (i = 0; i < count; i++) {
            if (t_selected(&cases[i], 1, argv)) {
                puts(cases[i].name);
            }
        }
        return 0;
    }
    for (i = 0; i < count; i++) {
        if (t_selected(&cases[i], argc, argv)) {
            left_out += is_short && cases[i].takes_long;
            selected += !(is_short && cases[i].takes_long);
        }
    }
    if (left_out) {
        printf("# left out: %zu long cases\n", left_out);
    }
    printf(selected ? "1..%zu\n" : "1..%zu # skip all cases are long\n", selected);
    for (i = 0; i < count; i++) {
        if (t_selected(&cases[i], argc, argv) && !(is_short && cases[i].takes_long)) {
            good = t_run_case(&cases[i], ++number) && good;
        }
    }
    return good ? 0 : 1;
}

#define T_MAIN(cases)                                                         \
    int main(int argc, char **argv)                                           \
    {                                                                         \
        return t_main(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); \
    }

#endif
