/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: which properties were set explicitly.
 *
 * An explicit setting takes precedence over a firmware's profile, even if its value is the default.
 * QEMU does not record explicit settings, so the setters do: each records its property's name.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "given.h"
#include "staghorn.h"

PropertyInfo given_bool, given_uint8, given_uint32, given_uint64, given_string;

static void set_noted(const PropertyInfo *type, Object *obj, Visitor *v, const char *name,
                      void *opaque, Error **errp)
{
    ERRP_GUARD();
    StaghornState *s = STAGHORN(obj);

    type->set(obj, v, name, opaque, errp);
    if (!*errp) {
        s->given = g_slist_prepend(s->given, (void *)((const Property *)opaque)->name);
    }
}

#define NOTED(type) \
    static void set_##type(Object *obj, Visitor *v, const char *name, void *opaque, \
                           Error **errp) \
    { \
        set_noted(&qdev_prop_##type, obj, v, name, opaque, errp); \
    }

NOTED(bool)
NOTED(uint8)
NOTED(uint32)
NOTED(uint64)
NOTED(string)

void staghorn_given_types(void)
{
#define TYPE(type) \
    given_##type = qdev_prop_##type; \
    given_##type.set = set_##type
    TYPE(bool);
    TYPE(uint8);
    TYPE(uint32);
    TYPE(uint64);
    TYPE(string);
#undef TYPE
}

bool staghorn_given(void *opaque, const char *property)
{
    StaghornState *s = opaque;

    return g_slist_find_custom(s->given, property, (GCompareFunc)strcmp);
}
