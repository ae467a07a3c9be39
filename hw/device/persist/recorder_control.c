/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: begin and end of a recording.
 *
 * At the beginning vCPUs stop, everything that is on its way reaches the media, and the domain is
 * set so that data move on as early as they may: then the order of events is the order in which
 * memory changed.  (Laziness is added when a trace is explored.)  Nothing of it is random, so that
 * the replay of a trace leaves the media that the machine left.  The end puts the domain's
 * configuration back.
 *
 * A machine that ends, in whatever way except a kill, completes the trace.  A machine that is put
 * into another state does not: what was recorded before is not how it came there.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-staghorn.h"
#include "qemu/accel.h"
#include "qemu/guest-random.h"
#include "qemu/timer.h"
#include "hw/boards.h"
#include "hw/qdev-core.h"
#include "migration/blocker.h"
#include "system/cpus.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "crash/setting_text.h"
#include "recorder_impl.h"
#include "staghorn/regs.h"

enum { FLUSH_MS = 1000 }; /* what is recorded is in the file that soon */

static struct {
    char *path;  /* of the present or last recording */
    char *error; /* of the last one, once it has ended */
    StaghornRecordState state;
    uint64_t events, octets; /* of the last one, likewise */
    StaghornTraceFile *file;
    struct sg_trace_writer *writer;
    QEMUTimer *timer;
    Error *blocker;
    uint8_t machine[SG_TRACE_ID]; /* of this process */
    bool known;                   /* to the machine: handlers are there */
} control;

static StaghornDomain *domain_with_memory(void)
{
    StaghornDomain *d = staghorn_domain();

    return d && d->model ? d : NULL;
}

/* ---- Header ---- */

static bool parse_id(const char *text, uint8_t id[SG_TRACE_ID], Error **errp)
{
    for (unsigned i = 0; i < 2 * SG_TRACE_ID; i++) {
        int digit = g_ascii_xdigit_value(text[i]);

        if (digit < 0) {
            break;
        }
        id[i / 2] = id[i / 2] << 4 | digit;
        if (i == 2 * SG_TRACE_ID - 1 && !text[i + 1]) {
            return true;
        }
    }
    error_setg(errp, "run-id: '%s' is not %d hexadecimal digits", text, 2 * SG_TRACE_ID);
    return false;
}

static char *platform_text(const StaghornDomain *d)
{
    g_autofree char *told =
        object_property_find(OBJECT(current_machine), "nvdimm-persistence")
            ? object_property_get_str(OBJECT(current_machine), "nvdimm-persistence", NULL)
            : NULL;

    return g_strdup_printf("persistence-domain=%s\nflush-hints=off\ncpu-tracking=%s\n"
                           "accelerator=%s\nvcpus=%u\n",
                           !d                             ? "none"
                           : !g_strcmp0(told, "cpu")      ? "cpu-cache"
                           : !g_strcmp0(told, "mem-ctrl") ? "memory-controller"
                                                          : "not-told",
                           d && d->config.cpu_tracking ? "on" : "off", current_accel_name(),
                           current_machine->smp.cpus);
}

/* The file begins: header, content. */
static bool begin_file(StaghornDomain *d, const uint8_t run[SG_TRACE_ID], const char *machine)
{
    g_autofree char *platform = platform_text(d);
    g_autofree char *versions = g_strdup_printf("qemu=%s\nstaghorn=%d.%d\n", QEMU_VERSION,
                                                SG_VERSION_MAJOR, SG_VERSION_MINOR);
    g_autoptr(GString) config = g_string_new("");
    struct sg_trace_header header = {
        .text = { [SG_TRACE_MACHINE] = machine,
                  [SG_TRACE_PLATFORM] = platform,
                  [SG_TRACE_VERSIONS] = versions },
    };

    memcpy(header.run, run, SG_TRACE_ID);
    memcpy(header.machine, control.machine, SG_TRACE_ID);
    if (d) {
        sg_crash_settings_text(sg_persist_config(d->model), &d->limits, config);
        header.text[SG_TRACE_CONFIG] = config->str;
        staghorn_content_extents(d, &header);
    }
    control.writer = sg_trace_writer_new(&header, staghorn_trace_file_append, control.file);
    return (!d || staghorn_content_write(d, control.writer)) &&
           sg_trace_writer_start(control.writer, NULL) && !staghorn_trace_file_wait(control.file);
}

/* ---- End ---- */

static void stop_timer(void)
{
    timer_free(control.timer);
    control.timer = NULL;
}

/* vCPUs are stopped.  whole: the trace gets its end. */
static void end(StaghornDomain *d, bool whole)
{
    uint8_t hash[SG_PERSIST_EXTENTS][SG_TRACE_HASH];
    const char *wrong;
    char *error;

    staghorn_taps_switch(false);
    staghorn_recording = false;
    staghorn_recorder_flush();
    wrong = staghorn_recorder_count(&control.events, &control.octets);
    staghorn_recorder_close();
    if (!wrong && whole) {
        if (d) {
            staghorn_content_hash(d, hash);
        }
        sg_trace_writer_end(control.writer, hash);
        control.octets = sg_trace_writer_octets(control.writer);
    }
    error = staghorn_trace_file_close(control.file, true);
    if (!error && wrong) {
        error = g_strdup(wrong);
    } else if (!error && !whole) {
        error = g_strdup("the machine was put into another state");
    }
    control.error = error;
    control.state = error ? STAGHORN_RECORD_STATE_FAILED : STAGHORN_RECORD_STATE_COMPLETE;
    sg_trace_writer_free(control.writer);
    control.writer = NULL;
    control.file = NULL;
    staghorn_loads_end();
    stop_timer();
    migrate_del_blocker(&control.blocker);
    if (staghorn_record_switched) {
        staghorn_record_switched(false);
    }
    if (d) {
        staghorn_domain_set_recording(d, false, NULL);
    }
}

void staghorn_record_machine_ends(void)
{
    if (staghorn_recording) {
        pause_all_vcpus();
        end(domain_with_memory(), true);
    }
}

static void machine_ends(Notifier *notifier, void *opaque)
{
    if (!staghorn_domain()) {
        staghorn_record_machine_ends();
    }
}

static void machine_resets(void *opaque)
{
    static const struct sg_trace_event reset = { .kind = SG_TRACE_RESET };
    StaghornDomain *d = domain_with_memory();

    if (!staghorn_recording || (d && d->cutting)) {
        return;
    }
    if (d) {
        staghorn_domain_enter(d);
    }
    staghorn_record(&reset);
    if (d) {
        staghorn_domain_leave(d);
    }
}

static void state_changes(void *opaque, bool running, RunState state)
{
    if (staghorn_recording && state == RUN_STATE_RESTORE_VM) {
        end(domain_with_memory(), false);
    }
}

/* For the rest of this process. */
static void meet_machine(void)
{
    static Notifier shutdown = { .notify = machine_ends };

    if (!control.known) {
        control.known = true;
        qemu_guest_getrandom_nofail(control.machine, sizeof(control.machine));
        qemu_register_shutdown_notifier(&shutdown);
        qemu_register_reset(machine_resets, NULL);
        qemu_add_vm_change_state_handler(state_changes, NULL);
    }
}

/* ---- Begin ---- */

static void flush_sometimes(void *opaque)
{
    staghorn_recorder_flush();
    timer_mod(control.timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + FLUSH_MS);
}

/* Events follow. */
static void begin_events(StaghornDomain *d)
{
    staghorn_recorder_open(control.writer);
    staghorn_loads_begin(d);
    control.state = STAGHORN_RECORD_STATE_RUNNING;
    staghorn_recording = true;
    if (d) {
        staghorn_content_faults(d);
    }
    staghorn_taps_switch(true);
    if (staghorn_record_switched) {
        staghorn_record_switched(true);
    }
    control.timer = timer_new_ms(QEMU_CLOCK_REALTIME, flush_sometimes, NULL);
    flush_sometimes(NULL);
}

/* vCPUs are stopped. */
static bool begin(StaghornDomain *d, const uint8_t run[SG_TRACE_ID], const char *machine,
                  Error **errp)
{
    char *error;

    if (d && qatomic_read(&d->powered_off)) {
        error_setg(errp, "the machine's power was cut, and is not back yet");
        return false;
    }
    if (d && !staghorn_domain_set_recording(d, true, errp)) {
        error_prepend(errp, "the machine cannot be recorded: ");
        return false;
    }
    if (!begin_file(d, run, machine)) {
        sg_trace_writer_free(control.writer);
        control.writer = NULL;
        error = staghorn_trace_file_close(control.file, false);
        error_setg(errp, "%s", error ? error : "the trace takes nothing");
        g_free(error);
        control.file = NULL;
        if (d) {
            staghorn_domain_set_recording(d, false, NULL);
        }
        return false;
    }
    begin_events(d);
    return true;
}

static bool may_begin(const char *machine, Error **errp)
{
    if (staghorn_recording) {
        error_setg(errp, "a recording runs already, to %s", control.path);
    } else if (!phase_check(PHASE_MACHINE_READY) || runstate_check(RUN_STATE_INMIGRATE)) {
        error_setg(errp, "the machine is not there yet");
    } else if (!*machine || strlen(machine) > SG_TRACE_TEXT_MAX ||
               !sg_trace_is_text((const uint8_t *)machine, strlen(machine))) {
        error_setg(errp, "machine: '%s' is not a name", machine);
    } else {
        return true;
    }
    return false;
}

void qmp_staghorn_record_start(const char *file, const char *run_id, const char *machine,
                               Error **errp)
{
    bool running = runstate_is_running(), begun;
    StaghornDomain *d = domain_with_memory();
    uint8_t run[SG_TRACE_ID];

    if (!may_begin(machine, errp) || !parse_id(run_id, run, errp)) {
        return;
    }
    meet_machine();
    error_setg(&control.blocker, "a recording of the machine runs");
    if (migrate_add_blocker(&control.blocker, errp) < 0) {
        return;
    }
    control.file = staghorn_trace_file_new(file, errp);
    if (!control.file) {
        migrate_del_blocker(&control.blocker);
        return;
    }
    if (running) {
        pause_all_vcpus();
    }
    begun = begin(d, run, machine, errp);
    if (begun) {
        g_free(control.path);
        g_free(control.error);
        control.path = g_strdup(file);
        control.error = NULL;
    } else {
        migrate_del_blocker(&control.blocker);
    }
    if (running && !(d && qatomic_read(&d->powered_off))) {
        resume_all_vcpus();
    }
}

/* ---- Results ---- */

StaghornRecord *qmp_query_staghorn_record(Error **errp)
{
    StaghornRecord *r = g_new0(StaghornRecord, 1);
    const char *error = control.error, *late = NULL;

    r->state = control.state;
    r->events = control.events;
    r->octets = control.octets;
    if (staghorn_recording) {
        error = staghorn_recorder_count(&r->events, &r->octets);
        late = staghorn_trace_file_error(control.file);
    }
    if (late || (staghorn_recording && error)) {
        r->state = STAGHORN_RECORD_STATE_FAILED;
    }
    r->file = g_strdup(control.path);
    r->error = g_strdup(late ? late : error);
    return r;
}

StaghornRecord *qmp_staghorn_record_stop(Error **errp)
{
    bool running = runstate_is_running();
    StaghornDomain *d = domain_with_memory();

    if (!staghorn_recording) {
        error_setg(errp, "no recording runs");
        return NULL;
    }
    if (running) {
        pause_all_vcpus();
    }
    end(d, true);
    if (running && !(d && qatomic_read(&d->powered_off))) {
        resume_all_vcpus();
    }
    return qmp_query_staghorn_record(errp);
}
