/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of traces, and the timelines that they make, in result.json. */
#ifndef SG_EXPLORE_TIMELINE_JSON_H
#define SG_EXPLORE_TIMELINE_JSON_H

#include "json.h"
#include "session.h"

/* An object with the fields that the event's kind has. */
void sg_explore_put_event(struct json *j, const char *key, const char *machine,
                          const struct sg_explore_detail *d);
/* The members `timeline`, `timeline-omitted` and `frames` of a bug. */
void sg_explore_put_timeline(struct json *j, const struct sg_explore_session *s, unsigned bug);

#endif
