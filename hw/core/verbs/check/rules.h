/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of the driver checker.  docs/manual/checker.md has the same table, with the reasons.
 */
#ifndef SG_VERBS_CHECK_RULES_H
#define SG_VERBS_CHECK_RULES_H

#include <stdbool.h>
#include <stdint.h>

enum sg_rule {
    SG_RULE_NONE, /* a mistake that no driver can avoid: counted, never reported */
    /* registers */
    SG_RULE_REG_WIDTH,
    SG_RULE_REG_UNKNOWN,
    SG_RULE_REG_SETUP,
    SG_RULE_REG_BITS,
    SG_RULE_REG_VECTOR,
    SG_RULE_REG_ENABLE,
    SG_RULE_DMA_SELF,
    SG_RULE_RESET_LEFT,
    /* doorbells */
    SG_RULE_DB_WIDTH,
    SG_RULE_DB_PAGE,
    SG_RULE_DB_GONE,
    SG_RULE_DB_UNKNOWN,
    SG_RULE_DB_RESET,
    SG_RULE_DB_SHARED,
    SG_RULE_RING_BEYOND,
    SG_RULE_RING_BACK,
    SG_RULE_RING_UNTOLD,
    /* entries of send and receive queues */
    SG_RULE_ENTRY_INDEX,
    SG_RULE_ENTRY_CHANGED,
    SG_RULE_ENTRY_FORM,
    SG_RULE_ENTRY_ACCESS,
    /* completion queues and event queues */
    SG_RULE_CQ_OVERRUN,
    SG_RULE_CQ_ARM,
    SG_RULE_CQ_RECORD,
    SG_RULE_CQ_RECORD_BACK,
    SG_RULE_CQ_RECORD_STALE,
    SG_RULE_EQ_INDEX,
    SG_RULE_EQ_BACK,
    SG_RULE_EQ_UNKNOWN,
    SG_RULE_AEQ_OVERRUN,
    SG_RULE_IRQ_UNANSWERED,
    /* the admin queue */
    SG_RULE_ADMIN_BEYOND,
    SG_RULE_ADMIN_BACK,
    SG_RULE_ADMIN_CHANGED,
    SG_RULE_ADMIN_CI,
    SG_RULE_ADMIN_CI_BACK,
    SG_RULE_ADMIN_RESERVED,
    SG_RULE_ADMIN_OPCODE,
    SG_RULE_ADMIN_FIELD,
    SG_RULE_ADMIN_MEMORY,
    SG_RULE_ADMIN_GONE,
    SG_RULE_ADMIN_UNKNOWN,
    SG_RULE_ADMIN_BUSY,
    /* memory */
    SG_RULE_RING_STALE,
    SG_RULE_DMA_RING,
    SG_RULE_DMA_MEMORY,
    SG_RULES,
};

/* What a strict checker does beyond what the adapter does in any case. */
enum sg_rule_end {
    SG_RULE_REFUSED, /* nothing: the adapter ignores it, refuses it or fails */
    SG_RULE_ENDS,    /* the object goes to its error state */
    SG_RULE_FATAL,   /* the adapter becomes fatal, if the driver itself did it */
    SG_RULE_ADVICE,  /* nothing: the manual permits it */
};

struct sg_rule_info {
    const char *name;
    const char *section; /* file and anchor in docs/manual */
    uint8_t end;         /* enum sg_rule_end */
};

const struct sg_rule_info *sg_rule_info(enum sg_rule rule);
const char *sg_rule_end_name(uint8_t end);

#endif
