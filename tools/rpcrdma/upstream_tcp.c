/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server over TCP as an upstream.  A record is one RPC message, in fragments that begin with a
 * word: the highest bit marks the last fragment, the others are its octets (RFC 5531 section 11).
 */
#include <errno.h>
#include <glib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "upstream.h"

enum { MARK = 4, PIECE = 64 * 1024 };

#define LAST UINT32_C(0x80000000)

struct tcp {
    struct rr_upstream upstream;
    int fd;
    GByteArray *in;  /* what came and was not looked at */
    GByteArray *rpc; /* the record, as far as its fragments are there */
    bool handed_over;
};

static bool fails(struct tcp *t, const char *what)
{
    snprintf(t->upstream.why, sizeof(t->upstream.why), "the server behind: %s", what);
    return false;
}

static bool send_all(struct tcp *t, const uint8_t *octets, size_t len, int flags)
{
    while (len) {
        ssize_t sent = send(t->fd, octets, len, flags | MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return fails(t, strerror(errno));
        }
        octets += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool tcp_send(struct rr_upstream *upstream, struct sg_span message)
{
    struct tcp *t = (struct tcp *)upstream;
    uint8_t mark[MARK];

    sg_put_be32(mark, LAST | (uint32_t)message.len);
    return send_all(t, mark, sizeof(mark), MSG_MORE) && send_all(t, message.p, message.len, 0);
}

/* What the socket has; false: the end. */
static bool fetch(struct tcp *t)
{
    static uint8_t piece[PIECE];

    while (t->in->len < RR_STREAM_ROOM + MARK) {
        ssize_t got = recv(t->fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (got > 0) {
            g_byte_array_append(t->in, piece, (guint)got);
        } else if (got == 0) {
            return fails(t, "it has ended the connection");
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return true;
        } else if (errno != EINTR) {
            return fails(t, strerror(errno));
        }
    }
    return true;
}

/* Moves whole fragments to t->rpc; *whole: it is a record. */
static bool assemble(struct tcp *t, bool *whole)
{
    *whole = false;
    while (!*whole && t->in->len >= MARK) {
        uint32_t mark = sg_get_be32(t->in->data), len = mark & ~LAST;

        if (len > RR_STREAM_ROOM - t->rpc->len) {
            return fails(t, "a message that is too long to be relayed");
        }
        if (t->in->len - MARK < len) {
            return true;
        }
        g_byte_array_append(t->rpc, t->in->data + MARK, len);
        g_byte_array_remove_range(t->in, 0, MARK + len);
        *whole = mark & LAST;
    }
    return true;
}

static enum rr_upstream_kind tcp_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    struct tcp *t = (struct tcp *)upstream;
    bool whole, open;

    if (t->handed_over) {
        g_byte_array_set_size(t->rpc, 0);
        t->handed_over = false;
    }
    open = fetch(t);
    /* What came before the end is still to be relayed. */
    if (!assemble(t, &whole)) {
        return RR_UPSTREAM_END;
    }
    if (whole) {
        *message = sg_span_of(t->rpc->data, t->rpc->len);
        t->handed_over = true;
        return RR_UPSTREAM_MESSAGE;
    }
    return open ? RR_UPSTREAM_NOTHING : RR_UPSTREAM_END;
}

static void tcp_close(struct rr_upstream *upstream)
{
    struct tcp *t = (struct tcp *)upstream;

    close(t->fd);
    g_byte_array_free(t->in, true);
    g_byte_array_free(t->rpc, true);
    g_free(t);
}

/* A reserved local port, which NFS servers ask for by default; others do without. */
static void take_reserved_port(int fd, int family)
{
    if (family == AF_INET) {
        struct sockaddr_in local = { .sin_family = AF_INET };

        (void)!bindresvport(fd, &local);
    }
}

static int connect_to(const struct addrinfo *a)
{
    struct timeval limit = { .tv_sec = RR_UPSTREAM_LIMIT_MS / 1000 };
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0) {
        return -1;
    }
    /* Also the limit of connect(). */
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    take_reserved_port(fd, a->ai_family);
    if (connect(fd, a->ai_addr, a->ai_addrlen)) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static struct rr_upstream *tcp_open(const struct rr_source *source, char *why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
    int error = getaddrinfo(source->host, source->service, &hints, &found), fd = -1;
    struct tcp *t;

    if (error) {
        snprintf(why, RR_WHY, "%s: %s", source->host, gai_strerror(error));
        return NULL;
    }
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = connect_to(a);
    }
    if (fd < 0) {
        snprintf(why, RR_WHY, "no TCP connection to %s port %s: %s", source->host, source->service,
                 errno == EINPROGRESS ? "no answer" : strerror(errno));
        freeaddrinfo(found);
        return NULL;
    }
    freeaddrinfo(found);
    t = g_new0(struct tcp, 1);
    t->upstream = (struct rr_upstream){ tcp_send, tcp_poll, tcp_close, "" };
    t->fd = fd;
    t->in = g_byte_array_new();
    t->rpc = g_byte_array_new();
    return &t->upstream;
}

struct rr_source rr_source_tcp(const char *host, const char *service)
{
    return (struct rr_source){ .open = tcp_open, .host = host, .service = service };
}
