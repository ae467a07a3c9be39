/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands behind `rpcrdma check client`: records of RPC over TCP, and results in Replies. */
#include "upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.h"
#include "tap.h"

enum { POLLS_MAX = 100000, LAST = 0x80 };

/* A server at a port of the loopback interface, and an upstream that is connected to it. */
struct fixture {
    int listener, fd;
    char service[8];
    struct rr_upstream *upstream;
};

static void start(struct fixture *f)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    struct rr_source source;
    char why[RR_WHY] = "";

    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    T_EQ_INT(bind(f->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    T_EQ_INT(listen(f->listener, 1), 0);
    T_EQ_INT(getsockname(f->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(f->service, sizeof(f->service), "%u", ntohs(at.sin_port));
    source = rr_source_tcp("127.0.0.1", f->service);
    f->upstream = source.open(&source, why);
    T_EQ_STR(why, "");
    T_NOT_NULL(f->upstream);
    f->fd = accept(f->listener, NULL, NULL);
    T_TRUE(f->fd >= 0);
}

static void stop(struct fixture *f)
{
    f->upstream->close(f->upstream);
    close(f->fd);
    close(f->listener);
}

static void say(const struct fixture *f, const void *octets, size_t len)
{
    T_EQ_INT(write(f->fd, octets, len), (ssize_t)len);
}

/* TCP needs its time. */
static enum rr_upstream_kind hear(struct fixture *f, struct sg_span *message)
{
    enum rr_upstream_kind kind = RR_UPSTREAM_NOTHING;

    for (unsigned i = 0; i < POLLS_MAX && kind == RR_UPSTREAM_NOTHING; i++) {
        kind = f->upstream->poll(f->upstream, message);
        if (kind == RR_UPSTREAM_NOTHING) {
            usleep(100);
        }
    }
    return kind;
}

static void records__both_ways(void)
{
    static const uint8_t two[] = { LAST, 0, 0, 4, 'a', 'b', 'c', 'd', LAST, 0, 0, 2, 'e', 'f' };
    struct sg_span m;
    struct fixture f;
    uint8_t got[16];

    start(&f);
    T_TRUE(f.upstream->send(f.upstream, sg_span_of("12345678", 8)));
    T_EQ_INT(recv(f.fd, got, 12, MSG_WAITALL), 12);
    T_EQ_INT(sg_get_be32(got), 0x80000008);
    T_TRUE(memcmp(got + 4, "12345678", 8) == 0);
    say(&f, two, sizeof(two));
    T_EQ_INT(hear(&f, &m), RR_UPSTREAM_MESSAGE);
    T_TRUE(m.len == 4 && memcmp(m.p, "abcd", 4) == 0);
    T_EQ_INT(hear(&f, &m), RR_UPSTREAM_MESSAGE);
    T_TRUE(m.len == 2 && memcmp(m.p, "ef", 2) == 0);
    T_EQ_INT(f.upstream->poll(f.upstream, &m), RR_UPSTREAM_NOTHING);
    stop(&f);
}

/* Three fragments, the second of which is empty, octet by octet; then the end. */
static void records__in_fragments(void)
{
    static const uint8_t three[] = { 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, LAST, 0, 0, 1, 'd' };
    struct sg_span m;
    struct fixture f;

    start(&f);
    for (size_t i = 0; i + 1 < sizeof(three); i++) {
        say(&f, three + i, 1);
        T_EQ_INT(f.upstream->poll(f.upstream, &m), RR_UPSTREAM_NOTHING);
    }
    say(&f, three + sizeof(three) - 1, 1);
    shutdown(f.fd, SHUT_WR);
    /* The message first, and then the end. */
    T_EQ_INT(hear(&f, &m), RR_UPSTREAM_MESSAGE);
    T_TRUE(m.len == 4 && memcmp(m.p, "abcd", 4) == 0);
    T_EQ_INT(hear(&f, &m), RR_UPSTREAM_END);
    T_NOT_NULL(strstr(f.upstream->why, "it has ended the connection"));
    stop(&f);
}

static void records__have_a_bound(void)
{
    static const uint8_t huge[] = { LAST | 0x7f, 0xff, 0xff, 0xff, 'a' };
    struct sg_span m;
    struct fixture f;

    start(&f);
    say(&f, huge, sizeof(huge));
    T_EQ_INT(hear(&f, &m), RR_UPSTREAM_END);
    T_NOT_NULL(strstr(f.upstream->why, "a message that is too long to be relayed"));
    stop(&f);
}

static void nobody_listens(void)
{
    struct rr_source source = rr_source_tcp("127.0.0.1", "1");
    char why[RR_WHY] = "";

    T_TRUE(source.open(&source, why) == NULL);
    T_NOT_NULL(strstr(why, "no TCP connection to 127.0.0.1 port 1: Connection refused"));
    source = rr_source_tcp("no such host", "2049");
    T_TRUE(source.open(&source, why) == NULL);
    T_NOT_NULL(strstr(why, "no such host: "));
}

/* ---- Results ---- */

static struct rr_stream call, reply;

static void expect_result(uint32_t at, uint32_t len)
{
    rr_results_find(&reply, sg_span_of(call.octets, call.len));
    T_EQ_INT(reply.items, 1);
    T_EQ_INT(reply.item[0].at, at);
    T_EQ_INT(reply.item[0].len, len);
}

static void expect_none(void)
{
    rr_results_find(&reply, sg_span_of(call.octets, call.len));
    T_EQ_INT(reply.items, 0);
}

static void read3(uint32_t attributes, uint32_t count)
{
    static const uint8_t zeros[1024];

    rr_stream_call(&call, 1, RR_PROG_NFS, 3, 6);
    rr_stream_reply(&reply, 1, RR_SUCCESS);
    rr_put_word(&reply, 0);
    rr_put_word(&reply, attributes);
    rr_put_fixed(&reply, sg_span_of(zeros, attributes ? 84 : 0));
    rr_put_word(&reply, count);
    rr_put_word(&reply, 1);
    rr_put_counted(&reply, sg_span_of(zeros, count));
}

static void results__of_nfs_3(void)
{
    read3(1, 101);
    expect_result(24 + 8 + 84 + 12, 101);
    read3(0, 3);
    expect_result(24 + 8 + 12, 3);
    reply.len -= 4; /* the octets are not there */
    expect_none();
    rr_stream_call(&call, 1, RR_PROG_NFS, 3, 5); /* READLINK */
    rr_stream_reply(&reply, 1, RR_SUCCESS);
    rr_put_word(&reply, 0);
    rr_put_word(&reply, 0);
    rr_put_counted(&reply, sg_span_of("link", 4));
    expect_result(24 + 12, 4);
    rr_stream_call(&call, 1, RR_PROG_NFS, 3, 1); /* GETATTR has none */
    expect_none();
}

/* SEQUENCE, PUTFH, READ or READLINK; @status is that of the last. */
static void compound(uint32_t op, uint32_t status)
{
    static const uint8_t zeros[36];

    rr_stream_call(&call, 1, RR_PROG_NFS, 4, 1);
    rr_stream_reply(&reply, 1, RR_SUCCESS);
    rr_put_word(&reply, status);
    rr_put_counted(&reply, sg_span_of("tag", 3));
    rr_put_word(&reply, 3);
    rr_put_word(&reply, 53);
    rr_put_word(&reply, 0);
    rr_put_fixed(&reply, sg_span_of(zeros, sizeof(zeros)));
    rr_put_word(&reply, 22);
    rr_put_word(&reply, 0);
    rr_put_word(&reply, op);
    rr_put_word(&reply, status);
    if (!status && op == 25) {
        rr_put_word(&reply, 1);
    }
    if (!status) {
        rr_put_counted(&reply, sg_span_of("result!", 7));
    }
}

static void results__of_compounds(void)
{
    compound(25, 0);
    expect_result(24 + 16 + 44 + 8 + 16, 7);
    compound(27, 0);
    expect_result(24 + 16 + 44 + 8 + 12, 7);
    compound(25, 13);
    expect_none();
    compound(99, 0); /* not known: what it has stays inline */
    expect_none();
    rr_stream_reply(&reply, 1, RR_GARBAGE_ARGS);
    expect_none();
}

static const struct t_case cases[] = {
    { "records go both ways", records__both_ways },
    { "records come in fragments", records__in_fragments },
    { "records have a bound", records__have_a_bound },
    { "nobody listens", nobody_listens },
    { "results of NFS version 3", results__of_nfs_3 },
    { "results of COMPOUNDs", results__of_compounds },
};

T_MAIN(cases)
