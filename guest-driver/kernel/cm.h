/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared by cm.c (connections, events) and iw.c (iw_cm's calls); see the top of cm.c. */
#ifndef SGH_CM_H
#define SGH_CM_H

#include <rdma/iw_cm.h>

#include "qp.h"

enum sgh_conn_state {
	SGH_CONN_NEW,
	SGH_CONN_CONNECTING,
	SGH_CONN_REQUESTED,
	SGH_CONN_ACCEPTING,
	SGH_CONN_ESTABLISHED,
	SGH_CONN_GONE,
};

struct sgh_conn {
	struct sgh_dev *dev;
	struct kref ref;
	struct work_struct end_work;
	u32 id;
	u32 generation;
	enum sgh_conn_state state;
	struct sgh_qp *qp;
	struct iw_cm_id *cm_id;
	struct socket *held; /* CONNECT: its port (port.c), or NULL */
};

/* The "any" address of IPv6 includes IPv4, which takes two of the adapter's listeners. */
struct sgh_listener {
	struct iw_cm_id *cm_id;
	u32 ids[2];
	struct socket *held[2];
	u32 num;
};

/* port.c */
int sgh_port_hold(struct sgh_dev *dev, struct sg_sockaddr *addr, struct socket **held);
int sgh_port_hold_listener(struct sgh_dev *dev, struct sg_sockaddr *addr, struct socket **held);
int sgh_port_hold_for(struct sgh_dev *dev, const struct sg_sockaddr *local,
		      const struct sg_sockaddr *remote, struct socket **held);
void sgh_port_release(struct socket *held);

/* cm.c, iw.c */
void sgh_iw_add_ref(struct ib_qp *ibqp);
void sgh_iw_rem_ref(struct ib_qp *ibqp);
struct ib_qp *sgh_iw_get_qp(struct ib_device *ibdev, int qpn);
int sgh_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int sgh_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int sgh_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len);
int sgh_iw_create_listen(struct iw_cm_id *id, int backlog);
int sgh_iw_destroy_listen(struct iw_cm_id *id);
void sgh_cm_event(struct sgh_dev *dev, const struct sg_eqe *e);
void sgh_cm_qp_gone(struct sgh_qp *qp);
void sgh_cm_abort_all(struct sgh_dev *dev);
void sgh_cm_drain(struct sgh_dev *dev);

/* cm.c, iw.c, route.c: shared with the rendezvous */
struct sgh_conn *sgh_conn_new(struct sgh_dev *dev, u32 id, enum sgh_conn_state state);
void sgh_conn_put(struct sgh_conn *conn);
void sgh_conn_set_state(struct sgh_conn *conn, enum sgh_conn_state state);
bool sgh_conn_release(struct sgh_dev *dev, struct sgh_conn *conn, enum sgh_conn_state from);
int sgh_cm_command(struct sgh_dev *dev, u8 opcode, struct sg_cmd_connect *cmd, const void *pdata,
		   u16 len, struct sg_admin_rsp *rsp);
void sgh_set_next_hop(struct sgh_dev *dev, struct sg_cmd_connect *cmd,
		      const struct sg_sockaddr *local, const struct sg_sockaddr *remote);
void sgh_send_reject(struct sgh_dev *dev, u32 id, const void *pdata, u8 len);

#endif
