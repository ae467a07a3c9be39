#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example examples/vfio, and the option up --iommu, without a VM."""
import os
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
EXAMPLE = TOP / "examples" / "vfio"
MOST_LINES = 800  # fewer than these
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))

from launcher import iommu  # noqa: E402
from launcher.errors import UsageError  # noqa: E402

CASES = []
LOOP = ("0000:01:00.0", "10.77.0.1/24", "loop")


def case(function):
    CASES.append(function)
    return function


def compiled(folder):
    """The example, compiled with warnings as errors."""
    program = folder / "vfio_driver"
    words = "-std=gnu11 -O2 -Wall -Wextra -Werror".split()
    words += ["-I" + str(TOP / "include"), "-o", str(program), str(EXAMPLE / "vfio_driver.c")]
    done = subprocess.run(["cc", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@case
def example__length(_folder):
    """the driver of examples/vfio has fewer than 800 lines"""
    lines = sum(len(f.read_text().splitlines()) for f in sorted(EXAMPLE.glob("*.[ch]")))
    assert 0 < lines < MOST_LINES, lines


@case
def example__arguments(folder):
    """the example compiles without warnings, and refuses wrong arguments before it opens VFIO"""
    program = compiled(folder)
    for words, text in (
        ((), "usage: "),
        (LOOP[:2], "usage: "),
        ((*LOOP, "more"), "usage: "),
        ((*LOOP[:2], "dance"), "usage: "),
        ((*LOOP[:2], "serve"), "usage: "),
        ((*LOOP[:2], "connect", "10.77.0.2"), "usage: "),
        (("1:0", *LOOP[1:]), "1:0 is not like 0000:01:00.0"),
        (("../../../etc", *LOOP[1:]), "is not like"),
        ((LOOP[0], "10.77.0.1", "loop"), "10.77.0.1 is not ADDRESS/BITS"),
        ((LOOP[0], "10.77.0.1/33", "loop"), "10.77.0.1/33 is not ADDRESS/BITS"),
        ((LOOP[0], "10.77.0/24", "loop"), "10.77.0 is not an IPv4 address"),
        ((*LOOP[:2], "serve", "0"), "0 is not a port, 1 to 65535"),
        ((*LOOP[:2], "serve", "65536"), "65536 is not a port, 1 to 65535"),
        ((*LOOP[:2], "connect", "beta", "7174"), "beta is not an IPv4 address"),
    ):
        done = subprocess.run(
            [str(program), *words], capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 1 and text in done.stderr, (words, done)


@case
def bind__arguments(_folder):
    """the script that changes the driver refuses other drivers and devices that are not there"""
    for words, text in (
        ((), "usage: "),
        (("e1000e",), "usage: "),
        (("vfio-pci", "ffff:ff:1f.7"), "there is no adapter ffff:ff:1f.7"),
    ):
        done = subprocess.run(
            [str(EXAMPLE / "bind.sh"), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and text in done.stderr, (words, done)


@case
def iommu__option(_folder):
    """--iommu: all VMs or those named; refusals"""
    names = ["alpha", "beta"]
    assert iommu.parse(None, names, "base") == set()
    assert iommu.parse("", names, "base") == {"alpha", "beta"}
    assert iommu.parse("beta", names, "base") == {"beta"}
    assert iommu.parse(None, names, "debug") == set()
    for text, kernel, wanted in (
        ("gamma", "base", "--iommu: there is no VM gamma"),
        ("", "debug", "the debug kernel has no driver for an IOMMU"),
    ):
        try:
            iommu.parse(text, names, kernel)
            raise AssertionError("no refusal of %r" % text)
        except UsageError as error:
            assert wanted in error.text(), error.text()


@case
def iommu__words(_folder):
    """a VM with an IOMMU has the device, the kernel's argument, and with KVM a split irqchip"""
    there, none = {"iommu": True}, {"iommu": False}
    assert list(iommu.arguments(there)) == ["-device", iommu.DEVICE]
    assert "intremap=on" in iommu.DEVICE
    assert iommu.kernel_arguments(there) == " intel_iommu=on"
    assert iommu.machine(there, "kvm") == ",kernel-irqchip=split"
    assert iommu.machine(there, "tcg") == iommu.machine(none, "kvm") == ""
    assert not list(iommu.arguments(none)) and iommu.kernel_arguments(none) == ""
    assert iommu.lines({"alpha": there, "beta": none}) == ["IOMMU: alpha"]
    assert iommu.lines({"beta": none}) == []


if __name__ == "__main__":
    os.environ.pop("STAGHORN_KERNEL", None)
    sys.exit(cases.run(CASES))
