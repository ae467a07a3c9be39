/* SPDX-License-Identifier: GPL-2.0-or-later */
/* iWARP as a wire of the engine: MPA, DDP and RDMAP. */
#include "proto/conn.h"

static bool init(struct sg_conn *c)
{
    const struct sg_engine_config *cfg = &c->e->config;
    unsigned q;

    c->setup.rev = cfg->mpa_rev;
    c->setup.mpe_draft = cfg->mpe_draft;
    c->setup.rfc7306 = cfg->rfc7306;
    for (q = 0; q < SG_QN_COUNT; q++) {
        c->msn.rx[q] = c->msn.tx[q] = SG_DDP_FIRST_MSN;
    }
    return true;
}

const struct engine_wire wire_iwarp = {
    .name = "iWARP",
    .kinds = (1u << SG_MSG_KINDS) - 1,
    .invalidates = true,
    .init = init,
    .pdata_max = mpa_answer_pdata_max,
    .make_request = mpa_make_request,
    .make_reply = mpa_make_reply,
    .make_reject = mpa_make_reject,
    .take_request = mpa_take_request,
    .transmit_setup = mpa_transmit,
    .receive_setup = mpa_receive,
    .receive = fpdu_receive,
    .retry = ddp_receive,
    .refresh = fpdu_refresh,
    .send_opening = rdmap_send_rtr,
    .send_payload = rdmap_send_payload,
    .send_response = rdmap_send_response,
    .send_small = rdmap_send_small,
    .send_executed = exec_send_response,
    .source_failed = rdmap_source_failed,
    .local_failed = rdmap_local_failed,
    .terminate = term_raise_code,
    .transmit_end = term_transmit,
};
