/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The used parts of the send rings of TCP connections are charged to the adapter's account: a
 * connection without room for more continues with what it has.
 */
#include "pair_rig.h"
#include "tcp_link.h"
#include "verbs/state/adapter_state.h"

enum { LEN = 200000 };

static struct sg_account *account(int side)
{
    return &pair.side[side].md.a->account;
}

static void begin_tcp(void)
{
    struct tcp_link_options options = { .port = { .mtu = 9000, .send_buffer = 1 << 20 } };
    struct sg_adapter_config config;

    pair_default_config(&config);
    pair_start_on(&pair, &config, tcp_link_new(&options), PAIR_MEM);
    pair_open(&pair, NULL);
    pair_connect(&pair);
}

/* What one Write of LEN octets takes of the account. */
static uint64_t write_takes(void)
{
    uint64_t before = account(0)->used;

    fill(0, 0, LEN, 3);
    post(0, wr(0, SG_WR_WRITE, 1, 0, LEN, 0));
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    pair_pass(&pair, 1000000000);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), LEN);
    return account(0)->used - before;
}

static void grows_with_use(void)
{
    uint64_t idle;

    begin_tcp();
    idle = account(0)->used;
    T_TRUE(idle < 64 * 1024);
    T_TRUE(write_takes() >= 32 * 1024);
    T_TRUE(account(0)->used <= idle + (2 << 20));
    pair_stop(&pair); /* which asserts that all of it comes back */
}

static void does_with_what_it_has(void)
{
    begin_tcp();
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0)); /* allocates records of requests */
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    account(0)->limit = account(0)->used;
    T_EQ_U64(write_takes(), 0);
    T_EQ_U64(write_takes(), 0);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "a send ring is taken as it is used", grows_with_use },
    { "a send ring that cannot grow", does_with_what_it_has },
};

T_MAIN(cases)
