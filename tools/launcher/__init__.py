# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher: labs of VMs on Ethernet segments.

Basics:
errors.py      errors, with a hint at what to do next
paths.py       paths of build products and state folders
proc.py        processes that outlive the launcher, and whether they still run
state.py       a lab's folder and its state file
pages.py       pages of HTML: what reports have in common

Parts of a VM:
options.py     the user's options, checked
accel.py       KVM or TCG
segment.py     the Ethernet segment
impair.py      impaired links, from the start and at run time
pmem.py        NVDIMMs of a VM
devdax.py      how the guest finds a device in them
firmware.py    the adapters' flash images and profiles
kernel_files.py  what the files of a kernel say
own_kernel.py  the user's own kernels
images.py      disk images, further packages
share.py       folders of the host in VMs
arch.py        VMs with another processor: arm64
iommu.py       VMs with an IOMMU
uefi.py        VMs that boot with UEFI
netboot.py     VMs without a disk
guest.py       the guest of an installed launcher, built in the user's cache
debugging.py   QEMU's device log, trace events and gdbstub
qemu.py        a VM's command line

Operations on running VMs:
qmp.py         QEMU's monitor
keeper.py      a separate process that bounds a VM's logs
agent.py       sessions with the guest's agent (protocol: tools/guest/agent/agent.h)
snapshot.py    VMs that resume behind their boot
checker.py     VMs that judge crash images, and are put back for each
lab.py         up, down, cut, on, link, impair, save, load, status
plug.py        unplug and plug of the adapter, saved machines
reload.py      a new driver in a running VM
ports.py       frames that the adapters' ports have dropped
domain.py      the persistence domain at run time
faults.py      faults on demand
torture.py     work under faults of a seed, round by round
torture_guest.py   what it runs in VMs
torture_judge.py   what it demands
transfer.py    copy
record.py      recordings of a lab while scripts run
console.py     console, log
lint.py        reports of the driver checker
timeline.py    trace: what adapters do, on one time line
timeline_tap.py    its source: the keepers' taps, QEMU's trace events
timeline_lines.py  the adapter's trace events as data
timeline_guest.py  tracepoints of the guests on it
timeline_clock.py  the guests' clocks in terms of the host's
timeline_links.py  which event of a VM received what another one sent
timeline_html.py   the time line as a page
timeline_perfetto.py   the same for Perfetto
timeline_ctf.py    the same in the Common Trace Format
guest_reads.py what a command in a VM prints, with bounds
call_chain.py  callers of an instruction, from a window of the kernel's stack
guest_orc.py   what leads to them: ORC tables of a guest's kernel
elf_names.py   functions of an ELF file of a guest
processes.py   program counters of processes as functions
symbols.py     program counters of a recording as functions, files and lines
explore.py     the explorer on a recording
packets.py     packets of a capture that brought what a bug names
explore_report.py  its report: HTML and JUnit
explore_timeline.py  what all machines did about a bug, for the report
verdicts.py    the file of verdicts about crash images
explored.py    what an exploration left for a check
plans.py       images of chosen plans, events of a trace
check.py       crash images are judged by a checker
check_lab.py   the lab of a check
check_image.py     one image of a check, judged again
check_run.py   checks in several VMs, with a journal
messages.py    the messages and packets that lost DMA came in
check_explain.py   what was promised, the least platform of a bug of a check
check_timeline.py  what became of the stores that a bug of a check lost
again.py       the command that shows a bug again
check_report.py    bugs of a check: JSON, HTML, JUnit
compare.py     what a checker prints, compared with the run's own states
reduce.py      minimal examples
read_lines.py  sets of lines that checkers read
check_vm.py    crash images of another VM of the recording
pairs.py       pairs of images of two VMs whose power fails at once
pairs_lab.py   what judges them: a checker, and two VMs
pairs_reduce.py    minimal examples of both VMs
pairs_report.py    bugs of pairs: JSON, HTML, JUnit
check_pairs.py the check of pairs
check_reads.py     images that differ in what the checker reads, in rounds
check_nested.py    power cuts while a checker recovers from a cut
recoveries.py      which recoveries there are, depth by depth
nested_result.py   what became of them
merge.py       verdicts of several checks become one
keep.py        a bug as one file
keep_pairs.py  what that has of two VMs
keep_judge.py  a kept bug is judged again
check_verbs.py the options of crash check, merge and keep
crash.py       the verb crash and its options
up_options.py  the options of up
cli.py         all other verbs
"""
