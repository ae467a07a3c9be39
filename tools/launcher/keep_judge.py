# SPDX-License-Identifier: GPL-2.0-or-later
"""A kept bug is judged again: `crash check FILE`.

The image that showed the bug is judged.  A bug of a recovery is another thing once the recovery has
changed: what the old one left may not be what the new one leaves.  Then the power is cut again
while the new one recovers, as `crash check --nested` does it, from the image of the first cut on.
"""
import json
import tempfile
import traceback
from pathlib import Path

from . import check, check_nested, check_report, compare, pairs_lab, verdicts
from .check_lab import CheckLab
from .check_run import check_unit
from .errors import EXEC_FAILED, LabError, UsageError
from .explored import Explored, Unit
from .keep import unpack
from .pairs import Pairs
from .pairs_lab import PairLab

BUG, GONE, NO_VERDICT = 1, 0, EXEC_FAILED
JUDGED = ("script", "setup", "copies")  # settings whose change makes another recovery
MEANINGLESS = ("platform", "shard", "journal", "limit", "reads", "compare", "nested_depth", "vm")
MEANINGLESS += ("checker_vm", "image", "pair_strategy")


def changed(checker, args):
    """The kept checker, with what the user's options replace: programs by their paths."""
    new = check.copies_of(args.copy)
    paths = [path for _, path in new]
    copies = [each for each in checker.copies if each[1] not in paths] + new
    script, setup = check.texts_of(args)
    one = check.Checker(
        checker.script if script is None else script,
        checker.setup if setup is None else setup,
        copies,
        timeout=args.timeout or checker.timeout,
        memory=args.memory or checker.memory,
        cpus=args.cpus or checker.cpus,
        vm_arguments=args.vm_arg or checker.vm_arguments,
    )
    peer, vm = pairs_lab.peer_of(args), getattr(checker, "vm", None)
    if peer is not None and vm is None:
        raise UsageError(
            "crash check: --peer-script has no meaning for this kept bug: no VM runs another script"
        )
    if not isinstance(checker, pairs_lab.PairChecker):
        return one
    return pairs_lab.for_two(one, vm, checker.peer if peer is None else peer)


def verdict(head, one):
    """(exit status, sentence) of a line of verdict about a kept bug."""
    expected, what = head["expected"], "pair" if head["together"] else "image"
    if one["verdict"] in ("failed", "unsteady"):
        return NO_VERDICT, "it cannot be judged (%s): %s" % (one["verdict"], one["output"].strip())
    if one["verdict"] in verdicts.BUGS:
        same = (one["verdict"], one["status"]) == (expected["verdict"], expected["status"])
        return BUG, "the bug is there" if same else (
            "the %s is bad in another way: %s, status %s, instead of %s, status %s"
            % (what, one["verdict"], one["status"], expected["verdict"], expected["status"])
        )
    if expected["verdict"] == check_report.STATE and one["digest"] not in expected["allowed"]:
        return BUG, "the bug is there: the state is neither of the right ones"
    return GONE, "the bug is gone: the %s is good" % what


def judge(args, say):
    """`crash check FILE`; returns the exit status."""
    try:
        for name in MEANINGLESS:
            if getattr(args, name):
                option = name.replace("_", "-")
                raise UsageError("crash check: --%s has no meaning for a kept bug" % option)
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
    head, kept = unpack(args.explored, folder)
    checker = changed(kept, args)
    quiet = (lambda text: None) if args.json else say
    one, other = kept.settings(), checker.settings()
    again = args.nested or any(one[name] != other[name] for name in JUDGED)
    if not head["recovery"] and args.nested:
        raise UsageError(
            "crash check: --nested has no meaning for this kept bug: "
            + ("it is of a pair of images" if head["together"] else "no recovery has it")
        )
    if head["recovery"] and again:
        status, sentence, more = Repeated(head, checker, Explored(folder), args, quiet).judge()
    else:
        judge_it = _judge_pair if head["together"] else _judge_image
        status, sentence, more = judge_it(head, checker, folder, args, quiet)
    if args.json:
        found = {"version": 1, "status": status, "text": sentence, **more, "cause": head["cause"]}
        print(json.dumps(found, indent=1))
    else:
        print(sentence)
        print(more["output"].rstrip())
    return status


def _judge_pair(head, checker, folder, args, say):
    """(status, sentence, line of the verdict) of the pair that showed the bug."""
    found, platforms = Pairs(folder), head["occurrence"]["platforms"]
    (unit,) = found.units(platforms, head["with-promises"])
    with PairLab(found, platforms[0], checker, say) as lab:
        vms = lab.start(lab.vms[0])
        one = check_unit(vms, found, unit, [], checker.timeout, args.repeat)
    return (*verdict(head, one), one)


def _judge_image(head, checker, folder, args, say):
    """(status, sentence, line of the verdict) of the image that showed the bug."""
    explored, occurrence, outer = Explored(folder), head["occurrence"], None
    for each in head["recovery"]["cuts"] if head["recovery"] else ():
        outer = dict(each, outer=outer) if outer else each
    occurrence = dict(occurrence, outer=outer) if outer else occurrence
    promises = [check.promise_line(each) for each in explored.promises()]
    number = occurrence["promises"] if head["with-promises"] else None
    unit = Unit(occurrence["image"], number, (occurrence,))
    with CheckLab(explored.extents, occurrence["platforms"][0], checker, 1, say) as lab:
        vm = lab.start(lab.vms[0])
        one = check_unit(vm, explored, unit, promises, checker.timeout, args.repeat)
    return (*verdict(head, one), one)


class Repeated:
    """The recoveries of a kept bug are cut again."""

    def __init__(self, head, checker, explored, args, say):
        self.head, self.checker, self.explored, self.say = head, checker, explored, say
        kept = head["recovery"]
        vars(args).update(nested_depth=len(kept["cuts"]), nested_strategy=kept["strategy"])
        vars(args).update(nested_images=kept["images"], nested_recoveries=kept["recoveries"])
        vars(args).update(no_reduce=True, wait=0.0)
        self.options = args
        first = kept["cuts"][0]
        self.selection = check.Selection(
            explored, first["platforms"], head["with-promises"], None, None
        )

    def judge(self):
        """(status, sentence, more about it)."""
        nested = check_nested.Nested(
            *(self.explored, self.checker, self.selection, self.options, self.say)
        )
        expected = self.head["expected"]
        if expected["verdict"] == check_report.STATE:
            step = self.head["recovery"]["step"] or 0
            nested.window = compare.Window((step,), expected["allowed"])
        rest = (self.checker, self.selection, None, self.options, self.say)
        with check.Judges(
            *(self.explored, self.checker, self.selection.platforms[0], 1, self.say)
        ) as judges:
            done = check.check(self.explored, *rest, judges)
            one = done[check.key(self.selection.mine[0])]
            status, sentence = verdict(self.head, one)
            if status != GONE:
                return status, "without a second cut: " + sentence, one
            return self._verdict(nested.run(judges, done))

    def _verdict(self, found):
        expected = self.head["expected"]
        more = {"verdicts": found["verdicts"], "output": "\n".join(found["notes"])}
        numbers = (found["images"], found["recoveries"])
        if found["bugs"]:
            more["output"] = found["bugs"][0]["example"]["output"]
            rows = [(bug["verdict"], bug["status"]) for bug in found["bugs"]]
            same = (expected["verdict"], expected["status"]) in rows
            return (
                BUG,
                "the bug is there"
                if same
                else (
                    "recoveries are bad in another way: %s, status %s, instead of %s, status %s"
                    % (*rows[0], expected["verdict"], expected["status"])
                ),
                more,
            )
        if found["doubt"] or not found["images"]:
            return NO_VERDICT, "it cannot be judged: %s" % " ".join(found["notes"]), more
        return GONE, "the bug is gone: %d images of %d recoveries are good" % numbers, more
