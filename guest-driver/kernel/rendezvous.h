/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Connections without a connection manager: modify.c, gid.c, rdv_peer.c, and rendezvous.c, which
 * has the explanation.
 */
#ifndef SGH_RENDEZVOUS_H
#define SGH_RENDEZVOUS_H

#include "qp.h"

#define SGH_GIDS (1 + SG_PORT_ADDR_MAX)

/* gid.c */
int sgh_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid);
int sgh_gid_route(struct sgh_dev *dev, u32 index, const union ib_gid *dgid, union ib_gid *sgid,
		  struct sg_sockaddr *local, struct sg_sockaddr *remote);

/* rendezvous.c, rdv_peer.c */
bool sgh_rdv_active(const struct sgh_qp *qp);
bool sgh_rdv_request(struct sgh_dev *dev, const struct sg_eqe *e);
bool sgh_rdv_event(struct sgh_dev *dev, const struct sg_eqe *e);
void sgh_rdv_end(struct sgh_qp *qp);
void sgh_rdv_unlisten(struct sgh_dev *dev);

/* rendezvous.c; qp->mutex is held. */
int sgh_rdv_rtr(struct sgh_qp *qp, const struct ib_qp_attr *attr);
void sgh_rdv_rts(struct sgh_qp *qp, const struct ib_qp_attr *attr, int mask);
void sgh_rdv_stop(struct sgh_qp *qp);
bool sgh_rdv_attr(const struct sgh_qp *qp, struct ib_qp_attr *attr);

/* Shared only by rendezvous.c and rdv_peer.c. */

enum sgh_rdv_kind {
	SGH_RDV_REQUEST = 1,
	SGH_RDV_ACCEPT = 2,
	SGH_RDV_REFUSE = 3,
};

enum sgh_rdv_reason {
	SGH_RDV_OK = 0,
	SGH_RDV_EARLY = 1,	/* no such queue pair, not in RTR, or still connected: try again */
	SGH_RDV_WRONG_PEER = 2, /* it expects another peer */
	SGH_RDV_FORM = 3,	/* not a message of this version */
};

/* Private data of MPA request and reply; network order. */
struct sgh_rdv_msg {
	__be32 magic;
	u8 version;
	u8 kind;
	u8 reason; /* REFUSE */
	u8 flags;  /* SGH_RDV_HAS_SQ_PSN */
	__be32 src_qpn;
	__be32 dst_qpn;
	__be32 rq_psn; /* the first PSN that the sender expects */
	__be32 sq_psn; /* its own, if it is in RTS */
	u8 sgid[16];
	u8 dgid[16];
};

#define SGH_RDV_HAS_SQ_PSN 1

static_assert(sizeof(struct sgh_rdv_msg) == 56);

enum sgh_rdv_state {
	RDV_OFF,
	RDV_WAITING,
	RDV_CALLING,
	RDV_ANSWERED,
	RDV_UP,
	RDV_LEFT,
};

/* Exists from the first RTR until the queue pair is destroyed. */
struct sgh_rdv {
	struct sgh_qp *qp;
	struct delayed_work work;
	enum sgh_rdv_state state;
	bool active;
	bool rts;
	bool ticking;		/* the deadline applies */
	struct ib_qp_attr attr; /* as the owner set them */
	union ib_gid sgid;
	struct sg_sockaddr local;
	struct sg_sockaddr remote;
	struct socket *held; /* reserves the port that it connects from, or NULL */
	u32 peer_psn;	     /* from ANSWERED or UP on: the first PSN that the peer expects */
	u32 conn;	     /* the adapter's number; 0: none */
	u32 pause;	     /* ms */
	u32 look;
	ktime_t next_call;
	ktime_t deadline;
};

void sgh_rdv_set_state(struct sgh_rdv *rdv, enum sgh_rdv_state state);
void sgh_rdv_retry(struct sgh_rdv *rdv, u32 pause);
u32 sgh_rdv_pause(struct sgh_rdv *rdv);
void sgh_rdv_fail(struct sgh_rdv *rdv, const char *why);
void sgh_rdv_up(struct sgh_rdv *rdv);
u16 sgh_rdv_ird(const struct sgh_rdv *rdv);

void sgh_rdv_fill(const struct sgh_rdv *rdv, struct sgh_rdv_msg *msg, enum sgh_rdv_kind kind);
bool sgh_rdv_psn_ok(const struct sgh_rdv *rdv, u32 psn);

#endif
