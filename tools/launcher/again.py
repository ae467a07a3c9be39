# SPDX-License-Identifier: GPL-2.0-or-later
"""The command that shows a bug again, for a shell in whatever folder.

All paths are absolute.  A bug that the explorer found is looked for once more, on the weakest
platform that has it.  An image that a checker refused is judged once more.  A bug of a recovery, or
of a pair of images, is written to a file, which is judged.
"""
import os
import shlex

from . import paths, verdicts

FOLDER = "again"  # of explorations that show one bug
# Options of an exploration that decide what is a bug; --onto and --base have absolute paths.
KEPT = ("--target", "--arrivals", "--acks", "--onto", "--base")


def _line(*words):
    return shlex.join([paths.command(), "crash", *map(str, words)])


def _kept(options):
    """The words of those options that count; each has a value."""
    rows = zip(options[::2], options[1::2])
    return [word for row in rows if row[0] in KEPT for word in row]


def _recording(base, traces):
    """What `crash explore` gets: a folder, or the only trace of it that was explored."""
    here = {path.resolve() for path in base.glob("*.trace")}
    alone = len(traces) == 1 and here != {traces[0].resolve()}
    return os.path.abspath(traces[0] if alone else base)


def _least(bug):
    """The weakest platform that claims to keep what it loses."""
    return bug.get("least-platform") or bug["platforms"][0]["platform"]


def name_promises(result, out, base, source):
    """Adds `again` to each bug of an exploration.

    out, base: the folders of results and recording; source: traces, options, symbols, and the
    files kallsyms and capture, or None."""
    words = _kept(source["options"])
    files = [("--symbols", path) for path in source["symbols"]]
    files += [("--" + name, source.get(name)) for name in ("kallsyms", "capture")]
    for option, path in files:
        words += [option, os.path.abspath(path)] if path else []
    recording = _recording(base, source["traces"])
    for bug in [*result["bugs"], *result["not-claimed"]]:
        platform = _least(bug)
        domain, _, ddio = platform.partition(",ddio=")
        place = os.path.abspath(out / FOLDER / platform)
        where = ["--domain", domain, "--ddio", ddio, "--output", place]
        bug["again"] = _line("explore", *words, *where, recording)


def of_image(bug, folder):
    """That of a bug of a check: its minimal example is judged, or its example."""
    example = bug["example"]
    image = (bug["minimal"] or example)["image"]
    key = verdicts.key_of({"image": image, "promises": example["promises"]})
    return _line("check", "--image", key, os.path.abspath(folder))


def _of_kept(bug, folder, option, name):
    """Keeps the bug as a file, and judges that."""
    folder = os.path.abspath(folder)
    file = os.path.join(folder, "%s-%d.bug" % (name, bug["number"]))
    keep = _line("keep", option, bug["number"], "--output", file, folder)
    return "%s && %s" % (keep, _line("check", file))


def of_recovery(bug, folder):
    """That of a bug of a recovery."""
    return _of_kept(bug, folder, "--recovery-bug", "recovery")


def of_pair(bug, folder):
    """That of a bug of pairs of images."""
    return _of_kept(bug, folder, "--bug", "pair")
