/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a host that observes is told, in which order, and the ordinals of messages at both ends.
 *
 * Each side's words are kept as text; the expected ones show what a trace of the machine has.
 * An initiator begins with an RTR message, so its first work request is number 2.
 */
#include "mpe_rig.h"

enum { WORDS = 8192 };

static char words[2][WORDS];
static struct sg_observed last[2][SG_OBSERVED_KINDS]; /* without what pointers refer to */
static uint8_t addresses[2][SG_OBSERVED_ADDRESSES];
static uint64_t ordinals[2][64]; /* of work, by wr_id */
static bool alone;               /* no other completion waits in a queue */

static void note(void *host, const struct sg_observed *o)
{
    int i = host == &pair.side[1].h;
    size_t at = strlen(words[i]);
    char *p = words[i] + at;
    size_t room = WORDS - at;
    struct sg_cqe c;

    last[i][o->kind] = *o;
    T_TRUE(room > 100);
    switch (o->kind) {
    case SG_OBSERVED_CONNECTED:
        memcpy(addresses[i], o->addresses, sizeof(addresses[i]));
        snprintf(p, room, " %s", o->passive ? "accepted" : "connected");
        break;
    case SG_OBSERVED_GONE:
        snprintf(p, room, " gone(%u)", o->status);
        break;
    case SG_OBSERVED_WORK:
        ordinals[i][o->wr_id % 64] = o->ordinal;
        snprintf(p, room, " work(%u,#%u)", (unsigned)o->wr_id, (unsigned)o->ordinal);
        break;
    case SG_OBSERVED_COMPLETED:
        T_FALSE(alone && md_poll(&pair.side[i].cq, &c)); /* the driver cannot see it yet */
        snprintf(p, room, " done(%u,%u,#%u)", (unsigned)o->wr_id, o->status, (unsigned)o->ordinal);
        break;
    case SG_OBSERVED_ANSWERED:
        snprintf(p, room, " answered(#%u,#%u)", (unsigned)o->ordinal, (unsigned)o->response);
        break;
    default:
        snprintf(p, room, " verified(%u,#%u)", o->status, (unsigned)o->ordinal);
        break;
    }
}

static void observe(void)
{
    pair.side[0].h.ops.observe = pair.side[1].h.ops.observe = note;
    words[0][0] = words[1][0] = 0;
}

/* These words since the last call. */
static void told(int side, const char *what)
{
    pair_settle(&pair);
    T_EQ_STR(words[side], what);
    words[side][0] = 0;
}

static void open_pair(void)
{
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS | SG_ACCESS_REMOTE_ATOMIC });
    pair_connect(&pair);
}

static void start_observed(void)
{
    place_start(NULL);
    observe();
    open_pair();
    told(0, " connected");
    told(1, " accepted");
}

static void done(int side, uint64_t id)
{
    expect(side, id, SG_WC_SUCCESS);
}

static void connections(void)
{
    place_start(NULL);
    observe();
    open_pair();
    T_EQ_MEM(addresses[0], addresses[1] + 16, 16);
    T_EQ_MEM(addresses[0] + 16, addresses[1], 16);
    T_EQ_MEM(addresses[0] + 32, addresses[1] + 34, 2);
    T_EQ_U64(sg_get_be16(addresses[0] + 34), PAIR_PORT);
    T_EQ_MEM(addresses[0] + 10, "\xff\xff", 2);
    T_EQ_MEM(addresses[0] + 12, pair.side[0].at.ip, 4);
    T_EQ_U64(last[0][SG_OBSERVED_CONNECTED].qpn, pair.side[0].qp.qpn);
    told(0, " connected");
    told(1, " accepted");
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    pair_pass(&pair, 1000000);
    told(0, " gone(6)");
    told(1, " gone(6)");
    /* The queue pair again: its messages are counted from 1. */
    for (int i = 0; i < 2; i++) {
        struct sg_eqe e;

        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
        while (md_next_async(&pair.side[i].md, &e)) {
        }
    }
    pair_connect(&pair);
    told(0, " connected");
    told(1, " accepted");
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
    done(0, 1);
    told(0, " work(1,#2) done(1,0,#2)");
    /* Destroyed while it is connected. */
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
    T_EQ_STR(words[1], " gone(6)");
    sg_adapter_reset(pair.side[0].md.a);
    sg_adapter_finish_reset(pair.side[0].md.a);
    T_EQ_STR(words[0], " gone(4)");
    pair_stop(&pair);
    test_pm_fini(&pm[0]);
    test_pm_fini(&pm[1]);
}

static void every_kind(void)
{
    struct md_wr quiet;
    struct sg_wqe_hdr *h;

    start_observed();
    quiet = wr(0, SG_WR_WRITE, 1, 0, 100, 64);
    quiet.quiet = true;
    alone = true;
    post(0, quiet);
    T_EQ_U64(last[0][SG_OBSERVED_WORK].stag, pair.side[1].stag);
    T_EQ_U64(last[0][SG_OBSERVED_WORK].to, at(1, 64));
    T_EQ_U64(last[0][SG_OBSERVED_WORK].length, 100);
    T_EQ_U64(last[0][SG_OBSERVED_WORK].opcode, SG_WR_WRITE);
    told(0, " work(1,#2)");
    recv(1, 50, 4096, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 10, 0));
    T_EQ_U64(last[0][SG_OBSERVED_WORK].stag, 0);
    told(0, " work(2,#3) done(2,0,#3)");
    told(1, " done(50,0,#3)");
    done(0, 2);
    done(1, 50);
    post(0, wr(0, SG_WR_READ, 3, 0, 30, 512));
    T_EQ_U64(last[0][SG_OBSERVED_WORK].to, at(1, 512));
    T_EQ_U64(last[0][SG_OBSERVED_WORK].length, 30);
    told(0, " work(3,#4) done(3,0,#4)");
    told(1, " answered(#4,#1)");
    T_EQ_U64(last[1][SG_OBSERVED_ANSWERED].opcode, SG_WR_READ);
    T_EQ_U64(last[1][SG_OBSERVED_ANSWERED].msn, 1);
    done(0, 3);
    ask(flush_of(4, region(1, 0, 4096, ALL_RIGHTS, SG_HASH_CRC32C), 64, 100, P));
    told(0, " work(4,#5) done(4,0,#5)");
    told(1, " answered(#5,#2)");
    done(0, 4);
    /* Two messages of one request. */
    h = md_sq_entry(&pair.side[0].qp);
    h->opcode = SG_WR_WRITE_IMM;
    h->flags = SG_WQE_SIGNALED | SG_WQE_INLINE;
    sg_put_le16(&h->inline_len, 4);
    sg_put_le64(&h->wr_id, 6);
    sg_put_le64(&h->remote_addr, at(1, 0));
    sg_put_le32(&h->rkey, pair.side[1].stag);
    recv(1, 51, 0, 0);
    md_sq_doorbell(&pair.side[0].qp);
    told(0, " work(6,#6) work(6,#7) done(6,0,#7)");
    told(1, " done(51,0,#7)");
    done(0, 6);
    done(1, 51);
    /* A window is invalidated without a message. */
    h = md_sq_entry(&pair.side[0].qp);
    h->opcode = SG_WR_LOCAL_INV;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 7);
    sg_put_le32(&h->inv_stag, md_alloc_mw(&pair.side[0].md, pair.side[0].pd, SG_MW_TYPE_2));
    md_sq_doorbell(&pair.side[0].qp);
    pair_settle(&pair);
    T_TRUE(strstr(words[0], "(7,"));
    T_TRUE(strstr(words[0], "#0)"));
    alone = false;
    place_end();
}

/* The ordinal that the host of a side was told with the last event of this kind. */
static uint64_t placed(int side, enum test_pm_op op)
{
    uint64_t ordinal = 0;

    for (unsigned i = 0; i < pm[side].count; i++) {
        ordinal = pm[side].calls[i].op == op ? pm[side].calls[i].who.ordinal : ordinal;
    }
    return ordinal;
}

static void persistent_memory(void)
{
    struct md_wr read;
    uint32_t key;

    start_observed();
    key = region(1, 0, 4096, ALL_RIGHTS | SG_ACCESS_REMOTE_ATOMIC, SG_HASH_CRC32C);
    write_to(1, key, PM_LEN, 100, 0);
    done(0, 1);
    T_EQ_U64(placed(1, TEST_PM_PLACE), 2);
    T_EQ_U64(placed(1, TEST_PM_MILESTONE), 2);
    md_post_recv(&pair.side[1].qp, 50, at(1, 512), 64, key);
    post(0, wr(0, SG_WR_SEND, 2, PM_LEN, 64, 0));
    done(0, 2);
    done(1, 50);
    T_EQ_U64(placed(1, TEST_PM_PLACE), 3);
    ask(flush_of(3, key, 0, 100, P));
    done(0, 3);
    T_EQ_U64(placed(1, TEST_PM_FLUSH), 4);
    ask(atomic_of(4, key, 64, 7));
    done(0, 4);
    T_EQ_U64(placed(1, TEST_PM_STORE), 5);
    ask(verify_of(5, key, 0, 100));
    done(0, 5);
    T_EQ_U64(last[1][SG_OBSERVED_VERIFIED].ordinal, 6);
    T_EQ_U64(last[1][SG_OBSERVED_VERIFIED].addr, at(1, 0));
    T_EQ_U64(last[1][SG_OBSERVED_VERIFIED].length, 100);
    /* What a response places has the ordinal of the response. */
    words[1][0] = 0;
    read = wr(0, SG_WR_READ, 6, 2048, 40, PM_LEN);
    read.lkey = region(0, 0, 4096, ALL_RIGHTS, SG_HASH_CRC32C);
    post(0, read);
    done(0, 6);
    told(1, " answered(#7,#4)");
    T_EQ_U64(placed(0, TEST_PM_PLACE), 4);
    place_end();
}

/* Long Writes and Reads in both directions, whose segments alternate. */
static void alternating(void)
{
    const struct sg_mem_options net = {
        .queued = true,
        .seed = 5,
        .room = 20000,
        .emss = 1000,
        .piece_max = 700,
    };
    struct sg_adapter_config config;

    for (int variant = 0; variant < 4; variant++) {
        uint32_t key[2];
        unsigned of_writes = 0, of_reads = 0;

        T_CONTEXT("variant %d", variant);
        pair_default_config(&config);
        config.engine.crc = variant & 1;
        config.engine.markers = variant & 2;
        pair_start(&pair, &config, &net);
        test_pm_init(&pm[0], &pair.side[0].h, pair.side[0].buf, pair.side[0].buf + PM_LEN);
        test_pm_init(&pm[1], &pair.side[1].h, pair.side[1].buf, pair.side[1].buf + PM_LEN);
        observe();
        open_pair();
        key[0] = region(0, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
        key[1] = region(1, 0, PM_LEN, ALL_RIGHTS, SG_HASH_CRC32C);
        pair.side[0].md.hold = pair.side[1].md.hold = true;
        for (int i = 0; i < 2; i++) {
            struct md_wr read = wr(i, SG_WR_READ, 1, 0, 30000, PM_LEN);
            struct md_wr write = wr(i, SG_WR_WRITE, 2, PM_LEN, 30000, 50000);

            read.lkey = key[i];
            write.rkey = key[!i];
            post(i, read);
            post(i, write);
        }
        pair.side[0].md.hold = pair.side[1].md.hold = false;
        pair_pass(&pair, 100000000);
        for (int i = 0; i < 2; i++) {
            for (unsigned k = 0; k < pm[i].count; k++) {
                const struct test_pm_call *c = &pm[i].calls[k];
                bool write = c->addr >= at(i, 50000);

                if (c->op != TEST_PM_PLACE) {
                    continue;
                }
                T_EQ_U64(c->who.ordinal,
                         write ? ordinals[!i][2] : last[!i][SG_OBSERVED_ANSWERED].response);
                of_writes += write;
                of_reads += !write;
            }
            done(i, 1);
            done(i, 2);
        }
        T_TRUE(of_writes > 50 && of_reads > 50);
        place_end();
    }
}

static void errors(void)
{
    start_observed();
    pair.side[0].md.hold = true;
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
    post(0, wr(0, SG_WR_WRITE, 2, 0, 8, PAIR_BUF)); /* beyond the region */
    post(0, wr(0, SG_WR_READ, 3, 0, 8, 0));
    pair.side[0].md.hold = false;
    pair_pass(&pair, 1000000);
    T_TRUE(strstr(words[1], " gone(7)"));
    told(0, " work(1,#2) done(1,0,#2) work(2,#3) done(2,0,#3) work(3,#4) done(3,6,#4) gone(7)");
    place_end();
}

/* A segment that has to wait for a receive is counted once, whatever message it belongs to. */
static void waiting(void)
{
    struct sg_adapter_config config;
    struct sg_wqe_hdr *h;

    pair_default_config(&config);
    config.rnr = SG_RNR_WAIT;
    place_start(&config);
    observe();
    open_pair();
    h = md_sq_entry(&pair.side[0].qp);
    h->opcode = SG_WR_SEND_IMM;
    md_sq_doorbell(&pair.side[0].qp);
    pair_settle(&pair);
    recv(1, 50, 0, 64);
    told(1, " accepted done(50,0,#2)");
    post(0, wr(0, SG_WR_SEND, 1, 0, 64, 0));
    pair_settle(&pair);
    recv(1, 51, 0, 64);
    told(1, " done(51,0,#3)");
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    recv(1, 52, 0, 64);
    told(1, " done(52,0,#4)");
    place_end();
}

static void accept_own(const struct md_qp *own)
{
    struct sg_eqe e = pair_expect(&pair, 0, SG_EV_CM_REQUEST);
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_ACCEPT, .conn = e.conn };

    sg_put_le32(&c.qpn, own->qpn);
    sg_put_le16(&c.ird, 4);
    sg_put_le16(&c.ord, 4);
    T_EQ_U64(md_cmd(&pair.side[0].md, &c, sizeof(c), NULL), SG_OK);
}

/* Both ends of a connection are queue pairs of one adapter. */
static void loopback(void)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct pair_side *s = &pair.side[0];
    struct md_qp_params params;
    struct sg_endpoint peer;
    enum sg_status status;
    struct md_qp own;

    place_start(NULL);
    pair_open(&pair, NULL);
    observe();
    c.local = md_addr(&s->at, PAIR_PORT);
    sg_put_le32(&c.backlog, 1);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    params = (struct md_qp_params){ .pd = s->pd, .scq = &s->cq, .rcq = &s->cq };
    md_create_qp(&s->md, &own, &params);
    peer = pair.side[1].at;
    pair.side[1].at = s->at; /* where to connect to */
    pair_connect_cmd(&pair, &s->qp, 4, 4, NULL, &status);
    pair.side[1].at = peer;
    accept_own(&own);
    told(0, " accepted connected");
    md_post_recv(&own, 50, at(0, 0), 64, s->stag);
    post(0, wr(0, SG_WR_SEND, 1, 0, 64, 0));
    told(0, " done(50,0,#2) work(1,#2) done(1,0,#2)"); /* this stream delivers within 'send' */
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, own.qpn), SG_OK);
    T_EQ_U64(last[0][SG_OBSERVED_GONE].qpn, own.qpn);
    place_end();
}

/* Flushed requests: those that had begun have their ordinal, the others 0. */
static void flushed(void)
{
    start_observed();
    post(0, wr(0, SG_WR_SEND, 1, 0, 8, 0)); /* no receive */
    pair_settle(&pair);
    T_TRUE(strstr(words[0], " work(1,#2) done(1,"));
    T_TRUE(strstr(words[0], " gone(7)"));
    md_poll(&pair.side[0].cq, &(struct sg_cqe){ 0 });
    words[0][0] = 0;
    post(0, wr(0, SG_WR_WRITE, 2, 0, 8, 0));
    told(0, " done(2,4,#0)");
    place_end();
}

/* A host that begins to observe is told of the connections that exist. */
static void late(void)
{
    place_start(NULL);
    open_pair();
    post(0, wr(0, SG_WR_WRITE, 1, 0, 8, 0));
    done(0, 1);
    observe();
    sg_adapter_observe_all(pair.side[0].md.a);
    sg_adapter_observe_all(pair.side[1].md.a);
    told(0, " connected");
    told(1, " accepted");
    post(0, wr(0, SG_WR_WRITE, 2, 0, 8, 0));
    told(0, " work(2,#3) done(2,0,#3)");
    done(0, 2);
    place_end();
}

static const struct t_case cases[] = {
    { "connections", connections },
    { "every kind of request", every_kind },
    { "persistent memory", persistent_memory },
    { "messages whose segments alternate", alternating },
    { "an error of the requester", errors },
    { "a message that waits for a receive", waiting },
    { "loopback", loopback },
    { "flushed requests", flushed },
    { "a host that begins to observe", late },
};

T_MAIN(cases)
