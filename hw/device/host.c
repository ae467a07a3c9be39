/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the core's host operations on QEMU: guest memory, virtual clock, interrupts, logs.
 *
 * Turns.  The core works inside three kinds of calls, all under the big lock: MMIO writes (vCPU
 * thread), frames from the uplink, and the bottom half.  After a doorbell the core gets one bounded
 * turn in the vCPU thread, which is the shortest way to the wire; the rest is left to the bottom
 * half.  calls.c separates these calls and sends the interrupts after them.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "block/aio.h"
#include "hw/core/cpu.h"
#include "persist/cpu_track.h"
#include "system/hw_accel.h"
#include "system/tcg.h"
#include "trace.h"
#include "machine_clock.h"
#include "staghorn.h"

enum {
    TURN_OCTETS = 256 * 1024, /* a turn in the vCPU thread */
    BH_OCTETS = 1024 * 1024,  /* a turn of the bottom half */
};

/*
 * Memory only.  A guest that aims DMA at registers could otherwise, in the middle of a core call,
 * reset the function or power it off through configuration space, or make another device send us
 * a frame.
 */
static const MemTxAttrs memory_only = { .memory = 1 };

static bool host_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    StaghornState *s = opaque;

    return !s->gone && pci_dma_rw(&s->parent_obj, addr, buf, len, DMA_DIRECTION_TO_DEVICE,
                                  memory_only) == MEMTX_OK;
}

static bool host_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    StaghornState *s = opaque;

    return !s->gone && pci_dma_rw(&s->parent_obj, addr, (void *)buf, len, DMA_DIRECTION_FROM_DEVICE,
                                  memory_only) == MEMTX_OK;
}

static bool host_dma_store64(void *opaque, uint64_t addr, uint64_t value)
{
    StaghornState *s = opaque;

    smp_wmb();
    return !s->gone && stq_le_pci_dma(&s->parent_obj, addr, value, memory_only) == MEMTX_OK;
}

static bool host_dma_cmpxchg64(void *opaque, uint64_t addr, uint64_t *value, uint64_t desired)
{
    StaghornState *s = opaque;
    AddressSpace *as = pci_get_address_space(&s->parent_obj);
    dma_addr_t len = sizeof(uint64_t);
    uint64_t *p =
        s->gone ? NULL : dma_memory_map(as, addr, &len, DMA_DIRECTION_FROM_DEVICE, memory_only);
    bool direct = p && len == sizeof(uint64_t) && !as->bounce_buffer_size;

    if (direct) {
        *value =
            le64_to_cpu(qatomic_cmpxchg__nocheck(p, cpu_to_le64(*value), cpu_to_le64(desired)));
    }
    if (p) {
        dma_memory_unmap(as, p, len, DMA_DIRECTION_FROM_DEVICE, direct ? len : 0);
    }
    return direct;
}

static void *host_map(void *opaque, uint64_t addr, size_t *len, bool for_write)
{
    StaghornState *s = opaque;
    AddressSpace *as = pci_get_address_space(&s->parent_obj);
    DMADirection dir = for_write ? DMA_DIRECTION_FROM_DEVICE : DMA_DIRECTION_TO_DEVICE;
    dma_addr_t n = *len;
    void *p = s->gone ? NULL : dma_memory_map(as, addr, &n, dir, memory_only);

    if (p && as->bounce_buffer_size) { /* no memory: let the copy fail */
        dma_memory_unmap(as, p, n, dir, 0);
        return NULL;
    }
    *len = n;
    return n ? p : NULL;
}

static void host_unmap(void *opaque, void *p, size_t len, bool for_write)
{
    StaghornState *s = opaque;

    pci_dma_unmap(&s->parent_obj, p, len,
                  for_write ? DMA_DIRECTION_FROM_DEVICE : DMA_DIRECTION_TO_DEVICE, len);
}

static uint64_t host_now(void *opaque)
{
    return staghorn_clock_ns();
}

/*
 * Setting a QEMU timer wakes the main loop, and the core names a new deadline in nearly every turn.
 * So only earlier deadlines are set.  A deadline that was postponed causes one spurious wake-up,
 * and the following turn names the right one.
 */
static void host_arm_timer(void *opaque, uint64_t deadline_ns)
{
    StaghornState *s = opaque;
    int64_t at;

    if (deadline_ns >= INT64_MAX) {
        return;
    }
    at = staghorn_clock_virtual(deadline_ns);
    if (!timer_pending(s->timer) || timer_expire_time_ns(s->timer) > at) {
        timer_mod_ns(s->timer, at);
    }
}

static void host_kick(void *opaque)
{
    staghorn_owe(opaque, STAGHORN_DUE_TURN);
}

static void host_raise(void *opaque, unsigned vector)
{
    staghorn_raise(opaque, vector);
}

static void host_random(void *opaque, void *buf, size_t len)
{
    qemu_guest_getrandom_nofail(buf, len);
}

/* Called in the middle of the access, or in a bottom half, which is no processor's. */
static bool host_where(void *opaque, struct sg_where *where)
{
    CPUState *cpu = current_cpu;

    if (!cpu) {
        return false;
    }
    where->cpu = cpu->cpu_index;
    if (tcg_enabled()) {
        where->pc = staghorn_cpu_source(cpu, cpu->mem_io_pc).at;
    } else {
        cpu_synchronize_state(cpu);
        where->pc = cpu->cc->get_pc(cpu);
    }
    staghorn_guest_stack(cpu, where);
    return true;
}

static bool host_log_enabled(void *opaque, enum sg_log_class cls)
{
    switch (cls) {
    case SG_LOG_GUEST_ERROR:
        return qemu_loglevel_mask(LOG_GUEST_ERROR) || trace_event_get_state(TRACE_STAGHORN_GUEST);
    case SG_LOG_PEER_ERROR:
        return trace_event_get_state(TRACE_STAGHORN_PEER);
    case SG_LOG_FAILURE:
        return trace_event_get_state(TRACE_STAGHORN_FAILURE);
    case SG_LOG_CHECK:
        return trace_event_get_state(TRACE_STAGHORN_CHECK);
    case SG_LOG_STATE:
        return trace_event_get_state(TRACE_STAGHORN_STATE);
    default:
        return trace_event_get_state(TRACE_STAGHORN_DETAIL);
    }
}

const char *staghorn_log_id(const StaghornState *s)
{
    return s->parent_obj.qdev.id ? s->parent_obj.qdev.id : TYPE_STAGHORN;
}

static void host_flow(void *opaque, const char *line)
{
    trace_staghorn_flow(staghorn_log_id(opaque), line);
}

void staghorn_flow_switch(StaghornState *s)
{
    s->ops.flow = trace_event_get_state(TRACE_STAGHORN_FLOW) ? host_flow : NULL;
}

static void host_log(void *opaque, enum sg_log_class cls, const char *line)
{
    StaghornState *s = opaque;
    const char *id = staghorn_log_id(s);

    switch (cls) {
    case SG_LOG_GUEST_ERROR:
        trace_staghorn_guest(id, line);
        qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", id, line);
        break;
    case SG_LOG_PEER_ERROR:
        trace_staghorn_peer(id, line);
        break;
    case SG_LOG_FAILURE:
        trace_staghorn_failure(id, line);
        break;
    case SG_LOG_CHECK:
        trace_staghorn_check(id, line);
        break;
    case SG_LOG_STATE:
        trace_staghorn_state(id, line);
        break;
    default:
        trace_staghorn_detail(id, line);
    }
}

const struct sg_host_ops staghorn_host_ops = {
    .dma_read = host_dma_read,
    .dma_write = host_dma_write,
    .dma_store64 = host_dma_store64,
    .dma_cmpxchg64 = host_dma_cmpxchg64,
    .map = host_map,
    .unmap = host_unmap,
    .now = host_now,
    .arm_timer = host_arm_timer,
    .kick = host_kick,
    .raise = host_raise,
    .fault = staghorn_faults_ask,
    .random = host_random,
    .pm_last_cut = staghorn_last_cut,
    .where = host_where,
    .log_enabled = host_log_enabled,
    .log = host_log,
};

static void run_core(StaghornState *s, size_t budget)
{
    s->due &= ~STAGHORN_DUE_TURN;
    if (!staghorn_is_powered_off(s) && sg_adapter_run(s->adapter, budget)) {
        s->due |= STAGHORN_DUE_TURN;
    }
}

void staghorn_turn(StaghornState *s)
{
    if (s->due & STAGHORN_DUE_TURN) {
        run_core(s, TURN_OCTETS);
    }
}

static void bottom_half(void *opaque)
{
    StaghornState *s = opaque;

    if (s->gone) {
        return;
    }
    if (!staghorn_enter_alone(s, STAGHORN_DUE_TURN)) { /* a nested main loop, or stopped: defer */
        return;
    }
    staghorn_hold(); /* until the frames that wait are received, too */
    staghorn_catch_up(s);
    run_core(s, BH_OCTETS);
    staghorn_leave(s);
    if (s->due & STAGHORN_DUE_RECEIVE) {
        s->due &= ~STAGHORN_DUE_RECEIVE;
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
    if (s->due & STAGHORN_DUE_ACTS && !s->gone) {
        staghorn_faults_act(s);
    }
    staghorn_release();
}

static void deadline_reached(void *opaque)
{
    StaghornState *s = opaque;

    qemu_bh_schedule(s->bh);
}

/* Called for each firmware, since its profile limits the connections of the port. */
static void make_adapter(StaghornState *s)
{
    sg_port_set_max_connections(s->port, s->config.max_conns);
    s->adapter = sg_adapter_new(&s->host, sg_port_stream_net(s->port), &s->config);
    sg_adapter_set_flash(s->adapter, s->flash.chip);
    sg_adapter_set_link(s->adapter, !qemu_get_queue(s->nic)->link_down);
    if (s->faults) {
        staghorn_faults_apply(s);
    }
}

void staghorn_host_renew(StaghornState *s)
{
    struct sg_adapter *adapter = s->adapter;

    g_assert(s->inside);
    s->adapter = NULL; /* another device may read our registers when connections end */
    sg_port_set_max_connections(s->port, s->config.max_conns);
    sg_adapter_renew(adapter, &s->config);
    s->adapter = adapter;
}

bool staghorn_host_init(StaghornState *s, Error **errp)
{
    if (!staghorn_pm_attach(s, errp)) {
        return false;
    }
    s->host = (struct sg_host){ .ops = &s->ops, .opaque = s };
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, deadline_reached, s);
    s->bh = qemu_bh_new_guarded(bottom_half, s, &DEVICE(s)->mem_reentrancy_guard);
    make_adapter(s);
    return true;
}

void staghorn_host_exit(StaghornState *s)
{
    struct sg_adapter *adapter = s->adapter;

    if (!adapter) {
        return;
    }
    g_assert(!s->inside);
    s->adapter = NULL;
    staghorn_enter(s);
    sg_adapter_free(adapter);
    staghorn_leave(s);
    staghorn_pm_detach(s);
    timer_free(s->timer);
    s->timer = NULL;
    qemu_bh_delete(s->bh);
    s->bh = NULL;
}
