/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections without a connection manager: modify.c, gid.c, rendezvous.c, which explains. */
#ifndef SGH_RENDEZVOUS_H
#define SGH_RENDEZVOUS_H

#include "staghorn.h"

#define SGH_GIDS (1 + SG_PORT_ADDR_MAX)

/* gid.c */
int sgh_gid_route(struct sgh_dev *sg, u32 index, const union ib_gid *dgid, union ib_gid *sgid,
		  struct sg_sockaddr *local, struct sg_sockaddr *remote);

/* modify.c */
int sgh_query_state(struct sgh_qp *qp, struct sg_admin_rsp *rsp, enum sg_qp_state *state);

/* rendezvous.c; qp->mutex is held. */
int sgh_rdv_rtr(struct sgh_qp *qp, const struct ib_qp_attr *attr);
void sgh_rdv_rts(struct sgh_qp *qp, const struct ib_qp_attr *attr, int mask);
void sgh_rdv_stop(struct sgh_qp *qp);
bool sgh_rdv_attr(const struct sgh_qp *qp, struct ib_qp_attr *attr);

#endif
