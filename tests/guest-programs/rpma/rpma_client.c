// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rpma_client ADDRESS [LENGTH [SEED]]: the active side of a librpma pair.
 *
 * Writes LENGTH octets into the server's memory in two halves, and flushes the first half to
 * visibility, the second to persistence if the region has it.  Then it writes one atom, flushes it,
 * and reads everything back.  At the end it tells the server what must be there, and gets the
 * server's answer.  librpma chooses the operations on the wire: native ones or its replacements.
 */
#include "rpma_connect.h"

static void flush(struct rpma_active *c, uint64_t offset, uint64_t length,
                  enum rpma_flush_type type)
{
    must(rpma_flush(c->conn, c->remote, offset, length, type, RPMA_F_COMPLETION_ALWAYS, (void *)2),
         "rpma_flush");
    printf("flush completed as opcode %d\n", completion(c->cq).opcode);
}

/* It does not wait for the Write, but for the Flush behind it. */
static void write_and_flush(struct rpma_active *c, uint64_t from, uint64_t to,
                            enum rpma_flush_type type)
{
    must(rpma_write(c->conn, c->remote, PAIR_DATA_OFFSET + from, c->data_mr, from, to - from,
                    RPMA_F_COMPLETION_ON_ERROR, (void *)1),
         "rpma_write");
    flush(c, PAIR_DATA_OFFSET + from, to - from, type);
}

static void read_back(struct rpma_active *c)
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

int main(int argc, char **argv)
{
    struct rpma_active c = { .length = 65536, .seed = 1 };
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
    rpma_active_connect(&c, argv[1]);
    write_and_flush(&c, 0, half, RPMA_FLUSH_TYPE_VISIBILITY);
    write_and_flush(&c, half, c.length,
                    c.persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
    printf("atomic write completed as opcode %d\n", rpma_active_atom(&c, atom));
    flush(&c, PAIR_ATOM_OFFSET, 8,
          c.persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
    read_back(&c);
    rpma_active_compare(&c, atom);
    rpma_active_close(&c);
    printf("all right\n");
    return 0;
}
