# SPDX-License-Identifier: GPL-2.0-or-later
"""A kept bug of a pair of images: what its file has of the two VMs (keep.py, docs/bug-format.md).

The head describes the first VM where that of one VM would be, and the second one in `together`.
Unpacked, it is a folder of one pair, as the explorer leaves one of many (pairs.py).
"""
import json

from . import explore
from .explored import PAIRS, is_occurrence
from .pairs import SIDES
from .state import NAME

EXTENTS_MAX = 16  # of each side
BINDS = ("binds-behind", "binds-behind-other")


def sides(found, example, with_promises):
    """What a head says of each VM."""
    in_force = found.in_force(example["behind"]) if with_promises else ([], [])
    return [
        {
            "told": str(side.result.get("told", "")),
            "occurrence": {
                "image": example["images"][k],
                "behind": example["behind"][k],
                "promises": len(in_force[k]),
                "plan": example["plan"],
                "platforms": [example["platform"]],
            },
            "promises": in_force[k],
        }
        for k, side in enumerate(found.sides)
    ]


def together(found, settings, second):
    """The member `together`.  Takes what only pairs have out of the checker's settings."""
    return {
        "machines": found.names,
        "checker-vm": settings.pop("checker-vm"),
        "peer-script": settings.pop("peer-script"),
        **second,
    }


def settings_of(head):
    """The settings of the checker of a head, as pairs_lab.PairChecker has them."""
    own = {name: head["together"][name] for name in ("checker-vm", "peer-script")}
    return {**head["checker"], **own}


def _binds(promises):
    """Whether each promise says behind which events it is in force."""
    values = [each[name] for each in promises for name in BINDS]
    return all(type(value) is int and 0 <= value < 1 << 64 for value in values)


def is_together(head):
    """Whether the head's member `together`, and what belongs to it, is what crash keep writes."""
    found, extents = head["together"], head["extents"]
    if not isinstance(extents, list) or not all(isinstance(one, dict) for one in extents):
        return False
    if found is None:
        return 1 <= len(extents) <= EXTENTS_MAX and not any("side" in one for one in extents)
    names, both = found["machines"], (head["occurrence"], found["occurrence"])
    places = [one["side"] for one in extents]
    good = head["recovery"] is None and isinstance(names, list) and len(names) == 2
    good = good and names[0] != names[1]
    good = good and all(isinstance(name, str) and NAME.match(name) for name in names)
    good = good and head["target"] == names[0] and isinstance(found["told"], str)
    good = good and (found["checker-vm"] is None or found["checker-vm"] in names)
    good = good and isinstance(found["peer-script"], str)
    good = good and all(type(side) is int and side in (0, 1) for side in places)
    good = good and places == sorted(places)
    good = good and all(1 <= places.count(side) <= EXTENTS_MAX for side in (0, 1))
    good = good and is_occurrence(both[1]) and not any("outer" in one for one in both)
    good = good and both[0]["platforms"] == both[1]["platforms"]
    good = good and isinstance(found["promises"], list)
    return good and _binds(head["promises"]) and _binds(found["promises"])


def places_of(head, folder):
    """[(folder, name of the VM, occurrence, promises)]: of each VM what is unpacked where."""
    first = head["recovery"]["cuts"][0] if head["recovery"] else head["occurrence"]
    if not head["together"]:
        return [(folder, head["target"], first, head["promises"])]
    two = head["together"]
    rows = [(first, head["promises"]), (two["occurrence"], two["promises"])]
    return [(folder / side, name, *row) for side, name, row in zip(SIDES, two["machines"], rows)]


def write(head, folder):
    """Writes the list of the one pair."""
    platforms = head["occurrence"]["platforms"]
    row = {"images": [0, 0], "platforms": platforms}
    found = {"version": 1, "pairs": [row]}
    found["platforms"] = [{"platform": name, "point-pairs": 1} for name in platforms]
    explore.write(folder / PAIRS, json.dumps(found))
