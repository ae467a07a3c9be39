// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rpma_server ADDRESS [DEVICE]: the passive side of a librpma pair, for one client.
 *
 * Offers 16 MiB of DEVICE (a devdax device), or of ordinary memory, which is not persistent, with
 * each type of flush that the memory has, and describes it to the client in private data.  The
 * client writes and flushes, then says by a Send what must be there; the server answers with what
 * it sees.  The exit status is 0 if everything was right.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "rpma_pair.h"

static void *map_device(const char *name)
{
    int fd = open(name, O_RDWR);
    void *memory;

    if (fd < 0) {
        perror(name);
        exit(1);
    }
    memory = mmap(NULL, PAIR_SERVER, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    close(fd);
    return memory;
}

static void make_hello(struct pair_hello *hello, struct rpma_mr_local *mr, bool persistent)
{
    struct rpma_peer_cfg *pcfg = NULL;
    size_t mr_size, pcfg_size;

    must(rpma_peer_cfg_new(&pcfg), "rpma_peer_cfg_new");
    must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, persistent),
         "rpma_peer_cfg_set_direct_write_to_pmem");
    must(rpma_mr_get_descriptor_size(mr, &mr_size), "rpma_mr_get_descriptor_size");
    must(rpma_peer_cfg_get_descriptor_size(pcfg, &pcfg_size), "rpma_peer_cfg_get_descriptor_size");
    if (mr_size + pcfg_size > sizeof(hello->desc)) {
        fail("descriptors do not fit into the private data");
    }
    hello->mr_desc_size = mr_size;
    hello->pcfg_desc_size = pcfg_size;
    must(rpma_mr_get_descriptor(mr, hello->desc), "rpma_mr_get_descriptor");
    must(rpma_peer_cfg_get_descriptor(pcfg, hello->desc + mr_size), "rpma_peer_cfg_get_descriptor");
    rpma_peer_cfg_delete(&pcfg);
}

static struct rpma_conn *accept_client(struct rpma_ep *ep, struct pair_hello *hello,
                                       struct rpma_mr_local *buffer_mr)
{
    struct rpma_conn_private_data answer = { .ptr = hello, .len = sizeof(*hello) };
    struct rpma_conn_private_data greeting;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;

    must(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
    must(rpma_conn_req_get_private_data(req, &greeting), "rpma_conn_req_get_private_data");
    if (greeting.len < sizeof(PAIR_GREETING) ||
        memcmp(greeting.ptr, PAIR_GREETING, sizeof(PAIR_GREETING)) != 0) {
        fail("the client's private data did not arrive");
    }
    printf("greeting: %s\n", (const char *)greeting.ptr);
    must(rpma_conn_req_recv(req, buffer_mr, 0, PAIR_BUFFER / 2, NULL), "rpma_conn_req_recv");
    must(rpma_conn_req_connect(&req, &answer, &conn), "rpma_conn_req_connect");
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    return conn;
}

/* Compares the memory with what the client claims; true if they agree. */
static bool check(const uint8_t *memory, const struct pair_message *claim,
                  struct pair_message *answer)
{
    *answer = *claim;
    if (claim->length > PAIR_SERVER - PAIR_DATA_OFFSET) {
        fail("the client claims more than there is");
    }
    answer->length = right_octets(memory + PAIR_DATA_OFFSET, claim->length, claim->seed);
    memcpy(&answer->atom, memory + PAIR_ATOM_OFFSET, 8);
    printf("checked: %" PRIu64 " of %" PRIu64 " octets right, atom %#" PRIx64 "\n", answer->length,
           claim->length, answer->atom);
    return answer->length == claim->length && answer->atom == claim->atom;
}

int main(int argc, char **argv)
{
    int usage =
        RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    bool persistent = argc == 3, right;
    struct pair_hello hello = { 0 };
    struct rpma_mr_local *mr = NULL, *buffer_mr = NULL;
    struct rpma_peer *peer;
    struct rpma_ep *ep = NULL;
    struct rpma_conn *conn;
    struct rpma_cq *cq = NULL;
    uint8_t *memory, *buffer;

    if (argc < 2 || argc > 3) {
        fail("usage: rpma_server ADDRESS [DEVICE]");
    }
    setlinebuf(stdout);
    peer = make_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    memory = persistent ? map_device(argv[2]) : pages(PAIR_SERVER);
    buffer = pages(PAIR_BUFFER);
    usage |= persistent ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0;
    must(rpma_mr_reg(peer, memory, PAIR_SERVER, usage, &mr), "rpma_mr_reg");
    must(
        rpma_mr_reg(peer, buffer, PAIR_BUFFER, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &buffer_mr),
        "rpma_mr_reg (messages)");
    make_hello(&hello, mr, persistent);
    must(rpma_ep_listen(peer, argv[1], PAIR_PORT, &ep), "rpma_ep_listen");
    printf("listening\n");
    conn = accept_client(ep, &hello, buffer_mr);

    must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    if (completion(cq).opcode != IBV_WC_RECV) {
        fail("the first completion is no receive");
    }
    right = check(memory, (const struct pair_message *)buffer,
                  (struct pair_message *)(buffer + PAIR_BUFFER / 2));
    must(rpma_send(conn, buffer_mr, PAIR_BUFFER / 2, sizeof(struct pair_message),
                   RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_send");
    completion(cq);
    expect_event(conn, RPMA_CONN_CLOSED);
    rpma_conn_disconnect(conn);
    rpma_conn_delete(&conn);
    rpma_ep_shutdown(&ep);
    rpma_mr_dereg(&mr);
    rpma_mr_dereg(&buffer_mr);
    rpma_peer_delete(&peer);
    printf("%s\n", right ? "all right" : "WRONG");
    return right ? 0 : 1;
}
