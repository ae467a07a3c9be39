/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "tcp": two ports of the TCP/IP stack.  The input loses, repeats and corrupts frames
 * between them.  The adapter's side receives a corrupt frame in addition to the good one, so that
 * the peer's octets arrive all the same, in most cases.
 */
#include "net_frame.h"
#include "tcp_link.h"
#include "wire_world.h"

static struct pair_link *link;
static struct pair_side ends[2]; /* for their clocks and addresses */
static struct fuzz_frame last;   /* from the peer */
static unsigned to_lose;
static uint64_t peer_due;

static bool lose(void *opaque, int from, const uint8_t *frame, size_t len)
{
    if (from == 1 && len <= FRAME_MAX) {
        memcpy(last.data, frame, len);
        last.len = len;
    }
    to_lose -= to_lose > 0;
    return to_lose > 0;
}

struct sg_stream_net *wire_net_begin(uint8_t how)
{
    struct tcp_link_options options = { .delay_ns = how & 2 ? 1000000 : 0, .lose = lose };
    struct sg_stream_net *found;

    link = tcp_link_new(&options);
    last.len = 0;
    to_lose = 0;
    peer_due = SG_NEVER;
    ends[0].at = w.at;
    ends[1].at = w.peer_at;
    for (int i = 0; i < 2; i++) {
        test_host_init(&ends[i].h, SG_PAGE_SIZE, how);
    }
    found = link->join(link, 0, &ends[0]);
    w.peer_net = link->join(link, 1, &ends[1]);
    w.h.now_ns = ends[0].h.now_ns;
    return found;
}

uint64_t wire_net_run(uint64_t now_ns)
{
    uint64_t next;

    ends[0].h.now_ns = ends[1].h.now_ns = now_ns;
    next = link->run(link, now_ns);
    if (test_host_take_kick(&ends[1].h) || peer_due <= now_ns) {
        peer_due = w.peer_net->ops->run(w.peer_net, now_ns);
        next = link->run(link, now_ns);
    }
    w.h.kicked |= test_host_take_kick(&ends[0].h);
    return SG_MIN(next, peer_due);
}

/* All frames are lost for a while. */
void wire_net_break(struct sg_stream *s)
{
    to_lose = 100;
}

void wire_net_harm(void)
{
    if (fuzz_rarely(&w.in, 4)) {
        to_lose = fuzz_below(&w.in, 6);
    } else if (last.len) {
        struct fuzz_frame changed = last;

        switch (fuzz_below(&w.in, 4)) {
        case 0:
            break;
        case 1:
            frame_extend(&w.in, &changed);
            break;
        default:
            frame_spoil(&w.in, &changed);
        }
        tcp_link_inject(link, 0, changed.data, changed.len);
    }
}

void wire_net_end(void)
{
    link->free(link);
    for (int i = 0; i < 2; i++) {
        test_host_fini(&ends[i].h);
    }
}
