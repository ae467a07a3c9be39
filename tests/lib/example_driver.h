/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The example of docs/manual/example.md: a driver for one adapter, from reset to teardown, with
 * what a real one needs and tests do not: time limits, interrupts, an adapter that fails or is
 * removed.
 *
 * Rings and entries are the mini-driver's (mini_driver.h).  The machine below it and the functions
 * that it offers are those of bring_up.h, whose tests it passes.  tests/style/example.py copies
 * parts of it to the manual.
 */
#ifndef SG_TESTS_EXAMPLE_DRIVER_H
#define SG_TESTS_EXAMPLE_DRIVER_H

#include "bring_up.h"
#include "mini_driver.h"

enum { EX_BLOCKS = 256, EX_QUEUES = 32, EX_VECTOR = 1 /* of completions */ };

/* Memory that the adapter can reach. */
struct ex_block {
    void *memory; /* NULL: unused */
    uint64_t bus;
    size_t octets;
};

struct ex_cq {
    struct md_cq md;
    bool used;
    bool notified; /* its event came */
};

struct ex_qp {
    struct md_qp md;
    bool used;
    uint32_t sq_freed, rq_freed; /* entries before these indices are complete */
};

struct ex_driver {
    struct bu_machine *m;
    struct md md;
    bool lost;
    struct bu_caps caps;
    struct ex_block blocks[EX_BLOCKS];
    struct ex_cq cqs[EX_QUEUES];
    struct ex_qp qps[EX_QUEUES];
};

/* Zeroed memory for the adapter. */
void *ex_memory(struct ex_driver *d, size_t octets, size_t align, uint64_t *bus);
void ex_free(struct ex_driver *d, uint64_t bus);

/* Checks whether the adapter is lost; a lost one is reset once, and stays lost. */
bool ex_lost(struct ex_driver *d);

/* The time 'ms' from now; the time that is left until 'end', in ms, rounded up. */
uint64_t ex_limit(struct ex_driver *d, unsigned ms);
unsigned ex_left(struct ex_driver *d, uint64_t end);

/* Commands: enum bu_result, or the status. */
int ex_command(struct ex_driver *d, const void *cmd, size_t len, struct sg_admin_rsp *rsp);
int ex_make(struct ex_driver *d, const void *cmd, size_t len, uint32_t *id);
int ex_command_id(struct ex_driver *d, enum sg_admin_opcode opcode, uint32_t id);
int ex_query(struct ex_driver *d, enum sg_admin_opcode opcode, uint32_t id, void *out, size_t len);

int ex_start(void *opaque, struct bu_machine *m);
void ex_stop(void *opaque);

#endif
