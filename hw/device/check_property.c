/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the driver checker for the machine's owner.  Its reports are the property
 * "check-reports", an array of JSON (docs/manual/checker.md).
 */
#include "qemu/osdep.h"
#include "staghorn.h"

bool staghorn_check_parse(const char *text, uint8_t *mode)
{
    static const char *const names[SG_CHECK_MODES] = {
        [SG_CHECK_OFF] = "off",
        [SG_CHECK_WARN] = "warn",
        [SG_CHECK_STRICT] = "strict",
    };

    for (unsigned i = 0; i < SG_CHECK_MODES; i++) {
        if (!strcmp(text, names[i])) {
            *mode = i;
            return true;
        }
    }
    return false;
}

/* At most SG_CHECK_REPORTS lines. */
static char *get_reports(Object *obj, Error **errp)
{
    StaghornState *s = STAGHORN(obj);
    const struct sg_check *c = s->adapter ? sg_adapter_check(s->adapter) : NULL;
    g_autofree char *line = g_malloc(SG_CHECK_JSON_MAX);
    GString *all = g_string_new("[");
    uint64_t first = 0, end = 0;

    if (c) {
        sg_check_range(c, &first, &end);
    }
    for (uint64_t n = first; n < end; n++) {
        sg_check_json(sg_check_get(c, n), line, SG_CHECK_JSON_MAX);
        g_string_append_printf(all, "%s\n%s", n == first ? "" : ",", line);
    }
    g_string_append(all, "]");
    return g_string_free(all, false);
}

void staghorn_check_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "check-reports", get_reports, NULL);
}
