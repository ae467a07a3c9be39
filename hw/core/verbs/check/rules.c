/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verbs/check/rules.h"

#include "base/bytes.h"

#define ACCESS "registers.md#access-rules"
#define BELLS "registers.md#doorbells"
#define RECORD "queues.md#the-consumers-record"
#define EVENTS "queues.md#event-queues"
#define ADMIN "admin.md#the-admin-queue"
#define STATUS "commands.md#status"
#define ORDER "driver.md#memory-ordering"
#define RESERVED "driver.md#reserved-fields-undefined-bits"

static const struct sg_rule_info rules[SG_RULES] = {
    [SG_RULE_NONE] = { "NONE", "driver.md#guest-errors", SG_RULE_REFUSED },
    [SG_RULE_REG_WIDTH] = { "REG-WIDTH", ACCESS, SG_RULE_FATAL },
    [SG_RULE_REG_UNKNOWN] = { "REG-UNKNOWN", ACCESS, SG_RULE_FATAL },
    [SG_RULE_REG_SETUP] = { "REG-SETUP", "registers.md#control-registers", SG_RULE_FATAL },
    [SG_RULE_REG_BITS] = { "REG-BITS", RESERVED, SG_RULE_FATAL },
    [SG_RULE_REG_VECTOR] = { "REG-VECTOR", "registers.md#test-registers", SG_RULE_FATAL },
    [SG_RULE_REG_ENABLE] = { "REG-ENABLE", "registers.md#control-registers", SG_RULE_REFUSED },
    [SG_RULE_DMA_SELF] = { "DMA-SELF", "registers.md#dma-to-the-adapter-itself", SG_RULE_REFUSED },
    [SG_RULE_RESET_LEFT] = { "RESET-LEFT", "driver.md#teardown", SG_RULE_ADVICE },
    [SG_RULE_DB_WIDTH] = { "DB-WIDTH", ACCESS, SG_RULE_FATAL },
    [SG_RULE_DB_PAGE] = { "DB-PAGE", BELLS, SG_RULE_FATAL },
    [SG_RULE_DB_GONE] = { "DB-GONE", BELLS, SG_RULE_FATAL },
    [SG_RULE_DB_UNKNOWN] = { "DB-UNKNOWN", BELLS, SG_RULE_FATAL },
    [SG_RULE_DB_RESET] = { "DB-RESET", BELLS, SG_RULE_ADVICE },
    [SG_RULE_DB_SHARED] = { "DB-SHARED", "queues.md#shared-receive-queues", SG_RULE_ENDS },
    [SG_RULE_RING_BEYOND] = { "RING-BEYOND", BELLS, SG_RULE_REFUSED },
    [SG_RULE_RING_BACK] = { "RING-BACK", BELLS, SG_RULE_REFUSED },
    [SG_RULE_RING_UNTOLD] = { "RING-UNTOLD", "queues.md#order", SG_RULE_ENDS },
    [SG_RULE_ENTRY_INDEX] = { "ENTRY-INDEX", ORDER, SG_RULE_ENDS },
    [SG_RULE_ENTRY_CHANGED] = { "ENTRY-CHANGED", "queues.md#rings", SG_RULE_ENDS },
    [SG_RULE_ENTRY_FORM] = { "ENTRY-FORM", "queues.md#send-queue-entry", SG_RULE_REFUSED },
    [SG_RULE_ENTRY_ACCESS] = { "ENTRY-ACCESS", "admin.md#rights", SG_RULE_REFUSED },
    [SG_RULE_CQ_OVERRUN] = { "CQ-OVERRUN", RECORD, SG_RULE_REFUSED },
    [SG_RULE_CQ_ARM] = { "CQ-ARM", BELLS, SG_RULE_ENDS },
    [SG_RULE_CQ_RECORD] = { "CQ-RECORD", RECORD, SG_RULE_ENDS },
    [SG_RULE_CQ_RECORD_BACK] = { "CQ-RECORD-BACK", RECORD, SG_RULE_ENDS },
    [SG_RULE_CQ_RECORD_STALE] = { "CQ-RECORD-STALE", RECORD, SG_RULE_ENDS },
    [SG_RULE_EQ_INDEX] = { "EQ-INDEX", BELLS, SG_RULE_FATAL },
    [SG_RULE_EQ_BACK] = { "EQ-BACK", BELLS, SG_RULE_FATAL },
    [SG_RULE_EQ_UNKNOWN] = { "EQ-UNKNOWN", "commands.md#create_eq", SG_RULE_FATAL },
    [SG_RULE_AEQ_OVERRUN] = { "AEQ-OVERRUN", EVENTS, SG_RULE_REFUSED },
    [SG_RULE_IRQ_UNANSWERED] = { "IRQ-UNANSWERED", EVENTS, SG_RULE_ADVICE },
    [SG_RULE_ADMIN_BEYOND] = { "ADMIN-BEYOND", ADMIN, SG_RULE_REFUSED },
    [SG_RULE_ADMIN_BACK] = { "ADMIN-BACK", BELLS, SG_RULE_FATAL },
    [SG_RULE_ADMIN_CHANGED] = { "ADMIN-CHANGED", "queues.md#rings", SG_RULE_FATAL },
    [SG_RULE_ADMIN_CI] = { "ADMIN-CI", BELLS, SG_RULE_FATAL },
    [SG_RULE_ADMIN_CI_BACK] = { "ADMIN-CI-BACK", BELLS, SG_RULE_FATAL },
    [SG_RULE_ADMIN_RESERVED] = { "ADMIN-RESERVED", RESERVED, SG_RULE_FATAL },
    [SG_RULE_ADMIN_OPCODE] = { "ADMIN-OPCODE", "commands.md#opcodes", SG_RULE_REFUSED },
    [SG_RULE_ADMIN_FIELD] = { "ADMIN-FIELD", STATUS, SG_RULE_REFUSED },
    [SG_RULE_ADMIN_MEMORY] = { "ADMIN-MEMORY", STATUS, SG_RULE_REFUSED },
    [SG_RULE_ADMIN_GONE] = { "ADMIN-GONE", STATUS, SG_RULE_REFUSED },
    [SG_RULE_ADMIN_UNKNOWN] = { "ADMIN-UNKNOWN", STATUS, SG_RULE_REFUSED },
    [SG_RULE_ADMIN_BUSY] = { "ADMIN-BUSY", "driver.md#objects", SG_RULE_REFUSED },
    [SG_RULE_RING_STALE] = { "RING-STALE", "queues.md#rings", SG_RULE_FATAL },
    [SG_RULE_DMA_RING] = { "DMA-RING", "driver.md#objects", SG_RULE_REFUSED },
    [SG_RULE_DMA_MEMORY] = { "DMA-MEMORY", "admin.md#memory", SG_RULE_REFUSED },
};

const struct sg_rule_info *sg_rule_info(enum sg_rule rule)
{
    return &rules[(unsigned)rule < SG_RULES ? rule : SG_RULE_NONE];
}

const char *sg_rule_end_name(uint8_t end)
{
    static const char *const names[] = {
        [SG_RULE_REFUSED] = "refused",
        [SG_RULE_ENDS] = "ends",
        [SG_RULE_FATAL] = "fatal",
        [SG_RULE_ADVICE] = "advice",
    };

    return end < SG_ARRAY_SIZE(names) ? names[end] : "?";
}
