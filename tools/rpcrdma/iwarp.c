/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "iwarp.h"

#include <glib.h>

#include "wire/fpdu.h"

struct rr_side {
    bool dead;
    bool framed; /* the startup frame of this side was seen */
    uint8_t frame_octets[SG_MPA_FRAME_MAX];
    struct sg_mpa_frame frame;
    GByteArray *in;
    uint32_t pos; /* of the next FPDU, as in fpdu.h */
    unsigned flags;
};

struct rr_iwarp {
    const struct rr_iwarp_ops *ops;
    void *opaque;
    struct rr_side side[2];
    uint8_t *scratch; /* for ULPDUs with markers */
};

struct rr_iwarp *rr_iwarp_new(const struct rr_iwarp_ops *ops, void *opaque)
{
    struct rr_iwarp *w = g_new0(struct rr_iwarp, 1);

    w->ops = ops;
    w->opaque = opaque;
    w->side[RR_OUT].in = g_byte_array_new();
    w->side[RR_BACK].in = g_byte_array_new();
    return w;
}

void rr_iwarp_free(struct rr_iwarp *w)
{
    g_byte_array_free(w->side[RR_OUT].in, true);
    g_byte_array_free(w->side[RR_BACK].in, true);
    g_free(w->scratch);
    g_free(w);
}

static void broken(struct rr_iwarp *w, enum rr_dir dir, const char *why)
{
    w->side[dir].dead = true;
    g_byte_array_set_size(w->side[dir].in, 0);
    w->ops->broken(w->opaque, dir, why);
}

static struct sg_span waiting(const struct rr_side *s)
{
    return sg_span_of(s->in->data, s->in->len);
}

/* The startup frame, as soon as it is complete. */
static bool startup(struct rr_iwarp *w, enum rr_dir dir)
{
    static const enum sg_mpa_kind kinds[] = { SG_MPA_REQUEST, SG_MPA_REPLY };
    struct rr_side *s = &w->side[dir];
    size_t used;
    enum sg_wire_err err = sg_mpa_frame_parse(waiting(s), kinds[dir], &s->frame, &used);

    if (err == SG_WIRE_MORE) {
        return false;
    }
    if (err != SG_WIRE_OK) {
        broken(w, dir, "no MPA startup");
        return false;
    }
    /* The frame borrows its private data: it gets octets that stay. */
    memcpy(s->frame_octets, s->in->data, used);
    sg_mpa_frame_parse(sg_span_of(s->frame_octets, used), kinds[dir], &s->frame, &used);
    g_byte_array_remove_range(s->in, 0, (guint)used);
    s->framed = true;
    return true;
}

static void begin(struct rr_iwarp *w)
{
    const struct sg_mpa_frame *request = &w->side[RR_OUT].frame, *reply = &w->side[RR_BACK].frame;
    unsigned crc = request->crc || reply->crc ? SG_FPDU_CRC_ON : 0;

    /* M of a frame asks the other side for markers. */
    w->side[RR_OUT].flags = crc | (reply->markers ? SG_FPDU_MARKERS : 0);
    w->side[RR_BACK].flags = crc | (request->markers ? SG_FPDU_MARKERS : 0);
    w->scratch = g_malloc(SG_ULPDU_FIELD_MAX);
    w->ops->startup(w->opaque, request, reply);
    if (reply->reject) {
        w->side[RR_OUT].dead = w->side[RR_BACK].dead = true;
    }
}

static void segment(struct rr_iwarp *w, enum rr_dir dir, struct sg_span ulpdu)
{
    struct sg_ddp_hdr ddp;

    if (sg_ddp_parse(ulpdu, &ddp) != SG_WIRE_OK) {
        broken(w, dir, "an FPDU without a DDP header");
        return;
    }
    w->ops->segment(w->opaque, dir, &ddp, sg_rdmap_ctrl_parse(ddp.ulp_ctrl, false).opcode,
                    sg_span_from(ulpdu, sg_ddp_len(ddp.tagged)));
}

static void fpdus(struct rr_iwarp *w, enum rr_dir dir)
{
    struct rr_side *s = &w->side[dir];
    size_t at = 0;

    while (!s->dead) {
        struct sg_fpdu fpdu;
        enum sg_wire_err err =
            sg_fpdu_parse(sg_span_from(waiting(s), at), s->pos, s->flags, w->scratch, &fpdu);

        if (err == SG_WIRE_MORE) {
            break;
        }
        if (err != SG_WIRE_OK) {
            broken(w, dir, sg_wire_err_name(err));
            return;
        }
        at += fpdu.wire_len;
        s->pos += (uint32_t)fpdu.wire_len;
        segment(w, dir, fpdu.ulpdu);
    }
    if (at && !s->dead) {
        g_byte_array_remove_range(s->in, 0, (guint)at);
    }
}

void rr_iwarp_input(struct rr_iwarp *w, enum rr_dir dir, struct sg_span octets)
{
    struct rr_side *s = &w->side[dir];
    struct rr_side *other = &w->side[!dir];

    if (s->dead) {
        return;
    }
    g_byte_array_append(s->in, octets.p, (guint)octets.len);
    if (!s->framed) {
        if (!startup(w, dir)) {
            return;
        }
        if (other->framed) {
            begin(w);
            fpdus(w, !dir);
        }
    }
    if (other->framed) {
        fpdus(w, dir);
    } else if (s->in->len > RR_WAITING_MAX) {
        broken(w, dir, "no answer to MPA startup");
    }
}
