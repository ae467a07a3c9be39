/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "echo.h"
#include "service.h"

static bool echo_make(const struct rr_service *service, const struct rr_request *q, uint32_t xid,
                      struct rr_stream *s)
{
    static const uint32_t procs[] = {
        [RR_WANT_NULL] = RR_ECHO_NULL, [RR_WANT_LONG_NULL] = RR_ECHO_NULL,
        [RR_WANT_READ] = RR_ECHO_READ, [RR_WANT_WRITE] = RR_ECHO_WRITE,
        [RR_WANT_LIST] = RR_ECHO_LIST, [RR_WANT_TWO] = RR_ECHO_TWO,
    };

    if (q->want == RR_WANT_COMMIT) {
        return false;
    }
    if (q->want == RR_WANT_LONG_NULL) {
        rr_stream_call_sys(s, xid, RR_ECHO, RR_ECHO_VERSION, RR_ECHO_NULL, RR_LONG_NAME);
        return true;
    }
    rr_stream_call(s, xid, RR_ECHO, RR_ECHO_VERSION, procs[q->want]);
    switch (q->want) {
    case RR_WANT_READ:
        rr_put_word(s, q->offset);
        rr_put_word(s, q->count);
        break;
    case RR_WANT_WRITE:
        rr_put_word(s, q->offset);
        rr_put_eligible(s, sg_span_of(q->data, q->count));
        break;
    case RR_WANT_LIST:
        rr_put_word(s, q->count / 4);
        break;
    case RR_WANT_TWO:
        rr_put_word(s, q->count);
        rr_put_word(s, q->second);
        break;
    default:
        break;
    }
    return true;
}

static bool echo_read(const struct rr_service *service, const struct rr_request *q,
                      struct sg_span stream, size_t body, unsigned reduced, struct rr_results *out,
                      const char **why)
{
    struct rr_reader in = { .in = stream, .at = body, .fine = true };
    unsigned items = q->want == RR_WANT_READ ? 1 : q->want == RR_WANT_TWO ? 2 : 0;

    memset(out, 0, sizeof(*out));
    for (; out->count < items; out->count++) {
        struct rr_result *r = &out->result[out->count];

        r->len = rr_get_word(&in);
        r->at = in.at;
        if (!(reduced & 1u << out->count)) {
            rr_skip(&in, r->len);
        }
    }
    if (q->want == RR_WANT_WRITE && rr_get_word(&in) != q->count) {
        *why = "not all octets of the argument were taken";
        return false;
    }
    if (q->want == RR_WANT_LIST) {
        uint32_t numbers = rr_get_word(&in);

        rr_skip(&in, 4 * (size_t)SG_MIN(numbers, RR_ECHO_LIST_MAX));
    }
    out->end = in.at;
    *why = "the results are cut off";
    return in.fine;
}

const struct rr_service rr_service_echo = {
    .name = "echo",
    .make = echo_make,
    .read = echo_read,
};
