// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RESET of connected queue pairs whose peer is silent, so that TCP still has something to deliver.
 *
 * reset_lingers PORT: the peer, which accepts all connections.
 * reset_lingers PORT ADDRESS: connects, prints "connected" and waits for the file /tmp/silent.
 * Then it posts a Send on each queue pair and tries to reset it.  It prints "reset" or "refused"
 * for each, then "tried".  Then it tries again until each queue pair is reset, and prints "done".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum { CONNECTIONS = 16, PATIENCE_S = 120 };

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct rdma_cm_id *ids[CONNECTIONS];

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static void say(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

    if (!pd) {
        pd = ibv_alloc_pd(id->verbs);
        check(pd, "ibv_alloc_pd");
        cq = ibv_create_cq(id->verbs, 2 * CONNECTIONS, NULL, NULL, 0);
        check(cq, "ibv_create_cq");
    }
    attr.send_cq = attr.recv_cq = cq;
    check(!rdma_create_qp(id, pd, &attr), "rdma_create_qp");
    check(!ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
}

static void accept_all(struct sockaddr *where)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_conn_param param = { 0 };
    struct rdma_cm_event *event;
    struct rdma_cm_id *listener;

    check(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(listener, where), "rdma_bind_addr");
    check(!rdma_listen(listener, CONNECTIONS), "rdma_listen");
    say("listening");
    while (!rdma_get_cm_event(channel, &event)) {
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            make_qp(event->id);
            check(!rdma_accept(event->id, &param), "rdma_accept");
        }
        rdma_ack_cm_event(event);
    }
}

static void connect_all(struct sockaddr *where)
{
    struct rdma_conn_param param = { 0 };

    for (int i = 0; i < CONNECTIONS; i++) {
        /* Without a channel each call waits until it is done. */
        check(!rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
        check(!rdma_resolve_addr(ids[i], NULL, where, 5000), "rdma_resolve_addr");
        check(!rdma_resolve_route(ids[i], 5000), "rdma_resolve_route");
        make_qp(ids[i]);
        check(!rdma_connect(ids[i], &param), "rdma_connect");
    }
    say("connected");
}

static bool reset(struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

    return !ibv_modify_qp(id->qp, &attr, IBV_QP_STATE);
}

static void reset_all(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
    time_t limit;

    for (int i = 0; i < CONNECTIONS; i++) {
        check(!ibv_post_send(ids[i]->qp, &wr, &bad), "ibv_post_send");
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        say(reset(ids[i]) ? "reset" : "refused");
    }
    say("tried");
    limit = time(NULL) + PATIENCE_S;
    for (int i = 0; i < CONNECTIONS; i++) {
        while (!reset(ids[i])) {
            check(time(NULL) < limit, "RESET");
        }
    }
    say("done");
}

int main(int argc, char **argv)
{
    struct sockaddr_in where = { .sin_family = AF_INET };

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: %s PORT [ADDRESS]\n", argv[0]);
        return 2;
    }
    where.sin_port = htons((uint16_t)atoi(argv[1]));
    if (argc == 2) {
        accept_all((struct sockaddr *)&where);
        return 1;
    }
    check(inet_pton(AF_INET, argv[2], &where.sin_addr) == 1, argv[2]);
    connect_all((struct sockaddr *)&where);
    while (access("/tmp/silent", F_OK)) {
        usleep(100000);
    }
    reset_all();
    return 0;
}
