/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: what a trace says of the media at its beginning and at its end.
 *
 * Media files are sparse, and only what is in them is read: an empty terabyte costs nothing.
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

/* All pages of the media that may have something else than zeros, in ascending order. */
static bool each_page(const StaghornDimm *dimm, TakePage *take, void *opaque)
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
        if (!each_page(&d->dimm[c.extent], write_page, &c)) {
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
        each_page(&d->dimm[i], hash_page, &h);
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
