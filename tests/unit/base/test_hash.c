/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/hash.h */
#include "base/hash.h"
#include "tap.h"

struct hash_vector {
    const char *name;
    uint8_t alg;
    const char *text; /* repeated 'times' times */
    unsigned times;
    uint8_t key_octet, key_len;
    const char *hex;
};

/* FIPS 180-4 examples, RFC 4231 cases 1 and 3, RFC 3720 appendix B.4. */
static const struct hash_vector vectors[] = {
    { "CRC32C, nothing", SG_HASH_CRC32C, "", 1, 0, 0, "00000000" },
    { "CRC32C, nine digits", SG_HASH_CRC32C, "123456789", 1, 0, 0, "839206e3" },
    { "CRC32C, 32 of ff", SG_HASH_CRC32C, "\xff", 32, 0, 0, "43aba862" },
    { "SHA-256, nothing", SG_HASH_SHA256, "", 1, 0, 0,
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "SHA-256, abc", SG_HASH_SHA256, "abc", 1, 0, 0,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "SHA-256, two blocks", SG_HASH_SHA256,
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 0, 0,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "SHA-256, a million of a", SG_HASH_SHA256, "a", 1000000, 0, 0,
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    { "SHA-512, nothing", SG_HASH_SHA512, "", 1, 0, 0,
      "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
      "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e" },
    { "SHA-512, abc", SG_HASH_SHA512, "abc", 1, 0, 0,
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
      "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
    { "SHA-512, a million of a", SG_HASH_SHA512, "a", 1000000, 0, 0,
      "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
      "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b" },
    { "HMAC-SHA-256, case 1", SG_HASH_HMAC_SHA256, "Hi There", 1, 0x0b, 20,
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
    { "HMAC-SHA-256, case 3", SG_HASH_HMAC_SHA256, "\xdd", 50, 0xaa, 20,
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
};

static void to_hex(const uint8_t *p, size_t n, char *hex)
{
    while (n--) {
        hex += sprintf(hex, "%02x", *p++);
    }
}

/* Hashes the text in pieces of 'piece' octets. */
static void check(const struct hash_vector *v, size_t piece)
{
    size_t unit = strlen(v->text), all = unit * v->times, off, n;
    uint8_t key[SG_HASH_KEY_MAX], out[SG_HASHER_OUT], *text = malloc(all + 1);
    struct sg_hasher h;
    char hex[2 * SG_HASHER_OUT + 1] = "";

    for (off = 0; off < all; off++) {
        text[off] = (uint8_t)v->text[off % unit];
    }
    memset(key, v->key_octet, sizeof(key));
    sg_hasher_init(&h, v->alg, key, v->key_len);
    memset(key, 0, sizeof(key)); /* sg_hasher_init() copied it */
    sg_hasher_add(&h, NULL, 0);
    for (off = 0; off < all; off += n) {
        n = piece < all - off ? piece : all - off;
        sg_hasher_add(&h, text + off, n);
    }
    free(text);
    n = sg_hasher_end(&h, out);
    T_EQ_U64(n, sg_hash_len(v->alg));
    to_hex(out, n, hex);
    T_EQ_STR(hex, v->hex);
}

static void known_answers(void)
{
    static const size_t pieces[] = { 1, 7, 64, 4096, SIZE_MAX };
    size_t i, k;

    for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        for (k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
            T_CONTEXT("%s in pieces of %zu", vectors[i].name, pieces[k]);
            check(&vectors[i], pieces[k]);
        }
    }
}

static void lengths(void)
{
    static const size_t want[SG_HASH_COUNT] = { 0, 4, 32, 64, 32 };
    unsigned alg;

    for (alg = 0; alg < 256; alg++) {
        T_CONTEXT("algorithm %u", alg);
        T_EQ_U64(sg_hash_len(alg), alg < SG_HASH_COUNT ? want[alg] : 0);
        T_EQ_INT(sg_hash_reversible(alg), alg == SG_HASH_CRC32C);
    }
}

static const struct t_case cases[] = {
    { "hash known answers, whole and in pieces", known_answers },
    { "hash lengths and kinds", lengths },
};

T_MAIN(cases)
