/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits and policy of an adapter: defaults and range checks.
 */
#include "verbs/state/adapter_config.h"

#include <stdio.h>

#include "base/bytes.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"

void sg_adapter_default_config(struct sg_adapter_config *c)
{
    *c = (struct sg_adapter_config){
        .mac = { 0x52, 0x54, 0x00, 0x53, 0x47, 0x01 },
        .guid = 0x525400fffe534701,
        .vectors = 8,
        .max_qp = 65536,
        .max_cq = 65536,
        .max_mr = 1 << 20,
        .max_pd = 32768,
        .max_qp_wr = 32768,
        .max_cqe = 262144,
        .max_listeners = 1024,
        .max_conns = 131072,
        .max_sge = 32,
        .max_inline = 512,
        .max_srq = 65536,
        .max_srq_wr = 32768,
        .max_srq_sge = 32,
        .max_mr_size = 1ull << 40,
        .max_host_memory = 1ull << 30,
        .link_mtu = 9000,
        .link_speed = 10000,
        .features = UINT32_MAX,
        .fw_version = "1.0.0",
        .fw_version_word = 0x010000,
        .engine = {
            .mpa_rev = 2,
            .crc = true,
            .markers = false,
            .peer_to_peer = true,
            .rtr_mask = SG_RTR_WRITE | SG_RTR_READ,
            .max_ird = 128,
            .max_ord = 128,
            .reply_timeout_ms = 60000,
            .startup_timeout_ms = 10000,
            .close_timeout_ms = 5000,
            .linger_timeout_ms = 60000,
            .close_limit_ms = 600000,
            .mpe_draft = SG_MPE_DRAFT_02,
            .rfc7306 = true,
        },
    };
}

void sg_adapter_fit_wire(struct sg_adapter_config *config)
{
    struct sg_engine_config *e = &config->engine;
    uint32_t kinds = sg_engine_wire_kinds(e->wire);

    if (e->wire != SG_ENGINE_IWARP) {
        e->mpa_rev = 1; /* no enhanced setup, and all private data are the program's */
    }
    if (!(kinds & 1u << SG_MSG_FLUSH)) {
        e->mpe_draft = SG_MPE_DRAFT_OFF;
    }
    if (!(kinds & 1u << SG_MSG_FETCH_ADD)) {
        e->rfc7306 = false;
    }
}

struct range_row {
    const char *name;
    uint64_t value, min, max;
};

const char *sg_adapter_check_config(const struct sg_adapter_config *c, char *buf, size_t len)
{
    const struct range_row rows[] = {
        { "vectors", c->vectors, 1, SG_EQ_COUNT },
        { "max-qp", c->max_qp, 1, 1 << 20 },
        { "max-cq", c->max_cq, 1, 1 << 20 },
        { "max-mr", c->max_mr, 1, 1 << 22 },
        { "max-pd", c->max_pd, 1, 1 << 20 },
        { "max-qp-wr", c->max_qp_wr, 2, 1 << 20 },
        { "max-cqe", c->max_cqe, 2, 1 << 22 },
        { "max-listeners", c->max_listeners, 1, 65535 },
        { "max-conns", c->max_conns, 1, 1 << 20 },
        { "max-sge", c->max_sge, 1, SG_MIN((int)SG_SQ_MAX_SGE, (int)SG_RQ_MAX_SGE) },
        { "max-inline", c->max_inline, 0, SG_MAX_INLINE },
        { "max-srq", c->max_srq, 1, 1 << 20 },
        { "max-srq-wr", c->max_srq_wr, 2, 1 << 20 },
        { "max-srq-sge", c->max_srq_sge, 1, SG_RQ_MAX_SGE },
        { "max-mr-size", c->max_mr_size, 4096, 1ull << 48 },
        { "max-host-memory", c->max_host_memory, 1 << 20, 1ull << 48 },
        { "link-mtu", c->link_mtu, 576, 65535 },
        { "link-speed", c->link_speed, 1, 1000000000 },
        { "mpa-rev", c->engine.mpa_rev, 1, 2 },
        { "max-ird", c->engine.max_ird, 0, 16382 },
        { "max-ord", c->engine.max_ord, 0, 16382 },
        { "reply-timeout", c->engine.reply_timeout_ms, 1, 3600000 },
        { "startup-timeout", c->engine.startup_timeout_ms, 1, 3600000 },
        { "close-timeout", c->engine.close_timeout_ms, 1, 3600000 },
        { "linger-timeout", c->engine.linger_timeout_ms, 1, 3600000 },
        { "close-limit", c->engine.close_limit_ms,
          SG_MAX(c->engine.close_timeout_ms, c->engine.linger_timeout_ms), 86400000 },
        { "first-fpdu-delay", c->engine.first_fpdu_delay_ms, 0, 1000 },
        { "wire", c->engine.wire, 0, SG_ENGINE_WIRES - 1 },
        { "commit", c->engine.mpe_draft, SG_MPE_DRAFT_OFF, SG_MPE_DRAFT_02 },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        if (rows[i].value < rows[i].min || rows[i].value > rows[i].max) {
            snprintf(buf, len, "%s is %llu, must be from %llu to %llu", rows[i].name,
                     (unsigned long long)rows[i].value, (unsigned long long)rows[i].min,
                     (unsigned long long)rows[i].max);
            return buf;
        }
    }
    if (c->mac[0] & 1) {
        return "mac is a multicast address, must be a unicast one";
    }
    if (c->guid == 0) {
        return "guid is 0, must be a unique number";
    }
    if (c->engine.rtr_mask & ~(SG_RTR_SEND | SG_RTR_WRITE | SG_RTR_READ)) {
        return "rtr has unknown bits";
    }
    return NULL;
}
