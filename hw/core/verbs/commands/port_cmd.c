/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: its addresses and MTU as the driver sets them.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

enum { MTU_MIN = 576, VLAN_MAX = 4094 };

enum sg_status sg_cmd_set_addr(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_set_addr *c = cmd;
    const struct sg_stream_net_ops *net = a->net->ops;
    struct sg_endpoint ep = { .family = c->addr.family, .vlan = sg_get_le16(&c->vlan) };
    static const uint8_t any[16];

    (void)rsp;
    if (c->op == SG_ADDR_CLEAR) {
        net->clear_addrs(a->net);
        return SG_OK;
    }
    if (c->op != SG_ADDR_ADD && c->op != SG_ADDR_DEL) {
        return SG_EINVAL;
    }
    if ((ep.family != 4 && ep.family != 6) || c->prefix_len > (ep.family == 4 ? 32 : 128) ||
        ep.vlan > VLAN_MAX) {
        return SG_EINVAL;
    }
    if ((ep.family == 6 && !sg_adapter_may(a, SG_FEATURE_IPV6)) ||
        (ep.vlan && !sg_adapter_may(a, SG_FEATURE_VLAN))) {
        return SG_ENOTSUP;
    }
    memcpy(ep.ip, c->addr.ip, ep.family == 4 ? 4 : 16);
    if (memcmp(ep.ip, any, sizeof(any)) == 0) {
        return SG_EINVAL;
    }
    if (c->op == SG_ADDR_DEL) {
        return net->del_addr(a->net, &ep) ? SG_OK : SG_ENOENT;
    }
    return net->add_addr(a->net, &ep, c->prefix_len, c->gateway) ? SG_OK : SG_ENOMEM;
}

enum sg_status sg_cmd_set_port(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_set_port *c = cmd;
    uint32_t mtu = sg_get_le32(&c->mtu);

    (void)rsp;
    if (mtu < MTU_MIN || mtu > a->config.link_mtu) {
        return SG_EINVAL;
    }
    a->net->ops->set_mtu(a->net, mtu);
    return SG_OK;
}
