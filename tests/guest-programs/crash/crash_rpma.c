// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_rpma ADDRESS METHOD [RECORDS [SEED]]
 *
 * Writes records into rpma_server's memory with librpma, one after the other, and marks each as
 * acknowledged (sg_mark) once the method says that it is durable.  Methods:
 *
 *   persistent   rpma_write, rpma_flush to persistence; the flush's completion
 *   visibility   ... rpma_flush to visibility: others see the record, a power cut may lose it
 *   write        ... the write's completion, without a flush
 *
 * crash_rpma DEVICE check COUNT [SEED]: are the first COUNT records there, as they were written?
 * COUNT is how many were acknowledged.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "rpma_connect.h"
#include "staghorn_mark.h"

enum { RECORD = 256, RECORDS = 100, RECORDS_MAX = 4096 };

struct rpma_method {
    const char *name;
    bool flush;
    enum rpma_flush_type type;
};

static const struct rpma_method methods[] = {
    { "persistent", true, RPMA_FLUSH_TYPE_PERSISTENT },
    { "visibility", true, RPMA_FLUSH_TYPE_VISIBILITY },
    { "write", false },
};

static int check(const char *device, uint64_t count, uint64_t seed)
{
    int fd = open(device, O_RDONLY);
    const uint8_t *memory = MAP_FAILED;
    uint64_t whole = 0;

    if (fd >= 0) {
        memory = mmap(NULL, PAIR_SERVER, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED) {
        perror(device);
        return 2;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *record = memory + PAIR_DATA_OFFSET + i * RECORD;
        uint64_t right = 0;

        for (uint64_t k = 0; k < RECORD; k++) {
            right += record[k] == pattern(seed, i * RECORD + k);
        }
        whole += right == RECORD;
    }
    printf("acknowledged %" PRIu64 " whole %" PRIu64 "\n", count, whole);
    return whole != count;
}

static const struct rpma_method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (!strcmp(methods[i].name, name)) {
            return &methods[i];
        }
    }
    fail("the methods are: persistent visibility write");
    return NULL;
}

/* A mark names a write by its wr_id, which is librpma's context: record 0 has 1. */
static void append(struct rpma_active *c, const struct rpma_method *method, uint64_t record)
{
    uint64_t at = record * RECORD, to = PAIR_DATA_OFFSET + at;
    void *id = (void *)(uintptr_t)(record + 1);
    char text[32];

    must(rpma_write(c->conn, c->remote, to, c->data_mr, at, RECORD,
                    method->flush ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS, id),
         "rpma_write");
    if (method->flush) {
        must(rpma_flush(c->conn, c->remote, to, RECORD, method->type, RPMA_F_COMPLETION_ALWAYS,
                        NULL),
             "rpma_flush");
    }
    completion(c->cq);
    snprintf(text, sizeof(text), "wr_id=%" PRIu64, record + 1);
    sg_mark("acknowledged", text);
}

int main(int argc, char **argv)
{
    uint64_t records = argc > 3 ? strtoull(argv[3], NULL, 0) : RECORDS;
    struct rpma_active c = { .seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1 };
    const struct rpma_method *method;
    bool checks = argc > 3 && !strcmp(argv[2], "check");

    if (argc < 3 || argc > 5 || (!records && !checks) || records > RECORDS_MAX) {
        fail("usage: crash_rpma ADDRESS METHOD [1..4096 records [SEED]]\n"
             "       crash_rpma DEVICE check 0..4096 [SEED]");
    }
    if (checks) {
        return check(argv[1], records, c.seed);
    }
    method = find_method(argv[2]);
    c.length = records * RECORD;
    rpma_active_connect(&c, argv[1]);
    if (!c.persistent) {
        fail("the server's memory is not persistent");
    }
    rpma_active_atom(&c, c.seed);
    for (uint64_t i = 0; i < records; i++) {
        append(&c, method, i);
    }
    rpma_active_compare(&c, c.seed);
    rpma_active_close(&c);
    printf("acknowledged %" PRIu64 "\n", records);
    return 0;
}
