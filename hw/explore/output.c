/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

bool sg_explore_not_written(const char *path)
{
    fprintf(stderr, "staghorn-explore: cannot write %s: %s; --out names another folder\n", path,
            strerror(errno));
    return false;
}

bool sg_explore_write(const char *folder, const char *name, const void *octets, size_t len)
{
    char *path = g_build_filename(folder, name, NULL), *fresh = g_strconcat(path, ".new", NULL);
    FILE *f = fopen(fresh, "wb");
    bool good = f && fwrite(octets, 1, len, f) == len;

    good = f && fclose(f) == 0 && good;
    good = good && rename(fresh, path) == 0;
    if (!good) {
        sg_explore_not_written(path);
        unlink(fresh);
    }
    g_free(fresh);
    g_free(path);
    return good;
}
