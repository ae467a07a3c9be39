# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs RDMA programs between two VMs of a lab (rping, perftest) and reads their output."""
import re
import sys
import threading
import time

from launcher import agent, lab, options
from launcher.errors import TIMEOUT, LabError

# Seconds from rdma_cm's record of a listener to the device's.  On a busy machine it may take
# longer, and a client that connects in between is refused.
SETTLE = 0.15
CONNECT_TRIES = 8
REFUSED = r"REJECTED.*-111|Connection refused"  # as an event, or at once (siw)
WAITING = r"Waiting for client"
CLOCK_TRIES = 4  # see perftest_fields()
SIW_TRIES = 3
SIW_LIMIT = 30  # seconds; a run that has begun takes a few

# Runs that were repeated because of siw (see _pair), for reports.
siw_stalls = []

# perftest program: (what it measures, unit, which values are better)
TOOLS = {
    "ib_write_bw": ("RDMA Write", "MB/s", "more"),
    "ib_read_bw": ("RDMA Read", "MB/s", "more"),
    "ib_send_bw": ("Send", "MB/s", "more"),
    "ib_write_lat": ("RDMA Write latency", "us", "less"),
    "ib_read_lat": ("RDMA Read latency", "us", "less"),
    "ib_send_lat": ("Send latency", "us", "less"),
}
MIB = 1048576 / 1e6  # perftest's MiB/s to MB/s


class Background:
    """A command in a VM, run by a thread of this process; `stop` ends it."""

    def __init__(self, folder, vm, argv):
        self.vm, self.argv = vm, argv
        self.patience = options.patience(folder.data)
        self.output, self.status, self.failure = "", None, None
        self.session = agent.Session(folder, vm, ["stdbuf", "-oL", *argv], None, self._take)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _take(self, _stream, data):
        self.output += data.decode(errors="replace")

    def _run(self):
        try:
            self.status = self.session.run()
        except LabError as failure:
            self.failure = failure

    def running(self):
        return self.thread.is_alive()

    def expect(self, pattern, timeout=30):
        """Waits until the output matches the pattern."""
        deadline = time.monotonic() + timeout * self.patience
        while not re.search(pattern, self.output, re.M):
            if not self.running():
                raise LabError(
                    "%s in VM %s ended early:\n%s" % (self.argv[0], self.vm, self.output.strip())
                )
            if time.monotonic() > deadline:
                raise LabError(
                    "%s in VM %s does not get ready:\n%s"
                    % (self.argv[0], self.vm, self.output.strip()),
                    None,
                    TIMEOUT,
                )
            time.sleep(0.02)

    def wait(self, timeout):
        """Waits for its end and returns its exit status; after that time ends it and fails."""
        self.thread.join(timeout * self.patience)
        if self.running():
            self.stop()
            raise LabError(
                "%s in VM %s does not end:\n%s" % (self.argv[0], self.vm, self.output.strip()),
                None,
                TIMEOUT,
            )
        if self.failure:
            raise self.failure
        return self.status

    def stop(self):
        if self.running():
            self.session.signals.append(15)
            self.thread.join(3)
            if self.running():
                self.session.signals.append(9)
                self.thread.join(3)


def device(folder, vm):
    """The name of the VM's current RDMA device."""
    status, name, _ = agent.capture(folder, vm, ["cat", "/run/staghorn/rdma"])
    if status or not name.strip():
        raise LabError("VM %s has no RDMA device" % vm)
    return name.strip()


def use(folder, kind, vms=None):
    """Makes siw or staghorn the RDMA device of the VMs, by loading and unloading modules."""
    for vm in vms or list(folder.data["vms"]):
        words = ["/usr/lib/staghorn/rdma", kind]
        status, out, error = agent.capture(folder, vm, words, timeout=120)
        if status:
            raise LabError("VM %s cannot change to %s: %s" % (vm, kind, (error or out).strip()))


class Stalled(LabError):
    """The client printed nothing until its time was over."""


class Refused(LabError):
    """The client was too early for its server, which still waits."""


# perftest's server prints this when its queue pair was flushed before the first message.
DROPPED = "Failed to sync between client and server"
DROPPED_TRIES = 3
# Benchmarks set it.  Tests do not, because they have to notice whatever ends a connection.
patient = False


def _pair(folder, server_vm, server_argv, client_vm, client_argv, ready, timeout):
    """Runs both; returns (server output, client output), or raises an error with both.

    siw passes its socket from connection setup to the queue pair only after its MPA Reply is on the
    wire.  A first FPDU that arrives in between stays unread until more data arrives, and a program
    that waits for an answer sends none.  Such a run is repeated and counted.

    perftest's server posts its first receive after it has accepted.  A faster client finds no
    receive.  InfiniBand would retry; iWARP ends the connection (RFC 5041, section 7: no buffer
    available).  Such a run is repeated with siw, and where `patient` is set, and reported."""
    words = (folder, server_vm, server_argv, client_vm, client_argv, ready)
    siw = device(folder, server_vm).startswith("siw")
    tries = SIW_TRIES if siw else DROPPED_TRIES if patient else 1
    for _ in range(tries - 1):
        try:
            return _pair_once(*words, min(timeout, SIW_LIMIT) if siw else timeout)
        except LabError as failure:
            dropped = DROPPED in str(failure)
            if not dropped and not (siw and isinstance(failure, Stalled)):
                raise
            _note(siw, dropped, server_argv[0], client_vm)
    return _pair_once(*words, timeout)


def _note(siw, dropped, program, client_vm):
    """Prints why a run is repeated."""
    if siw:
        siw_stalls.append("%s from %s%s" % (program, client_vm, ", closed" if dropped else ""))
    else:
        text = "note: %s had no receive yet when its client began; once more" % program
        print(text, file=sys.stderr, flush=True)


def _pair_once(*words):
    """Runs both, again if the client was refused because its server did not listen yet.

    perftest's server listens twice, the second time after both have exchanged data over the first
    connection.  After a refusal both start again, because a server that has lost its first
    connection would accept the next one and exit."""
    for _ in range(CONNECT_TRIES - 1):
        try:
            return _run_both(*words)
        except Refused:
            pass
    return _run_both(*words)


def _run_both(folder, server_vm, server_argv, client_vm, client_argv, ready, timeout):
    server = Background(folder, server_vm, server_argv)
    try:
        if ready:
            server.expect(ready)
        wait_listening(folder, server_vm, server)
        time.sleep(SETTLE)
        client = Background(folder, client_vm, client_argv)
        try:
            status = client.wait(timeout)
            refused = status and server.running() and re.search(REFUSED, client.output)
            server_status = None if refused else server.wait(15)
        except LabError as failure:
            silent = failure.status == TIMEOUT and not client.output.strip()
            raise (Stalled if silent else LabError)(
                "%s\n---- server %s\n%s\n---- client %s\n%s"
                % (failure, server_vm, server.output, client_vm, client.output),
                None,
                failure.status,
            )
        finally:
            client.stop()
    finally:
        server.stop()
    if status or server_status:
        raise (Refused if refused else LabError)(
            "%s: server %s left with %s, client %s with %s\n---- server\n%s\n---- client\n%s"
            % (
                " ".join(client_argv),
                server_vm,
                server_status,
                client_vm,
                status,
                server.output,
                client.output,
            )
        )
    return server.output, client.output


def wait_listening(folder, vm, server):
    """Waits for the listener itself: servers print before they listen, or print nothing."""
    script = (
        "n=0; until rdma resource show cm_id 2>/dev/null | grep -q LISTEN; do "
        "n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done"
    )
    status, _, _ = agent.capture(folder, vm, ["sh", "-c", script], timeout=60 * server.patience)
    if status:
        raise LabError("%s in VM %s does not listen:\n%s" % (server.argv[0], vm, server.output))


def rping(folder, server, client, count=10, size=1000, verify=True, timeout=60):
    """rping between two VMs, data checked by both; returns the client's output.

    The exit status of rping's server depends on how the connection closes.  So the client's lines
    are checked, one with each ping's data."""
    address = folder.data["vms"][server]["addr"]
    flags = ["-v", "-C", str(count), "-S", str(size)] + (["-V"] if verify else [])
    _, output = _pair(
        folder,
        server,
        ["rping", "-s", "-a", address, *flags],
        client,
        ["rping", "-c", "-a", address, *flags],
        None,
        timeout,
    )
    pings = len(re.findall(r"^ping data: ", output, re.M))
    if pings != count:
        raise LabError("rping: %d of %d pings came back:\n%s" % (pings, count, output))
    return output


def perftest_output(
    folder, tool, server, client, size, iterations, extra=(), timeout=120, address=None
):
    """One run, by default over the server's first address; returns what both sides printed."""
    address = address or folder.data["vms"][server]["addr"]
    common = ["-R", "-F", "-s", str(size), "-n", str(iterations), *extra]
    return _pair(
        folder,
        server,
        [tool, "-d", device(folder, server), *common],
        client,
        [tool, "-d", device(folder, client), *common, address],
        WAITING,
        timeout,
    )


def perftest_fields(folder, tool, server, client, size, iterations, extra=(), timeout=120):
    """One run; returns the columns of the one line in perftest's table.

    perftest first calibrates its clock.  This may fail in a VM whose CPUs the host schedules
    unevenly; with -F it goes on and prints 0.  Such a run has no result and is repeated."""
    words = (folder, tool, server, client, size, iterations, extra, timeout)
    for _ in range(CLOCK_TRIES):
        output = perftest_output(*words)[1]
        fields = table_line(tool, output, size)
        # Bandwidth is rounded to 0 for small messages, the rate for large ones.
        found = fields[3:5] if tool.endswith("_bw") else fields[4:5]
        if any(0 < float(value) < float("inf") for value in found):
            return fields
    raise LabError("%s had no clock, %d times:\n%s" % (tool, CLOCK_TRIES, output))


def perftest(folder, tool, server, client, size, iterations, extra=(), timeout=120):
    """One run; returns the measured value: MB/s (10^6), or the typical latency in us."""
    words = (folder, tool, server, client, size, iterations, extra, timeout)
    return value_of(tool, perftest_fields(*words))


def table_line(tool, output, size):
    """The columns of the line of that size, as words."""
    for line in output.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0] == str(size) and fields[1].isdigit():
            return fields
    raise LabError("%s printed no result:\n%s" % (tool, output))


def value_of(tool, fields):
    """MB/s (10^6), or the typical latency in us."""
    return float(fields[3]) * MIB if tool.endswith("_bw") else float(fields[4])


def iterations_for(tool, value, size, seconds):
    """How many iterations take about that time."""
    if tool.endswith("_bw"):
        return int(min(max(value * 1e6 * seconds / size, 64), 100000))
    rounds = 1e6 / (value * (1 if "read" in tool else 2))
    return int(min(max(rounds * seconds, 200), 100000))


def measure(folder, tool, server, client, size, seconds=1.5, repeats=1, extra=(), limit=120):
    """Values of `repeats` runs of about that many seconds; a short run first finds the length."""
    first = 64 if tool.endswith("_bw") else 200
    value = perftest(folder, tool, server, client, size, first, extra, limit)
    count = iterations_for(tool, value, size, seconds)
    words = (folder, tool, server, client, size, count, extra, limit)
    return [perftest(*words) for _ in range(repeats)]


def row(tool):
    """(text, unit, whether more is better) of a perftest program."""
    text, unit, better = TOOLS[tool]
    return text, unit, better == "more"


def revive(folder, kind):
    """Restarts VMs whose kernel siw has crashed or hung, with that RDMA device."""
    for vm in list(folder.data["vms"]):
        try:
            alive = agent.capture(folder, vm, ["true"], timeout=30)[0] == 0
        except (LabError, OSError):
            alive = False
        if not alive:
            print("  VM %s does not answer any more; it starts again" % vm, flush=True)
            lab.restart(folder.name, vm)
            folder.load()
            use(folder, kind, [vm])


def measure_kind(kind, *words):
    """measure(); siw, which hangs now and then, is tried again.  None: it did not end."""
    for _ in range(1 if kind != "siw" else 2):
        try:
            return measure(*words, **({"limit": SIW_LIMIT} if kind == "siw" else {}))
        except LabError:
            if kind != "siw":
                raise
            revive(words[0], kind)
    return None
