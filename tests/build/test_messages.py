#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of messages.py: events in the form of the trace printer, a capture with their frames."""
import json
import sys

import cases

sys.dont_write_bytecode = True
from judges import ADR, BAD, Judge, make_explored, occurrence, run  # noqa: E402
from test_packets import A, B, capture, frame  # noqa: E402
from launcher import check_report, explored, messages, packets, plans  # noqa: E402

CASES = []
PORTS = {"alpha": 40000, "beta": 7000}
HOSTS = {"alpha": A, "beta": B}
PRINTER = """#!%s
import json, sys
kinds = sys.argv[3].split(",") if sys.argv[2] == "--kinds" else None
for line in open(sys.argv[-1]):
    if kinds is None or json.loads(line)["kind"] in kinds:
        print(line, end="")
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def connected(number, own, peer, qpn, ports=None):
    """A `connected` event of a machine."""
    ports = ports or PORTS
    octets = b"".join(
        bytes(10) + b"\xff\xff" + bytes(map(int, HOSTS[x].split("."))) for x in (own, peer)
    )
    octets += b"".join(ports[x].to_bytes(2, "big") for x in (own, peer))
    return {"number": number, "kind": "connected", "unit": 0, "qpn": qpn, "data": octets.hex()}


def event(number, kind, qpn=7, **more):
    return {"number": number, "kind": kind, "unit": 0, "qpn": qpn, **more}


def traces(folder, alpha, beta):
    """The traces of two machines, in place of real ones, and a printer for them."""
    printer = folder / "printer"
    printer.write_text(PRINTER % sys.executable)
    printer.chmod(0o755)
    plans.paths.trace_printer = lambda: printer
    found = []
    for name, rows in (("alpha", alpha), ("beta", beta)):
        found.append(folder / (name + ".trace"))
        found[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return found


def work(number, wr_id, ordinal, opcode, qpn=9):
    return event(number, "work", qpn, value=wr_id, ordinal=ordinal, arg=opcode)


ALPHA = [
    connected(1, "alpha", "beta", 9),
    work(2, 0x65, 1, 0x02),
    work(3, 0x66, 2, 0x0E),
    event(4, "answered", 9, value=3, ordinal=1, arg=3),
    # The same queue pairs and ports, connected anew: other messages.
    connected(10, "alpha", "beta", 9),
    work(11, 0x99, 1, 0x09),
]
BETA = [
    connected(1, "beta", "alpha", 7),
    event(5, "place", ordinal=1, addr=0x1000, len=60),
    event(6, "atomic-write", ordinal=2, addr=0x1040, len=8),
    work(7, 0x42, 1, 0x03, qpn=7),
    event(8, "place", ordinal=3, addr=0x1080, len=60),
    event(9, "place", ordinal=8, addr=0x1080, len=60),
    event(10, "place", qpn=8, ordinal=1, addr=0x1080, len=60),
    connected(20, "beta", "alpha", 7),
    event(21, "place", ordinal=1, addr=0x1080, len=60),
    {"number": 22, "kind": "store", "addr": 0x2000, "len": 8, "at": 0x401000, "root": 1},
]


@case
def requests(folder):
    """A placement has its work request at the sender, or the request that it answers"""
    paths = traces(folder, ALPHA, BETA)
    events = plans.events(paths[1], range(1, 30))
    found = messages.find(paths, paths[1], events)
    assert sorted(found) == [5, 6, 8, 21], found
    assert found[5] == {
        **{"machine": "alpha", "event": 2, "wr-id": "0x65", "qpn": 9, "ordinal": 1},
        **{"opcode": "RDMA Write", "response": False},
    }, found[5]
    assert messages.text(found[6]) == "the Atomic Write of alpha, wr_id 0x66, QP 9, message 2"
    wanted = "the response to the RDMA Read of beta, wr_id 0x42, QP 7, message 1"
    assert messages.text(found[8]) == wanted, messages.text(found[8])
    assert found[21]["wr-id"] == "0x99" and "Immediate" in found[21]["opcode"], found[21]
    # Without the sender's trace nothing is known.
    assert not messages.find(paths[1:], paths[1], {5: events[5]})
    assert not messages.find(paths, paths[1], {22: events[22]}) and not messages.find(
        [], None, events
    )


@case
def packets_of(folder):
    """A lost placement has the packet that was received last on its connection"""
    ends = (A, PORTS["alpha"]), (B, PORTS["beta"])
    octets = [frame(*ends, b"%d" % n) for n in range(3)] + [frame(*ends[::-1], b"back")]
    rows = [
        {"number": n, "kind": "frame", "arg": arg, "len": len(x), "value": packets.crc32c(x)}
        for n, x, arg in (
            (2, octets[0], 0),
            (3, octets[1], 0),
            (4, octets[3], 1),
            (30, octets[2], 0),
        )
    ]
    beta = sorted(BETA + rows, key=lambda one: one["number"])
    paths = traces(folder, ALPHA, beta)
    found = messages.frames(paths[1], [5, 22])
    assert list(found) == [5] and [x["event"] for x in found[5]["received"]] == [2, 3], found
    assert found[5]["own"] == {"address": B, "port": 7000}, found
    capture(folder / "lab.pcap", [octets[3], *octets])
    lost = [{"question": 1, "answer": 0, "what": "line", "lost": [5, 22]}]
    make_explored(folder / "e", [occurrence(1, ADR, deviations=lost)])
    source = {"traces": ["../alpha.trace", "../beta.trace"], "options": [], "symbols": []}
    (folder / "e" / "result.json").write_text(
        json.dumps({"source": {**source, "capture": "../lab.pcap"}})
    )
    (bug,) = check(folder / "e")
    first, second = bug["example"]["lost"]
    assert first["packets"] == [3] and first["message"]["wr-id"] == "0x65", first
    assert "message" not in second and "packets" not in second, second
    assert bug["cause"] == ["the RDMA Write of alpha, in QP 7", "the store at 0x401000"], bug[
        "cause"
    ]
    before, messages.PACKETS_MAX = messages.PACKETS_MAX, 0
    try:
        (bug,) = check(folder / "e")
    finally:
        messages.PACKETS_MAX = before
    row = bug["example"]["lost"][0]
    assert "packets" not in row and check_report.message_text(row).endswith("packet not looked for")
    (folder / "lab.pcap").unlink()
    assert explored.Explored(folder / "e").capture() is None
    (bug,) = check(folder / "e")
    assert "packets" not in bug["example"]["lost"][0]


def check(folder):
    """The bugs of a check whose report has the message."""
    before = check_report.write
    check_report.write = lambda *_: None
    try:
        found = run(folder, Judge({1: BAD[3]}))
    finally:
        check_report.write = before
    text, page = "\n".join(check_report.lines(found)), check_report.section(found)
    for each in (text, page):
        assert "the RDMA Write of alpha, wr_id 0x65, QP 9, message 1" in each, each
        assert ("packet 3" in each) == ("'packets':" in str(found["bugs"])), each
    return found["bugs"]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
