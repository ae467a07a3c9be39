// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The adapter's clock, on which completion timestamps are based: it can be read from the doorbell
 * page, and its times can be converted to the wall clock.
 *
 * Both count nanoseconds, so the conversion only needs their difference.  It is measured by
 * reading the adapter's clock between two reads of the wall clock, a few times, and the closest
 * pair is used: the error is at most half of the time between the two reads.  The difference
 * changes, because the wall clock is slewed or set, and the adapter's stops with its virtual
 * machine.  So it is measured again when it is a second old; the clock for this age continues while
 * the guest is suspended.
 */
#include <time.h>

#include "provider.h"
#include "doorbell.h"

enum {
	NS_PER_S = 1000000000,
	MEASURE_AGAIN_NS = NS_PER_S,
	MEASURE_TRIES = 4,
};

/* In ns, consistent with hca_core_clock. */
int sgp_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t known = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;

	if (known) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec =
			(long)sgp_doorbell_read(to_sgp_context(context)->db, SG_DB_CLOCK);
	}
	values->comp_mask = known;
	return 0;
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void measure(const uint8_t *db, struct sgp_wall *wall)
{
	uint64_t closest = UINT64_MAX;

	for (int i = 0; i < MEASURE_TRIES; i++) {
		uint64_t before = now(CLOCK_REALTIME);
		uint64_t adapter = sgp_doorbell_read(db, SG_DB_CLOCK);
		uint64_t span = now(CLOCK_REALTIME) - before;

		/* If the wall clock was set back in between, the span is huge and not used. */
		if (span < closest) {
			closest = span;
			wall->ahead = before + span / 2 - adapter;
		}
	}
	wall->measured = now(CLOCK_BOOTTIME);
}

uint64_t sgp_clock_to_wall(const uint8_t *db, struct sgp_wall *wall, uint64_t stamp)
{
	if (!wall->measured || now(CLOCK_BOOTTIME) - wall->measured > MEASURE_AGAIN_NS)
		measure(db, wall);
	return stamp + wall->ahead;
}
