// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Relays 9P between RDMA and a server that reads and writes a stream.
 *
 *   ninep_relay PORT SERVER [ARGUMENT...]
 *
 * Debian has 9P servers, but none that supports RDMA.  A 9P message begins with its length, four
 * octets in little-endian order.  On RDMA each message is one Send; in a stream one message follows
 * the other.  For each connection SERVER is started with one end of a socket pair as its standard
 * input and output.  There is one connection at a time; when it or the server ends, both are
 * closed, and the relay waits for the next one.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 64, MESSAGE = 1 << 16, HEADER = 4 };

struct relay {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t *memory; /* DEPTH received messages, then one to send */
    int stream;
    pid_t server;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n <= 0) {
            return -1;
        }
        data += n;
        len -= n;
    }
    return 0;
}

static int read_all(int fd, uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = read(fd, data, len);

        if (n <= 0) {
            return -1;
        }
        data += n;
        len -= n;
    }
    return 0;
}

static uint32_t length_of(const uint8_t *message)
{
    return message[0] | message[1] << 8 | message[2] << 16 | (uint32_t)message[3] << 24;
}

static int post(struct relay *r, uintptr_t slot)
{
    return rdma_post_recv(r->id, (void *)slot, r->memory + slot * MESSAGE, MESSAGE, r->mr);
}

/* Passes all received messages to the stream; -1 at the connection's end. */
static int from_rdma(struct relay *r)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    int n;

    if (ibv_get_cq_event(r->id->recv_cq_channel, &cq, &context)) {
        return -1;
    }
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(cq, 0)) {
        return -1;
    }
    while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
        const uint8_t *message = r->memory + wc.wr_id * MESSAGE;

        if (wc.status != IBV_WC_SUCCESS) {
            return -1;
        }
        if (wc.byte_len < HEADER || length_of(message) != wc.byte_len) {
            fprintf(stderr, "a message says %u and has %u octets\n", length_of(message),
                    wc.byte_len);
            return -1;
        }
        if (write_all(r->stream, message, wc.byte_len) || post(r, wc.wr_id)) {
            return -1;
        }
    }
    return n;
}

/* Sends one message of the server as one Send. */
static int from_server(struct relay *r)
{
    uint8_t *message = r->memory + (size_t)DEPTH * MESSAGE;
    struct ibv_wc wc;
    uint32_t len;

    if (read_all(r->stream, message, HEADER)) {
        return -1;
    }
    len = length_of(message);
    if (len < HEADER || len > MESSAGE || read_all(r->stream, message + HEADER, len - HEADER)) {
        return -1;
    }
    if (rdma_post_send(r->id, NULL, message, len, r->mr, 0) ||
        rdma_get_send_comp(r->id, &wc) <= 0) {
        return -1;
    }
    return wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

static void start_server(struct relay *r, char **command)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
        die("socketpair");
    }
    r->server = fork();
    if (r->server < 0) {
        die("fork");
    }
    if (!r->server) {
        dup2(ends[1], 0);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        die(command[0]);
    }
    close(ends[1]);
    r->stream = ends[0];
}

static void serve(struct rdma_cm_id *id, char **command)
{
    struct relay r = { .id = id };
    struct pollfd fds[2];
    struct rdma_conn_param param = { 0 };

    r.memory = calloc(DEPTH + 1, MESSAGE);
    r.mr = r.memory ? rdma_reg_msgs(id, r.memory, (size_t)(DEPTH + 1) * MESSAGE) : NULL;
    if (!r.mr) {
        die("memory");
    }
    for (uintptr_t slot = 0; slot < DEPTH; slot++) {
        if (post(&r, slot)) {
            die("rdma_post_recv");
        }
    }
    if (ibv_req_notify_cq(id->recv_cq, 0)) {
        die("ibv_req_notify_cq");
    }
    start_server(&r, command);
    /* The kernel's client neither issues nor accepts Reads: both limits are zero. */
    if (rdma_accept(id, &param)) {
        perror("rdma_accept");
    } else {
        fprintf(stderr, "connected\n");
        fds[0] = (struct pollfd){ .fd = id->recv_cq_channel->fd, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = r.stream, .events = POLLIN };
        while (poll(fds, 2, -1) > 0) {
            if ((fds[0].revents && from_rdma(&r)) || (fds[1].revents && from_server(&r))) {
                break;
            }
        }
        fprintf(stderr, "disconnected\n");
        rdma_disconnect(id);
    }
    close(r.stream);
    kill(r.server, SIGTERM);
    waitpid(r.server, NULL, 0);
    rdma_dereg_mr(r.mr);
    rdma_destroy_ep(id);
    free(r.memory);
}

int main(int argc, char **argv)
{
    struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
    struct ibv_qp_init_attr attr = {
        .cap = { .max_send_wr = 4, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
        .sq_sig_all = 1,
    };
    struct rdma_cm_id *listener, *id;
    struct rdma_addrinfo *info;

    if (argc < 3) {
        fprintf(stderr, "usage: ninep_relay PORT SERVER [ARGUMENT...]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (rdma_getaddrinfo(NULL, argv[1], &hints, &info)) {
        die("rdma_getaddrinfo");
    }
    if (rdma_create_ep(&listener, info, NULL, &attr) || rdma_listen(listener, 1)) {
        die("rdma_listen");
    }
    fprintf(stderr, "listening\n");
    while (!rdma_get_request(listener, &id)) {
        serve(id, argv + 2);
    }
    die("rdma_get_request");
}
