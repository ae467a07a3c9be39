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
#include "flash.h"
#include "lane.h"
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
    StaghornLane to_uplink, to_eth;

    struct sg_host host;
    struct sg_adapter *adapter;
    struct sg_adapter_config config; /* properties */
    QEMUBH *bh;
    QEMUTimer *timer;
    bool inside; /* a core call is on the stack: no other may begin */
    bool kicked; /* the core asked for a turn while inside */
    bool reset_due;   /* a reset came while inside; the bottom half does it */
    bool receive_due; /* likewise a frame, which waits in QEMU's queue */

    struct StaghornDomain *domain; /* the machine's, or NULL */
    unsigned pm_unit;              /* our number there */

    /* Properties that need conversion. */
    uint32_t max_ird, max_ord;
    char *commit;
    bool rtr_send, rtr_write, rtr_read;
    bool flash_write;
    uint32_t peer_timeout; /* seconds, 0: none */
    GSList *given; /* names of properties that were set (given.h) */

    StaghornFlash flash;

    QLIST_ENTRY(StaghornState) next;
};

extern const struct sg_host_ops staghorn_host_ops; /* host.c */

/* host.c: let the core work, now (bounded) and later from the bottom half. */
void staghorn_turn(StaghornState *s);
/* The end of a core call; 'outer' is what s->inside was before.  Leaves the rest to later. */
void staghorn_leave(StaghornState *s, bool outer);
bool staghorn_host_init(StaghornState *s, Error **errp);
/* Another firmware runs: the core is made anew from s->config. */
void staghorn_host_renew(StaghornState *s);
void staghorn_host_exit(StaghornState *s);

/* pci.c */
void staghorn_reset_core(StaghornState *s);
/* The machine has no power: frames that wait here are gone.  Any call of the core goes on. */
void staghorn_power_lost(void);

/*
 * persist_dma.c.  'attach' finds the machine's persistence domain, if there is one, and returns
 * the host operations to use.  From a cut of the power to the end of the machine's reset the
 * adapter is dark: whatever it does has no effect.
 */
const struct sg_host_ops *staghorn_pm_attach(StaghornState *s, Error **errp);
void staghorn_pm_detach(StaghornState *s);
/* The function was reset: what it had posted arrives. */
void staghorn_pm_reset(StaghornState *s);
bool staghorn_is_dark(const StaghornState *s);
/* A CPU tells the adapter something: what it stored before is in memory. */
void staghorn_cpus_sync(StaghornState *s);

/* netport.c */
bool staghorn_port_init(StaghornState *s, Error **errp);
void staghorn_port_exit(StaghornState *s);

#endif
