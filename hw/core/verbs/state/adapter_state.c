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

void sg_guest_error(struct sg_adapter *a, const char *fmt, ...)
{
    char line[200];
    va_list ap;

    a->stats.guest_errors++;
    if (!a->host.ops->log_enabled(a->host.opaque, SG_LOG_GUEST_ERROR)) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    a->host.ops->log(a->host.opaque, SG_LOG_GUEST_ERROR, line);
}
