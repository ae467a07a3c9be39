// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two connections whose receives come from one shared receive queue, which is empty when their
 * Sends arrive and never holds more than one receive.  With an adapter that waits for receives
 * all Sends arrive, in the order of their connection.
 *
 * A Send of iWARP is complete when TCP has its acknowledgement, which may be before a receive
 * takes it, and a sender that ends resets its connections.  So the receiver answers on each
 * connection when it has all messages, and the sender waits for the answers.
 *
 * shared_queue WAY PORT: the receiver.  shared_queue WAY PORT ADDRESS: the sender.
 * WAY is "cm" (rdma_cm connects) or "qp" (ibv_modify_qp alone does; TCP carries the numbers).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum {
    CONNECTIONS = 2,
    SENDS = 64,      /* of each connection */
    LEN = 4096,      /* octets of each */
    PATIENCE_S = 60, /* until the next completion */
    LATE_US = 200000,
};

struct message {
    uint32_t connection, number;
    uint8_t rest[LEN - 8];
};

static struct {
    bool cm, receiver;
    struct sockaddr_in where; /* the receiver's address */
    int tcp;                  /* way "qp": connected to the other program */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;   /* of all queues */
    struct ibv_srq *srq; /* the receiver's */
    struct ibv_mr *mr;
    struct ibv_qp *qps[CONNECTIONS];
    struct message messages[CONNECTIONS][SENDS]; /* the receiver uses one */
} u;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(bool right, const char *what)
{
    if (!right) {
        die(what);
    }
}

/* ---- connections ---- */

static struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){
        .send_cq = u.cq,
        .recv_cq = u.cq,
        .srq = u.srq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = { .max_send_wr = SENDS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };
}

static void make_objects(struct ibv_context *ctx)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

    u.ctx = ctx;
    u.pd = ibv_alloc_pd(ctx);
    check(u.pd, "ibv_alloc_pd");
    u.cq = ibv_create_cq(ctx, CONNECTIONS * (SENDS + 1), NULL, NULL, 0);
    u.mr = ibv_reg_mr(u.pd, u.messages, sizeof(u.messages), IBV_ACCESS_LOCAL_WRITE);
    check(u.cq && u.mr, "completion queue and memory");
    if (u.receiver) {
        u.srq = ibv_create_srq(u.pd, &attr);
        check(u.srq, "ibv_create_srq");
    }
}

static void cm_receiver(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_conn_param param = { .rnr_retry_count = 7 };
    struct rdma_cm_event *event;
    struct rdma_cm_id *listener;
    int requests = 0, connected = 0;

    check(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(listener, (struct sockaddr *)&u.where), "rdma_bind_addr");
    check(!rdma_listen(listener, CONNECTIONS), "rdma_listen");
    while (connected < CONNECTIONS) {
        check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && requests < CONNECTIONS) {
            struct rdma_cm_id *id = event->id;

            if (!u.ctx) {
                make_objects(id->verbs);
            }
            struct ibv_qp_init_attr attr = qp_attr();

            check(!rdma_create_qp(id, u.pd, &attr), "rdma_create_qp");
            u.qps[requests++] = id->qp;
            check(!rdma_accept(id, &param), "rdma_accept");
        } else {
            check(event->event == RDMA_CM_EVENT_ESTABLISHED, rdma_event_str(event->event));
            connected++;
        }
        rdma_ack_cm_event(event);
    }
}

static void cm_sender(void)
{
    struct rdma_conn_param param = { .rnr_retry_count = 7 };
    struct rdma_cm_id *id;

    for (int i = 0; i < CONNECTIONS; i++) {
        /* Without a channel each call waits until it is done. */
        check(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
        check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&u.where, 5000), "rdma_resolve_addr");
        check(!rdma_resolve_route(id, 5000), "rdma_resolve_route");
        if (!u.ctx) {
            make_objects(id->verbs);
        }
        struct ibv_qp_init_attr attr = qp_attr();

        check(!rdma_create_qp(id, u.pd, &attr), "rdma_create_qp");
        check(!rdma_connect(id, &param), "rdma_connect");
        u.qps[i] = id->qp;
    }
}

static void meet(void)
{
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);

    check(s >= 0, "socket");
    if (u.receiver) {
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        check(!bind(s, (struct sockaddr *)&u.where, sizeof(u.where)) && !listen(s, 1), "listen");
        u.tcp = accept(s, NULL, NULL);
        check(u.tcp >= 0, "accept");
    } else {
        check(!connect(s, (struct sockaddr *)&u.where, sizeof(u.where)), "connect");
        u.tcp = s;
    }
}

/* The index of the GID that is our address on the path to the other program. */
static int open_own_device(union ibv_gid *gid)
{
    union ibv_gid own = { .raw = { [10] = 0xff, [11] = 0xff } };
    struct sockaddr_in name;
    socklen_t len = sizeof(name);
    struct ibv_device **list = ibv_get_device_list(NULL);

    check(!getsockname(u.tcp, (struct sockaddr *)&name, &len), "getsockname");
    memcpy(own.raw + 12, &name.sin_addr, 4);
    for (int d = 0; list && list[d]; d++) {
        struct ibv_context *ctx = ibv_open_device(list[d]);

        for (int i = 0; ctx && !ibv_query_gid(ctx, 1, i, gid); i++) {
            if (!memcmp(gid, &own, sizeof(own))) {
                make_objects(ctx);
                return i;
            }
        }
    }
    errno = ENODEV;
    die("no device has our address");
}

static void to_rts(struct ibv_qp *qp, int gid_index, uint32_t number, const union ibv_gid *gid)
{
    struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = number,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = { .is_global = 1,
                     .port_num = 1,
                     .grh = { .sgid_index = (uint8_t)gid_index, .dgid = *gid } },
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 20,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };

    check(!ibv_modify_qp(qp, &init,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "INIT");
    check(!ibv_modify_qp(qp, &rtr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "RTR");
    check(!ibv_modify_qp(qp, &rts,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
          "RTS");
}

static void connect_by_modify_qp(void)
{
    struct {
        union ibv_gid gid;
        uint32_t numbers[CONNECTIONS];
    } own = { 0 }, peer;
    int gid_index;

    meet();
    gid_index = open_own_device(&own.gid);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct ibv_qp_init_attr attr = qp_attr();

        u.qps[i] = ibv_create_qp(u.pd, &attr);
        check(u.qps[i], "ibv_create_qp");
        own.numbers[i] = u.qps[i]->qp_num;
    }
    check(send(u.tcp, &own, sizeof(own), MSG_NOSIGNAL) == sizeof(own) &&
              recv(u.tcp, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer),
          "the other program");
    for (int i = 0; i < CONNECTIONS; i++) {
        to_rts(u.qps[i], gid_index, peer.numbers[i], &peer.gid);
    }
}

/* ---- messages ---- */

static struct ibv_wc completion(void)
{
    time_t limit = time(NULL) + PATIENCE_S;
    struct ibv_wc wc;

    while (!ibv_poll_cq(u.cq, 1, &wc)) {
        if (time(NULL) > limit) {
            errno = ETIMEDOUT;
            die("the next completion");
        }
        usleep(100);
    }
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "completion status: %s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc;
}

/* Tells the sender that all messages are here. */
static void answer(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

    for (int c = 0; c < CONNECTIONS; c++) {
        check(!ibv_post_send(u.qps[c], &wr, &bad), "ibv_post_send");
    }
    for (int c = 0; c < CONNECTIONS; c++) {
        completion();
    }
}

static void receive_all(void)
{
    const struct message *m = &u.messages[0][0];
    struct ibv_sge sge = { (uintptr_t)m, LEN, u.mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
    uint32_t next[CONNECTIONS] = { 0 };

    usleep(LATE_US);
    for (int i = 0; i < CONNECTIONS * SENDS; i++) {
        check(!ibv_post_srq_recv(u.srq, &wr, &bad), "ibv_post_srq_recv");
        struct ibv_wc wc = completion();
        uint32_t c = m->connection;

        if (c >= CONNECTIONS || wc.byte_len != LEN || m->number != next[c]) {
            fprintf(stderr, "message %d: %u octets, number %u of connection %u\n", i, wc.byte_len,
                    m->number, c);
            exit(1);
        }
        next[c]++;
    }
    answer();
}

static void send_all(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1 }, *bad;
    struct ibv_recv_wr answer = { .num_sge = 0 }, *bad_recv;

    for (int c = 0; c < CONNECTIONS; c++) {
        check(!ibv_post_recv(u.qps[c], &answer, &bad_recv), "ibv_post_recv");
    }
    for (uint32_t i = 0; i < SENDS; i++) {
        for (uint32_t c = 0; c < CONNECTIONS; c++) {
            struct message *m = &u.messages[c][i];
            struct ibv_sge sge = { (uintptr_t)m, LEN, u.mr->lkey };

            m->connection = c;
            m->number = i;
            wr.sg_list = &sge;
            check(!ibv_post_send(u.qps[c], &wr, &bad), "ibv_post_send");
        }
    }
    for (int i = 0; i < CONNECTIONS * (SENDS + 1); i++) {
        completion(); /* of a Send, or of an answer */
    }
}

int main(int argc, char **argv)
{
    if ((argc != 3 && argc != 4) || (strcmp(argv[1], "cm") && strcmp(argv[1], "qp"))) {
        fprintf(stderr, "usage: %s cm|qp PORT [ADDRESS]\n", argv[0]);
        return 2;
    }
    u.cm = !strcmp(argv[1], "cm");
    u.receiver = argc == 3;
    u.where = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(argv[2])),
    };
    if (!u.receiver && inet_pton(AF_INET, argv[3], &u.where.sin_addr) != 1) {
        die(argv[3]);
    }
    if (!u.cm) {
        connect_by_modify_qp();
    } else if (u.receiver) {
        cm_receiver();
    } else {
        cm_sender();
    }
    if (u.receiver) {
        receive_all();
    } else {
        send_all();
    }
    printf("%d messages of each of %d connections\n", SENDS, CONNECTIONS);
    return 0;
}
