/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Firmware and flash images: octets to structures in host order and back, every field checked.
 *
 * Users and guests may have built the octets in any way.
 */
#ifndef SG_FLASH_IMAGE_H
#define SG_FLASH_IMAGE_H

#include "base/span.h"
#include "staghorn/flash.h"

/* struct sg_profile; SG_PROFILE_ANY and SG_PROFILE_ANY_8 as there. */
struct sg_profile_info {
    char name[17];
    uint32_t features;
    uint8_t mpa_rev, crc, markers, commit, peer_to_peer;
    uint32_t max_qp, max_cq, max_mr, max_pd, max_qp_wr, max_cqe, max_sge, max_inline;
    uint32_t max_ird, max_ord, max_conns, max_listeners, max_mr_size;
};

struct sg_firmware {
    char version[17];
    uint32_t version_word; /* MAJOR << 16 | MINOR << 8 | PATCH */
    uint32_t length, crc;
    struct sg_span rom; /* in the octets parsed; empty: none */
    struct sg_profile_info profile;
};

struct sg_identity {
    char product[33], part[17], serial[25];
    uint8_t mac[6]; /* zero: not known */
    uint64_t guid;  /* 0: not known */
};

/* A profile that restricts nothing. */
void sg_profile_init(struct sg_profile_info *p, const char *name);

/* @s may be longer than the firmware.  On anything but GOOD *out is undefined. */
enum sg_flash_reason sg_firmware_parse(struct sg_span s, struct sg_firmware *out);
/* Octets of a firmware with this version, profile and ROM; NULL: not possible.  g_free(). */
uint8_t *sg_firmware_make(const char *version, const struct sg_profile_info *profile,
                          struct sg_span rom, size_t *len);

enum sg_flash_reason sg_identity_parse(struct sg_span s, struct sg_identity *out);
/* Fills @header; false: a text is too long or not printable. */
bool sg_identity_make(const struct sg_identity *id, struct sg_flash_header *header);

/* Fills @slot for a firmware that parses. */
void sg_slot_make(const struct sg_firmware *fw, uint32_t sequence, struct sg_flash_slot *slot);

/* "its checksum is wrong" and similar texts that follow "the image is refused: ". */
const char *sg_flash_reason_text(enum sg_flash_reason reason);

#endif
