// SPDX-License-Identifier: GPL-2.0-or-later
#include "rpma_connect.h"

static void register_memory(struct rpma_active *c)
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

static void apply_hello(struct rpma_active *c)
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

void rpma_active_connect(struct rpma_active *c, const char *address)
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

int rpma_active_atom(struct rpma_active *c, uint64_t atom)
{
    must(rpma_atomic_write(c->conn, c->remote, PAIR_ATOM_OFFSET, (const char *)&atom,
                           RPMA_F_COMPLETION_ALWAYS, (void *)PAIR_ATOM_ID),
         "rpma_atomic_write");
    return completion(c->cq).opcode;
}

void rpma_active_compare(struct rpma_active *c, uint64_t atom)
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

void rpma_active_close(struct rpma_active *c)
{
    must(rpma_conn_disconnect(c->conn), "rpma_conn_disconnect");
    expect_event(c->conn, RPMA_CONN_CLOSED);
}
