/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by tests of the requester: messages that verbs post, and their form on the wire. */
#ifndef SG_TESTS_PROTO_REQUEST_MSGS_H
#define SG_TESTS_PROTO_REQUEST_MSGS_H

#include "rig.h"

/* Headers of a request, a response and a Terminate. */
#define REQ(op, msn) "41" op " 00000000 00000001 000000" msn " 00000000 "
#define RESP(op, msn) "41" op " 00000000 00000003 000000" msn " 00000000 "
#define TERM(lec, len) "4147 00000000 00000002 00000001 00000000 " lec "c000 " len " "

static const struct sg_msg read_msg = {
    .kind = SG_MSG_READ_REQ,
    .read = { .length = 4,
              .stag = 0xb0000002,
              .to = 0x2000,
              .sink_stag = RIG_STAG_RW,
              .sink_to = 0x40 },
};
static const struct sg_msg flush_msg = {
    .kind = SG_MSG_FLUSH,
    .mpe = { .stag = 0xb0000002, .to = 0x2000, .length = 4096, .args = { .flags = 1 } },
};

/* As they are sent, and the answer to the Read. */
#define READ(msn) REQ("41", msn) "00000100 0000000000000040 00000004 b0000002 0000000000002000"
#define FLUSH(msn) REQ("4c", msn) "b0000002 00001000 0000000000002000 00000001"
#define READ_RESP "c142 00000100 0000000000000040 61626364"

#endif
