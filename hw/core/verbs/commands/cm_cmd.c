/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of connection management.  They complete when they are accepted; the outcome is
 * an event (cm.c).  Addresses are struct sg_sockaddr; private data use DMA and are copied once.
 */
#include <glib.h>

#include "verbs/commands/admin_cmd.h"
#include "verbs/connections/cm.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum { BACKLOG_MAX = 1024, V2_HEADER = 4 };

static bool endpoint_of(struct sg_endpoint *ep, const struct sg_sockaddr *sa)
{
    memset(ep, 0, sizeof(*ep));
    if (sa->family != 4 && sa->family != 6) {
        return false;
    }
    ep->family = sa->family;
    ep->port = sg_get_be16(&sa->port);
    ep->vlan = sg_get_le16(&sa->vlan); /* ignored where it has no meaning */
    ep->tos = sa->tos;
    memcpy(ep->ip, sa->ip, sa->family == 4 ? 4 : 16);
    return true;
}

static void sockaddr_of(struct sg_sockaddr *sa, const struct sg_endpoint *ep)
{
    memset(sa, 0, sizeof(*sa));
    sa->family = ep->family;
    sg_put_be16(&sa->port, ep->port);
    sg_put_le16(&sa->vlan, ep->vlan);
    memcpy(sa->ip, ep->ip, sizeof(sa->ip));
}

/* For CONNECT and ACCEPT; all zero: none is named. */
static bool is_next_hop_named(const struct sg_cmd_connect *c)
{
    static const uint8_t none[sizeof(c->next_hop)];

    return memcmp(c->next_hop, none, sizeof(none)) != 0;
}

static enum sg_status status_of(enum sg_conn_end why)
{
    switch (why) {
    case SG_CONN_UNREACHABLE:
        return SG_EADDR;
    case SG_CONN_NORES:
        return SG_ENOMEM;
    default:
        return SG_EINVAL;
    }
}

enum sg_status sg_cmd_listen(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_listen *c = cmd;
    uint32_t backlog = sg_get_le32(&c->backlog);
    enum sg_conn_end why = SG_CONN_NORES;
    struct sg_endpoint local;
    struct sg_listen *l;

    if (!endpoint_of(&local, &c->local) || local.port == 0 || backlog == 0 ||
        backlog > BACKLOG_MAX) {
        return SG_EINVAL;
    }
    l = sg_account_object(&a->account, sizeof(*l));
    if (!l || !sg_idtab_alloc(&a->listeners, l, &l->id)) {
        sg_account_object_free(&a->account, l, sizeof(*l));
        return SG_ENOMEM;
    }
    l->adapter = a;
    l->backlog = backlog;
    sg_list_init(&l->requests);
    l->engine = sg_engine_listen(a->engine, &local, backlog, l, &why);
    if (!l->engine) {
        sg_idtab_free(&a->listeners, l->id);
        sg_account_object_free(&a->account, l, sizeof(*l));
        return status_of(why);
    }
    sg_put_le32(&rsp->id, l->id);
    return SG_OK;
}

enum sg_status sg_cmd_unlisten(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_listen *l = sg_idtab_get(&a->listeners, sg_get_le32(&c->id));
    struct sg_link *k;

    (void)rsp;
    if (!l) {
        return SG_ENOENT;
    }
    sg_engine_unlisten(l->engine);
    while ((k = sg_list_pop(&l->requests))) {
        struct sg_cm *cm = sg_container_of(k, struct sg_cm, ready_link);

        cm->base.engine = NULL; /* reset by the engine */
        sg_cm_abort(cm);
    }
    sg_idtab_free(&a->listeners, l->id);
    sg_account_object_free(&a->account, l, sizeof(*l));
    return SG_OK;
}

/* Common part of CONNECT, ACCEPT and REJECT: private data, and depths. */
static enum sg_status read_params(struct sg_adapter *a, const struct sg_cmd_connect *c, uint8_t rev,
                                  struct sg_conn_params *p, uint8_t *pdata)
{
    uint16_t max = SG_PRIVATE_DATA_MAX - (rev >= 2 ? V2_HEADER : 0);

    memset(p, 0, sizeof(*p));
    p->mpa_rev = rev;
    p->ird = sg_get_le16(&c->ird);
    p->ord = sg_get_le16(&c->ord);
    p->pdata_len = sg_get_le16(&c->pdata_len);
    p->pdata = pdata;
    if (p->pdata_len > max || sg_get_le16(&c->flags) & ~(SG_CONNECT_STAY | SG_CONNECT_CONFIRM) ||
        p->ird > a->config.engine.max_ird || p->ord > a->config.engine.max_ord) {
        return SG_EINVAL;
    }
    if (p->pdata_len &&
        !a->host.ops->dma_read(a->host.opaque, sg_get_le64(&c->pdata_addr), pdata, p->pdata_len)) {
        return SG_EFAULT;
    }
    return SG_OK;
}

/* The queue pair for a new connection. */
static enum sg_status free_qp(struct sg_adapter *a, uint32_t qpn, struct sg_qp **out)
{
    struct sg_qp *qp = sg_idtab_get(&a->qps, qpn);

    if (!qp) {
        return SG_ENOENT;
    }
    if (qp->state != SG_QP_IDLE || (qp->conn && sg_cm_of(qp)->state != SG_CM_FAILED)) {
        return SG_ESTATE;
    }
    *out = qp;
    return SG_OK;
}

static void bind_qp(struct sg_cm *cm, struct sg_qp *qp)
{
    if (qp->conn) {
        sg_cm_free(sg_cm_of(qp)); /* of a CONNECT that failed */
    }
    sg_cm_forget_past(qp);
    qp->conn = &cm->base;
    cm->qp = qp;
}

static void keep_flags(struct sg_cm *cm, const struct sg_cmd_connect *c)
{
    uint16_t flags = sg_get_le16(&c->flags);

    cm->base.stay = flags & SG_CONNECT_STAY;
    cm->base.confirm = flags & SG_CONNECT_CONFIRM;
}

enum sg_status sg_cmd_connect(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_connect *c = cmd;
    struct sg_endpoint local, remote;
    uint8_t pdata[SG_PRIVATE_DATA_MAX];
    struct sg_conn_params params;
    enum sg_conn_end why = SG_CONN_NORES;
    enum sg_status status;
    struct sg_qp *qp;
    struct sg_cm *cm;

    status = free_qp(a, sg_get_le32(&c->qpn), &qp);
    if (status != SG_OK) {
        return status;
    }
    if (!endpoint_of(&local, &c->local) || !endpoint_of(&remote, &c->remote) ||
        local.family != remote.family || remote.port == 0) {
        return SG_EINVAL;
    }
    status = read_params(a, c, a->config.engine.mpa_rev, &params, pdata);
    if (status != SG_OK) {
        return status;
    }
    memcpy(remote.next_hop, c->next_hop, remote.family == 4 ? 4 : sizeof(remote.next_hop));
    cm = sg_cm_new(a, SG_CM_CONNECTING);
    if (!cm) {
        return SG_ENOMEM;
    }
    cm->base.engine = sg_engine_connect(a->engine, &local, &remote, &params, cm, &why);
    if (!cm->base.engine) {
        sg_cm_free(cm);
        return status_of(why);
    }
    bind_qp(cm, qp);
    keep_flags(cm, c);
    sg_put_le32(&rsp->id, cm->id);
    return SG_OK;
}

static struct sg_cm *find_request(struct sg_adapter *a, const struct sg_cmd_connect *c,
                                  enum sg_status *status)
{
    struct sg_cm *cm = sg_idtab_get(&a->conns, sg_get_le32(&c->conn));

    *status = !cm ? SG_ENOENT : cm->state != SG_CM_REQUEST ? SG_ESTATE : SG_OK;
    return *status == SG_OK ? cm : NULL;
}

static void answered(struct sg_cm *cm)
{
    cm->listen->pending--;
    cm->listen = NULL;
}

enum sg_status sg_cmd_accept(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_connect *c = cmd;
    uint8_t pdata[SG_PRIVATE_DATA_MAX];
    struct sg_conn_params params;
    enum sg_status status;
    struct sg_qp *qp;
    struct sg_cm *cm = find_request(a, c, &status);

    if (!cm) {
        return status;
    }
    status = free_qp(a, sg_get_le32(&c->qpn), &qp);
    if (status == SG_OK) {
        status = read_params(a, c, cm->mpa_rev, &params, pdata);
    }
    if (status != SG_OK) {
        return status;
    }
    if (is_next_hop_named(c)) {
        sg_conn_set_next_hop(cm->base.engine, c->next_hop);
    }
    cm->state = SG_CM_ACCEPTED;
    sg_list_remove(&cm->ready_link); /* it becomes the link for transmission */
    if (!sg_conn_accept(cm->base.engine, cm, &params)) {
        cm->state = SG_CM_REQUEST;
        sg_list_append(&cm->listen->requests, &cm->ready_link);
        return SG_EINVAL;
    }
    answered(cm);
    bind_qp(cm, qp);
    keep_flags(cm, c);
    sg_cm_observe(cm);
    sg_qp_start(qp, "accepted");
    sg_put_le32(&rsp->id, cm->id);
    return SG_OK;
}

enum sg_status sg_cmd_reject(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_connect *c = cmd;
    uint8_t pdata[SG_PRIVATE_DATA_MAX];
    struct sg_conn_params params;
    enum sg_status status;
    struct sg_cm *cm = find_request(a, c, &status);

    (void)rsp;
    if (!cm) {
        return status;
    }
    status = read_params(a, c, cm->mpa_rev, &params, pdata);
    if (status != SG_OK) {
        return status;
    }
    if (!sg_conn_reject(cm->base.engine, params.pdata, params.pdata_len)) {
        return SG_EINVAL;
    }
    sg_cm_free(cm); /* the engine sends the rejection by itself */
    return SG_OK;
}

enum sg_status sg_cmd_cm_data(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_query *c = cmd;
    struct sg_cm *cm = sg_idtab_get(&a->conns, sg_get_le32(&c->id));
    struct sg_endpoint local = { 0 }, remote = { 0 };
    struct sg_cm_data data = { 0 };

    if (!cm) {
        return SG_ENOENT;
    }
    if (cm->base.engine) {
        sg_conn_endpoints(cm->base.engine, &local, &remote);
    }
    sockaddr_of(&data.local, &local);
    sockaddr_of(&data.remote, &remote);
    sg_put_le16(&data.ird, cm->ird);
    sg_put_le16(&data.ord, cm->base.ord);
    sg_put_le16(&data.peer_ird, cm->peer_ird);
    sg_put_le16(&data.peer_ord, cm->peer_ord);
    sg_put_le16(&data.pdata_len, cm->pdata_len);
    data.mpa_rev = cm->mpa_rev;
    if (cm->pdata_len) {
        memcpy(data.pdata, cm->pdata, cm->pdata_len);
    }
    sg_put_le32(&rsp->id, cm->id);
    return sg_admin_answer(a, c, &data, offsetof(struct sg_cm_data, pdata) + cm->pdata_len);
}
