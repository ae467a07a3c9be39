/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the PCIe function.
 *
 * This file is the bus's view: identity, BARs, MSI-X, power management, advanced errors, serial
 * number, function level reset, properties.  It forwards accesses to hw/core/verbs, which
 * decides; host.c provides memory, time and interrupts, netport.c the wire.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "net/eth.h"
#include "net/net.h"
#include "prop_set.h"
#include "trace.h"
#include "staghorn.h"
#include "staghorn/regs.h"

enum {
    CAP_PCIE = 0x80,
    ECAP_AER = 0x100,
    ECAP_SERIAL = 0x160,
};

/* There is no adapter while its firmware is replaced, when another device's DMA may come here. */
static uint64_t regs_read(void *opaque, hwaddr addr, unsigned size)
{
    StaghornState *s = opaque;
    uint64_t value = s->adapter ? sg_adapter_reg_read(s->adapter, addr, size) : UINT64_MAX;

    trace_staghorn_reg_read(staghorn_log_id(s), addr, value, size);
    return value;
}

static void regs_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    staghorn_write(opaque, SG_BAR_REGS, addr, value, size);
}

/* Passes all widths and alignments to the core, which refuses the wrong ones. */
static const MemoryRegionOps regs_ops = {
    .read = regs_read,
    .write = regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

static uint64_t doorbell_read(void *opaque, hwaddr addr, unsigned size)
{
    StaghornState *s = opaque;

    return staghorn_is_powered_off(s) || !s->adapter
               ? 0
               : sg_adapter_doorbell_read(s->adapter, addr / SG_UAR_SIZE, addr % SG_UAR_SIZE, size);
}

static void doorbell_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    staghorn_write(opaque, SG_BAR_DOORBELL, addr, value, size);
}

static const MemoryRegionOps doorbell_ops = {
    .read = doorbell_read,
    .write = doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

/* EUI-64 from the MAC, as serial number and default node GUID. */
static uint64_t eui64(const uint8_t *mac)
{
    return (uint64_t)(mac[0] ^ 2) << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
           0xfffeULL << 24 | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
}

static bool is_zero_mac(const uint8_t *mac)
{
    static const uint8_t zero[ETH_ALEN];

    return !memcmp(mac, zero, ETH_ALEN);
}

static bool identity_init(StaghornState *s, Error **errp)
{
    StaghornState *other;

    if (!s->conf.peers.ncs[0]) {
        error_setg(errp, "staghorn needs a network: give it one with netdev=ID of a -netdev");
        return false;
    }
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    if (!is_unicast_ether_addr(s->conf.macaddr.a) || is_zero_mac(s->conf.macaddr.a)) {
        error_setg(errp, "mac must be a unicast address");
        return false;
    }
    QLIST_FOREACH(other, staghorn_adapters(), next) {
        if (!memcmp(other->conf.macaddr.a, s->conf.macaddr.a, ETH_ALEN)) {
            error_setg(errp, "mac is already that of adapter '%s': give each its own",
                       other->parent_obj.qdev.id ? other->parent_obj.qdev.id : "(without id)");
            return false;
        }
    }
    memcpy(s->config.mac, s->conf.macaddr.a, ETH_ALEN);
    if (!s->config.guid) {
        s->config.guid = eui64(s->config.mac);
    }
    return true;
}

static const char *const commit_names[] = {
    [SG_MPE_DRAFT_OFF] = "off", [SG_MPE_DRAFT_01] = "01", [SG_MPE_DRAFT_02] = "02", NULL
};
static const char *const rnr_names[] = {
    [SG_RNR_AUTO] = "auto", [SG_RNR_TERMINATE] = "terminate", [SG_RNR_WAIT] = "wait", NULL
};
static const char *const wire_names[] = {
    [SG_ENGINE_IWARP] = "iwarp", [SG_ENGINE_RDMA_TCP_2000] = "rdma-tcp-2000", NULL
};

/* The index of text in names; a property that is not set keeps its value. */
static bool parse_name(const char *const *names, const char *text, uint8_t *value)
{
    for (unsigned i = 0; text && names[i]; i++) {
        if (!strcmp(text, names[i])) {
            *value = i;
            return true;
        }
    }
    return !text;
}

/* A property without effect on the chosen wire is a misunderstanding of the user. */
static bool check_wire(StaghornState *s, Error **errp)
{
    static const char *const iwarp_only[] = { "mpa-rev",         "crc",      "markers",
                                              "peer-to-peer",    "rtr-send", "rtr-write",
                                              "rtr-read",        "commit",   "rfc7306",
                                              "first-fpdu-delay" };

    for (unsigned i = 0; s->config.engine.wire != SG_ENGINE_IWARP && i < ARRAY_SIZE(iwarp_only);
         i++) {
        if (staghorn_prop_is_set(s, iwarp_only[i])) {
            error_setg(errp, "%s is a property of wire=iwarp: leave it out with wire=%s",
                       iwarp_only[i], s->wire);
            return false;
        }
    }
    return true;
}

static bool config_init(StaghornState *s, Error **errp)
{
    struct sg_engine_config *e = &s->config.engine;
    char buf[200];
    const char *wrong;

    if (s->max_ird > UINT16_MAX || s->max_ord > UINT16_MAX) {
        error_setg(errp, "max-ird and max-ord go up to 16382");
        return false;
    }
    if (!parse_name(wire_names, s->wire, &e->wire)) {
        error_setg(errp, "wire takes iwarp or rdma-tcp-2000: the format of messages in TCP");
        return false;
    }
    if (!check_wire(s, errp)) {
        return false;
    }
    if (!parse_name(commit_names, s->commit, &e->mpe_draft)) {
        error_setg(errp, "commit takes off, 01 or 02: the draft of the placement extensions");
        return false;
    }
    if (!parse_name(rnr_names, s->rnr, &s->config.rnr)) {
        error_setg(errp, "rnr takes auto, terminate or wait: a message and no receive posted");
        return false;
    }
    if (!s->check) {
        s->check = g_strdup("off"); /* so that QOM shows it */
    }
    if (!staghorn_check_parse(s->check, &s->config.check)) {
        error_setg(errp, "check takes off, warn or strict: the checker of the driver");
        return false;
    }
    e->max_ird = s->max_ird;
    e->max_ord = s->max_ord;
    e->rtr_mask = (s->rtr_send ? SG_RTR_SEND : 0) | (s->rtr_write ? SG_RTR_WRITE : 0) |
                  (s->rtr_read ? SG_RTR_READ : 0);
    wrong = sg_adapter_check_config(&s->config, buf, sizeof(buf));
    if (wrong) {
        error_setg(errp, "%s", wrong);
        return false;
    }
    return staghorn_flash_configure(s, errp);
}

static bool function_init(StaghornState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    pci_config_set_interrupt_pin(pci->config, 0);
    memory_region_init_io(&s->regs, OBJECT(s), &regs_ops, s, "staghorn-regs", SG_REGS_SIZE);
    s->regs.disable_reentrancy_guard = true; /* calls.c */
    pci_register_bar(pci, SG_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->regs);
    memory_region_init_io(&s->doorbells, OBJECT(s), &doorbell_ops, s, "staghorn-doorbells",
                          SG_DOORBELL_SIZE);
    s->doorbells.disable_reentrancy_guard = true;
    pci_register_bar(pci, SG_BAR_DOORBELL,
                     PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 |
                         PCI_BASE_ADDRESS_MEM_PREFETCH,
                     &s->doorbells);
    if (msix_init_exclusive_bar(pci, s->config.vectors, SG_BAR_MSIX, errp)) {
        return false;
    }
    for (unsigned i = 0; i < s->config.vectors; i++) {
        msix_vector_use(pci, i);
    }
    if (!pci_bus_is_express(pci_get_bus(pci))) {
        return true;
    }
    if (pcie_endpoint_cap_init(pci, CAP_PCIE) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return false;
    }
    if (pci_pm_init(pci, 0, errp) < 0 ||
        pcie_aer_init(pci, PCI_ERR_VER, ECAP_AER, PCI_ERR_SIZEOF, errp) < 0) {
        return false;
    }
    pci_set_word(pci->config + pci->pm_cap + PCI_PM_PMC, PCI_PM_CAP_VER_1_2);
    pcie_cap_deverr_init(pci); /* or nobody can switch the reports of AER on */
    pcie_cap_flr_init(pci);
    pcie_dev_ser_num_init(pci, ECAP_SERIAL, eui64(s->config.mac));
    return true;
}

void staghorn_dispose(StaghornState *s)
{
    staghorn_hold();
    staghorn_host_exit(s);
    staghorn_flash_exit(s);
    staghorn_port_exit(s);
    staghorn_calls_exit(s);
    staghorn_release();
}

/* Removes the bus's view now, the rest when nobody uses it any more. */
static void staghorn_exit(PCIDevice *pci)
{
    StaghornState *s = STAGHORN(pci);

    staghorn_flash_hide(s);
    if (pci_bus_is_express(pci_get_bus(pci)) && pci->exp.aer_cap) {
        pcie_aer_exit(pci);
    }
    if (pci_is_express(pci)) {
        pcie_cap_exit(pci);
    }
    msix_uninit_exclusive_bar(pci);
    staghorn_part(s);
}

static void staghorn_realize(PCIDevice *pci, Error **errp)
{
    StaghornState *s = STAGHORN(pci);

    staghorn_calls_init(s);
    if (!staghorn_flash_init(s, errp) || !identity_init(s, errp) || !config_init(s, errp) ||
        !function_init(s, errp) || !staghorn_flash_expose(s, errp) ||
        !staghorn_port_init(s, errp) || !staghorn_host_init(s, errp)) {
        staghorn_exit(pci);
        return;
    }
    staghorn_join(s);
}

void staghorn_reset_core(StaghornState *s)
{
    staghorn_enter(s);
    s->due &= ~STAGHORN_DUE_RESET;
    sg_adapter_reset(s->adapter);
    if (staghorn_is_powered_off(s)) {
        sg_adapter_finish_reset(s->adapter);
    }
    staghorn_flash_boot(s);
    staghorn_pm_reset(s);
    staghorn_leave(s);
}

void staghorn_power_lost(void)
{
    StaghornState *s;

    QLIST_FOREACH(s, staghorn_adapters(), next) {
        staghorn_txq_empty(&s->to_uplink);
        staghorn_txq_empty(&s->to_eth);
    }
}

static void staghorn_reset(Object *obj, ResetType type)
{
    staghorn_reset_soon(STAGHORN(obj));
}

static uint32_t staghorn_read_config(PCIDevice *pci, uint32_t addr, int len)
{
    return staghorn_is_unreachable(STAGHORN(pci)) ? UINT32_MAX >> (32 - 8 * len)
                                                  : pci_default_read_config(pci, addr, len);
}

/* May send a pending interrupt, which may remove us. */
static void staghorn_write_config(PCIDevice *pci, uint32_t addr, uint32_t value, int len)
{
    StaghornState *s = STAGHORN(pci);

    if (staghorn_is_unreachable(s)) {
        return;
    }
    staghorn_hold();
    pci_default_write_config(pci, addr, value, len);
    if (!s->gone) {
        staghorn_flash_write_config(s, addr, len);
        if (pci_is_express(pci)) {
            pcie_cap_flr_write_config(pci, addr, value, len);
            pcie_aer_write_config(pci, addr, value, len);
        }
    }
    staghorn_release();
}

static void staghorn_instance_init(Object *obj)
{
    StaghornState *s = STAGHORN(obj);

    sg_adapter_default_config(&s->config);
    s->config.guid = 0; /* from the MAC, which is not known yet */
    s->max_ird = s->config.engine.max_ird;
    s->max_ord = s->config.engine.max_ord;
    s->rtr_write = s->rtr_read = true;
}

static void staghorn_instance_finalize(Object *obj)
{
    g_slist_free(STAGHORN(obj)->props_set);
    staghorn_faults_finalize(STAGHORN(obj));
}

/*
 * A snapshot or a migration contains the function: configuration space and MSI-X.  The adapter
 * itself arrives as after a reset.  Its connections cannot be moved (their peers' state is
 * elsewhere), and a driver that has lost them must start again anyway: it sees STATUS.READY clear,
 * as after a reset by somebody else.
 */
static int staghorn_post_load(void *opaque, int version)
{
    staghorn_reset_soon(opaque);
    return 0;
}

static const VMStateDescription vmstate_staghorn = {
    .name = TYPE_STAGHORN,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = staghorn_post_load,
    .fields = (const VMStateField[]){ VMSTATE_PCI_DEVICE(parent_obj, StaghornState),
                                      VMSTATE_MSIX(parent_obj, StaghornState),
                                      VMSTATE_STRUCT(parent_obj.exp.aer_log, StaghornState, 0,
                                                     vmstate_pcie_aer_log, PCIEAERLog),
                                      VMSTATE_END_OF_LIST() },
};

/* The defaults come from sg_adapter_default_config(); these rows only name the fields. */
static const Property staghorn_properties[] = {
    DEFINE_NIC_PROPERTIES(StaghornState, conf),
    DEFINE_PROP_RECORDED("guid", StaghornState, config.guid, uint64, uint64_t),
    DEFINE_PROP_RECORDED("vectors", StaghornState, config.vectors, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-qp", StaghornState, config.max_qp, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-cq", StaghornState, config.max_cq, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-mr", StaghornState, config.max_mr, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-pd", StaghornState, config.max_pd, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-qp-wr", StaghornState, config.max_qp_wr, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-cqe", StaghornState, config.max_cqe, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-sge", StaghornState, config.max_sge, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-inline", StaghornState, config.max_inline, uint32, uint32_t),
    DEFINE_PROP_UNSIGNED_NODEFAULT("max-srq", StaghornState, config.max_srq, qdev_prop_uint32,
                                   uint32_t),
    DEFINE_PROP_UNSIGNED_NODEFAULT("max-srq-wr", StaghornState, config.max_srq_wr, qdev_prop_uint32,
                                   uint32_t),
    DEFINE_PROP_UNSIGNED_NODEFAULT("max-srq-sge", StaghornState, config.max_srq_sge,
                                   qdev_prop_uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-mr-size", StaghornState, config.max_mr_size, uint64, uint64_t),
    DEFINE_PROP_RECORDED("max-conns", StaghornState, config.max_conns, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-listeners", StaghornState, config.max_listeners, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-ird", StaghornState, max_ird, uint32, uint32_t),
    DEFINE_PROP_RECORDED("max-ord", StaghornState, max_ord, uint32, uint32_t),
    DEFINE_PROP_RECORDED("wire", StaghornState, wire, string, char *),
    DEFINE_PROP_RECORDED("mpa-rev", StaghornState, config.engine.mpa_rev, uint8, uint8_t),
    DEFINE_PROP_RECORDED("first-fpdu-delay", StaghornState, config.engine.first_fpdu_delay_ms,
                         uint32, uint32_t),
    DEFINE_PROP_RECORDED("close-timeout", StaghornState, config.engine.close_timeout_ms, uint32,
                         uint32_t),
    DEFINE_PROP_RECORDED("linger-timeout", StaghornState, config.engine.linger_timeout_ms, uint32,
                         uint32_t),
    DEFINE_PROP_RECORDED("close-limit", StaghornState, config.engine.close_limit_ms, uint32,
                         uint32_t),
    DEFINE_PROP_RECORDED("rnr", StaghornState, rnr, string, char *),
    DEFINE_PROP_RECORDED("commit", StaghornState, commit, string, char *),
    DEFINE_PROP_RECORDED("rfc7306", StaghornState, config.engine.rfc7306, bool, bool),
    DEFINE_PROP_RECORDED("crc", StaghornState, config.engine.crc, bool, bool),
    DEFINE_PROP_RECORDED("markers", StaghornState, config.engine.markers, bool, bool),
    DEFINE_PROP_RECORDED("peer-to-peer", StaghornState, config.engine.peer_to_peer, bool, bool),
    DEFINE_PROP_RECORDED("rtr-send", StaghornState, rtr_send, bool, bool),
    DEFINE_PROP_RECORDED("rtr-write", StaghornState, rtr_write, bool, bool),
    DEFINE_PROP_RECORDED("rtr-read", StaghornState, rtr_read, bool, bool),
    DEFINE_PROP_RECORDED("features", StaghornState, config.features, uint32, uint32_t),
    DEFINE_PROP_UNSIGNED_NODEFAULT("max-host-memory", StaghornState, config.max_host_memory,
                                   qdev_prop_size, uint64_t),
    DEFINE_PROP_STRING("check", StaghornState, check),
    DEFINE_PROP_BOOL("flash-write", StaghornState, flash_write, false),
    DEFINE_PROP_UINT32("peer-timeout", StaghornState, peer_timeout, 60),
    DEFINE_PROP_SIZE("tcp-window", StaghornState, tcp_window, 1024 * 1024),
    DEFINE_PROP_SIZE("tcp-send-buffer", StaghornState, tcp_send_buffer, 1024 * 1024),
    DEFINE_PROP_UINT32("tcp-rto-min", StaghornState, tcp_rto_min, 200),
};

static bool get_fatal(Object *obj, Error **errp)
{
    StaghornState *s = STAGHORN(obj);

    return s->adapter &&
           ((s->due & STAGHORN_DUE_BREAK) || sg_adapter_fatal_error(s->adapter) != SG_FATAL_NONE);
}

/* Fault injection by the machine's owner; the driver's reset ends the fault. */
static void set_fatal(Object *obj, bool value, Error **errp)
{
    StaghornState *s = STAGHORN(obj);

    if (!s->adapter || !value) {
        error_setg(errp, "fatal can only be set to true, and when the machine runs");
        return;
    }
    if (staghorn_is_powered_off(s)) {
        return;
    }
    if (!staghorn_enter_alone(s, STAGHORN_DUE_BREAK)) {
        return;
    }
    staghorn_catch_up(s);
    sg_adapter_break(s->adapter);
    staghorn_turn(s);
    staghorn_leave(s);
}

/* How much of max-host-memory is in use. */
static void get_host_memory(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    StaghornState *s = STAGHORN(obj);
    uint64_t octets = s->adapter ? sg_adapter_host_memory(s->adapter) : 0;

    visit_type_size(v, name, &octets, errp);
}

static void staghorn_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    staghorn_prop_set_init();
    k->realize = staghorn_realize;
    k->exit = staghorn_exit;
    k->config_read = staghorn_read_config;
    k->config_write = staghorn_write_config;
    k->vendor_id = SG_PCI_VENDOR_ID;
    k->device_id = SG_PCI_DEVICE_ID;
    k->subsystem_vendor_id = SG_PCI_VENDOR_ID;
    k->subsystem_id = SG_PCI_SUBSYSTEM_ID;
    k->class_id = SG_PCI_CLASS;
    k->revision = SG_PCI_REVISION;
    rc->phases.hold = staghorn_reset;
    dc->desc = "Staghorn iWARP RDMA adapter";
    dc->vmsd = &vmstate_staghorn;
    device_class_set_props(dc, staghorn_properties);
    object_class_property_add_bool(klass, "fatal", get_fatal, set_fatal);
    object_class_property_add(klass, "host-memory", "size", get_host_memory, NULL, NULL, NULL);
    staghorn_port_class_init(klass);
    staghorn_check_class_init(klass);
    staghorn_faults_class_init(klass);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo staghorn_info = {
    .name = TYPE_STAGHORN,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(StaghornState),
    .instance_init = staghorn_instance_init,
    .instance_finalize = staghorn_instance_finalize,
    .class_init = staghorn_class_init,
    .interfaces = (InterfaceInfo[]){ { INTERFACE_PCIE_DEVICE }, {} },
};

static void staghorn_register_types(void)
{
    type_register_static(&staghorn_info);
}

type_init(staghorn_register_types)
