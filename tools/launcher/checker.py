# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM that judges crash images, and is put back for each in milliseconds.

A checker is a shell script.  `prepare` keeps the state of a running VM in which a shell already
waits for its order.  `check` puts the VM back with the content of its persistent memory that an
image describes, lets the shell run the script, and returns a verdict.  QEMU does the rest
(hw/device/persist/rewind.c); docs/decisions/0021-rewind.md has the alternatives and the numbers.

The shell runs under the guest's agent, whose connection outlives the rewinds: host and guest agree
on what was said because the shell reads its order to the end before it does anything, and because
what the VM said before a rewind is dropped behind it.  After a verdict without the script's status
the connection is made anew while the VM stands still; the guest that is put back never notices.

The VM should have no adapter (`up --driver none`): a rewind resets adapters.
"""
import json
import re
import secrets
import selectors
import time
from collections import namedtuple

from . import agent, domain
from .errors import TIMEOUT, LabError
from .qmp import Monitor
from .state import connect

# Reads a script, or nothing for the checker's own, and runs it without arguments.  A script that is
# read may run the checker's own by RUN_OWN.
WAITER = """
echo ready; own=$1; shift; script=
while IFS= read -r line; do
    case $line in
    '#.') eval "${script:-$own}" < /dev/null; exit ;;
    '#:') eval "${script:-$own}"; exit ;;
    esac
    script="$script$line
"
done
"""
RUN_OWN = 'eval "$own" < /dev/null'
START, START_WITH_INPUT = b"#.\n", b"#:\n"
OUTPUT_MAX = 1 << 20  # octets of a verdict's output; of the console's, too
ENDED = ("shutdown", "guest-panicked", "internal-error", "prelaunch", "watchdog")
TRIES = 50  # for a machine that is in the middle of its reset
IDLE_S = 0.5
MACHINE = "recovery"  # its name in a recording
# What the guest's kernel says on its console, the gravest first.
SIGNS = (
    ("panic", re.compile(rb"Kernel panic - not syncing")),
    ("machine-check", re.compile(rb"\[Hardware Error\]|Memory failure: 0x|mce: Uncorrected")),
    (
        "oops",
        re.compile(
            rb"Oops: |kernel BUG at |\bBUG: |general protection fault|soft lockup|"
            rb"WARNING: CPU: |WARNING: .*, CPU#|detected stalls?|blocked for more than"
        ),
    ),
)

# kind: "exit" (status is the script's), "hang" (no end within the time), "panic", "oops",
# "machine-check", "reboot", "off"; output: what the script wrote (both streams), at most
# OUTPUT_MAX octets of `written`; console: the console's output; milliseconds: (put back, run)
Verdict = namedtuple("Verdict", "kind status output written console milliseconds")


def select(sockets, limit):
    """{socket: events} of those that are ready; waits for them, but not long."""
    with selectors.DefaultSelector() as selector:
        for sock, events in sockets:
            selector.register(sock, events)
        left = max(0.0, min(IDLE_S, limit - time.monotonic()))
        return {key.fileobj: events for key, events in selector.select(left)}


class CheckerVM:
    """A running VM of a lab, with a persistence domain; use with `with`.

    script: what `check` runs if it gets no other."""

    def __init__(self, folder, name, script="true"):
        domain.require(folder.running(name), name)
        self.folder, self.name, self.script = folder, name, script
        self.monitor = self.console = self.session = None
        self.in_step = True  # the agent's connection
        self.with_data = False  # the order under way
        self._clear()

    def __enter__(self):
        try:
            self.monitor = Monitor(self.folder, self.name)
            self.monitor.__enter__()
            self.console = connect(self.folder.path / self.name / "console")
            self.console.setblocking(False)
        except BaseException:
            self._disconnect()
            raise
        return self

    def __exit__(self, *_):
        self._disconnect()

    def _disconnect(self):
        for each in (self.session, self.console, self.monitor):
            if each:
                each.close()
        self.session = self.console = self.monitor = None

    def _set(self, key, value):
        """Sets a property of the domain; tries again while the machine is being reset."""
        for left in range(TRIES, -1, -1):
            try:
                return self.monitor.run("qom-set", path=domain.OBJECT, property=key, value=value)
            except LabError as error:
                if not left or "try again" not in str(error):
                    raise
                time.sleep(0.01)

    # -- the kept state

    def prepare(self, warm=None, limit=60.0, reads=False):
        """Keeps the state of the VM with the present content of its persistent memory.

        warm: a script that runs once before, whose changes of persistent memory are undone (others
        are not).  So the guest has its programs in memory, and QEMU has translated them.  None: the
        checker's; "": none.  reads: what checks read of persistent memory is noted, for reads()."""
        self.warm(self.script if warm is None else warm, limit)
        self.keep(limit, reads)

    def warm(self, script, limit):
        """The first half of prepare()."""
        self.monitor.run("set-action", shutdown="pause")
        self._set("rewind-keep", True)
        if script:
            agent.capture(self.folder, self.name, ["sh", "-c", script], timeout=limit)

    def keep(self, limit=60.0, reads=False):
        """The second half."""
        start = time.monotonic()
        self._clear()
        argv = ["sh", "-c", WAITER, "sh", self.script]
        self.session = agent.Session(self.folder, self.name, argv, on_output=self._take_output)
        self.session.begin(start, start + limit, limit)
        while b"ready\n" not in self.output:
            if self._wait(start + limit):
                raise LabError("VM %s does not get ready to check" % self.name, None, TIMEOUT)
        self._set("rewind-keep", True)
        if reads:
            self._set("rewind-reads", True)

    def end(self):
        """Puts the VM back and forgets the kept state: the media are the files again."""
        self._set("rewind-keep", False)
        self.monitor.run("set-action", shutdown="poweroff")

    def costs(self):
        """What the last rewind cost, by part: a dict."""
        return json.loads(self.monitor.run("qom-get", path=domain.OBJECT, property="rewind-state"))

    def reads(self):
        """What the VM has read of its persistent memory since the last check began: ranges of
        lines, [address, length], in ascending order."""
        return json.loads(self.monitor.run("qom-get", path=domain.OBJECT, property="rewind-lines"))

    # -- checks

    def check(self, image="", script="", data=b"", timeout=10.0, trace=None):
        """Returns the verdict about an image: the path of a file, or "" for the kept content.

        data: what the script reads from its standard input; trace: the path of a recording of what
        the VM does, which is complete on return."""
        start = time.monotonic()
        self.put_back(image)
        if trace:
            self._record(trace)
        self.begin(script, data)
        begun = time.monotonic()
        kind = self._run(begun + timeout)
        done = time.monotonic()
        if trace:
            self._end_record(trace)
        times = tuple(round(each * 1e3, 3) for each in (begun - start, done - begun))
        return self.verdict(kind, times)

    def put_back(self, image=""):
        """Puts the VM back, with an image."""
        if not self.in_step:
            self._reconnect()
        self._set("rewind", str(image))
        self._drain()
        self._clear()

    def begin(self, script="", data=b""):
        """Gives the VM its order."""
        order = script.rstrip("\n") + "\n" if script else ""
        if {"#.", "#:"} & set(order.split("\n")):
            raise LabError("a script for a checker has no lines #. and #:")
        order = order.encode() + (START_WITH_INPUT if data else START)
        self.with_data = bool(data)
        for at in range(0, len(order + data), agent.CHUNK):
            self.session.send(b"i", (order + data)[at : at + agent.CHUNK])
        if data:
            self.session.send(b"f")

    def verdict(self, kind, times):
        """The Verdict of a run that ended so.  kind None: it goes on, and nobody waits for it."""
        self.in_step = kind == "exit" and not self.with_data
        judged, status = self._judged(kind), self.session.status
        return Verdict(judged, status, self.output, self.written, self.said, times)

    def _record(self, path):
        self.monitor.run(
            "staghorn-record-start",
            **{"file": str(path), "run-id": secrets.token_hex(16), "machine": MACHINE},
        )

    def _end_record(self, path):
        found = self.monitor.run("staghorn-record-stop")
        if found["state"] != "complete":
            raise LabError("the recording %s failed: %s" % (path, found.get("error")))

    def _clear(self):
        self.output, self.written, self.said = b"", 0, b""
        if self.monitor:
            self.monitor.events.clear()
        if self.session:
            self.session.status, self.session.rx, self.session.out = None, b"", b""

    def _take_output(self, _, part):
        self.output += part[: max(0, OUTPUT_MAX - len(self.output))]
        self.written += len(part)

    def _drain(self):
        """Drops what the VM said before it was put back."""
        for sock in (self.session.port.sock, self.console):
            try:
                while sock.recv(1 << 17):
                    pass
            except BlockingIOError:
                pass

    def _reconnect(self):
        """A new connection to the agent, of which the guest that is put back knows nothing."""
        self.monitor.run("stop")
        self.session.port.open()
        label = self.session.port.path.name
        for _ in range(TRIES):
            found = self.monitor.run("query-chardev")
            if any(x["label"] == label and "disconnected" not in x["filename"] for x in found):
                return
            time.sleep(0.01)
        raise LabError("QEMU of VM %s does not accept a connection" % self.name, None, TIMEOUT)

    def listened(self):
        """[(socket, events)]: of the agent, the console and QEMU."""
        out = selectors.EVENT_WRITE if self.session.out else 0
        found = [(self.session.port.sock, selectors.EVENT_READ | out)]
        return found + [(each, selectors.EVENT_READ) for each in (self.console, self.monitor.sock)]

    def _wait(self, limit):
        """Waits for something of the agent, the console or QEMU; returns how the run ended."""
        return self.look(select(self.listened(), limit), limit)

    def look(self, ready, limit):
        """Takes what is there; returns how the run ended, or None.  ready: what select() found."""
        sock = self.session.port.sock
        if self.console in ready:
            self._listen()
        events = ready.get(sock, 0)
        if events & selectors.EVENT_WRITE:
            self.session.out = self.session.out[self.session.write(sock, self.session.out) :]
        if events & selectors.EVENT_READ:
            self.session.read(sock)
            self.session.take_frames()
            if self.session.status is not None:
                return "exit"
        if self.monitor.sock in ready or not ready:
            ended = self._ended()
            if ended:
                return ended
        if SIGNS[0][1].search(self.said):
            return "panic"
        return "hang" if time.monotonic() >= limit else None

    def _run(self, limit):
        kind = None
        while not kind:
            kind = self._wait(limit)
        self._listen()
        return kind

    def _listen(self):
        try:
            part = self.console.recv(1 << 16)
        except BlockingIOError:
            return
        if not part:
            raise agent.Gone("VM %s went off" % self.name)
        self.said = (self.said + part)[-OUTPUT_MAX:]

    def _ended(self):
        """Whether the machine has stopped by itself, and how."""
        status = self.monitor.run("query-status")["status"]
        if status not in ENDED:
            return None
        reasons = [e["data"]["reason"] for e in self.monitor.events if e["event"] == "SHUTDOWN"]
        return "off" if reasons[-1:] == ["guest-shutdown"] else "reboot"

    def _judged(self, kind):
        for sign, form in SIGNS:
            if form.search(self.said):
                return sign
        return kind
