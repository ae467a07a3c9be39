/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet frames of the target "net", and what happens to them on the way.
 */
#ifndef SG_FUZZ_NET_FRAME_H
#define SG_FUZZ_NET_FRAME_H

#include "fuzz.h"

enum {
    FRAME_MAX = 10000,
    ETH = 14,
    IPV4 = 20,
    IPV6 = 40,
    TCP = 20,
    VLAN = 5, /* the one that the hosts have */
    TYPE_IP4 = 0x0800,
    TYPE_ARP = 0x0806,
    TYPE_VLAN = 0x8100,
    TYPE_IP6 = 0x86dd,
};

struct fuzz_frame {
    size_t len;
    int to; /* host */
    uint8_t data[FRAME_MAX];
};

/* Behind MAC addresses and tag: the Ethernet type's place, 0: the frame is too short. */
size_t frame_type_at(const uint8_t *f, size_t len);
/*
 * Where TCP, or ICMPv6, begins, how long it is, and the sum of its pseudo header; 0: nowhere.
 */
size_t frame_transport_at(const uint8_t *f, size_t len, size_t *octets, uint32_t *pseudo);
/* Corrects the checksums, if lengths allow. */
void frame_mend(uint8_t *f, size_t len);
/* Changes some octets, or shortens the frame; mostly with correct checksums nevertheless. */
void frame_spoil(struct fuzz_in *in, struct fuzz_frame *f);
/* An extension header before TCP, or a tag, or one tag less. */
void frame_extend(struct fuzz_in *in, struct fuzz_frame *f);

#endif
