/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: power cuts.
 *
 * A cut has two steps.  First the instant: vCPUs stop, the model decides what the media keep, and
 * adapters power off: they send nothing and write no memory any more (host.c, netport.c), so that
 * their connections vanish silently.  Then QEMU resets the machine from its main loop.  At the
 * beginning of that reset visible memory becomes equal to the media (or stays, where all of it
 * survives: domain_map.c) and all other memory becomes noise; at its end power returns.
 *
 * An armed cut comes due in the middle of an adapter's work or of a vCPU's store.  The model
 * freezes at once and the adapters power off; the rest follows from a bottom half.  vCPUs finish
 * their present translation blocks meanwhile and run no others.
 *
 * Reports are written after power has returned, because nobody waits for them.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "hw/core/cpu.h"
#include "hw/pci-host/q35.h"
#include "hw/resettable.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "domain_object.h"
#include "recorder.h"
#include "staghorn.h"

static int64_t us_since(int64_t start_ns)
{
    return (get_clock() - start_ns) / 1000;
}

void staghorn_domain_cut(StaghornDomain *d, const struct sg_persist_policy *policy)
{
    int64_t start = get_clock(), at;

    qatomic_set(&d->powered_off, true);
    staghorn_power_lost();
    pause_all_vcpus();
    d->cut_start_ns = start;
    d->times = (StaghornCutTimes){ .stop = us_since(start) };
    sg_persist_report_free(d->report);
    at = get_clock();
    staghorn_pages_sync(d);
    d->report = sg_persist_cut(staghorn_domain_enter(d), policy);
    if (staghorn_recording) {
        struct sg_trace_event e = sg_crash_cut_event(policy);

        staghorn_record(&e);
    }
    staghorn_domain_leave(d);
    d->times.model = us_since(at);
    d->cuts++;
    d->cutting = true;
    /* This cause, because -no-reboot makes others end QEMU. */
    qemu_system_reset_request(SHUTDOWN_CAUSE_SUBSYSTEM_RESET);
}

/* ---- armed cuts ---- */

/* On any thread, with the model's lock held. */
void staghorn_domain_cut_due(void *opaque)
{
    StaghornDomain *d = opaque;
    CPUState *cpu;

    qatomic_set(&d->powered_off, true);
    if (staghorn_recording) {
        staghorn_record_due();
    }
    /* The first part of pause_all_vcpus(), which would wait for them. */
    RCU_READ_LOCK_GUARD();
    CPU_FOREACH(cpu) {
        cpu->stop = true;
        cpu_exit(cpu);
    }
    qemu_bh_schedule(d->cut_bh);
}

static void armed_cut(void *opaque)
{
    StaghornDomain *d = opaque;
    struct sg_persist_policy policy;

    if (d->cutting || !qatomic_read(&d->powered_off)) { /* a command was faster */
        return;
    }
    staghorn_domain_parse_policy(d, "", &policy, &error_abort);
    staghorn_domain_cut(d, &policy);
}

/* ---- the reset ---- */

/*
 * QEMU's q35 keeps its shadow of the firmware in ordinary memory over a reset, where a starting
 * processor would find noise now.  Its own reset, which follows, respects the registers.
 */
static void unmap_shadow(void)
{
    Object *mch = object_resolve_path_type("", TYPE_MCH_PCI_DEVICE, NULL);

    if (mch) {
        memset(PCI_DEVICE(mch)->config + MCH_HOST_BRIDGE_PAM0, 0, MCH_HOST_BRIDGE_PAM_SIZE);
    }
}

static void reset_enter(Object *object, ResetType type)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    int64_t at = get_clock();

    if (!d->cutting) {
        return;
    }
    for (unsigned i = 0; i < d->dimms && !d->report->stays; i++) {
        staghorn_pages_discard(&d->dimm[i]);
    }
    d->times.discard = us_since(at);
    at = get_clock();
    if (staghorn_boot_resumes(d)) {
        staghorn_ram_clear();
    } else {
        staghorn_ram_scramble(d->seed + d->cuts);
    }
    unmap_shadow();
    d->times.clear = us_since(at);
    d->times.reset = -us_since(d->cut_start_ns);
}

static void write_file(const char *path, const char *text)
{
    g_autofree char *next = g_strconcat(path, ".new", NULL);
    GError *error = NULL;

    if (!g_file_set_contents(next, text, -1, &error)) {
        warn_report("report-file: %s", error->message);
        g_error_free(error);
    } else if (rename(next, path)) {
        warn_report("report-file %s: %s", path, strerror(errno));
    }
}

static char *report_text(StaghornDomain *d, bool json)
{
    GString *out = g_string_new("");

    if (!d->report) {
        g_string_append(out, json ? "null" : "the power has not been cut\n");
    } else if (json) {
        sg_persist_report_json(d->report, out);
    } else {
        sg_persist_report_text(d->report, out);
    }
    return g_string_free(out, FALSE);
}

static void write_report(StaghornDomain *d)
{
    const char *path = staghorn_domain_prop(d, "report-file");
    g_autofree char *text_path = g_strconcat(path, ".txt", NULL);
    g_autofree char *text = NULL, *json = NULL;

    if (*path) {
        text = report_text(d, false);
        json = report_text(d, true);
        write_file(text_path, text);
        write_file(path, json);
    }
}

static void reset_exit(Object *object, ResetType type)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    if (!d->cutting) {
        return;
    }
    staghorn_domain_enter(d);
    sg_persist_restart(d->model);
    if (staghorn_recording) {
        staghorn_record(&(struct sg_trace_event){ .kind = SG_TRACE_RESTART });
    }
    staghorn_domain_leave(d);
    d->cutting = false;
    qatomic_set(&d->powered_off, false);
    d->times.all = us_since(d->cut_start_ns);
    d->times.reset += d->times.all;
    if (d->report->stays) {
        staghorn_map_owe(d);
    }
    staghorn_map_update(d);
    write_report(d);
    if (staghorn_boot_resumes(d)) {
        staghorn_boot_after_cut(d);
    }
}

/* ---- actions and results as properties ---- */

static void set_cut(Object *object, const char *value, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    struct sg_persist_policy policy;

    if (!d->model) {
        error_setg(errp, "cut: the machine is not there yet");
        return;
    }
    if (qatomic_read(&d->powered_off)) {
        error_setg(errp, "cut: the power is being cut already");
        return;
    }
    if (staghorn_domain_parse_policy(d, value, &policy, errp)) {
        staghorn_domain_cut(d, &policy);
    }
}

/* Everything visible reaches the media, as at an orderly end. */
static void set_persist(Object *object, bool value, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);

    if (!d->model || qatomic_read(&d->powered_off)) {
        error_setg(errp, "persist: the machine has no power");
        return;
    }
    if (value) {
        staghorn_domain_orderly(d);
    }
}

static void set_export_log(Object *object, const char *value, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    g_autoptr(GByteArray) log = g_byte_array_new();
    GError *error = NULL;

    if (!d->model) {
        error_setg(errp, "export-log: the machine is not there yet");
        return;
    }
    staghorn_domain_enter(d);
    sg_persist_log_export(d->model, log);
    staghorn_domain_leave(d);
    if (!g_file_set_contents(value, (const char *)log->data, log->len, &error)) {
        error_setg(errp, "export-log: %s", error->message);
        g_error_free(error);
    }
}

static char *get_report(Object *object, Error **errp)
{
    return report_text(STAGHORN_DOMAIN(object), false);
}

static char *get_report_json(Object *object, Error **errp)
{
    return report_text(STAGHORN_DOMAIN(object), true);
}

static void put_times(QDict *state, const StaghornCutTimes *times)
{
    qdict_put_int(state, "stop-us", times->stop);
    qdict_put_int(state, "model-us", times->model);
    qdict_put_int(state, "discard-us", times->discard);
    qdict_put_int(state, "clear-us", times->clear);
    qdict_put_int(state, "reset-us", times->reset);
    qdict_put_int(state, "cut-us", times->all);
}

static char *get_state(Object *object, Error **errp)
{
    StaghornDomain *d = STAGHORN_DOMAIN(object);
    g_autoptr(QDict) state = qdict_new();
    g_autoptr(GString) json = NULL;
    struct sg_persist_stats stats = { 0 };
    QDict *stages = qdict_new(), *dimms = qdict_new();

    if (d->model) {
        staghorn_domain_enter(d);
        sg_persist_stats(d->model, &stats);
        staghorn_domain_leave(d);
    }
    for (int i = 0; i < SG_PERSIST_STAGES; i++) {
        qdict_put_int(stages, sg_persist_stage_name(i), stats.stage[i]);
    }
    for (unsigned i = 0; i < d->dimms; i++) {
        QDict *dimm = qdict_new();

        qdict_put_int(dimm, "base", d->dimm[i].base);
        qdict_put_int(dimm, "size", d->dimm[i].size);
        qdict_put(dimms, d->dimm[i].name, dimm);
    }
    qdict_put_bool(state, "power", !qatomic_read(&d->powered_off));
    qdict_put_int(state, "cuts", d->cuts);
    qdict_put_int(state, "resumed", staghorn_boot_resumed(d));
    if (sg_persist_doubt(&d->config)) {
        qdict_put_str(state, "not-trusted", sg_persist_doubt(&d->config));
    }
    qdict_put_int(state, "events", stats.events);
    qdict_put_int(state, "flushes", stats.flushes);
    qdict_put_int(state, "flushes-failed", stats.flushes_failed);
    qdict_put_int(state, "lines-persisted", stats.lines_persisted);
    qdict_put_int(state, "media-refusals", stats.media_refusals);
    qdict_put(state, "stages", stages);
    qdict_put(state, "nvdimms", dimms);
    if (d->cuts) {
        put_times(state, &d->times);
    }
    json = qobject_to_json(QOBJECT(state));
    return g_strdup(json->str);
}

static ResettableState *get_reset_state(Object *object)
{
    return &STAGHORN_DOMAIN(object)->reset_state;
}

void staghorn_domain_class_cuts(ObjectClass *klass)
{
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    rc->get_state = get_reset_state;
    rc->phases.enter = reset_enter;
    rc->phases.exit = reset_exit;
    object_class_property_add_str(klass, "cut", NULL, set_cut);
    object_class_property_set_description(klass, "cut", "Cuts the machine's power; a policy or ''");
    object_class_property_add_bool(klass, "persist", NULL, set_persist);
    object_class_property_set_description(klass, "persist", "Writes all that is visible to media");
    object_class_property_add_str(klass, "export-log", NULL, set_export_log);
    object_class_property_set_description(klass, "export-log", "Writes the log to a file");
    object_class_property_add_str(klass, "report", get_report, NULL);
    object_class_property_add_str(klass, "report-json", get_report_json, NULL);
    object_class_property_add_str(klass, "state", get_state, NULL);
}

void staghorn_domain_init_cuts(StaghornDomain *d)
{
    d->cut_bh = qemu_bh_new(armed_cut, d);
}

void staghorn_domain_free_cuts(StaghornDomain *d)
{
    qemu_bh_delete(d->cut_bh);
    sg_persist_report_free(d->report);
}
