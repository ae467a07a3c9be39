/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties that remember whether they were set explicitly.
 */
#ifndef SG_DEVICE_GIVEN_H
#define SG_DEVICE_GIVEN_H

#include "qemu/osdep.h"
#include "hw/qdev-properties.h"

/* As QEMU's types, but each set is recorded, so defaults must not go through the setter. */
extern PropertyInfo given_bool, given_uint8, given_uint32, given_uint64, given_string;

#define DEFINE_GIVEN(_name, _state, _field, _type, _ctype) \
    DEFINE_PROP(_name, _state, _field, given_##_type, _ctype)

/* For class init, before the properties are set. */
void staghorn_given_types(void);
/* Was the property set on the command line, by device_add or by -global? */
bool staghorn_given(void *state, const char *property);

#endif
