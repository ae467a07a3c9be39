#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of which VMs share a boot snapshot; no VM is needed for them."""
import os
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import cli, lab, snapshot  # noqa: E402

CASES = []
PROGRAM = b"\x7fELF..." b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def fake_build(folder, version=b"1", modules=b"modules"):
    """A build folder with what a snapshot's name depends on."""
    files = {
        "qemu/qemu-system-x86_64": PROGRAM + version.ljust(20, b"-"),
        "guest/vmlinuz": b"",
        # Its first file is a program, which does not tell what else is in it.
        "guest/initrd": b"070701" + PROGRAM + b"busybox".ljust(20, b"-") + modules,
        "guest/root.img": b"",
        "products/firmware/share/bios-256k.bin": b"",
        "firmware/full.flash": b"",
        "firmware/profiles.ini": b"[full]\n",
    }
    shared = folder.parent / "cache"
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content:
            path.write_bytes(content)
        else:  # a product that all clones share
            shared.mkdir(exist_ok=True)
            (shared / path.name).touch()
            path.symlink_to(shared / path.name)
    return folder


def snapshot_names(build, *words, name="lab"):
    """The names of the snapshots of a lab, as `up WORDS` would look for them."""
    os.environ["STAGHORN_BUILD"] = str(build)
    try:
        args = cli.make_parser().parse_args(["up", *words])
        made = lab.make_plan(name, args)
        made["accel"] = "tcg"
        return [snapshot.file_of(made, vm).name for vm in made["vms"]]
    finally:
        del os.environ["STAGHORN_BUILD"]


@case
def snapshot__is_shared(folder):
    """clones and labs share snapshots, and so do adapters that differ for a driver only"""
    one, two = fake_build(folder / "one"), fake_build(folder / "two")
    names = snapshot_names(one)
    assert len(set(names)) == 2
    assert snapshot_names(two) == names
    assert snapshot_names(one, name="another") == names
    for prop in ("crc=off", "beta:mpa-rev=1", "commit=01", "check=strict", "wire=rdma-tcp-2000"):
        assert snapshot_names(one, "--device-prop", prop) == names, prop
    assert snapshot_names(one, "--capture", str(folder / "x.pcap")) == names
    assert snapshot_names(one, "--driver", "beta=siw")[0] == names[0]


@case
def snapshot__is_not_shared(folder):
    """what the guest sees makes another snapshot: another program, other hardware"""
    names = set(snapshot_names(fake_build(folder / "one")))
    assert not names & set(snapshot_names(fake_build(folder / "two", b"2")))
    assert not names & set(snapshot_names(fake_build(folder / "three", modules=b"another")))
    for words in (
        ("--device-prop", "vectors=4"),
        ("--cpus", "3"),
        ("--mem", "512M"),
        ("--mtu", "9000"),
        ("--pmem", "64M"),
        ("--driver", "none"),
    ):
        assert not names & set(snapshot_names(folder / "one", *words)), words


@case
def snapshot__room(folder):
    """those that were not used for the longest time go first, when all have too many octets"""
    for number, name in enumerate(("old", "used", "new")):
        path = folder / (name + ".state")
        path.write_bytes(b"x" * 100)
        os.utime(path, (number + 1, number + 1))
    os.utime(folder / "used.state", (9, 9))
    before, snapshot.KEPT = snapshot.KEPT, 250
    try:
        snapshot._make_room(folder)
    finally:
        snapshot.KEPT = before
    assert {path.stem for path in folder.iterdir()} == {"used", "new"}


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
