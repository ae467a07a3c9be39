/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files as sources of a reader, and what can be wrong with a set of them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"

static int64_t read_file(void *opaque, uint8_t *buf, size_t len)
{
    struct sg_explore_trace *t = opaque;
    size_t n = fread(buf, 1, len, t->file);

    t->read += n;
    return n < len && ferror(t->file) ? -1 : (int64_t)n;
}

static bool complain(const struct sg_explore_trace *t, const char *what)
{
    fprintf(stderr, "staghorn-explore: %s: %s\n", t->path, what);
    return false;
}

bool sg_explore_open(struct sg_explore_trace *t, sg_trace_page page, void *opaque)
{
    struct stat st;

    sg_explore_close(t);
    t->file = fopen(t->path, "rb");
    if (!t->file || fstat(fileno(t->file), &st) < 0) {
        return complain(t, strerror(errno));
    }
    t->octets = (uint64_t)st.st_size;
    t->reader = sg_trace_reader_new(read_file, t);
    if (sg_trace_open(t->reader, page, opaque) != SG_TRACE_GOOD) {
        return complain(t, sg_trace_message(t->reader));
    }
    if (!t->machine) {
        t->machine = g_strdup(sg_trace_header(t->reader)->text[SG_TRACE_MACHINE]);
    }
    return true;
}

void sg_explore_close(struct sg_explore_trace *t)
{
    if (t->reader) {
        sg_trace_reader_free(t->reader);
    }
    if (t->file) {
        fclose(t->file);
    }
    t->reader = NULL;
    t->file = NULL;
    t->read = 0;
}

void sg_explore_trace_free(struct sg_explore_trace *t)
{
    sg_explore_close(t);
    g_free(t->machine);
}

bool sg_explore_ended(const struct sg_explore_trace *t)
{
    enum sg_trace_status status = sg_trace_status(t->reader);

    return status == SG_TRACE_END || status == SG_TRACE_CUT_SHORT ||
           complain(t, sg_trace_message(t->reader));
}

bool sg_explore_one_run(const struct sg_explore_trace *t, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (strcmp(t[i].machine, t[k].machine) == 0) {
                return complain(&t[i], "a second trace of the same machine");
            }
        }
        if (memcmp(sg_trace_header(t[i].reader)->run, sg_trace_header(t[0].reader)->run,
                   SG_TRACE_ID)) {
            return complain(&t[i], "a trace of another run than the first one");
        }
    }
    return true;
}

int sg_explore_target(const struct sg_explore_trace *t, unsigned count, const char *name)
{
    int found = -1;

    for (unsigned i = 0; i < count; i++) {
        bool has_memory = sg_trace_header(t[i].reader)->extent_count > 0;

        if (name ? strcmp(t[i].machine, name) == 0 : has_memory) {
            if (found >= 0) {
                complain(&t[i], "several machines have persistent memory: name one by --target");
                return -1;
            }
            found = (int)i;
        }
    }
    if (found < 0) {
        fprintf(stderr, "staghorn-explore: %s%s\n",
                name ? "no trace of a machine " : "no machine has persistent memory",
                name ? name : "");
    } else if (!sg_trace_header(t[found].reader)->extent_count) {
        complain(&t[found], "the machine has no persistent memory");
        found = -1;
    }
    return found;
}
