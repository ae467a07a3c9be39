/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: the properties that make media fail, and the parsers of all properties.
 *
 *   RANGE   [MEMDEV@]ADDRESS+LENGTH: an offset in an NVDIMM, or an address of the machine
 *   lists   are separated by colons
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/util.h"
#include "qemu/cutils.h"
#include "domain_object.h"
#include "recorder.h"

/* ---- parsing ---- */

bool staghorn_parse_bool(const char *name, const char *text, bool *value, Error **errp)
{
    return qapi_bool_parse(name, text, value, errp);
}

bool staghorn_parse_number(const char *name, const char *text, uint64_t *value, Error **errp)
{
    if (qemu_strtou64(text, NULL, 0, value) < 0 || !g_ascii_isdigit(text[0])) {
        error_setg(errp, "%s: '%s' is not a number", name, text);
        return false;
    }
    return true;
}

/* Address of the machine. */
bool staghorn_parse_range(StaghornDomain *d, const char *name, const char *text, uint64_t *addr,
                          uint64_t *len, Error **errp)
{
    g_auto(GStrv) parts = NULL;
    const char *at = strchr(text, '@');
    StaghornDimm *dimm = NULL;
    uint64_t offset;

    if (at) {
        g_autofree char *id = g_strndup(text, at - text);

        dimm = staghorn_domain_dimm(d, id);
        if (!dimm) {
            error_setg(errp, "%s: the domain has no NVDIMM with memdev '%s'", name, id);
            return false;
        }
    }
    parts = g_strsplit(at ? at + 1 : text, "+", 2);
    if (g_strv_length(parts) != 2) {
        error_setg(errp, "%s: '%s' is not [MEMDEV@]ADDRESS+LENGTH", name, text);
        return false;
    }
    if (!staghorn_parse_number(name, parts[0], addr, errp) ||
        !staghorn_parse_number(name, parts[1], len, errp)) {
        return false;
    }
    if (dimm && (*addr >= dimm->size || *len > dimm->size - *addr)) {
        error_setg(errp, "%s: '%s' goes beyond the NVDIMM's %" PRIu64 " octets", name, text,
                   dimm->size);
        return false;
    }
    *addr += dimm ? dimm->base : 0;
    if (!*len || sg_persist_find(d->model, *addr, *len, &offset) == SG_PERSIST_NO_EXTENT) {
        error_setg(errp, "%s: '%s' does not lie within an NVDIMM of the domain", name, text);
        return false;
    }
    return true;
}

/* ---- faults ---- */

typedef bool SetFault(struct sg_persist_faults *faults, const char *name, const char *text,
                      Error **errp);

/* "VALUE" for all NVDIMMs, or a list of MEMDEV=VALUE; those not listed have none. */
static bool set_faults(StaghornDomain *d, const char *name, const char *text, SetFault *set,
                       Error **errp)
{
    g_auto(GStrv) items = g_strsplit(text, ":", 0);
    struct sg_persist_faults faults[SG_PERSIST_EXTENTS];

    for (unsigned i = 0; i < d->dimms; i++) {
        sg_persist_get_faults(d->model, d->dimm[i].extent, &faults[i]);
        set(&faults[i], name, "", NULL);
    }
    for (char **item = items; *item; item++) {
        char *equals = strchr(*item, '=');
        StaghornDimm *dimm = NULL;

        if (equals) {
            *equals = '\0';
            dimm = staghorn_domain_dimm(d, *item);
            if (!dimm) {
                error_setg(errp, "%s: the domain has no NVDIMM with memdev '%s'", name, *item);
                return false;
            }
        }
        for (unsigned i = 0; i < d->dimms; i++) {
            if ((!dimm || dimm == &d->dimm[i]) &&
                !set(&faults[i], name, equals ? equals + 1 : *item, errp)) {
                return false;
            }
        }
    }
    staghorn_map_write_back(d);
    staghorn_domain_enter(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        sg_persist_set_faults(d->model, d->dimm[i].extent, &faults[i]);
        if (staghorn_recording) {
            struct sg_trace_event e = sg_crash_faults_event(i, &faults[i]);

            staghorn_record(&e);
        }
    }
    staghorn_domain_leave(d);
    staghorn_map_update(d);
    return true;
}

static bool fault_read_only(struct sg_persist_faults *faults, const char *name, const char *text,
                            Error **errp)
{
    faults->read_only = false;
    return !*text || staghorn_parse_bool(name, text, &faults->read_only, errp);
}

static bool fault_wear_out(struct sg_persist_faults *faults, const char *name, const char *text,
                           Error **errp)
{
    faults->wears_out = *text && strcmp(text, "never");
    faults->lines_left = 0;
    return !faults->wears_out || staghorn_parse_number(name, text, &faults->lines_left, errp);
}

static bool fault_flush_fail(struct sg_persist_faults *faults, const char *name, const char *text,
                             Error **errp)
{
    uint64_t count = 0;

    faults->flush_fails_always = !strcmp(text, "always");
    faults->flush_fails = 0;
    if (!*text || !strcmp(text, "never") || !strcmp(text, "always")) {
        return true;
    }
    if (!strcmp(text, "once")) {
        count = 1;
    } else if (!staghorn_parse_number(name, text, &count, errp)) {
        return false;
    }
    faults->flush_fails = MIN(count, UINT32_MAX);
    return true;
}

bool staghorn_set_read_only(StaghornDomain *d, const char *text, Error **errp)
{
    return set_faults(d, "read-only", text, fault_read_only, errp);
}

bool staghorn_set_wear_out(StaghornDomain *d, const char *text, Error **errp)
{
    return set_faults(d, "wear-out", text, fault_wear_out, errp);
}

bool staghorn_set_flush_fail(StaghornDomain *d, const char *text, Error **errp)
{
    return set_faults(d, "flush-fail", text, fault_flush_fail, errp);
}

static void record_bad(enum sg_trace_kind kind, uint64_t addr, uint64_t len)
{
    struct sg_trace_event e = { .kind = kind, .addr = addr, .len = len };

    if (staghorn_recording) {
        e.arg = kind == SG_TRACE_MARK_BAD ? SG_PERSIST_UNCORRECTABLE : 0;
        staghorn_record(&e);
    }
}

static void clear_uncorrectable(struct sg_persist *model)
{
    struct sg_persist_bad bad;
    unsigned i = 0;

    while (sg_persist_bad_range(model, i, &bad)) {
        if (bad.kind == SG_PERSIST_UNCORRECTABLE) {
            sg_persist_clear_bad(model, bad.addr, bad.len);
            record_bad(SG_TRACE_CLEAR_BAD, bad.addr, bad.len);
            i = 0;
        } else {
            i++;
        }
    }
}

/* Sets the listed ranges and removes all others. */
bool staghorn_set_uncorrectable(StaghornDomain *d, const char *text, Error **errp)
{
    g_auto(GStrv) items = g_strsplit(text, ":", 0);
    uint64_t addr, len;
    bool room = true;

    if (g_strv_length(items) > SG_PERSIST_BAD_RANGES) {
        error_setg(errp, "uncorrectable: more than %d ranges", SG_PERSIST_BAD_RANGES);
        return false;
    }
    for (char **item = items; *item; item++) {
        if (!staghorn_parse_range(d, "uncorrectable", *item, &addr, &len, errp)) {
            return false;
        }
    }
    staghorn_domain_enter(d);
    clear_uncorrectable(d->model);
    for (char **item = items; *item; item++) {
        staghorn_parse_range(d, "uncorrectable", *item, &addr, &len, &error_abort);
        room = sg_persist_mark_bad(d->model, addr, len, SG_PERSIST_UNCORRECTABLE) && room;
        record_bad(SG_TRACE_MARK_BAD, addr, len);
    }
    staghorn_domain_leave(d);
    staghorn_bad_ranges_update(d);
    if (!room) {
        error_setg(errp, "uncorrectable: the domain has too many bad ranges");
    }
    return room;
}
