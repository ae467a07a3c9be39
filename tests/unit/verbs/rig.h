/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One adapter with its mini-driver, alone on a switch.
 */
#ifndef SG_TESTS_VERBS_RIG_H
#define SG_TESTS_VERBS_RIG_H

#include "mini_driver.h"
#include "stream_mem.h"

struct solo {
    struct test_host h;
    struct sg_mem_switch *sw;
    struct md md;
};

/* size: octets of guest memory */
static inline void solo_new_sized(struct solo *s, const struct sg_adapter_config *config,
                                  bool start, size_t size)
{
    static const struct sg_mem_options immediate;
    const struct sg_endpoint at = { .family = 4, .ip = { 10, 0, 0, 1 } };
    struct sg_adapter_config defaults;
    struct sg_stream_net *net;

    sg_adapter_default_config(&defaults);
    test_host_init(&s->h, size, 1);
    s->sw = sg_mem_switch_new(&immediate);
    net = sg_mem_switch_port(s->sw, &at);
    (start ? md_start : md_new)(&s->md, &s->h, net, config ? config : &defaults);
}

static inline void solo_new(struct solo *s, const struct sg_adapter_config *config, bool start)
{
    solo_new_sized(s, config, start, 8 << 20);
}

static inline void solo_end(struct solo *s)
{
    md_stop(&s->md);
    sg_mem_switch_free(s->sw);
    test_host_fini(&s->h);
}

#endif
