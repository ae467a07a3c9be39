/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads with several sink elements.
 *
 * A Read Request names one sink buffer (RFC 5040 section 5.2), and the source copies this name into
 * the Response without checking it.  So a Read with several elements sends a name of its own: the
 * first element's STag, offsets from 0.  The elements are kept with the record of the entry.  An
 * octet of the Response goes to the element that contains it, with the rights of that element,
 * checked again when it arrives.  The name gives no right: a Write of the peer to it is checked
 * against the first element's region as usual, and a Response must continue our oldest Read.
 *
 * A record owns its elements until it is complete or flushed.
 */
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

void sg_scatter_name(const struct sg_sge *sges, unsigned n, struct sg_msg *msg)
{
    if (n) {
        msg->read.sink_stag = sg_get_le32(&sges->lkey);
        msg->read.sink_to = n == 1 ? sg_get_le64(&sges->addr) : 0;
    }
}

bool sg_scatter_keep(struct sg_qp *qp, struct sg_sq_rec *rec, const struct sg_sge *sges, unsigned n)
{
    if (n <= 1) {
        return true;
    }
    rec->sinks = sg_account_new(&qp->adapter->account, n * sizeof(*sges));
    if (!rec->sinks) {
        return false;
    }
    memcpy(rec->sinks, sges, n * sizeof(*sges));
    rec->sink_count = (uint8_t)n;
    return true;
}

void sg_scatter_drop(struct sg_qp *qp, struct sg_sq_rec *rec)
{
    sg_account_free(&qp->adapter->account, rec->sinks, rec->sink_count * sizeof(*rec->sinks));
    rec->sinks = NULL;
}

uint32_t sg_scatter_piece(const struct sg_sq_rec *rec, const struct sg_read_sink *sink,
                          uint32_t off, uint32_t *stag, uint64_t *to)
{
    if (!rec->sinks) {
        *stag = sink->stag;
        *to = sink->to + off;
        return UINT32_MAX;
    }
    for (unsigned i = 0; i < rec->sink_count; i++) {
        uint32_t len = sg_get_le32(&rec->sinks[i].length);

        if (off < len) {
            *stag = sg_get_le32(&rec->sinks[i].lkey);
            *to = sg_get_le64(&rec->sinks[i].addr) + off;
            return len - off;
        }
        off -= len;
    }
    return 0; /* more than was requested, which the connection does not let through */
}
