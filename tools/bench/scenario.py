# SPDX-License-Identifier: GPL-2.0-or-later
"""A log in another machine's persistent memory, and a power cut of that machine.

alpha's log_writer appends records to the log in beta's NVDIMM (tests/guest-programs/log), beta
loses its power in the middle, and after its restart log_check examines the log.
"""
import re
import time
from dataclasses import dataclass

from launcher import agent, domain, lab, paths, transfer
from launcher.errors import LabError
from launcher.state import LabFolder

from . import rdma

SERVER, CLIENT = "beta", "alpha"
DEVICE = "/dev/dax0.0"
PROGRAMS = {SERVER: ("log_server", "log_check"), CLIENT: ("log_writer",)}
WRITER_LIMIT = 60


@dataclass
class Round:
    """The result of one power cut."""

    flush: bool
    posted: int
    acknowledged: int
    seconds: float  # of writing
    tail: int  # records that the log's tail counts after the cut
    lost: int  # acknowledged records that are missing or damaged
    broken: int  # records within the tail that are damaged


def install(folder, vm):
    """Installs the programs; a VM loses them with its power."""
    for name in PROGRAMS[vm]:
        transfer.put(folder, paths.guest("programs/" + name), vm, "/usr/bin/" + name)


def start_server(folder):
    """log_server, listening."""
    address = folder.data["vms"][SERVER]["addr"]
    server = rdma.Background(folder, SERVER, ["log_server", address, DEVICE])
    try:
        server.expect("listening")
        rdma.wait_listening(folder, SERVER, server)
    except BaseException:
        server.stop()
        raise
    return server


def _numbers(pattern, text, what):
    match = re.search(pattern, text, re.M)
    if not match:
        raise LabError("%s says:\n%s" % (what, text.strip() or "nothing"))
    return [float(x) if "." in x else int(x) for x in match.groups()]


def check(folder, session, acknowledged):
    """(tail, lost, broken) of the log, as beta sees it now."""
    words = ["log_check", DEVICE, str(session), str(acknowledged)]
    _, out, error = agent.capture(folder, SERVER, words, timeout=60)
    return _numbers(r"^tail (\d+) lost (\d+) broken (\d+)$", out + error, "log_check")


def _cuts(folder):
    return domain.show(folder, SERVER)["state"]["cuts"]


def _wait_for_cut(folder, writer, cuts, since):
    """Waits for an armed cut, which happens by itself, and for the VM's restart."""
    writer.wait(WRITER_LIMIT)
    if _cuts(folder) == cuts:
        raise LabError("the armed cut did not come:\n" + writer.output)
    with folder.lock():
        folder.load()
        lab.wait_ready(folder, SERVER, since, folder.data["timeout"])


def play(name, session, flush, delay, policy="random", arm=None):
    """One round in the lab of that name: write, cut the power after `delay` seconds, check the log.

    arm: the event that cuts the power, such as "before-flush-answer:100"; delay is then unused."""
    folder = LabFolder(name)
    install(folder, SERVER)
    install(folder, CLIENT)
    server = start_server(folder)
    if arm:
        cuts = _cuts(folder)
        domain.change(folder, SERVER, [("policy", policy), ("arm", arm)])
    since = time.monotonic()
    address = folder.data["vms"][SERVER]["addr"]
    words = ["log_writer", address, str(session)] + ([] if flush else ["--no-flush"])
    writer = rdma.Background(folder, CLIENT, words)
    try:
        if arm:
            _wait_for_cut(folder, writer, cuts, since)
        else:
            writer.expect("^going$")
            writer.thread.join(delay)
            lab.cut(name, SERVER, policy)
            writer.wait(WRITER_LIMIT)
    finally:
        writer.stop()
        server.stop()
    acknowledged, posted, seconds = _numbers(
        r"^acknowledged (\d+) posted (\d+) seconds ([\d.]+)$", writer.output, "log_writer"
    )
    folder = LabFolder(name)
    install(folder, SERVER)
    return Round(flush, posted, acknowledged, seconds, *check(folder, session, acknowledged))
