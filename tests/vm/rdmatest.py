# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA programs in a lab of the tests: the launcher's own functions, as assertions."""
import sys

import labtest

sys.path.insert(0, str(labtest.TOP / "tools"))

from launcher import rdma  # noqa: E402
from launcher.errors import LabError  # noqa: E402
from launcher.state import LabFolder  # noqa: E402


def folder(lab):
    labtest.state_folder()
    return LabFolder(lab.name)


def rping(lab, server, client, **keywords):
    """rping with data validation."""
    return rdma.rping(folder(lab), server, client, **keywords)


def rping_fails(lab, server, client, timeout=30):
    """The error of an rping that must not work, and must not hang either."""
    try:
        rdma.rping(folder(lab), server, client, count=1, timeout=timeout)
    except LabError as error:
        assert "does not end" not in str(error), error
        return str(error)
    raise AssertionError("rping from %s to %s worked" % (client, server))


def perftest(lab, tool, server, client, size, iterations, extra=()):
    """One short run of a perftest program."""
    value = rdma.perftest(folder(lab), tool, server, client, size, iterations, extra, timeout=90)
    assert value > 0, "%s measured %s" % (tool, value)
    return value


def set_mtu(lab, mtu):
    for vm in ("alpha", "beta"):
        lab.sh(vm, "ip link set $(cat /run/staghorn/port) mtu %d" % mtu)
