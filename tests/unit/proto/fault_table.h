/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of faults: each row is one message of the peer, malformed or to be refused.  In every
 * case: the Terminate has the message's DDP header and no RDMAP header, memory is unchanged,
 * nothing is delivered, and no later request is executed.
 */
#ifndef SG_TESTS_PROTO_FAULT_TABLE_H
#define SG_TESTS_PROTO_FAULT_TABLE_H

#include "rig.h"

/* What the engine speaks beside RFC 5040: a draft (enum sg_mpe_draft), and perhaps RFC 7306. */
enum { SPEAKS_7306 = 0x80 };

struct fault_row {
    const char *what;
    uint8_t speaks;
    const char *header; /* DDP header, 18 octets, or 14 if tagged */
    const char *body;
    const char *lec;   /* layer, type, code: "0/2/ff" */
    bool asked;        /* verbs were asked to execute it */
    const char *shows; /* rows of the checklist */
};

void fault_start(uint8_t speaks);
void fault_run(const struct fault_row *rows, size_t n);

#endif
