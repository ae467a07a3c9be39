#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the launcher's output and files that need no VM."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import domain, ports, proc, snapshot  # noqa: E402
from launcher.errors import LabError  # noqa: E402
from launcher.state import LabFolder  # noqa: E402

CASES = []
# As the first launcher wrote it, for a lab whose VM is off.
FIRST_VM = {
    "index": 0,
    "addr": "10.77.0.1",
    "mac": "02:11:22:33:44:55",
    "driver": "staghorn",
    "properties": {},
    "process": None,
    "starts": 1,
    "ready_s": 4.2,
    "rdma": "staghorn0",
}
FIRST_LAB = {
    "version": 1,
    "name": "old",
    "phase": "up",
    "owner": None,
    "mtu": 1500,
    "mem": 1024,
    "cpus": 2,
    "accel": "tcg",
    "capture": None,
    "timeout": 120,
    "segment": {"kind": "socket", "process": None},
    "vms": {"alpha": FIRST_VM},
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def staghorn(folder, *words, **environment):
    """Runs the launcher with its labs and its build products in that folder."""
    own = {"STAGHORN_STATE": str(folder / "state"), "STAGHORN_BUILD": str(folder / "build")}
    return subprocess.run(
        [str(TOP / "staghorn"), *words],
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def put_lab(folder, lab):
    """A lab's folder with that state."""
    place = folder / "state" / "labs" / lab["name"]
    place.mkdir(parents=True)
    (place / "lab.json").write_text(json.dumps(lab))
    return place


@case
def status__of_an_older_lab(folder):
    """status and down work on a lab that an older launcher started"""
    place = put_lab(folder, FIRST_LAB)
    done = staghorn(folder, "--lab", "old", "status")
    assert done.returncode == 0 and not done.stderr, done
    assert "lab old: dead, tcg, MTU 1500" in done.stdout, done.stdout
    found = json.loads(staghorn(folder, "--lab", "old", "status", "--json").stdout)
    assert found["kernel"] == "base" and found["vms"]["alpha"]["trace"] == [], found
    done = staghorn(folder, "--lab", "old", "down")
    assert done.returncode == 0 and not place.exists(), done


@case
def status__dropped_frames(_folder):
    """status says which frames an adapter dropped, and nothing where it dropped none"""
    quiet = {"frames-in": 9, "frames-out": 9, "checksum-errors": 0, "dropped": 0}
    vms = {"alpha": {"ports": [quiet, None]}, "beta": {"ports": []}}
    assert not list(ports.lines(vms))
    vms["alpha"]["ports"] = [dict(quiet, dropped=3), dict(quiet, **{"checksum-errors": 12})]
    assert list(ports.lines(vms)) == [
        "dropped frames of alpha: 3 without room for them",
        "dropped frames of alpha.1: 12 with a wrong checksum",
    ]


@case
def version__of_the_project(folder):
    """--version is the version that meson.build has"""
    done = staghorn(folder, "--version")
    assert done.returncode == 0, done
    assert "version: '%s'" % done.stdout.split()[1] in (TOP / "meson.build").read_text(), done


def built(folder, *names):
    """A build folder with these products, which are empty except for the profiles."""
    for name in names:
        path = folder / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[full]\n" if name.endswith("profiles.ini") else "")


BASE = (
    *("qemu/qemu-system-x86_64", "products/firmware/share/bios", "firmware/profiles.ini"),
    *("firmware/full.flash", "firmware/sg-flash"),
    *("guest/vmlinuz", "guest/initrd", "guest/root.img"),
)


@case
def up__not_built(folder):
    """up says what is not built, and then starts nothing"""
    built(folder, *BASE)
    for words, missing, target in (
        (("--kernel", "debug"), "guest/debug/vmlinuz", "debug-kernel"),
        (("--image", "consumers"), "guest/consumers.img", "consumers"),
        (("--netboot",), "guest/netroot.gz", "all"),
    ):
        # Otherwise the launcher would try KVM with the guest's kernel.
        done = staghorn(folder, "up", "--accel", "tcg", *words)
        assert done.returncode == 1, done
        assert "start" not in done.stderr, done.stderr
        assert missing + " is not built" in done.stderr, done.stderr
        assert " %s\n" % target in done.stderr or " %s " % target in done.stderr, done.stderr
        assert not (folder / "state" / "labs").exists(), "a lab is left"


@case
def snapshot__guest_goes_on(folder):
    """A guest that does not wait to be saved is noticed at once"""
    vm = {**FIRST_VM, "process": proc.identify(os.getpid())}
    lab = LabFolder("old")
    lab.data = {**FIRST_LAB, "vms": {"alpha": vm}}
    console = folder / "console.log"
    console.write_text("staghorn: alpha is up\n")
    snapshot.debugging.log_files, before = lambda *_: [console], snapshot.debugging.log_files
    try:
        snapshot.wait_paused(lab, "alpha", 5)
        raise AssertionError("it waited")
    except LabError as error:
        assert "does not wait" in str(error), error
    finally:
        snapshot.debugging.log_files = before


@case
def removed_beside(folder):
    """A lab can be made while another one is removed, with the folder of all labs"""
    os.environ["STAGHORN_STATE"] = str(folder / "state")
    try:
        lab, other, calls = LabFolder("new"), LabFolder("old"), []
        create = lab.create

        def disturbed():
            create()
            calls.append(0)
            if len(calls) <= 3:
                lab.path.rmdir()
                other.remove()

        lab.create = disturbed
        with lab.lock():
            assert (lab.path / "lock").exists() and len(calls) == 4
        assert not (folder / "state").exists()
        lab.create = lambda: None
        try:
            with lab.lock():
                raise AssertionError("there is no folder")
        except LabError as error:
            assert "cannot be made" in error.text(), error.text()
    finally:
        del os.environ["STAGHORN_STATE"]


@case
def modules__only_those_of_the_verb(folder):
    """a short run of the launcher does not load what crash, copy and lint need"""
    script = (
        "import sys; from launcher import cli; sys.argv = ['staghorn', 'status']; cli.main();"
        "print(*sorted(m for m in sys.modules if m.startswith('launcher.')), *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(TOP / "tools"), "STAGHORN_STATE": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "launcher.lab" in loaded, done.stderr
    late = {"launcher.crash", "launcher.transfer", "launcher.lint", "tarfile", "configparser"}
    assert not loaded & late, loaded & late
    assert " record " in staghorn(folder, "crash", "--help").stdout


@case
def bytecode__is_in_the_build_folder(folder):
    """compiled modules are kept, but never in the tree, nor without a build folder"""
    tree = folder / "tree"
    shutil.copytree(TOP / "tools" / "launcher", tree / "tools" / "launcher")
    for name in ("staghorn", "meson.build"):
        shutil.copy(TOP / name, tree / name)

    def elsewhere(top):
        (top / "elsewhere").mkdir()
        (top / ".build-dir").write_text(str(top / "elsewhere") + "\n")

    steps = (
        (lambda: None, set()),
        ((tree / "build").mkdir, {"build"}),
        (lambda: elsewhere(tree), {"build", "elsewhere"}),
    )

    for step, wanted in steps:
        step()
        subprocess.run([str(tree / "staghorn"), "--version"], capture_output=True, check=True)
        compiled = {path.relative_to(tree).parts[0] for path in tree.rglob("*.pyc")}
        assert compiled == wanted, compiled


@case
def launcher__doubts(_folder):
    """launcher: if CPUs are not tracked, up and pmem say which verdicts cannot be trusted"""
    state = {
        **{"power": True, "cuts": 0, "nvdimms": {}, "stages": {}, "events": 0, "flushes": 0},
        **{"flushes-failed": 0, "lines-persisted": 0, "media-refusals": 0},
    }
    shown = {"vm": "beta", "properties": {}, "state": state}
    assert "trusted" not in domain.text_of(shown)
    doubtful = dict(shown, state=dict(state, **{"not-trusted": "nobody looked"}))
    assert "verdicts not to be trusted: nobody looked" in domain.text_of(doubtful)

    class Lab:
        data = {
            "vms": {
                "alpha": {"pmem": None},
                "beta": {"pmem": {"domain": {}}},
                "gamma": {"pmem": {"domain": {"domain": "off"}}},
                "delta": {"pmem": {"domain": {"cpu-tracking": "on"}}},
            }
        }

    class Monitor:
        def __init__(self, _folder, vm):
            self.state = doubtful["state"] if vm == "beta" else state

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def run(self, *_, **__):
            return json.dumps(self.state)

    with mock.patch.object(domain, "Monitor", Monitor):
        doubts = list(domain.doubts(Lab))
    assert doubts == [("beta", "nobody looked")]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
