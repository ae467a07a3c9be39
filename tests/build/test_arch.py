#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `up --arch` without a VM: what is refused, and what QEMU is told."""
import os
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import arch, cli, lab, qemu, snapshot  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
FILES = (
    *("qemu/qemu-system-x86_64", "qemu-arm64/qemu-system-aarch64"),
    *("guest/vmlinuz", "guest/initrd", "guest/root.img"),
    *("guest-arm64/vmlinuz", "guest-arm64/initrd", "guest-arm64/root.img"),
    *("products/firmware/share/bios-256k.bin", "firmware/full.flash"),
)


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def build(folder, *without):
    """A build folder with all files that labs need, but these."""
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name not in without:
            path.touch()
    (folder / "firmware/profiles.ini").write_text("[full]\n")
    os.environ["STAGHORN_BUILD"] = str(folder)
    return folder


def plan(*words):
    """The lab that `up WORDS` would start."""
    made = lab.make_plan("lab", cli.make_parser().parse_args(["up", *words]))
    made["accel"] = "tcg"
    return made


def refused(*words, said):
    """`up WORDS` is refused, with these words."""
    try:
        plan(*words)
    except UsageError as error:
        for word in said:
            assert word in str(error), (words, error)
        return
    raise AssertionError("%s was taken" % (words,))


@case
def arch__of_each_vm(folder):
    """an architecture for all VMs, or for some"""
    build(folder)
    for words, wanted in (
        ((), ["x86_64", "x86_64"]),
        (("--arch", "arm64"), ["arm64", "arm64"]),
        (("--arch", "beta=arm64"), ["x86_64", "arm64"]),
        (("--arch", "arm64,alpha=x86_64"), ["x86_64", "arm64"]),
    ):
        found = [vm["arch"] for vm in plan(*words)["vms"].values()]
        assert found == wanted, (words, found)


@case
def arch__unknown(folder):
    """an architecture or a VM that is not there is refused by its name"""
    build(folder)
    refused("--arch", "riscv64", said=("no architecture riscv64", "x86_64, arm64"))
    refused("--arch", "gamma=arm64", said=("no VM gamma", "alpha, beta"))
    refused("--arch", "beta=", said=("no architecture",))


@case
def arch__options_of_x86(folder):
    """what an arm64 VM cannot have is refused, and an x86-64 VM beside it can have it"""
    build(folder)
    for words, said in (
        (("--accel", "kvm"), "--accel kvm"),
        (("--kernel", "debug"), "--kernel debug"),
        (("--image", "consumers"), "--image consumers"),
        (("--packages", "fio"), "--packages"),
        (("--pmem", "beta:64M"), "--pmem"),
        (("--netboot", "beta"), "--netboot"),
        (("--uefi", "beta"), "--uefi"),
        (("--iommu", "beta"), "--iommu"),
    ):
        refused("--arch", "beta=arm64", *words, said=(said, "beta is arm64"))
    for words in (("--pmem", "alpha:64M"), ("--uefi", "alpha"), ("--iommu", "alpha")):
        plan("--arch", "beta=arm64", *words)


@case
def arch__words_for_qemu(folder):
    """each VM gets its QEMU, machine, kernel and console"""
    place = build(folder)
    made = plan("--arch", "beta=arm64")
    x86, arm64 = (list(map(str, qemu.command(made, vm, "log"))) for vm in made["vms"])
    assert x86[0] == str(place / "qemu/qemu-system-x86_64"), x86[0]
    assert arm64[0] == str(place / "qemu-arm64/qemu-system-aarch64"), arm64[0]
    for words, machine, guest, console in (
        (x86, "q35,", "guest", "console=ttyS0 "),
        (arm64, "virt,", "guest-arm64", "console=ttyAMA0 "),
    ):
        assert words[words.index("-M") + 1].startswith(machine), words
        assert words[words.index("-kernel") + 1] == str(place / guest / "vmlinuz"), words
        assert words[words.index("-initrd") + 1] == str(place / guest / "initrd"), words
        assert words[words.index("-append") + 1].startswith(console), words
        assert any(str(place / guest / "root.img") in word for word in words), words
        assert any(word.startswith("staghorn,netdev=up0") for word in words), words
    assert not any("vmgenid" in word or "tsc" in word for word in arm64), arm64


@case
def arch__no_snapshot_no_kvm(folder):
    """an arm64 VM boots in any case; a lab of such VMs does not ask for KVM"""
    build(folder)
    made = plan("--arch", "beta=arm64")
    made["boot_snapshot"] = True
    assert snapshot.obstacle(made, "alpha") == ""
    assert "arm64" in snapshot.obstacle(made, "beta")
    assert arch.accel("auto", made["vms"]) == "auto"
    assert arch.accel("auto", plan("--arch", "arm64")["vms"]) == "tcg"


@case
def arch__what_is_not_built(folder):
    """a missing file is named with the target of make that builds it; x86-64 needs none of them"""
    for lacks in ("qemu-arm64/qemu-system-aarch64", "guest-arm64/vmlinuz", "guest-arm64/root.img"):
        build(folder / lacks.replace("/", "-"), lacks)
        lab.require_built(plan())
        try:
            lab.require_built(plan("--arch", "beta=arm64"))
            raise AssertionError("nothing lacked")
        except LabError as error:
            assert lacks in str(error) and error.hint.endswith(" guest-arm64"), error.text()


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
