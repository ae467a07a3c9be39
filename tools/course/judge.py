# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges a module: docs/course/judge STEP MODULE.ko|FOLDER [--exercise N] [--lab NAME]"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from launcher import lint, paths
from launcher.errors import LabError, UsageError

from . import exercises, steps
from .bench import PLACE, Bench, show

USAGE = "docs/course/judge --help shows the options"
LOAD_S, UNLOAD_S = 60, 60  # limits of insmod and rmmod
BUILD_S = 300


class Tap:
    """Lines of TAP."""

    def __init__(self):
        self.number, self.good = 0, True

    def line(self, name, wrong=""):
        """One line; `wrong` says what is wrong, if anything is."""
        self.number += 1
        print("%s %d - %s" % ("not ok" if wrong else "ok", self.number, name))
        show(wrong)
        self.good = self.good and not wrong

    def end(self):
        """The plan; returns the exit status of the program."""
        print("1..%d" % self.number)
        return 0 if self.good else 1


def siblings(folder):
    """The folders beside this one that its Kbuild names."""
    text = "".join(
        (folder / n).read_text() for n in ("Kbuild", "Makefile") if (folder / n).exists()
    )
    found = {folder.parent / name for name in re.findall(r"\.\./([\w-]+)/", text)}
    return [path for path in sorted(found) if path.is_dir()]


def compiled(folder, out):
    """Builds the module of a folder; returns (path or None, what the compiler said)."""
    with tempfile.TemporaryDirectory(prefix="sg-course-") as work:
        for each in (folder, *siblings(folder)):
            shutil.copytree(
                each, Path(work) / each.name, ignore=shutil.ignore_patterns("*.o", "*.ko")
            )
        words = [str(paths.TOP / "tools" / "guest" / "module.sh"), work, str(out), folder.name]
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=BUILD_S,
            check=False,
        )
    found = sorted(Path(out).glob("*.ko"))
    if done.returncode or len(found) != 1:
        return None, done.stdout + ("" if done.returncode else "%d modules were made" % len(found))
    return found[0], done.stdout


def examine(run, tap, demands):
    """One TAP line for each demand."""
    run.look()
    for demand in demands:
        tap.line(demand.__doc__, demand(run))


def load(bench, words):
    """insmod; returns what is wrong."""
    status, _, error = bench.sh('insmod "$@"', PLACE, *words, timeout=LOAD_S)
    if not status:
        return ""
    return "insmod: %s\n%s" % (error.strip(), "\n".join(bench.messages().splitlines()[-10:]))


def unload(bench, name):
    """rmmod; returns what is wrong."""
    status, _, error = bench.sh('rmmod "$1"', name, timeout=UNLOAD_S)
    return error.strip() if status else ""


def verdicts(bench, tap, step):
    """What kernel and checker say at the end."""
    tap.line("the kernel complains of nothing", "\n".join(bench.complaints()))
    found = bench.reports()
    if step < steps.STRICT_ADVICE:
        found = lint.mistakes(found)
    tap.line("the driver checker reports nothing", "\n".join(map(lint.text_of, found)))


def judge(bench, tap, module, step, exercise=None):
    """Judges a module that was compiled."""
    bench.put(module)
    status, name, error = bench.sh("modinfo -F name " + PLACE)
    if status:
        raise UsageError("%s is no kernel module: %s" % (module, error.strip()))
    bench.begin()
    before = bench.state()
    run = steps.Run(bench, name.strip())
    bench.faults(exercise.faults if exercise else "")
    wrong = load(bench, exercise.words if exercise else ())
    tap.line("it loads", wrong)
    if not wrong:
        bench.learn(run.name)
        examine(run, tap, exercise.demands if exercise else steps.STEPS[step])
        bench.faults(exercise.after or exercise.faults if exercise else "")
        tap.line("it unloads", unload(bench, run.name))
        bench.faults("")
        # A driver whose adapter vanished cannot end its DMA.
        vanished = exercise and exercise.after
        spared = ("bus master: 0", "bus master: 1" if vanished else "")
        after = [line for line in bench.state() if line not in spared]
        tap.line("it leaves nothing behind", "\n".join(x for x in after if x not in before))
        examine(run, tap, () if exercise and exercise.after else steps.gone(step))
    bench.faults("")
    verdicts(bench, tap, step)
    if not tap.good:
        show("The kernel said:\n" + bench.messages())


def chosen(path):
    """Fails if the file is no kernel module for x86-64."""
    try:
        with open(path, "rb") as file:
            start = file.read(20)
    except OSError as error:
        raise UsageError("%s: %s" % (path, error.strerror), USAGE)
    # An object file (type 1) for x86-64 (machine 62).
    if start[:5] != b"\x7fELF\x02" or start[16:20] != b"\x01\0\x3e\0":
        raise UsageError("%s is no kernel module for x86-64" % path, USAGE)


def arguments(argv):
    """The options, checked."""
    parser = argparse.ArgumentParser(
        prog="docs/course/judge",
        description="Judges a module for a step of docs/course in a VM; prints TAP.",
    )
    parser.add_argument("step", metavar="STEP", help="1 to %d" % max(steps.STEPS))
    parser.add_argument("module", metavar="MODULE.ko|FOLDER", help="FOLDER has a Kbuild")
    parser.add_argument("--exercise", metavar="N", help="judge this exercise of the step")
    parser.add_argument(
        "--lab", default="course", help="a lab with a VM alpha and check=strict (course)"
    )
    args = parser.parse_args(argv)
    if not args.step.isdigit() or int(args.step) not in steps.STEPS:
        raise UsageError("there is no step %s: 1 to %d" % (args.step, max(steps.STEPS)), USAGE)
    args.step = int(args.step)
    known = exercises.EXERCISES.get(args.step, {})
    if args.exercise is not None:
        if not args.exercise.isdigit() or int(args.exercise) not in known:
            there = ", ".join(map(str, known))
            raise UsageError(
                "step %d has no exercise %s: %s" % (args.step, args.exercise, there), USAGE
            )
        args.exercise = known[int(args.exercise)]
    args.module = Path(os.path.expanduser(args.module)).absolute()
    if args.module.is_dir():
        if not any((args.module / name).exists() for name in ("Kbuild", "Makefile")):
            raise UsageError("%s has neither Kbuild nor Makefile" % args.module, USAGE)
    else:
        chosen(args.module)
    return args


def run(args, tap, out):
    """Builds, loads, judges."""
    module = args.module
    if module.is_dir():
        module, said = compiled(args.module, out)
        tap.line("it compiles without a warning", said.strip())
        if not module:
            return
    bench = Bench(args.lab)
    try:
        judge(bench, tap, module, args.step, args.exercise)
        healthy = not bench.complaints()
    except LabError as error:
        tap.line("the VM answers", error.text())
        healthy = False
    if not healthy and args.lab == "course":
        show("the VM's kernel is not to be trusted any more; the lab is taken down")
        bench.down()


def main(argv):
    """The command; returns its exit status."""
    tap = Tap()
    try:
        with tempfile.TemporaryDirectory(prefix="sg-course-") as out:
            run(arguments(argv), tap, out)
    except (LabError, UsageError) as error:
        print(error.text(), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return tap.end()
