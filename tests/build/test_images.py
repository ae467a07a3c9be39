#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `up --image` and `--packages` without a VM: what is refused, and why."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import images, paths  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
OWN = {"kind": "tree"}  # a kernel that brings its modules


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def ext4(folder, *files):
    """An image with these files, which are empty."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    made = folder / "image"
    made.unlink(missing_ok=True)
    command = ["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(made), "4M"]
    environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    subprocess.run(command, env=environment, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return str(made)


def refused(text, *words, names=(), own=None):
    """The image's refusal has these words and says what to do."""
    try:
        images.chosen(str(text), list(names), own)
    except UsageError as error:
        for word in words:
            assert word in error.text(), (word, error.text())
        assert error.hint, error
        return
    raise AssertionError("%s was taken" % text)


@case
def image__formats(folder):
    """a file without an ext4 file system is refused by what it is"""
    partitions = bytearray(4096)
    partitions[510:512] = b"\x55\xaa"
    for number, (data, *words) in enumerate(
        (
            (b"QFI\xfb" + bytes(4096), "qcow2", "qemu-img convert"),
            (b"hsqs" + bytes(4096), "squashfs"),
            (bytes(partitions), "partitions"),
            (b"text", "no ext4", "mke2fs"),
            (b"", "no ext4"),
        )
    ):
        path = folder / str(number)
        path.write_bytes(data)
        refused(path, *words)
    refused(folder / "none", "there is no file")
    refused(folder, "there is no file")
    try:
        images.word("consumer")
        raise AssertionError("it was taken")
    except argparse.ArgumentTypeError as error:
        assert "no image consumer; choose from base, consumers" in str(error), error


@case
def image__content(folder):
    """an image without the guest's programs, or without modules, is refused"""
    programs = ["usr/bin/" + name for name in images.PROGRAMS]
    path = ext4(folder, *programs[:-2])
    refused(path, "lacks modprobe, insmod", own=OWN)
    path = ext4(folder, *programs, "usr/sbin/modprobe")
    assert images.chosen(path, [], OWN) == path
    tree = folder / "build" / "products" / "guest-tree"
    tree.mkdir(parents=True)
    (tree / "KERNEL").write_text("6.12.9\n")
    before, paths.build = paths.build, lambda: folder / "build"
    try:
        refused(path, "no modules of the kernel 6.12.9", "--kernel")
        path = ext4(folder, "usr/lib/modules/6.12.9/modules.dep")
        assert images.chosen(path, [], None) == path
    finally:
        paths.build = before
    refused(path, "Leave --image out", names=["jq"])
    assert images.chosen("consumers", ["jq"], None) == "consumers"


@case
def packages__names(_folder):
    """names of packages are sorted, and what cannot be one is refused"""
    assert images.packages(None) == [] and images.packages("jq, gdb,jq") == ["gdb", "jq"]
    for text, word in (
        ("", "names no package"),
        (" , ", "names no package"),
        ("jq;rm", "jq;rm is no name"),
        ("-linux", "is no name"),
        ("G++", "is no name"),
        (",".join("p%d" % n for n in range(201)), "more than 200"),
    ):
        try:
            images.packages(text)
            raise AssertionError("%r was taken" % text)
        except UsageError as error:
            assert word in error.text(), error.text()


@case
def paths__of_images(folder):
    """an image that has vanished is an error"""
    try:
        paths.image(str(folder / "gone"))
        raise AssertionError("no error")
    except LabError as error:
        assert "no longer there" in error.text() and error.hint


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
