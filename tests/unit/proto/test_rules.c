/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of the checklist that need a case of their own. */
#include <string.h>

#include "proto/conn.h"
#include "tap.h"
#include "rig.h"

#define REP "4d504120 49442052 65702046 72616d65 "
#define REQ "4d504120 49442052 65712046 72616d65 "

/* After a reject the responder waits for its peer to close TCP, as long as a close may take. */
static void rejected_stands(void)
{
    rig_start(NULL);
    rig_request(REQ "50020004 80080008");
    T_TRUE(sg_conn_reject(rig->c, NULL, 0));
    rig->c = NULL;
    rig_settle();
    rig_pass(3900);
    T_SHOWS("MPA-60") {
        T_FALSE(rig->peer_fin);
        T_FALSE(rig->peer_over);
    }
    rig_peer_close();
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_CLOSED); /* without a reset */
    rig_stop();
}

static size_t emss_now;

static size_t changing_emss(struct sg_stream *s)
{
    return emss_now;
}

/* The segment size of the path changes: the next message is cut by the new one. */
static void ulpdu_follows_the_path(void)
{
    static const size_t sizes[] = { 1000, 300, 1400 };
    static struct sg_stream_ops ops;
    size_t i;

    rig_start(NULL);
    rig_active(REP "50020004 00080008");
    rig->in_used = rig->in_len;
    ops = *rig->c->stream->ops;
    ops.emss = changing_emss;
    rig->c->stream->ops = &ops;
    for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
        size_t ulpdu;

        T_CONTEXT("%zu octets", sizes[i]);
        emss_now = sizes[i];
        rig->in_used = rig->in_len;
        rig_send(0, 4000);
        rig_settle();
        ulpdu = sg_get_be16(rig->in + rig->in_used);
        T_SHOWS("MPA-02") {
            T_EQ_U64(ulpdu, rig->c->tx.mulpdu); /* the MULPDU that DDP got, and used */
            T_TRUE(sg_fpdu_len(ulpdu) <= sizes[i] && sg_fpdu_len(ulpdu) + 4 > sizes[i]);
        }
    }
    rig_stop();
}

/* A connection has the same upcalls with CRC and without. */
static void crc_is_not_seen(void)
{
    char heard[2][400];
    int on;

    for (on = 0; on < 2; on++) {
        struct sg_engine_config config = rig_config();

        config.crc = on;
        rig_start(&config);
        rig->recvs = 1;
        rig_active(on ? REP "50020004 00080008" : REP "10020004 00080008");
        rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
        rig_send(0, 9);
        rig_settle();
        rig_peer_close();
        snprintf(heard[on], sizeof(heard[on]), "%s", rig_log());
        rig_stop();
    }
    T_SHOWS("MPA-26") {
        T_EQ_STR(heard[0], heard[1]);
        T_EQ_STR(heard[0], "reply(OK,8/8,rev2) recv(1,1) sent(9) disconnected(CLOSED)");
    }
}

static const struct t_case cases[] = {
    { "MPA-60 after a reject TCP stands", rejected_stands },
    { "MPA-02 the limit of a ULPDU follows the path", ulpdu_follows_the_path },
    { "MPA-26 CRC is not seen from above", crc_is_not_seen },
};

T_MAIN(cases)
