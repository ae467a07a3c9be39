/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the parse results. */
#include "wire/wire.h"

static const char *const names[] = {
    [SG_WIRE_OK] = "ok",
    [SG_WIRE_MORE] = "more octets needed",
    [SG_WIRE_SHORT] = "too short",
    [SG_WIRE_BAD_KEY] = "bad key",
    [SG_WIRE_WRONG_ROLE] = "wrong role",
    [SG_WIRE_BAD_LENGTH] = "bad length",
    [SG_WIRE_BAD_CRC] = "bad crc",
    [SG_WIRE_BAD_MARKER] = "bad marker",
};

const char *sg_wire_err_name(enum sg_wire_err err)
{
    return (size_t)err < SG_ARRAY_SIZE(names) ? names[err] : "unknown";
}
