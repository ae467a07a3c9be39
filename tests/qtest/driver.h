/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mini driver (tests/lib/mini_driver.h) on a function of a machine in QEMU, and helpers that
 * several qtest programs share.
 */
#ifndef SG_TESTS_DRIVER_H
#define SG_TESTS_DRIVER_H

#include "machine.h"
#include "mini_driver.h"

/* Attaches; nothing is written to the device. */
void driver_attach(struct md *md, struct function *f);
/* CTRL.RESET, then rings, ENABLE and event queue 1. */
void driver_start(struct md *md, struct function *f);

/* IPv4 address of function i: 10.0.0.<i + 1>. */
struct sg_sockaddr driver_addr(unsigned i, uint16_t port);
/* Gives the function its address. */
void driver_set_addr(struct md *md, unsigned i);

/* One adapter's side of a connection: PD, CQ, QP and an MR over a buffer. */
enum { SIDE_BUFFER = 64 << 10 };
struct qtest_side {
    struct md md;
    struct function *f;
    uint32_t pd, stag;
    struct md_cq cq;
    struct md_qp qp;
    uint64_t buffer;
    uint32_t conn;
};

/* Brings a function up and makes the objects. */
void side_start(struct qtest_side *s, struct function *f);
uint8_t *side_ptr(struct qtest_side *s, uint64_t offset);
/* Waits (letting time pass, at most ms) for the next async event and checks which one it is. */
struct sg_eqe side_event(struct qtest_side *s, enum sg_event event, unsigned ms);
/* Likewise for a completion. */
struct sg_cqe side_completion(struct qtest_side *s, unsigned ms);
bool side_has_completion(struct qtest_side *s, struct sg_cqe *out, unsigned ms);
/* b listens on the port, a connects; both are in RTS. */
void sides_connect(struct qtest_side *a, struct qtest_side *b, uint16_t port);

#endif
