/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QEMU device: state shared by the files of this folder.
 */
#ifndef SG_DEVICE_STAGHORN_H
#define SG_DEVICE_STAGHORN_H

#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qemu/timer.h"
#include "qom/object.h"
#include "base/host.h"
#include "verbs/adapter.h"
#include "port.h"

#define TYPE_STAGHORN "staghorn"
OBJECT_DECLARE_SIMPLE_TYPE(StaghornState, STAGHORN)

struct StaghornState {
    PCIDevice parent_obj;

    MemoryRegion regs;
    MemoryRegion doorbells;

    /* The port: uplink NIC client, and the netdev "<id>.eth" offered to another NIC model. */
    NICConf conf;
    NICState *nic;
    NetClientState *eth;
    struct sg_port *port;
    bool uplink_full; /* a frame of ours waits in the uplink's queue */
    bool eth_full;    /* likewise a frame towards the other NIC model */

    struct sg_host host;
    struct sg_adapter *adapter;
    struct sg_adapter_config config; /* properties */
    QEMUBH *bh;
    QEMUTimer *timer;
    bool inside; /* a core call is on the stack */
    bool kicked; /* the core asked for a turn while inside */

    /* Properties that need conversion. */
    uint32_t max_ird, max_ord;
    bool rtr_send, rtr_write, rtr_read;

    QLIST_ENTRY(StaghornState) next;
};

extern const struct sg_host_ops staghorn_host_ops; /* host.c */

/* host.c: let the core work, now (bounded) and later from the bottom half. */
void staghorn_turn(StaghornState *s);
bool staghorn_host_init(StaghornState *s, Error **errp);
void staghorn_host_exit(StaghornState *s);

/* netport.c */
bool staghorn_port_init(StaghornState *s, Error **errp);
void staghorn_port_exit(StaghornState *s);

#endif
