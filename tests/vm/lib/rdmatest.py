# SPDX-License-Identifier: GPL-2.0-or-later
"""rping and perftest in a lab of a test: as in demo and benchmarks, but with assertions."""
import sys

import labtest

sys.path.insert(0, str(labtest.TOP / "tools"))

# Those who import this module use exports and LabError through it.
from bench import exports, rdma  # noqa: E402,F401
from launcher.errors import LabError  # noqa: E402,F401
from launcher.state import LabFolder  # noqa: E402


def folder(lab):
    labtest.state_folder()
    return LabFolder(lab.name)


def rping(lab, server, client, **keywords):
    """rping with data validation."""
    return rdma.rping(folder(lab), server, client, **keywords)


def rping_fails(lab, server, client, limit=30):
    """An rping whose connection must be refused: the client says so and does not hang.

    The server waits for the next client, as it should, until it is ended."""
    address = folder(lab).data["vms"][server]["addr"]
    waiting = lab.start(server, "rping", "-s", "-a", address, "-C", "1")
    lab.sh(
        server, "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done", timeout=30
    )
    words = (
        "exec",
        "-n",
        "--timeout",
        limit,
        client,
        "--",
        "rping",
        "-c",
        "-a",
        address,
        "-C",
        "1",
    )
    done = lab.run(*words, status=None)
    waiting.stop()
    text = done.out + done.err
    assert done.returncode not in (0, 4, 125), "status %d\n%s" % (done.returncode, text)
    assert "REJECTED" in text or "connect error" in text, text
    return text


def perftest(lab, tool, server, client, size, iterations, extra=()):
    """One short run of a perftest program."""
    words = (folder(lab), tool, server, client, size, iterations, extra)
    if any(rdma.device(folder(lab), vm).startswith("siw") for vm in (server, client)):
        # The rate may be too low for perftest to print; the run was complete all the same.
        output = rdma.perftest_output(*words, timeout=90)[1]
        return rdma.value_of(tool, rdma.table_line(tool, output, size))
    value = rdma.perftest(*words, timeout=90)
    assert value > 0, "%s measured %s" % (tool, value)
    return value


def set_mtu(lab, mtu):
    for vm in ("alpha", "beta"):
        lab.sh(vm, "ip link set $(cat /run/staghorn/port) mtu %d" % mtu)
