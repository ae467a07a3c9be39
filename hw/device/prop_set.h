/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties that remember whether they were set explicitly.
 */
#ifndef SG_DEVICE_PROP_SET_H
#define SG_DEVICE_PROP_SET_H

#include "qemu/osdep.h"
#include "hw/qdev-properties.h"

/* As QEMU's types, but each set is recorded, so defaults must not go through the setter. */
extern PropertyInfo recorded_bool, recorded_uint8, recorded_uint32, recorded_uint64,
    recorded_string;

#define DEFINE_PROP_RECORDED(_name, _state, _field, _type, _ctype) \
    DEFINE_PROP(_name, _state, _field, recorded_##_type, _ctype)

/* For class init, before the properties are set. */
void staghorn_prop_set_init(void);
/* Was the property set on the command line, by device_add or by -global? */
bool staghorn_prop_is_set(void *state, const char *property);

#endif
