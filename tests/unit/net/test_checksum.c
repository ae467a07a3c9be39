/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "aborts.h"
#include "tap.h"
#include "wire.h"
#include "lwip_port/arch/cc.h"

/* RFC 1071, section 3: the example's octets and its sum. */
static void checksum__rfc_example(void)
{
    static const uint8_t octets[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
    static const uint8_t sum[] = { 0xdd, 0xf2 };
    uint16_t got = sg_net_chksum(octets, sizeof(octets));

    T_EQ_MEM(&got, sum, sizeof(sum));
    T_EQ_INT(sg_net_chksum(octets, 0), 0);
}

/* Compared with the simple loop of the test wire, at each alignment and around each block size. */
static void checksum__equals_plain_loop(void)
{
    static uint8_t data[70000];
    uint64_t x = 88172645463325252ull;
    size_t i, len, at;

    for (i = 0; i < sizeof(data); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = i % 1000 < 200 ? 0xff : (uint8_t)(x >> 24);
    }
    for (len = 1; len < 66000; len = len < 300 ? len + 1 : len * 5 / 4 + 1) {
        for (at = 0; at < 9; at++) {
            uint16_t sum = sg_net_chksum(data + at, (int)len);
            uint8_t octets[2];

            T_CONTEXT("%zu octets at %zu", len, at);
            memcpy(octets, &sum, 2);
            T_EQ_INT((uint16_t)~(octets[0] << 8 | octets[1]), wire_checksum(data + at, len, 0));
        }
    }
}

static void fail_assertion(void *arg)
{
    sg_net_assert_failed("a queue is what it is", __FILE__, __LINE__);
}

/* A failed assertion of lwIP ends the process, because its next steps would be undefined. */
static void platform__assertion_ends_it(void)
{
    T_TRUE(t_aborts(fail_assertion, NULL));
}

static const struct t_case cases[] = {
    { "RFC 1071: the example of section 3", checksum__rfc_example },
    { "checksum: equals a plain loop", checksum__equals_plain_loop },
    { "platform: an assertion of lwIP ends the process", platform__assertion_ends_it },
};

T_MAIN(cases)
