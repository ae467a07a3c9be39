/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port through commands: IPv6, VLANs, addresses, loopback, a link that goes down and up, a
 * silent peer.  On the wire the test answers as the guests' network stacks would.
 */
#include <glib.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum { PORT = 4000, VLAN = 5 };

struct net_pair {
    struct machine *m;
    struct qtest_side a, b;
};

static struct net_pair pair;

/* ---- the wire ---- */

static struct {
    unsigned frames, tagged, ipv6;
} seen;

static void look(struct machine *m, const uint8_t *f, size_t len)
{
    bool tagged = len > 18 && sg_get_be16(f + 12) == 0x8100;

    (void)m;
    seen.frames++;
    seen.tagged += tagged && sg_get_be16(f + 14) == VLAN;
    seen.ipv6 += sg_get_be16(f + (tagged ? 16 : 12)) == 0x86dd;
}

static uint16_t icmp6_checksum(const uint8_t *ip)
{
    size_t len = sg_get_be16(ip + 4), i;
    uint32_t sum = 58 + (uint32_t)len;

    for (i = 8; i < 40 + len; i += 2) {
        sum += sg_get_be16(ip + i);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* Neighbour solicitations for ...::<i + 1>, and ARP requests on a VLAN for 10.0.5.<i + 1>. */
static bool answer(struct machine *m, const uint8_t *f, size_t len)
{
    size_t at = len > 18 && sg_get_be16(f + 12) == 0x8100 ? 18 : 14, n;
    uint8_t mac[6] = { 0x52, 0x54 }, r[90], *p = r + at;

    if (m->mute || len < at + 28 || len > sizeof(r)) {
        return false;
    }
    memcpy(r, f, len);
    if (sg_get_be16(f + at - 2) == 0x0806 && at == 18 && sg_get_be16(p + 6) == 1 && p[26] == VLAN) {
        mac[5] = p[27];
        sg_put_be16(p + 6, 2);
        memcpy(p + 8, mac, 6);
        memcpy(p + 14, f + at + 24, 4);
        memcpy(p + 18, f + at + 8, 10);
        n = at + 28;
    } else if (sg_get_be16(f + at - 2) == 0x86dd && len == at + 72 && p[6] == 58 && p[40] == 135) {
        mac[5] = p[63];
        memcpy(p + 24, f + at + 8, 16);
        memcpy(p + 8, f + at + 48, 16);
        p[40] = 136;
        p[44] = 0x60;
        p[64] = 2;
        memcpy(p + 66, mac, 6);
        sg_put_be16(p + 42, 0);
        sg_put_be16(p + 42, icmp6_checksum(p));
        n = len;
    } else {
        return false;
    }
    if (mac[5] < 1 || mac[5] > m->n) {
        return false;
    }
    memcpy(r, f + 6, 6);
    memcpy(r + 6, mac, 6);
    machine_wire_send(m, r, n);
    return true;
}

static void start(const char *extra)
{
    memset(&seen, 0, sizeof(seen));
    pair.m = machine_start(2, extra, "");
    pair.m->tap = look;
    pair.m->answer = answer;
    side_start(&pair.a, &pair.m->f[0]);
    side_start(&pair.b, &pair.m->f[1]);
}

static void stop(void)
{
    machine_stop(pair.m);
}

/* ---- addresses ---- */

enum net_kind { IP4, IP4_VLAN, IP6, IP6_LOCAL, IP6_VLAN, IP6_LOCAL_VLAN, KINDS };

static const char *const names[] = { "IPv4",           "IPv4 on a VLAN",
                                     "IPv6",           "IPv6 link-local",
                                     "IPv6 on a VLAN", "IPv6 link-local on a VLAN" };

static uint16_t vlan_of(enum net_kind kind)
{
    return kind == IP4_VLAN || kind == IP6_VLAN || kind == IP6_LOCAL_VLAN ? VLAN : 0;
}

static struct sg_sockaddr address(enum net_kind kind, unsigned i, uint16_t port)
{
    struct sg_sockaddr sa = { .family = kind >= IP6 ? 6 : 4 };

    sg_put_be16(&sa.port, port);
    if (kind < IP6) {
        memcpy(sa.ip, (uint8_t[]){ 10, 0, kind == IP4 ? 0 : VLAN, (uint8_t)(i + 1) }, 4);
        return sa;
    }
    sa.ip[0] = 0xfd;
    sa.ip[1] = kind == IP6_VLAN;
    if (kind == IP6_LOCAL || kind == IP6_LOCAL_VLAN) {
        sa.ip[0] = 0xfe;
        sa.ip[1] = 0x80;
        sg_put_le16(&sa.vlan, vlan_of(kind));
    }
    sa.ip[15] = (uint8_t)(i + 1);
    return sa;
}

static unsigned set_addr(struct qtest_side *s, enum sg_set_addr_op op, const struct sg_sockaddr *sa,
                         unsigned prefix, uint16_t vlan)
{
    struct sg_cmd_set_addr c = {
        .hdr.opcode = SG_ADMIN_SET_ADDR,
        .op = op,
        .prefix_len = (uint8_t)prefix,
        .addr = *sa,
    };

    sg_put_le16(&c.vlan, vlan);
    return md_cmd(&s->md, &c, sizeof(c), NULL);
}

static void add(struct qtest_side *s, enum net_kind kind, unsigned i)
{
    struct sg_sockaddr sa = address(kind, i, 0);

    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, kind >= IP6 ? 64 : 24, vlan_of(kind)), SG_OK);
}

/* b listens, on any address or on this one, a connects; both queue pairs are in RTS at the end. */
static void connect_at(struct qtest_side *a, struct md_qp *from, struct qtest_side *b,
                       struct md_qp *to, enum net_kind kind, bool any)
{
    struct sg_cmd_listen listen = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = address(kind, a->f->number, 0),
        .remote = address(kind, b->f->number, PORT),
    };
    struct sg_cmd_connect accept = { .hdr.opcode = SG_ADMIN_ACCEPT };
    uint32_t listener;
    struct sg_admin_rsp rsp;
    struct sg_eqe e;

    listen.local = connect.remote;
    if (any) {
        memset(listen.local.ip, 0, 16);
    }
    sg_put_le32(&listen.backlog, 4);
    T_EQ_U64(md_cmd(&b->md, &listen, sizeof(listen), &rsp), SG_OK);
    listener = sg_get_le32(&rsp.id);
    sg_put_le32(&connect.qpn, from->qpn);
    T_EQ_U64(md_cmd(&a->md, &connect, sizeof(connect), NULL), SG_OK);
    e = side_event(b, SG_EV_CM_REQUEST, 100);
    sg_put_le32(&accept.qpn, to->qpn);
    accept.conn = e.conn;
    T_EQ_U64(md_cmd(&b->md, &accept, sizeof(accept), NULL), SG_OK);
    e = side_event(a, SG_EV_CM_REPLY, 100);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    b->conn = sg_get_le32(&accept.conn);
    e = side_event(b, SG_EV_CM_ESTABLISHED, 100);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    T_EQ_U64(md_cmd_id(&b->md, SG_ADMIN_UNLISTEN, listener), SG_OK);
}

/* A Write of the whole buffer arrives. */
static void write_all(struct qtest_side *a, struct md_qp *qp, struct qtest_side *b, uint64_t from,
                      uint64_t to, uint32_t len)
{
    struct sg_cqe c;
    unsigned i;

    for (i = 0; i < len; i++) {
        side_ptr(a, from)[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    memset(side_ptr(b, to), 0, len);
    md_post_send(qp, &(struct md_wr){
                         .opcode = SG_WR_WRITE,
                         .addr = a->buffer + from,
                         .len = len,
                         .lkey = a->stag,
                         .raddr = b->buffer + to,
                         .rkey = b->stag,
                     });
    c = side_completion(a, 300);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    machine_pass(pair.m, 5);
    T_EQ_MEM(side_ptr(b, to), side_ptr(a, from), len);
}

/* The answer of CM_DATA about b's connection. */
static void check_cm_data(enum net_kind kind)
{
    struct sg_cmd_query get = { .hdr.opcode = SG_ADMIN_CM_DATA };
    struct sg_sockaddr local = address(kind, 1, PORT), remote = address(kind, 0, 0);
    const struct sg_cm_data *data = (void *)side_ptr(&pair.b, 0);

    sg_put_le64(&get.out_addr, pair.b.buffer);
    sg_put_le32(&get.out_len, sizeof(*data));
    sg_put_le32(&get.id, pair.b.conn);
    T_EQ_U64(md_cmd(&pair.b.md, &get, sizeof(get), NULL), SG_OK);
    T_EQ_MEM(&data->local, &local, sizeof(local));
    remote.port = data->remote.port;
    T_EQ_MEM(&data->remote, &remote, sizeof(remote));
}

/* ---- cases ---- */

static void connections(void)
{
    enum net_kind kind;

    for (kind = 0; kind < KINDS; kind++) {
        T_CONTEXT("%s", names[kind]);
        start("");
        if (kind != IP4) {
            add(&pair.a, kind, 0);
            add(&pair.b, kind, 1);
        }
        seen.frames = seen.tagged = seen.ipv6 = 0;
        connect_at(&pair.a, &pair.a.qp, &pair.b, &pair.b.qp, kind, kind & 1);
        write_all(&pair.a, &pair.a.qp, &pair.b, 0, 0, SIDE_BUFFER);
        check_cm_data(kind);
        T_TRUE(seen.frames > SIDE_BUFFER / 9000);
        T_EQ_U64(seen.tagged, vlan_of(kind) ? seen.frames : 0);
        T_EQ_U64(seen.ipv6, kind >= IP6 ? seen.frames : 0);
        stop();
    }
}

/* Both ends on one adapter, nothing on the wire. */
static void loopback(void)
{
    enum net_kind kind;

    for (kind = 0; kind < KINDS; kind++) {
        struct md_qp other;

        T_CONTEXT("%s", names[kind]);
        start("");
        add(&pair.a, kind, 0);
        md_create_qp(&pair.a.md, &other,
                     &(struct md_qp_params){
                         .pd = pair.a.pd,
                         .scq = &pair.a.cq,
                         .rcq = &pair.a.cq,
                     });
        seen.frames = 0;
        connect_at(&pair.a, &pair.a.qp, &pair.a, &other, kind, true);
        write_all(&pair.a, &pair.a.qp, &pair.a, 0, SIDE_BUFFER / 2, SIDE_BUFFER / 2);
        write_all(&pair.a, &other, &pair.a, 0, SIDE_BUFFER / 2, SIDE_BUFFER / 2);
        T_EQ_U64(seen.frames, 0);
        stop();
    }
}

static void addresses(void)
{
    struct sg_sockaddr group = { .family = 6, .ip = { 0xff, 2, [15] = 1 } };
    struct sg_sockaddr loopback6 = { .family = 6, .ip = { [15] = 1 } };
    struct sg_sockaddr mapped = { .family = 6, .ip = { [10] = 0xff, 0xff, 10, 0, 0, 9 } };
    struct sg_sockaddr sa = address(IP6, 0, 0), local = address(IP6_LOCAL, 0, 0), more;
    struct qtest_side *s = &pair.a;
    unsigned i;

    start("");
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &group, 64, 0), SG_ENOMEM);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &loopback6, 128, 0), SG_ENOMEM);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &mapped, 128, 0), SG_ENOMEM);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, 129, 0), SG_EINVAL);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, 64, 4095), SG_EINVAL);
    T_EQ_U64(set_addr(s, SG_ADDR_DEL, &sa, 64, 0), SG_ENOENT);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, 64, 0), SG_OK);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, 56, 0), SG_OK);     /* another prefix */
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &sa, 64, 7), SG_ENOMEM); /* another VLAN */
    T_EQ_U64(set_addr(s, SG_ADDR_DEL, &sa, 64, 7), SG_ENOENT);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &local, 64, 0), SG_OK);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &local, 64, 4094), SG_OK); /* link-local: on each */
    T_EQ_U64(set_addr(s, SG_ADDR_DEL, &local, 64, 4094), SG_OK);
    for (i = 3; i < SG_PORT_ADDR_MAX; i++) {
        more = address(i & 1 ? IP6 : IP4, 100 + i, 0);
        T_EQ_U64(set_addr(s, SG_ADDR_ADD, &more, 24, (uint16_t)i), SG_OK);
    }
    more = address(IP6, 99, 0);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &more, 64, 0), SG_ENOMEM);
    T_EQ_U64(set_addr(s, SG_ADDR_CLEAR, &more, 0, 0), SG_OK);
    T_EQ_U64(set_addr(s, SG_ADDR_DEL, &sa, 64, 0), SG_ENOENT);
    T_EQ_U64(set_addr(s, SG_ADDR_ADD, &more, 64, 0), SG_OK);
    stop();
}

/* An adapter without features reports that. */
static void without_the_features(void)
{
    struct sg_sockaddr six = address(IP6, 0, 0), four = address(IP4, 7, 0);
    char extra[40];

    snprintf(extra, sizeof(extra), ",features=%u", ~(SG_FEATURE_IPV6 | SG_FEATURE_VLAN));
    start(extra);
    T_EQ_U64(set_addr(&pair.a, SG_ADDR_ADD, &six, 64, 0), SG_ENOTSUP);
    T_EQ_U64(set_addr(&pair.a, SG_ADDR_ADD, &four, 24, VLAN), SG_ENOTSUP);
    T_EQ_U64(set_addr(&pair.a, SG_ADDR_ADD, &four, 24, 0), SG_OK);
    stop();
}

static void set_link(unsigned i, bool up)
{
    qtest_qmp_ok(pair.m->q,
                 "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"net%u\", "
                 "\"up\": %s}}",
                 i, up ? "true" : "false");
    side_event(i ? &pair.b : &pair.a, up ? SG_EV_PORT_UP : SG_EV_PORT_DOWN, 10);
    T_EQ_U64(!!(function_readl(&pair.m->f[i], SG_REG_STATUS) & SG_STATUS_LINK_UP), up);
}

/* Time in steps of 50 ms, TCP's own. */
static void pass(double seconds)
{
    unsigned i;

    for (i = 0; i < seconds * 20; i++) {
        qtest_clock_step(pair.m->q, 50000000);
        machine_settle(pair.m);
    }
}

/* An idle connection outlives a short outage of its link, and not a long one. */
static void silence(enum net_kind kind)
{
    struct sg_eqe e;

    T_CONTEXT("%s", names[kind]);
    start(",peer-timeout=4");
    if (kind != IP4) {
        add(&pair.a, kind, 0);
        add(&pair.b, kind, 1);
    }
    connect_at(&pair.a, &pair.a.qp, &pair.b, &pair.b.qp, kind, true);
    pass(10); /* idle, with keep-alives */
    set_link(1, false);
    pass(1.5);
    set_link(1, true);
    pass(5);
    T_FALSE(md_next_async(&pair.a.md, &e) || md_next_async(&pair.b.md, &e));
    write_all(&pair.a, &pair.a.qp, &pair.b, 0, 0, SIDE_BUFFER);
    set_link(1, false);
    pass(1.5);
    T_FALSE(md_next_async(&pair.a.md, &e));
    pass(4);
    e = side_event(&pair.a, SG_EV_CM_DISCONNECT, 100);
    T_EQ_U64(e.cm_status, SG_CM_TIMEOUT);
    side_event(&pair.a, SG_EV_CM_CLOSED, 100);
    T_EQ_U64(md_qp_state(&pair.a.qp), SG_QP_ERROR);
    e = side_event(&pair.b, SG_EV_CM_DISCONNECT, 100);
    T_EQ_U64(e.cm_status, SG_CM_TIMEOUT);
    side_event(&pair.b, SG_EV_CM_CLOSED, 100);
    stop();
}

static void silence_of_a_peer(void)
{
    silence(IP4);
    silence(IP6_LOCAL_VLAN);
}

/* The MTU is changed in the middle of Writes, on one side and the other. */
static void mtu_changes(void)
{
    static const uint32_t mtus[] = { 576, 9000, 1500, 4000 };
    struct sg_cmd_set_port c = { .hdr.opcode = SG_ADMIN_SET_PORT };
    unsigned i;

    start("");
    add(&pair.a, IP6, 0);
    add(&pair.b, IP6, 1);
    connect_at(&pair.a, &pair.a.qp, &pair.b, &pair.b.qp, IP6, true);
    for (i = 0; i < 8; i++) {
        T_CONTEXT("%u octets", mtus[i / 2]);
        sg_put_le32(&c.mtu, mtus[i / 2]);
        T_EQ_U64(md_cmd(i & 1 ? &pair.a.md : &pair.b.md, &c, sizeof(c), NULL), SG_OK);
        write_all(&pair.a, &pair.a.qp, &pair.b, 0, 0, SIDE_BUFFER);
        write_all(&pair.b, &pair.b.qp, &pair.a, 0, 0, SIDE_BUFFER);
    }
    stop();
}

static const struct t_case cases[] = {
    { "net: connections between addresses of each kind", connections },
    { "net: loopback within an adapter, addresses of each kind", loopback },
    { "net: which addresses a port takes", addresses },
    { "net: without the features", without_the_features },
    { "net: a silent peer ends its connections, a short silence does not", silence_of_a_peer },
    { "net: the MTU changes under traffic", mtu_changes },
};

T_MAIN(cases)
