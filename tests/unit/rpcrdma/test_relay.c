/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All cases of `rpcrdma check client` through a relay to a server over TCP.  The server is the
 * program echo at a port of the loopback interface, in this process: it works when the relay polls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_cases.h"
#include "echo.h"
#include "loopback_client.h"
#include "tap.h"

enum { WAIT_MS = 60000, QUIET_MS = 5, TICK_US = 20, MARK = 4, ROOM = 64 * 1024 };

static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

static struct tcp_server {
    int listener, fd;
    char service[8];
    struct rr_echo_memory memory;
    struct rr_stream reply;
    uint8_t in[ROOM];
    size_t len;
    unsigned calls, connections;
    unsigned leaves_after; /* Calls, on the first connection; 0: it stays */
    struct rr_source tcp;
} server;

static void serve(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);

    memset(&server, 0, sizeof(server));
    server.fd = -1;
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    T_EQ_INT(bind(server.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    T_EQ_INT(listen(server.listener, 4), 0);
    T_EQ_INT(getsockname(server.listener, (struct sockaddr *)&at, &len), 0);
    snprintf(server.service, sizeof(server.service), "%u", ntohs(at.sin_port));
    server.tcp = rr_source_tcp("127.0.0.1", server.service);
}

/* Two fragments for each Reply, so that the relay has to put them together. */
static void answer(struct sg_span call)
{
    struct rr_stream *s = &server.reply;
    size_t half = s->len / 2;
    struct rr_rpc rpc;
    uint8_t mark[MARK];

    T_TRUE(rr_rpc_parse(call, &rpc));
    rr_echo_answer(&server.memory, &rpc, call, s);
    server.calls++;
    half = s->len / 2;
    sg_put_be32(mark, (uint32_t)half);
    T_EQ_INT(send(server.fd, mark, MARK, 0), MARK);
    T_EQ_INT(send(server.fd, s->octets, half, 0), (ssize_t)half);
    sg_put_be32(mark, 0x80000000u | (uint32_t)(s->len - half));
    T_EQ_INT(send(server.fd, mark, MARK, 0), MARK);
    T_EQ_INT(send(server.fd, s->octets + half, s->len - half, 0), (ssize_t)(s->len - half));
}

static void work(void)
{
    ssize_t got = recv(server.fd, server.in + server.len, ROOM - server.len, MSG_DONTWAIT);

    server.len += got > 0 ? (size_t)got : 0;
    while (server.len >= MARK) {
        size_t len = sg_get_be32(server.in) & 0x7fffffff;

        if (server.len - MARK < len) {
            return;
        }
        answer(sg_span_of(server.in + MARK, len));
        server.len -= MARK + len;
        memmove(server.in, server.in + MARK + len, server.len);
    }
}

/* The relay's upstream, which lets the server work first. */
struct pumped {
    struct rr_upstream upstream;
    struct rr_upstream *tcp;
};

static bool pumped_send(struct rr_upstream *upstream, struct sg_span message)
{
    struct pumped *p = (struct pumped *)upstream;

    return p->tcp->send(p->tcp, message);
}

static enum rr_upstream_kind pumped_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    struct pumped *p = (struct pumped *)upstream;
    enum rr_upstream_kind kind;

    work();
    if (server.leaves_after && server.connections == 1 && server.calls >= server.leaves_after) {
        shutdown(server.fd, SHUT_RDWR);
    }
    kind = p->tcp->poll(p->tcp, message);
    memcpy(upstream->why, p->tcp->why, sizeof(upstream->why));
    return kind;
}

static void pumped_close(struct rr_upstream *upstream)
{
    struct pumped *p = (struct pumped *)upstream;

    p->tcp->close(p->tcp);
    close(server.fd);
    server.fd = -1;
    g_free(p);
}

static struct rr_upstream *pumped_open(const struct rr_source *source, char *why)
{
    struct pumped *p = g_new0(struct pumped, 1);

    p->upstream = (struct rr_upstream){ pumped_send, pumped_poll, pumped_close, "" };
    p->tcp = server.tcp.open(&server.tcp, why);
    if (!p->tcp) {
        g_free(p);
        return NULL;
    }
    server.fd = accept(server.listener, NULL, NULL);
    server.len = 0;
    server.connections++;
    rr_echo_start(&server.memory);
    return &p->upstream;
}

static const struct rr_source pumped_source = { .open = pumped_open };

static void run(struct rr_client_loopback *loopback, struct rr_book *book)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client_run run = { .book = book };

    *book = (struct rr_book){ .target = "test", .out = g_string_new(NULL) };
    rr_client_loopback_init(loopback, &settings);
    run.options = (struct rr_client_options){ .acceptor = &loopback->acceptor,
                                              .source = &pumped_source,
                                              .wait_ms = WAIT_MS,
                                              .quiet_ms = QUIET_MS,
                                              .now = tick };
    rr_client_check_all(&run);
    if (book->failed) {
        printf("# %s\n", book->out->str);
    }
    T_EQ_INT(book->number, rr_client_check_count(&run));
    T_EQ_INT(book->failed, 0);
    rr_client_loopback_clear(loopback);
}

static void all_cases__through_tcp(void)
{
    struct rr_client_loopback loopback;
    struct rr_book book;

    serve();
    run(&loopback, &book);
    T_EQ_INT(book.in_trouble, 0);
    T_EQ_INT(book.skipped, 0);
    T_EQ_INT(loopback.before.wrong, 0);
    T_TRUE(server.calls >= loopback.before.answered);
    T_TRUE(server.calls >= 200);
    g_string_free(book.out, true);
    close(server.listener);
}

/* The server behind goes: that is no breach of the client, and the next case has another one. */
static void the_server_goes(void)
{
    struct rr_client_loopback loopback;
    struct rr_book book;

    serve();
    server.leaves_after = 20;
    run(&loopback, &book);
    T_EQ_INT(book.in_trouble, 1);
    T_NOT_NULL(strstr(book.out->str, "cannot judge: the server behind: it has ended"));
    g_string_free(book.out, true);
    close(server.listener);
}

static const struct t_case cases[] = {
    { "all cases hold through a relay", all_cases__through_tcp },
    { "the end of the server behind is no breach", the_server_goes },
};

T_MAIN(cases)
