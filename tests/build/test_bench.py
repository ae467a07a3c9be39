#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmarks' own sums and pictures, from made-up measurements: no VM is needed."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
TOOLS = ("bench", "bench-curves", "bench-consumers", "bench-pmem")
SVG = "{http://www.w3.org/2000/svg}"


def load(name):
    """A program of tools/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOP / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
curves, consumers = load("bench-curves"), load("bench-consumers")


def silent(_text=""):
    """Instead of say()."""


curves.say = consumers.say = silent


def texts(file):
    """All words of a picture."""
    return [e.text.strip() for e in ElementTree.parse(file).iter(SVG + "text") if e.text] + [
        e.text.strip() for e in ElementTree.parse(file).iter(SVG + "tspan") if e.text
    ]


def points():
    """Each point of each curve, siw's being a tenth of the adapter's."""
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
    """three pictures, with axes, units and both adapters' names"""
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
    """what siw did not reach is not there, and nothing fails"""
    some = [p for p in points() if p["kind"] == "staghorn" or p["x"] in (128, 8192)]
    curves.draw([p for p in some if (p["kind"], p["curve"]) != ("siw", "rate")], folder)
    assert not any("siw" in word for word in texts(folder / "rate.svg"))


def plots__without_gnuplot(folder):
    """a machine without gnuplot: it is said, nothing is drawn, nothing fails"""
    said, path = [], os.environ["PATH"]
    curves.say, os.environ["PATH"] = said.append, str(folder)
    try:
        curves.draw(list(points()), folder)
    finally:
        curves.say, os.environ["PATH"] = silent, path
    assert not list(folder.iterdir())
    assert any("gnuplot is missing" in text for text in said), said


def plots__consumers(folder):
    """two pictures of bars, values above them; a missing one has no bar"""
    values = {"staghorn": {job: [300.4, 301.0] for job in consumers.JOBS}, "siw": {}}
    siw = dict(values, siw={"read 1 MiB": [12.0], "read 4 KiB": [345.0]})
    consumers.draw({"NVMe": siw, "NFS": values}, folder)
    large, small = (texts(folder / (name + ".svg")) for name in ("storage", "storage-small"))
    assert "MB/s" in large and "12" in large and "301" in large, large
    assert "operations per second" in small and "345" in small, small


def bandwidth__digits(_folder):
    """of small messages from their rate, of large ones as perftest prints it"""
    small = ["2", "1000", "0.00", "0.00", "0.019073"]
    assert abs(curves.bandwidth(small, 2) - 0.038146) < 1e-9
    large = ["8388608", "5", "100.00", "10.00", "0.000001"]
    assert abs(curves.bandwidth(large, 8 << 20) - 10.48576) < 1e-6


def iterations__length(_folder):
    """as many as last as long as asked for, within bounds, shared by the queue pairs"""
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


def arguments__refused(_folder):
    """by each program, in one line, before anything starts"""
    rows = [(tool, "--repeats", bad) for tool in TOOLS for bad in ("0", "-1", "x", "1.5", "")]
    rows += [(tool, "--seconds", bad) for tool in TOOLS[:3] for bad in ("0", "nan", "-2", "x", "")]
    for tool, option, bad in rows:
        words = [str(TOP / "tools" / tool), "%s=%s" % (option, bad)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and not done.stdout, (words, done)
        assert "argument %s: %s is not a" % (option, bad) in done.stderr, (words, done)


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
            )
        )
    )
