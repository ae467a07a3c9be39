/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the target begins with: the content, and of each platform the memories. */
#include <stdio.h>
#include <string.h>

#include "session.h"

int sg_explore_no_memory(const char *what)
{
    fprintf(stderr, "staghorn-explore: no memory for %s\n", what);
    return SG_EXPLORE_FAILED;
}

/* The file of --base for an extent of this name; NULL: none. */
static const char *base_of(const struct sg_explore_options *o, const char *name)
{
    size_t len = strlen(name);

    for (unsigned i = 0; i < o->bases; i++) {
        if (strncmp(o->base[i], name, len) == 0 && o->base[i][len] == '=') {
            return o->base[i] + len + 1;
        }
    }
    return NULL;
}

static int read_bases(struct sg_explore_session *s, const struct sg_trace_header *header)
{
    const struct sg_trace_reader *reader = s->trace[s->target].reader;
    struct sg_explore_content *content = s->o.onto ? &s->base : &s->content;

    for (unsigned i = 0; i < header->extent_count; i++) {
        const char *path = base_of(&s->o, header->extent[i].name);

        if (header->extent[i].has_content && !s->o.onto) {
            continue;
        }
        if (!path) {
            fprintf(stderr,
                    "staghorn-explore: %s: the %s of \"%s\" is not in the trace: give it by --base "
                    "%s=FILE\n",
                    s->trace[s->target].path, s->o.onto ? "base" : "content",
                    header->extent[i].name, header->extent[i].name);
            return SG_EXPLORE_USAGE;
        }
        if (!sg_explore_content_file(content, i, path, header->extent[i].size) ||
            (s->o.onto && !sg_explore_onto_extent(&s->onto, reader, i, content, &s->content))) {
            return SG_EXPLORE_TRACE;
        }
    }
    return SG_EXPLORE_GOOD;
}

int sg_explore_read_content(struct sg_explore_session *s)
{
    struct sg_explore_trace *t = &s->trace[s->target];

    if (!sg_explore_open(t, sg_explore_content_page, &s->content)) {
        return SG_EXPLORE_TRACE;
    }
    if (s->content.failed) {
        return sg_explore_no_memory("the content at the start");
    }
    return read_bases(s, sg_trace_header(t->reader));
}

int sg_explore_map_memories(struct sg_explore_session *s, unsigned platform)
{
    const struct sg_trace_header *header = sg_trace_header(s->trace[s->target].reader);
    struct sg_explore_memories *m = s->memories[platform];

    for (unsigned i = 0; i < SG_CRASH_PASTS; i++) {
        sg_explore_memories_fini(&m[i]);
    }
    for (unsigned i = 0; i < header->extent_count; i++) {
        uint64_t size = header->extent[i].size;

        if (!sg_explore_map(&m->visible[i], &s->content, i, size) ||
            !sg_explore_map(&m->media[i], &s->content, i, size)) {
            return sg_explore_no_memory("the persistent memory of a platform");
        }
    }
    return SG_EXPLORE_GOOD;
}

bool sg_explore_begins_with(struct sg_explore_session *s, unsigned platform, unsigned extent)
{
    struct sg_explore_trace *t = &s->trace[s->target];
    const uint8_t *media = s->memories[platform]->media[extent].octets;

    if (sg_trace_header(t->reader)->extent[extent].has_content ||
        sg_trace_check_base(t->reader, extent, media)) {
        return true;
    }
    sg_explore_ended(t); /* says so */
    return false;
}
