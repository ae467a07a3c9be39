/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RPC program that `rpcrdma serve` has, in the range for users.  It is a small memory:
 *
 *   program RR_ECHO, version 1
 *     0  NULL   ()                                     -> ()
 *     1  READ   (unsigned offset, unsigned count)      -> (opaque data<>)
 *     2  WRITE  (unsigned offset, opaque data<>)       -> (unsigned count)
 *     3  LIST   (unsigned count)                       -> (unsigned number<>)
 *     4  TWO    (unsigned first, unsigned second)      -> (opaque a<>, opaque b<>)
 *     5  PUT    (unsigned offset, put what)            -> (unsigned count)
 *
 *   typedef opaque octets<>;
 *   union put switch (unsigned kind) {
 *   case 0: void;
 *   case 1: octets *data;
 *   };
 *
 * The opaque items are DDP-eligible, also as optional data in the arm of a union.  Numbers, flags
 * of optional data and unions are not.  TWO reads twice, from offset 0.  PUT writes like WRITE;
 * without data it writes nothing.  What lies beyond the memory is GARBAGE_ARGS.
 */
#ifndef RPCRDMA_ECHO_H
#define RPCRDMA_ECHO_H

#include "stream.h"

enum rr_echo {
    RR_ECHO = RR_PROG_ECHO,
    RR_ECHO_VERSION = 1,
    RR_ECHO_NULL = 0,
    RR_ECHO_READ = 1,
    RR_ECHO_WRITE = 2,
    RR_ECHO_LIST = 3,
    RR_ECHO_TWO = 4,
    RR_ECHO_PUT = 5,
    RR_ECHO_PROCS,
    RR_ECHO_MEMORY = 32 * 1024,
    RR_ECHO_LIST_MAX = 4096,
    RR_PUT_NOTHING = 0, /* kinds of PUT */
    RR_PUT_DATA = 1,
};

enum rr_accept_stat {
    RR_SUCCESS = 0,
    RR_PROG_UNAVAIL = 1,
    RR_PROG_MISMATCH = 2,
    RR_PROC_UNAVAIL = 3,
    RR_GARBAGE_ARGS = 4,
};

struct rr_echo_memory {
    uint8_t octets[RR_ECHO_MEMORY];
};

void rr_echo_start(struct rr_echo_memory *memory);
/* The Reply to a Call; @call is its unreduced stream. */
void rr_echo_answer(struct rr_echo_memory *memory, const struct rr_rpc *rpc, struct sg_span call,
                    struct rr_stream *reply);

#endif
