/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memories of several pasts: what is written to one is not seen in another, and each takes what
 * was touched in it.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/prng.h"
#include "pasts.h"
#include "tap.h"

enum {
    PAGES = 300, /* more than a past keeps mapped when it has ended */
    SIZE = PAGES * SG_PERSIST_PAGE - SG_PERSIST_LINE, /* the last page is short */
    MEMORIES = 6,
    FILLED = PAGES / 2, /* the other pages are never written, but for what a case writes */
    ROUNDS = 3000,
    CUTS = 100, /* each costs several comparisons of everything */
};

#define BASE 0x100000000ull

/* Memories, the domains on them, and what is expected of each. */
struct pasts {
    struct sg_explore_content content;
    struct sg_explore_memories m[MEMORIES];
    struct sg_persist *p[MEMORIES]; /* NULL: not in use */
    uint8_t *want[MEMORIES];        /* visible memory, then the media */
};

static void up(struct pasts *x)
{
    struct sg_persist_extent extent = { .base = BASE, .size = SIZE };
    struct sg_persist_config config;
    uint8_t page[SG_PERSIST_PAGE];

    sg_explore_content_init(&x->content);
    for (unsigned i = 0; i < FILLED; i++) {
        memset(page, 0x40 + (int)i, sizeof(page));
        sg_explore_content_page(&x->content, 0, i, page);
    }
    for (unsigned i = 0; i < MEMORIES; i++) {
        sg_explore_memories_init(&x->m[i]);
        x->p[i] = NULL;
        x->want[i] = g_malloc0(2 * (size_t)SIZE);
    }
    T_TRUE(sg_explore_map(&x->m[0].visible[0], &x->content, 0, SIZE));
    T_TRUE(sg_explore_map(&x->m[0].media[0], &x->content, 0, SIZE));
    memcpy(x->want[0], x->m[0].visible[0].octets, SIZE);
    memcpy(x->want[0] + SIZE, x->m[0].media[0].octets, SIZE);
    sg_persist_config_init(&config);
    config.domain = SG_PERSIST_ADR;
    config.cpu_tracking = true;
    config.store_buffer = false;
    x->p[0] = sg_persist_new(&config, NULL, NULL, NULL);
    extent.visible = x->m[0].visible[0].octets;
    extent.media = x->m[0].media[0].octets;
    T_EQ_INT(sg_persist_add(x->p[0], &extent), 0);
    sg_persist_note_touched(x->p[0], true);
}

static void down(struct pasts *x)
{
    for (unsigned i = 0; i < MEMORIES; i++) {
        sg_persist_free(x->p[i]);
        sg_explore_memories_fini(&x->m[i]);
        g_free(x->want[i]);
    }
    sg_explore_content_fini(&x->content);
}

static void divide(struct pasts *x, unsigned from, unsigned to)
{
    struct sg_persist_memory memory;

    T_TRUE(sg_explore_pasts_fork(x->m, 1, x->p[from], from, to));
    memory = (struct sg_persist_memory){ x->m[to].visible[0].octets, x->m[to].media[0].octets };
    x->p[to] = sg_persist_clone(x->p[from], &memory);
    memcpy(x->want[to], x->want[from], 2 * (size_t)SIZE);
}

static void end(struct pasts *x, unsigned n)
{
    sg_explore_pasts_drop(x->m, 1, x->p[n], n);
    sg_persist_free(x->p[n]);
    x->p[n] = NULL;
}

/* A store, and a flush if it is to reach the media. */
static void write_to(struct pasts *x, unsigned n, uint64_t off, uint64_t value, bool flushed)
{
    static const struct sg_persist_source who = { .agent = SG_PERSIST_CPU };
    uint64_t line = sg_align_down(off, SG_PERSIST_LINE);

    T_TRUE(sg_persist_cpu_store(x->p[n], &who, BASE + off, &value, sizeof(value),
                                SG_PERSIST_STORE_WRITE));
    memcpy(x->want[n] + off, &value, sizeof(value));
    if (flushed) {
        sg_persist_cpu_flush(x->p[n], &who, BASE + off, SG_PERSIST_CLWB);
        sg_persist_cpu_fence(x->p[n], &who, SG_PERSIST_SFENCE);
        memcpy(x->want[n] + SIZE + line, x->want[n] + line, SG_PERSIST_LINE);
    }
}

static void as_expected(const struct pasts *x)
{
    for (unsigned i = 0; i < MEMORIES; i++) {
        if (x->p[i]) {
            T_CONTEXT("past %u", i);
            T_EQ_MEM(x->m[i].visible[0].octets, x->want[i], SIZE);
            T_EQ_MEM(x->m[i].media[0].octets, x->want[i] + SIZE, SIZE);
        }
    }
}

/* What a file has, past the mappings. */
static void file_has(int fd, const uint8_t *want)
{
    uint8_t *octets = g_malloc(SIZE);

    T_EQ_INT(pread(fd, octets, SIZE, 0), SIZE);
    T_EQ_MEM(octets, want, SIZE);
    g_free(octets);
}

/* How many pages a mapping has that are in no file. */
static unsigned pages_of_its_own(const uint8_t *octets)
{
    char begin[32], *text = NULL, *at;
    unsigned long kilobytes = 0;

    snprintf(begin, sizeof(begin), "%lx-", (unsigned long)(uintptr_t)octets);
    T_TRUE(g_file_get_contents("/proc/self/smaps", &text, NULL, NULL));
    at = strstr(text, begin);
    T_NOT_NULL(at);
    at = strstr(at, "Anonymous:");
    T_NOT_NULL(at);
    T_EQ_INT(sscanf(at, "Anonymous: %lu kB", &kilobytes), 1);
    g_free(text);
    return kilobytes * 1024 / SG_PERSIST_PAGE;
}

static void independent(void)
{
    static const uint64_t where[] = { 0, SIZE - 8, 5 * SG_PERSIST_PAGE + 64,
                                      (FILLED + 3) * SG_PERSIST_PAGE };
    struct pasts x;
    uint8_t *start;

    up(&x);
    start = g_memdup2(x.want[0], 2 * (size_t)SIZE);
    divide(&x, 0, 1);
    as_expected(&x);
    for (unsigned i = 0; i < G_N_ELEMENTS(where); i++) {
        for (unsigned n = 0; n < 2; n++) {
            write_to(&x, n, where[i], 100 + i + 10 * n, i % 2);
            as_expected(&x);
        }
    }
    divide(&x, 1, 2);
    as_expected(&x);
    write_to(&x, 2, 7 * SG_PERSIST_PAGE, 7, true);
    write_to(&x, 1, 0, 8, true);
    as_expected(&x);
    file_has(x.m[0].visible[0].fd, start); /* as it was when there was one */
    file_has(x.m[0].media[0].fd, start + SIZE);
    g_free(start);
    down(&x);
}

/* Two memories take what was touched, however much there is of them. */
static void bounded(void)
{
    struct pasts x;
    size_t count;

    up(&x);
    divide(&x, 0, 1);
    T_EQ_INT(pages_of_its_own(x.m[1].visible[0].octets), 0);
    for (unsigned i = 0; i < 5; i++) {
        write_to(&x, 1, i * 9 * SG_PERSIST_PAGE, i, true);
    }
    divide(&x, 1, 2);
    for (unsigned n = 1; n < 3; n++) {
        sg_persist_touched(x.p[n], 0, &count);
        T_EQ_U64(count, 5);
        as_expected(&x); /* reading takes nothing */
        T_EQ_INT(pages_of_its_own(x.m[n].visible[0].octets), 5);
        T_EQ_INT(pages_of_its_own(x.m[n].media[0].octets), 5);
    }
    T_EQ_INT(pages_of_its_own(x.m[0].visible[0].octets), 0);
    down(&x);
}

/* One past again, whosever memories it has: they are the files'. */
static void united(void)
{
    for (unsigned last = 0; last < 3; last++) {
        struct pasts x;

        T_CONTEXT("past %u is left", last);
        up(&x);
        divide(&x, 0, 1);
        divide(&x, 1, 2);
        for (unsigned n = 0; n < 3; n++) {
            write_to(&x, n, SIZE - 16, n + 1, true);
            write_to(&x, n, n * SG_PERSIST_PAGE, n + 1, false);
        }
        for (unsigned n = 0; n < 3; n++) {
            if (n != last) {
                end(&x, n);
            }
        }
        T_TRUE(sg_explore_pasts_unite(x.m, 1, x.p[last], last));
        sg_persist_note_touched(x.p[last], false);
        as_expected(&x);
        write_to(&x, last, 3 * SG_PERSIST_PAGE, 9, true);
        file_has(x.m[0].visible[0].fd, x.want[last]);
        file_has(x.m[0].media[0].fd, x.want[last] + SIZE);
        sg_persist_note_touched(x.p[last], true);
        divide(&x, last, (last + 1) % 3);
        write_to(&x, last, SIZE - 16, 11, true);
        as_expected(&x);
        down(&x);
    }
}

/* A cut of a clone, by the policy that the number gives. */
static void cut(struct pasts *x, struct sg_explore_memories *copy, unsigned n, unsigned number)
{
    const struct sg_persist_policy policy = {
        .outcome = number % SG_PERSIST_OUTCOMES, .addr = BASE, .len = SIZE, .seed = number
    };
    struct sg_persist_memory memory = { copy->visible[0].octets, copy->media[0].octets };
    struct sg_persist *clone = sg_persist_clone(x->p[n], &memory);

    sg_persist_note_touched(clone, true);
    sg_persist_report_free(sg_persist_cut(clone, &policy));
    sg_explore_pasts_changed(copy, 1, clone);
    sg_persist_free(clone);
}

/*
 * A copy is as its past, although cuts have changed it and its past has gone on.  @pages: that
 * are written to, more of them than a copy keeps, or fewer.
 */
static void copies(unsigned pages)
{
    struct sg_explore_memories copy;
    uint64_t random = pages;
    struct pasts x;

    up(&x);
    sg_explore_memories_init(&copy);
    for (unsigned i = 0; i < CUTS; i++) {
        unsigned n = i < CUTS / 2 ? 0 : sg_prng(&random) % 2;

        if (i == CUTS / 2) {
            divide(&x, 0, 1);
        }
        for (unsigned k = sg_prng(&random) % pages; k; k--) {
            uint64_t page = sg_prng(&random) % pages, word = sg_prng(&random) % 510;

            write_to(&x, n, page * SG_PERSIST_PAGE + word * 8 % 4032, i, k % 2);
        }
        T_TRUE(sg_explore_pasts_copy(&copy, x.m, 1, x.p[n], n));
        T_EQ_MEM(copy.visible[0].octets, x.want[n], SIZE);
        T_EQ_MEM(copy.media[0].octets, x.want[n] + SIZE, SIZE);
        cut(&x, &copy, n, i);
        as_expected(&x);
    }
    T_TRUE(pages_of_its_own(copy.media[0].octets) > 0);
    sg_explore_memories_fini(&copy);
    down(&x);
}

static void for_cuts(void)
{
    copies(20);
    copies(PAGES);
}

static unsigned in_use(const struct pasts *x)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MEMORIES; i++) {
        n += x->p[i] != NULL;
    }
    return n;
}

/* Pasts divide, end and write in any order, and are one now and then. */
static void any_order(void)
{
    uint64_t random = 1;
    struct pasts x;

    up(&x);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned a = sg_prng(&random) % MEMORIES, b = sg_prng(&random) % MEMORIES;

        if (!x.p[a]) {
            continue;
        }
        if (sg_prng(&random) % 4) {
            write_to(&x, a, sg_prng(&random) % (SIZE / 8) * 8, round, round % 2);
        } else if (!x.p[b]) {
            divide(&x, a, b);
        } else if (in_use(&x) > 1) {
            end(&x, a);
        } else if (sg_prng(&random) % 2) {
            T_TRUE(sg_explore_pasts_unite(x.m, 1, x.p[a], a));
            sg_persist_note_touched(x.p[a], true);
        }
        if (round % 16 == 0) {
            as_expected(&x);
        }
    }
    as_expected(&x);
    down(&x);
}

static const struct t_case cases[] = {
    { "pasts are independent, also in their first and last page, and in holes", independent },
    { "a past takes what was touched in it", bounded },
    { "one past again", united },
    { "copies for cuts", for_cuts },
    { "pasts divide and end in any order", any_order },
};

T_MAIN(cases)
