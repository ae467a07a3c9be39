# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots of the benchmarks' results: SVG, drawn by gnuplot.

A colour stands for one adapter in all plots.  The shapes of the points tell the measurements of one
plot apart."""
import shutil
import subprocess

from launcher.errors import LabError

KINDS = {"staghorn": "Staghorn", "siw": "siw", "tcp": "TCP, no RDMA"}
COLORS = {"staghorn": "#b2182b", "siw": "#2166ac", "tcp": "#7f7f7f"}
POINTS = (7, 5, 9)  # disc, square, triangle
BEGIN = """set terminal svg size 760,440 font 'sans-serif,13' background '#ffffff'
set encoding utf8
set output '%(file)s'
set title '%(title)s'
set xlabel '%(xlabel)s'
set ylabel '%(ylabel)s'
set grid lc rgb '#dddddd'
set key outside right top
"""


def _block(name, rows):
    lines = (" ".join('"%s"' % f if isinstance(f, str) else str(f) for f in row) for row in rows)
    return "%s << END\n%s\nEND\n" % (name, "\n".join(lines))


def lines(curves):
    """(data, plot command) of curves [(text, kind, number of the text, [(x, y)])]."""
    data, plots = "", []
    for number, (text, kind, shape, rows) in enumerate(curves):
        data += _block("$d%d" % number, rows)
        named = isinstance(rows[0][0], str)
        plots.append(
            "$d%d using %s with linespoints lw 2 lc rgb '%s' dt %d pt %d ps 0.8 title '%s'"
            % (
                number,
                "0:2:xtic(1)" if named else "1:2",
                COLORS[kind],
                1 if kind == "staghorn" else 2,
                POINTS[shape],
                ", ".join(filter(None, (text, KINDS[kind]))),
            )
        )
    return data, "plot " + ", ".join(plots)


def bars(names, values):
    """(data, plot command) of a group of bars for each name, from values {kind: [number or None]}.
    The number stands above each bar."""
    data, plots, width = "", [], 0.72 / len(values)
    for number, (kind, column) in enumerate(values.items()):
        at = width * (number - (len(values) - 1) / 2)
        rows = [(i, n, v) for i, (n, v) in enumerate(zip(names, column)) if v]
        if rows:
            data += _block("$b%d" % number, rows)
            plots.append(
                "$b%d using ($1%+g):3 with boxes fs solid 0.8 lc rgb '%s' title '%s'"
                % (number, at, COLORS[kind], KINDS[kind])
            )
            plots.append(
                "$b%d using ($1%+g):3:(sprintf('%%.0f',$3)) with labels offset 0,0.6 "
                "font ',11' notitle" % (number, at)
            )
    ticks = ", ".join("'%s' %d" % (name, number) for number, name in enumerate(names))
    setting = "set boxwidth %g\nset xrange [-0.6:%g]\nset xtics (%s)\n" % (
        width - 0.02,
        len(names) - 0.4,
        ticks,
    )
    return data + setting, "plot " + ", ".join(plots)


def available(say):
    """Whether gnuplot is installed; says so if it is not."""
    if shutil.which("gnuplot"):
        return True
    say("no plots: gnuplot is missing; install Debian's package gnuplot-nox")
    return False


def draw(folder, name, title, xlabel, ylabel, settings, drawing, say):
    """Draws folder/name.svg; drawing is the result of lines() or bars()."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (name + ".svg")
    words = {"file": file, "title": title, "xlabel": xlabel, "ylabel": ylabel}
    text = BEGIN % words + settings + "\n" + "\n".join(drawing) + "\n"
    done = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise LabError("gnuplot: " + done.stderr.strip())
    say("drew %s" % file)
