/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast is the engine alone?  Two engines joined by immediate in-memory streams, CRC on: RDMA
 * Writes and Sends of several sizes, beside plain memcpy and CRC of the same size.
 *
 * Not a test: nothing checks the numbers.  Usage: bench_engine [seconds per row]
 */
#include <glib.h>
#include <time.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "proto/engine.h"
#include "stream_mem.h"

enum {
    REGION = 1 << 24,
    STAG = 0x100,
};

struct engine_end {
    struct sg_engine *e;
    struct sg_conn *c;
    uint8_t *mem;
    uint64_t left; /* messages still to be sent */
    struct sg_msg msg;
    bool up;
    uint64_t at, received;
};

static struct engine_end ends[2];

static uint64_t now_ns(void *h)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void kick(void *h)
{
}

static bool log_enabled(void *h, enum sg_log_class cls)
{
    return false;
}

static void request(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p)
{
    ends[1].c = c;
}

static void reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    ends[0].up = end == SG_CONN_OK;
}

static void established(void *user, const struct sg_conn_params *p)
{
    ends[1].up = true;
}

static void tx_ready(void *user)
{
}

static bool next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    struct engine_end *s = user;

    if (!s->left) {
        return false;
    }
    s->left--;
    *msg = s->msg;
    s->at += sg_msg_length(&s->msg);
    if (s->at + sg_msg_length(&s->msg) > REGION) {
        s->at = 0;
    }
    msg->cookie = s->at;
    if (msg->kind == SG_MSG_WRITE) {
        msg->write.to = s->at;
    }
    return true;
}

static int gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                  struct iovec *iov)
{
    struct engine_end *s = user;

    iov->iov_base = s->mem + msg->cookie + off;
    iov->iov_len = len;
    return 1;
}

static void gathered(void *user, struct iovec *iov, int n)
{
}

static void sent(void *user, const struct sg_msg *msg)
{
}

static enum sg_mem_status place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                      size_t n)
{
    struct engine_end *s = user;

    if (stag != STAG || to > REGION || n > REGION - to) {
        return SG_MEM_BOUNDS;
    }
    memcpy(s->mem + to, p, n);
    return SG_MEM_OK;
}

static enum sg_recv_status place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                      size_t n)
{
    struct engine_end *s = user;

    memcpy(s->mem + s->at + mo, p, n);
    return SG_RECV_OK;
}

static void recv_done(void *user, const struct sg_recv_info *info)
{
    struct engine_end *s = user;

    s->received++;
    s->at = (s->at + info->length) % (REGION / 2);
}

static const struct sg_host_ops host_ops = {
    .now = now_ns,
    .kick = kick,
    .log_enabled = log_enabled,
};

static const struct sg_engine_ops ops = {
    .request = request,
    .reply = reply,
    .established = established,
    .tx_ready = tx_ready,
    .next = next,
    .gather = gather,
    .gathered = gathered,
    .sent = sent,
    .place_write = place_write,
    .place_recv = place_recv,
    .recv_done = recv_done,
};

static double seconds(void)
{
    return (double)now_ns(NULL) / 1e9;
}

static void run_row(const char *name, enum sg_msg_kind kind, uint32_t length, double time)
{
    double start = seconds(), took;
    uint64_t messages = 0;
    uint64_t before = sg_engine_stats(ends[1].e)->rx_fpdus;

    if (kind == SG_MSG_WRITE) {
        ends[0].msg = (struct sg_msg){ .kind = kind, .write = { .length = length, .stag = STAG } };
    } else {
        ends[0].msg = (struct sg_msg){ .kind = kind, .send = { .length = length } };
    }
    do {
        ends[0].left = 1 + (1 << 22) / (length + 64);
        messages += ends[0].left;
        while (ends[0].left) {
            sg_conn_transmit(ends[0].c, 1 << 20);
        }
        while (sg_conn_transmit(ends[0].c, 1 << 20)) {
        }
        took = seconds() - start;
    } while (took < time);
    if (sg_engine_stats(ends[1].e)->rx_fpdus - before < messages) {
        fputs("messages were lost\n", stderr);
        exit(1);
    }
    printf("%-6s %8u octets: %10.0f messages/s %8.0f MB/s\n", name, length, (double)messages / took,
           (double)messages * length / took / 1e6);
}

static void run_plain(const char *name, uint32_t length, double time)
{
    double start = seconds(), took;
    uint64_t n = 0, at = 0;
    uint32_t crc = 0;

    do {
        uint64_t i, batch = 1 + (1 << 22) / length;

        for (i = 0; i < batch; i++) {
            at = at + 2 * (uint64_t)length > REGION ? 0 : at + length;
            if (name[0] == 'm') {
                memcpy(ends[1].mem + at, ends[0].mem + at, length);
            } else {
                crc += sg_crc32c(0, ends[0].mem + at, length);
            }
        }
        n += batch;
        took = seconds() - start;
    } while (took < time);
    ends[0].mem[0] = (uint8_t)crc;
    printf("%-6s %8u octets: %10.0f calls/s    %8.0f MB/s\n", name, length, (double)n / took,
           (double)n * length / took / 1e6);
}

static void set_up(struct sg_mem_switch *sw, const struct sg_host *host)
{
    const struct sg_engine_config cfg = {
        .mpa_rev = 2,
        .crc = true,
        .peer_to_peer = true,
        .rtr_mask = SG_RTR_WRITE,
        .max_ird = 8,
        .max_ord = 8,
        .reply_timeout_ms = 10000,
        .startup_timeout_ms = 10000,
        .close_timeout_ms = 1000,
        .linger_timeout_ms = 1000,
        .close_limit_ms = 10000,
    };
    const struct sg_conn_params p = { .ird = 8, .ord = 8 };
    struct sg_endpoint at[2];
    enum sg_conn_end why;
    unsigned i;

    for (i = 0; i < 2; i++) {
        at[i] = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
        ends[i].e = sg_engine_new(host, sg_mem_switch_port(sw, &at[i]), &cfg, &ops);
        ends[i].mem = g_malloc(REGION + 65536);
        memset(ends[i].mem, (int)i + 1, REGION + 65536);
        at[i].port = 4791;
    }
    sg_engine_listen(ends[1].e, &at[1], 1, &ends[1], &why);
    ends[0].c = sg_engine_connect(ends[0].e, &(struct sg_endpoint){ .family = 4 }, &at[1], &p,
                                  &ends[0], &why);
    for (i = 0; i < 20; i++) {
        sg_mem_switch_run(sw, now_ns(NULL));
        if (i == 10) {
            sg_conn_accept(ends[1].c, &ends[1], &p);
        }
        sg_conn_transmit(ends[0].c, 1 << 20);
        if (i >= 10) {
            sg_conn_transmit(ends[1].c, 1 << 20);
        }
    }
    if (!ends[0].up || !ends[1].up) {
        fputs("no connection\n", stderr);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = { 8, 64, 512, 4096, 65536, 1 << 20 };
    const struct sg_host host = { .ops = &host_ops };
    const struct sg_mem_options net = { .emss = 65535 };
    struct sg_mem_switch *sw = sg_mem_switch_new(&net);
    double time = argc > 1 ? atof(argv[1]) : 0.5;
    size_t i;

    set_up(sw, &host);
    printf("CRC32c by %s\n", sg_crc32c_active()->name);
    for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        run_plain("memcpy", sizes[i], time);
        run_plain("crc", sizes[i], time);
        run_row("Write", SG_MSG_WRITE, sizes[i], time);
        run_row("Send", SG_MSG_SEND, sizes[i], time);
    }
    sg_engine_free(ends[0].e);
    sg_engine_free(ends[1].e);
    sg_mem_switch_free(sw);
    g_free(ends[0].mem);
    g_free(ends[1].mem);
    return 0;
}
