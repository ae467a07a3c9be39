/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net_frame.h"

#include "base/host.h"

static uint16_t checksum(const uint8_t *p, size_t len, uint32_t sum)
{
    size_t i;

    for (i = 0; i + 1 < len; i += 2) {
        sum += sg_get_be16(p + i);
    }
    sum += len & 1 ? (uint32_t)p[len - 1] << 8 : 0;
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

size_t frame_type_at(const uint8_t *f, size_t len)
{
    size_t at = len >= ETH + 4 && sg_get_be16(f + 12) == TYPE_VLAN ? 16 : 12;

    return len >= at + 2 ? at : 0;
}

size_t frame_transport_at(const uint8_t *f, size_t len, size_t *octets, uint32_t *pseudo)
{
    size_t ip = frame_type_at(f, len) + 2, head, total, i;

    if (ip == 2 || len < ip + IPV4) {
        return 0;
    }
    *pseudo = 0;
    if (sg_get_be16(f + ip - 2) == TYPE_IP4) {
        head = (f[ip] & 15u) * 4;
        total = sg_get_be16(f + ip + 2);
        for (i = 12; i < 20; i += 2) {
            *pseudo += sg_get_be16(f + ip + i);
        }
        *pseudo += 6;
    } else if (sg_get_be16(f + ip - 2) == TYPE_IP6 && len >= ip + IPV6) {
        head = IPV6;
        total = IPV6 + sg_get_be16(f + ip + 4);
        for (i = 8; i < 40; i += 2) {
            *pseudo += sg_get_be16(f + ip + i);
        }
        *pseudo += f[ip + 6] == 58 ? 58 : 6;
        if (f[ip + 6] == 60 && len >= ip + IPV6 + 8) { /* inserted by frame_extend() */
            head += 8 + f[ip + IPV6 + 1] * 8u;
        }
    } else {
        return 0;
    }
    if (head < IPV4 || total < head + TCP || total > len - ip) {
        return 0;
    }
    *octets = total - head;
    *pseudo += (uint32_t)*octets;
    return ip + head;
}

void frame_mend(uint8_t *f, size_t len)
{
    size_t ip = frame_type_at(f, len) + 2, octets, at, sum;
    uint32_t pseudo;

    at = frame_transport_at(f, len, &octets, &pseudo);
    if (!at) {
        return;
    }
    if (sg_get_be16(f + ip - 2) == TYPE_IP4) {
        sg_put_be16(f + ip + 10, 0);
        sg_put_be16(f + ip + 10, checksum(f + ip, at - ip, 0));
    }
    sum = at + (sg_get_be16(f + ip - 2) == TYPE_IP6 && f[ip + 6] == 58 ? 2 : 16);
    sg_put_be16(f + sum, 0);
    sg_put_be16(f + sum, checksum(f + at, octets, pseudo));
}

void frame_spoil(struct fuzz_in *in, struct fuzz_frame *f)
{
    unsigned n = 1 + fuzz_below(in, 4);

    while (n--) {
        size_t at =
            fuzz_below(in, 2) ? fuzz_below(in, SG_MIN(f->len, (size_t)70)) : fuzz_u16(in) % f->len;

        f->data[at] = fuzz_rarely(in, 2) ? fuzz_u8(in) : f->data[at] ^ 1 << fuzz_below(in, 8);
    }
    if (fuzz_rarely(in, 4)) {
        f->len = 1 + fuzz_u16(in) % f->len;
    }
    if (!fuzz_rarely(in, 8)) {
        frame_mend(f->data, f->len);
    }
}

void frame_extend(struct fuzz_in *in, struct fuzz_frame *f)
{
    size_t ip = frame_type_at(f->data, f->len) + 2;
    unsigned kind = fuzz_below(in, 3);

    if (ip == 2 || f->len + 24 > FRAME_MAX) {
        return;
    }
    if (kind == 0 && ip == ETH) {
        memmove(f->data + 16, f->data + 12, f->len - 12);
        sg_put_be16(f->data + 12, TYPE_VLAN);
        sg_put_be16(f->data + 14, fuzz_u8(in) & 1 ? VLAN : fuzz_u16(in));
        f->len += 4;
    } else if (kind == 1 && ip > ETH) {
        memmove(f->data + 12, f->data + 16, f->len - 16);
        f->len -= 4;
    } else if (f->len > ip + IPV6 && sg_get_be16(f->data + ip - 2) == TYPE_IP6) {
        uint8_t *head = f->data + ip, *options = head + IPV6;
        unsigned i;

        memmove(options + 16, options, f->len - ip - IPV6);
        options[0] = head[6];
        options[1] = fuzz_rarely(in, 8) ? fuzz_u8(in) : 1;
        head[6] = fuzz_rarely(in, 4) ? fuzz_u8(in) : 60;
        memset(options + 2, 0, 14);
        for (i = 2; i < 16 && fuzz_rarely(in, 2); i++) {
            options[i] = fuzz_u8(in);
        }
        sg_put_be16(head + 4, (uint16_t)(sg_get_be16(head + 4) + 16));
        f->len += 16;
    }
}
