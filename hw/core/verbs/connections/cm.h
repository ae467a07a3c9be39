/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections and listeners as the driver sees them.
 */
#ifndef SG_VERBS_CONNECTIONS_CM_H
#define SG_VERBS_CONNECTIONS_CM_H

#include "base/list.h"
#include "proto/engine.h"
#include "staghorn/admin.h"
#include "verbs/connections/mpe_target.h"
#include "verbs/queues/qp.h"

struct sg_adapter;

struct sg_listen {
    struct sg_adapter *adapter;
    uint32_t id;
    uint32_t backlog, pending; /* limit and number of unanswered requests */
    struct sg_list requests;   /* sg_cm */
    struct sg_engine_listener *engine;
};

enum sg_cm_state {
    SG_CM_REQUEST,    /* inbound, unanswered; request_user of the engine's is this */
    SG_CM_ACCEPTED,   /* 'established' is awaited */
    SG_CM_CONNECTING, /* 'reply' is awaited */
    SG_CM_UP,
    SG_CM_DOWN,   /* ended by the peer or an error; TCP may still exist */
    SG_CM_FAILED, /* CONNECT failed: kept for CM_DATA, no TCP */
};

/* A connection: the 'user' of the engine's upcalls.  Outlives its QP if that is destroyed. */
struct sg_cm {
    struct sg_qp_conn base; /* the part that its queue pair knows */
    struct sg_adapter *adapter;
    uint32_t id;
    uint8_t state;            /* enum sg_cm_state */
    bool was_up;              /* setup was completed */
    bool passive;             /* the peer began */
    bool observed;            /* the host knows that it exists */
    struct sg_qp *qp;         /* NULL: none yet, or no more */
    struct sg_listen *listen; /* REQUEST */
    /* In sg_adapter.ready; of qp->past_cm in past_conns; in REQUEST in listen->requests. */
    struct sg_link ready_link;
    uint16_t ird; /* ORD: base.ord */
    uint16_t peer_ird, peer_ord;
    uint8_t mpa_rev;
    bool mute; /* a fault rule: it sends nothing any more */
    uint16_t pdata_len;
    uint8_t *pdata;           /* of the peer's frame, owned */
    struct sg_mpe_target mpe; /* the peer's request under way */
    bool write_open;          /* a Write of the peer began, its end is awaited */
    uint64_t write_to;        /* where it began */
};

/* The connection of this queue pair; NULL: it has none. */
static inline struct sg_cm *sg_cm_of(const struct sg_qp *qp)
{
    return qp->conn ? sg_container_of(qp->conn, struct sg_cm, base) : NULL;
}

/* The operations of connections for the engine and for queues. */
extern const struct sg_engine_ops sg_cm_engine_ops;
extern const struct sg_qp_conn_ops sg_cm_conn_ops;

/* Schedules it for transmission in the next turn. */
void sg_cm_ready(struct sg_cm *cm);
/* Resets the connection now and tells the driver that it is gone. */
void sg_cm_abort(struct sg_cm *cm);
/* The queue pair is being destroyed: no more events; ends gracefully if it was closing. */
void sg_cm_release(struct sg_cm *cm);
/* Drops what CM_DATA knows of the queue pair's last connection. */
void sg_cm_forget_past(struct sg_qp *qp);
/* Transmits up to about budget octets; true: there is more. */
bool sg_cm_transmit(struct sg_adapter *a, size_t budget);
/* Fatal error: resets all connections silently, some at each call; false: none is left. */
bool sg_cm_quiesce(struct sg_adapter *a);

/* faulty_peer.c: chooses what the engine calls: are there fault rules about messages? */
void sg_cm_hang_upcalls(struct sg_adapter *a);

/* observe.c: its queue pair may send, or the peer may. */
void sg_cm_observe(struct sg_cm *cm);
void sg_cm_observe_answer(const struct sg_cm *cm, const struct sg_answer *r);
/* Tells the host, which observes from now on, of all connections that exist. */
void sg_cm_observe_all(const struct sg_adapter *a);

/* Destroys a connection from before a reset, whose number is no longer valid, without events. */
void sg_cm_destroy(struct sg_adapter *a, void *object);
void sg_listen_destroy(struct sg_adapter *a, void *object);

struct sg_cm *sg_cm_new(struct sg_adapter *a, enum sg_cm_state state);
void sg_cm_free(struct sg_cm *cm);
enum sg_cm_status sg_cm_status_of(enum sg_conn_end end);

#endif
