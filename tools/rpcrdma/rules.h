/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of RPC-over-RDMA version 1 (RFC 8166) and of its private data (RFC 8797), by id, and
 * the list of those that something breaks.  docs/rpcrdma.md has the same table for readers.
 */
#ifndef RPCRDMA_RULES_H
#define RPCRDMA_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* In the order of their ids; rules.c relies on it. */
enum rr_rule {
    RPC_01,
    RPC_02,
    RPC_03,
    RPC_04,
    RPC_05,
    RPC_06,
    RPC_07,
    RPC_08,
    RPC_09,
    RPC_10,
    RPC_11,
    RPC_12,
    RPC_13,
    RPC_14,
    RPC_15,
    RPC_16,
    RPC_17,
    RPC_18,
    RPC_19,
    RPC_20,
    RPC_21,
    RPC_22,
    RPC_23,
    RPC_24,
    RPC_25,
    RPC_26,
    RPC_27,
    RPC_28,
    RPC_29,
    RPC_30,
    RPC_31,
    RPC_32,
    RPC_33,
    RPC_34,
    RPC_35,
    RPC_36,
    RPC_37,
    RPC_38,
    RPC_39,
    RPC_40,
    RPC_41,
    RPC_42,
    RPC_43,
    PVT_01,
    PVT_02,
    PVT_03,
    PVT_04,
    PVT_05,
    PVT_06,
    PVT_07,
    PVT_08,
    PVT_09,
    RR_RULES,
};

/* Who finds a breach. */
enum rr_judge {
    RR_DECODE, /* rpcrdma decode, in a capture */
    RR_SELF,   /* a duty of a receiver; rpcrdma itself keeps it */
};

struct rr_rule_row {
    const char *id;      /* "RPC-01" */
    const char *section; /* of RFC 8166; of RFC 8797 for PVT */
    const char *text;
    enum rr_judge judge;
};

const struct rr_rule_row *rr_rule(enum rr_rule rule);

/* What was broken, in one message or one exchange; texts beyond the bound are only counted. */
enum { RR_FINDINGS_MAX = 16, RR_FINDING_TEXT = 160 };

struct rr_findings {
    unsigned count;
    unsigned left_out;
    struct rr_finding {
        enum rr_rule rule;
        char text[RR_FINDING_TEXT];
    } found[RR_FINDINGS_MAX];
};

__attribute__((format(printf, 3, 4))) void rr_find(struct rr_findings *f, enum rr_rule rule,
                                                   const char *format, ...);
bool rr_found(const struct rr_findings *f, enum rr_rule rule);
/* Adds those of @more to @f. */
void rr_find_all(struct rr_findings *f, const struct rr_findings *more);

#endif
