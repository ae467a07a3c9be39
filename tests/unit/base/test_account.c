/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/account.h: requests within and beyond the limit, and the release of memory. */
#include "base/account.h"
#include "base/bytes.h"
#include "tap.h"

static void limit(void)
{
    struct sg_account acc = { .limit = 100 };

    T_TRUE(sg_account_take(&acc, 60));
    T_FALSE(sg_account_take(&acc, 41));
    T_EQ_U64(acc.used, 60);
    T_EQ_U64(acc.refused, 1);
    T_TRUE(sg_account_take(&acc, 40));
    T_TRUE(sg_account_take(&acc, 0));
    T_FALSE(sg_account_take(&acc, 1));
    T_FALSE(sg_account_take(&acc, UINT64_MAX)); /* the sum must not wrap around */
    sg_account_give(&acc, 60);
    T_EQ_U64(acc.used, 40);
    T_EQ_U64(acc.most, 100);
    T_TRUE(sg_account_take(&acc, 60));
}

/* The limit is lowered below the amount in use. */
static void over_limit(void)
{
    struct sg_account acc = { .limit = 10, .used = 20 };

    T_FALSE(sg_account_take(&acc, 1));
    sg_account_give(&acc, 15);
    T_TRUE(sg_account_take(&acc, 5));
}

static void memory(void)
{
    struct sg_account acc = { .limit = 1000 };
    uint8_t *p = sg_account_new0(&acc, 600), *q;

    T_TRUE(p);
    T_EQ_U64(p[0] | p[599], 0);
    T_FALSE(sg_account_new(&acc, 401));
    q = sg_account_new(&acc, 400);
    T_TRUE(q);
    T_EQ_U64(acc.used, 1000);
    sg_account_free(&acc, q, 400);
    sg_account_free(&acc, NULL, 400);
    T_EQ_U64(acc.used, 600);
    sg_account_free(&acc, p, 600);
    T_EQ_U64(acc.used, 0);
}

/* The account has room, but the host cannot allocate as much. */
static void host_has_none(void)
{
    struct sg_account acc = { .limit = UINT64_MAX };

    T_FALSE(sg_account_new(&acc, 1ull << 62));
    T_EQ_U64(acc.used, 0);
}

static void no_account(void)
{
    void *p = sg_account_new0(NULL, 10);

    T_TRUE(p);
    sg_account_free(NULL, p, 10);
    T_TRUE(sg_account_take(NULL, UINT64_MAX));
}

static const struct t_case cases[] = {
    { "what does not fit is refused", limit },
    { "more in use than the limit", over_limit },
    { "memory of an account", memory },
    { "memory that the host does not have", host_has_none },
    { "no account has no limit", no_account },
};

T_MAIN(cases)
