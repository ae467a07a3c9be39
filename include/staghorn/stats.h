/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: counters, a row each.
 *
 * Manual: docs/manual/commands.md.  A row added at the end of a list is a counter of the device,
 * of the drivers and of the tests.
 */
#ifndef STAGHORN_STATS_H
#define STAGHORN_STATS_H

#include "layout.h"
#include "types.h"

/*
 * Answer of QUERY_STATS: counters since reset, in this order.  X(name, where): 'where' tells
 * the model which of its parts keeps the counter; drivers ignore it.
 */
/* clang-format off */
#define SG_STATS(X) \
    X(tx_octets, ENGINE) \
    X(rx_octets, ENGINE) \
    X(tx_fpdus, ENGINE) \
    X(rx_fpdus, ENGINE) \
    X(tx_sends, ENGINE) \
    X(rx_sends, ENGINE) \
    X(tx_writes, ENGINE) \
    X(rx_writes, ENGINE) \
    X(tx_reads, ENGINE) \
    X(rx_reads, ENGINE) \
    X(tx_read_responses, ENGINE) \
    X(rx_read_responses, ENGINE) \
    X(tx_terminates, ENGINE) \
    X(rx_terminates, ENGINE) \
    X(crc_errors, ENGINE) \
    X(protocol_errors, ENGINE) \
    X(protection_errors, ENGINE) \
    X(guest_errors, ADAPTER) \
    X(conn_active, ADAPTER) \
    X(conn_passive, ADAPTER) \
    X(conn_failed, ADAPTER) \
    X(conn_closed, ADAPTER) \
    X(tcp_retransmits, NET) \
    X(rx_frames, NET) \
    X(tx_frames, NET) \
    X(tx_dropped_frames, NET) \
    X(cq_overruns, ADAPTER) \
    X(qps, OBJECTS) \
    X(cqs, OBJECTS) \
    X(mrs, OBJECTS) \
    X(pds, OBJECTS) \
    X(conns, ENGINE) \
    X(listeners, OBJECTS) \
    X(tx_flushes, ENGINE) \
    X(rx_flushes, ENGINE) \
    X(tx_verifies, ENGINE) \
    X(rx_verifies, ENGINE) \
    X(tx_atomic_writes, ENGINE) \
    X(rx_atomic_writes, ENGINE) \
    X(tx_atomics, ENGINE) \
    X(rx_atomics, ENGINE) \
    X(tx_imms, ENGINE) \
    X(rx_imms, ENGINE) \
    X(srqs, OBJECTS) \
    X(mws, OBJECTS) \
    X(page_faults, ADAPTER) \
    X(rx_no_receive, ADAPTER) \
    X(tcp_dropped_syns, NET) \
    X(tcp_dropped_fragments, NET) \
    X(path_mtu_reports, NET)
/* clang-format on */

struct sg_stats {
#define X(name, where) __le64 name;
    SG_STATS(X)
#undef X
};
#define X(name, where) +8
SG_ASSERT_SIZE(struct sg_stats, 0 SG_STATS(X));
#undef X

/* Answer of QUERY_QP_STATS: counters since the QP was created, in this order. */
/* clang-format off */
#define SG_QP_STATS(X) \
    X(tx_octets) \
    X(rx_octets) \
    X(tx_requests) \
    X(rx_requests) \
    X(completions) \
    X(errors)
/* clang-format on */

struct sg_qp_stats {
#define X(name) __le64 name;
    SG_QP_STATS(X)
#undef X
};
#define X(name) +8
SG_ASSERT_SIZE(struct sg_qp_stats, 0 SG_QP_STATS(X));
#undef X

/* Answer of QUERY_MR_STATS: accesses by peers since registration. */
/* clang-format off */
#define SG_MR_STATS(X) \
    X(remote_writes) \
    X(remote_reads) \
    X(remote_atomics) \
    X(refused) \
    X(page_faults)
/* clang-format on */

struct sg_mr_stats {
#define X(name) __le64 name;
    SG_MR_STATS(X)
#undef X
};
#define X(name) +8
SG_ASSERT_SIZE(struct sg_mr_stats, 0 SG_MR_STATS(X));
#undef X

#endif
