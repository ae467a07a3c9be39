# SPDX-License-Identifier: GPL-2.0-or-later
"""What a check says of a bug besides its image: what was promised when the power failed, the least
platform, and the command that shows it again."""
from . import again
from .explored import PLATFORMS

MARKS = ("acknowledged", "durable", "state")
KEPT = ("acknowledgement", "binds-behind", "machine", "event", "wr-id", "qpn", "text")


def promise_text(promise):
    """Who promised, in words."""
    kind = str(promise.get("acknowledgement", ""))
    what = "mark %s" % kind if kind in MARKS else "completion (%s)" % kind
    words = "%s of %s, event %s" % (what, promise.get("machine"), promise.get("event"))
    for name, title in (("wr-id", "wr_id"), ("qpn", "QP")):
        if promise.get(name) is not None:
            words += ", %s %s" % (title, promise[name])
    text = " ".join(str(promise.get("text") or "").split("\n"))
    return words + (": " + text if text else "")


def in_force(promises):
    """Of the promises in force the last one of each kind and machine, in their order."""
    last = {}
    for at, one in enumerate(promises):
        last[one.get("acknowledgement"), one.get("machine")] = at
    rows = [promises[at] for at in sorted(last.values())]
    return [
        {**{name: one[name] for name in KEPT if name in one}, "words": promise_text(one)}
        for one in rows
    ]


def least(platforms, claimed):
    """The weakest of these platforms that claims what was promised; if none does, the weakest."""
    here = [name for name in PLATFORMS if name in platforms]
    return ([name for name in here if name in claimed] or here)[0]


class Explainer:
    """Explains bugs of an exploration."""

    def __init__(self, explored):
        self.folder, self.claimed = explored.folder, explored.claimed()
        self.promises = explored.promises()

    def image(self, bug):
        """A bug of images, explained."""
        count = bug["example"]["in-force"]
        return {
            **bug,
            "least-platform": least(bug["platforms"], self.claimed),
            "promised": {"count": count, "last": in_force(self.promises[:count])},
            "again": again.of_image(bug, self.folder),
        }

    def recovery(self, bug):
        """A bug of recoveries; what was promised is what was in force at the first cut."""
        count = bug["cuts"][0]["in-force"]
        return {
            **bug,
            "least-platform": least(bug["example"]["platforms"], self.claimed),
            "promised": {"count": count, "last": in_force(self.promises[:count])},
            "again": again.of_recovery(bug, self.folder),
        }

    def more(self, found):
        """What --reads or --nested found, with bugs of recoveries explained."""
        if "nested" not in found:
            return found
        rows = [self.recovery(bug) for bug in found["nested"]["bugs"]]
        return {**found, "nested": {**found["nested"], "bugs": rows}}


def pair(bug, found):
    """A bug of pairs of images, explained; promises are those about both VMs' memories."""
    promises = [one for row in found.in_force(bug["example"]["behind"]) for one in row]
    claimed = set.intersection(*(set(side.claimed()) for side in found.sides))
    return {
        **bug,
        "least-platform": least(bug["platforms"], claimed),
        "promised": {"count": len(promises), "last": in_force(promises)},
        "again": again.of_pair(bug, found.folder),
    }


def lines(bug):
    """The same as lines of text."""
    yield "least platform: %s" % bug["least-platform"]
    promised = bug["promised"]
    for one in promised["last"]:
        yield "behind: %s" % one["words"]
    if not promised["count"]:
        yield "behind: no promise"
    yield "again: " + bug["again"]


def rows(bug):
    """The same as (name, text), for a table."""
    return [tuple(line.split(": ", 1)) for line in lines(bug)]
