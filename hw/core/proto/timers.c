/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timers of a connection.
 *
 *   timer    runs from                            for                         and then
 *   startup  a connect; an accepted stream;       reply_timeout, while a      the connection is
 *            a Request; an accepting answer       program decides, else       dropped
 *                                                 startup_timeout
 *   pause    the Reply, at an initiator           first_fpdu_delay            FPDUs may be sent
 *   end      the first step of an end, and        as close.c says             close.c checks
 *            again after each check                                           TCP's progress
 *   drop     a fault inside a call of verbs, or   0                           the connection is
 *            no memory                                                        dropped
 *   exec     LATER for an inbound request         as verbs say                verbs run it again
 *
 * The first four are phases of one life: starting one of them stops the others.  A streaming
 * connection has none of them; the stream detects dead peers.  'exec' runs beside them.
 *
 * The rest of the engine reports events, by one function for each; only this file decides which
 * timer an event starts or stops.
 */
#include "proto/conn.h"

/* ---- expiry ---- */

static void give_up(struct sg_conn *c)
{
    conn_log(c, SG_LOG_STATE, "timeout in %s", conn_state_name(c->state));
    conn_drop(c, c->end != SG_CONN_OK ? c->end : SG_CONN_TIMEOUT);
}

static void startup_expired(struct sg_timer *t, uint64_t now_ns)
{
    (void)now_ns;
    give_up(t->opaque);
}

static void pause_expired(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_conn *c = t->opaque;

    (void)now_ns;
    close_go_on(c);
    conn_signal(c);
}

static void end_expired(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_conn *c = t->opaque;

    if (conn_is(c, CONN_DROP_DUE)) { /* the end began behind it */
        give_up(c);
    } else {
        close_tick(c, now_ns);
    }
}

static void drop_expired(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_conn *c = t->opaque;

    (void)now_ns;
    if (conn_is(c, CONN_IS_STARVED)) {
        conn_log(c, SG_LOG_STATE, "no memory");
        conn_drop(c, SG_CONN_NORES);
    } else {
        give_up(c);
    }
}

static void exec_expired(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_conn *c = t->opaque;

    (void)now_ns;
    c->exec.waiting = false;
    conn_signal(c);
}

/* ---- starting ---- */

uint64_t conn_now(const struct sg_conn *c)
{
    return c->e->host->ops->now(c->e->host->opaque);
}

void timers_start(struct sg_conn *c, struct sg_timer *t, uint64_t at_ns)
{
    struct sg_engine *e = c->e;
    bool sooner = at_ns < sg_timerq_next(&e->timers);

    sg_timerq_arm(&e->timers, t, at_ns);
    if (sooner) {
        e->host->ops->kick(e->host->opaque); /* so that the new deadline becomes known */
    }
}

static void stop_phase(struct sg_conn *c)
{
    struct sg_timerq *q = &c->e->timers;

    sg_timerq_cancel(q, &c->timers.startup);
    sg_timerq_cancel(q, &c->timers.pause);
    sg_timerq_cancel(q, &c->timers.end);
    sg_timerq_cancel(q, &c->timers.drop);
}

static void start_phase(struct sg_conn *c, struct sg_timer *t, uint64_t at_ns)
{
    stop_phase(c);
    timers_start(c, t, at_ns);
}

static void start_startup(struct sg_conn *c, uint32_t ms)
{
    start_phase(c, &c->timers.startup, conn_now(c) + ms_to_ns(ms));
}

/* ---- events ---- */

void timers_init(struct sg_conn *c)
{
    sg_timer_init(&c->timers.startup, startup_expired, c);
    sg_timer_init(&c->timers.pause, pause_expired, c);
    sg_timer_init(&c->timers.end, end_expired, c);
    sg_timer_init(&c->timers.drop, drop_expired, c);
    sg_timer_init(&c->timers.exec, exec_expired, c);
}

void timers_conn_dead(struct sg_conn *c)
{
    stop_phase(c);
    sg_timerq_cancel(&c->e->timers, &c->timers.exec);
}

void timers_connecting(struct sg_conn *c)
{
    start_startup(c, c->e->config.reply_timeout_ms);
}

void timers_accepted(struct sg_conn *c)
{
    start_startup(c, c->e->config.startup_timeout_ms); /* RFC 5044 section 7.1.2, rule 8 */
}

void timers_request_here(struct sg_conn *c)
{
    start_startup(c, c->e->config.reply_timeout_ms);
}

void timers_replying(struct sg_conn *c)
{
    start_startup(c, c->e->config.startup_timeout_ms);
}

void timers_started(struct sg_conn *c)
{
    if (!close_go_on(c) && !conn_is(c, CONN_IS_STARVED)) {
        stop_phase(c);
    }
}

void timers_pause(struct sg_conn *c)
{
    start_phase(c, &c->timers.pause, conn_now(c) + ms_to_ns(c->e->config.first_fpdu_delay_ms));
}

void timers_no_pause(struct sg_conn *c)
{
    sg_timerq_cancel(&c->e->timers, &c->timers.pause);
}

void timers_look_at_end(struct sg_conn *c, uint64_t at_ns)
{
    start_phase(c, &c->timers.end, at_ns);
}

void timers_drop(struct sg_conn *c)
{
    start_phase(c, &c->timers.drop, conn_now(c));
}

void timers_exec_later(struct sg_conn *c, uint64_t again_ns)
{
    c->exec.waiting = true;
    if (again_ns == SG_NEVER) {
        sg_timerq_cancel(&c->e->timers, &c->timers.exec);
    } else {
        timers_start(c, &c->timers.exec, again_ns);
    }
}
