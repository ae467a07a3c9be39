/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-tcp --seed N        one run
 * rdma-tcp --seeds A..B    many runs; stops at the first that fails
 *
 * The network of the simulator (rt_sim.h), its loop, and a stream that is a TCP as seen from above.
 */
#include <glib.h>
#include <stdarg.h>

#include "rt_sim.h"

enum { STEPS_MAX = 200000, EMSS_MIN = 300 };

uint32_t rt_below(struct rt_world *w, uint32_t n)
{
    return (uint32_t)(sg_prng(&w->random) % n);
}

bool rt_chance(struct rt_world *w, unsigned percent)
{
    return rt_below(w, 100) < percent;
}

void rt_fail(struct rt_world *w, const char *fmt, ...)
{
    va_list ap;

    printf("not ok 1 - seed %" PRIu64 ": ", w->seed);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n# again with: --seed %" PRIu64 "\n", w->seed);
    exit(1);
}

/* ---- the host ---- */

static uint64_t host_now(void *h)
{
    return ((struct rt_world *)h)->now_ns;
}

static void host_kick(void *h)
{
    (void)h; /* the engine runs in every step */
}

static void host_random(void *h, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)sg_prng(&((struct rt_world *)h)->random);
    }
}

static bool host_log_enabled(void *h, enum sg_log_class cls)
{
    (void)cls;
    return ((struct rt_world *)h)->verbose;
}

static void host_log(void *h, enum sg_log_class cls, const char *line)
{
    (void)h;
    (void)cls;
    printf("# %s\n", line);
}

static const struct sg_host_ops host_ops = {
    .now = host_now,
    .kick = host_kick,
    .random = host_random,
    .log_enabled = host_log_enabled,
    .log = host_log,
};

/* ---- the stream below the engine ---- */

static struct rt_world *world_of(struct sg_stream *s)
{
    return sg_container_of(s, struct rt_world, stream);
}

static size_t st_room(struct sg_stream *s)
{
    return world_of(s)->room;
}

static bool st_send(struct sg_stream *s, const struct iovec *iov, unsigned n, bool more)
{
    struct rt_world *w = world_of(s);
    size_t total = 0;
    unsigned i;

    (void)more;
    for (i = 0; i < n; i++) {
        total += iov[i].iov_len;
    }
    if (total > w->room) {
        w->want_room = true;
        return false;
    }
    w->room -= (uint32_t)total;
    RT_CHECK(w, w->in_len + total <= RT_WIRE, "the engine sends too much");
    for (i = 0; i < n; i++) {
        memcpy(w->in + w->in_len, iov[i].iov_base, iov[i].iov_len);
        w->in_len += (uint32_t)iov[i].iov_len;
    }
    rt_hear(w);
    return true;
}

static void st_push(struct sg_stream *s)
{
    (void)s;
}

static void st_shutdown(struct sg_stream *s)
{
    world_of(s)->closing = true;
}

static void st_abort(struct sg_stream *s)
{
    rt_fail(world_of(s), "the engine resets the connection");
}

static size_t st_emss(struct sg_stream *s)
{
    return EMSS_MIN + world_of(s)->seed % 1200;
}

static size_t st_unacked(struct sg_stream *s)
{
    (void)s;
    return 0;
}

static void st_hold(struct sg_stream *s, bool held)
{
    world_of(s)->held = held;
}

static const struct sg_stream_ops stream_ops = {
    .room = st_room,
    .send = st_send,
    .push = st_push,
    .shutdown = st_shutdown,
    .abort = st_abort,
    .emss = st_emss,
    .unacked = st_unacked,
    .hold = st_hold,
};

static struct sg_stream *net_connect(struct sg_stream_net *net, const struct sg_endpoint *local,
                                     const struct sg_endpoint *remote,
                                     const struct sg_stream_events *events, void *user,
                                     enum sg_stream_end *why)
{
    struct rt_world *w = sg_container_of(net, struct rt_world, net);

    (void)local;
    (void)remote;
    (void)why;
    w->stream = (struct sg_stream){ .ops = &stream_ops, .events = events, .user = user };
    return &w->stream;
}

static const struct sg_stream_net_ops net_ops = { .connect = net_connect };

/* ---- the network ---- */

/* Puts what the peer has made into TCP segments: mostly one for each of its own. */
static void make_packet(struct rt_world *w)
{
    uint32_t len = w->made - w->sent;
    unsigned i;

    if (!len || w->packets == RT_PACKETS) {
        return;
    }
    for (i = 0; w->cut[i] <= w->sent; i++) {
    }
    if (!rt_chance(w, 10)) {
        len = w->cut[i] - w->sent;
    }
    if (rt_chance(w, 10)) {
        len = 1 + rt_below(w, len);
    }
    w->packet[w->packets++] = (struct rt_packet){ .pos = w->sent, .len = len };
    w->sent += len;
}

/* Shows octets behind a gap, in memory that ends with them; some are damaged. */
static void show(struct rt_world *w, struct rt_packet *pk)
{
    uint8_t *copy = g_memdup2(w->out + pk->pos, pk->len);

    if (rt_chance(w, 10)) {
        copy[rt_below(w, pk->len)] ^= (uint8_t)(1 << rt_below(w, 8));
    }
    pk->taken |= w->stream.events->receive_early(&w->stream, pk->pos - w->delivered, copy, pk->len);
    g_free(copy);
}

static void deliver_first(struct rt_world *w)
{
    struct rt_packet pk = w->packet[0];
    uint8_t *copy = g_memdup2(w->out + pk.pos, pk.len);

    if (pk.taken) {
        memset(copy, rt_below(w, 256), pk.len);
    }
    memmove(w->packet, w->packet + 1, --w->packets * sizeof(pk));
    w->delivered += pk.len;
    w->stream.events->receive(&w->stream, copy, pk.len);
    g_free(copy);
}

/* A TCP segment arrives, or one that was lost arrives now. */
static void network(struct rt_world *w)
{
    unsigned i;

    if (!w->packets) {
        return;
    }
    i = rt_chance(w, 50) ? 0 : rt_below(w, w->packets);
    if (i) {
        w->packet[i].here = true;
        show(w, &w->packet[i]);
        return;
    }
    if (w->held || !rt_chance(w, 60)) {
        return; /* the window is closed, or it is lost again */
    }
    do {
        deliver_first(w);
    } while (w->packets && w->packet[0].here && !w->held);
}

static void transmit(struct rt_world *w)
{
    if (w->want_room && rt_chance(w, 50)) {
        w->want_room = false;
        w->room = 1500 + rt_below(w, 8000);
        w->stream.events->writable(&w->stream);
    }
    if (w->ready && w->c && rt_chance(w, 50)) {
        w->ready = sg_conn_transmit(w->c, 1 + rt_below(w, 5000));
    }
    if (w->put_off && rt_chance(w, 20)) {
        w->put_off = false;
        sg_conn_resume(w->c);
    }
    w->now_ns += rt_below(w, 2000);
    sg_engine_run(w->e, w->now_ns);
}

static void end(struct rt_world *w)
{
    w->fin = true;
    w->stream.events->peer_closed(&w->stream);
    sg_conn_close(w->c);
    while (w->c && !w->closing) {
        sg_conn_transmit(w->c, 1000);
    }
    w->stream.events->closed(&w->stream, SG_STREAM_CLOSED);
    RT_CHECK(w, w->over, "it does not end");
}

static void run(struct rt_world *w, uint64_t seed, bool verbose)
{
    const struct sg_engine_config config = {
        .wire = SG_ENGINE_RDMA_TCP_2000,
        .mpa_rev = 2, /* without meaning here */
        .max_ird = RT_IRD,
        .max_ord = RT_IRD,
        .reply_timeout_ms = 100000,
        .startup_timeout_ms = 100000,
        .close_timeout_ms = 100000,
        .linger_timeout_ms = 100000,
        .close_limit_ms = 100000,
    };
    const struct sg_conn_params p = { .ird = RT_IRD, .ord = RT_IRD };
    const struct sg_endpoint at = { .family = 4 };
    uint64_t early = w->early;
    enum sg_conn_end why;
    unsigned step;

    memset(w, 0, sizeof(*w));
    w->early = early;
    w->seed = w->random = seed;
    w->verbose = verbose;
    w->room = 4000;
    w->host = (struct sg_host){ .ops = &host_ops, .opaque = w };
    w->net.ops = &net_ops;
    rt_make_messages(w);
    w->e = sg_engine_new(&w->host, &w->net, &config, &rt_ops);
    w->c = sg_engine_connect(w->e, &at, &at, &p, w, &why);
    w->stream.events->connected(&w->stream);
    for (step = 0; step < STEPS_MAX && !rt_all_done(w); step++) {
        if (w->up && w->made - w->delivered < 100000 && rt_chance(w, 40)) {
            rt_make_segment(w);
        }
        make_packet(w);
        network(w);
        transmit(w);
    }
    RT_CHECK(w, rt_all_done(w), "it is stuck: %u of %u octets delivered, %u of %u messages heard",
             w->delivered, w->made, w->ours.open, w->ours.msgs);
    rt_check_end(w);
    end(w);
    RT_CHECK(w, !sg_engine_stats(w->e)->conns, "the engine keeps a connection");
    sg_engine_free(w->e);
}

int main(int argc, char **argv)
{
    struct rt_world *w = g_new0(struct rt_world, 1);
    uint64_t first = 1, last = 500, seed;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        first = last = strtoull(argv[2], NULL, 0);
    } else if (argc != 1 && (argc != 3 || strcmp(argv[1], "--seeds") != 0 ||
                             sscanf(argv[2], "%" SCNu64 "..%" SCNu64, &first, &last) != 2)) {
        fputs("usage: rdma-tcp [--seed N | --seeds A..B]\n", stderr);
        return 2;
    }
    puts("1..1");
    for (seed = first; seed <= last; seed++) {
        run(w, seed, first == last);
    }
    if (last - first >= 50 && !w->early) {
        puts("not ok 1 - no segment was placed early");
        return 1;
    }
    printf("# %" PRIu64 " segments were placed early\n", w->early);
    printf("ok 1 - seeds %" PRIu64 " to %" PRIu64 "\n", first, last);
    g_free(w);
    return 0;
}
