/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers, times, statuses, commands.
 */
#include "faults/fault_values.h"

#include <errno.h>

#include "base/bytes.h"
#include "staghorn/admin.h"

static const char *const value_texts[] = {
    [VALUE_NONE] = "no value",
    [VALUE_STATUS] = "a status such as ENOMEM",
    [VALUE_TIME] = "a time such as 5ms or 2s, up to 3600s",
    [VALUE_VECTOR] = "a vector, 0 to 63",
    [VALUE_COMMAND] = "a command such as REG_MR, or an opcode",
    [VALUE_OFFSET] = "the offset of a register, such as 0x0c",
    [VALUE_COUNT] = "a number from 1 on",
    [VALUE_TIMES] = "a number from 1 on, or always",
    [VALUE_SEED] = "a number",
    [VALUE_DIRECTION] = "read or write",
    [VALUE_NUMBER] = "the number of an object",
};

static const char *const statuses[] = {
    [SG_EOPCODE] = "EOPCODE", [SG_EINVAL] = "EINVAL",     [SG_ENOENT] = "ENOENT",
    [SG_ENOMEM] = "ENOMEM",   [SG_EBUSY] = "EBUSY",       [SG_EFAULT] = "EFAULT",
    [SG_ESTATE] = "ESTATE",   [SG_EADDR] = "EADDR",       [SG_EPERM] = "EPERM",
    [SG_ENOTSUP] = "ENOTSUP", [SG_ENOTPMEM] = "ENOTPMEM", [SG_ENOVERIFY] = "ENOVERIFY",
};

const char *sg_fault_value_text(unsigned kind)
{
    return value_texts[kind];
}

/* Digits, or 0x and digits, then *end. */
static bool parse_number(const char *text, uint64_t *value, const char **end)
{
    char *rest;

    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *value = strtoull(text, &rest, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10);
    *end = rest;
    return !errno;
}

static bool parse_time(const char *text, uint64_t *value)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
    const char *end;
    size_t i;

    if (!parse_number(text, value, &end)) {
        return false;
    }
    for (i = 0; i < SG_ARRAY_SIZE(units); i++) {
        if (!strcmp(end, units[i].name) && *value <= SG_FAULT_TIME_MAX / units[i].ns) {
            *value *= units[i].ns;
            return true;
        }
    }
    return false;
}

static bool parse_status(const char *text, uint64_t *value)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(statuses); i++) {
        if (statuses[i] && !strcmp(text, statuses[i])) {
            *value = i;
            return true;
        }
    }
    return false;
}

static bool parse_command(const struct sg_fault_words *words, const char *text, uint64_t *value)
{
    const char *end;

    if (parse_number(text, value, &end)) {
        return !*end && *value < words->commands && words->command((unsigned)*value);
    }
    for (unsigned i = 0; i < words->commands; i++) {
        if (words->command(i) && !strcmp(text, words->command(i))) {
            *value = i;
            return true;
        }
    }
    return false;
}

bool sg_fault_value(const struct sg_fault_words *words, unsigned kind, const char *text,
                    uint64_t *value)
{
    const char *end;

    switch (kind) {
    case VALUE_STATUS:
        return parse_status(text, value);
    case VALUE_TIME:
        return parse_time(text, value);
    case VALUE_COMMAND:
        return parse_command(words, text, value);
    case VALUE_DIRECTION:
        *value = !strcmp(text, "write");
        return *value || !strcmp(text, "read");
    case VALUE_TIMES:
        if (!strcmp(text, "always")) {
            *value = SG_FAULT_ALWAYS;
            return true;
        }
        break;
    default:
        break;
    }
    if (!parse_number(text, value, &end) || *end) {
        return false;
    }
    return kind == VALUE_SEED || (kind == VALUE_VECTOR && *value < SG_FAULT_VECTORS) ||
           ((kind == VALUE_OFFSET || kind == VALUE_NUMBER) && *value <= UINT32_MAX) ||
           ((kind == VALUE_COUNT || kind == VALUE_TIMES) && *value && *value <= SG_FAULT_COUNT_MAX);
}
