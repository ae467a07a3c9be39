# SPDX-License-Identifier: GPL-2.0-or-later
"""Recoveries from a power cut that are cut in turn: which there are, and what became of them.

A recovery is what the checker does about one image.  Its key in the journal is that of the image,
with what is demanded of it: so the same recovery is recorded once, wherever its image was found.
check_nested.py records and explores recoveries; its results are made here.
"""
from collections import namedtuple

from . import verdicts
from .explored import START, Unit, is_occurrence

FOLDER = "nested"
IMAGES = "again"  # images whose recoveries are cut in turn, within FOLDER

# unit: of the image; steps: of --compare, the marks behind which the first cut may have been, or
# None; path: the image's file, or "" for the content at the start
Recovery = namedtuple("Recovery", "unit steps path")


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
    return {**row, "platform": one["platforms"][0]}


def platforms(unit):
    """All platforms that have the image, each once."""
    return list(dict.fromkeys(x for one in unit.occurrences for x in one["platforms"]))


def again(unit):
    """A good image of a recovery in the journal: its recovery is cut, too."""
    one = {name: value for name, value in unit.occurrences[0].items() if name != "deviations"}
    return dict(one, platforms=platforms(unit))


def restored(one, parent, folder):
    """The Recovery of what again() made."""
    chain = [one]
    while isinstance(chain[-1], dict) and "outer" in chain[-1]:
        chain.append(chain[-1]["outer"])
    if not all(map(is_occurrence, chain)):
        raise KeyError("again")
    path = folder / FOLDER / IMAGES / (one["image"] + ".image")
    path = "" if one["image"] == START else path
    return Recovery(Unit(one["image"], parent.unit.promises, (one,)), parent.steps, path)


# -- results


def counted(rows):
    """Sums over what the journal has of some recoveries."""
    names = {}
    for row in rows:
        for name, count in row["verdicts"].items():
            names[name] = names.get(name, 0) + count
    sums = ("events", "images", "left-out", "again-left-out", "again-same")
    return {
        "recoveries": len(rows),
        "verdicts": names,
        **{name: sum(row[name] for row in rows) for name in sums},
    }


def notes(found, unsteady):
    """What makes the result less than it seems, as sentences."""
    sentences = []
    if not found["recoveries"]:
        sentences.append("No recovery was recorded, because no image is good.")
    if unsteady:
        sentences.append("%d recoveries were not good when they were recorded." % unsteady)
    if found["doubt"] > unsteady:
        sentences.append(
            "%d images of recoveries have no certain verdict." % (found["doubt"] - unsteady)
        )
    if found["left-out"]:
        sentences.append(
            "%d crash points of recoveries were left out (--nested-images)." % found["left-out"]
        )
    if found["again-left-out"]:
        sentences.append(
            "%d recoveries of images of recoveries were left out (--nested-recoveries)."
            % found["again-left-out"]
        )
    return sentences
