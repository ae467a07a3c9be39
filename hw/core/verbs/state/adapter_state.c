/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations for all layers of verbs: request a turn, report a mistake of the guest.
 */
#include "verbs/state/adapter_state.h"

#include <stdarg.h>
#include <stdio.h>

void sg_adapter_kick(struct sg_adapter *a)
{
    if (!a->kicked) {
        a->kicked = true;
        if (!a->running) {
            a->host.ops->kick(a->host.opaque);
        }
    }
}

/* A rule may name a vector that this adapter does not have: such an interrupt is lost. */
static void raise_vector(struct sg_adapter *a, uint64_t vector)
{
    if (vector < a->config.vectors) {
        a->host.ops->raise(a->host.opaque, (unsigned)vector);
    }
}

static SG_COLD void raise_faulty(struct sg_adapter *a, unsigned vector)
{
    const uint64_t now = sg_adapter_now(a);
    struct sg_fault_act act = sg_faults_at(a->faults, SG_POINT_INTERRUPT, vector, now);

    switch (act.effect) {
    case SG_EFFECT_LOST:
        return;
    case SG_EFFECT_WRONG:
        raise_vector(a, act.value);
        return;
    case SG_EFFECT_LATE:
        if (sg_faults_delay(a->faults, vector, now + act.value)) {
            sg_adapter_kick(a); /* the host learns of the deadline */
            return;
        }
        break;
    default:
        break;
    }
    raise_vector(a, vector);
}

void sg_adapter_raise(struct sg_adapter *a, unsigned vector)
{
    if (sg_faulty(a)) {
        raise_faulty(a, vector);
    } else {
        a->host.ops->raise(a->host.opaque, vector);
    }
}

uint64_t sg_adapter_run_faults(struct sg_adapter *a)
{
    struct sg_fault_act act;

    while (sg_faults_take(a->faults, sg_adapter_now(a), &act)) {
        if (act.effect == SG_EFFECT_SPURIOUS) {
            raise_vector(a, act.value);
        } else if (a->host.ops->fault) {
            a->host.ops->fault(a->host.opaque, act.effect);
        }
    }
    return sg_faults_next(a->faults);
}

static void report(struct sg_adapter *a, enum sg_rule rule, struct sg_object o, const char *fmt,
                   va_list ap)
{
    if (sg_check_add(a->check, rule, o, fmt, ap)) {
        a->due |= SG_DUE_CHECK;
        sg_adapter_kick(a);
    }
}

void sg_guest_error(struct sg_adapter *a, enum sg_rule rule, struct sg_object o, const char *fmt,
                    ...)
{
    char line[200];
    va_list ap;

    a->stats.guest_errors++;
    if (sg_checking(a)) {
        va_start(ap, fmt);
        report(a, rule, o, fmt, ap);
        va_end(ap);
    }
    if (!a->host.ops->log_enabled(a->host.opaque, SG_LOG_GUEST_ERROR)) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    a->host.ops->log(a->host.opaque, SG_LOG_GUEST_ERROR, line);
}

void sg_check_found(struct sg_adapter *a, enum sg_rule rule, struct sg_object o, const char *fmt,
                    ...)
{
    va_list ap;

    va_start(ap, fmt);
    report(a, rule, o, fmt, ap);
    va_end(ap);
}

enum sg_rule sg_check_number_rule(const struct sg_adapter *a, enum sg_object_kind kind, uint32_t id,
                                  const void *object)
{
    if (object) {
        return SG_RULE_DB_PAGE;
    }
    return sg_checking(a) && sg_check_was(a->check, kind, id) ? SG_RULE_DB_GONE
                                                              : SG_RULE_DB_UNKNOWN;
}
