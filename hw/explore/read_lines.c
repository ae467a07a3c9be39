/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "read_lines.h"

/* Takes a number, hexadecimal with 0x or decimal, and the blanks behind it. */
static bool take_number(const char **at, uint64_t *number)
{
    bool hex = (*at)[0] == '0' && (*at)[1] == 'x';
    const char *digits = *at + (hex ? 2 : 0);
    char *end;

    if (!g_ascii_isxdigit(*digits)) {
        return false;
    }
    errno = 0;
    *number = g_ascii_strtoull(digits, &end, hex ? 16 : 10);
    if (errno || end == digits) {
        return false;
    }
    for (*at = end; g_ascii_isspace(**at);) {
        ++*at;
    }
    return true;
}

/* A range; a line may be empty.  False: neither. */
static bool add_line(struct sg_crash_reads *reads, char *line)
{
    const char *at = g_strstrip(line);
    uint64_t addr, len;

    return !*at || (take_number(&at, &addr) && take_number(&at, &len) && !*at &&
                    reads->ranges->len < READS_MAX && sg_crash_reads_add(reads, addr, len));
}

bool sg_explore_read_lines(const char *path, struct sg_crash_reads *reads)
{
    GError *error = NULL;
    char *text, **lines;
    bool good = true;

    sg_crash_reads_init(reads);
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        fprintf(stderr, "staghorn-explore: %s: %s\n", path, error->message);
        g_error_free(error);
        return false;
    }
    lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i] && good; i++) {
        good = add_line(reads, lines[i]);
        if (!good) {
            fprintf(stderr,
                    "staghorn-explore: %s: line %u is no \"ADDRESS LENGTH\", hexadecimal with 0x "
                    "or decimal, or there are more than %d\n",
                    path, i + 1, READS_MAX);
        }
    }
    sg_crash_reads_end(reads);
    g_strfreev(lines);
    g_free(text);
    return good;
}
