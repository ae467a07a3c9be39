/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "durable.h"

#include "base/prng.h"

enum { MAGIC = 0x72726563, AT_NUMBER = 4, AT_SEED = 8, HEAD = 12 };

void rr_record_fill(const struct rr_durable *d, uint32_t n, uint8_t *octets)
{
    uint64_t prng = (uint64_t)d->seed << 32 | n;

    sg_put_be32(octets, MAGIC);
    sg_put_be32(octets + AT_NUMBER, n);
    sg_put_be32(octets + AT_SEED, d->seed);
    for (uint32_t at = HEAD; at < d->size; at += 4) {
        sg_put_be32(octets + at, (uint32_t)sg_prng(&prng));
    }
}

static uint32_t place_of(const struct rr_durable *d, uint32_t n)
{
    return (n - 1) * d->size;
}

/* Everything that was answered is promised. */
static void promise(struct rr_durable *d)
{
    d->kept = d->answered;
    if (d->promised) {
        d->promised(d);
    }
}

/* Unstable records that were written under another verifier may be lost. */
static bool same_verifier(struct rr_session *s, struct rr_durable *d,
                          const struct rr_results *results)
{
    if (d->answered > d->kept && memcmp(d->verifier, results->verifier, RR_VERIFIER) != 0) {
        return rr_trouble(s,
                          "the server has restarted: the verifier changed, and records %u to %u "
                          "are not promised",
                          d->kept + 1, d->answered);
    }
    memcpy(d->verifier, results->verifier, RR_VERIFIER);
    return true;
}

static bool write_record(struct rr_session *s, struct rr_durable *d, uint8_t *octets)
{
    struct rr_request q = {
        .want = RR_WANT_WRITE,
        .offset = place_of(d, d->answered + 1),
        .count = d->size,
        .data = octets,
        .stable = d->stable,
    };
    struct rr_results results;

    rr_record_fill(d, d->answered + 1, octets);
    if (!rr_begin(s, q) || !rr_reduce(s, 0, false) || !rr_send(s) || !rr_expect_reply(s) ||
        !rr_results(s, &results)) {
        return false;
    }
    if (results.stable < d->stable) {
        return rr_trouble(s, "record %u is less stable than it was asked for: %u instead of %u",
                          d->answered + 1, results.stable, d->stable);
    }
    if (!same_verifier(s, d, &results)) {
        return false;
    }
    d->answered++;
    /* Not if one before it is unstable: promises are for all records up to a number. */
    if (results.stable >= RR_DATA_SYNC && d->kept + 1 == d->answered) {
        promise(d);
    }
    return true;
}

static bool commit(struct rr_session *s, struct rr_durable *d)
{
    struct rr_results results;

    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_COMMIT }) || !rr_send(s) ||
        !rr_expect_reply(s) || !rr_results(s, &results) || !same_verifier(s, d, &results)) {
        return false;
    }
    promise(d);
    return true;
}

bool rr_durable_write(struct rr_session *s, struct rr_durable *d)
{
    g_autofree uint8_t *octets = g_malloc(d->size);

    sg_assert(d->size >= RR_RECORD_MIN && d->size <= RR_RECORD_MAX && d->size % 4 == 0);
    sg_assert(d->records <= RR_RECORDS_MAX);
    while (d->answered < d->records) {
        if (!write_record(s, d, octets)) {
            return false;
        }
        if (d->every && d->kept < d->answered &&
            (d->answered % d->every == 0 || d->answered == d->records) && !commit(s, d)) {
            return false;
        }
    }
    return true;
}

/* Reads a record; a file that ends before it has fewer octets. */
static bool read_record(struct rr_session *s, const struct rr_durable *d, uint32_t n,
                        uint8_t *octets)
{
    struct rr_results results;

    memset(octets, 0, d->size);
    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_READ,
                                          .offset = place_of(d, n),
                                          .count = d->size }) ||
        !rr_offer(s, d->size, 0, false) || !rr_send(s) || !rr_expect_reply(s) ||
        !rr_results(s, &results)) {
        return false;
    }
    return results.result[0].len < d->size || rr_result_octets(s, &results, 0, octets, d->size);
}

bool rr_durable_verify(struct rr_session *s, const struct rr_durable *d, uint32_t *wrong,
                       uint32_t *first)
{
    g_autofree uint8_t *wanted = g_malloc(d->size), *octets = g_malloc(d->size);

    *wrong = *first = 0;
    for (uint32_t n = 1; n <= d->records; n++) {
        if (!read_record(s, d, n, octets)) {
            return false;
        }
        rr_record_fill(d, n, wanted);
        if (memcmp(octets, wanted, d->size) != 0) {
            *first = *wrong ? *first : n;
            ++*wrong;
        }
    }
    return true;
}

/* ---- The file itself ---- */

const char *rr_record_state_name(enum rr_record_state state)
{
    static const char *const names[] = {
        [RR_RECORD_RIGHT] = "right",
        [RR_RECORD_LOST] = "lost",
        [RR_RECORD_TORN] = "torn",
    };

    sg_assert(state < RR_RECORD_STATES);
    return names[state];
}

enum rr_record_state rr_record_judge(const struct rr_durable *d, uint32_t n, const uint8_t *octets)
{
    g_autofree uint8_t *wanted = g_malloc(d->size);

    rr_record_fill(d, n, wanted);
    if (memcmp(octets, wanted, d->size) == 0) {
        return RR_RECORD_RIGHT;
    }
    for (uint32_t i = 0; i < d->size; i++) {
        if (octets[i]) {
            return RR_RECORD_TORN;
        }
    }
    return RR_RECORD_LOST;
}

bool rr_durable_inspect(const struct rr_durable *d, FILE *file, struct rr_inspection *found)
{
    g_autofree uint8_t *octets = g_malloc(d->size);

    memset(found, 0, sizeof(*found));
    found->state = g_malloc0(d->records);
    for (uint32_t n = 1; n <= d->records; n++) {
        enum rr_record_state state;

        memset(octets, 0, d->size);
        /* A short read is the file's end, which a recovery may have left anywhere. */
        if (fread(octets, 1, d->size, file) < d->size && ferror(file)) {
            return false;
        }
        state = rr_record_judge(d, n, octets);
        found->state[n - 1] = (uint8_t)state;
        found->count[state]++;
    }
    return true;
}
