/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: faults on demand for the machine's owner.  The property "faults" is the text of the
 * rules, "faults-state" what has become of them, as JSON (docs/manual/faults.md).
 *
 * The rules exist beside the core: they may be set before there is one, and outlive it.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "machine_clock.h"
#include "staghorn.h"

void staghorn_faults_apply(StaghornState *s)
{
    staghorn_faults_memory(s, sg_faults_has(s->faults, SG_POINT_DMA));
    sg_adapter_set_faults(s->adapter, s->faults);
}

/* As one call of the core; a machine that is stopped learns of its rules when it continues. */
static void apply_now(StaghornState *s)
{
    if (!s->adapter || !staghorn_enter_alone(s, STAGHORN_DUE_FAULTS)) {
        return;
    }
    staghorn_catch_up(s);
    staghorn_faults_apply(s);
    staghorn_turn(s);
    staghorn_leave(s);
}

static void set_faults(Object *obj, const char *text, Error **errp)
{
    StaghornState *s = STAGHORN(obj);
    char why[256];

    if (!s->faults) {
        s->faults = sg_faults_new(&sg_adapter_fault_words);
    }
    if (!sg_faults_set(s->faults, text, staghorn_clock_ns(), why, sizeof(why))) {
        error_setg(errp, "%s", why);
        return;
    }
    g_free(s->faults_text);
    s->faults_text = g_strdup(text);
    apply_now(s);
}

bool staghorn_is_unreachable(const StaghornState *s)
{
    return s->faults && sg_faults_unreachable(s->faults, staghorn_clock_ns());
}

static char *get_faults(Object *obj, Error **errp)
{
    StaghornState *s = STAGHORN(obj);

    return g_strdup(s->faults_text ? s->faults_text : "");
}

static char *get_state(Object *obj, Error **errp)
{
    StaghornState *s = STAGHORN(obj);

    return s->faults ? sg_faults_json(s->faults) : g_strdup("{\"rules\": [], \"late\": 0}");
}

void staghorn_faults_finalize(StaghornState *s)
{
    sg_faults_free(s->faults);
    g_free(s->faults_text);
}

void staghorn_faults_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "faults", get_faults, set_faults);
    object_class_property_set_description(klass, "faults", "rules by which the adapter misbehaves");
    object_class_property_add_str(klass, "faults-state", get_state, NULL);
}
