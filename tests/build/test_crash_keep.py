#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `crash keep`, and of files that it does not write."""
import contextlib
import hashlib
import io
import json
import os
import random
import sys
from pathlib import Path

import cases

sys.dont_write_bytecode = True
from again import DEEP, Recovering, Second, explored_by, recover  # noqa: E402
from both import NAMES, Lab, command, pair, verb  # noqa: E402
from judges import (  # noqa: E402
    ADR,
    BAD,
    IMAGES,
    SIZE,
    Judge,
    judged_by,
    make_explored,
    occurrence,
    options,
    refused,
    run,
)
from launcher import check_report, compare, explored, keep, keep_judge, pairs  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402


CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def kept(folder):
    """A folder that was checked, and a file with its bug 1."""
    make_explored(folder / "e")
    (folder / "tool").write_text("#!/bin/sh\necho " + "x" * 9000)
    (folder / "tool").chmod(0o755)
    copy = ["%s:/usr/bin/tool" % (folder / "tool")]
    run(folder / "e", Judge({3: BAD[3]}), copy=copy, setup="true")
    size = keep.keep(explored.Explored(folder / "e"), 1, folder / "kept")
    assert size == (folder / "kept").stat().st_size < 4000, size
    return folder / "kept"


@case
def keeping(folder):
    """A kept bug has image, base, checker and programs, and is judged again without the rest"""
    path = kept(folder)
    (folder / "u").mkdir()
    head, checker = keep.unpack(path, folder / "u")
    found = explored.Explored(folder / "u")
    for name in ("images/%s.image" % IMAGES[2],):
        assert (folder / "u" / name).read_bytes() == (folder / "e" / name).read_bytes()
    base = (folder / "e" / "base" / "pmem0.raw").read_bytes()
    assert found.extents[0].file.read_bytes() == base
    assert found.extents[0].file.stat().st_blocks < 100
    assert (checker.script, checker.setup) == ("judge", "true") and head["expected"]["status"] == 1
    file, target = checker.copies[0]
    assert target == "/usr/bin/tool" and file.read_text() == (folder / "tool").read_text()
    assert os.access(file, os.X_OK)
    assert "no bug 9" in refused(UsageError, keep.keep, explored.Explored(folder / "e"), 9, "x")
    settings = {"copy": ["%s:/usr/bin/tool" % (folder / "tool")], "setup": "true"}
    journal = folder / "other"
    words = {"vm_arg": ["--qemu-arg=-S"], "journal": str(journal), **settings}
    run(folder / "e", Judge({3: BAD[3]}), **words)
    message = refused(UsageError, keep.keep, explored.Explored(folder / "e"), 1, folder / "x")
    assert "--qemu-arg=-S, which" in message, message
    message = refused(UsageError, keep.keep, make_explored(folder / "f"), 1, folder / "x")
    assert "was not checked" in message
    before = keep_judge.CheckLab
    for table, status in (({3: BAD[3]}, 1), ({3: BAD[5]}, 1), ({}, 0), ({3: BAD[13]}, 125)):
        judge = Judge(table)
        keep_judge.CheckLab = lambda *_, judge=judge: judge
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                args = options(explored=str(path), script=None)
                assert keep_judge.judge(args, lambda text: None) == status, (table, status)
        finally:
            keep_judge.CheckLab = before
    args = options(explored=str(path), shard="1/2", script=None)
    try:
        keep_judge.judge(args, print)
    except LabError as error:
        assert error.status == 125
    else:
        raise AssertionError("a kept bug has shards")


@case
def keep_replaced(folder):
    """A kept bug is judged with a new version of its program, as git bisect wants"""
    path = kept(folder)
    (folder / "u").mkdir()
    _, checker = keep.unpack(path, folder / "u")
    (folder / "new").write_text("new")
    args = options(copy=["%s:/usr/bin/tool" % (folder / "new")], script=None, timeout=3.0)
    found = keep_judge.changed(checker, args)
    assert [target for _, target in found.copies] == ["/usr/bin/tool"]
    assert Path(found.copies[0][0]).read_text() == "new" and found.script == "judge"
    assert found.timeout == 3.0 and found.setup == "true"


def repacked(path, change):
    """The octets of a kept bug whose head was changed, with a checksum that is right."""
    octets = path.read_bytes()
    fields = list(keep.OPENING.unpack_from(octets))
    head = json.loads(octets[keep.OPENING.size :][: fields[3]])
    rest = octets[keep.OPENING.size + fields[3] :]
    rest = change(head, rest) or rest
    text = json.dumps(head).encode()
    fields[3:] = [len(text), len(rest), hashlib.sha256(text + rest).digest()]
    return keep.OPENING.pack(*fields) + text + rest


def set_in(*keys, value):
    """A change of the head."""

    def change(head, _rest):
        for key in keys[:-1]:
            head = head[key]
        head[keys[-1]] = value

    return change


def refusals(folder):
    """A function: why a file with these octets is refused."""
    numbers = iter(range(10000))

    def why(content):
        place = folder / ("u%d" % next(numbers))
        place.mkdir()
        (folder / "x").write_bytes(content)
        return refused(LabError, keep.unpack, folder / "x", place)

    return why


@case
def keep_damaged(folder):
    """A file with a wrong bit, or cut short, is refused"""
    octets, why, rng = kept(folder).read_bytes(), refusals(folder), random.Random(1)
    for at in [*range(0, 64), *(rng.randrange(len(octets)) for _ in range(100))]:
        damaged = bytearray(octets)
        damaged[at] ^= 1 << rng.randrange(8)
        assert why(bytes(damaged))
    for size in [0, 7, 63, 64, 200, len(octets) - 1]:
        assert why(octets[:size])
    assert "is damaged" in why(octets + b"x")


@case
def keep_hostile(folder):
    """A hostile file is refused with a sentence, and nothing outside is written"""
    path = kept(folder)
    why = refusals(folder)
    for change, words in (
        (set_in("parts", 0, "name", value="../x"), "crash keep does not write"),
        (set_in("parts", 0, "octets", value=-1), "crash keep does not write"),
        (set_in("parts", 0, "octets", value=1 << 50), "crash keep does not write"),
        (set_in("parts", 0, "octets", value=3), "too long"),
        (set_in("parts", 0, "octets", value=4000), "cut short"),
        (set_in("parts", 0, "packed", value=3), "cut short"),
        (set_in("parts", 2, "packed", value=1 << 20), "octets behind"),
        (set_in("occurrence", "image", value="../../x"), "crash keep does not write"),
        (set_in("extents", 0, "size", value=1 << 50), "no VM of the launcher"),
        (set_in("extents", value=[]), "crash keep does not write"),
        (set_in("extents", 0, "size", value=SIZE * 2), None),
        (set_in("checker", "copies", 0, "path", value="x"), "crash keep does not write"),
        (set_in("checker", "copies", 0, "mode", value=0o4777), "crash keep does not write"),
        (set_in("checker", "script", value=5), "crash keep does not write"),
        (set_in("checker", "vm-arguments", value=["--timeout 9 --qemu-arg=-S"]), "does not write"),
        (set_in("checker", "vm-arguments", value=["--qemu 'a b'"]), "does not write"),
        (set_in("checker", "vm-arguments", value=["'"]), "does not write"),
        (set_in("occurrence", "platforms", value=["adr,ddio=on;x"]), "does not write"),
        (set_in("occurrence", "platforms", value=[]), "does not write"),
        (set_in("checker", "timeout", value="1"), "crash keep does not write"),
        (set_in("expected", value=None), "crash keep does not write"),
        (lambda head, rest: rest + b"x", "octets behind"),
    ):
        content = repacked(path, change)
        if words:
            assert words in why(content), (words, why(content))
    bomb = keep.zlib.compress(bytes(64 << 20), 9)

    def bombed(head, rest):
        row = head["parts"][0]
        rest = bomb + rest[row["packed"] :]
        row.update(packed=len(bomb))
        return rest

    assert "too long" in why(repacked(path, bombed))
    page = keep.struct.pack("<Q", SIZE // 4096) + bytes(4096)

    def paged(head, rest):
        row, packed = head["parts"][2], keep.zlib.compress(page)
        rest = rest[: -row["packed"]] + packed
        row.update(packed=len(packed), octets=len(page))
        return rest

    assert "which cannot be" in why(repacked(path, paged))
    assert sorted(x.name for x in folder.iterdir() if not x.name.startswith("u")) == [
        *("e", "kept", "tool", "x")
    ]


# -- bugs of recoveries

IMAGES_OF = [occurrence(n, ADR, deviations=[]) for n in (1, 2)]


def kept_recovery(folder, table=None, **more):
    """A folder whose recoveries were cut, and a file with its recovery bug 1."""
    found = make_explored(folder / "e", IMAGES_OF)
    (folder / "tool").write_text("a program")
    copy = ["%s:/usr/bin/tool" % (folder / "tool")]
    result = recover(found, Recovering(), Second(table), copy=copy, **more)
    check_report.write(folder / "e", result)
    size = keep.keep(found, 1, folder / "kept", True)
    assert size == (folder / "kept").stat().st_size < 4000, size
    return folder / "kept"


def judged(path, judge, explorer=None, **more):
    """(status, what is printed) of `crash check FILE`."""
    args, said = options(explored=str(path), **{"script": None, **more}), io.StringIO()
    before, keep_judge.CheckLab = keep_judge.CheckLab, lambda *_: judge
    try:
        with judged_by(judge), explored_by(explorer), contextlib.redirect_stdout(said):
            return keep_judge.judge(args, lambda text: None), said.getvalue()
    finally:
        keep_judge.CheckLab = before


@case
def keep_recovery(folder):
    """A kept bug of a recovery has the images of the first cut and of the last one"""
    path = kept_recovery(folder)
    (folder / "u").mkdir()
    head, _ = keep.unpack(path, folder / "u")
    (cut,) = head["recovery"]["cuts"]
    assert (cut["image"], head["occurrence"]["image"]) == (IMAGES[1], IMAGES[29]), head
    for n in (2, 30):
        octets = (folder / "u" / "images" / (IMAGES[n - 1] + ".image")).read_bytes()
        assert octets == b"image " + IMAGES[n - 1].encode()
    assert [one["image"] for one in explored.Explored(folder / "u").images] == [IMAGES[1]]
    assert "1 recovery bugs, and no recovery bug 2" in refused(
        UsageError, keep.keep, explored.Explored(folder / "e"), 2, folder / "x", True
    )
    for judge, status in ((Recovering(), 1), (Recovering({}), 0), (Recovering({30: BAD[13]}), 125)):
        assert judged(path, judge)[0] == status, status
        assert not judge.traces and set(judge.seen) == {IMAGES[29]}
        assert (
            "CRASH_BEHIND=20 " in judge.orders[0][0] and "CRASH_RECOVERY=300" in judge.orders[0][0]
        )


@case
def keep_recovery_replaced(folder):
    """With another program the recovery of a kept bug is recorded and cut again"""
    path = kept_recovery(folder)
    (folder / "new").write_text("a better program")
    new = {"copy": ["%s:/usr/bin/tool" % (folder / "new")]}
    same = {"copy": ["%s:/usr/bin/tool" % (folder / "tool")]}
    for more, judge, table, status, words in (
        (new, Recovering(), {2: (21, 30)}, 1, "the bug is there"),
        (new, Recovering(), {2: (21, 22)}, 0, "2 images of 1 recoveries are good"),
        (new, Recovering({21: BAD[5]}), {}, 1, "bad in another way: hang"),
        (new, Recovering({21: BAD[13]}), {}, 125, "no certain verdict"),
        (new, Recovering({2: ("exit", 1)}), {}, 1, "without a second cut: the bug is there"),
        (new, Recovering({2: lambda n: ("exit", int(n > 1))}), {}, 125, "when they were recorded"),
        ({"nested": True}, Recovering(), {2: (30,)}, 1, "the bug is there"),
        ({"nested": True}, Recovering(), {}, 0, "1 images of 1 recoveries are good"),
        ({"script": "other"}, Recovering(), {}, 0, "the bug is gone"),
    ):
        found, said = judged(path, judge, Second(table), **more)
        assert found == status and words in said, (more, found, said)
        assert IMAGES[1] in judge.seen, judge.seen
    judge = Recovering()
    assert judged(path, judge, **same)[0] == 1 and not judge.traces  # nothing is replaced
    for more in ({"nested_depth": 2}, {"reads": True}, {"compare": True}):
        assert "has no meaning" in refused(LabError, lambda more=more: judged(path, judge, **more))
    ordinary = kept(folder / "o") if (folder / "o").mkdir() is None else None
    assert "no recovery has it" in refused(LabError, lambda: judged(ordinary, judge, nested=True))


@case
def keep_recovery_deep(folder):
    """A kept bug of a recovery from a recovery has both cuts before the last one"""
    path = kept_recovery(folder, {1: (21,), 2: (21,), 21: (30, 22)}, nested_depth=3)
    (folder / "u").mkdir()
    cuts = keep.unpack(path, folder / "u")[0]["recovery"]["cuts"]
    assert [one["image"] for one in cuts] == [IMAGES[0], IMAGES[20]], cuts
    judge = Recovering()
    assert judged(path, judge)[0] == 1
    assert "CRASH_BEHIND=10 " in judge.orders[0][0], judge.orders
    assert "CRASH_RECOVERY=210,300;" in judge.orders[0][0], judge.orders
    judge = Recovering()
    status, said = judged(path, judge, Second(DEEP), script="x")  # 1: 21, 2, 23, 24; 2 and 21: 22
    assert judge.traces == [IMAGES[n - 1] for n in (1, 21, 2, 23, 24)], judge.traces
    assert status == 0 and "of 5 recoveries are good" in said, said


@case
def keep_recovery_state(folder):
    """A kept bug of states of recoveries knows which states are right"""
    made = [dict(occurrence(n, ADR), behind=b) for n, b in ((11, 100), (12, 200))]
    states = {0: 0, 11: 1, 12: 2, 1: 1, 21: 0, 22: 3}
    table = {n: ("exit", 0, state) for n, state in states.items()}
    images = [dict(occurrence(1, ADR, deviations=[]), behind=50)]
    found = make_explored(folder / "e", images)
    marks = compare.Marks([100], made)
    result = recover(found, Recovering(table), Second({1: (21, 22)}), marks)
    check_report.write(folder / "e", result)
    (bug,) = result["nested"]["bugs"]
    assert bug["verdict"] == "state" and bug["example"]["image"] == IMAGES[21], bug
    keep.keep(found, 1, folder / "kept", True)
    for table_of, explorer, more, status in (
        (table, None, {}, 1),
        ({**table, 22: ("exit", 0, 1)}, None, {}, 0),
        (table, Second({1: (22,)}), {"nested": True}, 1),
        (table, Second({1: (21,)}), {"nested": True}, 0),
        ({**table, 1: ("exit", 0, 3)}, Second({1: (21,)}), {"nested": True}, 1),
    ):
        judge = Recovering(table_of)
        assert judged(folder / "kept", judge, explorer, **more)[0] == status, (table_of, more)


@case
def keep_versions(folder):
    """Files of versions 1 and 2 lack members and are read; later versions are refused"""
    path, why = kept(folder), refusals(folder)
    for version, absent in ((1, ("recovery", "together")), (2, ("together",))):
        octets = repacked(path, lambda head, _, names=absent: [head.pop(x) for x in names] and None)
        old = bytearray(octets)
        assert "does not write" in why(octets)  # version 3 has the members
        old[8] = version
        (folder / "old").write_bytes(old)
        (folder / ("old%d" % version)).mkdir()
        head, _ = keep.unpack(folder / "old", folder / ("old%d" % version))
        assert [head[name] for name in absent] == [None] * len(absent)
        old[8] = 4
        assert "has version 4, and this program knows 1 to 3" in why(bytes(old))


@case
def keep_recovery_hostile(folder):
    """A hostile file's recovery is refused"""
    path = kept_recovery(folder)
    why = refusals(folder)
    cut = {"image": IMAGES[1], "behind": 20, "promises": 0, "plan": "", "platforms": ADR}
    for keys, value in (
        (("cuts",), []),
        (("cuts",), [cut] * 17),
        (("cuts",), [dict(cut, image="../../x")]),
        (("cuts",), [dict(cut, platforms=["--out"])]),
        (("cuts",), [dict(cut, outer=cut)]),
        (("strategy",), "only --out /tmp"),
        (("strategy",), "reads"),
        (("strategy",), "only,"),
        (("strategy",), 5),
        (("images",), 0),
        (("images",), 1 << 40),
        (("images",), True),
        (("recoveries",), "1"),
        (("step",), "x"),
        ((), None),
        ((), []),
    ):
        change = set_in("recovery", *keys, value=value)
        assert "crash keep does not write" in why(repacked(path, change)), (keys, value)
    rows = sorted(x.name for x in folder.iterdir() if not x.name.startswith("u"))
    assert rows == ["e", "kept", "tool", "x"], rows


# -- bugs of pairs

PEER = ("--checker-vm", "alpha", "--peer-script", "serve")


def kept_pair(folder, *words, bad=frozenset({(2, 3)})):
    """A file with bug 1 of a check of pairs, and the folder of these."""
    (folder / "tool").write_text("a program")
    rows = [pair(1, 1), pair(2, 3), pair(3, 3)]
    copy = ("--copy", "%s:/usr/bin/tool" % (folder / "tool"))
    assert command(folder, Lab(bad), *copy, *words, rows=rows)[0] == 1
    place = folder / "together-alpha-beta"
    output = folder / "kept"
    status, text = verb(folder, None, "keep", place, "--bug", 1, "--output", output, "--json")
    assert status == 0 and json.loads(text)["bytes"] == output.stat().st_size < 4000, text
    return output, place


@case
def keep_pair(folder):
    """A kept bug of a pair has images, bases and promises of both VMs, and judges them again"""
    path, place = kept_pair(folder, "--no-reduce", "--promises", *PEER)
    (folder / "u").mkdir()
    head, checker = keep.unpack(path, folder / "u")
    assert head["target"] == "alpha" and head["together"]["machines"] == NAMES, head
    assert (checker.vm, checker.peer, checker.script) == ("alpha", "serve", "judge")
    assert Path(checker.copies[0][0]).read_text() == "a program"
    assert checker.settings() == json.loads((place / "checker" / "checker.json").read_text())
    found = pairs.Pairs(folder / "u")
    for side, number in zip(("first", "second"), (2, 3)):
        name = "%s/images/%s.image" % (side, IMAGES[number - 1])
        assert (folder / "u" / name).read_bytes() == (place / name).read_bytes()
        base = (folder / "u" / side / "base").glob("*.raw")
        wanted = (place / side / "base" / "pmem0.raw").read_bytes()
        assert [x.read_bytes() for x in base] == [wanted]
    (unit,) = found.units(ADR, True)
    assert unit.image == IMAGES[1] + IMAGES[2] and unit.occurrences[0]["behind"] == [20, 30]
    before = pairs.Pairs(place)
    before.units(ADR, True)
    assert found.request(unit)[1:] == before.request(unit)[1:]
    assert [b"event=25" in data for data in found.request(unit)[2]] == [True, False]
    assert found.request(unit)[0] == [found.path(0, IMAGES[1]), found.path(1, IMAGES[2])]
    for lab, words, status, said in (
        (Lab({(2, 3)}), (), 1, "the bug is there"),
        (Lab(), (), 0, "the bug is gone: the pair is good"),
        (Lab(), ("--json",), 0, '"status": 0'),
        (Lab({(2, 3)}), ("--peer-script", "other"), 1, "the bug is there"),
    ):
        found, text = verb(folder, lab, "check", path, *words)
        assert found == status and said in text and set(lab.seen) == {(2, 3)}, (words, text)
        (made,) = lab.made
        assert made[1] == "adr,ddio=on" and made[2].vm == "alpha"
        assert made[2].peer == ("other" if "other" in words else "serve")
    assert "cat > /run/crash/promises" in lab.orders[0][0][0]
    (folder / "new").write_text("another")
    lab = Lab()
    verb(folder, lab, "check", path, "--copy", "%s:/usr/bin/tool" % (folder / "new"))
    assert [str(file) for file, _ in lab.made[0][2].copies] == [str(folder / "new")]


@case
def keep_pair_minimal(folder):
    """The minimal example is what is kept; what a pair does not have is refused"""

    def bad(first, _second):
        return first == 2  # whatever beta lost

    path, place = kept_pair(folder, bad=bad)
    (folder / "u").mkdir()
    head, _ = keep.unpack(path, folder / "u")
    example, second = head["occurrence"], head["together"]["occurrence"]
    assert [one["image"] for one in (example, second)] == [IMAGES[1], IMAGES[0]], head
    assert [one["behind"] for one in (example, second)] == [20, 30], head
    lab = Lab({(2, 1)})
    assert verb(folder, lab, "check", path)[0] == 1 and set(lab.seen) == {(2, 1)}
    for words, text in (
        (("--nested",), "of a pair of images"),
        (("--shard", "1/2"), "--shard has no meaning"),
        (("--checker-vm", "beta"), "--checker-vm has no meaning"),
        (("--peer-script", "x"), "no VM runs another script"),
        (("--vm", "alpha", "--vm", "beta"), "--vm has no meaning"),
        (("--nested-depth", "2"), "--nested-depth has no meaning"),
    ):
        message = refused(LabError, verb, folder, Lab(), "check", path, *words)
        assert text in message, (words, message)
    keeping_of = ("keep", place, "--output", folder / "x")
    for words, text in ((("--bug", 9), "no bug 9"), (("--recovery-bug", 1), "no recovery bug 1")):
        assert text in refused(UsageError, verb, folder, None, *keeping_of, *words)
    single = folder / "single"
    single.mkdir()
    words = ("check", kept(single), "--peer-script", "x")
    assert "no VM runs another" in refused(LabError, verb, folder, None, *words)


@case
def keep_pair_hostile(folder):
    """A hostile file's pair is refused, and nothing outside is written"""
    path, _ = kept_pair(folder, "--no-reduce", "--promises", *PEER)
    why = refusals(folder)
    (folder / "u").mkdir()
    extents = keep.unpack(path, folder / "u")[0]["extents"]
    for keys, value in (
        (("together",), []),
        (("together",), {}),
        (("together",), None),
        (("together", "machines"), ["alpha"]),
        (("together", "machines"), "ab"),
        (("together", "machines"), ["alpha", "alpha"]),
        (("together", "machines"), ["alpha", "../x"]),
        (("together", "machines"), ["alpha", "beta,gamma"]),
        (("together", "machines"), ["beta", "alpha"]),  # the target is the first one
        (("together", "machines"), ["alpha", 5]),
        (("together", "checker-vm"), "gamma"),
        (("together", "checker-vm"), ["alpha"]),
        (("together", "peer-script"), None),
        (("together", "told"), 5),
        (("together", "occurrence"), None),
        (("together", "occurrence", "image"), "../../x"),
        (("together", "occurrence", "platforms"), ["eadr,ddio=on"]),
        (("together", "occurrence", "platforms"), ["--out"]),
        (("together", "occurrence", "outer"), {}),
        (("together", "promises"), {}),
        (("together", "promises"), [{"binds-behind": -1, "binds-behind-other": 0}]),
        (("together", "promises"), [{"binds-behind": 1}]),
        (("promises",), [{"binds-behind": "1", "binds-behind-other": 0}]),
        (("recovery",), {"cuts": []}),
        (("extents",), extents[:1]),
        (("extents",), extents[::-1]),
        (("extents",), [extents[0]] * 17 + extents[1:]),
        (("extents", 0, "side"), 2),
        (("extents", 0, "side"), False),
        (("extents", 1), 7),
        (("parts", 1, "name"), "first"),
        (("parts", 1, "name"), "../x"),
    ):
        content = repacked(path, set_in(*keys, value=value))
        assert "crash keep does not write" in why(content), (keys, value, why(content))
    assert "lines #." in why(repacked(path, set_in("together", "peer-script", value="#.")))
    ordinary = kept(folder / "o") if (folder / "o").mkdir() is None else None
    assert "does not write" in why(repacked(ordinary, set_in("extents", 0, "side", value=0)))
    rows = sorted(x.name for x in folder.iterdir() if not x.name.startswith("u"))
    names = ["alpha.trace", "beta.trace", "explorer", "kept", "o", "together-alpha-beta", "tool"]
    assert rows == [*names, "x"], rows


@case
def foreign__paths(_folder):
    """a kept bug's VM has an image and a kernel of ours, not files of the host"""
    good = ["--image consumers --kernel=debug", "--accel tcg --boot-snapshot --timeout 7.5"]
    assert keep.foreign(good) is None
    for words in ("--kernel /tmp/linux", "--kernel=./linux", "--image x.img", "--image ~/x", "-S"):
        assert keep.foreign([*good, words]) in words.split(), words


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
