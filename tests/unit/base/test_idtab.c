/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/idtab.h */
#include "base/idtab.h"
#include "tap.h"

static int objs[16];

static void bounds(void)
{
    struct sg_idtab t;
    uint32_t id = 77;

    sg_idtab_init(&t, 2, 3);
    for (uint32_t i = 0; i < 3; i++) {
        T_TRUE(sg_idtab_alloc(&t, &objs[i], &id));
        T_EQ_U64(id, 2 + i);
    }
    id = 77;
    T_FALSE(sg_idtab_alloc(&t, &objs[3], &id));
    T_EQ_U64(id, 77);
    T_EQ_U64(sg_idtab_count(&t), 3);
    T_TRUE(sg_idtab_get(&t, 3) == &objs[1]);
    T_NULL(sg_idtab_get(&t, 0));
    T_NULL(sg_idtab_get(&t, 1));
    T_NULL(sg_idtab_get(&t, 5));
    T_NULL(sg_idtab_get(&t, UINT32_MAX));
    T_NULL(sg_idtab_free(&t, 1));
    T_NULL(sg_idtab_free(&t, 5));
    sg_idtab_fini(&t);
}

static void reuse(void)
{
    struct sg_idtab t;
    uint32_t a, b, c;

    sg_idtab_init(&t, 0, 100);
    T_TRUE(sg_idtab_alloc(&t, &objs[0], &a));
    T_TRUE(sg_idtab_alloc(&t, &objs[1], &b));
    T_EQ_U64(sg_idtab_generation(&t, a), 0);
    T_TRUE(sg_idtab_free(&t, b) == &objs[1]);
    T_TRUE(sg_idtab_free(&t, a) == &objs[0]);
    T_NULL(sg_idtab_free(&t, a));
    T_NULL(sg_idtab_get(&t, a));
    T_EQ_U64(sg_idtab_generation(&t, a), 1);
    T_EQ_U64(sg_idtab_generation(&t, 99), 0);
    /* The number freed first is used first. */
    T_TRUE(sg_idtab_alloc(&t, &objs[2], &c));
    T_EQ_U64(c, b);
    T_TRUE(sg_idtab_alloc(&t, &objs[3], &c));
    T_EQ_U64(c, a);
    T_EQ_U64(sg_idtab_count(&t), 2);
    sg_idtab_fini(&t);
}

/* Used numbers come after fresh ones. */
static void fresh_first(void)
{
    struct sg_idtab t;
    uint32_t id, i;

    sg_idtab_init(&t, 1, 4);
    for (i = 1; i <= 3; i++) {
        T_TRUE(sg_idtab_alloc_fresh(&t, &objs[0], &id));
        T_EQ_U64(id, i);
        T_NOT_NULL(sg_idtab_free(&t, id));
    }
    T_TRUE(sg_idtab_alloc(&t, &objs[1], &id));
    T_EQ_U64(id, 1);
    T_TRUE(sg_idtab_alloc_fresh(&t, &objs[2], &id));
    T_EQ_U64(id, 4);
    T_TRUE(sg_idtab_get(&t, 4) == &objs[2]);
    /* No fresh one remains: the number freed longest ago comes next. */
    T_TRUE(sg_idtab_alloc_fresh(&t, &objs[3], &id));
    T_EQ_U64(id, 2);
    T_TRUE(sg_idtab_alloc_fresh(&t, &objs[3], &id));
    T_EQ_U64(id, 3);
    T_FALSE(sg_idtab_alloc_fresh(&t, &objs[3], &id));
    T_EQ_U64(sg_idtab_count(&t), 4);
    sg_idtab_fini(&t);
}

static void fixed_numbers(void)
{
    struct sg_idtab t;
    uint32_t id;

    sg_idtab_init(&t, 10, 1000);
    T_TRUE(sg_idtab_alloc_at(&t, 700, &objs[0]));
    T_FALSE(sg_idtab_alloc_at(&t, 700, &objs[1]));
    T_FALSE(sg_idtab_alloc_at(&t, 9, &objs[1]));
    T_FALSE(sg_idtab_alloc_at(&t, 1010, &objs[1]));
    T_TRUE(sg_idtab_alloc_at(&t, 1009, &objs[1]));
    T_TRUE(sg_idtab_alloc_at(&t, 10, &objs[2]));
    T_TRUE(sg_idtab_alloc_at(&t, 400, &objs[3]));
    T_EQ_U64(sg_idtab_count(&t), 4);
    /* All the others are still available, each once. */
    for (uint32_t n = 0; n < 996; n++) {
        T_TRUE(sg_idtab_alloc(&t, &objs[4], &id));
        T_TRUE(id != 700 && id != 1009 && id != 10 && id != 400);
    }
    T_FALSE(sg_idtab_alloc(&t, &objs[4], &id));
    T_TRUE(sg_idtab_get(&t, 700) == &objs[0]);
    sg_idtab_fini(&t);
}

static void top_of_the_range(void)
{
    struct sg_idtab t;
    uint32_t id;

    sg_idtab_init(&t, UINT32_MAX, 1);
    T_TRUE(sg_idtab_alloc(&t, &objs[0], &id));
    T_EQ_U64(id, UINT32_MAX);
    T_TRUE(sg_idtab_get(&t, UINT32_MAX) == &objs[0]);
    T_NULL(sg_idtab_get(&t, 0));
    sg_idtab_fini(&t);
}

static void walk(void)
{
    struct sg_idtab t;
    uint32_t cursor = 0, id, n = 0;

    sg_idtab_init(&t, 1, 5000);
    for (uint32_t i = 0; i < 2000; i++) {
        T_TRUE(sg_idtab_alloc(&t, &objs[0], &id));
    }
    for (uint32_t i = 1; i <= 2000; i += 2) {
        T_NOT_NULL(sg_idtab_free(&t, i));
    }
    while (sg_idtab_next(&t, &cursor, &id)) {
        n++;
        T_EQ_U64(id, 2 * n);
        T_NOT_NULL(sg_idtab_free(&t, id));
    }
    T_EQ_U64(n, 1000);
    T_EQ_U64(sg_idtab_count(&t), 0);
    sg_idtab_fini(&t);
}

static void millions(void)
{
    struct sg_idtab t;
    uint32_t id;

    sg_idtab_init(&t, 0, 2000000);
    for (uint32_t i = 0; i < 2000000; i++) {
        T_TRUE(sg_idtab_alloc(&t, &t, &id));
        T_EQ_U64(id, i);
    }
    T_FALSE(sg_idtab_alloc(&t, &t, &id));
    T_TRUE(sg_idtab_get(&t, 1999999) == &t);
    sg_idtab_fini(&t);
}

static const struct t_case cases[] = {
    { "idtab stays within its bounds", bounds },
    { "idtab reuses the oldest number and counts generations", reuse },
    { "idtab takes numbers that were never used first", fresh_first },
    { "idtab fixed numbers", fixed_numbers },
    { "idtab at the top of the number range", top_of_the_range },
    { "idtab walk while freeing", walk },
    { "idtab grows to millions", millions },
};

T_MAIN(cases)
