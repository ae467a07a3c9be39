#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash check` and `crash merge` with judges that are no VMs; tests/vm/core has
real ones."""
import contextlib
import io
import json
import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import cases

sys.dont_write_bytecode = True
from judges import (  # noqa: E402
    ADR,
    BAD,
    EADR,
    IMAGES,
    SIZE,
    TOOLS,
    Judge,
    files_of,
    judged_by,
    make_explored,
    occurrence,
    options,
    placeless,
    refused,
    run,
)
from launcher import check, check_lab, check_report, check_run, checker, cli  # noqa: E402
from launcher import compare, explored, merge, reduce, verdicts  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402


CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


@case
def selecting(folder):
    """Images are chosen by platform, number of promises, limit and shard"""
    one = dict(occurrence(1, ADR), promises=1)
    found = make_explored(folder / "e", [occurrence(1, ADR), one, occurrence(2, EADR)])
    assert [len(x.occurrences) for x in found.units(ADR)] == [2]
    assert [x.promises for x in found.units(ADR, True)] == [0, 1]
    assert [x.image for x in found.units(EADR)] == IMAGES[1:2]
    assert found.claimed() == ADR + EADR
    assert explored.platforms_of("adr,ddio=on,eadr") == ["adr,ddio=on", *EADR]
    for text in ("", "adr,ddio=maybe", "ddio=on", "adr,ddio=on,ddio=off", "cpu"):
        assert "is no platform" in refused(UsageError, explored.platforms_of, text)
    found = make_explored(folder / "f")
    for limit, wanted in ((1, [1]), (2, [1, 40]), (4, [1, 14, 27, 40]), (99, range(1, 41))):
        chosen = [IMAGES.index(x.image) + 1 for x in found.units(ADR, limit=limit)]
        assert chosen == list(wanted), chosen
    shards = [check.Selection(found, (), False, None, "%d/3" % i).mine for i in (1, 2, 3)]
    assert sorted(x.image for each in shards for x in each) == sorted(IMAGES)
    assert all(shards)


@case
def wrong_folders(folder):
    """A folder that is no exploration is refused, and the message says what to do"""
    assert "there is no folder" in refused(UsageError, explored.Explored, folder / "x")
    assert "has no images" in refused(UsageError, explored.Explored, folder)
    make_explored(folder)
    path = folder / "images.json"
    good = json.loads(path.read_text())
    for change, words in (
        ({"extents": None}, "which NVDIMMs"),
        ({"extents": [{}]}, "cannot be"),
        ({"extents": [dict(good["extents"][0], size=SIZE + 4096)]}, "no VM of the launcher"),
        ({"images": [{"image": "../../x"}]}, "not what the explorer writes"),
        ({"images": [dict(occurrence(1, ADR), deviations=[1])]}, "not what the explorer writes"),
    ):
        path.write_text(json.dumps({**good, **change}))
        assert words in refused(LabError, explored.Explored, folder), words
    path.write_text("[" * 100000)
    assert "not what the explorer writes" in refused(LabError, explored.Explored, folder)


@case
def wrong_arguments(folder):
    """Without a script there is no check; wrong copies and scripts are refused"""
    found = make_explored(folder / "e")
    message = refused(UsageError, check.checker_of, options(script=None), found)
    assert "--script or --script-file" in message
    for more, words in (
        ({"script": " "}, "empty"),
        ({"script": "a\n#.\nb"}, "no lines #."),
        ({"script_file": "x"}, "exclude"),
        ({"script": None, "script_file": str(folder / "none")}, "No such file"),
        ({"copy": ["a"]}, "is not FILE:/PATH"),
        ({"copy": ["/none:/usr/bin/x"]}, "there is no file"),
        ({"platform": ["xyz"]}, "is no platform"),
        ({"shard": "3/2"}, "is no shard"),
    ):
        assert words in refused(UsageError, run, folder / "e", None, *()) if not more else True
        try:
            run(folder / "e", Judge(), **more)
        except UsageError as error:
            assert words in error.text(), (words, error.text())
        else:
            raise AssertionError(more)


@case
def judging(folder):
    """Verdicts are grouped by what happened and why; bad ones were checked twice"""
    make_explored(folder)
    judge = Judge({n: BAD[n] for n in (3, 5, 7, 11)})
    found = run(folder, judge)
    assert found["verdict"] == "bugs" and found["checked"] == 40, found
    assert found["verdicts"] == {"good": 36, "bug": 2, "hang": 1, "panic": 1}, found["verdicts"]
    kinds = [(bug["verdict"], bug["status"], bug["images"]) for bug in found["bugs"]]
    assert kinds == [("bug", 1, 1), ("hang", None, 1), ("bug", 1, 1), ("panic", None, 1)], kinds
    assert [judge.seen.count(IMAGES[n - 1]) for n in (1, 3, 5)] == [1, 2, 2]
    assert "CRASH_BEHIND=10 " in judge.orders[0][0] and IMAGES[0] in judge.orders[0][0]
    suite = ElementTree.parse(folder / "check-junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "4")
    page = (folder / "report.html").read_text()
    assert page.count("<h3>Judged ") == 4 and "src=" not in page


@case
def causes(folder):
    """Images whose deviations lose the same thing are one bug; the smallest is its example"""
    line, queue = ({"question": 1, "answer": 1, "what": what} for what in ("line", "queue"))
    images = [occurrence(1, ADR, deviations=[])]
    images += [occurrence(n, ADR, deviations=[line] * (5 - n)) for n in (2, 3, 4)]
    images += [occurrence(5, ADR, deviations=[queue])]
    make_explored(folder, images)
    found = run(folder, Judge({n: ("exit", 1) for n in range(1, 6)}))
    rows = [(bug["cause"], bug["images"], bug["example"]["behind"]) for bug in found["bugs"]]
    wanted = [(["nothing is lost"], 1, 10), (["a line"], 3, 40), (["a queue"], 1, 50)]
    assert rows == wanted, rows
    assert "the checker may be wrong" in " ".join(found["notes"])
    # What a minimal example does not need is no cause.
    small = {IMAGES[3]: {"image": IMAGES[0], "deviations": [], "lost": []}}
    (folder / "minimal.json").write_text(json.dumps(small))
    found = run(folder, Judge({}))
    rows = [(bug["cause"], bug["images"]) for bug in found["bugs"]]
    assert rows == [(["nothing is lost"], 4), (["a queue"], 1)], rows


@case
def doubtful(folder):
    """A verdict that changes is unsteady, a script that cannot run is a failure: no verdict"""
    make_explored(folder)
    judge = Judge({3: lambda n: ("exit", n == 1)})
    found = run(folder, judge)
    assert found["verdict"] == "none" and found["verdicts"]["unsteady"] == 1, found
    assert judge.seen.count(IMAGES[2]) == 2
    (folder / "verdicts.jsonl").unlink()
    found = run(folder, Judge({13: BAD[13]}))
    assert found["verdict"] == "none" and found["verdicts"]["failed"] == 1, found
    judge = Judge({})
    found = run(folder, judge)
    assert found["verdict"] == "good" and judge.seen == [IMAGES[12]], judge.seen
    (folder / "verdicts.jsonl").unlink()
    message = refused(LabError, run, folder, Judge({n: BAD[13] for n in range(1, 41)}))
    assert "5 checks in a row failed" in message, message


@case
def broken_machine(folder):
    """A VM that is gone is made anew, and its image checked again; a wrong base ends the check"""
    make_explored(folder)

    class Breaking(Judge):
        words = "VM judge0 went off"

        def check(self, *words):
            if len(self.seen) == 4 and not self.restarts:
                raise LabError(self.words)
            return super().check(*words)

    judge = Breaking({}, 2)
    assert run(folder, judge)["verdict"] == "good" and judge.restarts
    (folder / "verdicts.jsonl").unlink()
    Breaking.words = "the image has another base than the content of pmem0"
    message = refused(LabError, run, folder, Breaking({}))
    assert "another base" in message and "a setup must not write" in message, message


@case
def script(folder):
    """A checker's shell runs its own script or another one, without arguments"""
    one = make_explored(folder / "e", [occurrence(1, ADR)]).units(ADR)[0]
    own = 'cd %s; echo "$# ${1-none} $CRASH_BEHIND"; exit 4' % shlex.quote(str(folder))
    for order, status, output in (
        ("", 4, "ready\n0 none \n"),
        ('echo "other $#"; exit 5', 5, "ready\nother 0\n"),
        (check_run.order(one, [])[0], 4, "ready\n0 none 10\n"),
    ):
        done = subprocess.run(
            ["sh", "-c", checker.WAITER, "sh", own],
            input=(order + "\n" if order else "").encode() + checker.START,
            stdout=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stdout.decode()) == (status, output), done


@case
def flood(folder):
    """Of a checker that writes without end a bounded part is kept, and it is a hang"""
    vm = checker.CheckerVM.__new__(checker.CheckerVM)
    vm.output, vm.written = b"", 0
    parts = 2 * checker.OUTPUT_MAX // 1000
    for _ in range(parts):
        vm._take_output(None, b"y" * 1000)  # pylint: disable=protected-access
    assert (len(vm.output), vm.written) == (checker.OUTPUT_MAX, 1000 * parts)

    class Flooded(Judge):
        def check(self, *_):
            return checker.Verdict("hang", None, vm.output, vm.written, b"", (1, 1))

    make_explored(folder, [occurrence(1, ADR)])
    found = run(folder, Flooded())
    assert found["verdicts"] == {"hang": 1}, found["verdicts"]
    kept = len((folder / "verdicts.jsonl").read_bytes())
    assert verdicts.OUTPUT_MAX < kept < 2 * verdicts.OUTPUT_MAX, kept


@case
def promises(folder):
    """With --promises the same image with more demands is another check, which gets them all"""
    images = [occurrence(1, ADR), dict(occurrence(1, ADR), promises=2, behind=30)]
    make_explored(folder, images)
    judge = Judge({})
    found = run(folder, judge, promises=True)
    assert found["checked"] == 2 and judge.seen == IMAGES[:1] * 2
    data = [each[1].decode() for each in judge.orders]
    assert data == ["\n", "durable machine=beta event=5\ndurable machine=beta event=9\n"], data
    assert set(verdicts.read(folder / "verdicts.jsonl")) == {IMAGES[0] + "+0", IMAGES[0] + "+2"}


WRITER = """import sys, time
sys.path[:0] = [%r, %r]
import judges as t
from pathlib import Path
class Slow(t.Judge):
    def check(self, *words):
        time.sleep(0.02 if len(self.seen) < 12 else 60)  # killed before it comes to the end
        return super().check(*words)
t.run(Path(sys.argv[1]), Slow(jobs=2), say=lambda text: print(text, flush=True))
""" % (
    str(TOOLS),
    str(Path(__file__).parent),
)


@case
def killed(folder):
    """A check that is killed goes on: nothing twice, nothing lost, the result is the same"""
    table = {n: BAD[n] for n in (3, 5, 7, 11)}
    make_explored(folder / "a")
    wanted = run(folder / "a", Judge(table))
    make_explored(folder / "b")
    journal = folder / "b" / "verdicts.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder / "b")]) as child:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 8:
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
    with open(journal, "ab") as file:
        file.write(b'{"image": "0')  # half a line
    before = set(verdicts.read(journal))
    assert 8 <= len(before) < 40, len(before)
    judge = Judge(table)
    found = run(folder / "b", judge)
    assert not before & set(judge.seen) and before | set(judge.seen) == set(IMAGES)
    assert len(journal.read_text().splitlines()) == 40
    assert placeless(found, folder / "b") == placeless(wanted, folder / "a")
    message = refused(UsageError, lambda: run(folder / "b", judge, script="other"))
    assert "another checker" in message and "--journal" in message


@case
def shards(folder):
    """Merged shards give the files of a check without shards; what is missing is said"""
    table = {n: BAD[n] for n in (3, 5, 7, 11)}
    wanted = run(make_explored(folder / "a").folder, Judge(table))
    make_explored(folder / "b")
    for i in (1, 2, 3):
        if i == 3:
            found, _ = merge.merge(folder / "b", [folder / "b"])
            assert found["checked"] < 40 and "have not been checked" in found["notes"][0]
        run(folder / "b", Judge(table), shard="%d/3" % i)
    found, place = merge.merge(folder / "c", [folder / "b"])
    wanted = placeless(wanted, folder / "a")
    assert placeless(found, folder / "b") == wanted and place == folder / "b"
    check_report.write(folder / "b", found)
    assert files_of(folder / "b") == files_of(folder / "a")
    journals = sorted((folder / "b").glob("verdicts-*"))
    found, _ = merge.merge(folder / "d", [folder / "a", *journals])
    assert placeless(found, folder / "a") == wanted
    for parts, words in (
        ([folder / "none"], "there is no"),
        (journals, "no folder with images"),
        ([make_explored(folder / "e").folder], "has no verdicts"),
    ):
        message = refused(UsageError, merge.merge, folder / "f", parts)
        assert words in message, message
    make_explored(folder / "e", [occurrence(1, ADR)])
    (folder / "e" / "verdicts.jsonl").write_bytes(b"")
    assert "have other images" in refused(
        UsageError, merge.merge, folder / "f", [folder / "a", folder / "e"]
    )


def die_at(number):
    """The process kills itself when it is about to open or rename its number-th file."""
    left = [number]

    def hook(event, _words):
        if event in ("open", "os.rename"):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


@case
def merging_killed(folder):
    """A merge that is killed at any point loses no verdict; the next one writes the same results"""
    table = {n: BAD[n] for n in (3, 5, 7, 11)}
    place = make_explored(folder / "a").folder
    for i in (1, 2):
        run(place, Judge(table), shard="%d/2" % i)
    journals = {path: path.read_bytes() for path in place.glob("verdicts-*")}
    names = ("check.json", "check-junit.xml", "report.html", "verdicts.jsonl")
    number, status = 0, -1
    check_report.write(place, merge.merge(place, [place])[0])
    wanted = [(place / name).read_bytes() for name in names]
    while status:
        for name in names:
            (place / name).unlink(missing_ok=True)
        number += 1
        child = os.fork()
        if not child:
            die_at(number)
            check_report.write(place, merge.merge(place, [place])[0])
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), status
        assert all(path.read_bytes() == octets for path, octets in journals.items()), number
        for name, octets in zip(names, wanted):  # each is there as a whole, or not at all
            path = place / name
            assert not path.exists() or path.read_bytes() == octets, (number, name)
        check_report.write(place, merge.merge(place, [place])[0])
        assert [(place / name).read_bytes() for name in names] == wanted, number
    assert number > 12, number


@case
def comparing(folder):
    """A state that is neither that of the mark before nor of the next one is a bug"""
    made = [dict(occurrence(n, ADR), behind=b) for n, b in ((21, 100), (22, 200), (23, 300))]
    table = {21: ("exit", 0, 1), 22: ("exit", 0, 2), 23: ("exit", 0, 3), 0: ("exit", 0, 0)}
    # (image, behind, state, whether it is right)
    rows = ((1, 50, 0, 1), (2, 50, 1, 1), (3, 50, 2, 0), (4, 99, 1, 1), (5, 100, 0, 0))
    rows += ((6, 100, 1, 1), (7, 150, 2, 1), (8, 150, 3, 0), (9, 200, 3, 1), (10, 250, 2, 1))
    images = [dict(occurrence(n, ADR), behind=behind) for n, behind, *_ in rows]
    table.update({n: ("exit", 0, state) for n, _, state, _ in rows})
    # At one crash point it is right, at another it is not.
    images.append(dict(occurrence(2, ADR), behind=250))
    table[12] = lambda n: ("exit", 0, 7 + n)
    images.append(dict(occurrence(12, ADR), behind=150))
    found = make_explored(folder, images)
    args, judge = options(), Judge(table)
    checker = check.checker_of(args, found)
    selection = check.Selection(found, (), False, None, None)
    marks = compare.Marks([100, 200], made)
    with judged_by(judge):
        done = check.check(found, checker, selection, marks, args, lambda text: None)
    result = check_report.result(found, checker, selection, done, marks)
    bad = {(b["example"]["image"], b["example"]["behind"]) for b in result["bugs"]}
    wanted = {(IMAGES[n - 1], b) for n, b, _, right in rows if not right} | {(IMAGES[1], 250)}
    assert bad == wanted, (bad, wanted)
    assert result["verdicts"]["unsteady"] == 1 and {b["verdict"] for b in result["bugs"]} == {
        "state"
    }
    assert check_report.describe(result["bugs"][0]).startswith("neither the state of mark")
    assert merge.merge(folder / "m", [folder])[0] == result
    count = len(judge.seen)
    with judged_by(judge):
        check.check(found, checker, selection, marks, args, lambda text: None)
    assert len(judge.seen) == count  # confirmed bugs are not checked a third time
    (folder / "verdicts.jsonl").unlink()
    with judged_by(Judge({**table, 22: ("exit", 1, 2)})):
        message = refused(
            LabError, check.check, found, checker, selection, marks, args, lambda text: None
        )
    assert "the run's own state at mark 2 is judged as bug" in message, message


@case
def minimal(folder):
    """Delta debugging ends with a set of which nothing can be removed"""
    rng = random.Random(7)
    for _ in range(60):
        size = rng.randrange(1, 40)
        causes_of = [
            set(rng.sample(range(size), rng.randrange(0, min(size, 4) + 1)))
            for _ in range(rng.randrange(1, 3))
        ]

        def is_bad(items, wanted=causes_of):
            return any(each <= set(items) for each in wanted)

        answers = [list(range(size)), lambda tries, bad=is_bad: list(map(bad, tries))]
        found, rounds, shown = reduce.ddmin(*answers)
        assert shown and is_bad(found) and rounds <= 2 * size + 10, (found, rounds)
        assert not any(is_bad([x for x in found if x != out]) for out in found)
    assert reduce.ddmin([1, 2, 3], lambda tries: [False] * len(tries))[0] == [1, 2, 3]


@case
def limits(folder):
    """What limits leave out is said: rounds of a reduction, bugs without one, lines of the text"""
    before, reduce.ROUNDS_MAX = reduce.ROUNDS_MAX, 2
    try:
        found = reduce.ddmin(list(range(64)), lambda tries: [63 in each for each in tries])
        none = reduce.ddmin([], lambda tries: [True] * len(tries))
    finally:
        reduce.ROUNDS_MAX = before
    assert 63 in found[0] and len(found[0]) > 1 and found[1:] == (2, False), found
    assert none == ([], 0, True), none
    assert list(reduce.notes([None] * reduce.BUGS_MAX)) == []
    (note,) = reduce.notes([None] * (reduce.BUGS_MAX + 5))
    assert "first 20 bugs of 25" in note, note
    make_explored(folder, [occurrence(1, ADR, deviations=[])])
    told = run(folder, Judge({1: ("exit", 1)}))
    numbers = range(check_report.LINES_MAX + 3)
    rows = [{"number": n, "kind": "store", "issuer": "store %d" % n} for n in numbers]
    small = dict(told["bugs"][0]["example"], lost=rows, rounds=2, shown=False)
    for shown, words in ((False, "2 rounds did not show"), (True, "all of these have to be lost")):
        told["bugs"][0]["minimal"] = dict(small, shown=shown)
        text, page = "\n".join(check_report.lines(told)), check_report.section(told)
        assert words in text and words in page, (text, page)
        assert "and 3 more lines" in text and "event 19" in text and "event 20" not in text, text


@case
def reducing(folder):
    """A bug's example is made smaller by plans, whose images are checked"""
    deviations = [{"question": n, "answer": 1, "what": "line"} for n in range(8)]
    found = make_explored(folder, [occurrence(1, ADR, deviations=deviations)])
    result = run(folder, Judge({1: ("exit", 1)}))
    calls = []

    def make(_explored, wanted):
        calls.append(len(wanted))
        for one in wanted:
            if {6, 7} & {each["question"] for each in one["deviations"]} == {7}:
                raise LabError("question 7 has no answer 1")  # after another answer to 6
        images = []
        for one in wanted:
            questions = [each["question"] for each in one["deviations"]]
            bad = {2, 5} <= set(questions)
            images.append(dict(occurrence(1 if bad else 2, ADR, deviations=one["deviations"])))
        return images

    before, reduce.plans.make = reduce.plans.make, make
    try:
        reducer = reduce.Reducer(found, Judge({1: ("exit", 1)}), 1.0)
        one = reducer.reduce(result["bugs"][0])
    finally:
        reduce.plans.make = before
    assert [each["question"] for each in one["deviations"]] == [2, 5], one
    assert one["from"] == 8 and reducer.checks < 40 and max(calls) > 1


@case
def renewed(folder):
    """Minimal examples are made by the lab that is there; after a failed check by a new one"""
    line = [{"question": 0, "answer": 1, "what": "line"}]
    images = [occurrence(1, ADR, deviations=line), occurrence(13, ADR, deviations=[])]

    class Lab(Judge):
        def __exit__(self, *_):
            ended.append(self)

    def make(_explored, wanted):
        return [dict(images[0], deviations=each["deviations"]) for each in wanted]

    def quiet(_text):
        pass

    for failed in (("exit", 0), BAD[13]):
        labs, ended = [], []
        found = make_explored(folder / str(failed[1]), images)
        found.traces = lambda: [folder / "a.trace"]
        args = options()
        checker = check.checker_of(args, found)
        selection = check.Selection(found, (), False, None, None)
        before, reduce.plans.make = reduce.plans.make, make
        with judged_by(None), check.Judges(found, checker, ADR[0], 1, print) as judges:
            check.CheckLab = lambda *_: labs.append(Lab({1: BAD[3], 13: failed})) or labs[-1]
            try:
                done = check.check(found, checker, selection, None, args, quiet, judges)
                parts = (found, checker, selection)
                result = check_report.result(*parts, done)
                assert reduce.reduce_all(*parts, result, None, done, quiet, judges)
            finally:
                reduce.plans.make = before
            assert len(labs) == (2 if failed[1] else 1) and ended == labs[:-1], (labs, ended)
            assert labs[-1].seen[-1] == IMAGES[0], labs[-1].seen
        assert ended == labs, "a lab is left"


@case
def machine(folder):
    """The options of the checker's VM are those of up, but not those that the images decide"""
    found = make_explored(folder)

    def lab_of(**more):
        checker = check.checker_of(options(**more), found)
        return check_lab.CheckLab(found.extents, "eadr,ddio=on", checker, 2, print)

    args = lab_of(memory="2G", cpus=3, vm_arg=["--image consumers", "--timeout 7"]).args
    assert (args.mem, args.cpus, args.image, args.timeout) == ("2G", 3, "consumers", 7.0)
    assert args.pmem == ["judge%d:16M,domain=eadr" % n for n in (1, 2)] and args.driver == "none"
    for words, text in (
        ("--vms x", "--vms is the checker's"),
        ("--driver siw", "--driver is the checker's"),
        ("--pmem 64M", "--pmem is the images'"),
        ("--image other", "there is no image other"),
        ("--nothing", "unrecognized"),
        ("'", "No closing quotation"),
    ):
        assert text in refused(UsageError, lambda words=words: lab_of(vm_arg=[words])), words
    plan = {"vms": {"judge1": {"pmem": {}}, "judge2": {"pmem": {}}}}
    lab_of()._change(plan)  # pylint: disable=protected-access
    for vm in plan["vms"].values():
        assert vm["pmem"]["content"] == [str(found.extents[0].file)], vm
    (folder / "base" / "pmem0.raw").unlink()
    assert "the content at the start" in refused(LabError, lab_of)


@case
def hosts(folder):
    """Hosts that share the folder of labs have other names for them, and leave those of others"""
    found = make_explored(folder / "e")
    lab = check_lab.CheckLab(found.extents, ADR[0], check.checker_of(options(), found), 1, print)
    other = check_lab.name_on("another host")
    assert lab.name.startswith(check_lab.name_on(os.uname().nodename)) and other not in lab.name
    nobody = {"pid": 1 << 30, "start": 1}
    names = [lab.name, other + "7", "check-1", "mine"]
    for name in names:
        place = folder / "state" / "labs" / name
        place.mkdir(parents=True)
        data = {"vms": {}, "check": name != "mine", "owner": nobody}
        (place / "lab.json").write_text(json.dumps(data))
    removed = []
    before = check_lab.lab.down, os.environ.get("STAGHORN_STATE")
    check_lab.lab.down = lambda name, say: removed.append(name)
    os.environ["STAGHORN_STATE"] = str(folder / "state")
    try:
        check_lab.clear_dead()
    finally:
        check_lab.lab.down = before[0]
        del os.environ["STAGHORN_STATE"]
        os.environ.update({"STAGHORN_STATE": before[1]} if before[1] else {})
    assert removed == [lab.name], removed


@case
def empty_shard(folder):
    """A shard without images is done, and has no bug; without any images there is no verdict"""
    make_explored(folder, [occurrence(1, ADR), occurrence(2, ADR)])
    parser = cli.make_parser()

    def status_of(*words):
        output = io.StringIO()
        args = parser.parse_args(["crash", "check", "--script", "x", *words, str(folder)])
        with judged_by(Judge({})), contextlib.redirect_stderr(output):
            with contextlib.redirect_stdout(io.StringIO()):
                return args.run(args), output.getvalue()

    found = [status_of("--shard", "%d/7" % i) for i in range(1, 8)]
    assert [status for status, _ in found] == [0] * 7, found
    empty = [text for _, text in found if "shard" in text and "has no images" in text]
    assert len(empty) == 5, found
    assert merge.merge(folder / "m", [folder])[0]["verdict"] == "good"
    status, text = status_of("--platform", "eadr,ddio=on", "--shard", "1/7")
    assert status == check.NO_VERDICT and "there is nothing to check" in text, (status, text)


@case
def documented(_folder):
    """The commands of docs/crash-laboratory.md are commands of ./staghorn, also in shards"""
    text = (TOOLS.parent / "docs" / "crash-laboratory.md").read_text().replace("\\\n", " ")
    lines = [x for part in text.split("```")[1::2] for x in part.splitlines() if "taghorn" in x]
    found = []
    for line in lines:
        line, _, jobs = line.partition(" ::: ")
        for name, value in (("TASK_ID", "8"), ("TASK_COUNT", "8")):
            line = line.replace("$SLURM_ARRAY_" + name, value)
        words = shlex.split(line.replace("{}", jobs[-1:]), comments=True)
        words = [part for word in words for part in (word.split() if "; " in word else [word])]
        at = [i for i, word in enumerate(words) if word.split("/")[-1] == "staghorn"]
        if not at or words[at[0] + 1] != "crash":
            continue
        args = cli.make_parser().parse_args(words[at[0] + 1 :])
        found.append(args.crash_verb)
        if getattr(args, "shard", None):
            assert verdicts.shard_of(args.shard) == (8, 8)
            found.append("shard")
    assert {"check", "merge", "keep"} <= set(found) and found.count("shard") == 5, found


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
