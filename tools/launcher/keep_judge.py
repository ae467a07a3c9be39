# SPDX-License-Identifier: GPL-2.0-or-later
"""A kept bug is judged again: `crash check FILE`."""
import json
import tempfile
import traceback
from pathlib import Path

from . import check, check_report, verdicts
from .check_lab import CheckLab
from .check_run import check_unit
from .errors import EXEC_FAILED, LabError, UsageError
from .explored import Explored, Unit
from .keep import unpack

BUG, GONE, NO_VERDICT = 1, 0, EXEC_FAILED


def changed(checker, args):
    """The kept checker, with what the user's options replace: programs by their paths."""
    new = check.copies_of(args.copy)
    paths = [path for _, path in new]
    copies = [each for each in checker.copies if each[1] not in paths] + new
    script, setup = check.texts_of(args)
    return check.Checker(
        checker.script if script is None else script,
        checker.setup if setup is None else setup,
        copies,
        timeout=args.timeout or checker.timeout,
        memory=args.memory or checker.memory,
        cpus=args.cpus or checker.cpus,
        vm_arguments=args.vm_arg or checker.vm_arguments,
    )


def verdict(head, one):
    """(exit status, sentence) of a line of verdict about a kept bug."""
    expected = head["expected"]
    if one["verdict"] in ("failed", "unsteady"):
        return NO_VERDICT, "it cannot be judged (%s): %s" % (one["verdict"], one["output"].strip())
    if one["verdict"] in verdicts.BUGS:
        same = (one["verdict"], one["status"]) == (expected["verdict"], expected["status"])
        return BUG, "the bug is there" if same else (
            "the image is bad in another way: %s, status %s, instead of %s, status %s"
            % (one["verdict"], one["status"], expected["verdict"], expected["status"])
        )
    if expected["verdict"] == check_report.STATE and one["digest"] not in expected["allowed"]:
        return BUG, "the bug is there: the state is neither of the right ones"
    return GONE, "the bug is gone: the image is good"


def judge(args, say):
    """`crash check FILE`; returns the exit status."""
    try:
        for name, text in (
            ("platform", args.platform),
            ("shard", args.shard),
            ("journal", args.journal),
            ("limit", args.limit),
        ):
            if text:
                raise UsageError("crash check: --%s has no meaning for a kept bug" % name)
        with tempfile.TemporaryDirectory(prefix="staghorn-kept-") as folder:
            return _judge(args, Path(folder), say)
    except LabError as error:
        error.status = NO_VERDICT  # to `git bisect run`, others would be a verdict
        raise
    except OSError as error:
        raise LabError(
            "%s: %s" % (error.filename or args.explored, error.strerror), None, NO_VERDICT
        )
    except Exception:  # a mistake of ours
        traceback.print_exc()
        return NO_VERDICT


def _judge(args, folder, say):
    head, checker = unpack(args.explored, folder)
    checker = changed(checker, args)
    explored = Explored(folder)
    occurrence = head["occurrence"]
    promises = [check.promise_line(each) for each in explored.promises()]
    number = occurrence["promises"] if head["with-promises"] else None
    unit = Unit(occurrence["image"], number, (occurrence,))
    quiet = (lambda text: None) if args.json else say
    with CheckLab(explored.extents, occurrence["platforms"][0], checker, 1, quiet) as lab:
        vm = lab.start(lab.vms[0])
        one = check_unit(vm, explored, unit, promises, checker.timeout, args.repeat)
    status, sentence = verdict(head, one)
    if args.json:
        found = {"version": 1, "status": status, "text": sentence, **one, "cause": head["cause"]}
        print(json.dumps(found, indent=1))
    else:
        print(sentence)
        print(one["output"].rstrip())
    return status
