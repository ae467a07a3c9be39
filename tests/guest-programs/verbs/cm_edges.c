/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edge cases of connection setup by rdma_cm: a reply whose sender leaves at once, and ports that
 * the guest's own TCP uses.  Both ends are in this process, on the adapter's own address.
 *
 * cm_edges ADDRESS [PART-OF-A-CASE]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "tap.h"

enum { PORT = 18770, OTHER_PORT = 18771, ROUNDS = 100, IRD = 3, ORD = 5 };

static const char *address;

_Noreturn static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(1);
}

static struct sockaddr_in at(const char *ip, uint16_t port)
{
    struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

    if (ip && inet_pton(AF_INET, ip, &sin.sin_addr) != 1) {
        die(ip);
    }
    return sin;
}

/* ---- an identifier with its own channel ---- */

struct cm_edges_end {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
};

static void end_open(struct cm_edges_end *e)
{
    memset(e, 0, sizeof(*e));
    e->channel = rdma_create_event_channel();
    if (!e->channel || rdma_create_id(e->channel, &e->id, e, RDMA_PS_TCP)) {
        die("rdma_create_id");
    }
}

static void end_qp(struct cm_edges_end *e)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = { 4, 4, 1, 1, 0 },
    };

    e->pd = ibv_alloc_pd(e->id->verbs);
    e->cq = ibv_create_cq(e->id->verbs, 16, NULL, NULL, 0);
    attr.send_cq = attr.recv_cq = e->cq;
    if (!e->pd || !e->cq || rdma_create_qp(e->id, e->pd, &attr)) {
        die("rdma_create_qp");
    }
}

static void end_close(struct cm_edges_end *e)
{
    if (e->id->qp) {
        rdma_destroy_qp(e->id);
    }
    rdma_destroy_id(e->id);
    if (e->cq) {
        ibv_destroy_cq(e->cq);
    }
    if (e->pd) {
        ibv_dealloc_pd(e->pd);
    }
    if (e->channel) {
        rdma_destroy_event_channel(e->channel);
    }
}

/* The next event, which must be of this type, and its data. */
struct told {
    struct rdma_cm_id *id;
    struct rdma_conn_param param;
    char data[256];
};

static struct told expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    struct told t = { 0 };

    if (rdma_get_cm_event(channel, &event)) {
        die("rdma_get_cm_event");
    }
    T_CONTEXT("%s, status %d", rdma_event_str(event->event), event->status);
    T_EQ_INT(event->event, type);
    t.id = event->id;
    t.param = event->param.conn;
    if (t.param.private_data) {
        memcpy(t.data, t.param.private_data, t.param.private_data_len);
    }
    rdma_ack_cm_event(event);
    return t;
}

static void resolve(struct cm_edges_end *e, uint16_t port)
{
    struct sockaddr_in to = at(address, port);

    if (rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&to, 5000)) {
        die("rdma_resolve_addr");
    }
    expect(e->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(e->id, 5000)) {
        die("rdma_resolve_route");
    }
    expect(e->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    end_qp(e);
}

static int listen_at(struct cm_edges_end *e, const char *ip, uint16_t port)
{
    struct sockaddr_in sin = at(ip, port);

    end_open(e);
    return rdma_bind_addr(e->id, (struct sockaddr *)&sin) || rdma_listen(e->id, 8) ? errno : 0;
}

/* ---- cases ---- */

static void one_reply(struct cm_edges_end *server, int round)
{
    struct rdma_conn_param param = { .responder_resources = IRD, .initiator_depth = ORD };
    struct cm_edges_end client, passive = { 0 };
    char words[64];
    struct told t;

    end_open(&client);
    resolve(&client, PORT);
    if (rdma_connect(client.id, &param)) {
        die("rdma_connect");
    }
    t = expect(server->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    passive.id = t.id;
    end_qp(&passive);
    param = t.param;
    param.private_data = words;
    param.private_data_len = (uint8_t)(1 + snprintf(words, sizeof(words), "round %d", round));
    if (rdma_accept(passive.id, &param) || rdma_disconnect(passive.id)) {
        die("rdma_accept, rdma_disconnect");
    }
    /* In every other round the client reads late. */
    if (round % 2) {
        usleep(20000);
    }
    t = expect(client.channel, RDMA_CM_EVENT_ESTABLISHED);
    T_CONTEXT("round %d", round);
    T_TRUE(t.param.private_data_len >= strlen(words) + 1);
    T_EQ_INT(strcmp(t.data, words), 0);
    T_EQ_INT(t.param.responder_resources, IRD);
    T_EQ_INT(t.param.initiator_depth, ORD);
    expect(client.channel, RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(client.id);
    end_close(&client);
    for (;;) { /* ESTABLISHED may have been left out */
        struct rdma_cm_event *event;
        enum rdma_cm_event_type type;

        if (rdma_get_cm_event(server->channel, &event)) {
            die("rdma_get_cm_event");
        }
        type = event->event;
        rdma_ack_cm_event(event);
        if (type != RDMA_CM_EVENT_ESTABLISHED) {
            break;
        }
    }
    end_close(&passive);
}

static void reply_then_leave(void)
{
    struct cm_edges_end server;
    int round;

    if (listen_at(&server, address, PORT)) {
        die("listen");
    }
    for (round = 0; round < ROUNDS; round++) {
        one_reply(&server, round);
    }
    end_close(&server);
}

static int tcp_socket(const char *ip, uint16_t port, bool listens, int *error)
{
    struct sockaddr_in sin = at(ip, port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    *error =
        bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || (listens && listen(fd, 4)) ? errno : 0;
    return fd;
}

static void server_keeps_its_port(void)
{
    static const char *const ips[] = { NULL, "own" };
    unsigned tcp, rdma;

    for (tcp = 0; tcp < 2; tcp++) {
        for (rdma = 0; rdma < 2; rdma++) {
            struct cm_edges_end server;
            int fd, error;

            T_CONTEXT("socket at %u, listener at %u", tcp, rdma);
            fd = tcp_socket(ips[tcp] ? address : NULL, OTHER_PORT, true, &error);
            T_EQ_INT(error, 0);
            T_EQ_INT(listen_at(&server, ips[rdma] ? address : NULL, OTHER_PORT), EADDRINUSE);
            end_close(&server);
            close(fd);
            /* The failed listener holds no port. */
            T_EQ_INT(listen_at(&server, ips[rdma] ? address : NULL, OTHER_PORT), 0);
            close(tcp_socket(ips[tcp] ? address : NULL, OTHER_PORT, true, &error));
            T_EQ_INT(error, EADDRINUSE);
            end_close(&server);
            close(tcp_socket(ips[tcp] ? address : NULL, OTHER_PORT, true, &error));
            T_EQ_INT(error, 0);
        }
    }
}

/* No socket gets the local port of a connection. */
static void caller_keeps_its_port(void)
{
    struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
    struct cm_edges_end server, client, passive = { 0 };
    struct told t;
    uint16_t port;
    int error;

    if (listen_at(&server, address, PORT)) {
        die("listen");
    }
    end_open(&client);
    resolve(&client, PORT);
    if (rdma_connect(client.id, &param)) {
        die("rdma_connect");
    }
    t = expect(server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    passive.id = t.id;
    end_qp(&passive);
    if (rdma_accept(passive.id, &param)) {
        die("rdma_accept");
    }
    expect(client.channel, RDMA_CM_EVENT_ESTABLISHED);
    port = ntohs(rdma_get_src_port(client.id));
    close(tcp_socket(address, port, true, &error));
    T_EQ_INT(error, EADDRINUSE);
    rdma_disconnect(client.id);
    expect(client.channel, RDMA_CM_EVENT_DISCONNECTED);
    end_close(&client);
    end_close(&passive);
    close(tcp_socket(address, port, true, &error));
    T_EQ_INT(error, 0);
    end_close(&server);
}

static const struct t_case cases[] = {
    { "reply: private data and depths of one who leaves at once", reply_then_leave },
    { "port: a server of the guest keeps its port", server_keeps_its_port },
    { "port: a connection keeps the port that it calls from", caller_keeps_its_port },
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: cm_edges ADDRESS [PART-OF-A-CASE]\n");
        return 2;
    }
    address = argv[1];
    argv[1] = argv[0];
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), argc - 1, argv + 1);
}
