#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the time line in the Common Trace Format: babeltrace2 reads what trace --ctf wrote."""
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

import cases
import timeline_rig
from timeline_rig import conversation, line, raises

from launcher import timeline, timeline_ctf, timeline_tap
from launcher.errors import LabError, UsageError
from launcher.timeline_lines import GUEST, KINDS

CASES = []
STRING = r'"((?:[^"\\]|\\.)*)"'
EVENT = re.compile(
    r"\[(\d+)\.(\d{9})\] ([a-z]+): \{ vm = %s, adapter = %s, qp = (-?\d+) \}, "
    r"\{ name = %s, text = %s \}\Z" % ((STRING,) * 4)
)


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


class Args:
    """Arguments of the verb."""

    lab, command, vms = "lab", ["rping", "-c"], ["alpha", "beta"]


def result(lines, limit=1000, **members):
    """What the verb makes of lines of VMs."""
    taps = timeline_tap.Taps(None, list(lines), limit)
    taps.began, taps.ended = 1732612345.0, 1732612345.1
    for name, said in lines.items():
        for one in said:
            taps.capture.take(name, one)
    return {**timeline.result_of(taps, Args, 0), **members}


def babeltrace(folder, *words):
    """(output, errors) of babeltrace2, which has to read the whole folder."""
    if not shutil.which("babeltrace2"):
        raise cases.Skipped("no babeltrace2")
    words = words or ("--clock-seconds", "--clock-gmt", "--no-delta")
    words = ["babeltrace2", *words, str(folder)]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def plain(text):
    """A string as babeltrace2 prints it, without its escapes."""
    return re.sub(r"\\(.)", r"\1", text)


def read(folder):
    """[what --json has of an event] of a folder, in babeltrace2's order; "us" is since 1970."""
    found = []
    for one in babeltrace(folder)[0].splitlines():
        parts = EVENT.match(one)
        assert parts, one
        seconds, nanos, kind, vm, adapter, qp, name, text = parts.groups()
        assert nanos.endswith("000"), one
        found.append(
            {
                **{"us": int(seconds) * 1000000 + int(nanos) // 1000, "kind": kind},
                **{"vm": plain(vm), "adapter": plain(adapter)},
                **{"qp": None if qp == "-1" else int(qp)},
                **{"name": plain(name), "text": plain(text)},
            }
        )
    return found


def same(folder, data):
    """The folder has the events of the JSON, in its order."""
    events = [{**event, "us": event["us"] + data["began_us"]} for event in data["events"]]
    found = read(folder)
    assert len(found) == len(events), (len(found), len(events))
    assert found == events, next(pair for pair in zip(found, events) if pair[0] != pair[1])


@case
def ctf__as_the_json(folder):
    """number, names, fields and order of events are those of --json; all kinds of an adapter"""
    with timeline_rig.Lab(folder, conversation()) as lab:
        words = ["--ctf", str(folder / "ctf"), "--json", "--for", "1"]
        status, out, err = lab.trace("beta", "alpha", *words)
    assert status == 0, err
    data = json.loads(out)
    kinds = {event["kind"] for event in data["events"]}
    assert len(data["events"]) == 16 and kinds == set(KINDS) - {GUEST}, kinds
    assert sorted(os.listdir(folder / "ctf")) == ["events", "metadata"]
    same(folder / "ctf", data)


@case
def ctf__many_packets(folder):
    """a long trace has several packets, each with its time and number; nothing is lost between"""
    lines = [line("staghorn_interrupt", "r0: interrupt, vector %d" % n) for n in range(3000)]
    lines += [line("staghorn_peer", "r0: peer error: " + "x" * 8000) for _ in range(20)]
    found = result({"alpha": lines}, 10000)
    timeline_ctf.write(str(folder / "ctf"), found)
    same(folder / "ctf", timeline.as_json(found))
    text = babeltrace(folder / "ctf", "--component", "sink.text.details")[0]
    assert text.count("Packet beginning") == text.count("Packet end") >= 5
    content, at, numbers, last = (folder / "ctf" / "events").read_bytes(), 0, [], 0
    while at < len(content):
        begin, end, bits, size, number, lost = struct.unpack_from("<6Q", content, at + 24)
        assert last <= begin <= end and bits == size and lost == 0, (begin, end, bits, size)
        numbers.append(number)
        at, last = at + size // 8, end
    assert at == len(content) and numbers == list(range(text.count("Packet end"))), numbers


@case
def ctf__hostile_text(folder):
    """quotes, escapes, zeros and other characters of a stranger stay text"""
    texts = ('"; }; event { id = 0', "\\", "a\x00b", "\x1b[31m", "\u2603 \ufffe", "%s%n", "\t|")
    lines = [line("staghorn_peer", 'r0"}: peer error: ' + text) for text in texts]
    note = 'A "note" \\ with\nlines; }; \x1b'
    found = result({"alpha": lines}, notes=[note], command='sh -c "a\\"')
    timeline_ctf.write(str(folder / "ctf"), found)
    text, errors = babeltrace(folder / "ctf")
    assert not errors and text.count("peer error: ") == len(texts), (text, errors)
    assert 'text = "peer error: \\"; }; event { id = 0" }' in text, text
    assert "a\ufffdb" in text and "%s%n" in text and "\u2603" in text, text
    env = (folder / "ctf" / "metadata").read_text()
    assert 'note_1 = "A \\"note\\" \\\\ with lines; };  ";' in env, env
    assert 'command = "sh -c \\"a\\\\\\"";' in env, env


@case
def ctf__what_is_missing(folder):
    """lost lines are discarded events, and what the notes say is in the metadata"""
    lines = conversation()
    lines["beta"] += ["lost 12", "lost 3"]
    found = result(lines)
    timeline_ctf.write(str(folder / "ctf"), found)
    errors = babeltrace(folder / "ctf")[1]
    assert re.search(r"discarded 15 events", errors), errors
    env = (folder / "ctf" / "metadata").read_text()
    assert '"15 lines of beta are left out: they came too fast.";' in env, env
    assert 'command = "rping -c";' in env and "status = 0;" in env


@case
def ctf__of_nothing(folder):
    """a trace without events can be opened, too"""
    timeline_ctf.write(str(folder / "ctf"), result({"alpha": []}))
    assert read(folder / "ctf") == []


@case
def place__refusals(folder):
    """a folder with something in it, or where none can be, is named before anything is recorded"""
    used, file, out = folder / "used", folder / "file", str(folder / "out")
    used.mkdir()
    (used / "x").touch()
    file.touch()
    (folder / "link").symlink_to(folder / "nowhere")
    page = str(folder / "a")
    found = {
        ("--ctf", str(used)): "used: the folder is not empty",
        ("--ctf", str(file)): "file: cannot be written there",
        ("--ctf", str(folder / "link")): "link: cannot be written there",
        ("--ctf", str(folder / "no" / "a")): "cannot be written there",
        ("--ctf", str(file / "a")): "cannot be written there",
        ("--ctf", page, "--html", page): "--ctf names the folder of another result",
        ("--ctf", out, "--perfetto", out): "--ctf names the folder of another result",
        ("--ctf",): "expected one argument",
    }
    with timeline_rig.Lab(folder, {"alpha": []}) as lab:
        for words, text in found.items():
            done = lab.trace("alpha", *words)
            assert done[0] == 2 and text in done[2], (words, done)
        empty = folder / "empty"
        empty.mkdir()
        done = lab.trace("alpha", "--ctf", str(empty), "--html", str(empty / "a.html"))
        assert done[0] == 2 and "--ctf names the folder" in done[2], done
        assert lab.machines["alpha"].switched == []
    assert os.listdir(used) == ["x"] and not os.listdir(empty)
    assert not os.path.exists(out) and not os.path.exists(page)


@case
def place__not_writable(folder):
    """a folder without the right to write is refused"""
    place = folder / "shut"
    place.mkdir()
    place.chmod(0o555)
    folder.chmod(0o755)
    code = "import os, sys; sys.path.insert(0, sys.argv[1])\n"
    code += "from launcher import timeline_ctf, errors\n"
    code += "if not os.getuid(): os.setuid(65534)  # root may write anywhere\n"
    code += "for name in sys.argv[2:]:\n"
    code += "    try: timeline_ctf.place(name)\n"
    code += "    except errors.UsageError as error: print(error)\n"
    tools = str(timeline_rig.TOP / "tools")
    words = [sys.executable, "-B", "-c", code, tools, str(place), str(place / "a")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("cannot be written there") == 2, done


@case
def write__empty_folder(folder):
    """an empty folder that exists is used"""
    (folder / "ctf").mkdir()
    assert timeline_ctf.place(str(folder / "ctf")) == str(folder / "ctf")
    found = result(conversation())
    timeline_ctf.write(str(folder / "ctf"), found)
    same(folder / "ctf", timeline.as_json(found))


@case
def write__full_disk(folder):
    """a full disk is an error that says so, and leaves nothing of the trace"""
    (folder / "empty").mkdir()
    found, before = result(conversation()), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for name in ("ctf", "empty"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, before[1]))
        try:
            said = raises(LabError, timeline_ctf.write, str(folder / name), found)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "cannot be written: File too large" in said, said
    signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(folder) == ["empty"] and not os.listdir(folder / "empty")


@case
def write__somebody_was_faster(folder):
    """what somebody else has put there meanwhile stays as it is"""
    place = folder / "ctf"
    path = timeline_ctf.place(str(place))
    place.mkdir()
    (place / "metadata").write_text("theirs")
    said = raises(LabError, timeline_ctf.write, path, result(conversation()))
    assert "File exists" in said, said
    assert os.listdir(place) == ["metadata"] and (place / "metadata").read_text() == "theirs"
    assert "not empty" in raises(UsageError, timeline_ctf.place, str(place))


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
