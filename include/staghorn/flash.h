/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: the adapter's flash.
 *
 * Manual: docs/manual/firmware.md.  The chip has, in this order: the identity of this particular
 * adapter (vital product data), and two slots for firmware.  A slot is a record, written last and
 * erased first, and the firmware whose checksum it contains.  At reset the adapter runs the
 * firmware of the valid slot with the later sequence number; an update goes to the other one.
 *
 * A firmware file, which is also the content of an update, is struct sg_fw_header with the
 * capability profile, and the PCI expansion ROM.
 *
 * Multi-octet fields are little-endian, texts are printable ASCII padded with zeros, reserved
 * fields are zero, checksums are CRC32C (as MPA's).
 */
#ifndef STAGHORN_FLASH_H
#define STAGHORN_FLASH_H

#include "types.h"

enum sg_flash_layout {
    SG_FLASH_SIZE = 0x30000,
    SG_FLASH_SLOTS = 2,
    SG_FLASH_SLOT_BASE = 0x10000, /* slot n is at SLOT_BASE + n * SLOT_SIZE */
    SG_FLASH_SLOT_SIZE = 0x10000,
    SG_FLASH_FW_OFFSET = 0x1000, /* of the firmware within its slot */
    SG_FW_SIZE_MAX = SG_FLASH_SLOT_SIZE - SG_FLASH_FW_OFFSET,
    SG_FLASH_CHUNK_MAX = 4096, /* octets of one FLASH_READ or FLASH_WRITE */
    SG_ROM_SIZE_MAX = 0x8000,  /* expansion ROM */
    SG_ROM_BAR_SIZE = 0x10000,
    SG_FLASH_FORMAT = 1,
};

#define SG_FLASH_MAGIC "STGHFLSH"
#define SG_SLOT_MAGIC "STGHSLOT"
#define SG_FW_MAGIC "STGHFRMW"

/* Identity of one adapter; zero or empty fields are unknown. */
struct sg_flash_vpd {
    __u8 product[32];
    __u8 part[16];
    __u8 serial[24];
    __u8 mac[6];
    __u8 reserved_624[2];
    __le64 guid;
};
SG_ASSERT_LAYOUT(struct sg_flash_vpd, 88, product, 0, part, 32, serial, 48, mac, 72, reserved_624,
                 78, guid, 80);

/* At offset 0 of the chip. */
struct sg_flash_header {
    __u8 magic[8]; /* SG_FLASH_MAGIC */
    __le32 format; /* SG_FLASH_FORMAT */
    __le32 size;   /* SG_FLASH_SIZE */
    struct sg_flash_vpd vpd;
    __le32 reserved_832[5];
    __le32 crc; /* of all before */
};
SG_ASSERT_LAYOUT(struct sg_flash_header, 128, magic, 0, format, 8, size, 12, vpd, 16, reserved_832,
                 104, crc, 124);

/* At the start of each slot. */
struct sg_flash_slot {
    __u8 magic[8];   /* SG_SLOT_MAGIC */
    __le32 sequence; /* later: ahead by less than 2^31 */
    __le32 length;   /* of the firmware, octets */
    __le32 fw_crc;   /* sg_fw_header.crc */
    __le32 reserved_160[2];
    __le32 crc; /* of all before */
};
SG_ASSERT_LAYOUT(struct sg_flash_slot, 32, magic, 0, sequence, 8, length, 12, fw_crc, 16,
                 reserved_160, 20, crc, 28);

/*
 * The capabilities of an adapter with this firmware.  SG_PROFILE_ANY: the model's default.
 * A limit above the model's own range makes the firmware unusable.
 */
#define SG_PROFILE_ANY 0xffffffffu
#define SG_PROFILE_ANY_8 0xffu

struct sg_profile {
    __u8 name[16];
    __le32 features;   /* SG_FEATURE_* (admin.h) that are allowed */
    __u8 mpa_rev;      /* 1, 2 */
    __u8 crc;          /* 0, 1: demanded */
    __u8 markers;      /* 0, 1: demanded */
    __u8 commit;       /* 0 off, 1 draft -01, 2 draft -02 */
    __u8 peer_to_peer; /* 0, 1 */
    __u8 reserved_200[3];
    __le32 max_qp, max_cq, max_mr, max_pd;
    __le32 max_qp_wr, max_cqe, max_sge, max_inline;
    __le32 max_ird, max_ord, max_conns, max_listeners;
    __le32 max_mr_size; /* power of two: octets 2^n */
    __le32 reserved_640[4];
};
SG_ASSERT_LAYOUT(struct sg_profile, 96, name, 0, features, 16, mpa_rev, 20, crc, 21, markers, 22,
                 commit, 23, peer_to_peer, 24, reserved_200, 25, max_qp, 28, max_cq, 32, max_mr, 36,
                 max_pd, 40, max_qp_wr, 44, max_cqe, 48, max_sge, 52, max_inline, 56, max_ird, 60,
                 max_ord, 64, max_conns, 68, max_listeners, 72, max_mr_size, 76, reserved_640, 80);

struct sg_fw_header {
    __u8 magic[8];     /* SG_FW_MAGIC */
    __le32 format;     /* SG_FLASH_FORMAT */
    __le32 length;     /* header included, multiple of 4, to SG_FW_SIZE_MAX */
    __u8 version[16];  /* "MAJOR.MINOR.PATCH", each to 255 */
    __le16 vendor_id;  /* SG_PCI_VENDOR_ID */
    __le16 device_id;  /* SG_PCI_DEVICE_ID */
    __le32 rom_offset; /* multiple of 4, behind the header; 0: no expansion ROM */
    __le32 rom_length; /* multiple of 512, to SG_ROM_SIZE_MAX */
    __le32 reserved_352;
    struct sg_profile profile;
    __le32 reserved_1152[3];
    __le32 crc; /* of the whole firmware without this field */
};
SG_ASSERT_LAYOUT(struct sg_fw_header, 160, magic, 0, format, 8, length, 12, version, 16, vendor_id,
                 32, device_id, 34, rom_offset, 36, rom_length, 40, reserved_352, 44, profile, 48,
                 reserved_1152, 144, crc, 156);

/* Fault of an image or an update; data[0] of the answer to FLASH_COMMIT. */
enum sg_flash_reason {
    SG_FLASH_GOOD = 0,
    SG_FLASH_SHORT = 1,      /* truncated */
    SG_FLASH_NOT_OURS = 2,   /* magic */
    SG_FLASH_FORMAT_NEW = 3, /* format unknown */
    SG_FLASH_LENGTH = 4,     /* a length or offset is impossible */
    SG_FLASH_CHECKSUM = 5,
    SG_FLASH_DEVICE = 6,    /* for another adapter */
    SG_FLASH_TEXT = 7,      /* version or name is no text, or no version */
    SG_FLASH_ROM = 8,       /* expansion ROM malformed */
    SG_FLASH_PROFILE = 9,   /* a value of the profile is out of range */
    SG_FLASH_RESERVED = 10, /* a reserved field is not zero */
    SG_FLASH_MEDIUM = 11,   /* the chip refuses writes */
    SG_FLASH_EMPTY = 12,    /* slot: erased, or an update was not completed */
    SG_FLASH_REASONS,
};

#endif
