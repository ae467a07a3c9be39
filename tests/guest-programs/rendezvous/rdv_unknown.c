/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which requests the rendezvous of queue pairs (docs/protocol.md) accepts: rdma_cm sends requests
 * with one wrong field each, then the right one.
 *
 * rdv_unknown wait DEVICE SECOND: has queue pairs in several states, and executes commands.
 * rdv_unknown ask DEVICE ADDRESS SECOND: sends the requests.  ADDRESS is that of the waiting
 * program; SECOND is an IPv4 address of this machine, not the one from which it reaches ADDRESS.
 *
 * The two communicate by TCP.  First they exchange their identities, then the asking program sends
 * letters; each letter is a command, and its answer is the same letter.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "tap.h"

enum {
    TALK_PORT = 18750,
    RDV_PORT = 24791,
    PATIENCE_MS = 60000,
    MSG_LEN = 56,
    MSG_MAX = 255, /* private data that rdma_cm can send */
    BUF_LEN = 64,
    PSN_ASKER = 0x111111,
    PSN_WAITER = 0x222222,
    NAME_OPEN = 0xabcd01, /* numbers of peers that exist only in messages */
    NAME_HIGHER = 0xabcd02,
};

enum { REQUEST = 1, ACCEPT, REFUSE };
enum { EARLY = 1, UNKNOWN, FORM };

/* Queue pairs of the waiting program. */
enum waiting_qp {
    TRUE_PEER, /* RTR, later RTS; for the asker's queue pair */
    OPEN,      /* RTR, for NAME_OPEN, at the asker's first address */
    HIGHER,    /* RTR, for NAME_HIGHER at the asker's second: this end connects */
    CLOSED,    /* INIT */
    WAITING_QPS,
};

struct hello {
    uint32_t number[WAITING_QPS];
    union ibv_gid gid;
};

static struct {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char buf[BUF_LEN];
    int gid_index;
    struct hello me, peer;
    union ibv_gid second; /* the asker's second address */
    int talk;
} u;

_Noreturn static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(1);
}

/* ---- the two programs ---- */

static void give(const void *data, size_t len)
{
    if (send(u.talk, data, len, MSG_NOSIGNAL) != (ssize_t)len) {
        die("the other program");
    }
}

static void take(void *data, size_t len)
{
    struct pollfd pfd = { .fd = u.talk, .events = POLLIN };

    errno = ETIMEDOUT;
    if (poll(&pfd, 1, 5 * PATIENCE_MS) != 1 ||
        recv(u.talk, data, len, MSG_WAITALL) != (ssize_t)len) {
        die("the other program");
    }
}

static void tell(char letter)
{
    char answer;

    give(&letter, 1);
    take(&answer, 1);
    T_EQ_INT(answer, letter);
}

static union ibv_gid gid_of(struct in_addr address)
{
    union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

    memcpy(gid.raw + 12, &address, 4);
    return gid;
}

static union ibv_gid gid_of_text(const char *text)
{
    struct in_addr address;

    if (inet_pton(AF_INET, text, &address) != 1) {
        die(text);
    }
    return gid_of(address);
}

/* ---- queue pairs ---- */

static void open_device(const char *name)
{
    struct sockaddr_in own;
    socklen_t len = sizeof(own);
    struct ibv_device **list = ibv_get_device_list(NULL);
    union ibv_gid gid;

    for (int i = 0; list && list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            u.ctx = ibv_open_device(list[i]);
        }
    }
    if (!u.ctx || getsockname(u.talk, (struct sockaddr *)&own, &len)) {
        die(name);
    }
    u.me.gid = gid_of(own.sin_addr);
    for (int i = 1; !u.gid_index && !ibv_query_gid(u.ctx, 1, i, &gid); i++) {
        if (!memcmp(&gid, &u.me.gid, sizeof(gid))) {
            u.gid_index = i;
        }
    }
    u.pd = ibv_alloc_pd(u.ctx);
    u.cq = ibv_create_cq(u.ctx, 32, NULL, NULL, 0);
    u.mr = u.pd ? ibv_reg_mr(u.pd, u.buf, sizeof(u.buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!u.gid_index || !u.cq || !u.mr) {
        die("GID or objects");
    }
}

static struct ibv_qp *new_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = u.cq,
        .recv_cq = u.cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    struct ibv_qp *qp = ibv_create_qp(u.pd, &init);

    if (!qp ||
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        die("queue pair");
    }
    return qp;
}

static void to_rtr(struct ibv_qp *qp, uint32_t number, const union ibv_gid *gid, uint32_t psn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = number,
        .rq_psn = psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = { .is_global = 1,
                     .port_num = 1,
                     .grh = { .sgid_index = (uint8_t)u.gid_index, .dgid = *gid } },
    };

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
        die("RTR");
    }
}

static void to_rts(struct ibv_qp *qp, uint32_t psn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 20,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .sq_psn = psn,
        .max_rd_atomic = 1,
    };

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) {
        die("RTS");
    }
}

static bool receive(struct ibv_qp *qp)
{
    struct ibv_sge sge = { (uintptr_t)u.buf, sizeof(u.buf), u.mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    return !ibv_post_recv(qp, &wr, &bad);
}

static bool send_text(struct ibv_qp *qp, const char *text)
{
    struct ibv_sge sge = { (uintptr_t)u.buf, (uint32_t)strlen(text) + 1, u.mr->lkey };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

    strcpy(u.buf, text);
    return !ibv_post_send(qp, &wr, &bad);
}

/* The next completion is a successful one of that kind. */
static bool completes(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;

    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (ibv_poll_cq(u.cq, 1, &wc)) {
            if (wc.status != IBV_WC_SUCCESS || wc.opcode != opcode) {
                T_NOTE("%s, opcode %d", ibv_wc_status_str(wc.status), wc.opcode);
            }
            return wc.status == IBV_WC_SUCCESS && wc.opcode == opcode;
        }
        usleep(1000);
    }
    return false;
}

/* ---- the waiting program ---- */

static int wait_and_obey(void)
{
    struct ibv_qp *qps[WAITING_QPS];
    char letter;

    for (int i = 0; i < WAITING_QPS; i++) {
        qps[i] = new_qp();
        u.me.number[i] = qps[i]->qp_num;
    }
    take(&u.peer, sizeof(u.peer));
    to_rtr(qps[TRUE_PEER], u.peer.number[TRUE_PEER], &u.peer.gid, PSN_ASKER);
    to_rtr(qps[OPEN], NAME_OPEN, &u.peer.gid, PSN_ASKER);
    to_rtr(qps[HIGHER], NAME_HIGHER, &u.second, PSN_ASKER);
    give(&u.me, sizeof(u.me));
    for (;;) {
        take(&letter, 1);
        switch (letter) {
        case 's':
            to_rts(qps[TRUE_PEER], PSN_WAITER);
            break;
        case 'r':
            if (!receive(qps[TRUE_PEER])) {
                die("receive");
            }
            break;
        case 't':
            if (!completes(IBV_WC_RECV) || strcmp(u.buf, "hello") ||
                !send_text(qps[TRUE_PEER], "welcome") || !completes(IBV_WC_SEND)) {
                die("talk");
            }
            break;
        case 'q':
            give(&letter, 1);
            return 0;
        }
        give(&letter, 1);
    }
}

/* ---- the asking program ---- */

static struct rdma_event_channel *channel;
static struct sockaddr_in waiter, second;
static struct ibv_qp *own;

static void put32(uint8_t *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, 4);
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return ntohl(value);
}

/* The request that the queue pair waits for. */
static void right_request(uint8_t *msg, enum waiting_qp qp)
{
    memset(msg, 0, MSG_MAX);
    memcpy(msg, "SGRD", 4);
    msg[4] = 1;
    msg[5] = REQUEST;
    msg[7] = 1;
    put32(msg + 8, qp == OPEN ? NAME_OPEN : qp == HIGHER ? NAME_HIGHER : u.me.number[TRUE_PEER]);
    put32(msg + 12, u.peer.number[qp]);
    put32(msg + 16, PSN_WAITER);
    put32(msg + 20, PSN_ASKER);
    memcpy(msg + 24, qp == HIGHER ? &u.second : &u.me.gid, 16);
    memcpy(msg + 40, &u.peer.gid, 16);
}

/* The next event of the identifier; its private data, if any, go to answer. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id *id, uint8_t *answer, size_t *len)
{
    struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
    struct rdma_cm_event *event;
    enum rdma_cm_event_type type;
    bool mine;

    do {
        T_EQ_INT(poll(&pfd, 1, PATIENCE_MS), 1);
        T_EQ_INT(rdma_get_cm_event(channel, &event), 0);
        type = event->event;
        mine = event->id == id;
        if (mine && answer) {
            *len = event->param.conn.private_data_len;
            memcpy(answer, event->param.conn.private_data, *len);
        }
        rdma_ack_cm_event(event);
    } while (!mine);
    return type;
}

static void leave(struct rdma_cm_id *id)
{
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    T_EQ_INT(rdma_destroy_id(id), 0);
}

/* Sends a request to the waiter's port and takes the answer, of MSG_LEN octets; leave() ends it. */
static struct rdma_cm_id *ask(const uint8_t *msg, size_t msg_len, bool from_second, uint8_t *answer)
{
    struct rdma_conn_param param = {
        .private_data = msg,
        .private_data_len = (uint8_t)msg_len,
        .initiator_depth = 1,
        .responder_resources = 1,
    };
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id;
    size_t len = 0;

    T_EQ_INT(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    T_EQ_INT(rdma_resolve_addr(id, from_second ? (struct sockaddr *)&second : NULL,
                               (struct sockaddr *)&waiter, PATIENCE_MS),
             0);
    T_EQ_INT(next_event(id, NULL, NULL), RDMA_CM_EVENT_ADDR_RESOLVED);
    T_EQ_INT(rdma_resolve_route(id, PATIENCE_MS), 0);
    T_EQ_INT(next_event(id, NULL, NULL), RDMA_CM_EVENT_ROUTE_RESOLVED);
    T_EQ_STR(ibv_get_device_name(id->verbs->device), ibv_get_device_name(u.ctx->device));
    T_EQ_INT(rdma_create_qp(id, NULL, &init), 0);
    T_EQ_INT(rdma_connect(id, &param), 0);
    type = next_event(id, answer, &len);
    T_EQ_U64(len, MSG_LEN);
    T_EQ_INT(type, answer[5] == ACCEPT ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED);
    return id;
}

static void is_refused(const uint8_t *msg, size_t len, bool from_second, int reason)
{
    uint8_t answer[MSG_MAX] = { 0 }, want[MSG_LEN] = "SGRD";

    want[4] = 1;
    want[5] = REFUSE;
    want[6] = (uint8_t)reason;
    leave(ask(msg, len, from_second, answer));
    T_EQ_MEM(answer, want, MSG_LEN);
}

static const struct {
    const char *what;
    enum waiting_qp qp;
    uint8_t at, flip; /* an octet, and its wrong bits */
    uint8_t len;
    bool second;
    int reason;
} rows[] = {
    { "magic, first octet", TRUE_PEER, 0, 0x20, MSG_LEN, false, FORM },
    { "magic, last octet", TRUE_PEER, 3, 0x01, MSG_LEN, false, FORM },
    { "version 0", TRUE_PEER, 4, 0x01, MSG_LEN, false, FORM },
    { "version 2", TRUE_PEER, 4, 0x03, MSG_LEN, false, FORM },
    { "kind 0", TRUE_PEER, 5, 0x01, MSG_LEN, false, FORM },
    { "an accept", TRUE_PEER, 5, REQUEST ^ ACCEPT, MSG_LEN, false, FORM },
    { "a refusal", TRUE_PEER, 5, REQUEST ^ REFUSE, MSG_LEN, false, FORM },
    { "nothing", TRUE_PEER, 0, 0, 0, false, FORM },
    { "one octet", TRUE_PEER, 0, 0, 1, false, FORM },
    { "an octet short", TRUE_PEER, 0, 0, MSG_LEN - 1, false, FORM },
    { "an octet long", TRUE_PEER, 0, 0, MSG_LEN + 1, false, FORM },
    { "as long as can be", TRUE_PEER, 0, 0, MSG_MAX, false, FORM },
    { "source number", TRUE_PEER, 11, 0x40, MSG_LEN, false, UNKNOWN },
    { "source number of 32 bits", TRUE_PEER, 8, 0x80, MSG_LEN, false, UNKNOWN },
    { "peer of another queue pair", OPEN, 11, NAME_OPEN ^ NAME_HIGHER, MSG_LEN, false, UNKNOWN },
    { "no such destination", TRUE_PEER, 13, 0xa5, MSG_LEN, false, EARLY },
    { "destination number of 32 bits", TRUE_PEER, 12, 0x80, MSG_LEN, false, EARLY },
    { "destination not in RTR", CLOSED, 0, 0, MSG_LEN, false, EARLY },
    { "source GID, first octet", TRUE_PEER, 24, 0x20, MSG_LEN, false, UNKNOWN },
    { "source GID, last octet", TRUE_PEER, 39, 0x08, MSG_LEN, false, UNKNOWN },
    { "destination GID, first octet", TRUE_PEER, 40, 0x80, MSG_LEN, false, UNKNOWN },
    { "destination GID, last octet", TRUE_PEER, 55, 0x08, MSG_LEN, false, UNKNOWN },
    { "right names, another address", TRUE_PEER, 0, 0, MSG_LEN, true, UNKNOWN },
    { "who should wait for a call", HIGHER, 0, 0, MSG_LEN, true, UNKNOWN },
    { "the sender's first PSN", TRUE_PEER, 23, 0x01, MSG_LEN, false, EARLY },
};

static void all_rows(void)
{
    uint8_t msg[MSG_MAX];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].what);
        right_request(msg, rows[i].qp);
        msg[rows[i].at] ^= rows[i].flip;
        is_refused(msg, rows[i].len, rows[i].second, rows[i].reason);
    }
}

static void wrong__in_rtr(void)
{
    all_rows();
}

/* In RTS the waiter has its own first PSN, too, and checks it. */
static void wrong__in_rts(void)
{
    uint8_t msg[MSG_MAX];

    tell('r');
    tell('s');
    all_rows();
    right_request(msg, TRUE_PEER);
    T_CONTEXT("the first PSN that the sender expects");
    msg[19] ^= 1;
    is_refused(msg, MSG_LEN, false, EARLY);
}

/* No field is wrong, so the others were refused only for their wrong fields. */
static void right__let_in_once(void)
{
    uint8_t msg[MSG_MAX], answer[MSG_MAX] = { 0 };
    struct rdma_cm_id *id;

    right_request(msg, OPEN);
    id = ask(msg, MSG_LEN, false, answer);
    T_EQ_MEM(answer, "SGRD", 4);
    T_EQ_U64(answer[4], 1);
    T_EQ_U64(answer[5], ACCEPT);
    T_EQ_U64(get32(answer + 8), u.peer.number[OPEN]);
    T_EQ_U64(get32(answer + 12), NAME_OPEN);
    T_EQ_U64(get32(answer + 16), PSN_ASKER);
    T_EQ_MEM(answer + 24, &u.peer.gid, 16);
    T_EQ_MEM(answer + 40, &u.me.gid, 16);
    T_CONTEXT("while it is connected");
    is_refused(msg, MSG_LEN, false, EARLY);
    leave(id);
}

static void true_peer__talks(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    to_rtr(own, u.peer.number[TRUE_PEER], &u.peer.gid, PSN_WAITER);
    to_rts(own, PSN_ASKER);
    T_TRUE(send_text(own, "hello"));
    T_TRUE(completes(IBV_WC_SEND));
    T_TRUE(receive(own));
    tell('t');
    T_TRUE(completes(IBV_WC_RECV));
    T_EQ_STR(u.buf, "welcome");
    T_EQ_INT(ibv_query_qp(own, &attr, IBV_QP_STATE, &init), 0);
    T_EQ_INT(attr.qp_state, IBV_QPS_RTS);
    tell('q');
}

static const struct t_case cases[] = {
    { "rendezvous: requests wrong in one field, to a queue pair in RTR", wrong__in_rtr },
    { "rendezvous: requests wrong in one field, to a queue pair in RTS", wrong__in_rts },
    { "rendezvous: a right one is let in, once", right__let_in_once },
    { "rendezvous: the true peer comes after all", true_peer__talks },
};

static int begin_waiting(const char *device, const char *other)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(TALK_PORT) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1)) {
        die("port");
    }
    puts("waiting");
    fflush(stdout);
    u.talk = accept(fd, NULL, NULL);
    if (u.talk < 0) {
        die("accept");
    }
    open_device(device);
    u.second = gid_of_text(other);
    return wait_and_obey();
}

static int begin_asking(const char *device, const char *address, const char *other)
{
    waiter = second = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(TALK_PORT) };
    second.sin_port = 0;
    u.second = gid_of_text(other);
    u.talk = socket(AF_INET, SOCK_STREAM, 0);
    if (inet_pton(AF_INET, address, &waiter.sin_addr) != 1 ||
        inet_pton(AF_INET, other, &second.sin_addr) != 1 ||
        connect(u.talk, (struct sockaddr *)&waiter, sizeof(waiter))) {
        die(address);
    }
    waiter.sin_port = htons(RDV_PORT);
    open_device(device);
    own = new_qp();
    u.me.number[TRUE_PEER] = own->qp_num;
    give(&u.me, sizeof(u.me));
    take(&u.peer, sizeof(u.peer));
    channel = rdma_create_event_channel();
    if (!channel) {
        die("event channel");
    }
    return t_main(cases, sizeof(cases) / sizeof(cases[0]), 1, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "wait")) {
        return begin_waiting(argv[2], argv[3]);
    }
    if (argc == 5 && !strcmp(argv[1], "ask")) {
        return begin_asking(argv[2], argv[3], argv[4]);
    }
    return 2;
}
