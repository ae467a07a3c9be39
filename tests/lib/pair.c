/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pair.h"

#include <stdio.h>

#include "base/bytes.h"

/* SG_TEST_WIRE: the same tests on another wire (enum sg_engine_wire). */
static enum sg_engine_wire wire_of_tests(void)
{
    const char *wire = getenv("SG_TEST_WIRE");

    return wire ? (enum sg_engine_wire)atoi(wire) : SG_ENGINE_IWARP;
}

const struct pair_wire *pair_wire(void)
{
    static const struct pair_wire wires[SG_ENGINE_WIRES] = {
        [SG_ENGINE_IWARP] = {
            .terminates = true,
            .waits = true,
            .invalidates = true,
            .rfc7306 = true,
            .refused = SG_WC_REM_ACCESS_ERR,
            .failed = SG_WC_REM_OP_ERR,
            .own_fault = SG_CM_TERMINATED,
            .peer_fault = SG_CM_TERMINATED,
            .mpa_rev = 2,
            .pdata_max = SG_PRIVATE_DATA_MAX - 4,
        },
        [SG_ENGINE_RDMA_TCP_2000] = {
            .refused = SG_WC_FLUSH_ERR,
            .failed = SG_WC_FLUSH_ERR,
            .own_fault = SG_CM_RESET,
            .peer_fault = SG_CM_CLOSED,
            .pdata_max = SG_PRIVATE_DATA_MAX,
        },
    };

    return &wires[wire_of_tests()];
}

bool pair_wire_waits(void)
{
    return pair_wire()->waits;
}

bool pair_wire_invalidates(void)
{
    return pair_wire()->invalidates;
}

bool pair_wire_rfc7306(void)
{
    return pair_wire()->rfc7306;
}

void pair_default_config(struct sg_adapter_config *config)
{
    sg_adapter_default_config(config);
    config->engine.wire = (uint8_t)wire_of_tests();
}

static void start_side(struct pair *p, int i, const struct sg_adapter_config *config, size_t mem)
{
    struct pair_side *s = &p->side[i];
    struct sg_adapter_config own = *config;
    struct sg_stream_net *net;

    s->at = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
    own.mac[5] = (uint8_t)(i + 1);
    own.guid += i;
    test_host_init(&s->h, mem, 1000 + i);
    net = p->link ? p->link->join(p->link, i, s) : sg_mem_switch_port(p->sw, &s->at);
    md_start(&s->md, &s->h, net, &own);
    s->pd = md_create_pd(&s->md);
    md_create_cq(&s->md, &s->cq, PAIR_CQE);
    s->buf = test_host_alloc(&s->h, PAIR_BUF, SG_PAGE_SIZE);
    s->stag = md_reg_mr(&s->md, s->pd, s->buf, PAIR_BUF,
                        SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE);
    p->base_brk[i] = s->h.brk;
}

static void listen_side1(struct pair *p)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_admin_rsp rsp;

    c.local = md_addr(&p->side[1].at, PAIR_PORT);
    sg_put_le32(&c.backlog, 16);
    sg_assert(md_cmd(&p->side[1].md, &c, sizeof(c), &rsp) == SG_OK);
    p->listener = sg_get_le32(&rsp.id);
}

void pair_start(struct pair *p, const struct sg_adapter_config *config,
                const struct sg_mem_options *net)
{
    pair_start_sized(p, config, net, PAIR_MEM);
}

void pair_start_sized(struct pair *p, const struct sg_adapter_config *config,
                      const struct sg_mem_options *net, size_t mem)
{
    static const struct sg_mem_options immediate;
    struct sg_adapter_config defaults;
    int i;

    memset(p, 0, sizeof(*p));
    pair_default_config(&defaults);
    p->sw = sg_mem_switch_new(net ? net : &immediate);
    for (i = 0; i < 2; i++) {
        start_side(p, i, config ? config : &defaults, mem);
    }
    listen_side1(p);
}

void pair_start_on(struct pair *p, const struct sg_adapter_config *config, struct pair_link *link,
                   size_t mem)
{
    struct sg_adapter_config defaults;
    int i;

    memset(p, 0, sizeof(*p));
    pair_default_config(&defaults);
    p->link = link;
    for (i = 0; i < 2; i++) {
        start_side(p, i, config ? config : &defaults, mem);
    }
    listen_side1(p);
}

void pair_start_two(struct pair *p, const struct sg_adapter_config *first,
                    const struct sg_adapter_config *second)
{
    static const struct sg_mem_options immediate;

    memset(p, 0, sizeof(*p));
    p->sw = sg_mem_switch_new(&immediate);
    start_side(p, 0, first, PAIR_MEM);
    start_side(p, 1, second, PAIR_MEM);
    listen_side1(p);
}

void pair_stop(struct pair *p)
{
    int i;

    for (i = 0; i < 2; i++) {
        md_stop(&p->side[i].md);
    }
    if (p->link) {
        p->link->free(p->link);
    } else {
        sg_mem_switch_free(p->sw);
    }
    for (i = 0; i < 2; i++) {
        test_host_fini(&p->side[i].h);
    }
}

static uint64_t run_network(struct pair *p)
{
    uint64_t now = p->side[0].h.now_ns;

    return p->link ? p->link->run(p->link, now) : sg_mem_switch_run(p->sw, now);
}

void pair_settle(struct pair *p)
{
    unsigned turns = 0;
    bool more;
    int i;

    do {
        sg_assert(++turns < 10000000);
        more = run_network(p) <= p->side[0].h.now_ns;
        for (i = 0; i < 2; i++) {
            struct test_host *h = &p->side[i].h;

            if (test_host_take_kick(h) || h->timer_ns <= h->now_ns) {
                h->kicked |= sg_adapter_run(p->side[i].md.a, 1 << 20);
                more = true;
            }
        }
    } while (more);
}

void pair_pass(struct pair *p, uint64_t ns)
{
    uint64_t end = p->side[0].h.now_ns + ns, next;
    int i;

    pair_settle(p);
    while (p->side[0].h.now_ns < end) {
        next = SG_MIN(run_network(p), end);
        for (i = 0; i < 2; i++) {
            next = SG_MIN(next, p->side[i].h.timer_ns);
        }
        for (i = 0; i < 2; i++) {
            p->side[i].h.now_ns = SG_MAX(next, p->side[i].h.now_ns);
        }
        pair_settle(p);
    }
}

void pair_open(struct pair *p, const struct md_qp_params *params)
{
    int i;

    for (i = 0; i < 2; i++) {
        struct pair_side *s = &p->side[i];
        struct md_qp_params own = params ? *params : (struct md_qp_params){ 0 };

        s->h.brk = p->base_brk[i];
        own.pd = s->pd;
        own.scq = own.rcq = &s->cq;
        md_create_qp(&s->md, &s->qp, &own);
    }
}

static uint64_t put_pdata(struct pair_side *s, const char *pdata)
{
    uint64_t at = test_host_alloc(&s->h, SG_PRIVATE_DATA_MAX, 8);

    memcpy(test_host_ptr(&s->h, at), pdata, strlen(pdata));
    return at;
}

uint32_t pair_connect_cmd(struct pair *p, struct md_qp *qp, uint16_t ird, uint16_t ord,
                          const char *pdata, enum sg_status *status)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.qpn, qp->qpn);
    c.local = md_addr(&p->side[0].at, 0);
    c.remote = md_addr(&p->side[1].at, PAIR_PORT);
    sg_put_le16(&c.ird, ird);
    sg_put_le16(&c.ord, ord);
    sg_put_le16(&c.flags, p->connect_flags);
    if (pdata) {
        sg_put_le64(&c.pdata_addr, put_pdata(&p->side[0], pdata));
        sg_put_le16(&c.pdata_len, (uint16_t)strlen(pdata));
    }
    *status = md_cmd(&p->side[0].md, &c, sizeof(c), &rsp);
    return *status == SG_OK ? sg_get_le32(&rsp.id) : 0;
}

enum sg_status pair_answer(struct pair *p, enum sg_admin_opcode op, uint32_t qpn, uint32_t conn,
                           uint16_t ird, uint16_t ord, const char *pdata)
{
    struct sg_cmd_connect c = { .hdr.opcode = (uint8_t)op };

    sg_put_le32(&c.qpn, qpn);
    sg_put_le32(&c.conn, conn);
    sg_put_le16(&c.ird, ird);
    sg_put_le16(&c.ord, ord);
    sg_put_le16(&c.flags, p->connect_flags);
    if (pdata) {
        sg_put_le64(&c.pdata_addr, put_pdata(&p->side[1], pdata));
        sg_put_le16(&c.pdata_len, (uint16_t)strlen(pdata));
    }
    return md_cmd(&p->side[1].md, &c, sizeof(c), NULL);
}

struct sg_eqe pair_expect(struct pair *p, int side, enum sg_event event)
{
    struct sg_eqe e = { 0 };
    int ms = 0;

    pair_settle(p);
    while (!md_next_async(&p->side[side].md, &e) && ms++ < 100) {
        pair_pass(p, 1000000); /* the path may be slow */
    }
    if (e.event != event) {
        printf("# side %d: expected event 0x%02x, got 0x%02x\n", side, event, e.event);
        sg_assert(e.event == event);
    }
    return e;
}

void pair_connect(struct pair *p)
{
    enum sg_status status;
    struct sg_eqe e;

    p->side[0].conn = pair_connect_cmd(p, &p->side[0].qp, 16, 16, NULL, &status);
    sg_assert(status == SG_OK);
    e = pair_expect(p, 1, SG_EV_CM_REQUEST);
    p->side[1].conn = sg_get_le32(&e.conn);
    status = pair_answer(p, SG_ADMIN_ACCEPT, p->side[1].qp.qpn, p->side[1].conn, 16, 16, NULL);
    sg_assert(status == SG_OK);
    e = pair_expect(p, 0, SG_EV_CM_REPLY);
    sg_assert(e.cm_status == SG_CM_OK && sg_get_le32(&e.conn) == p->side[0].conn);
    e = pair_expect(p, 1, SG_EV_CM_ESTABLISHED);
    sg_assert(e.cm_status == SG_CM_OK);
}

void pair_close(struct pair *p)
{
    struct sg_eqe e;
    struct sg_cqe c;
    int i;

    for (i = 0; i < 2; i++) {
        sg_assert(md_cmd_id(&p->side[i].md, SG_ADMIN_DESTROY_QP, p->side[i].qp.qpn) == SG_OK);
    }
    pair_pass(p, 10000000000ull);
    for (i = 0; i < 2; i++) {
        while (md_next_async(&p->side[i].md, &e)) {
        }
        while (md_poll(&p->side[i].cq, &c)) {
        }
    }
}
