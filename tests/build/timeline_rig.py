# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab of VMs that are not there: real keepers, and a QEMU that only switches trace events.

Each VM has the folder, the keeper process and the monitor socket of a real one.  What the device
would write when an event is switched on is given by the test.
"""
import contextlib
import html.parser
import io
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import cli, keeper, proc  # noqa: E402

AT = "4711@1732612345.%06d:%s"
NEXT = itertools.count(1)
VM = {
    **{"driver": "staghorn", "adapters": [], "trace": [], "starts": 1, "ready_s": 1.0},
    **{"process": None, "rdma": "staghorn0"},
}


def raises(error, function, *words):
    """What the error says."""
    try:
        found = function(*words)
    except error as said:
        return str(said)
    raise AssertionError("no error, but %r" % (found,))


def line(event, rest, micros=None):
    """A line as QEMU writes it; without a time they follow each other."""
    return AT % (next(NEXT) if micros is None else micros, event + " " + rest)


def conversation():
    """Lines of two VMs: alpha sends twice, and the second completes both; beta receives."""
    alpha = [
        line("staghorn_reg_write", "r0: register 0x94 becomes 0x1, 4 octets", 100),
        line("staghorn_detail", "r0: admin: CREATE_QP: status 0, id 0x1", 110),
        line("staghorn_state", "r0: qp 1: IDLE -> RTS: connected", 120),
        line("staghorn_doorbell", "r0: doorbell page 0, offset 0x0, 0x200000001, 8 octets", 130),
        line("staghorn_flow", "r0: qp 1: fetched send entry 0, WRITE", 140),
        line(
            "staghorn_flow",
            "r0: qp 1: sent RDMA Write, STag 0x00000100, TO 0x0, 8 octets, last",
            150,
        ),
        line("staghorn_flow", "r0: qp 1: fetched send entry 1, SEND", 150),
        line("staghorn_flow", "r0: qp 1: fetched send entry 1, SEND", 151),
        line("staghorn_flow", "r0: qp 1: sent Send, MSN 1, offset 0, 8 octets, last", 155),
        line("staghorn_flow", "r0: qp 1: completed send entry 1, SUCCESS, cq 1", 156),
        line("staghorn_interrupt", "r0: interrupt, vector 1", 157),
        line("staghorn_peer", "r0: peer error: conn 1: <script>alert(1)</script>", 300),
        line("staghorn_flow", "r0: qp 1: fetched send entry 2, SEND", 5000),
    ]
    beta = [
        line("staghorn_flow", "r0: qp 3: received Send, MSN 1, offset 0, 8 octets, last", 170),
        line("staghorn_flow", "r0: qp 3: fetched receive entry 0", 171),
        line("staghorn_flow", "r0: qp 3: completed receive entry 0, SUCCESS, 8 octets, cq 1", 175),
    ]
    return {"alpha": alpha, "beta": beta}


class Page(html.parser.HTMLParser):
    """Checks that elements are nested, and collects what would need a network."""

    VOID = {"meta", "input", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.bad, self.rows, self.circles, self.said = [], [], 0, 0, []

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        self.circles += tag == "circle"
        self.bad += [key for key, _ in attrs if key in ("src", "href", "action", "xmlns")]
        self.bad += [key for key, _ in attrs if key.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.said.append(data)


def read_page(text):
    found = Page()
    found.feed(text)
    found.close()
    assert not found.open, found.open
    assert not found.bad, found.bad
    for word in ("http", "//", "url(", "@import", "fetch(", "XMLHttp", "import "):
        assert word not in text, word
    return found


class Machine:
    """One VM: its keeper, and a monitor that answers in a thread."""

    def __init__(self, place, lines):
        self.lines, self.lacks = lines, ()  # lines: written when the last event is on
        self.switched = []  # (event, on)
        place.mkdir(parents=True)
        words = [sys.executable, "-IBS", keeper.__file__, "0", "device.log", "100000", "stamped"]
        self.keeper = subprocess.Popen(words, cwd=place, stdin=subprocess.PIPE, bufsize=0)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(place / "qmp"))
        self.listener.listen(4)
        threading.Thread(target=self._serve, daemon=True).start()
        until = time.monotonic() + 20
        while not (place / keeper.TAP).exists():
            assert time.monotonic() < until, "the keeper does not start"
            time.sleep(0.01)

    def write(self, lines):
        self.keeper.stdin.write("".join(line + "\n" for line in lines).encode())

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client, client.makefile("rw") as file:
                    self._talk(file)

    def _talk(self, file):
        file.write('{"QMP": {}}\n')
        file.flush()
        on = False
        for line in file:
            request = json.loads(line)
            answer = {"return": {}}
            if request["execute"] == "trace-event-set-state":
                words = request["arguments"]
                on = words["enable"]
                self.switched.append((words["name"], on))
                if words["name"] in self.lacks:
                    text = 'unknown event "%s"' % words["name"]
                    answer = {"error": {"class": "GenericError", "desc": text}}
            file.write(json.dumps(answer) + "\n")
            file.flush()
        if on:  # the monitor was left with its events on
            self.write(self.lines)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # accept() returns
        self.listener.close()
        self.keeper.stdin.close()
        self.keeper.wait(20)


class Lab:
    """Machines with lines for each: {"alpha": [...], ...}; with `with`."""

    def __init__(self, folder, lines, off=(), **members):
        self.folder, self.machines = folder, {}
        self.place = folder / "labs" / "lab"
        me = proc.identify(os.getpid())
        vms = {}
        for name, said in lines.items():
            vms[name] = {**VM, **members}
            if name not in off:
                self.machines[name] = Machine(self.place / name, said)
                vms[name]["process"] = me
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "lab.json").write_text(json.dumps({"vms": vms}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for machine in self.machines.values():
            machine.close()

    def trace(self, *words):
        """./staghorn trace, in this process; (status, output, errors)."""
        os.environ["STAGHORN_STATE"] = str(self.folder)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = cli.main(["--lab", "lab", "trace", *words])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()
