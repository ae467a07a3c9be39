# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs with another processor: the option --arch (docs/other-machines.md).

A lab may have VMs of several architectures on one segment.  An arm64 VM is QEMU's machine `virt`,
emulated on any host, with a guest of its own that only `make guest-arm64` builds.  What the other
options need of an x86 machine is refused here.
"""
from . import paths
from .errors import UsageError

X86 = "x86_64"
ARM64 = "arm64"
CHOICES = (X86, ARM64)
# An emulated processor of another kind is slower than one of ours.
PATIENCE = 4
KERNEL_ARGUMENTS = "console=ttyAMA0"
# The processor is one that is cheap to emulate: it has no pointer authentication.
BOARD = ("-M", "virt,gic-version=3", "-cpu", "neoverse-n1", "-accel", "tcg,thread=multi")


def parse(text, names):
    """Turns 'beta=arm64', or one architecture for all, into {VM: architecture}."""
    chosen = dict.fromkeys(names, X86)
    for item in filter(None, (part.strip() for part in (text or "").split(","))):
        name, equals, arch = item.rpartition("=")
        if arch not in CHOICES:
            raise UsageError(
                "--arch: there is no architecture %s; there are %s" % (arch, ", ".join(CHOICES))
            )
        if equals and name not in chosen:
            raise UsageError("--arch: there is no VM %s; there are %s" % (name, ", ".join(names)))
        for vm in [name] if equals else names:
            chosen[vm] = arch
    return chosen


def is_arm64(vm):
    return vm.get("arch", X86) == ARM64


def patience(vms):
    """How many times as long such VMs may take to boot."""
    return PATIENCE if any(map(is_arm64, vms.values())) else 1


def accel(wanted, vms):
    """What the lab's other VMs are to use: auto, tcg or kvm.  No host has KVM for both."""
    return "tcg" if all(map(is_arm64, vms.values())) else wanted


def check(args, kernel, vms):
    """Refuses options that do not go together."""
    found = [name for name, vm in vms.items() if is_arm64(vm)]
    if not found:
        return
    for given, option in (
        (args.accel == "kvm", "--accel kvm"),
        (kernel != "base", "--kernel " + kernel),
        (args.image != "base", "--image " + args.image),
        (args.packages, "--packages"),
    ):
        if given:
            raise UsageError(
                "%s is for x86-64 VMs only, and VM %s is arm64" % (option, found[0]),
                "docs/other-machines.md says what an arm64 VM can have",
            )
    for name in found:
        for given, option, why in (
            (vms[name]["pmem"], "--pmem", "a persistence domain needs x86 processors"),
            (vms[name]["netboot"], "--netboot", "the boot server has an x86-64 kernel"),
            (vms[name]["uefi"], "--uefi", "the firmware is x86-64's"),
            (vms[name]["iommu"], "--iommu", "the IOMMU is x86-64's"),
        ):
            if given:
                raise UsageError("%s: VM %s is arm64, and %s" % (option, name, why))


def require_built(vms):
    """Checks that the files of arm64 VMs exist."""
    for vm in vms.values():
        if is_arm64(vm):
            paths.qemu(True)
            for name in ("root.img", "vmlinuz", "initrd"):
                paths.guest_arm64(name)


def lines(vms):
    """What `status` says."""
    found = ["%s: %s" % (name, vm["arch"]) for name, vm in vms.items() if is_arm64(vm)]
    return ["architecture: " + ", ".join(found)] if found else []
