/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the server of mpe.c tells its clients, of which one is a kernel module (kmpe.c): so
 * whoever includes this has uint64_t already.
 */
#ifndef SG_TESTS_MPE_WIRE_H
#define SG_TESTS_MPE_WIRE_H

enum {
    MPE_PORT = 7471,
    MPE_SIZE = 4 << 20, /* octets of each memory */
};

/*
 * The server's regions.  All but the last two lie over the same ordinary memory; those are on the
 * device that the server was given, or absent (rkey 0).
 */
enum mpe_region {
    R_CRC32C,     /* read, write, flush to visibility, and Verify by the hash of that name ... */
    R_SHA256,
    R_SHA512,
    R_HMAC,
    R_WRITE,      /* write only */
    R_READ,       /* read only */
    R_FLUSH_ONLY, /* flush to visibility, and nothing else */
    R_PMEM,       /* read, write, flushes of both types, SHA-256 */
    R_PMEM_VIEW,  /* flush to visibility and CRC32C */
    R_COUNT,
};

/* What the server sends once the connection is there, little-endian as all its users are. */
struct mpe_table {
    struct mpe_entry {
        uint64_t addr;
        uint64_t length;
        uint32_t rkey;
        uint32_t hash;
    } regions[R_COUNT];
};

#endif
