#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verb trace without a VM: keepers are real, QEMU only switches its events."""
import json
import os
import sys
import time

import cases
import timeline_rig
from timeline_rig import conversation, raises, read_page

from launcher import debugging, keeper, options, timeline, timeline_tap
from launcher.errors import LabError, UsageError

CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


@case
def own_events__not_those_of_up(_folder):
    """what the log or `up --trace` wants stays on, and in the log"""
    found = timeline_tap.own_events({"trace": []})
    assert not set(found) & set(debugging.ALWAYS) and debugging.TWICE in found
    found = timeline_tap.own_events({"trace": ["staghorn_*"]})
    assert found == [debugging.TWICE], found
    found = timeline_tap.own_events({"trace": ["staghorn_reg_?ead", "pci_*"]})
    assert "staghorn_reg_read" not in found and "staghorn_reg_write" in found


@case
def verb__both_files(folder):
    """the verb switches events on and off, and writes page, Perfetto's file and JSON"""
    page, perfetto = folder / "a.html", folder / "a.json"
    with timeline_rig.Lab(folder, conversation()) as lab:
        words = ["--html", str(page), "--perfetto", str(perfetto), "--json", "--for", "1"]
        status, out, err = lab.trace("beta", "alpha", *words)
        assert status == 0, err
        switched = lab.machines["alpha"].switched
        log = (lab.place / "alpha" / "device.log").read_text()
    found = json.loads(out)
    assert list(found["vms"]) == ["beta", "alpha"] and len(found["events"]) == 16
    assert found["vms"]["alpha"]["events"] == 13 and found["notes"] == []
    read_page(page.read_text())
    assert json.loads(perfetto.read_text())["otherData"]["lab"] == "lab"
    names = timeline_tap.own_events({"trace": []})
    assert switched == [(name, on) for on in (True, False) for name in names], switched
    assert "staghorn_peer r0" in log and "staghorn_flow" not in log, log
    assert not list(folder.glob("*.new"))


@case
def verb__limit(folder):
    """at the limit the events are switched off, and the text says what is missing"""
    with timeline_rig.Lab(folder, conversation()) as lab:
        begin = time.monotonic()
        status, out, err = lab.trace(
            "alpha", "--html", str(folder / "a"), "--limit", "5", "--for", "30"
        )
        assert status == 0 and time.monotonic() - begin < 25, err
    assert "alpha: 5 events: 1 register, 1 command, 1 doorbell, 1 fetch, 1 state" in out, out
    assert "The limit of 5 events was reached after" in out, out
    assert "written: %s" % (folder / "a") in out


@case
def verb__vm_goes_off(folder):
    """a VM that goes off during the trace ends nothing; what it said is there"""
    lines = conversation()
    with timeline_rig.Lab(folder, {"alpha": lines["alpha"]}) as lab:
        machine = lab.machines["alpha"]
        taps = timeline_tap.Taps(FakeFolder(lab), ["alpha"], 100)
        with taps:
            time.sleep(0.5)
            machine.close()
            taps.folder.data["vms"]["alpha"]["process"] = None
        assert len(taps.capture.events) == 13
        assert taps.problems == ["VM alpha went off"], taps.problems
        lab.machines.clear()


class FakeFolder:
    """The members of a lab's folder that taps need."""

    def __init__(self, lab):
        self.path, self.name = lab.place, "lab"
        self.data = json.loads((lab.place / "lab.json").read_text())

    def running(self, name):
        return self.data["vms"][name]


@case
def verb__one_trace_at_a_time(folder):
    """a second trace of a VM is refused, and the first one is not disturbed"""
    with timeline_rig.Lab(folder, conversation()) as lab:
        with timeline_tap.Taps(FakeFolder(lab), ["alpha"], 100) as taps:
            status, _, err = lab.trace("beta", "alpha", "--html", str(folder / "a"), "--for", "9")
            assert status == 1 and "another trace of VM alpha runs" in err, err
        assert len(taps.capture.events) == 13 and not taps.problems
        assert lab.machines["beta"].switched == []  # nothing was begun


@case
def verb__older_qemu(folder):
    """a QEMU without an event is named, and what was switched on is switched off again"""
    with timeline_rig.Lab(folder, {"alpha": []}) as lab:
        machine = lab.machines["alpha"]
        machine.lacks = ("staghorn_doorbell",)
        status, _, err = lab.trace("alpha", "--html", str(folder / "a"), "--for", "9")
        assert status == 1, err
        assert "the QEMU of VM alpha has no trace event staghorn_doorbell" in err, err
        left = {name for name, on in machine.switched if on}
        left -= {name for name, on in machine.switched if not on}
        assert left <= {"staghorn_doorbell"}, left
    assert not (folder / "a").exists()


@case
def verb__older_keeper(folder):
    """a VM whose keeper has no tap is named, with what to do"""
    with timeline_rig.Lab(folder, {"alpha": []}) as lab:
        os.unlink(lab.place / "alpha" / keeper.TAP)
        status, _, err = lab.trace("alpha", "--html", str(folder / "a"), "--for", "9")
    assert status == 3 and "switch it off and on" in err, err


@case
def verb__refusals(folder):
    """wrong arguments are named before anything is recorded"""
    out = str(folder / "a")
    found = {
        ("alpha", "--for", "1"): (2, "no result is asked for"),
        ("gamma", "--html", out): (3, "lab lab has no VM gamma"),
        ("off", "--html", out): (3, "VM off is off"),
        ("alpha", "alpha", "--html", out): (2, "names alpha twice"),
        ("alpha", "--html", str(folder / "no" / "a")): (2, "cannot be written there"),
        ("alpha", "--html", str(folder)): (2, "cannot be written there"),
        ("alpha", "--html", out, "--perfetto", out): (2, "name the same file"),
        ("alpha", "--html", out, "--for", "1", "--", "true"): (2, "exclude each other"),
        ("alpha", "--html", out, "--"): (2, "no COMMAND behind --"),
        ("alpha", "--html", out, "--limit", "0"): (2, "0 is not a number of events"),
        ("alpha", "--html", out, "--limit", "1e3"): (2, "1e3 is not a number of events"),
        ("alpha", "--html", out, "--for", "x"): (2, "x is not a length in seconds"),
        ("--html", out): (2, "the following arguments are required: VM"),
    }
    with timeline_rig.Lab(folder, {"alpha": [], "off": []}, off=("off",)) as lab:
        for words, (status, text) in found.items():
            done = lab.trace(*words)
            assert done[0] == status and text in done[2], (words, done)
        assert lab.machines["alpha"].switched == []
    assert not (folder / "a").exists()
    with timeline_rig.Lab(folder / "siw", {"alpha": []}, driver="siw") as lab:
        status, _, err = lab.trace("alpha", "--html", out, "--for", "1")
        assert status == 2 and "alpha has no Staghorn adapter" in err, err


@case
def verb__no_lab(folder):
    """without a lab the verb says how to start one"""
    with timeline_rig.Lab(folder, {"alpha": []}) as lab:
        (lab.place / "lab.json").unlink()
        status, _, err = lab.trace("alpha", "--json", "--for", "1")
    assert status == 3 and "lab lab is not up" in err, err


@case
def files__cannot_be_written(folder):
    """a file that cannot be written leaves nothing half-written, and says why"""
    place = folder / "gone"
    place.mkdir()
    path = options.writable("--html", str(place / "a"))
    place.rmdir()
    assert "cannot be written: No such file" in raises(LabError, timeline.write, path, "x")
    assert "cannot be written there" in raises(UsageError, options.writable, "--html", path)
    (folder / "folder").mkdir()
    raises(LabError, timeline.write, str(folder / "folder"), "x")
    assert sorted(each.name for each in folder.iterdir()) == ["folder"]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
