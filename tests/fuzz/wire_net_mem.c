/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Target "wire": streams in memory. */
#include "stream_mem.h"
#include "wire_world.h"

static struct sg_mem_switch *sw;

struct sg_stream_net *wire_net_begin(uint8_t how)
{
    struct sg_mem_options options = {
        .queued = how & 1,
        .seed = how,
        .delay_max_ns = how & 2 ? 1000 : 0,
        .piece_max = how & 4 ? 1 + how % 50 : 0,
    };

    sw = sg_mem_switch_new(&options);
    w.peer_net = sg_mem_switch_port(sw, &w.peer_at);
    return sg_mem_switch_port(sw, &w.at);
}

uint64_t wire_net_run(uint64_t now_ns)
{
    return sg_mem_switch_run(sw, now_ns);
}

void wire_net_break(struct sg_stream *s)
{
    sg_mem_break(s);
}

void wire_net_harm(void)
{
}

void wire_net_end(void)
{
    sg_mem_switch_free(sw);
}
