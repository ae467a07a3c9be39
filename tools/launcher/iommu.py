# SPDX-License-Identifier: GPL-2.0-or-later
"""VMs with an IOMMU: QEMU's model of Intel's, whose driver the guest's kernel switches on.

Every device on PCI is behind it but those of virtio, which access memory directly.  A program in
the VM can have a device through VFIO then (examples/vfio).  Linux gives a device to a program only
if interrupts are remapped, too.
"""
from . import options
from .errors import UsageError

# QEMU wants it in front of all other devices on PCI.  The addresses have 48 bits, not QEMU's 39.
DEVICE = "intel-iommu,intremap=on,aw-bits=48"
KERNEL_ARGUMENT = "intel_iommu=on"


def parse(text, names, kernel):
    """Turns 'alpha,beta', or '' for all, into the set of VMs; None: no VM."""
    wanted = options.some("--iommu", text, names)
    if wanted and kernel == "debug":
        raise UsageError("--iommu: the debug kernel has no driver for an IOMMU, nor VFIO")
    return wanted


def machine(vm, accel):
    """An addition to -M: KVM leaves the interrupts of devices to QEMU, which remaps them."""
    return ",kernel-irqchip=split" if vm["iommu"] and accel == "kvm" else ""


def arguments(vm):
    if vm["iommu"]:
        yield from ("-device", DEVICE)


def kernel_arguments(vm):
    return " " + KERNEL_ARGUMENT if vm["iommu"] else ""


def lines(vms):
    """What `status` says."""
    found = [name for name, vm in vms.items() if vm["iommu"]]
    return ["IOMMU: " + ", ".join(found)] if found else []
