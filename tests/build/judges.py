# SPDX-License-Identifier: GPL-2.0-or-later
"""Explorations and judges for tests of `crash check` without VMs."""
import argparse
import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from launcher import check, check_report, check_verbs, explored  # noqa: E402
from launcher.checker import Verdict  # noqa: E402

SIZE = 16 << 20
ADR, EADR = ["adr,ddio=on", "adr,ddio=off"], ["eadr,ddio=on", "eadr,ddio=off"]
IMAGES = [hashlib.sha256(b"%d" % n).hexdigest()[:32] for n in range(1, 41)]
# What the judge without a VM says of an image, by its number: the rest are good.
BAD = {3: ("exit", 1), 5: ("hang", None), 7: ("exit", 1), 11: ("panic", None), 13: ("exit", 127)}


def refused(error, function, *words):
    """The message with which a call is refused."""
    try:
        function(*words)
    except error as found:
        return found.text()
    raise AssertionError("it was accepted")


class Judge:
    """Says of each image what a table says; counts, and fails or changes its mind if told to."""

    def __init__(self, table=None, jobs=1):
        self.table = BAD if table is None else table
        self.vms = ["judge%d" % i for i in range(jobs)]
        self.seen, self.orders, self.restarts = [], [], 0

    def start(self, _name):
        return self

    def restart(self, _name):
        self.restarts += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def check(self, path, script, data, _timeout):
        name = Path(path).stem if path else explored.START
        self.seen.append(name)
        self.orders.append((script, data))
        number = IMAGES.index(name) + 1 if name in IMAGES else 0
        found = self.table.get(number, ("exit", 0))
        if callable(found):
            found = found(self.seen.count(name))
        return Verdict(
            *found[:2], b"state %d\n" % found[2] if len(found) > 2 else b"", 0, b"", (1, 1)
        )


def occurrence(number, platforms, promises=0, deviations=None):
    one = {"image": IMAGES[number - 1], "behind": 10 * number, "promises": promises}
    one.update(plan="all-but %d=1" % number, platforms=platforms)
    if deviations is not None:
        one["deviations"] = deviations
    return one


def make_explored(folder, images=None):
    """A folder as an exploration leaves it."""
    folder.mkdir(exist_ok=True)
    (folder / "images").mkdir(exist_ok=True)
    (folder / "base").mkdir(exist_ok=True)
    for name in IMAGES:
        (folder / "images" / (name + ".image")).write_bytes(b"image " + name.encode())
    with open(folder / "base" / "pmem0.raw", "wb") as file:
        file.truncate(SIZE)
        os.pwrite(file.fileno(), b"content", 5 * 4096)
        os.pwrite(file.fileno(), b"more", SIZE - 4096)
    extent = {"name": "pmem0", "address": "0x100000000", "size": SIZE, "hash": "ab" * 32}
    extent["file"] = "base/pmem0.raw"
    if images is None:
        images = [occurrence(n, ADR + EADR if n % 2 else ADR) for n in range(1, 41)]
    found = {"version": 1, "run": "12" * 16, "target": "beta", "extents": [extent]}
    (folder / "images.json").write_text(json.dumps({**found, "images": images}))
    promises = [
        {"acknowledgement": "durable", "machine": "beta", "event": n, "ranges": []} for n in (5, 9)
    ]
    (folder / "promises.json").write_text(json.dumps({"promises": promises}))
    return explored.Explored(folder)


def options(**more):
    """The options of a check as its verb gets them."""
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers()
    check_verbs.add(verbs, lambda work: work, lambda work: work)
    words = ["check", "--script", "judge", "x"]
    args = parser.parse_args(words)
    vars(args).update(more)
    return args


def placeless(found, folder):
    """A result whose commands do not name the folder of the results, to compare it."""
    return json.loads(json.dumps(found).replace(str(folder), "FOLDER"))


def files_of(folder):
    """The octets of all results of a check, likewise."""
    names = (check_report.RESULT, check_report.JUNIT, "report.html")
    return [(folder / name).read_bytes().replace(bytes(folder), b"FOLDER") for name in names]


@contextlib.contextmanager
def judged_by(judge):
    """Checks within get this judge instead of a lab."""
    before = check.CheckLab
    check.CheckLab = lambda *_: judge
    try:
        yield judge
    finally:
        check.CheckLab = before


def run(folder, judge, say=lambda text: None, **more):
    """A check; returns its result."""
    args = options(**more)
    found = explored.Explored(folder)
    checker = check.checker_of(args, found)
    selection = check.Selection(found, args.platform, args.promises, args.limit, args.shard)
    with judged_by(judge):
        done = check.check(found, checker, selection, None, args, say)
    result = check_report.result(found, checker, selection, done)
    check_report.write(folder, result)
    return result
