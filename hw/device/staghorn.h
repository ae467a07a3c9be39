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
#include "flash_file.h"
#include "txq.h"
#include "base/host.h"
#include "verbs/adapter.h"
#include "eth_port.h"

#define TYPE_STAGHORN "staghorn"
OBJECT_DECLARE_SIMPLE_TYPE(StaghornState, STAGHORN)

/* Pending work of an adapter (calls.c). */
enum {
    STAGHORN_DUE_TURN = 1, /* the core asked for one */
    STAGHORN_DUE_RESET = 2,
    STAGHORN_DUE_LINK = 4,     /* the uplink's link has changed */
    STAGHORN_DUE_UPLINK = 8,   /* the uplink accepts frames again */
    STAGHORN_DUE_WRITES = 16,  /* to registers and doorbells */
    STAGHORN_DUE_BREAK = 32,   /* a fault: too many of these, or injected by the machine's owner */
    STAGHORN_DUE_RECEIVE = 64, /* a frame waits in QEMU's queue */
    STAGHORN_DUE_FAULTS = 128, /* fault rules were set */
    STAGHORN_DUE_ACTS = 256,   /* what they ask of the machine */
};

struct StaghornState {
    PCIDevice parent_obj;

    MemoryRegion regs;
    MemoryRegion doorbells;

    /* The port: uplink NIC client, and the netdev "<id>.eth" for another NIC model. */
    NICConf conf;
    NICState *nic;
    NetClientState *eth;
    struct sg_port *port;
    StaghornTxq to_uplink, to_eth;

    struct sg_host host;
    struct sg_host_ops ops; /* of host */
    struct sg_adapter *adapter;
    struct sg_adapter_config config; /* properties */
    QEMUBH *bh;
    QEMUTimer *timer;

    /* calls.c */
    unsigned inside;       /* calls of this adapter's core on the stack */
    unsigned due;          /* STAGHORN_DUE_* */
    GArray *late;          /* deferred writes */
    uint64_t raised, sent; /* interrupts: to be sent after the call, and being sent */
    bool gone;             /* removed; the rest waits to be freed */

    struct StaghornDomain *domain; /* the machine's, or NULL */
    unsigned pm_unit;              /* our number in the machine */

    /* Properties that need conversion. */
    uint32_t max_ird, max_ord;
    char *commit, *rnr, *wire, *check;
    bool rtr_send, rtr_write, rtr_read;
    bool flash_write;
    uint32_t peer_timeout;                /* seconds, 0: none */
    uint64_t tcp_window, tcp_send_buffer; /* octets */
    uint32_t tcp_rto_min;                 /* ms */
    GSList *props_set;                    /* names of explicitly set properties (prop_set.h) */

    StaghornFlash flash;

    struct sg_faults *faults; /* rules of faults on demand, or NULL */
    char *faults_text;
    struct sg_host_ops sound_ops; /* while memory is faulty: the others */
    bool memory_faulty;
    uint32_t acts; /* bits of enum sg_fault_effect, to be done */

    QLIST_ENTRY(StaghornState) next;
};

typedef QLIST_HEAD(, StaghornState) StaghornAdapters;

/*
 * calls.c.  'hold' and 'release' bracket code that may send a frame, 'enter' and 'leave' a
 * call of the core; after the outermost one only the object itself is certain to exist.
 */
void staghorn_hold(void);
void staghorn_release(void);
void staghorn_enter(StaghornState *s);
void staghorn_leave(StaghornState *s);
/*
 * staghorn_enter() for a call that must not be nested in a call of any adapter.  False: such a call
 * is in progress, or the machine is stopped; 'due' (STAGHORN_DUE_*, or 0) is recorded, and the
 * caller must not leave.
 */
bool staghorn_enter_alone(StaghornState *s, unsigned due);
/* Does pending work, except a turn; inside an entry. */
void staghorn_catch_up(StaghornState *s);
/* Records pending work: for the end of the entry, or soon. */
void staghorn_owe(StaghornState *s, unsigned due);
void staghorn_reset_soon(StaghornState *s);
/* The interrupt is sent at the end of the entry. */
void staghorn_raise(StaghornState *s, unsigned vector);
/* Somebody writes to BAR SG_BAR_REGS or SG_BAR_DOORBELL. */
void staghorn_write(StaghornState *s, unsigned bar, hwaddr addr, uint64_t value, unsigned size);
/* All realized adapters. */
StaghornAdapters *staghorn_adapters(void);
void staghorn_join(StaghornState *s);
/* Removes the adapter: staghorn_dispose(), now or when the stack is empty. */
void staghorn_part(StaghornState *s);
void staghorn_calls_init(StaghornState *s);
void staghorn_calls_exit(StaghornState *s);

extern const struct sg_host_ops staghorn_host_ops; /* host.c */

/* host.c: its name in logs.  Does the core tell the steps of work requests from now on? */
const char *staghorn_log_id(const StaghornState *s);
void staghorn_flow_switch(StaghornState *s);

/* host.c: a bounded turn of the core if it asked for one; inside an entry. */
void staghorn_turn(StaghornState *s);
bool staghorn_host_init(StaghornState *s, Error **errp);
/* A different firmware runs: creates the core anew from s->config. */
void staghorn_host_renew(StaghornState *s);
void staghorn_host_exit(StaghornState *s);

/* pci.c */
void staghorn_reset_core(StaghornState *s);
/* Frees everything except the object; an entry. */
void staghorn_dispose(StaghornState *s);
/* The machine has no power: drops frames that wait here.  A call of the core may be in progress. */
void staghorn_power_lost(void);

/*
 * domain_dma.c.  'attach' finds the machine's persistence domain, if there is one, and sets
 * the host operations, s->ops.  From a power cut to the end of the machine's reset the
 * adapter is powered off: its actions have no effect.
 */
bool staghorn_pm_attach(StaghornState *s, Error **errp);
void staghorn_pm_detach(StaghornState *s);
/* The machine's address of a range of the bus; false: not all of it is persistent memory. */
bool staghorn_pm_find(StaghornState *s, uint64_t addr, uint64_t len, uint64_t *to);
/* The function was reset: its posted writes arrive. */
void staghorn_pm_reset(StaghornState *s);
bool staghorn_is_powered_off(const StaghornState *s);
/* A CPU writes to the adapter: its earlier stores are in memory. */
void staghorn_cpus_sync(StaghornState *s);

/* check_property.c: the driver checker. */
bool staghorn_check_parse(const char *text, uint8_t *mode);
void staghorn_check_class_init(ObjectClass *klass);

/* guest_stack.c: the kernel's stack at where->pc. */
void staghorn_guest_stack(CPUState *cpu, struct sg_where *where);

/* fault_property.c: faults on demand. */
void staghorn_faults_apply(StaghornState *s);
void staghorn_faults_finalize(StaghornState *s);
/* Is the function unreachable by the bus?  Registers are the core's affair. */
bool staghorn_is_unreachable(const StaghornState *s);
void staghorn_faults_class_init(ObjectClass *klass);

/* fault_acts.c: are there rules about DMA?  sg_host_ops.fault; does what it asked for. */
void staghorn_faults_memory(StaghornState *s, bool faulty);
void staghorn_faults_ask(void *opaque, unsigned effect);
void staghorn_faults_act(StaghornState *s);

/* netport.c */
void staghorn_port_class_init(ObjectClass *klass);
bool staghorn_port_init(StaghornState *s, Error **errp);
void staghorn_port_exit(StaghornState *s);

#endif
