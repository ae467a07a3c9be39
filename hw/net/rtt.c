/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Round-trip times and the values derived from them: the retransmission timeout and the time after
 * which a tail loss probe is sent.
 */
#include "net_priv.h"

#define RTO_MAX_NS (60000 * NS_PER_MS)      /* RFC 6298, section 2.5 */
#define RTO_FIRST_NS (1000 * NS_PER_MS)     /* section 2.1 */
#define PEER_ACK_DELAY_NS (200 * NS_PER_MS) /* RFC 8985, section 7.2 */
#define PROBE_SLACK_NS (5 * NS_PER_MS)      /* an emulated machine is late now and then */

/* RFC 6298, sections 2.2 and 2.3. */
void rtt_sample(struct recovery *r, uint64_t rtt)
{
    uint64_t off;

    rtt = MAX(rtt, 1);
    r->min_rtt = r->min_rtt ? MIN(r->min_rtt, rtt) : rtt;
    if (!r->srtt) {
        r->srtt = rtt;
        r->rttvar = rtt / 2;
        return;
    }
    off = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
    r->rttvar += off / 4 - r->rttvar / 4;
    r->srtt += rtt / 8 - r->srtt / 8;
}

/*
 * The lower bound applies to the margin above the round trip, not to the sum, so that a path with
 * a long, constant round trip has the same margin.
 */
uint64_t rtt_timeout(const struct recovery *r, uint64_t min)
{
    uint64_t rto = r->srtt ? r->srtt + MAX(4 * r->rttvar, min) : MAX(RTO_FIRST_NS, min);

    return MIN(rto << MIN(r->backoff, 10), RTO_MAX_NS);
}

uint64_t rtt_probe(const struct recovery *r)
{
    bool one = scoreboard_count(&r->sent) == 1;

    return 2 * r->srtt + (one ? PEER_ACK_DELAY_NS : PROBE_SLACK_NS);
}
