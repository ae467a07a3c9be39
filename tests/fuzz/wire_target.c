/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Targets "wire" and "tcp": a whole adapter with a peer that only sends octets, over streams in
 * memory and over the TCP/IP stack.
 *
 * The driver above the adapter behaves well; it accepts, posts, polls and cleans up.  The peer
 * sends what the input says: raw octets, FPDUs with a good CRC around anything, or messages whose
 * headers are right except for the fields that the input changes.  At the end all objects must be
 * free again.
 */
#include <stdio.h>

#include "wire/mpa_frame.h"
#include "wire_world.h"

struct wire_world w;
static struct sg_stats reached;

static void settle(void)
{
    unsigned turns = 0;
    bool more;

    do {
        sg_assert(++turns < 1000000);
        more = wire_net_run(w.h.now_ns) <= w.h.now_ns;
        if (test_host_take_kick(&w.h) || w.h.timer_ns <= w.h.now_ns) {
            w.h.kicked |= sg_adapter_run(w.md.a, 1 << 20);
            more = true;
        }
    } while (more);
}

static void pass(uint64_t ns)
{
    uint64_t end = w.h.now_ns + ns;

    settle();
    while (w.h.now_ns < end) {
        uint64_t next = SG_MIN(wire_net_run(w.h.now_ns), w.h.timer_ns);

        w.h.now_ns = SG_MAX(w.h.now_ns, SG_MIN(next, end));
        settle();
    }
}

/* ---- the driver ---- */

static void post_receives(unsigned n)
{
    while (n--) {
        md_post_recv(&w.qp, n, w.buf, BUF / 4, w.stag);
    }
}

static void make_qp(void)
{
    w.h.brk = SG_MIN(w.h.brk, (size_t)MEM - (128 << 10));
    md_create_qp(&w.md, &w.qp,
                 &(struct md_qp_params){
                     .pd = w.pd,
                     .scq = &w.cq,
                     .rcq = &w.cq,
                     .flags = SG_QP_KERNEL,
                     .access = w.draft ? RIGHTS : PLAIN_RIGHTS,
                 });
    w.qp_alive = true;
    post_receives(12);
}

static void answer(uint32_t conn)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_ACCEPT };

    sg_put_le32(&c.conn, conn);
    sg_put_le32(&c.qpn, w.qp.qpn);
    sg_put_le16(&c.ird, fuzz_below(&w.in, 16));
    sg_put_le16(&c.ord, fuzz_below(&w.in, 16));
    if (fuzz_rarely(&w.in, 8)) {
        c.hdr.opcode = SG_ADMIN_REJECT;
    }
    md_cmd(&w.md, &c, sizeof(c), NULL);
}

static void take_events(void)
{
    struct sg_eqe e;
    struct sg_cqe c;

    while (md_next_async(&w.md, &e)) {
        if (e.event == SG_EV_CM_REQUEST) {
            answer(sg_get_le32(&e.conn));
        }
    }
    while (md_poll(&w.cq, &c)) {
    }
}

/* Posts a well-formed request of the extension. */
static void post_place(uint8_t op, uint8_t how, uint64_t addr)
{
    static const uint8_t due[] = {
        [SG_WR_FLUSH] = SG_OP_FLUSH_RESP,
        [SG_WR_VERIFY] = SG_OP_VERIFY_RESP,
        [SG_WR_ATOMIC_WRITE] = SG_OP_ATOMIC_WRITE_RESP,
        [SG_WR_FETCH_ADD] = SG_OP_ATOMIC_RESP,
        [SG_WR_CMP_SWAP] = SG_OP_ATOMIC_RESP,
    };
    struct sg_wqe_hdr *h = md_sq_entry(&w.qp);
    struct sg_wqe_place *place = (struct sg_wqe_place *)(h + 1);
    struct sg_wqe_atomic *atomic = (struct sg_wqe_atomic *)(h + 1);
    bool is_atomic = op == SG_WR_FETCH_ADD || op == SG_WR_CMP_SWAP;
    struct sg_sge *sge = is_atomic ? (struct sg_sge *)(atomic + 1) : (struct sg_sge *)(place + 1);

    h->opcode = op;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&h->rkey, how << 8);
    if (op == SG_WR_ATOMIC_WRITE) {
        h->flags |= SG_WQE_INLINE;
        sg_put_le16(&h->inline_len, 8);
    } else if (is_atomic) {
        sg_put_le64(&atomic->data, how);
        sg_put_le64(&atomic->data_mask, how & 32 ? UINT64_MAX : how);
    } else {
        sg_put_le32(&place->length, how);
        sg_put_le32(&place->flags, op == SG_WR_FLUSH ? SG_FLUSH_PERSISTENT : 0);
    }
    if (op == SG_WR_VERIFY || is_atomic) {
        h->num_sge = 1;
        sg_put_le64(&sge->addr, addr);
        sg_put_le32(&sge->length, is_atomic ? 8 : how & 16 ? 20 : 64);
        sg_put_le32(&sge->lkey, w.stag);
    }
    w.asked++;
    w.due = due[op];
    md_sq_doorbell(&w.qp);
}

static void post(void)
{
    static const uint8_t ops[] = { SG_WR_SEND,     SG_WR_SEND,         SG_WR_SEND_INV,
                                   SG_WR_WRITE,    SG_WR_WRITE,        SG_WR_READ,
                                   SG_WR_READ,     SG_WR_READ,         SG_WR_FLUSH,
                                   SG_WR_VERIFY,   SG_WR_ATOMIC_WRITE, SG_WR_FETCH_ADD,
                                   SG_WR_CMP_SWAP, SG_WR_SEND_IMM,     SG_WR_WRITE_IMM };
    uint8_t how = fuzz_u8(&w.in);
    uint64_t addr = w.buf + fuzz_below(&w.in, BUF / 2);
    uint32_t len = fuzz_below(&w.in, BUF / 2);

    if (!w.qp_alive) {
        return;
    }
    if (how & 1) {
        md_post_recv(&w.qp, how, addr, len, fuzz_rarely(&w.in, 16) ? 0x1234 : w.stag);
    } else {
        uint8_t op = ops[fuzz_below(&w.in, SG_ARRAY_SIZE(ops))];

        if (op >= SG_WR_SEND_IMM &&
            (!(op < SG_WR_FLUSH ? w.rfc7306 : w.draft) || fuzz_rarely(&w.in, 32))) {
            op = SG_WR_SEND;
        }
        if (op >= SG_WR_FETCH_ADD) {
            post_place(op, how, addr);
            return;
        }
        if (op == SG_WR_READ) {
            w.sink_to = addr;
            w.sink_len = len;
            w.asked++;
        }
        if (fuzz_rarely(&w.in, 32)) {
            op = how & 8 ? SG_WR_LOCAL_INV : SG_WR_READ_INV;
        }
        md_post_send(&w.qp, &(struct md_wr){
                                .opcode = op,
                                .flags = how >> 4 & 7,
                                .addr = addr,
                                .len = op == SG_WR_SEND_IMM ? 0 : len,
                                .lkey = w.stag,
                                .raddr = how,
                                .rkey = how << 8,
                                .inv_stag = w.fast_stag,
                            });
    }
}

static void peer_connect(void)
{
    enum sg_stream_end why;

    if (!w.peer) {
        w.peer = w.peer_net->ops->connect(w.peer_net, &w.peer_at, &w.at, &peer_events, NULL, &why);
        w.pos = w.mo = w.asked = 0;
        w.fin = false;
        w.msn[0] = w.msn[1] = w.msn[2] = w.msn[3] = SG_DDP_FIRST_MSN;
    }
}

static void driver_connect(void)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };

    c.local = md_addr(&w.at, 0);
    c.remote = md_addr(&w.peer_at, PORT);
    sg_put_le32(&c.qpn, w.qp.qpn);
    sg_put_le16(&c.ird, fuzz_below(&w.in, 16));
    sg_put_le16(&c.ord, fuzz_below(&w.in, 16));
    md_cmd(&w.md, &c, sizeof(c), NULL);
    w.pos = w.mo = w.asked = 0;
    w.msn[0] = w.msn[1] = w.msn[2] = w.msn[3] = SG_DDP_FIRST_MSN;
}

static void driver_ends(void)
{
    switch (fuzz_below(&w.in, 5)) {
    case 0:
        md_modify_qp(&w.qp, SG_QP_CLOSING);
        break;
    case 1:
        md_modify_qp(&w.qp, SG_QP_ERROR);
        break;
    case 2:
        md_modify_qp(&w.qp, SG_QP_IDLE);
        break;
    case 3:
        if (w.qp_alive) {
            md_cmd_id(&w.md, SG_ADMIN_DESTROY_QP, w.qp.qpn);
            make_qp();
        }
        break;
    default:
        md_cmd_id(&w.md, SG_ADMIN_DEREG_MR, w.stag);
    }
}

static void peer_ends(void)
{
    struct sg_stream *s = w.peer;

    if (!s) {
        return;
    }
    switch (fuzz_below(&w.in, 3)) {
    case 0:
        if (!w.fin) {
            w.fin = true;
            s->ops->shutdown(s);
        }
        break;
    case 1:
        w.peer = NULL;
        s->ops->abort(s);
        break;
    default:
        wire_net_break(s);
    }
}

static void open_stream(bool active);

static void step(void)
{
    uint8_t ulpdu[256];
    size_t n;
    const uint8_t *p;

    switch (fuzz_below(&w.in, 16)) {
    case 0:
        n = fuzz_rarely(&w.in, 4) ? fuzz_u8(&w.in) : 0;
        p = fuzz_bytes(&w.in, &n);
        say(p, n);
        break;
    case 1:
        if (fuzz_rarely(&w.in, 3)) {
            n = fuzz_u8(&w.in);
            p = fuzz_bytes(&w.in, &n);
            memcpy(ulpdu, p, n);
            say_ulpdu(ulpdu, n);
        }
        break;
    case 2:
        if (!w.peer) {
            if (fuzz_rarely(&w.in, 8)) {
                peer_connect();
            } else if (md_modify_qp(&w.qp, SG_QP_IDLE) == SG_OK) {
                post_receives(4);
                open_stream(fuzz_u8(&w.in) & 1);
            }
        }
        break;
    case 3:
        if (fuzz_rarely(&w.in, 4)) {
            say_startup();
        }
        break;
    case 4:
        if (!w.peer) {
            driver_connect();
        }
        break;
    case 5:
        fuzz_rarely(&w.in, 4) ? driver_ends() : post();
        break;
    case 6:
        fuzz_rarely(&w.in, 4) ? peer_ends() : post();
        break;
    case 7:
        n = fuzz_u16(&w.in);
        pass((uint64_t)n << fuzz_below(&w.in, 20));
        break;
    case 8:
        wire_net_harm();
        w.fpdu_flags ^= fuzz_rarely(&w.in, 4) ? fuzz_below(&w.in, 4) : 0;
        break;
    case 9:
    case 10:
        post();
        break;
    default:
        say_message();
    }
    settle();
    take_events();
    settle();
}

static void start(void)
{
    uint8_t how = fuzz_u8(&w.in), net = fuzz_u8(&w.in);
    struct sg_stream_net *adapter_net;
    struct sg_adapter_config config;
    struct sg_cmd_listen listen = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_cmd_alloc_mr fast = { .hdr.opcode = SG_ADMIN_ALLOC_MR };
    struct sg_cmd_reg_mr mr;
    struct sg_admin_rsp rsp;
    enum sg_stream_end why;

    w.at = (struct sg_endpoint){ .family = 4, .port = PORT, .ip = { 10, 0, 0, 1 } };
    w.peer_at = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 2 } };
    sg_adapter_default_config(&config);
    w.draft = SG_MIN(net >> 6, (int)SG_MPE_DRAFT_02);
    config.engine.mpe_draft = w.draft;
    w.rfc7306 = config.engine.rfc7306 = how % 5;
    config.engine.mpa_rev = how & 1 ? 1 : 2;
    config.engine.crc = !(how & 2);
    config.engine.markers = how & 4;
    config.engine.peer_to_peer = !(how & 8);
    config.engine.rtr_mask = how >> 4 & SG_MPA_RTR_ALL;
    w.rev = config.engine.mpa_rev;
    w.fpdu_flags = SG_FPDU_CRC_ON | (config.engine.markers ? SG_FPDU_MARKERS : 0);
    test_host_init(&w.h, MEM, how);
    adapter_net = wire_net_begin(net);
    md_start(&w.md, &w.h, adapter_net, &config);
    w.peer_at.port = PORT;
    w.listener = w.peer_net->ops->listen(w.peer_net, &w.peer_at, 4, peer_accept, NULL, &why);
    w.peer_at.port = 0;
    w.pd = md_create_pd(&w.md);
    w.buf = test_host_alloc(&w.h, BUF, SG_PAGE_SIZE);
    test_pm_init(&w.pm, &w.h, w.buf, w.buf + BUF / 2);
    w.pm.hold = net & 8;
    w.pm.later = net >> 4 & 1;
    w.pm.later_ns = net;
    mr = md_reg_mr_cmd(w.pd, w.buf, BUF, SG_ACCESS_LOCAL_WRITE | PLAIN_RIGHTS);
    if (w.draft) { /* the second half is ordinary memory: no FLUSH_PERSISTENT */
        sg_put_le32(&mr.access, RIGHTS & ~SG_ACCESS_FLUSH_PERSISTENT);
        mr.hash_alg = SG_HASH_CRC32C + net % 3;
        if (net & 32) {
            sg_put_le32(&mr.access, RIGHTS);
            sg_put_le64(&mr.length, BUF / 2);
        }
    }
    sg_assert(md_cmd(&w.md, &mr, sizeof(mr), &rsp) == SG_OK);
    w.stag = sg_get_le32(&rsp.id);
    sg_put_le32(&fast.pd, w.pd);
    sg_put_le32(&fast.max_pages, 16);
    sg_assert(md_cmd(&w.md, &fast, sizeof(fast), &rsp) == SG_OK);
    w.fast_stag = sg_get_le32(&rsp.id);
    md_create_cq(&w.md, &w.cq, 256);
    make_qp();
    listen.local = md_addr(&w.at, PORT);
    sg_put_le32(&listen.backlog, 4);
    sg_assert(md_cmd(&w.md, &listen, sizeof(listen), NULL) == SG_OK);
}

static void keep_stats(void)
{
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
    const struct sg_stats *s = test_host_ptr(&w.h, w.buf);

    sg_put_le64(&c.out_addr, w.buf);
    sg_put_le32(&c.out_len, sizeof(*s));
    sg_assert(md_cmd(&w.md, &c, sizeof(c), NULL) == SG_OK);
#define X(name, where) reached.name += sg_get_le64(&s->name);
    SG_STATS(X)
#undef X
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "connections %llu+%llu, Sends %llu, Writes %llu, Reads %llu, "
             "Responses %llu, Terminates %llu sent %llu received, errors: protocol %llu, "
             "protection %llu, CRC %llu, Flushes %llu, Verifies %llu, Atomic Writes %llu, "
             "Atomics %llu+%llu, Immediates %llu+%llu",
             (unsigned long long)reached.conn_active, (unsigned long long)reached.conn_passive,
             (unsigned long long)reached.rx_sends, (unsigned long long)reached.rx_writes,
             (unsigned long long)reached.rx_reads, (unsigned long long)reached.rx_read_responses,
             (unsigned long long)reached.tx_terminates, (unsigned long long)reached.rx_terminates,
             (unsigned long long)reached.protocol_errors,
             (unsigned long long)reached.protection_errors, (unsigned long long)reached.crc_errors,
             (unsigned long long)reached.rx_flushes, (unsigned long long)reached.rx_verifies,
             (unsigned long long)reached.rx_atomic_writes, (unsigned long long)reached.tx_atomics,
             (unsigned long long)reached.rx_atomics, (unsigned long long)reached.tx_imms,
             (unsigned long long)reached.rx_imms);
    return reached.conn_passive && reached.conn_active && reached.rx_sends && reached.rx_writes &&
           reached.rx_reads && reached.tx_terminates && reached.rx_terminates &&
           reached.protocol_errors && reached.protection_errors && reached.crc_errors &&
           reached.rx_flushes && reached.rx_verifies && reached.rx_atomic_writes &&
           reached.tx_atomics && reached.rx_atomics && reached.tx_imms && reached.rx_imms;
}

/* All objects can be destroyed, and no connection is left. */
static void end(void)
{
    struct sg_adapter_census census;

    if (w.peer) {
        struct sg_stream *s = w.peer;

        w.peer = NULL;
        s->ops->abort(s);
    }
    pass(60ull * 1000000000);
    take_events();
    keep_stats();
    sg_assert(md_cmd_id(&w.md, SG_ADMIN_DESTROY_QP, w.qp.qpn) == SG_OK);
    pass(60ull * 1000000000);
    sg_adapter_census(w.md.a, &census);
    sg_assert(census.qps == 0 && census.conns == 0);
    md_stop(&w.md);
    w.peer_net->ops->unlisten(w.peer_net, w.listener);
    wire_net_end();
    test_host_fini(&w.h);
    test_pm_fini(&w.pm);
}

/* A valid startup exchange, in either role. */
static void open_stream(bool active)
{
    struct sg_mpa_frame f = {
        .kind = active ? SG_MPA_REPLY : SG_MPA_REQUEST,
        .crc = true,
        .markers = fuzz_u8(&w.in) & 1,
        .rev = w.rev,
        .enhanced = w.rev == 2,
        .ird = 8,
        .ord = 8,
    };
    uint8_t buf[SG_MPA_FRAME_MAX];

    active ? driver_connect() : peer_connect();
    settle();
    say(buf, sg_mpa_frame_emit(&f, buf));
    w.pos = 0;
    settle();
    take_events();
    settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned i;

    memset(&w, 0, sizeof(w));
    w.in = (struct fuzz_in){ data, size };
    start();
    /* Most inputs begin connected, and do not spend octets on the startup exchange. */
    switch (fuzz_below(&w.in, 8)) {
    case 0:
        break;
    case 1:
        peer_connect();
        break;
    case 2:
    case 3:
        open_stream(true);
        break;
    default:
        open_stream(false);
    }
    for (i = 0; i < STEPS && w.in.len; i++) {
        step();
    }
    end();
    return 0;
}
