/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A domain's settings as the text that a trace has: lines NAME=VALUE with the names of QEMU's
 * properties, on and off for switches.
 */
#ifndef SG_CRASH_SETTING_TEXT_H
#define SG_CRASH_SETTING_TEXT_H

#include <glib.h>

#include "persist/persist.h"

/* Appends all of the configuration, and of the limits what decides outcomes if not NULL. */
void sg_crash_settings_text(const struct sg_persist_config *config,
                            const struct sg_persist_limits *limits, GString *out);
/*
 * What the text does not name stays as it is.  limits NULL: their names are accepted and ignored.
 * NULL, or a static text that says what is wrong; the values are then undefined.
 */
const char *sg_crash_settings_parse(const char *text, struct sg_persist_config *config,
                                    struct sg_persist_limits *limits);

#endif
