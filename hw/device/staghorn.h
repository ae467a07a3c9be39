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

/* What an adapter has to do as soon as it may (calls.c). */
enum {
    STAGHORN_DUE_TURN = 1,     /* the core asked for one */
    STAGHORN_DUE_RESET = 2,
    STAGHORN_DUE_LINK = 4,     /* the uplink's link has changed */
    STAGHORN_DUE_UPLINK = 8,   /* the uplink takes frames again */
    STAGHORN_DUE_WRITES = 16,  /* to registers and doorbells */
    STAGHORN_DUE_BREAK = 32,   /* a fault: too many of these, or the machine's owner wants one */
    STAGHORN_DUE_RECEIVE = 64, /* a frame waits in QEMU's queue */
};

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

    /* calls.c */
    unsigned inside;       /* calls of this adapter's core on the stack */
    unsigned due;          /* STAGHORN_DUE_* */
    GArray *late;          /* writes that wait */
    uint64_t raised, sent; /* interrupts: to be sent after the call, and those under way */
    bool gone;             /* removed; what is left is to be freed */

    struct StaghornDomain *domain; /* the machine's, or NULL */
    unsigned pm_unit;              /* our number there */

    /* Properties that need conversion. */
    uint32_t max_ird, max_ord;
    char *commit, *rnr;
    bool rtr_send, rtr_write, rtr_read;
    bool flash_write;
    uint32_t peer_timeout; /* seconds, 0: none */
    uint64_t tcp_window, tcp_send_buffer; /* octets */
    uint32_t tcp_rto_min;  /* ms */
    GSList *given; /* names of properties that were set (given.h) */

    StaghornFlash flash;

    QLIST_ENTRY(StaghornState) next;
};

typedef QLIST_HEAD(, StaghornState) StaghornAdapters;

/*
 * calls.c.  'hold' and 'release' are around whatever may send a frame, 'enter' and 'leave' around a
 * call of the core; behind the outermost one only the object itself is sure to be there.
 */
void staghorn_hold(void);
void staghorn_release(void);
void staghorn_enter(StaghornState *s);
void staghorn_leave(StaghornState *s);
/* No call of any adapter is under way, and the machine runs. */
bool staghorn_may_call(void);
/* Does what is due, but for a turn; inside. */
void staghorn_catch_up(StaghornState *s);
/* Something is due: at the end of the entry, or soon. */
void staghorn_owe(StaghornState *s, unsigned due);
void staghorn_reset_soon(StaghornState *s);
/* The interrupt is sent at the end of the entry. */
void staghorn_raise(StaghornState *s, unsigned vector);
/* Somebody writes to BAR SG_BAR_REGS or SG_BAR_DOORBELL. */
void staghorn_write(StaghornState *s, unsigned bar, hwaddr addr, uint64_t value, unsigned size);
/* Those that are realized. */
StaghornAdapters *staghorn_adapters(void);
void staghorn_join(StaghornState *s);
/* The adapter is removed: staghorn_dispose(), now or when the stack is empty. */
void staghorn_part(StaghornState *s);
void staghorn_calls_init(StaghornState *s);
void staghorn_calls_exit(StaghornState *s);

extern const struct sg_host_ops staghorn_host_ops; /* host.c */

/* host.c: lets the core work if it asked for it, bounded; inside. */
void staghorn_turn(StaghornState *s);
bool staghorn_host_init(StaghornState *s, Error **errp);
/* Another firmware runs: the core is made anew from s->config. */
void staghorn_host_renew(StaghornState *s);
void staghorn_host_exit(StaghornState *s);

/* pci.c */
void staghorn_reset_core(StaghornState *s);
/* Frees all but the object; an entry of its own. */
void staghorn_dispose(StaghornState *s);
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
