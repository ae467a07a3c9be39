/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames to reports: what rpcrdma decode does, apart from reading the file. */
#ifndef RPCRDMA_DECODE_H
#define RPCRDMA_DECODE_H

#include "report.h"

enum { RR_PORT_NFS = 20049, RR_PORTS_MAX = 16 };

struct rr_decode;

/* @report must stay; @ports are ports of responders besides 20049. */
struct rr_decode *rr_decode_new(struct rr_report *report, const uint16_t *ports,
                                unsigned port_count);
void rr_decode_frame(struct rr_decode *d, enum rr_link link, struct sg_span frame, size_t wire);
/* Reports what is open and the summary, and frees everything. */
void rr_decode_free(struct rr_decode *d);

#endif
