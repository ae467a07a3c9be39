/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: what a trace says of the media at its beginning and at its end.
 *
 * Media files are sparse, and only what is in them is read: an empty terabyte costs nothing.  While
 * a state of the machine is kept (rewind.c), the media are private mappings of their files: pages
 * that were written since are not in the file, and Linux says which these are.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "recorder_impl.h"

typedef bool TakePage(void *opaque, uint64_t number, const uint8_t page[SG_TRACE_PAGE]);

/* The next octet from 'from' on that the media's file has; the size: there is none. */
static uint64_t next_data(const StaghornDimm *dimm, uint64_t from)
{
    off_t at = lseek(dimm->file, dimm->file_offset + from, SEEK_DATA);

    if (at < 0) {
        return errno == ENXIO ? dimm->size : from; /* behind the last data; not supported */
    }
    return MIN((uint64_t)at - dimm->file_offset, dimm->size);
}

/* The end of the data that begin there. */
static uint64_t next_hole(const StaghornDimm *dimm, uint64_t from)
{
    off_t at = lseek(dimm->file, dimm->file_offset + from, SEEK_HOLE);

    return at < 0 ? dimm->size : MIN((uint64_t)at - dimm->file_offset, dimm->size);
}

static bool take_page(const StaghornDimm *dimm, uint64_t number, TakePage *take, void *opaque)
{
    uint64_t at = number * SG_TRACE_PAGE;
    uint8_t last[SG_TRACE_PAGE] = { 0 };

    if (dimm->size - at >= SG_TRACE_PAGE) {
        return take(opaque, number, dimm->media + at);
    }
    memcpy(last, dimm->media + at, dimm->size - at);
    return take(opaque, number, last);
}

/* All pages that the media's file has, in ascending order. */
static bool each_page_of_file(const StaghornDimm *dimm, TakePage *take, void *opaque)
{
    uint64_t number = 0, end, at;
    bool good = true;

    for (at = next_data(dimm, 0); good && at < dimm->size; at = next_data(dimm, end)) {
        end = next_hole(dimm, at);
        number = MAX(number, at / SG_TRACE_PAGE);
        for (; good && number * SG_TRACE_PAGE < end; number++) {
            good = take_page(dimm, number, take, opaque);
        }
        if (end <= at) {
            break;
        }
    }
    return good;
}

/* ---- Pages in a kept state ---- */

enum { ENTRIES = 4096 }; /* of the page map that are read at once */

/* One entry for each page of this process's memory (Linux, admin-guide/mm/pagemap). */
#define ENTRY_THERE (3ull << 62)   /* in memory, or swapped out */
#define ENTRY_OF_FILE (1ull << 61) /* the file's, or memory that is shared */
#define PAGE_MAP "/proc/self/pagemap"

/* Entries of the pages from 'at' on; without a page map all pages count as private. */
static void read_entries(int map, const uint8_t *at, uint64_t *entry, unsigned count)
{
    off_t offset = (uintptr_t)at / qemu_real_host_page_size() * sizeof(*entry);
    ssize_t size = count * sizeof(*entry);

    if (map < 0 || pread(map, entry, size, offset) != size) {
        for (unsigned i = 0; i < count; i++) {
            entry[i] = ENTRY_THERE;
        }
    }
}

/* The media's pages of a page of the host. */
static bool take_host_page(const StaghornDimm *dimm, uint64_t at, TakePage *take, void *opaque)
{
    uint64_t end = MIN(at + qemu_real_host_page_size(), dimm->size);
    bool good = true;

    for (; good && at < end; at += SG_TRACE_PAGE) {
        good = take_page(dimm, at / SG_TRACE_PAGE, take, opaque);
    }
    return good;
}

static bool is_private(uint64_t entry)
{
    return entry & ENTRY_THERE && !(entry & ENTRY_OF_FILE);
}

/* All pages that the file has, or that are private, in ascending order. */
static bool each_page_of_kept(const StaghornDimm *dimm, TakePage *take, void *opaque)
{
    uint64_t page = qemu_real_host_page_size(), data = 0, hole = 0; /* the file's data there */
    g_autofree uint64_t *entry = g_new(uint64_t, ENTRIES);
    int map = open(PAGE_MAP, O_RDONLY | O_CLOEXEC);
    unsigned i = ENTRIES;
    bool good = true;

    for (uint64_t at = 0; good && at < dimm->size; at += page, i++) {
        if (i == ENTRIES) {
            i = 0;
            read_entries(map, dimm->media + at, entry,
                         MIN(ENTRIES, DIV_ROUND_UP(dimm->size - at, page)));
        }
        if (at >= hole) {
            data = next_data(dimm, at);
            hole = next_hole(dimm, data);
        }
        if (at + page > data || is_private(entry[i])) {
            good = take_host_page(dimm, at, take, opaque);
        }
    }
    if (map >= 0) {
        close(map);
    }
    return good;
}

/* All pages of the media that may have something else than zeros, in ascending order. */
static bool each_page(const StaghornDomain *d, const StaghornDimm *dimm, TakePage *take,
                      void *opaque)
{
    return d->rewind ? each_page_of_kept(dimm, take, opaque)
                     : each_page_of_file(dimm, take, opaque);
}

/* ---- Content ---- */

struct content {
    struct sg_trace_writer *writer;
    unsigned extent;
};

static bool write_page(void *opaque, uint64_t number, const uint8_t page[SG_TRACE_PAGE])
{
    struct content *c = opaque;

    return sg_trace_writer_page(c->writer, c->extent, number, page);
}

void staghorn_content_extents(const StaghornDomain *d, struct sg_trace_header *header)
{
    header->extent_count = d->dimms;
    for (unsigned i = 0; i < d->dimms; i++) {
        header->extent[i] = (struct sg_trace_extent){
            .base = d->dimm[i].base,
            .size = d->dimm[i].size,
            .has_content = true,
        };
        pstrcpy(header->extent[i].name, sizeof(header->extent[i].name), d->dimm[i].name);
    }
}

bool staghorn_content_write(const StaghornDomain *d, struct sg_trace_writer *writer)
{
    struct content c = { .writer = writer };

    for (; c.extent < d->dimms; c.extent++) {
        if (!each_page(d, &d->dimm[c.extent], write_page, &c)) {
            return false;
        }
    }
    return true;
}

static bool hash_page(void *opaque, uint64_t number, const uint8_t page[SG_TRACE_PAGE])
{
    sg_trace_hasher_page(opaque, number, page);
    return true;
}

void staghorn_content_hash(const StaghornDomain *d, uint8_t (*hash)[SG_TRACE_HASH])
{
    struct sg_trace_hasher h;

    for (unsigned i = 0; i < d->dimms; i++) {
        sg_trace_hasher_init(&h);
        each_page(d, &d->dimm[i], hash_page, &h);
        sg_trace_hasher_end(&h, d->dimm[i].size, hash[i]);
    }
}

/* ---- Faults ---- */

void staghorn_content_faults(StaghornDomain *d)
{
    struct sg_persist_faults faults;
    struct sg_persist_bad bad;
    struct sg_trace_event e;

    staghorn_domain_enter(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        sg_persist_get_faults(d->model, d->dimm[i].extent, &faults);
        e = sg_crash_faults_event(i, &faults);
        staghorn_record(&e);
    }
    for (unsigned i = 0; sg_persist_bad_range(d->model, i, &bad); i++) {
        e = (struct sg_trace_event){
            .kind = SG_TRACE_MARK_BAD,
            .addr = bad.addr,
            .len = bad.len,
            .arg = bad.kind,
        };
        staghorn_record(&e);
    }
    staghorn_domain_leave(d);
}
