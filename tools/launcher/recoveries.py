# SPDX-License-Identifier: GPL-2.0-or-later
"""Recoveries from a power cut that are cut in turn: which there are, depth by depth.

A recovery is what the checker does about one image.  Its key in the journal is that of the image,
with what is demanded of it: so the same recovery is recorded once, wherever its image was found.
A line of the journal about a recovery has all of its good images as candidates.  Which of these are
recovered in turn depends on nothing but the lines of their whole depth, in the order of that depth:
so all shards choose the same ones, whoever recorded what and when.  A recovery belongs to the shard
of its image's hash, as a check of that image would.

check_nested.py records and explores recoveries; nested_result.py says what became of them.
"""
import re
from collections import namedtuple

from . import verdicts
from .explored import START, Unit, evenly, is_occurrence

FOLDER = "nested"
IMAGES = "again"  # images whose recoveries may be cut in turn, within FOLDER
STRATEGY, IMAGES_MOST, RECOVERIES, DEPTH_MAX = "only,all-but", 1000, 10, 16
# Strategies that need no file.
WORD = r"(only|all-but|exhaustive|cluster(:\d{1,9})?|random(:\d{1,9}(:\d{1,20})?)?)"
STRATEGIES = re.compile(r"%s(,%s)*\Z" % (WORD, WORD))

# unit: of the image; steps: of --compare, the marks behind which the first cut may have been, or
# None; path: the image's file, or "" for the content at the start
Recovery = namedtuple("Recovery", "unit steps path")


class Settings(namedtuple("Settings", "strategy images depth recoveries")):
    """The options of --nested: strategy of each recovery, at most so many images of it, cuts after
    the first one, and how many of its good images are recovered in turn."""

    def identity(self):
        """What distinguishes the lines of the journal, besides the checker."""
        text = self.strategy + ":%d" % self.images
        if self.depth > 1:  # "all": lines have all candidates
            text += ":%d:%d:all" % (self.depth, self.recoveries)
        return text


def settings_of(args):
    """The Settings of the command's options, or None without --nested."""
    if not args.nested and not args.nested_depth:
        return None
    return Settings(
        args.nested_strategy, args.nested_images, args.nested_depth or 1, args.nested_recoveries
    )


def settings_restored(found):
    """The Settings of their JSON, or None; KeyError if nobody writes that."""
    if found is None:
        return None
    rest = [found[name] for name in ("images", "depth", "recoveries")]
    good = isinstance(found["strategy"], str) and all(
        isinstance(n, int) and not isinstance(n, bool) for n in rest
    )
    if not good or min(rest) < 1 or max(rest) > 1 << 40 or found["depth"] > DEPTH_MAX:
        raise KeyError("nested")
    return Settings(found["strategy"], *rest)


def key(recovery):
    """Its name in the journal, and that of its folder."""
    return verdicts.key_of(members(recovery))


def members(recovery):
    """What a line of the journal has of it."""
    found = {"image": recovery.unit.image}
    if recovery.unit.promises is not None:
        found["promises"] = recovery.unit.promises
    if recovery.steps is not None:
        found["steps"] = list(recovery.steps)
    return found


def cuts(occurrence):
    """The power cuts that led to an image, the first one first: each an occurrence."""
    found = [occurrence]
    while "outer" in found[-1]:
        found.append(found[-1]["outer"])
    return found[::-1]


def cut_row(one):
    """What a report says of a cut."""
    row = {name: one[name] for name in ("image", "behind", "plan")}
    return {**row, "platform": one["platforms"][0], "in-force": one["promises"]}


def platforms(unit):
    """All platforms that have the image, each once."""
    return list(dict.fromkeys(x for one in unit.occurrences for x in one["platforms"]))


def candidate(unit):
    """A good image of a recovery, for the journal: its recovery may be cut, too."""
    one = unit.occurrences[0]
    row = {name: value for name, value in one.items() if name not in ("deviations", "outer")}
    return dict(row, platforms=platforms(unit))


def restored(one, parent, folder):
    """The Recovery of what candidate() made of an image of the recovery `parent`."""
    if not is_occurrence(one) or "outer" in one:
        raise KeyError("candidates")
    path = folder / FOLDER / IMAGES / (one["image"] + ".image")
    path = "" if one["image"] == START else path
    occurrence = dict(one, outer=parent.unit.occurrences[0])
    return Recovery(Unit(one["image"], parent.unit.promises, (occurrence,)), parent.steps, path)


def first_level(explored, units, done, marks):
    """The recoveries of the good ones of these units."""
    found = []
    for unit in units:
        one = done.get(verdicts.key_of({"image": unit.image, "promises": unit.promises}))
        if not one or one["verdict"] != "good" or (marks and marks.wrong(unit, one, done)):
            continue
        steps = None
        if marks:
            steps = tuple(sorted({marks.step(x["behind"]) for x in unit.occurrences}))
        found.append(Recovery(unit, steps, explored.path(unit.image)))
    return found


class Levels:
    """All recoveries, depth by depth, as far as the lines of the journals say.

    all: a list of recoveries for each depth; again: of each the numbers again-left-out and
    again-same; missing: recoveries of the last depth without a line, if others follow from them."""

    def __init__(self, first, settings, lines, folder):
        self.settings, self.lines, self.folder = settings, lines, folder
        self.all, self.again, self.missing = [first], [], 0
        self.seen = {key(each) for each in first}
        while self._descend():
            pass

    def _descend(self):
        """Finds the next depth; False if there is none, or it is not known yet."""
        self.again.append({"again-left-out": 0, "again-same": 0})
        if len(self.all) >= self.settings.depth:
            return False
        self.missing = sum(key(each) not in self.lines for each in self.all[-1])
        if self.missing:
            return False
        following = []
        for recovery in self.all[-1]:
            following += self._following(recovery)
        if following:
            self.all.append(following)
        return bool(following)

    def _following(self, recovery):
        """Of which good images of a recovery the recoveries are cut, too."""
        rows = self.lines[key(recovery)].get("nested", {}).get("candidates", ())
        found = {}
        for each in rows:
            further = restored(each, recovery, self.folder)
            found[key(further)] = further
        rest = [name for name in found if name not in self.seen]
        chosen = evenly(rest, self.settings.recoveries)
        self.seen.update(chosen)
        self.again[-1]["again-left-out"] += len(rest) - len(chosen)
        self.again[-1]["again-same"] += len(found) - len(rest)
        return [found[name] for name in chosen]
