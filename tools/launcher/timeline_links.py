# SPDX-License-Identifier: GPL-2.0-or-later
"""Segments that one VM has sent and another one has received: arrows on a trace's time line."""


def links(events):
    """[(index of the event that sends, index of the one that receives)], in the order of receiving.

    The events are in the order of their times.  A segment whose other end is not in the trace has
    no arrow: it was under way when the trace began or ended, or its line was lost.  A connection of
    a VM to itself has none either: its two ends are beside each other."""
    sent, found = {}, []
    # A time is in whole microseconds: of two events of the same one, sending was first.
    order = sorted(range(len(events)), key=lambda i: (events[i].time, events[i].kind != "sent"))
    for index in order:
        event = events[index]
        if event.segment is None:
            continue
        if event.kind == "sent":
            sent[event.segment] = index
            continue
        begin = sent.pop(event.segment, None)
        if begin is not None and events[begin].vm != event.vm:
            found.append((begin, index))
    return found
