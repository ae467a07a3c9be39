// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rpma_client ADDRESS [LENGTH [SEED]]: the active side of a librpma pair.
 *
 * Writes LENGTH octets into the server's memory in two halves, and flushes the first half to
 * visibility, the second to persistence if the region has it.  Then it writes one atom, flushes it,
 * and reads everything back.  At the end it tells the server what must be there, and gets the
 * server's answer.  librpma chooses the operations on the wire: native ones or its replacements.
 */
#include "rpma_pair.h"

struct client {
    struct rpma_peer *peer;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_remote *remote;
    struct rpma_mr_local *data_mr, *message_mr;
    uint8_t *data;    /* the data to write; behind them room for the data read */
    uint8_t *message; /* first half to send, second half received */
    uint64_t length, seed;
    bool persistent;
};

static void register_memory(struct client *c)
{
    size_t size = (2 * c->length + 4095) / 4096 * 4096;

    c->data = pages(size);
    c->message = pages(PAIR_BUFFER);
    must(rpma_mr_reg(c->peer, c->data, size, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
                     &c->data_mr),
         "rpma_mr_reg");
    must(rpma_mr_reg(c->peer, c->message, PAIR_BUFFER, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
                     &c->message_mr),
         "rpma_mr_reg (messages)");
    for (uint64_t i = 0; i < c->length; i++) {
        c->data[i] = pattern(c->seed, i);
    }
}

static void apply_hello(struct client *c)
{
    struct rpma_conn_private_data pdata;
    struct rpma_peer_cfg *pcfg = NULL;
    struct pair_hello hello;
    int types = 0;

    must(rpma_conn_get_private_data(c->conn, &pdata), "rpma_conn_get_private_data");
    if (pdata.ptr == NULL || pdata.len < sizeof(hello)) {
        fail("the server's private data did not arrive");
    }
    memcpy(&hello, pdata.ptr, sizeof(hello));
    must(rpma_mr_remote_from_descriptor(hello.desc, hello.mr_desc_size, &c->remote),
         "rpma_mr_remote_from_descriptor");
    must(
        rpma_peer_cfg_from_descriptor(hello.desc + hello.mr_desc_size, hello.pcfg_desc_size, &pcfg),
        "rpma_peer_cfg_from_descriptor");
    must(rpma_conn_apply_remote_peer_cfg(c->conn, pcfg), "rpma_conn_apply_remote_peer_cfg");
    rpma_peer_cfg_delete(&pcfg);
    must(rpma_mr_remote_get_flush_type(c->remote, &types), "rpma_mr_remote_get_flush_type");
    c->persistent = types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    printf("flush types:%s%s\n", types & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY ? " visibility" : "",
           c->persistent ? " persistent" : "");
}

static void connect_to(struct client *c, const char *address)
{
    struct rpma_conn_private_data greeting = { .ptr = PAIR_GREETING, .len = sizeof(PAIR_GREETING) };
    struct rpma_conn_req *req = NULL;

    c->peer = make_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    register_memory(c);
    must(rpma_conn_req_new(c->peer, address, PAIR_PORT, NULL, &req), "rpma_conn_req_new");
    must(rpma_conn_req_recv(req, c->message_mr, PAIR_BUFFER / 2, PAIR_BUFFER / 2, NULL),
         "rpma_conn_req_recv");
    must(rpma_conn_req_connect(&req, &greeting, &c->conn), "rpma_conn_req_connect");
    expect_event(c->conn, RPMA_CONN_ESTABLISHED);
    must(rpma_conn_get_cq(c->conn, &c->cq), "rpma_conn_get_cq");
    apply_hello(c);
}

static void flush(struct client *c, uint64_t offset, uint64_t length, enum rpma_flush_type type)
{
    must(rpma_flush(c->conn, c->remote, offset, length, type, RPMA_F_COMPLETION_ALWAYS, (void *)2),
         "rpma_flush");
    printf("flush completed as opcode %d\n", completion(c->cq).opcode);
}

/* It does not wait for the Write, but for the Flush behind it. */
static void write_and_flush(struct client *c, uint64_t from, uint64_t to, enum rpma_flush_type type)
{
    must(rpma_write(c->conn, c->remote, PAIR_DATA_OFFSET + from, c->data_mr, from, to - from,
                    RPMA_F_COMPLETION_ON_ERROR, (void *)1),
         "rpma_write");
    flush(c, PAIR_DATA_OFFSET + from, to - from, type);
}

static void read_back(struct client *c)
{
    must(rpma_read(c->conn, c->data_mr, c->length, c->remote, PAIR_DATA_OFFSET, c->length,
                   RPMA_F_COMPLETION_ALWAYS, (void *)4),
         "rpma_read");
    completion(c->cq);
    if (right_octets(c->data + c->length, c->length, c->seed) != c->length) {
        fail("what was read is not what was written");
    }
    printf("read back: %" PRIu64 " octets\n", c->length);
}

static void compare_notes(struct client *c, uint64_t atom)
{
    struct pair_message *claim = (struct pair_message *)c->message;
    struct pair_message *answer = (struct pair_message *)(c->message + PAIR_BUFFER / 2);

    *claim = (struct pair_message){ c->seed, c->length, atom };
    must(rpma_send(c->conn, c->message_mr, 0, sizeof(*claim), RPMA_F_COMPLETION_ALWAYS, (void *)5),
         "rpma_send");
    for (int n = 0; n < 2; n++) {
        completion(c->cq);
    }
    if (memcmp(claim, answer, sizeof(*claim)) != 0) {
        fprintf(stderr, "the server sees %" PRIu64 " of %" PRIu64 " octets, atom %#" PRIx64 "\n",
                answer->length, claim->length, answer->atom);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct client c = { .length = 65536, .seed = 1 };
    uint64_t half, atom;

    if (argc < 2 || argc > 4) {
        fail("usage: rpma_client ADDRESS [LENGTH [SEED]]");
    }
    setlinebuf(stdout);
    c.length = argc > 2 ? strtoull(argv[2], NULL, 0) : c.length;
    c.seed = argc > 3 ? strtoull(argv[3], NULL, 0) : c.seed;
    if (c.length < 2 || c.length > 8u << 20) {
        fail("LENGTH is not within 2 to 8388608");
    }
    half = c.length / 2;
    atom = c.seed * UINT64_C(0x0101010101010101) ^ c.length;
    connect_to(&c, argv[1]);
    write_and_flush(&c, 0, half, RPMA_FLUSH_TYPE_VISIBILITY);
    write_and_flush(&c, half, c.length,
                    c.persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
    must(rpma_atomic_write(c.conn, c.remote, PAIR_ATOM_OFFSET, (const char *)&atom,
                           RPMA_F_COMPLETION_ALWAYS, (void *)3),
         "rpma_atomic_write");
    printf("atomic write completed as opcode %d\n", completion(c.cq).opcode);
    flush(&c, PAIR_ATOM_OFFSET, 8,
          c.persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
    read_back(&c);
    compare_notes(&c, atom);
    must(rpma_conn_disconnect(c.conn), "rpma_conn_disconnect");
    expect_event(c.conn, RPMA_CONN_CLOSED);
    printf("all right\n");
    return 0;
}
