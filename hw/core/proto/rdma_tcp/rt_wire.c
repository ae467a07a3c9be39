/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA/TCP of 2000 as a wire of the engine: its table, and how an error ends a connection.
 *
 * There is no message for errors.  The end that has one sends no further segment, drops what
 * arrives, tells its verbs and closes its half: TCP still delivers what verbs were told is sent.
 */
#include "proto/rdma_tcp/rt.h"

static void resume(struct sg_timer *t, uint64_t now_ns)
{
    (void)now_ns;
    sg_conn_resume(t->opaque);
}

static bool init(struct sg_conn *c)
{
    c->rt = sg_account_new(c->e->host->account, sizeof(*c->rt)); /* c has no timers yet */
    if (!c->rt) {
        return false;
    }
    memset(c->rt, 0, sizeof(*c->rt));
    c->rt->rx.msn = 1;
    sg_timer_init(&c->rt->rx.resume, resume, c);
    return true;
}

static void fini(struct sg_conn *c)
{
    sg_timerq_cancel(&c->e->timers, &c->rt->rx.resume);
    rt_early_free(c);
    conn_release(c, c->rt, sizeof(*c->rt));
}

/* From now on nothing is sent but a FIN, and nothing is received. */
static void end(struct sg_conn *c, enum sg_conn_end why)
{
    c->end = why;
    stall_drop(c);
    c->rx.have = 0;
    c->tx.active = false;
    conn_set_state(c, CONN_TERMINATING);
    if (c->close.state >= CLOSE_SENT) {
        close_watch(c);
    } else {
        close_due(c);
    }
}

/* False: it is ending already, for an earlier reason. */
static bool is_going_on(const struct sg_conn *c)
{
    return c->state == CONN_STREAMING || c->state == CONN_CLOSING;
}

/*
 * No fault is reported after our FIN: the cause may be our owner, who closed and took its memory
 * back without waiting for the peer's FIN.
 */
static void give_up(struct sg_conn *c, enum sg_conn_fault what, enum sg_conn_end why)
{
    bool closed = c->close.state >= CLOSE_SENT;

    if (!is_going_on(c)) {
        return;
    }
    end(c, why);
    if (c->user && !closed) {
        c->e->ops->faulted(c->user, what);
    }
    if (!conn_dead(c)) {
        conn_tell_down(c, why);
    }
}

void rt_fault(struct sg_conn *c, enum sg_conn_fault class, const char *what)
{
    struct sg_engine_stats *st = &c->e->stats;
    uint64_t *const counters[SG_FAULTS] = {
        [SG_FAULT_CRC] = &st->crc_errors,
        [SG_FAULT_FORM] = &st->protocol_errors,
        [SG_FAULT_ACCESS] = &st->protection_errors,
    };

    conn_log(c, SG_LOG_PEER_ERROR, "segment: %s", what);
    ++*counters[class];
    give_up(c, class, SG_CONN_PROTOCOL);
}

void rt_source_failed(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why)
{
    (void)r;
    if (why == SG_MEM_FAULT) {
        rt_local_failed(c);
    } else {
        rt_fault(c, SG_FAULT_ACCESS, "the source of a Read cannot be read any more");
    }
}

void rt_local_failed(struct sg_conn *c)
{
    conn_log(c, SG_LOG_STATE, "memory of ours cannot be used");
    give_up(c, SG_FAULT_HERE, SG_CONN_RESET);
}

void rt_terminate(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code)
{
    (void)layer;
    (void)type;
    (void)code;
    if (c->state < CONN_WAIT_FIRST) {
        conn_drop_later(c, SG_CONN_RESET);
    } else if (is_going_on(c)) {
        end(c, SG_CONN_RESET);
        conn_tell_down(c, SG_CONN_RESET); /* verbs know why */
    }
}

const struct engine_wire wire_rdma_tcp = {
    .name = "RDMA/TCP of 2000",
    .kinds = 1u << SG_MSG_SEND | 1u << SG_MSG_WRITE | 1u << SG_MSG_READ_REQ,
    .init = init,
    .fini = fini,
    .pdata_max = rt_pdata_max,
    .make_request = rt_make_request,
    .make_reply = rt_make_reply,
    .make_reject = rt_make_reject,
    .take_request = rt_take_request,
    .transmit_setup = rt_transmit_setup,
    .receive_setup = rt_receive_setup,
    .receive = rt_receive,
    .retry = rt_retry,
    .receive_early = rt_receive_early,
    .refresh = rt_refresh,
    .may_begin = rt_may_begin,
    .send_payload = rt_send_payload,
    .send_response = rt_send_response,
    .answered = rt_answered,
    .send_small = rt_send_small,
    .source_failed = rt_source_failed,
    .local_failed = rt_local_failed,
    .terminate = rt_terminate,
};
