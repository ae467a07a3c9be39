# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb crash and its options: crash states of recorded runs."""
import argparse
import json
import os
import signal
import sys
import time
import traceback

from . import check_verbs, explore, explore_timeline, record
from .errors import FAILED, TIMEOUT, LabError, UsageError
from .state import LabFolder

RECORD_TEXT = """Runs a workload in the lab and records what its VMs do: all VMs are recorded, and
the scripts run at once, one in each VM that is named.  SCRIPT is a file of the host, which is
copied into the VM; behind -- are commands of the guest.  What they write is printed behind the
VM's name.  The recording ends when all of them have ended.

The folder has a trace of each VM, VM.trace, and record.json: what ran, with which status, and what
became of the traces.

Exit status: 0: recorded, and all scripts ended with status 0; 1: recorded, but a script failed;
125: a trace is not complete, which record.json explains; others as of ./staghorn."""


EXPLORE_TEXT = """Explores a recording: asks for each promise and each platform whether a power cut
could break it, and says whose store would be lost, and what is missing.  RECORDING is the folder of
`crash record`.  The folder of results, RECORDING/explored, has result.json, report.html and
junit.xml, and with --strategy the images that a power cut may leave.

What is promised: a completed Flush to persistence promises what was placed in its range; marks
promise what they name (docs/manual/marks.md).  --acks says what else counts.

Exit status: 0: no bug; 1: bugs; 2: wrong arguments; 3: a trace cannot be used; 4: no verdict,
because nothing was promised; 5 and others: it did not work."""


READS = ("reads", "reads_per_point")


def say(text):
    print(text, file=sys.stderr, flush=True)


def do_record(args):
    folder = LabFolder(args.lab)
    folder.require()
    if args.stop:
        return _stop(args, folder)
    scripts = record.parse_scripts(args.scripts)
    target = args.output or time.strftime("recording-%Y%m%d-%H%M%S")
    result = record.record(
        folder,
        target,
        scripts,
        args.server,
        args.timeout,
        (lambda text: None) if args.json else say,
        (lambda vm, line: say("%s: %s" % (vm, line))) if args.json else None,
    )
    if args.json:
        print(json.dumps(dict(result, folder=target), indent=1))
    else:
        say(record.summary(result, target))
    error = record.failure(result)
    if error:
        raise error
    return 0


def _start_options(args):
    """What the trace begins with, by absolute paths: results name it for later."""
    options = ["--onto", os.path.abspath(args.onto)] if args.onto else []
    for text in args.base:
        name, equals, file = text.partition("=")
        if not name or not equals or not file:
            raise UsageError("--base %s is not NAME=FILE" % text)
        options += ["--base", "%s=%s" % (name, os.path.abspath(file))]
    return options


def do_explore(args):
    options = _start_options(args)
    for name in ("target", "domain", "ddio", "arrivals", "acks", "strategy", "max_images") + READS:
        value = getattr(args, name)
        if value is not None:
            options += ["--" + name.replace("_", "-"), str(value)]
    status, result, out = explore.explore(
        args.recording,
        args.output,
        options,
        args.symbols,
        args.kallsyms,
        args.json,
        args.capture,
    )
    if args.json and result:
        print(json.dumps(result, indent=1))
    if result:
        for counter, name in explore.named(result):
            say("%s is %s" % (counter, name))
        for number, bug in enumerate([*result["bugs"], *result["not-claimed"]], 1):
            for text in explore_timeline.packet_texts(bug):
                say("bug %d: %s" % (number, text))
            say("bug %d again: %s" % (number, bug["again"]))
        say("results are in %s, the report is %s" % (out, out / explore.PAGE))
    return status


def _stop(args, folder):
    found = record.stop_all(folder)
    if args.json:
        print(json.dumps(found, indent=1))
    for name, vm in found.items():
        say("%s: the recording is %s%s" % (name, vm["state"], _why(vm)))
    if not found:
        say("nothing is recorded")
    return 0


def _why(vm):
    return ": " + vm["error"] if vm["error"] else ""


def _interrupted(number, _frame):
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def _run(work):
    def run(args):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, _interrupted)
        return work(args)

    return run


def judging(work):
    """Likewise for a verb whose status is a verdict: no failure has the status of one."""

    def judge(args):
        try:
            return work(args)
        except LabError as error:
            if error.status in (FAILED, TIMEOUT):
                error.status = explore.BROKEN
            raise
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return explore.BROKEN
        except OSError as error:
            text = "%s: %s" % (error.filename or "crash", error.strerror or error)
            raise LabError(text, None, explore.BROKEN) from error
        except Exception:  # a mistake of ours
            traceback.print_exc()
            return explore.BROKEN

    return _run(judge)


def _add_record(verbs):
    parser = verbs.add_parser(
        "record",
        help="run a workload and record it",
        description=RECORD_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="staghorn [--lab NAME] crash record [options] VM:SCRIPT... [-- VM COMMAND...]...",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="a new or empty folder for the recording [recording-DATE-TIME]",
    )
    parser.add_argument(
        "--server",
        action="append",
        metavar="VM",
        default=[],
        help="the VM's script does not end by itself: it gets SIGTERM when the others have ended, "
        "and its status does not count; may be repeated",
    )
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="seconds that a script may take [no limit]"
    )
    parser.add_argument(
        "--stop",
        action="store_true",
        help="end and complete a recording that goes on because its command was killed",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "scripts", nargs=argparse.REMAINDER, metavar="VM:SCRIPT", help="a script of the host"
    )
    parser.set_defaults(run=_run(do_record))


def _add_explore(verbs):
    parser = verbs.add_parser(
        "explore",
        help="ask which promises of a recording a power cut could break",
        description=EXPLORE_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="staghorn crash explore [options] RECORDING",
    )
    add_option = parser.add_argument
    add_option("--output", metavar="DIR", help="folder of the results [RECORDING/explored]")
    add_option("--target", metavar="VM", help="whose power fails, if several have NVDIMMs")
    add_option("--domain", metavar="LIST", help="none, adr, eadr, whole [all]")
    add_option("--ddio", metavar="LIST", help="on, off [all]")
    add_option(
        "--arrivals",
        metavar="WHEN",
        help="data under way to a line come behind what others store there: late; before: early; "
        "or in any order: any [any]",
    )
    add_option(
        "--acks",
        metavar="LIST",
        help="what acknowledges: flush, write, send, read, atomic, marks [flush,marks]",
    )
    add_option(
        "--strategy",
        metavar="LIST",
        help="write images: only, all-but, random:N:SEED, exhaustive, reads; bugs: one of each "
        "bug; with cluster:N only at so many crash points that are alike",
    )
    add_option("--reads", metavar="FILE", help="with reads: lines ADDRESS LENGTH of what is read")
    add_option(
        "--reads-per-point", type=int, metavar="N", help="plans of reads at a crash point [4096]"
    )
    add_option("--max-images", type=int, metavar="N", help="at most so many [10000]")
    add_option(
        "--onto",
        metavar="IMAGE",
        help="the recorded VM began with this crash image, as that of a recovery does",
    )
    add_option(
        "--base",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="what an NVDIMM had at the start, or what the image of --onto differs from; may be "
        "repeated",
    )
    add_option(
        "--symbols",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="an ELF file that ran, to name its functions and lines; may be repeated",
    )
    add_option("--kallsyms", metavar="FILE", help="the guest's /proc/kallsyms, likewise")
    add_option(
        "--capture",
        metavar="FILE.pcap",
        help="the capture of the lab (up --capture), to name the packets of lost messages",
    )
    add_option("--json", action="store_true", help="print the result as JSON")
    add_option("recording", metavar="RECORDING", help="the folder of a recording, or one trace")
    parser.set_defaults(run=judging(do_explore))


def add(parser):
    """Adds the verbs of `crash` to its parser."""
    crash_verbs = parser.add_subparsers(metavar="VERB", dest="crash_verb", required=True)
    _add_record(crash_verbs)
    _add_explore(crash_verbs)
    check_verbs.add(crash_verbs, _run, judging)
