#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash check --together` with an explorer and with judges that are no machines;
tests/vm/core/test_crash_both.py has real ones, tests/unit/crash/test_together.c the explorer."""
import contextlib
import json
import shlex
import socket
import sys
import time

import cases

sys.dont_write_bytecode = True
from both import NAMES, PAIRS, Lab, arguments, command, make_pairs, pair  # noqa: E402
from judges import ADR, IMAGES, refused  # noqa: E402
from launcher import check, check_pairs, cli, explored, pairs, pairs_lab  # noqa: E402
from launcher import pairs_report, verdicts  # noqa: E402
from launcher.checker import Verdict, select  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


@case
def judged(folder):
    """Each pair of contents is judged once, on the platforms that both claim; bugs by cause"""
    made, lab = [], Lab({(1, 2), (3, 3)})
    status, text = command(folder, lab, "--no-reduce", made=made)
    assert status == 1, text
    once = [(1, 1), (1, 2), (2, 1), (3, 3)]
    assert sorted(set(lab.seen)) == once and len(lab.seen) == 6, lab.seen  # bad ones twice
    words = made[0]
    for row in (("--target", "alpha"), ("--together", "beta"), ("--max-pairs", "1000")):
        assert row in list(zip(words, words[1:])), words
    assert "--not-claimed" not in words and words[-2:] == [
        str(folder / (name + ".trace")) for name in NAMES
    ]
    place = folder / "together-alpha-beta"
    found = json.loads((place / "check.json").read_text())
    assert (found["verdict"], found["pairs"], found["checked"]) == ("bugs", 4, 4), found
    assert [bug["cause"] for bug in found["bugs"]] == [
        ["beta: the store by put1"],
        ["alpha: the store by put2"] + ["beta: the store by put2"],
    ], found["bugs"]
    assert not any(bug["minimal"] for bug in found["bugs"]), found["bugs"]
    one = found["bugs"][0]["example"]
    assert one["images"] == [IMAGES[0], IMAGES[1]] and one["behind"] == [10, 20], one
    assert any("1 pairs of images were left out" in note for note in found["notes"]), found
    assert any("1 pairs of crash points were" in note for note in found["notes"]), found
    assert "4 pairs of images of alpha and beta" in text and "17 consistent cuts" in text, text
    assert "printed: beta: x" in text, text
    page = (place / "report.html").read_text()
    assert "alpha: image %s" % IMAGES[0] in page and "judge" in page
    junit = (place / "check-junit.xml").read_text()
    assert junit.count("<failure") == 2 and "4 pairs" in junit, junit


@case
def goes_on(folder):
    """A check that was ended goes on; other options explore anew, another checker is refused"""
    made, first = [], Lab(ends_after=2)
    try:
        command(folder, first, made=made)
        raise AssertionError("it did not end")
    except KeyboardInterrupt:
        pass
    second = Lab()
    status, text = command(folder, second, "--json", made=made)
    assert status == 0 and json.loads(text)["verdict"] == "good", text
    assert len(made) == 1 and sorted(first.seen + second.seen) == [(1, 1), (1, 2), (2, 1), (3, 3)]
    third = Lab()
    assert command(folder, third, "--limit", 5, made=made)[0] == 0 and not third.seen
    assert len(made) == 2 and ("--max-pairs", "5") in list(zip(made[1], made[1][1:])), made[1]
    words = refused(UsageError, lambda: command(folder, Lab(), "--checker-vm", "beta"))
    assert "another checker" in words, words
    # Platforms that are named count, whether or not they are claimed.
    status, text = command(folder, third, "--platform", "eadr,ddio=on", "--json", made=made)
    assert "--not-claimed" in made[-1] and ("--domain", "eadr") in list(zip(made[-1], made[-1][1:]))
    assert json.loads(text)["pairs"] == 2 and third.seen == [(2, 2)], third.seen


@case
def told(folder):
    """Scripts know their VM and their image, and the promises that the pair is bound by"""
    make_pairs(folder / "p")
    found = pairs.Pairs(folder / "p")
    lab = Lab()
    assert command(folder, lab, "--promises")[0] == 0
    scripts, inputs = lab.orders[lab.seen.index((1, 2))]
    assert scripts[0].startswith("export CRASH_VM=alpha CRASH_PEER=beta CRASH_BEHIND=10 "), scripts
    assert "CRASH_VM=beta CRASH_PEER=alpha CRASH_BEHIND=20 " in scripts[1], scripts
    assert "CRASH_IMAGE=%s; " % IMAGES[1] in scripts[1] and "CRASH_PLATFORM=adr" in scripts[1]
    assert all("cat > /run/crash/promises" in script for script in scripts)
    # Of alpha's memory what is behind 10 and behind 20 of beta; the reverse.
    assert [each.count(b"flush") for each in inputs] == [1, 0], inputs
    assert b"event=15" in inputs[0], inputs
    done = verdicts.read(folder / "together-alpha-beta" / "verdicts.jsonl")
    assert len(done) == 4 and all("+" in key for key in done), done
    assert len(found.units(ADR)) == len(found.units(ADR, True)) == 4
    # A pair with other promises in force is another unit.
    path = folder / "p" / "second" / "images.json"
    images = json.loads(path.read_text())
    images["images"][2] = dict(images["images"][1], behind=26)
    path.write_text(json.dumps(images))
    make_rows = json.loads((folder / "p" / "pairs.json").read_text())
    make_rows["pairs"] = [pair(1, 2), pair(1, 3)]
    (folder / "p" / "pairs.json").write_text(json.dumps(make_rows))
    found = pairs.Pairs(folder / "p")
    assert (len(found.units(ADR)), len(found.units(ADR, True))) == (1, 2)
    assert len(found.units(ADR)[0].occurrences) == 2


@case
def checker_vm(folder):
    """With --checker-vm one script judges, and the other VM runs its own; both are the identity"""
    make_pairs(folder / "p")
    found = pairs.Pairs(folder / "p")

    def checker(*more):
        return check_pairs.checker_of(arguments(folder, *more), found)

    both = checker()
    assert both.counts("alpha") and both.counts("beta") and both.script_of("beta") == "judge"
    one = checker("--checker-vm", "alpha", "--peer-script", "serve")
    assert one.counts("alpha") and not one.counts("beta")
    assert (one.script_of("alpha"), one.script_of("beta")) == ("judge", "serve")
    other = checker("--checker-vm", "alpha")
    assert len({each.identity(found) for each in (both, one, other)}) == 3


@case
def refusals(folder):
    """What pairs do not have is refused, and so are pairs where they do not belong"""
    for name in NAMES:
        (folder / (name + ".trace")).write_bytes(b"")
    for words, text in (
        (("--reads",), "goes without --reads"),
        (("--nested",), "goes without --nested"),
        (("--nested-depth", "2"), "goes without --nested-depth"),
        (("--compare",), "goes without --compare"),
        (("--shard", "3/2"), "no shard"),
        (("--vm", "gamma"), "name two VMs"),
        (("--checker-vm", "gamma"), "neither of the two"),
        (("--peer-script", "x"), "goes with --checker-vm"),
        (("--checker-vm", "beta", "--peer-script", "x", "--peer-script-file", "y"), "exclude"),
    ):
        args = arguments(folder, *words)
        assert text in refused(UsageError, check_pairs.run, args, print), words
    args = arguments(folder / "nothing")
    assert "no recording" in refused(UsageError, check_pairs.run, args, print)
    args = arguments(folder)
    args.jobs = 2
    assert "--shard I/N" in refused(UsageError, check_pairs.run, args, print)
    args.jobs, args.vm = 1, ["alpha", "delta"]
    assert "has no such VM" in refused(UsageError, check_pairs.run, args, print)
    alone = cli.make_parser().parse_args(["crash", "check", "--vm", "a", "--vm", "b", "x"])
    assert "go with --together" in refused(UsageError, check_pairs.require_alone, alone)
    (folder / "kept").write_text("")
    args = arguments(folder / "kept")
    assert "crash check %s" % args.explored in refused(UsageError, check_pairs.run, args, print)
    assert "has no pairs" in refused(UsageError, pairs.Pairs, folder)
    make_pairs(folder / "p")
    assert "crash check --together" in refused(UsageError, explored.Explored, folder / "p")
    for wrong in ({"images": [0, 7]}, {"images": [0]}, {"platforms": 7}, 5):
        row = {**PAIRS[0], **wrong} if isinstance(wrong, dict) else wrong
        make_pairs(folder / "p", [row])
        assert "not what the explorer" in refused(LabError, pairs.Pairs, folder / "p"), wrong
    make_pairs(folder / "p", [])
    found, checker = pairs.Pairs(folder / "p"), pairs_lab.PairChecker("x", "", (), None, "true")
    selection = check.Selection(found, (), False, None, None)
    assert pairs_report.result(found, checker, selection, {})["verdict"] == "none"


# -- two VMs


class VM:
    """Stands for a CheckerVM: its script ends, panics or goes on as told, at some time."""

    def __init__(self, name, log):
        self.name, self.log = name, log
        self.mine, self.other = socket.socketpair()
        self.plan, self.session, self.kind = (None, None), self, None
        self.status = None

    def put_back(self, image):
        self.log.append((self.name, "back", image))
        self.status = None

    def begin(self, script, data):
        self.log.append((self.name, "begin", script))
        self.kind, self.status = self.plan
        if self.kind != "hang":
            self.other.send(b"x")

    def listened(self):
        return [(self.mine, 1)]

    def look(self, ready, limit):
        if self.mine in ready:
            self.mine.recv(1)
            return self.kind
        return "hang" if time.monotonic() >= limit else None

    def verdict(self, kind, times):
        said = b"said\n" if kind == "exit" else b""
        self.log.append((self.name, "ended", kind))
        return Verdict(kind, self.status if kind == "exit" else None, said, 5, b"bad\n", times)


@case
def two_vms(_folder):
    """Both VMs are put back before one begins; the first bad end decides, a server need not end"""
    log = []
    vms = [VM(name, log) for name in NAMES]

    def check(first, second, counts=(True, True)):
        log.clear()
        vms[0].plan, vms[1].plan = first, second
        both = pairs_lab.PairVM(vms, NAMES, counts)
        return both.check(["i", "j"], ["s", "t"], [b"", b""], 0.3)

    good, bad, hang = ("exit", 0), ("exit", 3), ("hang", None)
    found = check(good, good)
    assert (found.kind, found.status, found.output) == ("exit", 0, b"alpha: said\nbeta: said\n")
    assert [row[1] for row in log[:4]] == ["back", "back", "begin", "begin"], log
    found = check(good, bad)
    assert (found.kind, found.status) == ("exit", 3), found
    start = time.monotonic()
    found = check(hang, bad)  # nobody waits for the one that goes on
    assert found.status == 3 and time.monotonic() - start < 0.25, found
    assert ("alpha", "ended", None) in log, log
    assert check(good, hang).kind == "hang"
    found = check(("panic", None), good)
    assert found.kind == "panic" and found.console == b"alpha: bad\nbeta: bad\n", found
    one = (True, False)
    assert check(good, hang, one)[:2] == ("exit", 0)
    assert check(good, bad, one)[:2] == ("exit", 0)
    assert check(hang, good, one).kind == "hang"
    assert check(good, ("oops", None), one).kind in ("oops", "exit")  # whichever is seen first
    assert check(hang, ("oops", None), one).kind == "oops"
    assert check(hang, ("exit", 127), one).status == 127  # what cannot run is never right
    for vm in vms:
        vm.mine.close()
        vm.other.close()


@case
def selecting(_folder):
    """select() says which sockets are ready, and does not wait longer than it may"""
    with contextlib.ExitStack() as stack:
        mine, other = map(stack.enter_context, socket.socketpair())
        assert not select([(mine, 1)], time.monotonic() + 0.01)
        other.send(b"x")
        assert select([(mine, 1)], time.monotonic() + 5) == {mine: 1}


@case
def the_lab(folder):
    """The lab has the VMs of the recording with their NVDIMMs; servers do not stop its start"""
    make_pairs(folder / "p")
    found = pairs.Pairs(folder / "p")
    args = arguments(folder, "--checker-vm", "alpha", "--peer-script", "serve 'x'")
    checker = check_pairs.checker_of(args, found)
    lab = pairs_lab.PairLab(found, "adr,ddio=on", checker, print)
    assert lab.args.vms == "alpha,beta" and lab.args.driver == "none", lab.args
    assert lab.args.pmem == ["%s:16M,domain=adr" % name for name in NAMES], lab.args.pmem
    plan = {"vms": {name: {"pmem": {}} for name in NAMES}}
    lab._change(plan)  # pylint: disable=protected-access
    for name, side in zip(NAMES, found.sides):
        assert plan["vms"][name]["pmem"]["content"] == [str(side.extents[0].file)], plan
    assert lab.places() == NAMES
    assert lab.prelude("beta") == "export CRASH_VM=beta CRASH_PEER=alpha\n"
    warm = [
        lab._warm(k, checker.script_of(vm)) for k, vm in enumerate(NAMES)
    ]  # pylint: disable=protected-access
    assert "CRASH_VM=alpha" in warm[0] and warm[0].endswith("judge"), warm
    words = shlex.split(warm[1])
    assert words[:4] == ["timeout", "10", "sh", "-c"] and words[4].endswith("serve 'x'"), words
    assert lab.name.startswith("check-")


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
