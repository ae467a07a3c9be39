/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet frames of the target "net", and changes to them on the way.
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
    VLAN = 5, /* of the hosts */
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

/* Offset of the Ethernet type, behind MAC addresses and tag; 0: the frame is too short. */
size_t frame_type_at(const uint8_t *f, size_t len);
/*
 * Offset and length of TCP or ICMPv6, and the sum of the pseudo header; 0: the frame has neither.
 */
size_t frame_transport_at(const uint8_t *f, size_t len, size_t *octets, uint32_t *pseudo);
/* Corrects the checksums, if lengths allow. */
void frame_mend(uint8_t *f, size_t len);
/* Changes some octets, or shortens the frame; mostly corrects the checksums then. */
void frame_spoil(struct fuzz_in *in, struct fuzz_frame *f);
/* Inserts an extension header before TCP or a tag, or removes a tag. */
void frame_extend(struct fuzz_in *in, struct fuzz_frame *f);

#endif
