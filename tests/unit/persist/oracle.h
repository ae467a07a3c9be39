/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The permitted results of a cut, according to a second and simpler model.
 *
 * Per line: its states since the last one known to be safe, one per atom stored, and the index of
 * the state that is certain by the rules of the platform.  It does not depend on how the domain
 * represents its lines.  After a cut each line must be in the certain state or a later one; data
 * still in S0 and S1 add states, in FIFO order per device.
 */
#ifndef SG_TESTS_PERSIST_ORACLE_H
#define SG_TESTS_PERSIST_ORACLE_H

#include <glib.h>

#include "rig.h"

enum { ORACLE_LINES = 128, ORACLE_VCPUS = 3, ORACLE_DEVICES = 2 };

struct oracle {
    struct dom_rig *r;
    GArray *states[ORACLE_LINES]; /* 64 octets each */
    unsigned certain[ORACLE_LINES];
    unsigned queued[ORACLE_LINES];              /* in S3 for certain (domain NONE) */
    unsigned noted[ORACLE_VCPUS][ORACLE_LINES]; /* state at the vCPU's CLWB + 1; 0: none */
    unsigned nt[ORACLE_VCPUS][ORACLE_LINES];    /* state after its last NT store + 1 */
    unsigned before[ORACLE_LINES];     /* state before NT stores in a buffer + 1; 0: none */
    unsigned waits[ORACLE_LINES];      /* whose buffer that is */
    bool loose[ORACLE_LINES];          /* NT stores: each atom has an order of its own */
    GQueue s0, posted[ORACLE_DEVICES]; /* struct oracle_piece */
};

struct oracle_piece {
    unsigned device;
    uint64_t off;
    size_t len;
    uint8_t data[512];
};

void oracle_init(struct oracle *o, struct dom_rig *r);
void oracle_fini(struct oracle *o);

/* Each applies the event to the domain and records it. */
void oracle_write(struct oracle *o, unsigned device, uint64_t off, const uint8_t *buf, size_t len);
void oracle_atom(struct oracle *o, unsigned device, uint64_t off, const uint8_t *buf);
void oracle_other(struct oracle *o, uint64_t off, const uint8_t *buf, size_t len);
void oracle_read(struct oracle *o, unsigned device, uint64_t off, size_t len);
void oracle_settle(struct oracle *o, unsigned device);
void oracle_fence_device(struct oracle *o, unsigned device);
void oracle_flush(struct oracle *o, unsigned device, uint64_t off, uint64_t len, unsigned flags);
void oracle_store(struct oracle *o, unsigned vcpu, uint64_t off, const uint8_t *buf, size_t len,
                  bool nt);
void oracle_cpu_flush(struct oracle *o, unsigned vcpu, uint64_t off,
                      enum sg_persist_cpu_flush kind);
void oracle_sfence(struct oracle *o, unsigned vcpu);
void oracle_deep_flush(struct oracle *o);
void oracle_tick(struct oracle *o, uint64_t now_ns);
/* After a cut: fails the case if the content of the media is forbidden. */
void oracle_judge(struct oracle *o);

#endif
