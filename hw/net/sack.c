/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selective acknowledgements as the peer sends them (RFC 2018, RFC 2883), and timestamps.
 */
#include "net_priv.h"
#include "base/bytes.h"

enum { OPT_SACK = 5, SACK_BLOCK = 8 };

/* Timestamps (RFC 7323) and SACK blocks; mend_options() has checked the lengths. */
void sack_read_options(struct ack_seen *in, const struct tcp_hdr *hdr)
{
    const uint8_t *opt = (const uint8_t *)(hdr + 1);
    unsigned left = TCPH_HDRLEN_BYTES(hdr) - TCP_HLEN, n, i;

    in->has_echo = false;
    in->blocks = 0;
    for (; left && *opt != LWIP_TCP_OPT_EOL; opt += n, left -= n) {
        n = *opt == LWIP_TCP_OPT_NOP ? 1 : opt[1];
        if (*opt == LWIP_TCP_OPT_TS && n == LWIP_TCP_OPT_LEN_TS) {
            in->has_echo = true;
            in->echo = sg_get_be32(opt + 6);
        } else if (*opt == OPT_SACK && n >= 2 + SACK_BLOCK) {
            in->blocks = MIN((n - 2) / SACK_BLOCK, SACK_BLOCKS_MAX);
            for (i = 0; i < in->blocks; i++) {
                in->block[i].start = sg_get_be32(opt + 2 + SACK_BLOCK * i);
                in->block[i].end = sg_get_be32(opt + 6 + SACK_BLOCK * i);
            }
        }
    }
}

/*
 * Valid blocks are within what is outstanding.  The first block may report a duplicate
 * (RFC 2883, section 4): it is acknowledged already, or within the second.  True: a duplicate.
 */
bool sack_read_blocks(struct recovery *r)
{
    const struct ack_seen *in = &r->in;
    bool duplicate = false;
    unsigned i;

    for (i = 0; i < in->blocks; i++) {
        uint32_t start = in->block[i].start, end = in->block[i].end;

        if (!TCP_SEQ_LT(start, end) || TCP_SEQ_GT(end, r->high)) {
            continue;
        }
        if (i == 0 && (TCP_SEQ_LEQ(end, r->una) ||
                       (in->blocks > 1 && TCP_SEQ_GEQ(start, in->block[1].start) &&
                        TCP_SEQ_LEQ(end, in->block[1].end)))) {
            duplicate = true;
        } else if (TCP_SEQ_GEQ(start, r->una)) {
            scoreboard_sack(&r->sent, start, end);
        }
    }
    return duplicate;
}
