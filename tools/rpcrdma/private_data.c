/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "private_data.h"

enum { AT_VERSION = 4, AT_FLAGS = 5, AT_SEND = 6, AT_RECV = 7, R = 0x01 };

struct rr_private rr_private_parse(struct sg_span pd)
{
    struct rr_private p = { .send_size = RR_SIZE_MIN, .recv_size = RR_SIZE_MIN };

    /* The identifier may stand in foreign data by chance: the search goes on behind that. */
    for (size_t at = 0; sg_range_ok(at, RR_PRIVATE_LEN, pd.len); at++) {
        const uint8_t *octets = sg_span_get(pd, at, RR_PRIVATE_LEN);

        if (octets && sg_get_be32(octets) == RR_PRIVATE_ID &&
            octets[AT_VERSION] == RR_PRIVATE_VERSION) {
            p.present = true;
            p.remote_inv = octets[AT_FLAGS] & R;
            p.reserved = octets[AT_FLAGS] & ~R;
            p.send_size = (octets[AT_SEND] + 1u) * RR_SIZE_UNIT;
            p.recv_size = (octets[AT_RECV] + 1u) * RR_SIZE_UNIT;
            p.at = at;
            break;
        }
    }
    return p;
}

size_t rr_private_from_hex(const char *text, uint8_t *out, size_t room)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0; /* half octets */

    for (; *text; text++) {
        const char *digit = strchr(digits, *text >= 'A' && *text <= 'F' ? *text + 32 : *text);

        if (*text == ' ') {
            continue;
        }
        if (!digit || n == 2 * room) {
            return 0;
        }
        out[n / 2] = (uint8_t)(n % 2 ? out[n / 2] << 4 | (digit - digits) : digit - digits);
        n++;
    }
    return n % 2 ? 0 : n / 2;
}

static uint8_t size_code(uint32_t octets)
{
    octets = SG_MIN(SG_MAX(octets, RR_SIZE_MIN), RR_SIZE_MAX);
    return (uint8_t)(octets / RR_SIZE_UNIT - 1);
}

void rr_private_emit(const struct rr_private *p, uint8_t *buf)
{
    sg_put_be32(buf, RR_PRIVATE_ID);
    buf[AT_VERSION] = RR_PRIVATE_VERSION;
    buf[AT_FLAGS] = p->remote_inv ? R : 0;
    buf[AT_SEND] = size_code(p->send_size);
    buf[AT_RECV] = size_code(p->recv_size);
}

uint32_t rr_threshold(const struct rr_private *sender, const struct rr_private *receiver)
{
    return SG_MIN(sender->send_size, receiver->recv_size);
}

bool rr_may_invalidate(const struct rr_private *a, const struct rr_private *b)
{
    return a->remote_inv && b->remote_inv;
}
