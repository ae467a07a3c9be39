/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: calls of the core, and the work that has to wait for their end.
 *
 * A call of the core runs under QEMU's big lock, but not in isolation: a frame that it sends may
 * reach another NIC of the guest within the same call stack, and that NIC's interrupt is a write to
 * any address that the guest chose: a register of this or of another adapter, or configuration
 * space, where a function can be reset or lose its slot.  Our own interrupts can do the same.  All
 * adapters of a process share one TCP/IP stack, so it does not matter whose call is in progress:
 *
 *   interrupts  are collected (staghorn_raise) and sent as the last act of the outermost entry;
 *               those raised while others are sent are sent by a bottom half;
 *   writes      that arrive during a call, or while the machine is stopped, are queued in order and
 *               executed by a bottom half: a doorbell is never lost;
 *   resets      that arrive during a call are done at its end, before the entry returns;
 *   removal     during an entry marks the adapter as gone: it does no more DMA, and its memory is
 *               freed by a bottom half.  The object lives until then, and DEVICE_DELETED waits.
 *
 * A function of the device that QEMU calls and that may send a frame, or call the core, is an
 * entry: staghorn_hold() to staghorn_release(), or staghorn_enter() or staghorn_enter_alone() to
 * staghorn_leave() around a call of the core.  After the outermost release only the object itself
 * may be accessed.
 *
 * QEMU's own guard against re-entrant I/O is off for our registers: it would drop the write.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "block/aio.h"
#include "hw/pci/msix.h"
#include "system/runstate.h"
#include "trace.h"
#include "staghorn.h"
#include "staghorn/regs.h"

/*
 * Queued writes of one adapter.  Those of one call come from other devices' interrupts; a driver
 * does not cause more than this, so more of them break the adapter (STATUS.FATAL).
 */
enum {
    LATE_MAX = 1024,
    RESETS_MAX = 16, /* at the end of an entry; the others by a bottom half */
};

typedef struct StaghornWrite {
    unsigned bar, size;
    hwaddr addr;
    uint64_t value;
} StaghornWrite;

/* State of the process. */
static struct {
    unsigned entries;      /* on the stack: no adapter may be freed */
    unsigned cores;        /* calls of the core among them: no other may begin */
    bool sending;          /* interrupts are being sent */
    StaghornState *sender; /* by this adapter */
    StaghornAdapters adapters;
    StaghornAdapters gone; /* removed during an entry, not freed yet */
    VMChangeStateEntry *run_state;
} calls = {
    .adapters = QLIST_HEAD_INITIALIZER(calls.adapters),
    .gone = QLIST_HEAD_INITIALIZER(calls.gone),
};

StaghornAdapters *staghorn_adapters(void)
{
    return &calls.adapters;
}

/* ---- interrupts ---- */

void staghorn_raise(StaghornState *s, unsigned vector)
{
    QEMU_BUILD_BUG_ON(SG_EQ_COUNT > 64);
    s->raised |= 1ull << vector;
}

/* A message may cause the removal of any adapter, even this one; the object is referenced. */
static void send_messages(StaghornState *s)
{
    uint64_t vectors = s->sent;

    s->sent = 0;
    calls.sender = s;
    for (; vectors && !s->gone && !staghorn_is_powered_off(s); vectors &= vectors - 1) {
        trace_staghorn_interrupt(staghorn_log_id(s), ctz64(vectors));
        msix_notify(&s->parent_obj, ctz64(vectors));
    }
    calls.sender = NULL;
}

static StaghornState *next_sender(void)
{
    StaghornState *s;

    QLIST_FOREACH(s, &calls.adapters, next) {
        if (s->sent) {
            return s;
        }
    }
    return NULL;
}

/* One round: later interrupts wait for a bottom half, or two adapters could loop here for ever. */
static void send_all(void)
{
    StaghornState *s;

    QLIST_FOREACH(s, &calls.adapters, next) {
        if (s->raised && calls.sending) {
            qemu_bh_schedule(s->bh);
        } else if (runstate_is_running()) {
            s->sent = s->raised;
            s->raised = 0;
        }
    }
    if (calls.sending) {
        return;
    }
    calls.sending = true;
    while ((s = next_sender())) {
        object_ref(OBJECT(s));
        send_messages(s);
        object_unref(OBJECT(s));
    }
    calls.sending = false;
}

/* ---- removal ---- */

static void bury(void *opaque)
{
    StaghornState *s;

    while (!calls.entries && !calls.sending && (s = QLIST_FIRST(&calls.gone))) {
        QLIST_REMOVE(s, next);
        staghorn_dispose(s);
        object_unref(OBJECT(s));
    }
}

static void bury_later(void)
{
    aio_bh_schedule_oneshot(qemu_get_aio_context(), bury, NULL);
}

void staghorn_join(StaghornState *s)
{
    QLIST_INSERT_HEAD(&calls.adapters, s, next);
    if (s->due) {
        qemu_bh_schedule(s->bh);
    }
}

void staghorn_part(StaghornState *s)
{
    s->gone = true;
    s->raised = s->sent = 0;
    if (s->adapter) {
        QLIST_REMOVE(s, next);
    }
    if (calls.entries || calls.sending) {
        object_ref(OBJECT(s));
        QLIST_INSERT_HEAD(&calls.gone, s, next);
        bury_later();
    } else {
        staghorn_dispose(s);
    }
}

/* ---- entries ---- */

static StaghornState *next_reset(void)
{
    StaghornState *s;

    QLIST_FOREACH(s, &calls.adapters, next) {
        if (s->due & STAGHORN_DUE_RESET) {
            return s;
        }
    }
    return NULL;
}

/* A reset ends connections, and their last frames may cause the next reset. */
static void reset_due(void)
{
    StaghornState *s;

    for (unsigned n = 0; n < RESETS_MAX && (s = next_reset()); n++) {
        staghorn_reset_core(s);
    }
}

void staghorn_hold(void)
{
    calls.entries++;
}

void staghorn_release(void)
{
    StaghornState *s;

    if (calls.entries == 1) {
        reset_due();
    }
    if (--calls.entries) {
        return;
    }
    QLIST_FOREACH(s, &calls.adapters, next) {
        if (s->due && runstate_is_running()) {
            qemu_bh_schedule(s->bh);
        }
    }
    if (!QLIST_EMPTY(&calls.gone)) {
        bury_later();
    }
    send_all();
}

void staghorn_enter(StaghornState *s)
{
    staghorn_hold();
    calls.cores++;
    s->inside++;
    staghorn_flow_switch(s);
}

bool staghorn_enter_alone(StaghornState *s, unsigned due)
{
    if (calls.cores || !runstate_is_running()) {
        staghorn_owe(s, due);
        return false;
    }
    staghorn_enter(s);
    return true;
}

void staghorn_leave(StaghornState *s)
{
    s->inside--;
    calls.cores--;
    staghorn_release();
}

/* ---- deferred work ---- */

static void obey(StaghornState *s, const StaghornWrite *w)
{
    const unsigned page = w->addr / SG_UAR_SIZE, offset = w->addr % SG_UAR_SIZE;

    if (w->bar == SG_BAR_DOORBELL) {
        trace_staghorn_doorbell(staghorn_log_id(s), page, offset, w->value, w->size);
        sg_adapter_doorbell(s->adapter, page, offset, w->value, w->size);
        return;
    }
    trace_staghorn_reg_write(staghorn_log_id(s), w->addr, w->value, w->size);
    sg_adapter_reg_write(s->adapter, w->addr, w->value, w->size);
    if (w->addr == SG_REG_CTRL && w->size >= 4 && (w->value & SG_CTRL_RESET)) {
        staghorn_flash_boot(s);
    }
}

static GArray *new_writes(void)
{
    return g_array_new(false, false, sizeof(StaghornWrite));
}

/* A doorbell is idempotent (regs.h), so a later one of a queue replaces an earlier one. */
static bool merge(StaghornState *s, const StaghornWrite *w)
{
    for (unsigned i = s->late->len; i-- > 0;) {
        StaghornWrite *old = &g_array_index(s->late, StaghornWrite, i);

        if (old->bar != SG_BAR_DOORBELL || w->bar != SG_BAR_DOORBELL) {
            break;
        }
        if (old->addr == w->addr && old->size == w->size &&
            (uint32_t)old->value == (uint32_t)w->value) {
            old->value = w->value;
            return true;
        }
    }
    return false;
}

static void keep(StaghornState *s, const StaghornWrite *w)
{
    if (merge(s, w)) {
        return;
    }
    if (s->late->len < LATE_MAX) {
        g_array_append_val(s->late, *w);
        s->due |= STAGHORN_DUE_WRITES;
    } else {
        s->due |= STAGHORN_DUE_BREAK;
    }
}

/* Writes that arrive meanwhile wait for the next time; a reset makes the rest void. */
static void obey_late(StaghornState *s)
{
    g_autoptr(GArray) late = s->late;

    s->late = new_writes();
    for (unsigned i = 0; i < late->len && !(s->due & STAGHORN_DUE_RESET); i++) {
        obey(s, &g_array_index(late, StaghornWrite, i));
    }
}

void staghorn_catch_up(StaghornState *s)
{
    unsigned due = s->due;

    s->due &= STAGHORN_DUE_TURN | STAGHORN_DUE_RECEIVE | STAGHORN_DUE_ACTS;
    if (due & STAGHORN_DUE_RESET) {
        staghorn_reset_core(s);
    }
    if (due & STAGHORN_DUE_LINK) {
        sg_adapter_set_link(s->adapter, !qemu_get_queue(s->nic)->link_down);
    }
    if (due & STAGHORN_DUE_FAULTS) {
        staghorn_faults_apply(s);
    }
    if (staghorn_is_powered_off(s)) {
        return;
    }
    if (due & STAGHORN_DUE_UPLINK) {
        sg_port_uplink_ready(s->port);
    }
    if (due & STAGHORN_DUE_WRITES) {
        obey_late(s);
    }
    if (due & STAGHORN_DUE_BREAK) {
        sg_adapter_break(s->adapter);
    }
}

void staghorn_write(StaghornState *s, unsigned bar, hwaddr addr, uint64_t value, unsigned size)
{
    const StaghornWrite w = { .bar = bar, .addr = addr, .value = value, .size = size };

    if (s->gone || staghorn_is_powered_off(s)) {
        return;
    }
    if (calls.sender == s) { /* the write would raise the next interrupt, and so on for ever */
        qemu_log_mask(LOG_GUEST_ERROR,
                      "%s: an interrupt aimed at the adapter's own registers "
                      "is ignored\n",
                      DEVICE(s)->id ?: TYPE_STAGHORN);
        return;
    }
    if (!staghorn_enter_alone(s, 0)) {
        keep(s, &w);
        return;
    }
    staghorn_cpus_sync(s);
    staghorn_catch_up(s);
    obey(s, &w);
    staghorn_turn(s);
    staghorn_leave(s);
}

void staghorn_owe(StaghornState *s, unsigned due)
{
    s->due |= due;
    if (!calls.entries && runstate_is_running()) {
        qemu_bh_schedule(s->bh);
    }
}

void staghorn_reset_soon(StaghornState *s)
{
    s->raised = s->sent = 0;
    g_array_set_size(s->late, 0);
    s->due &= ~(STAGHORN_DUE_WRITES | STAGHORN_DUE_BREAK);
    if (calls.cores) {
        s->due |= STAGHORN_DUE_RESET;
    } else {
        staghorn_reset_core(s);
    }
}

/* The machine continues: executes what was deferred while it was stopped. */
static void run_state_changed(void *opaque, bool running, RunState state)
{
    StaghornState *s;

    if (running) {
        QLIST_FOREACH(s, &calls.adapters, next) {
            qemu_bh_schedule(s->bh);
        }
    }
}

void staghorn_calls_init(StaghornState *s)
{
    s->late = new_writes();
    if (!calls.run_state) {
        calls.run_state = qemu_add_vm_change_state_handler(run_state_changed, NULL);
    }
}

void staghorn_calls_exit(StaghornState *s)
{
    if (s->late) {
        g_array_free(s->late, true);
        s->late = NULL;
    }
}
