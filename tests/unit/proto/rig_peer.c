/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rig's peer: a stream, octets, and a second implementation of framing. */
#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

static void peer_connected(struct sg_stream *s)
{
    rig->peer_connected = true;
}

static void peer_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    T_TRUE(rig->in_len + n <= sizeof(rig->in));
    memcpy(rig->in + rig->in_len, p, n);
    rig->in_len += n;
}

static void peer_writable(struct sg_stream *s)
{
}

static void peer_fin(struct sg_stream *s)
{
    rig->peer_fin = true;
}

static void peer_closed(struct sg_stream *s, enum sg_stream_end why)
{
    rig->peer = rig->peer == s ? NULL : rig->peer; /* s may be an earlier one */
    rig->peer_over = true;
    rig->peer_why = why;
}

static const struct sg_stream_events peer_events = {
    .connected = peer_connected,
    .receive = peer_receive,
    .writable = peer_writable,
    .peer_closed = peer_fin,
    .closed = peer_closed,
};

bool rig_peer_accept(void *user, struct sg_stream *s)
{
    s->events = &peer_events;
    rig->peer = s;
    rig->peer_connected = true;
    return true;
}

/* Hex text to octets; blanks may stand anywhere between octets. */
static size_t unhex(const char *text, uint8_t *buf, size_t size)
{
    size_t n = 0;
    unsigned v;

    while (*text) {
        if (*text == ' ') {
            text++;
            continue;
        }
        T_TRUE(n < size);
        T_TRUE(sscanf(text, "%2x", &v) == 1);
        buf[n++] = (uint8_t)v;
        text += 2;
    }
    return n;
}

void rig_say_octets(const uint8_t *p, size_t n)
{
    struct iovec iov = { .iov_base = (void *)p, .iov_len = n };

    T_NOT_NULL(rig->peer);
    T_TRUE(rig->peer->ops->send(rig->peer, &iov, 1, false));
    rig_settle();
}

void rig_say(const char *hex)
{
    uint8_t buf[4096];

    rig_say_octets(buf, unhex(hex, buf, sizeof(buf)));
}

/* A second implementation of framing, independent of the engine's. */
static size_t frame(const char *hex, uint8_t *buf, size_t size)
{
    size_t n = unhex(hex, buf + 2, size - 16);

    sg_put_be16(buf, (uint16_t)n);
    n += 2;
    while (n % 4) {
        buf[n++] = 0;
    }
    sg_put_le32(buf + n, sg_crc32c(0, buf, n));
    return n + 4;
}

void rig_say_fpdu(const char *ulpdu_hex)
{
    uint8_t buf[4096];

    rig_say_octets(buf, frame(ulpdu_hex, buf, sizeof(buf)));
}

static void expect(const uint8_t *want, size_t n)
{
    if (rig->in_len - rig->in_used < n) {
        t_print_octets("got     ", rig->in, rig->in_used, rig->in_len);
        T_FAIL("the engine sent %zu octets, expected %zu", rig->in_len - rig->in_used, n);
    }
    T_EQ_MEM(rig->in + rig->in_used, want, n);
    rig->in_used += n;
}

void rig_expect(const char *hex)
{
    uint8_t buf[4096];

    expect(buf, unhex(hex, buf, sizeof(buf)));
    rig_expect_nothing();
}

void rig_expect_fpdu(const char *ulpdu_hex)
{
    uint8_t buf[4096];

    expect(buf, frame(ulpdu_hex, buf, sizeof(buf)));
}

void rig_expect_nothing(void)
{
    if (rig->in_len != rig->in_used) {
        t_print_octets("got     ", rig->in, rig->in_used, rig->in_len);
        T_FAIL("%zu octets too many", rig->in_len - rig->in_used);
    }
    T_EQ_U64(rig->in_len, rig->in_used);
}

void rig_peer_close(void)
{
    rig->peer->ops->shutdown(rig->peer);
    rig_settle();
}

void rig_peer_close_only(void)
{
    rig->peer->ops->shutdown(rig->peer);
    sg_mem_switch_run(rig->sw, rig->now_ns);
}

void rig_peer_abort(void)
{
    rig->peer->ops->abort(rig->peer);
    rig->peer = NULL;
    rig_settle();
}

void rig_request(const char *request_hex)
{
    const struct sg_endpoint any = { .family = 4 };
    enum sg_stream_end why;

    rig->peer =
        rig->net_peer->ops->connect(rig->net_peer, &any, &rig->at_engine, &peer_events, NULL, &why);
    T_NOT_NULL(rig->peer);
    rig_settle();
    T_TRUE(rig->peer_connected);
    if (request_hex) {
        rig_say(request_hex);
    }
}
