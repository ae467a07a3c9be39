/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: which properties were set explicitly.
 *
 * An explicit setting takes precedence over a firmware's profile, even if its value is the default.
 * QEMU does not record explicit settings, so the setters do: each records its property's name.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "prop_set.h"
#include "staghorn.h"

PropertyInfo recorded_bool, recorded_uint8, recorded_uint32, recorded_uint64, recorded_string;

static void set_recorded(const PropertyInfo *type, Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    ERRP_GUARD();
    StaghornState *s = STAGHORN(obj);

    type->set(obj, v, name, opaque, errp);
    if (!*errp) {
        s->props_set = g_slist_prepend(s->props_set, (void *)((const Property *)opaque)->name);
    }
}

#define RECORDED(type)                                                                            \
    static void set_##type(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) \
    {                                                                                             \
        set_recorded(&qdev_prop_##type, obj, v, name, opaque, errp);                              \
    }

RECORDED(bool)
RECORDED(uint8)
RECORDED(uint32)
RECORDED(uint64)
RECORDED(string)

void staghorn_prop_set_init(void)
{
#define TYPE(type)                      \
    recorded_##type = qdev_prop_##type; \
    recorded_##type.set = set_##type
    TYPE(bool);
    TYPE(uint8);
    TYPE(uint32);
    TYPE(uint64);
    TYPE(string);
#undef TYPE
}

bool staghorn_prop_is_set(void *opaque, const char *property)
{
    StaghornState *s = opaque;

    return g_slist_find_custom(s->props_set, property, (GCompareFunc)strcmp);
}
