# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmarks (programs bench*, started by `make bench`) and the modules that they share with
the demo and the tests.

rdma.py        runs RDMA programs between two VMs (rping, perftest) and reads their output
exports.py     shell scripts by which VMs serve and use storage: NVMe, NFS
guest.py       runs a shell script in a VM
scenario.py    a log in another machine's persistent memory, and power cuts of that machine
plot.py        plots of the results
"""
