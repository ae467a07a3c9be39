/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the shared Ethernet port.
 *
 * The adapter takes the uplink (netdev=ID) and offers the host side of its port as a network
 * backend of its own, named "<id>.eth", to which the user attaches any NIC model:
 *
 *   uplink netdev <--> adapter's NIC client | demultiplexer | "<id>.eth" <--> virtio-net, e1000e...
 *                                                |
 *                                            TCP/IP of the adapter (hw/net)
 *
 * Frames from the other NIC go to the uplink unchanged.  Frames from the uplink go where
 * sg_port_input() says.  If the uplink is congested (transmit queue), streams get no more room, and
 * the other NIC's frames wait in its own queue.  If the other NIC is congested (it may never get a
 * driver), nothing waits: beyond a limit its frames are dropped.
 *
 * A frame may arrive while the core is at work, when a third device on the same hub sends in the
 * middle of our own transmission.  It waits in QEMU's queue until the bottom half fetches it.
 * The receiver of one of our frames may raise interrupts, which can target anything: see calls.c.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/guest-random.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "net/net.h"
#include "system/runstate.h"
#include "persist/recorder.h"
#include "machine_clock.h"
#include "staghorn.h"

enum {
    UPLINK_OCTETS_MAX = 8 * MiB,
    ETH_OCTETS_MAX = 2 * MiB,
    PEER_TIMEOUT_MIN = SG_PORT_PEER_TIMEOUT_MIN / 1000, /* seconds */
    PEER_TIMEOUT_MAX = SG_PORT_PEER_TIMEOUT_MAX / 1000,
};

/* May outlive the adapter: a NIC model references its peer until it is removed itself. */
typedef struct StaghornEth {
    NetClientState nc;
    StaghornState *s; /* NULL: gone */
} StaghornEth;

/* ---- towards the uplink ---- */

/*
 * Called in the middle of calls, and when the machine stops: then streams, whose data are in guest
 * memory, must not continue yet.
 */
static void uplink_sent(NetClientState *nc, ssize_t len)
{
    StaghornState *s = qemu_get_nic_opaque(nc);

    staghorn_hold();
    if (staghorn_txq_sent(&s->to_uplink, len)) {
        if (!runstate_is_running()) {
            staghorn_owe(s, STAGHORN_DUE_UPLINK);
        } else if (s->adapter) {
            staghorn_enter(s);
            sg_port_uplink_ready(s->port);
            staghorn_leave(s);
        }
        if (s->eth && !staghorn_txq_busy(&s->to_uplink)) {
            qemu_flush_queued_packets(s->eth);
        }
    }
    staghorn_release();
}

/* False: it was dropped. */
static bool send_to_uplink(StaghornState *s, const struct iovec *iov, unsigned n)
{
    if (staghorn_recording && !staghorn_txq_full(&s->to_uplink, iov, n)) {
        staghorn_record_frame(s, iov, n, true);
    }
    return staghorn_txq_send(&s->to_uplink, iov, n);
}

static void port_send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    StaghornState *s = opaque;

    if (!staghorn_is_powered_off(s) && !send_to_uplink(s, iov, n) && s->port) {
        sg_port_count_dropped(s->port);
    }
}

static bool port_can_send(void *opaque)
{
    StaghornState *s = opaque;

    return !staghorn_txq_busy(&s->to_uplink);
}

static uint64_t port_now(void *opaque)
{
    return staghorn_clock_ns();
}

static void port_random(void *opaque, void *buf, size_t len)
{
    qemu_guest_getrandom_nofail(buf, len);
}

static void port_kick(void *opaque)
{
    StaghornState *s = opaque;

    if (s->bh) {
        staghorn_owe(s, STAGHORN_DUE_TURN);
    }
}

static const struct sg_port_ops port_ops = {
    .send_frame = port_send_frame,
    .can_send = port_can_send,
    .now = port_now,
    .random = port_random,
    .kick = port_kick,
};

/* ---- frames from the uplink ---- */

static void eth_sent(NetClientState *nc, ssize_t len)
{
    StaghornState *s = container_of(nc, StaghornEth, nc)->s;

    if (s) {
        staghorn_hold();
        staghorn_txq_sent(&s->to_eth, len);
        staghorn_release();
    }
}

static bool uplink_can_receive(NetClientState *nc)
{
    StaghornState *s = qemu_get_nic_opaque(nc);

    if (s->inside) {
        s->due |= STAGHORN_DUE_RECEIVE;
    }
    return !s->inside;
}

static ssize_t uplink_receive(NetClientState *nc, const uint8_t *buf, size_t size)
{
    StaghornState *s = qemu_get_nic_opaque(nc);
    struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };
    unsigned verdict;

    if (!s->adapter || s->gone || staghorn_is_powered_off(s)) {
        return size;
    }
    if (staghorn_recording) {
        staghorn_record_frame(s, &iov, 1, false);
    }
    staghorn_hold();
    staghorn_enter(s);
    verdict = sg_port_input(s->port, buf, size);
    staghorn_leave(s);
    if ((verdict & SG_PORT_TO_NIC) && s->eth->peer) {
        staghorn_txq_send(&s->to_eth, &iov, 1);
    }
    staghorn_release();
    return size;
}

static void uplink_link_status(NetClientState *nc)
{
    StaghornState *s = qemu_get_nic_opaque(nc);

    if (!s->adapter) {
        return;
    }
    if (staghorn_enter_alone(s, STAGHORN_DUE_LINK)) {
        sg_adapter_set_link(s->adapter, !nc->link_down);
        staghorn_leave(s);
    }
    s->eth->link_down = nc->link_down;
    if (s->eth->peer) {
        s->eth->peer->link_down = nc->link_down;
        if (s->eth->peer->info->link_status_changed) {
            s->eth->peer->info->link_status_changed(s->eth->peer);
        }
    }
}

static NetClientInfo uplink_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = uplink_can_receive,
    .receive = uplink_receive,
    .link_status_changed = uplink_link_status,
};

/* ---- frames from the other NIC model ---- */

static bool eth_can_receive(NetClientState *nc)
{
    StaghornState *s = container_of(nc, StaghornEth, nc)->s;

    return !s || !staghorn_txq_busy(&s->to_uplink);
}

static ssize_t eth_receive(NetClientState *nc, const uint8_t *buf, size_t size)
{
    StaghornState *s = container_of(nc, StaghornEth, nc)->s;
    struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };

    if (s && !staghorn_is_powered_off(s)) {
        staghorn_hold();
        send_to_uplink(s, &iov, 1);
        staghorn_release();
    }
    return size;
}

static NetClientInfo eth_info = {
    .type = NET_CLIENT_DRIVER_NONE,
    .size = sizeof(StaghornEth),
    .can_receive = eth_can_receive,
    .receive = eth_receive,
};

static bool check_tcp(const StaghornState *s, Error **errp)
{
    if (s->tcp_window < SG_PORT_WINDOW_MIN || s->tcp_window > SG_PORT_WINDOW_MAX) {
        error_setg(errp, "tcp-window is %" PRIu64 ", must be from %u to %u octets", s->tcp_window,
                   SG_PORT_WINDOW_MIN, SG_PORT_WINDOW_MAX);
    } else if (s->tcp_send_buffer < SG_PORT_SEND_BUFFER_MIN ||
               s->tcp_send_buffer > SG_PORT_SEND_BUFFER_MAX || !is_power_of_2(s->tcp_send_buffer)) {
        error_setg(errp,
                   "tcp-send-buffer is %" PRIu64 ", must be a power of two from %u to %u "
                   "octets",
                   s->tcp_send_buffer, SG_PORT_SEND_BUFFER_MIN, SG_PORT_SEND_BUFFER_MAX);
    } else if (s->tcp_rto_min < 1 || s->tcp_rto_min > SG_PORT_RTO_MIN_MAX) {
        error_setg(errp, "tcp-rto-min is %u, must be from 1 to %u ms", s->tcp_rto_min,
                   SG_PORT_RTO_MIN_MAX);
    } else {
        return true;
    }
    return false;
}

#define COUNTER(name, member) { name, offsetof(struct sg_port_counters, member) }

/* Since the adapter was made; those of "rdma statistic" begin again at each reset. */
static const struct {
    const char *name;
    size_t member;
} counters[] = { COUNTER("frames-in", frames_in), COUNTER("frames-out", frames_out),
                 COUNTER("checksum-errors", checksum_errors), COUNTER("dropped", dropped),
                 COUNTER("uplink-dropped", uplink_dropped) };

/* Counters of the port since the machine was created; a reset does not clear them. */
static void get_port_counters(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    StaghornState *s = STAGHORN(obj);
    struct sg_port_counters c = { 0 };

    if (s->port) {
        sg_port_counters(s->port, &c);
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
        uint64_t *value = (uint64_t *)((char *)&c + counters[i].member);

        if (!visit_type_uint64(v, counters[i].name, value, errp)) {
            break;
        }
    }
    visit_end_struct(v, NULL);
}

void staghorn_port_class_init(ObjectClass *klass)
{
    object_class_property_add(klass, "port-counters", "struct", get_port_counters, NULL, NULL,
                              NULL);
    object_class_property_set_description(klass, "port-counters",
                                          "frames of the adapter, and those that were dropped");
}

bool staghorn_port_init(StaghornState *s, Error **errp)
{
    DeviceState *dev = DEVICE(s);
    struct sg_port_config config = {
        .mtu = MIN(s->config.link_mtu, 1500),
        .max_connections = s->config.max_conns,
        .window = s->tcp_window,
        .send_buffer = s->tcp_send_buffer,
        .rto_min_ms = s->tcp_rto_min,
        .peer_timeout_ms = s->peer_timeout ? s->peer_timeout * 1000 : SG_PORT_PEER_TIMEOUT_NONE,
    };
    g_autofree char *name = NULL;
    NetClientState *nc;

    if (s->peer_timeout &&
        (s->peer_timeout < PEER_TIMEOUT_MIN || s->peer_timeout > PEER_TIMEOUT_MAX)) {
        error_setg(errp, "peer-timeout is %u, must be 0 or from %d to %d seconds", s->peer_timeout,
                   PEER_TIMEOUT_MIN, PEER_TIMEOUT_MAX);
        return false;
    }
    if (!check_tcp(s, errp)) {
        return false;
    }
    s->port = sg_port_new(&port_ops, s, s->config.mac, &config);
    if (!s->port) {
        error_setg(errp, "max-conns is out of the range that TCP/IP can hold");
        return false;
    }
    s->nic = qemu_new_nic(&uplink_info, &s->conf, object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    name = g_strdup_printf("%s.eth", dev->id ? dev->id : qemu_get_queue(s->nic)->name);
    nc = qemu_new_net_client(&eth_info, NULL, TYPE_STAGHORN, name);
    s->eth = nc;
    container_of(nc, StaghornEth, nc)->s = s;
    staghorn_txq_init(&s->to_uplink, qemu_get_queue(s->nic), uplink_sent, UPLINK_OCTETS_MAX, true);
    staghorn_txq_init(&s->to_eth, nc, eth_sent, ETH_OCTETS_MAX, false);
    qemu_set_info_str(nc, "port of %s", qemu_get_queue(s->nic)->name);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    return true;
}

void staghorn_port_exit(StaghornState *s)
{
    struct sg_port *port = s->port;

    /* The port first: it may send RSTs through the uplink. */
    s->port = NULL;
    if (port) {
        sg_port_free(port);
    }
    staghorn_txq_close(&s->to_uplink);
    staghorn_txq_close(&s->to_eth);
    if (s->eth) {
        NetClientState *eth = s->eth;

        s->eth = NULL;
        container_of(eth, StaghornEth, nc)->s = NULL;
        qemu_del_net_client(eth);
    }
    if (s->nic) {
        qemu_del_nic(s->nic);
        s->nic = NULL;
    }
}
