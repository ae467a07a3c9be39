/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deframing (RFC 5044 sections 5.2 and 6): octets become ULPDUs.
 *
 * The stream is in order, so boundaries follow from ULPDU_Length alone.  An FPDU that was received
 * completely is checked and passed up in place.  Otherwise it is gathered in a buffer of the
 * connection, which grows only as its octets arrive and never beyond the largest FPDU.  Without
 * markers its CRC is computed while the octets are copied.  Markers are removed by a copy to memory
 * of the engine; FPDUPTR is checked, but never determines boundaries.
 *
 * Nothing is passed up before its CRC has matched (if CRC is on), and nothing after the first
 * fault: from then on the connection is not in a receiving state and drops all octets.
 */
#include "base/crc32c.h"
#include "proto/conn.h"

enum {
    GATHER_FIRST = 2048, /* first size of the buffer, octets */
};

static bool receiving(const struct sg_conn *c)
{
    return c->state >= CONN_WAIT_FIRST && c->state <= CONN_CLOSING &&
           !conn_is(c, CONN_DISCARDS | CONN_IS_STARVED);
}

/* One valid ULPDU. */
static void pass_up(struct sg_conn *c, const uint8_t *p, size_t n)
{
    c->e->stats.rx_fpdus++;
    c->rx.segments++;
    if (!conn_is(c, CONN_IS_VALID)) {
        conn_flag(c, CONN_IS_VALID, true); /* the responder may send now */
        if (!c->initiator) {
            conn_signal(c);
        }
        if (c->state == CONN_WAIT_FIRST) {
            const struct sg_conn_params params = {
                .mpa_rev = c->setup.rev,
                .ird = c->setup.ird,
                .ord = c->setup.ord,
            };

            timers_started(c);
            conn_set_state(c, CONN_STREAMING);
            c->e->ops->established(c->user, &params);
            if (!receiving(c)) {
                return;
            }
        }
    }
    ddp_receive(c, p, n);
}

static void bad_fpdu(struct sg_conn *c, enum sg_wire_err err)
{
    conn_log(c, SG_LOG_PEER_ERROR, "FPDU: %s", sg_wire_err_name(err));
    if (err == SG_WIRE_BAD_CRC) {
        c->e->stats.crc_errors++;
    }
    term_raise(c, err == SG_WIRE_BAD_MARKER ? SG_TERM_MPA_MARKER : SG_TERM_MPA_CRC, NULL, 0, NULL);
}

static void take_plain(struct sg_conn *c, const uint8_t *p, size_t ulpdu, size_t whole,
                       const uint32_t *crc)
{
    if (c->setup.crc) {
        uint32_t got = crc ? *crc : sg_crc32c(0, p, whole - SG_FPDU_CRC);

        if (got != sg_get_le32(p + whole - SG_FPDU_CRC)) {
            bad_fpdu(c, SG_WIRE_BAD_CRC);
            return;
        }
    }
    pass_up(c, p + SG_FPDU_LEN_FIELD, ulpdu);
}

static void take_marked(struct sg_conn *c, const uint8_t *p, size_t n)
{
    unsigned flags = SG_FPDU_MARKERS | (c->setup.crc ? SG_FPDU_CRC_ON : 0);
    struct sg_fpdu f;
    enum sg_wire_err err;

    err = sg_fpdu_parse(sg_span_of(p, n), c->rx.pos, flags, c->e->rx_scratch, &f);
    if (err != SG_WIRE_OK) {
        bad_fpdu(c, err);
        return;
    }
    c->rx.pos += (uint32_t)f.wire_len;
    pass_up(c, f.ulpdu.p, f.ulpdu.len);
}

/* Lengths of the FPDU at p and of its ULPDU; false: its length field has not arrived. */
static bool measure(const struct sg_conn *c, const uint8_t *p, size_t n, size_t *ulpdu,
                    size_t *whole)
{
    if (c->setup.rx_markers) {
        return sg_fpdu_peek(sg_span_of(p, n), c->rx.pos, SG_FPDU_MARKERS, ulpdu, whole) ==
               SG_WIRE_OK;
    }
    if (n < SG_FPDU_LEN_FIELD) {
        return false;
    }
    *ulpdu = sg_get_be16(p);
    *whole = sg_fpdu_len(*ulpdu);
    return true;
}

static bool reserve(struct sg_conn *c, size_t want)
{
    struct conn_rx *rx = &c->rx;
    size_t cap = rx->cap ? rx->cap : GATHER_FIRST;
    uint8_t *buf;

    if (want <= rx->cap) {
        return true;
    }
    while (cap < want) {
        cap *= 2;
    }
    cap = SG_MIN(cap, SG_FPDU_WIRE_MAX);
    buf = conn_renew(c, rx->buf, rx->cap, cap);
    if (!buf) {
        return false;
    }
    rx->cap = (uint32_t)cap;
    rx->buf = buf;
    return true;
}

/* Adds octets to the buffer; those before 'crc_end' count for the CRC.  False: no memory. */
static bool append(struct sg_conn *c, const uint8_t *p, size_t n, size_t crc_end)
{
    struct conn_rx *rx = &c->rx;
    size_t hashed = rx->have < crc_end ? SG_MIN(n, crc_end - rx->have) : 0;

    if (!reserve(c, rx->have + n)) {
        return false;
    }
    if (!rx->have) {
        rx->crc = 0;
    }
    if (c->setup.crc && !c->setup.rx_markers) {
        rx->crc = sg_crc32c_copy(rx->crc, rx->buf + rx->have, p, hashed);
        memcpy(rx->buf + rx->have + hashed, p + hashed, n - hashed);
    } else {
        memcpy(rx->buf + rx->have, p, n);
    }
    rx->have += (uint32_t)n;
    return true;
}

/* Continues the FPDU in the buffer; returns how many octets it took. */
static size_t gather(struct sg_conn *c, const uint8_t *p, size_t n)
{
    /* A marker and the length field: then the size of any FPDU is known. */
    const size_t head = SG_FPDU_MARKER + SG_FPDU_LEN_FIELD;
    struct conn_rx *rx = &c->rx;
    size_t used = 0, ulpdu, whole;

    while (!measure(c, rx->buf, rx->have, &ulpdu, &whole)) {
        if (used == n || !append(c, p + used, 1, head)) {
            return n;
        }
        used++;
    }
    if (rx->have < whole) {
        size_t take = SG_MIN(n - used, whole - rx->have);

        if (!append(c, p + used, take, whole - SG_FPDU_CRC)) {
            return n;
        }
        used += take;
    }
    if (rx->have == whole) {
        rx->have = 0;
        if (c->setup.rx_markers) {
            take_marked(c, rx->buf, whole);
        } else {
            take_plain(c, rx->buf, ulpdu, whole, &rx->crc);
        }
    }
    return used;
}

void fpdu_receive(struct sg_conn *c, const uint8_t *p, size_t n)
{
    size_t ulpdu, whole;

    while (n && receiving(c) && !c->stall) {
        size_t used;

        if (!c->rx.have && measure(c, p, n, &ulpdu, &whole) && whole <= n) {
            used = whole;
            if (c->setup.rx_markers) {
                take_marked(c, p, whole);
            } else {
                take_plain(c, p, ulpdu, whole, NULL);
            }
        } else {
            used = gather(c, p, n);
        }
        p += used;
        n -= used;
    }
    if (n && c->stall) {
        stall_keep(c, p, n);
    }
}
