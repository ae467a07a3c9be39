/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits and policy of an adapter.
 */
#ifndef SG_VERBS_STATE_ADAPTER_CONFIG_H
#define SG_VERBS_STATE_ADAPTER_CONFIG_H

#include "flash/image.h"
#include "proto/engine.h"
#include "verbs/check/check.h"

/* A message without a posted receive: Terminate, or wait (rnr.c); AUTO: by kind of connection. */
enum sg_rnr_mode { SG_RNR_AUTO, SG_RNR_TERMINATE, SG_RNR_WAIT };

/* Limits and policy, from the device's properties; validated by sg_adapter_check_config(). */
struct sg_adapter_config {
    uint8_t mac[6];
    uint64_t guid;    /* node GUID */
    uint32_t vectors; /* MSI-X vectors, 1..SG_EQ_COUNT */
    uint32_t max_qp, max_cq, max_mr, max_pd;
    uint32_t max_qp_wr, max_cqe, max_listeners, max_conns;
    uint32_t max_sge, max_inline;
    uint32_t max_srq, max_srq_wr, max_srq_sge; /* max_sge also bounds the last one */
    uint64_t max_mr_size;
    uint64_t max_host_memory; /* octets that the guest can make the adapter allocate */
    uint32_t link_mtu;        /* octets */
    uint32_t link_speed;      /* Mbit/s */
    uint32_t features;        /* SG_FEATURE_* that are allowed (sg_adapter_may()) */
    char fw_version[16];      /* text, not necessarily terminated by a zero */
    uint32_t fw_version_word; /* SG_REG_FW_VERSION */
    uint8_t rnr;              /* enum sg_rnr_mode */
    uint8_t check;            /* enum sg_check_mode */
    struct sg_engine_config engine;
};

/* Reasonable defaults. */
void sg_adapter_default_config(struct sg_adapter_config *config);
/* Switches off what the wire does not have. */
void sg_adapter_fit_wire(struct sg_adapter_config *config);
/* NULL when usable, else a sentence naming the property and its range (static or in buf). */
const char *sg_adapter_check_config(const struct sg_adapter_config *config, char *buf, size_t len);

/*
 * Applies a firmware's profile: each value becomes the profile's, unless is_set() says that the
 * user has set the property of that name, or the profile has SG_PROFILE_ANY.  Does not check
 * values.
 */
void sg_profile_apply(const struct sg_profile_info *profile, struct sg_adapter_config *config,
                      bool (*is_set)(void *opaque, const char *property), void *opaque);
/*
 * The limits for firmware written by the guest: of each value the larger of the user's, without
 * a profile, and the adapter's initial one.  'limit' lowers larger values to them.
 */
void sg_profile_bound(struct sg_adapter_config *bound, const struct sg_adapter_config *users,
                      const struct sg_adapter_config *begun);
void sg_profile_limit(struct sg_adapter_config *config, const struct sg_adapter_config *bound);

#endif
