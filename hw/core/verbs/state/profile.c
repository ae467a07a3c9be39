/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a firmware's capability profile to the adapter's configuration.
 *
 * Precedence: an explicitly set property, then the profile, then the model's default, which the
 * configuration already contains.
 *
 * Firmware written by the guest cannot raise limits beyond what the user of the host allowed, by
 * property, by default or by the initial image.
 */
#include "staghorn/admin.h"
#include "verbs/state/adapter_config.h"

struct word_row {
    const char *property;
    size_t from; /* uint32_t of struct sg_profile_info */
    size_t to;   /* uint32_t of struct sg_adapter_config */
};

#define WORD(property, name) \
    { property, offsetof(struct sg_profile_info, name), offsetof(struct sg_adapter_config, name) }

static const struct word_row words[] = {
    WORD("max-qp", max_qp),       WORD("max-cq", max_cq),
    WORD("max-mr", max_mr),       WORD("max-pd", max_pd),
    WORD("max-qp-wr", max_qp_wr), WORD("max-cqe", max_cqe),
    WORD("max-sge", max_sge),     WORD("max-inline", max_inline),
    WORD("max-conns", max_conns), WORD("max-listeners", max_listeners),
    WORD("features", features),
};

typedef bool prop_set_fn(void *opaque, const char *property);

static void apply_words(const struct sg_profile_info *p, struct sg_adapter_config *c,
                        prop_set_fn *is_set, void *opaque)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(words); i++) {
        uint32_t value;

        memcpy(&value, (const uint8_t *)p + words[i].from, sizeof(value));
        if (value != SG_PROFILE_ANY && !is_set(opaque, words[i].property)) {
            memcpy((uint8_t *)c + words[i].to, &value, sizeof(value));
        }
    }
}

void sg_profile_apply(const struct sg_profile_info *p, struct sg_adapter_config *c,
                      prop_set_fn *is_set, void *opaque)
{
    const uint32_t placement = SG_FEATURE_FLUSH | SG_FEATURE_VERIFY | SG_FEATURE_ATOMIC_WRITE;
    const uint32_t rfc7306 = SG_FEATURE_ATOMICS | SG_FEATURE_IMM;
    struct sg_engine_config *e = &c->engine;

    apply_words(p, c, is_set, opaque);
    if (p->max_ird != SG_PROFILE_ANY && !is_set(opaque, "max-ird")) {
        e->max_ird = SG_MIN(p->max_ird, UINT16_MAX); /* too large stays too large */
    }
    if (p->max_ord != SG_PROFILE_ANY && !is_set(opaque, "max-ord")) {
        e->max_ord = SG_MIN(p->max_ord, UINT16_MAX);
    }
    if (p->max_mr_size != SG_PROFILE_ANY && !is_set(opaque, "max-mr-size")) {
        c->max_mr_size = 1ull << p->max_mr_size;
    }
    if (p->mpa_rev != SG_PROFILE_ANY_8 && !is_set(opaque, "mpa-rev")) {
        e->mpa_rev = p->mpa_rev;
    }
    if (p->commit != SG_PROFILE_ANY_8 && !is_set(opaque, "commit")) {
        e->mpe_draft = p->commit;
    }
    if (p->crc != SG_PROFILE_ANY_8 && !is_set(opaque, "crc")) {
        e->crc = p->crc;
    }
    if (p->markers != SG_PROFILE_ANY_8 && !is_set(opaque, "markers")) {
        e->markers = p->markers;
    }
    if ((c->features & placement) != placement) {
        e->mpe_draft = SG_MPE_DRAFT_OFF;
    }
    if ((c->features & rfc7306) != rfc7306) {
        e->rfc7306 = false;
    }
    if (p->peer_to_peer != SG_PROFILE_ANY_8 && !is_set(opaque, "peer-to-peer")) {
        e->peer_to_peer = p->peer_to_peer;
    }
}

static void bound_word(uint32_t *config, const uint32_t *other, bool raise)
{
    if (raise ? *other > *config : *other < *config) {
        *config = *other;
    }
}

/* Each limit becomes the larger or the smaller of both. */
static void merge(struct sg_adapter_config *c, const struct sg_adapter_config *other, bool raise)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(words); i++) {
        if (words[i].to != offsetof(struct sg_adapter_config, features)) { /* not a limit */
            bound_word((uint32_t *)(void *)((uint8_t *)c + words[i].to),
                       (const uint32_t *)(const void *)((const uint8_t *)other + words[i].to),
                       raise);
        }
    }
    c->engine.max_ird = raise ? SG_MAX(c->engine.max_ird, other->engine.max_ird)
                              : SG_MIN(c->engine.max_ird, other->engine.max_ird);
    c->engine.max_ord = raise ? SG_MAX(c->engine.max_ord, other->engine.max_ord)
                              : SG_MIN(c->engine.max_ord, other->engine.max_ord);
    c->max_mr_size = raise ? SG_MAX(c->max_mr_size, other->max_mr_size)
                           : SG_MIN(c->max_mr_size, other->max_mr_size);
}

void sg_profile_bound(struct sg_adapter_config *bound, const struct sg_adapter_config *users,
                      const struct sg_adapter_config *begun)
{
    *bound = *users;
    merge(bound, begun, true);
}

void sg_profile_limit(struct sg_adapter_config *config, const struct sg_adapter_config *bound)
{
    merge(config, bound, false);
}
