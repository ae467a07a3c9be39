/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The printf-style fronts of the host's log and of its flow; see host.h. */
#include <stdarg.h>
#include <stdio.h>

#include "base/host.h"

enum {
    LINE_MAX_OCTETS = 320,
};

void sg_log(const struct sg_host *host, enum sg_log_class cls, const char *fmt, ...)
{
    char line[LINE_MAX_OCTETS];
    va_list ap;

    if (!host->ops->log_enabled(host->opaque, cls)) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    host->ops->log(host->opaque, cls, line);
}

void sg_flow(const struct sg_host *host, const char *fmt, ...)
{
    char line[LINE_MAX_OCTETS];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    host->ops->flow(host->opaque, line);
}
