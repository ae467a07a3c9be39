#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages and the completion of bash, which tools/packaging makes, compared with --help."""
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
TOOLS = TOP / "tools" / "packaging"
CASES = []
# Completes a command line: its words, the last one unfinished.
COMPLETE = """
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_staghorn
printf '%s\\n' "${COMPREPLY[@]}"
"""


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


@functools.cache
def run(*words, **environment):
    """What a command prints: the same each time, so one run is enough."""
    return subprocess.run(
        [str(word) for word in words],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def help_of(*verb):
    return run(TOP / "staghorn", *verb, "--help")


def verbs_of(text):
    """The verbs that a help text lists, and the options that it has."""
    return re.findall(r"^    ([a-z]+)  ", text, re.M), set(re.findall(r"(?<![\w-])--[a-z-]+", text))


def options_of(text):
    """The options in the first column of a help text."""
    found = set()
    for line in re.findall(r"^  (-.*)$", text, re.M):
        found |= set(re.findall(r"(?:^|, )(-[a-z]\b|--[a-z][a-z-]*)", line.split("  ")[0]))
    return found - {"-h", "--help"}


def section(page, verb):
    """The part of the page about a verb, as plain text."""
    part = page.split('.SS "%s"\n' % verb)[1].split("\n.SS ")[0].split("\n.SH ")[0]
    return part.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")


@case
def manual__verbs(_folder):
    """staghorn(1) has each verb of --help, and each of its options as a paragraph"""
    page = run(TOOLS / "manpage", "1")
    top, _ = verbs_of(help_of())
    assert "up" in top and "crash" in top and len(top) > 15, top
    below, _ = verbs_of(help_of("crash"))
    assert "record" in below, below
    for words in [(verb,) for verb in top] + [("crash", verb) for verb in below]:
        part = section(page, " ".join(words))
        listed = set()
        for line in re.findall(r"^\.TP\n(.*)$", part, re.M):
            listed |= set(re.findall(r"(?:^|, )(-[a-z]\b|--[a-z][a-z-]*)", line))
        assert listed == options_of(help_of(*words)), (words, listed, options_of(help_of(*words)))


@case
def manual__environment(_folder):
    """staghorn(1) has each exit status and each environment variable that --help names"""
    page, text = run(TOOLS / "manpage", "1"), help_of()
    for name in set(re.findall(r"STAGHORN_[A-Z_]+", text)):
        assert "\\fB%s\\fR" % name in page, name
    statuses = re.findall(r"^  (\d+)  ", text, re.M)
    assert len(statuses) > 5, text
    for status in statuses:
        assert "\\fB%s\\fR" % status in page.split(".SH EXIT STATUS")[1], status


@case
def manual__properties(_folder):
    """staghorn(7) has each property of the adapter that the device defines"""
    page = run(TOOLS / "manpage", "7")
    source = "".join(path.read_text() for path in (TOP / "hw" / "device").glob("pci*.c"))
    names = set(re.findall(r'DEFINE_PROP_\w+\("([a-z0-9-]+)"', source))
    assert len(names) > 20, names
    for name in names:
        assert "\\fB%s\\fR" % name.replace("-", "\\-") in page, name


@case
def manual__format(folder):
    """Both pages are without warnings of groff, and have the version and the date of the source"""
    for number in ("1", "7"):
        page = run(TOOLS / "manpage", number, SOURCE_DATE_EPOCH="86400")
        (folder / number).write_text(page)
        words = ["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-z", folder / number]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        version = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())[1]
        title = re.search(r"^\.TH .*$", page, re.M)[0]
        assert title == '.TH STAGHORN %s "1970-01-02" "Staghorn %s"' % (number, version), title


def lab(folder, name, *vms):
    for vm in (*vms, "segment"):
        (folder / "state" / "labs" / name / vm).mkdir(parents=True)


def complete(folder, *words):
    """The candidates for the last word of a command line."""
    script = folder / "completion"
    script.write_text(run(TOOLS / "completion"))
    found = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", str(script), "staghorn", *words],
        env={**os.environ, "STAGHORN_STATE": str(folder / "state"), "STAGHORN_LAB": "lab"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 0 and not found.stderr, found
    return set(found.stdout.split())


@case
def completion__verbs(folder):
    """bash completes verbs, verbs of crash and all options"""
    top, _ = verbs_of(help_of())
    assert complete(folder, "") == set(top)
    assert complete(folder, "cr") == {"crash"}
    assert complete(folder, "crash", "") == set(verbs_of(help_of("crash"))[0])
    for words in (("up",), ("crash", "explore"), ("pmem",), ("--lab", "x", "cut")):
        verb = words[2:] if words[0] == "--lab" else words
        wanted = options_of(help_of(*verb)) | {"-h", "--help"}
        assert complete(folder, *words, "-") == wanted, (words, wanted)


@case
def completion__values(folder):
    """bash completes the values of options: words, files and folders"""
    (folder / "place").mkdir()
    (folder / "plain.pcap").write_text("")
    assert complete(folder, "up", "--accel", "") == {"auto", "tcg", "kvm"}
    assert complete(folder, "up", "--accel", "=", "k") == {"kvm"}
    assert complete(folder, "up", "--capture", "pl") == {"place", "plain.pcap"}
    assert complete(folder, "up", "--share", "pl") == {"place"}
    assert complete(folder, "up", "--kernel", "d") == {"debug"}
    assert complete(folder, "up", "--kernel", "pl") == {"place", "plain.pcap"}
    assert complete(folder, "up", "--mtu", "") == set()
    assert complete(folder, "up", "--accel", "tcg", "--js") == {"--json"}


@case
def completion__machines(folder):
    """bash completes labs, their VMs and VM:PATH, and nothing behind --"""
    lab(folder, "lab", "alpha", "beta")
    lab(folder, "other", "gamma")
    assert complete(folder, "console", "") == {"alpha", "beta"}
    assert complete(folder, "--lab", "") == {"lab", "other"}
    assert complete(folder, "--lab", "other", "console", "") == {"gamma"}
    assert complete(folder, "--lab", "absent", "console", "") == set()
    assert complete(folder, "link", "alpha", "") == {"up", "down"}
    assert complete(folder, "console", "alpha", "") == set()
    assert complete(folder, "exec", "b") == {"beta"}
    assert complete(folder, "exec", "beta", "--", "") == set()
    assert {"alpha:", "beta:"} <= complete(folder, "copy", "")
    assert complete(folder, "copy", "al") == {"alpha:"}


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
