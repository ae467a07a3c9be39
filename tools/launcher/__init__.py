# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher: labs of VMs on one Ethernet segment.

What it rests on:
errors.py      what goes wrong, and what to do next
paths.py       where things are: build products, state folders
proc.py        processes that outlive us, and whether they still run
state.py       a lab's folder and its state file

What a VM is made of:
options.py     what the user asked for, checked
accel.py       KVM or TCG
segment.py     the Ethernet segment
impair.py      impaired links, from the start and at run time
pmem.py        NVDIMMs of a VM
devdax.py      how the guest finds a device in them
firmware.py    the adapters' flash images and profiles
uefi.py        VMs that boot with UEFI
netboot.py     VMs without a disk
debugging.py   what of QEMU can be looked at: device log, trace events, gdbstub
qemu.py        a VM's command line

What is done with VMs that run:
qmp.py         QEMU's monitor
keeper.py      a process of its own that bounds a VM's logs
agent.py       sessions with the guest's agent (protocol: tools/guest/agent/agent.h)
lab.py         up, down, cut, on, status
plug.py        unplug and plug of the adapter, saved machines
ports.py       what the adapters' ports have dropped
domain.py      the persistence domain at run time
transfer.py    copy
console.py     console, log
cli.py         verbs and their options
"""
