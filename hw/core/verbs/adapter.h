/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter: everything a driver can reach through BARs, as one object.
 *
 * The device layer (hw/device) and the test host forward register accesses, doorbells and time;
 * the core decides.  All calls of one adapter are serialised by the caller.
 */
#ifndef SG_VERBS_ADAPTER_H
#define SG_VERBS_ADAPTER_H

#include "base/host.h"
#include "flash/chip.h"
#include "proto/engine.h"

struct sg_adapter;

/* A message and no receive posted: Terminate, or wait (rnr.c); AUTO: as the connection is. */
enum sg_rnr_mode { SG_RNR_AUTO, SG_RNR_TERMINATE, SG_RNR_WAIT };

/* Limits and policy, from the device's properties; validated by sg_adapter_check_config(). */
struct sg_adapter_config {
    uint8_t mac[6];
    uint64_t guid;          /* node GUID */
    uint32_t vectors;       /* MSI-X vectors, 1..SG_EQ_COUNT */
    uint32_t max_qp, max_cq, max_mr, max_pd;
    uint32_t max_qp_wr, max_cqe, max_listeners, max_conns;
    uint32_t max_sge, max_inline;
    uint32_t max_srq, max_srq_wr, max_srq_sge; /* max_sge is a bound of the last, too */
    uint64_t max_mr_size;
    uint64_t max_host_memory; /* octets that the guest can make the adapter allocate */
    uint32_t link_mtu;      /* octets */
    uint32_t link_speed;    /* Mbit/s */
    uint32_t features;      /* SG_FEATURE_* that may be there (sg_adapter_may()) */
    char fw_version[16];    /* text, need not end with a zero */
    uint32_t fw_version_word; /* SG_REG_FW_VERSION */
    uint8_t rnr;            /* enum sg_rnr_mode */
    struct sg_engine_config engine;
};

/* Defaults worth using. */
void sg_adapter_default_config(struct sg_adapter_config *config);
/* NULL when usable, else a sentence naming the property and its range (static or in buf). */
const char *sg_adapter_check_config(const struct sg_adapter_config *config, char *buf, size_t len);

/*
 * Applies a firmware's profile: each value becomes the profile's, unless 'given' says that the user
 * has set the property of that name, or the profile says SG_PROFILE_ANY.  Nothing is checked.
 */
void sg_profile_apply(const struct sg_profile_info *profile, struct sg_adapter_config *config,
                      bool (*given)(void *opaque, const char *property), void *opaque);
/*
 * The limits that firmware written by the guest may have: of each the larger of the user's, without
 * a profile, and what the adapter has begun with.  'limit' lowers to them what is beyond.
 */
void sg_profile_bound(struct sg_adapter_config *bound, const struct sg_adapter_config *users,
                      const struct sg_adapter_config *begun);
void sg_profile_limit(struct sg_adapter_config *config, const struct sg_adapter_config *bound);

/* Copies config; host and net must outlive the adapter.  Never NULL. */
struct sg_adapter *sg_adapter_new(const struct sg_host *host, struct sg_stream_net *net,
                                  const struct sg_adapter_config *config);
void sg_adapter_free(struct sg_adapter *a);
/* FLR, CTRL.RESET, machine reset: as freshly made; open connections are reset. */
void sg_adapter_reset(struct sg_adapter *a);
/*
 * Does at once what a reset left for the turns behind it.  For a machine without power, whose
 * adapters must not say good-bye to anybody when it is back: the caller drops their frames.
 */
void sg_adapter_finish_reset(struct sg_adapter *a);
/* The same, and other limits and policy from then on: new firmware begins. */
void sg_adapter_renew(struct sg_adapter *a, const struct sg_adapter_config *config);

/* BAR0.  offset < SG_REGS_SIZE, size 4 or 8, aligned. */
uint64_t sg_adapter_reg_read(struct sg_adapter *a, uint32_t offset, unsigned size);
void sg_adapter_reg_write(struct sg_adapter *a, uint32_t offset, uint64_t value, unsigned size);
/* BAR2.  page < SG_UAR_COUNT, offset < SG_UAR_SIZE, aligned; size 8 (others: guest error). */
void sg_adapter_doorbell(struct sg_adapter *a, uint32_t page, uint32_t offset, uint64_t value,
                         unsigned size);

/*
 * One turn: timers due, then transmission, bounded by 'budget' octets.  Called after register
 * writes, doorbells and frames (the host sees 'kick' when a call is wanted), and at the deadline
 * given to arm_timer.  True: there is more to do, call again soon.
 */
bool sg_adapter_run(struct sg_adapter *a, size_t budget);

/* Reads of BAR2: the clock (SG_DB_CLOCK), 8 octets or halves of 4; anything else is 0. */
uint64_t sg_adapter_doorbell_read(struct sg_adapter *a, uint32_t page, uint32_t offset,
                                  unsigned size);
/* A fault of the adapter itself, for tests of drivers: SG_FATAL_INJECTED, if it is enabled. */
void sg_adapter_break(struct sg_adapter *a);

void sg_adapter_set_link(struct sg_adapter *a, bool up);
/* What FLASH_* commands work on; NULL, as at first: none.  It must outlive the adapter. */
void sg_adapter_set_flash(struct sg_adapter *a, struct sg_flash *flash);

/* For tests and diagnostics: named counters and live objects. */
struct sg_adapter_census {
    uint32_t pds, mrs, mws, cqs, qps, srqs, eqs, conns, listeners;
};
void sg_adapter_census(const struct sg_adapter *a, struct sg_adapter_census *out);
/* Octets of max_host_memory in use. */
uint64_t sg_adapter_host_memory(const struct sg_adapter *a);

#endif
