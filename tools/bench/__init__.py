# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmarks (programs bench*, started by `make bench`) and what they do in a lab's VMs, which
the demo and the tests do as well.

rdma.py        RDMA programs between two VMs: rping, perftest, and what they say
exports.py     shell with which VMs serve and use storage: NVMe, NFS
scenario.py    a log in another machine's persistent memory, and that machine's power goes
plot.py        pictures of what was measured
"""
