/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a host that observes is told of connections (base/host.h): that they exist, that they are
 * gone, and which requests were answered.  Of requests: sq.c, sq_complete.c; of completions: cq.c;
 * of Verifies: mpe_target.c.
 *
 * A connection exists for the host when it is established, on the passive side when it is accepted:
 * from then on the peer may send, even if the owner closes at once.  It is gone when TCP is, when its
 * queue pair is destroyed, or with a reset; so it is gone before its queue pair has another one.
 */
#include "verbs/connections/cm_impl.h"
#include "verbs/state/adapter_state.h"

static void tell(const struct sg_adapter *a, const struct sg_observed *o)
{
    if (a->host.ops->observe) {
        a->host.ops->observe(a->host.opaque, o);
    }
}

static void put_address(uint8_t to[16], const struct sg_endpoint *at)
{
    if (at->family == 6) {
        memcpy(to, at->ip, 16);
        return;
    }
    memset(to, 0, 10);
    memset(to + 10, 0xff, 2);
    memcpy(to + 12, at->ip, 4);
}

static void tell_connected(const struct sg_cm *cm)
{
    struct sg_endpoint own, peer;
    uint8_t both[SG_OBSERVED_ADDRESSES];

    sg_conn_endpoints(cm->base.engine, &own, &peer);
    put_address(both, &own);
    put_address(both + 16, &peer);
    sg_put_be16(both + 32, own.port);
    sg_put_be16(both + 34, peer.port);
    tell(cm->adapter, &(const struct sg_observed){
                          .kind = SG_OBSERVED_CONNECTED,
                          .qpn = cm->qp->qpn,
                          .passive = cm->passive,
                          .addresses = both,
                      });
}

void sg_cm_observe(struct sg_cm *cm)
{
    if (cm->qp && !cm->observed) {
        cm->observed = true;
        tell_connected(cm);
    }
}

void sg_cm_observe_end(struct sg_cm *cm, enum sg_conn_end why)
{
    if (cm->observed) {
        cm->observed = false;
        tell(cm->adapter, &(const struct sg_observed){
                              .kind = SG_OBSERVED_GONE,
                              .qpn = cm->qp->qpn,
                              .status = sg_cm_status_of(why),
                          });
    }
}

void sg_cm_observe_answer(const struct sg_cm *cm, const struct sg_answer *r)
{
    static const uint8_t opcodes[SG_MSG_KINDS] = {
        [SG_MSG_READ_REQ] = SG_WR_READ,       [SG_MSG_FLUSH] = SG_WR_FLUSH,
        [SG_MSG_VERIFY] = SG_WR_VERIFY,       [SG_MSG_ATOMIC_WRITE] = SG_WR_ATOMIC_WRITE,
        [SG_MSG_FETCH_ADD] = SG_WR_FETCH_ADD, [SG_MSG_CMP_SWAP] = SG_WR_CMP_SWAP,
    };

    tell(cm->adapter, &(const struct sg_observed){
                          .kind = SG_OBSERVED_ANSWERED,
                          .qpn = cm->qp->qpn,
                          .opcode = opcodes[r->kind],
                          .msn = r->msn,
                          .ordinal = r->ordinal,
                          .response = r->response,
                      });
}

void sg_cm_observe_all(const struct sg_adapter *a)
{
    const struct sg_cm *cm;
    uint32_t cursor = 0;

    while ((cm = sg_idtab_next(&a->conns, &cursor, NULL))) {
        if (cm->observed) {
            tell_connected(cm);
        }
    }
}
