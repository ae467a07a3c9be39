# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher: labs of VMs on one Ethernet segment.

errors.py      what goes wrong, and what to do next
paths.py       where things are: build products, state folders
proc.py        processes that outlive us, and whether they still run
state.py       a lab's folder and its state file
options.py     what the user asked for, checked
accel.py       KVM or TCG
segment.py     the Ethernet segment
pmem.py        NVDIMMs of a VM
domain.py      their persistence domain, at run time
qmp.py         QEMU's monitor
devdax.py      how the guest finds a device in them
qemu.py        a VM's command line
debugging.py   what of QEMU can be looked at: device log, trace events, gdbstub
keeper.py      a process of its own that bounds the device log
agent.py       sessions with the guest's agent (protocol: tools/guest/agent/agent.h)
lab.py         up, down, cut, on, status
transfer.py    copy
console.py     console, log
cli.py         verbs and their options
"""
