/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QUERY_CAPS and QUERY_STATS: the adapter's capabilities, and its counters since reset.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/memory/pagelist.h"
#include "verbs/memory/tpt.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

static const uint8_t wire_ids[] = {
    [SG_ENGINE_IWARP] = SG_WIRE_ID_IWARP,
    [SG_ENGINE_RDMA_TCP_2000] = SG_WIRE_ID_RDMA_TCP_2000,
};
static_assert(SG_ARRAY_SIZE(wire_ids) == SG_ENGINE_WIRES, "each wire has a number");

enum sg_status sg_cmd_query_caps(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_adapter_config *cfg = &a->config;
    uint64_t page_sizes = (2ull << SG_PAGE_SHIFT_MAX) - (1ull << SG_PAGE_SHIFT_MIN);
    uint32_t features = SG_FEATURE_FAST_REG | SG_FEATURE_READ_INV | SG_FEATURE_SRQ |
                        SG_FEATURE_SRQ_RESIZE | SG_FEATURE_IPV6 | SG_FEATURE_VLAN | SG_FEATURE_MW |
                        SG_FEATURE_ODP;
    struct sg_caps c = { 0 };

    (void)rsp;
    if (cfg->engine.mpa_rev >= 2) {
        features |= SG_FEATURE_MPA_V2;
    }
    if (sg_engine_wire_invalidates(cfg->engine.wire)) {
        features |= SG_FEATURE_SEND_INV;
    }
    if (cfg->engine.rfc7306) {
        features |= SG_FEATURE_ATOMICS | SG_FEATURE_IMM;
    }
    if (cfg->engine.mpe_draft != SG_MPE_DRAFT_OFF) {
        features |= SG_FEATURE_FLUSH | SG_FEATURE_VERIFY | SG_FEATURE_ATOMIC_WRITE;
        features |= a->host.ops->pm_query ? SG_FEATURE_FLUSH_PERSISTENT : 0;
        features |= cfg->engine.mpe_draft == SG_MPE_DRAFT_02 ? SG_FEATURE_FLUSH_REGION : 0;
        sg_put_le32(&c.hash_mask, (1u << SG_HASH_COUNT) - (1u << SG_HASH_CRC32C));
    }
    sg_put_le32(&c.version, SG_VERSION);
    features &= cfg->features;
    if (!(features & SG_FEATURE_SRQ)) {
        features &= ~SG_FEATURE_SRQ_RESIZE; /* as RESIZE_SRQ answers */
    }
    sg_put_le32(&c.features, features);
    sg_put_le32(&c.max_pd, cfg->max_pd);
    sg_put_le32(&c.max_mr, cfg->max_mr);
    sg_put_le32(&c.max_cq, cfg->max_cq);
    sg_put_le32(&c.max_cqe, cfg->max_cqe);
    sg_put_le32(&c.max_qp, cfg->max_qp);
    sg_put_le32(&c.max_qp_wr, cfg->max_qp_wr);
    sg_put_le32(&c.max_sq_sge, cfg->max_sge);
    sg_put_le32(&c.max_rq_sge, cfg->max_sge);
    sg_put_le32(&c.max_inline, cfg->max_inline);
    sg_put_le32(&c.max_ird, cfg->engine.max_ird);
    sg_put_le32(&c.max_ord, cfg->engine.max_ord);
    sg_put_le32(&c.max_fr_pages, features & SG_FEATURE_FAST_REG ? SG_FR_PAGES_MAX : 0);
    sg_put_le32(&c.max_listeners, cfg->max_listeners);
    sg_put_le32(&c.max_conns, cfg->max_conns);
    sg_put_le64(&c.max_mr_size, cfg->max_mr_size);
    sg_put_le64(&c.page_size_mask, page_sizes);
    if (features & SG_FEATURE_SRQ) {
        sg_put_le32(&c.max_srq, cfg->max_srq);
        sg_put_le32(&c.max_srq_wr, cfg->max_srq_wr);
        sg_put_le32(&c.max_srq_sge, sg_srq_max_sge(a));
    }
    sg_put_le32(&c.max_mw, features & SG_FEATURE_MW ? cfg->max_mr : 0);
    sg_put_le32(&c.wire, wire_ids[cfg->engine.wire]);
    sg_put_le32(&c.num_uar, SG_UAR_COUNT);
    sg_put_le32(&c.num_eq, SG_EQ_COUNT);
    sg_put_le32(&c.max_private_data, SG_PRIVATE_DATA_MAX);
    memcpy(c.fw_version, cfg->fw_version, sizeof(c.fw_version));
    return sg_admin_answer(a, cmd, &c, sizeof(c));
}

/* Of each kind, how many there are. */
struct objects {
    uint64_t qps, srqs, cqs, pds, mrs, mws, listeners;
};

static struct objects count_objects(const struct sg_adapter *a)
{
    return (struct objects){
        .qps = sg_idtab_count(&a->qps),
        .srqs = sg_idtab_count(&a->srqs),
        .cqs = sg_idtab_count(&a->cqs),
        .pds = sg_idtab_count(&a->pds),
        .mrs = a->tpt->count - a->tpt->windows,
        .mws = a->tpt->windows,
        .listeners = sg_idtab_count(&a->listeners),
    };
}

enum sg_status sg_cmd_query_stats(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_engine_stats *e = sg_engine_stats(a->engine);
    const struct sg_net_counters *since = &a->net_before;
    const struct objects now = count_objects(a);
    struct sg_net_counters net;
    struct sg_stats s;

    (void)rsp;
    a->net->ops->counters(a->net, &net);
/* A counter that is not counted where its row says does not compile. */
#define FROM_ENGINE(name) e->name
#define FROM_ADAPTER(name) a->stats.name
#define FROM_NET(name) (net.name - since->name)
#define FROM_OBJECTS(name) now.name
#define X(name, where) sg_put_le64(&s.name, FROM_##where(name));
    SG_STATS(X)
#undef X
#undef FROM_OBJECTS
#undef FROM_NET
#undef FROM_ADAPTER
#undef FROM_ENGINE
    return sg_admin_answer(a, cmd, &s, sizeof(s));
}
