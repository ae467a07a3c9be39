#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the time line of a trace: the adapter's events as the sources write them, the page, and
the file for Perfetto.  test_timeline_verb.py has the verb."""
import json
import re
import sys
from pathlib import Path

import cases
from timeline_rig import conversation, line, raises, read_page

TOP = Path(__file__).resolve().parents[2]
from launcher import debugging, timeline, timeline_html, timeline_lines  # noqa: E402
from launcher import timeline_links, timeline_perfetto, timeline_tap  # noqa: E402
from launcher.timeline_lines import Damaged, Unknown, parse  # noqa: E402

CASES = []
CORE = TOP / "hw" / "core"
# Which segment of which connection it is, as the core writes it.
LINK = "segment 1, 10.77.0.1:40000 > 10.77.0.2:7471"
LINK_6 = "segment 18446744073709551615, [fd00:0:0:0:0:0:0:a]:1 > [fd00:0:0:0:0:0:0:b]:65535"
# Formats of the core's lines, with values for them, and the kind of event that they are.
LINES = {
    "qp %u: fetched send entry %u, %s": ((1, 7, "SEND"), "fetch"),
    "qp %u: fetched receive entry %u": ((1, 7), "fetch"),
    "qp %u: fetched receive entry %u of srq %u": ((1, 7, 2), "fetch"),
    "qp %u: %s %s, STag 0x%08x, TO 0x%x, %u octets%s, %s": (
        (1, "sent", "RDMA Write", 0x100, 4096, 64, ", last", LINK),
        "sent",
    ),
    "qp %u: %s %s, MSN %u, offset %u, %u octets%s, %s": (
        (1, "received", "Send", 3, 0, 64, "", LINK_6),
        None,
    ),
    "qp %u: completed receive entry %u, %s, %u octets, cq %u": (
        (1, 7, "SUCCESS", 64, 2),
        "completion",
    ),
    "qp %u: completed send entry %u, %s, cq %u": ((1, 7, "FLUSH_ERR", 2), "completion"),
}


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def flow(text, micros=None, vm="alpha"):
    return parse(vm, line("staghorn_flow", "r0: " + text, micros))


def formats(path, call):
    """printf formats of a function's calls in a source, with %u for each kind of number."""
    text = re.sub(r"\s+", " ", path.read_text())
    found = []
    for at in re.finditer(re.escape(call) + r"\(([^;]*);", text):
        literals = re.match(r'[^"]*((?:"[^"]*"|PRI[ux]64| )+)', at[1])
        if literals:
            form = re.sub(r'"\s*PRIx64\s*"', "x", literals[1])
            form = re.sub(r'"\s*PRIu64\s*"', "u", form)
            found.append(re.sub(r'"\s*"', "", form).strip().strip('"'))
    return found


def device_events():
    """{event: format} of hw/device/trace-events, in Python's notation."""
    text = (TOP / "hw" / "device" / "trace-events").read_text()
    found = {}
    for name, form in re.findall(r'(?m)^(\w+)\([^)]*\) "(.*)"$', text):
        found[name] = re.sub(r'"PRI([ux])64"', r"\1", form)
    return found


@case
def events__as_in_the_device(_folder):
    """the launcher knows each event of the device, and no other"""
    assert device_events().keys() == timeline_lines.EVENTS.keys()
    assert set(debugging.ALWAYS) | {debugging.TWICE} < set(timeline_lines.EVENTS)


@case
def formats__of_the_device(_folder):
    """each event with arguments has the form that is read"""
    forms = device_events()
    found = [
        ("staghorn_reg_read", ("r0", 0xC, 5, 4), "STATUS reads as 0x5"),
        ("staghorn_reg_write", ("r0", 0x1008, 1 << 31, 8), "EQ_DB[2] becomes 0x80000000, 64 bits"),
        (
            "staghorn_doorbell",
            ("r0", 3, 0, 7 << 32 | 5, 8),
            "qp 5: send queue, producer index 7, page 3",
        ),
        ("staghorn_interrupt", ("r0", 2), "interrupt, vector 2"),
    ]
    for name, values, text in found:
        event = parse("alpha", line(name, forms[name] % values))
        assert (event.text, event.kind) == (text, timeline_lines.EVENTS[name]), event
        assert event.adapter == "r0" and event.vm == "alpha"
    for name in forms.keys() - {name for name, _, _ in found}:
        assert forms[name].startswith("%s: ") and forms[name].count("%s") == 2, forms[name]


@case
def formats__of_the_core(_folder):
    """each line of the flow that the core's sources have is read, as what it is"""
    found = [form for path in sorted(CORE.rglob("*.c")) for form in formats(path, " sg_flow")]
    found = [form for form in found if form.startswith("qp")]
    assert sorted(found) == sorted(LINES), found
    for form, (values, kind) in LINES.items():
        event = flow(form % values)
        assert event.kind == (kind or "received") and event.qp == 1, event
        assert (event.entry is not None) == (event.kind in ("fetch", "completion")), event
        assert (event.segment is not None) == (event.kind in ("sent", "received")), event
    assert flow("qp 1: fetched send entry 7, unknown opcode").name == "unknown opcode"
    assert flow("qp 1: completed receive entry 7, SUCCESS, 64 octets, cq 2").name == "SUCCESS"
    assert flow("qp 1: fetched receive entry 7 of srq 2").entry == ("receive", 7)


@case
def formats__of_commands_and_states(_folder):
    """commands and states of queue pairs are read as such"""
    form = "admin: %s: status %d, id 0x%x"
    assert form in formats(CORE / "verbs" / "commands" / "admin.c", "sg_log")
    event = parse("a", line("staghorn_detail", "r1: " + form % ("CREATE_QP", 0, 3)))
    assert (event.kind, event.name, event.adapter) == ("command", "CREATE_QP", "r1")
    form = "qp %u: %s -> %s: %s"
    assert form in formats(CORE / "verbs" / "queues" / "qp.c", "sg_log")
    event = parse("a", line("staghorn_state", "r0: " + form % (4, "IDLE", "RTS", "connected")))
    assert (event.kind, event.name, event.qp) == ("state", "RTS", 4)
    event = parse("a", line("staghorn_failure", "r0: failure: qp 4: RTS -> ERROR: reset"))
    assert (event.kind, event.name, event.qp) == ("error", "failure", 4)
    event = parse("a", line("staghorn_detail", "r0: conn 2: valid FPDU seen"))
    assert (event.kind, event.qp) == ("state", None)


def enum_values(name):
    """Members of an enum of regs.h that have a number."""
    text = (TOP / "include" / "staghorn" / "regs.h").read_text()
    body = re.search(r"enum %s \{(.*?)\};" % name, text, re.DOTALL)[1]
    return {key: int(value, 16) for key, value in re.findall(r"(\w+) = (0x[0-9a-f]+)", body)}


@case
def registers__as_in_the_contract(_folder):
    """names of registers and doorbells are those of regs.h"""
    known = {"SG_REG_" + name: addr for addr, name in timeline_lines.REGISTERS.items()}
    assert enum_values("sg_reg") == {**known, "SG_REG_EQ_DB": timeline_lines.EQ_DB}
    bells = {"SG_DB_" + name: at for at, name in timeline_lines.DOORBELLS.items()}
    assert {**bells, "SG_DB_CLOCK": 0x20} == enum_values("sg_doorbell")
    assert timeline_lines.register_name(0x9C) == "register 0x09c"
    assert timeline_lines.register_name(0x1000 + 4 * 64) == "register 0x1100"


@case
def doorbells__decoded(_folder):
    """a doorbell names its queue and index; one that is no doorbell is shown as it is"""
    form = device_events()["staghorn_doorbell"]
    found = {
        (0, 0x08, 1 << 32 | 2, 8): ("RQ", 2, "qp 2: receive queue, producer index 1"),
        (0, 0x10, 9 << 32 | 4, 8): ("SRQ", None, "srq 4: producer index 9"),
        (0, 0x18, 6 << 32 | 1 << 31 | 3, 8): (
            "CQ_ARM",
            None,
            "arms cq 3: solicited only, consumer index 6",
        ),
        (0, 0x18, 3, 8): ("CQ_ARM", None, "arms cq 3: any completion, consumer index 0"),
        (5, 0x00, 7, 4): ("doorbell", None, "write of 4 octets at 0x00, 0x7"),
        (5, 0x28, 7, 8): ("doorbell", None, "write of 8 octets at 0x28, 0x7"),
    }
    for values, (name, qp, text) in found.items():
        event = parse("a", line("staghorn_doorbell", form % ("r0", *values)))
        assert (event.name, event.qp) == (name, qp), event
        assert event.text == "%s, page %d" % (text, values[0]), event


@case
def lines__cut_short(_folder):
    """a line that is cut is damaged, no event of the adapter, or still one of the same kind"""
    whole = [
        line("staghorn_flow", "r0: qp 1: sent Send, MSN 1, offset 0, 100 octets, last"),
        line("staghorn_flow", "r0: qp 1: completed send entry 0, SUCCESS, cq 1"),
        line("staghorn_reg_read", "r0: register 0xc reads as 0x5, 4 octets"),
        line("staghorn_doorbell", "r0: doorbell page 0, offset 0x0, 0x5, 8 octets"),
        line("staghorn_interrupt", "r0: interrupt, vector 2"),
    ]
    for text in whole:
        kind, damaged = parse("a", text).kind, 0
        for length in range(len(text)):
            try:
                event = parse("a", text[:length])
            except (Damaged, Unknown):
                damaged += 1
                continue
            assert event is None or event.kind == kind, event
        assert damaged > len(text) // 4, (text, damaged)
    for text in ("", "x", "guest error of another device", "7@1.000001:pci_cfg_read dev 0"):
        assert parse("a", text) is None, text


@case
def lines__wrong(_folder):
    """lines without the form of their event are damaged, and an unknown event is named"""
    for event, rest in (
        ("staghorn_flow", "r0: qp 1: sent Send, MSN 1, offset 0, 8 octets, segment 1"),
        ("staghorn_flow", "r0: nothing known"),
        ("staghorn_flow", "r0: qp 1: moved Send"),
        ("staghorn_flow", "r0: qp 1: fetched nothing"),
        ("staghorn_flow", "r0: qp 1: sent Send"),
        ("staghorn_flow", "r0"),
        ("staghorn_state", ": qp"),
        ("staghorn_reg_write", "r0: register zero"),
        ("staghorn_doorbell", "r0: ding"),
        ("staghorn_interrupt", "r0: interrupt, vector x"),
    ):
        raises(Damaged, parse, "a", line(event, rest))
    assert raises(Unknown, parse, "a", line("staghorn_new", "r0: x")) == "staghorn_new"
    raises(Damaged, parse, "a", "staghorn_flow r0: qp 1: sent Send, without a time")


class Args:
    """Arguments of the verb."""

    lab, command, vms = "lab", ["rping", "-c"], ["alpha", "beta"]


def result(lines=None, limit=1000, **members):
    """What the verb makes of lines of VMs."""
    lines = lines or conversation()
    taps = timeline_tap.Taps(None, list(lines), limit)
    taps.began, taps.ended = 1732612345.0, 1732612345.1
    for name, said in reversed(list(lines.items())):
        for one in said:
            taps.capture.take(name, one)
    if taps.capture.is_full():
        taps.full.set()
    for key, value in members.items():
        setattr(taps, key, value)
    return timeline.result_of(taps, Args, 0)


@case
def result__in_order(_folder):
    """events of all VMs are in the order of their times; those of one time keep QEMU's"""
    found = result()
    times = [event.time for event in found["events"]]
    assert times == sorted(times) and len(times) == 16, times
    same = [event.name for event in found["events"] if event.time % 1000000 == 150]
    assert same == ["RDMA Write", "SEND"], same
    assert found["vms"]["beta"]["kinds"] == {"fetch": 1, "received": 1, "completion": 1}
    kinds = {kind for vm in found["vms"].values() for kind in vm["kinds"]}
    assert kinds == set(timeline_lines.KINDS) - {timeline_lines.GUEST}, kinds
    data = json.loads(json.dumps(timeline.as_json(found)))
    assert data["events"][0]["us"] == 100 and data["began"] == "2024-11-26 09:12:25.000000 UTC"


@case
def result__says_what_is_missing(_folder):
    """events behind the limit, lost, damaged and unknown lines are told"""
    lines = conversation()
    lines["beta"] += ["lost 12", line("staghorn_new", "r0: x"), "4711@17326123", "lost 3"]
    found = result(lines, limit=10, problems=["events of VM beta stay on: it hangs"])
    notes = " ".join(found["notes"])
    assert len(found["events"]) == 10
    assert found["notes"][0].startswith("The limit of 10 events was reached after 0.000")
    for text in (
        "15 lines of beta are left out",
        "1 lines of beta could not be read",
        "1 events staghorn_new of beta",
        "Events of VM beta stay on: it hangs.",
    ):
        assert text in notes, (text, notes)
    assert result()["notes"] == []


@case
def page__well_formed(_folder):
    """the page is well-formed, needs no network, and has each event of each VM"""
    text = timeline_html.page(result())
    found = read_page(text)
    assert found.rows == 1 + len(timeline_lines.KINDS) + 1 + 16
    assert found.circles >= 12
    said = "".join(found.said)
    for word in ("alpha, adapter", "alpha, qp 1", "beta, qp 3", "rping -c", "ADMIN_DB becomes 0x1"):
        assert word in said, word
    assert "<script>alert" not in text and "<script>alert(1)</script>" in said
    assert set(timeline_html.COLOURS) == set(timeline_lines.KINDS)


@case
def page__of_nothing(_folder):
    """a trace without events is a page that says so"""
    found = result({"alpha": []})
    assert "0 events" in "".join(read_page(timeline_html.page(found)).said)
    assert timeline_perfetto.records(found)[0]["name"] == "process_name"


@case
def page__hostile_text(_folder):
    """characters that HTML does not have, and names of adapters, do no harm"""
    lines = {"alpha": [line("staghorn_peer", 'r0"><b>: peer error: \x00\x1b[31m&lt;]]>\ufffe')]}
    text = timeline_html.page(result(lines))
    read_page(text)
    assert "\x00" not in text and "\x1b" not in text and 'r0"><b>' not in text


@case
def perfetto__structure(_folder):
    """each record has its fields; tracks have names; times are in order"""
    found = json.loads(timeline_perfetto.text(result()))
    records = found["traceEvents"]
    tracks = {}
    for record in records:
        if record["ph"] == "M" and record["name"] == "thread_name":
            tracks[record["pid"], record["tid"]] = record["args"]["name"]
    assert tracks == {(1, 1): "adapter", (1, 2): "qp 1", (2, 1): "qp 3"}, tracks
    processes = [r["args"]["name"] for r in records if r["name"] == "process_name"]
    assert processes == ["alpha", "beta"]
    rest = [record for record in records if record["ph"] != "M"]
    assert records[: -len(rest)] == [record for record in records if record["ph"] == "M"]
    times = [record["ts"] for record in rest]
    assert times == sorted(times) and times[0] == 100
    for record in rest:
        assert (record["pid"], record["tid"]) in tracks
        assert record["ph"] in "ibe" and record["cat"] and record["name"], record
        assert record["ph"] != "i" or record["s"] == "t"
    assert sum(record["ph"] == "i" for record in rest) == 16


@case
def perfetto__spans(_folder):
    """each work request is one span that is closed: also without a completion, or at the end"""
    records = timeline_perfetto.records(result())
    begun, ended = {}, {}
    for record in records:
        if record["ph"] == "b":
            assert record["id"] not in begun
            begun[record["id"]] = record
        if record["ph"] == "e":
            assert record["id"] in begun and record["id"] not in ended
            ended[record["id"]] = record
    assert begun.keys() == ended.keys() and len(begun) == 4
    for number, record in begun.items():
        end = ended[number]
        assert [record[x] for x in ("pid", "tid", "name", "cat")] == [
            end[x] for x in ("pid", "tid", "name", "cat")
        ]
        assert record["ts"] <= end["ts"]
    states = sorted((begun[x]["args"]["entry"], ended[x]["args"]["status"]) for x in begun)
    assert states == [
        ("receive entry 0", "SUCCESS"),
        ("send entry 0", "unsignaled"),
        ("send entry 1", "SUCCESS"),
        ("send entry 2", "open at the end"),
    ], states


@case
def perfetto__indices_wrap(_folder):
    """a span ends although the indices of its queue begin again"""
    lines = [
        line("staghorn_flow", "r0: qp 1: fetched send entry 4294967295, SEND"),
        line("staghorn_flow", "r0: qp 1: fetched send entry 0, SEND"),
        line("staghorn_flow", "r0: qp 1: completed send entry 4294967295, SUCCESS, cq 1"),
        line("staghorn_flow", "r0: qp 1: completed send entry 0, SUCCESS, cq 1"),
    ]
    records = timeline_perfetto.records(result({"alpha": lines}))
    assert [r["args"]["status"] for r in records if r["ph"] == "e"] == ["SUCCESS"] * 2


def linked(*extra):
    """A conversation whose segments say which they are; extra: further events (VM, time, text)."""
    write = "RDMA Write, STag 0x00000100, TO 0x0, 8 octets, last, segment %d, 1.2.3.4:5 > 1.2.3.5:6"
    said = [
        ("beta", 90, "qp 3: received " + write % 4),  # sent before the trace began
        ("alpha", 100, "qp 1: sent " + write % 5),
        ("beta", 103, "qp 3: received " + write % 5),
        ("alpha", 110, "qp 1: sent " + write % 6),
        ("beta", 110, "qp 3: received " + write % 6),
        ("alpha", 120, "qp 1: sent " + write % 7),  # its other end is not in the trace
        ("alpha", 130, "qp 1: sent Send, MSN 1, offset 0, 8 octets, last"),
        ("beta", 131, "qp 3: received Send, MSN 1, offset 0, 8 octets, last"),
        *extra,
    ]
    lines = {"alpha": [], "beta": []}
    for vm, micros, text in said:
        lines[vm].append(line("staghorn_flow", "r0: " + text, micros))
    return result(lines)


@case
def links__of_two_vms(_folder):
    """what one VM sent is linked with what the other one received, and with nothing else"""
    events = linked()["events"]
    found = [
        (events[begin].time % 1000, events[end].time % 1000)
        for begin, end in timeline_links.links(events)
    ]
    assert found == [(100, 103), (110, 110)], found
    same = "Send, MSN 9, offset 0, 8 octets, last, segment 1, 1.2.3.4:5 > 1.2.3.4:7"
    events = linked(("alpha", 140, "qp 1: sent " + same), ("alpha", 141, "qp 2: received " + same))
    assert len(timeline_links.links(events["events"])) == 2


@case
def links__in_perfetto(_folder):
    """a link is a flow with two ends, each in a span that is its event"""
    records = timeline_perfetto.records(linked())
    flows = [record for record in records if record["ph"] in "sf"]
    assert [(r["ph"], r["id"], r["pid"], r["ts"]) for r in flows] == [
        *(("s", 1, 1, 100), ("f", 1, 2, 103), ("s", 2, 1, 110), ("f", 2, 2, 110)),
    ], flows
    assert {(r["cat"], r["name"]) for r in flows} == {("segment", "segment")}
    assert all(r["bp"] == "e" for r in flows if r["ph"] == "f")
    for record in flows:
        kind = "sent" if record["ph"] == "s" else "received"
        before = records[: records.index(record)]
        spans = [r for r in before if r["ph"] == "X" and r["cat"] == kind]
        same = [r for r in spans if all(r[x] == record[x] for x in ("pid", "tid", "ts"))]
        assert len(same) == 1 and same[0]["dur"] == 1, (record, same)
    assert sum(record["ph"] in "iX" for record in records) == 8


@case
def links__in_the_page(_folder):
    """a link is a line of the picture, from the one event's lane to the other's"""
    text = timeline_html.page(linked())
    read_page(text)
    assert text.count('class="arrow"') == 2 and timeline_html.page(result()).count("arrow") == 1
    assert "<title>RDMA Write, STag 0x00000100, TO 0x0, 8 octets, last, segment 5, " in text


@case
def limit__in_memory(_folder):
    """behind the limit events are counted, and not kept"""
    capture = timeline_tap.Capture(["alpha"], 3)
    for _ in range(10):
        capture.take("alpha", line("staghorn_interrupt", "r0: interrupt, vector 1"))
    assert len(capture.events) == 3 and capture.left_out == 7


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
