# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs crash check, crash merge and crash keep: their options."""
import argparse
import json
import os
import sys
from pathlib import Path

from . import (
    check,
    check_image,
    check_nested,
    check_pairs,
    check_reads,
    check_report,
    check_timeline,
    check_vm,
    compare,
    keep,
)
from . import keep_judge, merge, pairs, recoveries, reduce
from .explored import Explored

CHECK_TEXT = """Judges crash images: each is given to a shell script in a VM, whose status 0 means
that the image is good.  The VM is put back for each image in milliseconds.  EXPLORED is the folder
of results of `crash explore --strategy`, or a file of `crash keep`.

The script finds CRASH_IMAGE, CRASH_BEHIND (the event behind which the power failed) and
CRASH_PLATFORM in its environment.  Statuses 126 and 127 are mistakes of the script.  A hang, a
panic, an oops, a machine check, a reboot and a VM that switches itself off are bad, too.

Verdicts are written to a journal at once; the same command goes on where it ended.  Results:
EXPLORED/check.json, check-junit.xml, and a section of report.html.

With --together it judges pairs of images of two VMs of the recording RECORDING; results are in
RECORDING/together-VM-VM.

Exit status: 0: no bug; 1: bugs; 2: wrong arguments; 4: no verdict, because nothing was checked or
checks failed; 5 and others: it did not work.  For a file of `crash keep`: 1: the bug is there, 0:
it is gone, 125: it could not be judged."""

MERGE_TEXT = """Joins the verdicts of checks with --shard, and writes the results that one check
without shards would write, also of their recoveries (--nested).  OUT is a folder for them, which
may be EXPLORED itself.  Of an EXPLORED folder all journals are taken; at least one is needed, or
OUT has to be one.  With --reads these are the journals of checks with --reads.  Folders of pairs of
images (RECORDING/together-VM-VM) are joined as well.

Exit status: as of crash check; 4 if verdicts are missing and no bug is known."""

KEEP_TEXT = """Writes one file with everything that shows a bug again: the image and its base, the
checker with its programs, and what it judged (docs/bug-format.md).  `crash check FILE` judges it
again, in seconds and without the recording.  A bug of a pair of images (RECORDING/together-VM-VM)
is judged in two VMs.  If the file has a bug of a recovery, and the script or
its programs are replaced, the power is cut again while these recover."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def _positive(kind, low, high):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError("%s is not within %s to %s" % (text, low, high))
        return value

    return parse


def _jobs(text):
    return _positive(int, 1, os.cpu_count() or 1)(text)


def do_check(args):
    if args.image is not None and not Path(args.explored).is_file():
        return check_image.judge(args, say)
    if args.together:
        return check_pairs.run(args, say)
    if Path(args.explored).is_file():
        return keep_judge.judge(args, say)
    check_pairs.require_alone(args)
    explored = Explored(args.explored)
    checker = check.checker_of(args, explored)
    quiet = (lambda text: None) if args.json else say
    if args.vm:
        explored = check_vm.of(explored, args.vm[0], quiet)
    if args.reads:
        with check_reads.judges_of(explored, checker, args, quiet) as judges:
            rounds = check_reads.run(explored, checker, args, quiet, judges)
            parts = (rounds.explored, checker, rounds.selection, rounds.marks, rounds.done)
            return _judged(args, *parts, quiet, judges, {"reads": rounds.info})
    selection = check.Selection(explored, args.platform, args.promises, args.limit, args.shard)
    if not selection.units:
        say(
            "there is nothing to check: no image of %s is on %s"
            % (args.explored, ", ".join(selection.platforms) or "a platform that claims it")
        )
        return check.NO_VERDICT
    again = args.nested or args.nested_depth
    follows = (args.nested_depth or 1) > 1  # images of other shards may lead to some of this one
    if not selection.mine and not follows:  # so a shard that is done differs from one that failed
        say("shard %s has no images: those of %s are in others" % (args.shard, args.explored))
        return check.GOOD
    if not args.shard:  # what is there afterwards is of this check, also if it fails
        for name in (check_report.RESULT, check_report.JUNIT):
            (explored.folder / name).unlink(missing_ok=True)
    marks = None
    if args.compare:
        platform = selection.platforms[0]
        marks = compare.states(explored, platform, args.promises, args.compare)
    nested = None
    if again:
        nested = check_nested.Nested(explored, checker, selection, args, quiet)
    platform, more = selection.platforms[0], {}
    with check.Judges(explored, checker, platform, args.jobs, quiet) as judges:
        done = check.check(explored, checker, selection, marks, args, quiet, judges)
        if nested:
            more["nested"] = nested.run(judges, done, marks)
        return _judged(args, explored, checker, selection, marks, done, quiet, judges, more)


def _judged(args, explored, checker, selection, marks, done, quiet, judges, more):
    """The result of a check, with minimal examples; returns the exit status."""
    found = check_report.result(explored, checker, selection, done, marks, more)
    if found["bugs"] and not args.no_reduce and not args.shard:
        rest = (found, marks, done, quiet, judges)
        if reduce.reduce_all(explored, checker, selection, *rest):
            found = check_report.result(explored, checker, selection, done, marks, more)
        found["notes"] += reduce.notes(found["bugs"])
    if args.shard:  # the files of results are those of all shards
        status = check_report.show(found, check_report.lines, args.json)
        parts = sum(part.get("doubt", 0) for part in more.values())
        empty = status == check.NO_VERDICT and not selection.mine and not parts
        return check.GOOD if empty else status
    return _end(args, explored.folder, found)


def _end(args, folder, found, explored_folder=None):
    """Writes and prints a result; returns the exit status."""
    check_timeline.add(Explored(explored_folder or folder), found)
    check_report.write(folder, found, explored_folder)
    status = check_report.show(found, check_report.lines, args.json)
    say("results are in %s, the report is %s" % (folder, folder / "report.html"))
    return status


def do_merge(args):
    out, parts = Path(args.out), [Path(each) for each in args.parts]
    if args.reads:
        found, place = merge.merge_reads(out, parts)
        return _end(args, place, found)
    if any(map(pairs.is_folder, (out, *parts))):
        told, folder = merge.merge(out, parts, check_pairs.PARTS)
        return check_pairs.end(args, out, told, say, folder)
    found, explored_folder = merge.merge(out, parts)
    return _end(args, out, found, explored_folder)


def do_keep(args):
    explored = (pairs.Pairs if pairs.is_folder(args.explored) else Explored)(args.explored)
    number = args.bug or args.recovery_bug
    size = keep.keep(explored, number, args.output, not args.bug)
    if args.json:
        print(json.dumps({"file": args.output, "bytes": size}, indent=1))
    else:
        what = "bug" if args.bug else "recovery bug"
        say("%s %d is in %s, %d octets" % (what, number, args.output, size))
    return 0


def _add_vm(add_option):
    """Options about the checker's VM."""
    add_option("--memory", metavar="SIZE", help="the VM's memory [that of the recorded VM, or 1G]")
    add_option("--cpus", type=_positive(int, 1, 64), metavar="N", help="its CPUs [1]")
    add_option(
        "--vm-arg",
        action="append",
        default=[],
        metavar="WORDS",
        help="further options as of ./staghorn up, such as --vm-arg='--image consumers'",
    )


def _add_again(add_option):
    """Options about images that are made while images are checked."""
    add_option(
        "--reads",
        action="store_true",
        help="make the images that differ in what the checker reads, until it reads nothing new; "
        "results are in EXPLORED/%s" % check_reads.FOLDER,
    )
    add_option(
        "--nested",
        action="store_true",
        help="cut the power again while the script recovers from a good image: what it does is "
        "recorded and explored, and it judges these images, too",
    )
    add_option(
        "--nested-depth",
        type=_positive(int, 1, recoveries.DEPTH_MAX),
        metavar="N",
        help="so many cuts, one after the other, after the first one: with 2 the recoveries of "
        "images of recoveries are cut as well, and so on [1]; implies --nested",
    )
    add_option(
        "--nested-strategy",
        default=recoveries.STRATEGY,
        metavar="LIST",
        help="the images of a recovery, as of crash explore [%(default)s]",
    )
    add_option(
        "--nested-images",
        type=_positive(int, 1, 1 << 40),
        default=recoveries.IMAGES_MOST,
        metavar="N",
        help="at most so many images of each recovery [%(default)s]",
    )
    add_option(
        "--nested-recoveries",
        type=_positive(int, 1, 1 << 40),
        default=recoveries.RECOVERIES,
        metavar="N",
        help="of the images of each recovery at most so many are recovered and cut in turn, taken "
        "evenly [%(default)s]",
    )


def _add_checker(add_option):
    """Options about the script, what it finds, and the only image that it may judge."""
    add_option("--script", metavar="TEXT", help="the checker: a shell script for the VM")
    add_option("--script-file", metavar="FILE", help="the same, in a file")
    add_option("--setup", metavar="TEXT", help="a script that prepares the VM once")
    add_option("--setup-file", metavar="FILE", help="the same, in a file")
    add_option(
        "--copy",
        action="append",
        default=[],
        metavar="FILE:PATH",
        help="copy a file of the host into the VM, before the setup; may be repeated",
    )
    add_option(
        "--compare",
        action="store_const",
        const=compare.IMAGES,
        help="what the script prints is the program's state: at a crash point between two marks "
        "it has to be what it prints about the run at one of the two",
    )
    add_option(
        "--compare-texts",
        dest="compare",
        action="store_const",
        const=compare.TEXTS,
        help="likewise, and the right states are the texts of the marks `state`, as the program "
        "knew them: for file systems and others that keep some of their state in other memory",
    )
    add_option(
        "--promises",
        action="store_true",
        help="give the script the promises that are in force, in /run/crash/promises",
    )
    add_option(
        "--image",
        metavar="HASH[+N]",
        help="judge this image again, alone, with the checker of the check that EXPLORED had; +N: "
        "with N promises in force.  What was judged before does not count, and no file is written",
    )


def _add_check(verbs, judging):
    parser = verbs.add_parser(
        "check",
        help="judge crash images by a script in a VM",
        description=CHECK_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="staghorn crash check [options] EXPLORED\n"
        "       staghorn crash check --together --vm NAME --vm NAME [options] RECORDING",
    )
    add_option = parser.add_argument
    _add_checker(add_option)
    _add_again(add_option)
    add_option(
        "--timeout",
        type=_positive(float, 0.1, 86400.0),
        metavar="S",
        help="seconds that a check may take; then it hangs [10]",
    )
    add_option(
        "--repeat",
        type=_positive(int, 1, 100),
        default=2,
        metavar="N",
        help="check a bad image so many times; if verdicts differ, it is unsteady [%(default)s]",
    )
    add_option("--jobs", type=_jobs, default=1, metavar="N", help="VMs side by side [%(default)s]")
    add_option(
        "--platform",
        action="append",
        default=[],
        metavar="LIST",
        help="images of these platforms, such as adr,ddio=on [those that claim what was promised]",
    )
    add_option(
        "--limit",
        type=_positive(int, 1, 1 << 40),
        metavar="N",
        help="check at most N images, taken evenly over the run",
    )
    add_option(
        "--vm",
        action="append",
        default=[],
        metavar="NAME",
        help="whose images are checked: another VM of the recording with persistent memory, such "
        "as the requester; results are in EXPLORED/vm-NAME [the VM that was explored]",
    )
    check_pairs.add(add_option, _positive)
    add_option("--shard", metavar="I/N", help="check the I-th of N parts of the images or pairs")
    add_option(
        "--wait",
        type=_positive(float, 0.0, 1e6),
        default=0.0,
        metavar="S",
        help="with --shard and --reads or --nested-depth: wait so many seconds for what other "
        "shards have to find first [0: end, and go on when the command is given again]",
    )
    add_option(
        "--journal",
        metavar="FILE",
        help="where verdicts are written [EXPLORED/%s, or verdicts-I-of-N.jsonl]" % check.VERDICTS,
    )
    _add_vm(add_option)
    add_option("--no-reduce", action="store_true", help="do not look for minimal examples")
    add_option("--json", action="store_true", help="print the result as JSON")
    add_option("explored", metavar="EXPLORED", help="a folder of images, or a kept bug")
    parser.set_defaults(run=judging(do_check))


def add(verbs, run, judging):
    """Adds the verbs to those of crash.  judging: what runs those whose status is a verdict."""
    _add_check(verbs, judging)
    parser = verbs.add_parser(
        "merge",
        help="join the verdicts of several checks",
        description=MERGE_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--reads",
        action="store_true",
        help="join checks with --reads; results are in OUT/%s" % check_reads.FOLDER,
    )
    parser.add_argument("out", metavar="OUT", help="the folder of the results")
    parser.add_argument("parts", nargs="+", metavar="EXPLORED|JOURNAL", help="what is joined")
    parser.set_defaults(run=judging(do_merge))
    parser = verbs.add_parser(
        "keep",
        help="keep a bug as one file that shows it again",
        description=KEEP_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group, number = parser.add_mutually_exclusive_group(required=True), _positive(int, 1, 1 << 31)
    group.add_argument("--bug", type=number, metavar="N", help="of the bugs of images")
    group.add_argument(
        "--recovery-bug", type=number, metavar="N", help="of those of recoveries (--nested)"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("explored", metavar="EXPLORED", help="a folder that was checked")
    parser.set_defaults(run=run(do_keep))
