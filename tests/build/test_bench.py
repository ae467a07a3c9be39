#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the benchmarks' arithmetic, plots and retries with invented runs, without VMs."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
TOOLS = ("bench", "bench-curves", "bench-consumers", "bench-pmem", "bench-checker")
TOOLS += ("bench-rpcrdma", "bench-wires-vm")
SVG = "{http://www.w3.org/2000/svg}"


def load(name):
    """A program of tools/bench as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOP / "tools" / "bench" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
curves, consumers = load("bench-curves"), load("bench-consumers")
explore = load("bench-explore")


def silent(_text=""):
    """Discards text, in place of say()."""


curves.say = consumers.say = silent


def texts(file):
    """All texts in a plot."""
    return [e.text.strip() for e in ElementTree.parse(file).iter(SVG + "text") if e.text] + [
        e.text.strip() for e in ElementTree.parse(file).iter(SVG + "tspan") if e.text
    ]


def points():
    """Each point of each curve; siw's values are a tenth of the adapter's."""
    for kind, factor in (("staghorn", 1.0), ("siw", 0.1)):
        for tool in curves.BANDWIDTH:
            for x in curves.SIZES:
                yield {"kind": kind, "curve": tool, "x": x, "y": factor * min(x, 1000)}
        for x in curves.QPS:
            yield {"kind": kind, "curve": "rate", "x": x, "y": factor * 10000 * x}
        for tool in curves.LATENCY:
            for n, x in enumerate(curves.PERCENTILES, 1):
                yield {"kind": kind, "curve": tool, "x": x, "y": n / factor}


def plots__curves(folder):
    """three plots, with axes, units and both adapters' names"""
    curves.draw(list(points()), folder)
    for name, label in (
        ("bandwidth", "MB/s"),
        ("rate", "messages per second"),
        ("latency", "microseconds"),
    ):
        words = texts(folder / (name + ".svg"))
        assert label in words, (name, words)
        for kind in ("Staghorn", "siw"):
            assert any(kind in word for word in words), (name, kind, words)


def plots__without_siw(folder):
    """points that siw did not reach are left out, and nothing fails"""
    some = [p for p in points() if p["kind"] == "staghorn" or p["x"] in (128, 8192)]
    curves.draw([p for p in some if (p["kind"], p["curve"]) != ("siw", "rate")], folder)
    assert not any("siw" in word for word in texts(folder / "rate.svg"))


def plots__without_gnuplot(folder):
    """without gnuplot there is a message and no plot, and nothing fails"""
    said, path = [], os.environ["PATH"]
    curves.say, os.environ["PATH"] = said.append, str(folder)
    try:
        curves.draw(list(points()), folder)
    finally:
        curves.say, os.environ["PATH"] = silent, path
    assert not list(folder.iterdir())
    assert any("gnuplot is missing" in text for text in said), said


def plots__consumers(folder):
    """two bar charts, with values above the bars; a missing value has no bar"""
    ours = {job: [300.4, 301.0] for job in consumers.JOBS}
    values = {"staghorn": ours, "tcp": {"write 4 KiB": [77.0]}, "siw": {}}
    siw = dict(values, siw={"read 1 MiB": [12.0], "read 4 KiB": [345.0]})
    consumers.draw({"NVMe": siw, "NFS": values}, folder)
    large, small = (texts(folder / (name + ".svg")) for name in ("storage", "storage-small"))
    assert "MB/s" in large and "12" in large and "301" in large, large
    assert "77" in small and "TCP, no RDMA" in small, small
    assert "operations per second" in small and "345" in small, small


def bandwidth__digits(_folder):
    """bandwidth of small messages is computed from their rate, of large ones is perftest's"""
    small = ["2", "1000", "0.00", "0.00", "0.019073"]
    assert abs(curves.bandwidth(small, 2) - 0.038146) < 1e-9
    large = ["8388608", "5", "100.00", "10.00", "0.000001"]
    assert abs(curves.bandwidth(large, 8 << 20) - 10.48576) < 1e-6


def iterations__length(_folder):
    """iterations take the wanted time, within bounds, and are shared by the queue pairs"""
    args = types.SimpleNamespace(seconds=0.5, repeats=1)
    fields = ["64", "1000", "0", "0", "0.100000"]
    one = curves.Point(args, "staghorn", "ib_write_bw", 64)
    assert one.iterations(fields, 64) == 50000
    assert curves.Point(args, "staghorn", "ib_write_bw", 64, 16).iterations(fields, 64) == 3125
    assert one.iterations(["64", "1000", "0", "0", "0.000000"], 64) == 64
    assert one.iterations(["64", "1000", "0", "0", "9.000000"], 64) == 100000
    latency = ["8", "200", "30", "90", "50.0", "55", "3", "80", "90"]
    assert curves.Point(args, "staghorn", "ib_write_lat", 8).iterations(latency, 200) == 5000
    assert curves.Point(args, "staghorn", "ib_read_lat", 8).iterations(latency, 200) == 10000


def exploring(_folder):
    """rows of bench-explore have a verdict only for the number of events that the target has"""
    text = "7 events of the target\none platform     12.5 s,    9.9 s of processor time\n"
    text += "all platforms    80.0 s,   60.1 s of processor time\n"
    found = explore.rows_of(text, explore.EVENTS)
    assert [explore.verdict(row) for row in found] == ["10 s: met", "60 s: MISSED"], found
    assert [explore.verdict(row) for row in explore.rows_of(text, 7)] == ["", ""]
    failed = text.replace("time\n", "time, failed\n")
    assert not explore.rows_of(failed, 7)


def arguments__refused(_folder):
    """each program refuses bad arguments in one line, before anything starts"""
    rows = [(tool, "--repeats", bad) for tool in TOOLS for bad in ("0", "-1", "x", "1.5", "")]
    rows += [(tool, "--seconds", bad) for tool in TOOLS[:3] for bad in ("0", "nan", "-2", "x", "")]
    for tool, option, bad in rows:
        words = [str(TOP / "tools" / "bench" / tool), "%s=%s" % (option, bad)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and not done.stdout, (words, done)
        assert "argument %s: %s is not a" % (option, bad) in done.stderr, (words, done)


HEAD = " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
NO_CLOCK = HEAD + " 65536 114 0.00 0.00 0.000000\n"
LATE = "Failed to sync between client and server after creating RDMA CM connection.\n"
REFUSED = "Event: RDMA_CM_EVENT_REJECTED; error: -111.\n"


class Runs:
    """Replaces one of rdma's functions: returns the outcomes one by one, and counts them."""

    def __init__(self, name, *outcomes):
        self.name, self.outcomes, self.calls = name, list(outcomes), 0

    def __enter__(self):
        self.real = getattr(curves.rdma, self.name)
        setattr(curves.rdma, self.name, self)
        return self

    def __exit__(self, *_):
        setattr(curves.rdma, self.name, self.real)

    def __call__(self, *_words, **_keywords):
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def fails(function, *words):
    """The text of the LabError that the call raises."""
    try:
        function(*words)
    except curves.LabError as error:
        return str(error)
    raise AssertionError("no error")


def runs__no_clock(_folder):
    """a table of zeroes is no result: the run is repeated, but not for ever"""
    rdma, words = curves.rdma, (None, "ib_send_bw", "beta", "alpha", 65536, 114)
    good = HEAD + " 65536 114 8.00 5.00 0.000080\n"
    with Runs("perftest_output", ("", NO_CLOCK), ("", NO_CLOCK), ("", good)) as runs:
        assert abs(rdma.perftest(*words) - 5 * rdma.MIB) < 1e-6
        assert runs.calls == 3
    with Runs("perftest_output", ("", NO_CLOCK)) as runs:
        assert "ib_send_bw had no clock" in fails(rdma.perftest, *words)
        assert runs.calls == rdma.CLOCK_TRIES
    # Each may be rounded to 0, but not both.
    for line in ("65536 5 0.01 0.01 0.000000", "65536 5 0.00 0.00 0.000001"):
        with Runs("perftest_output", ("", HEAD + line)) as runs:
            rdma.perftest(*words)
            assert runs.calls == 1, line
    assert "printed no result" in fails(rdma.table_line, "ib_send_bw", HEAD, 65536)


def runs__refused(_folder):
    """a client that was too early runs again with a new server, but not for ever"""
    rdma, words = curves.rdma, (None, "beta", ["x"], "alpha", ["x"], None, 9)
    with Runs("device", "staghorn0"):
        with Runs("_run_both", rdma.Refused(REFUSED), ("server", "client")) as runs:
            assert rdma._pair(*words) == ("server", "client") and runs.calls == 2
        with Runs("_run_both", rdma.Refused(REFUSED)) as runs:
            assert REFUSED in fails(rdma._pair, *words) and runs.calls == rdma.CONNECT_TRIES
        with Runs("_run_both", rdma.LabError("x: another")) as runs:
            assert "another" in fails(rdma._pair, *words) and runs.calls == 1


def runs__late_server(_folder):
    """a run whose receive came too late is repeated by benchmarks and with siw, not by tests"""
    rdma, words = curves.rdma, (None, "beta", ["x"], "alpha", ["x"], None, 9)
    for device, patient, calls in (
        ("staghorn0", False, 1),
        ("staghorn0", True, rdma.DROPPED_TRIES),
        ("siw0", False, rdma.SIW_TRIES),
    ):
        rdma.patient = patient
        with Runs("device", device), Runs("_run_both", rdma.LabError(LATE)) as runs:
            with contextlib.redirect_stderr(io.StringIO()) as said:
                fails(rdma._pair, *words)
            assert runs.calls == calls, (device, patient, runs.calls)
            assert ("no receive yet" in said.getvalue()) == patient
    rdma.patient = False
    with Runs("device", "siw0"), Runs("_run_both", rdma.Stalled(""), ("s", "c")) as runs:
        assert rdma._pair(*words) == ("s", "c") and runs.calls == 2


def wires__judged(_folder):
    """targets of both comparisons of the wires: better is more or less, a gap meets none"""
    native, in_vms = load("bench-wires"), load("bench-wires-vm")
    rows = [
        {"path": path, "load": load, "wire": wire, "loss": loss, "mb_per_s": rate, "mean_us": us}
        for path, load, loss, *both in (
            ("wide", "write-64k", 0, (100, 10), (91, 12)),
            ("wide", "write-64k", 0.01, (10, 30), (9.9, 20)),
            ("narrow", "write-64k", 0, (100, 0), (89, 0)),
            ("narrow", "write-64k", 0.01, (100, 0), (100, 0)),
            ("narrow", "write-256k", 0.01, (100, 0), (101, 0)),
            ("narrow", "read-64k", 0.01, (100, 0), (99, 0)),
        )
        for wire, (rate, us) in zip(("iwarp", "rdma-tcp-2000"), both)
    ]
    met = [ratio >= target for _, ratio, target in native.judge(rows)]
    assert met == [True, False, True, False, True, True, False], met

    values = {
        (0, "ib_write_bw", 65536): {"iwarp": [100, 90, 110], "rdma-tcp-2000": [95, 80, 500]},
        (0, "ib_write_lat", 8): {"iwarp": [20], "rdma-tcp-2000": [30]},
        (1, "ib_write_lat", 8): {"iwarp": [20], "rdma-tcp-2000": [19]},
        (1, "ib_write_bw", 65536): {"iwarp": [20], "rdma-tcp-2000": []},
        (5, "ib_write_bw", 65536): {"iwarp": [20], "rdma-tcp-2000": [1]},
    }
    judged = list(in_vms.judge(values))
    assert [row["met"] for row in judged] == [True, False, True, False, True], judged
    assert judged[0]["medians"] == [100, 95] and judged[3]["ratio"] is None
    assert judged[0]["quartiles"] == [[95, 105], [87.5, 297.5]], judged[0]
    assert judged[3]["quartiles"] == [[20, 20], []], judged[3]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        in_vms.report(judged)
    assert said.getvalue().count("MISSED") == 2, said.getvalue()
    assert "100.0 [95.0, 105.0]" in said.getvalue(), said.getvalue()


def wires__chosen(_folder):
    """--loss and --load choose what is measured between VMs, in the order of the program"""
    tool = load("bench-wires-vm")
    losses, loads = tool.chosen(["0", "0.1", "1", "5"]), tool.chosen(tool.LOADS)
    every = types.SimpleNamespace(loss=losses("0,0.1,1,5"), load=loads("small,latency,bandwidth"))
    assert len(tool.cells(every)) == 9, tool.cells(every)
    some = types.SimpleNamespace(loss=losses("1, 0"), load=loads("latency"))
    assert tool.cells(some) == [(0, "ib_write_lat", 65536), (1, "ib_write_lat", 65536)]
    for option, bad in ("--loss", "2"), ("--loss", ""), ("--load", "read"), ("--load", "small,"):
        words = [str(TOP / "tools" / "bench" / "bench-wires-vm"), "%s=%s" % (option, bad)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and not done.stdout, (words, done)
        assert "argument %s: %s is not a list of" % (option, bad) in done.stderr, (words, done)
    words = [str(TOP / "tools" / "bench" / "bench-wires-vm"), "--loss=1", "--load=small"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "add 0 to --loss" in done.stderr, done


def rpcrdma__table(_folder):
    """rpcrdma's Calls beside those of the kernel's client, which makes no NULL calls"""
    tool = load("bench-rpcrdma")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        tool.report(
            {
                ("NULL", 1): {"rpcrdma": [900, 1000, 1100]},
                ("READ 1 MiB", 8): {"rpcrdma": [50], "kernel": [100, 20, 120]},
            }
        )
    lines = [" ".join(line.split()) for line in said.getvalue().splitlines()]
    assert "NULL 1 1000 makes none" in lines, lines
    assert "READ 1 MiB 8 50 100 0.50" in lines, lines


if __name__ == "__main__":
    sys.exit(
        cases.run(
            (
                plots__curves,
                plots__without_siw,
                plots__without_gnuplot,
                plots__consumers,
                bandwidth__digits,
                iterations__length,
                arguments__refused,
                exploring,
                runs__no_clock,
                runs__refused,
                runs__late_server,
                wires__judged,
                wires__chosen,
                rpcrdma__table,
            )
        )
    )
