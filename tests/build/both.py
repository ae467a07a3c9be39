# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of pairs of images, and the verbs on them with an explorer and with judges that are no
machines."""
import contextlib
import io
import json
import subprocess
from pathlib import Path

from judges import ADR, EADR, IMAGES, make_explored, occurrence
from launcher import check_pairs, check_verbs, cli, keep_judge, pairs, paths, plans
from launcher.checker import Verdict

NAMES = ["alpha", "beta"]


def pair(first, second, platforms=None):
    return {"images": [first - 1, second - 1], "platforms": platforms or ADR}


PAIRS = [pair(1, 1), pair(1, 2), pair(2, 1), pair(2, 2, EADR), pair(3, 3), pair(3, 3, EADR)]


def deviations_of(number):
    """An image lacks what its number, less one, has as bits: the answers to these questions."""
    asked = [bit + 1 for bit in range(6) if number - 1 >> bit & 1]
    return [{"question": n, "answer": 0, "what": "line", "lost": [100 * n]} for n in asked]


def make_pairs(place, rows=None, names=NAMES, numbers=(1, 2, 3)):
    """A folder as the explorer leaves it: each side has images of these numbers, of which 1 loses
    nothing."""
    place.mkdir(exist_ok=True)
    for name, side in zip(names, pairs.SIDES):
        images = [occurrence(n, ADR + EADR, 0, deviations_of(n)) for n in numbers]
        make_explored(place / side, images)
        found = json.loads((place / side / "images.json").read_text())
        (place / side / "images.json").write_text(json.dumps({**found, "target": name}))
        traces = ["../../%s.trace" % each for each in names]
        result = {"bugs": [], "not-claimed": [], "source": {"traces": traces, "options": []}}
        (place / side / "result.json").write_text(json.dumps(result))
        promises = [
            {"acknowledgement": "flush", "machine": "alpha", "event": n, "ranges": []}
            | {"binds-behind": 10, "binds-behind-other": n}
            for n in (15, 25)
        ]
        (place / side / "promises.json").write_text(json.dumps({"promises": promises}))
    row = {"intervals": [3, 3], "cuts": "17", "point-pairs": 5, "point-pairs-explored": 4}
    found = {"version": 1, "machines": names, "seed": "1", "max-pairs": 9}
    found["platforms"] = [{"platform": name, **row} for name in ADR[:1]]
    row.update({"point-pairs": 0, "point-pairs-explored": 0})
    found["platforms"].append({"platform": EADR[0], **row})
    found.update({"point-pairs-without-images": 0, "point-pairs-contrary": 0})
    found.update({"image-pairs": "7", "image-pairs-explored": 6})
    found["pairs"] = PAIRS if rows is None else rows
    (place / "pairs.json").write_text(json.dumps(found))


class Lab:
    """Stands for PairLab and its VMs.  bad: a set of pairs of numbers of images, or a function of
    such a pair."""

    def __init__(self, bad=(), ends_after=None):
        self.bad = bad if callable(bad) else lambda *two: two in bad
        self.ends_after = ends_after
        self.vms, self.seen, self.orders, self.made = ["both"], [], [], []

    def __call__(self, *words):
        """Takes the place of the class."""
        self.made.append(words)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, _name):
        return self

    def check(self, images, scripts, inputs, _timeout):
        if len(self.seen) == self.ends_after:
            raise KeyboardInterrupt
        two = tuple(IMAGES.index(Path(image).stem) + 1 for image in images)
        self.seen.append(two)
        self.orders.append((scripts, inputs))
        return Verdict("exit", int(self.bad(*two)), b"beta: x\n", 8, b"", (1, 1))


@contextlib.contextmanager
def replaced(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield value
    finally:
        setattr(owner, name, before)


def explorer_of(made, **how):
    """Stands for subprocess.run of staghorn-explore."""

    def run(command, **_):
        made.append(command)
        place = Path(command[command.index("--out") + 1])
        make_pairs(place, **how)
        return subprocess.CompletedProcess(command, 4, "", "")

    return run


def make_plans(explored, wanted):
    """Stands for plans.make(): the images that lack what the plans' answers lose."""
    found = []
    for one in wanted:
        number = 1 + sum(1 << (each["question"] - 1) for each in one["deviations"])
        image = occurrence(number, [one["platform"]], 0, deviations_of(number))
        found.append(dict(image, behind=one["behind"], plan="plans %d" % len(found)))
    assert explored.target in NAMES, explored.target
    return found


def events_of(_trace, numbers, *_symbols):
    """Stands for plans.events(): each question is about what a function of its own stored."""
    return {n: {"number": n, "kind": "store", "symbol": "put%d" % (n // 100)} for n in numbers}


def arguments(folder, *more):
    words = ["crash", "check", "--together", "--vm", "alpha", "--vm", "beta", "--script", "judge"]
    return cli.make_parser().parse_args([*words, *map(str, more), str(folder)])


@contextlib.contextmanager
def without_machines(folder, lab, run, make=make_plans):
    """Verbs within have this PairLab and explorer; of the latter run() is the process."""
    tool = folder / "explorer"
    tool.write_text("")
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (check_pairs, "PairLab", lab),
            (keep_judge, "PairLab", lab),
            (pairs.subprocess, "run", run),
            (pairs.explore, "complete", lambda *_: None),
            (plans, "make", make),
            (plans, "events", events_of),
            (paths, "explorer", lambda: tool),
        ):
            stack.enter_context(replaced(owner, name, value))
        yield


def command(folder, lab, *more, made=None, make=make_plans, **how):
    """The verb on a recording; (status, what it printed).  how: what the explorer leaves."""
    for name in NAMES:
        (folder / (name + ".trace")).write_bytes(b"")
    out, said = io.StringIO(), io.StringIO()
    run = explorer_of([] if made is None else made, **how)
    with without_machines(folder, lab, run, make), contextlib.redirect_stdout(out):
        status = check_pairs.run(arguments(folder, *more), lambda text: said.write(text + "\n"))
    lab.said = said.getvalue()
    return status, out.getvalue()


def verb(folder, lab, *words):
    """(status, what it printed) of another verb of crash."""
    args, out = cli.make_parser().parse_args(["crash", *map(str, words)]), io.StringIO()
    work = {"check": "do_check", "merge": "do_merge", "keep": "do_keep"}[args.crash_verb]
    with without_machines(folder, lab, explorer_of([])), contextlib.redirect_stdout(out):
        with contextlib.redirect_stderr(io.StringIO()):
            return getattr(check_verbs, work)(args), out.getvalue()
