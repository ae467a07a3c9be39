/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The message that mpe_server sends to its clients.  One of them is a kernel module (kmpe.c), so
 * the including file has to define uint64_t.
 */
#ifndef SG_TESTS_MPE_WIRE_H
#define SG_TESTS_MPE_WIRE_H

enum {
    MPE_PORT = 7471,
    MPE_SIZE = 4 << 20, /* octets of each memory */
};

/*
 * The server's regions.  All but the last two are on the same ordinary memory; the last two are on
 * the server's device, or absent (rkey 0).
 */
enum mpe_region {
    R_CRC32C, /* read, write, flush to visibility, and Verify by the hash of that name ... */
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

/*
 * The server sends this once the connection is established.  It is in little-endian order, which
 * all its users have.
 */
struct mpe_table {
    struct mpe_entry {
        uint64_t addr;
        uint64_t length;
        uint32_t rkey;
        uint32_t hash;
    } regions[R_COUNT];
};

#endif
