# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --together`: pairs of crash images of two VMs are judged by scripts in two VMs.

The script runs in both VMs at once, and both have to end with status 0; or in the VM of
--checker-vm, while --peer-script runs in the other one.
"""
from pathlib import Path

from . import check, check_report, check_timeline, merge, pairs, pairs_lab, pairs_reduce
from . import pairs_report, reduce, verdicts
from .errors import UsageError
from .explored import PAIRS
from .pairs_lab import PairLab

REFUSED = ("reads", "nested", "nested_depth", "compare")
# What crash merge has to know of folders of pairs.
PARTS = merge.Kind(
    pairs.Pairs,
    PAIRS,
    pairs_lab.restored,
    lambda found, checker, selection, done, *_: pairs_report.result(
        *(found, checker, selection, done)
    ),
)


def _require(args):
    """Refuses what pairs do not have."""
    names, peer = args.vm, pairs_lab.peer_of(args)
    if Path(args.explored).is_file():
        raise UsageError(
            "crash check --together needs a recording, not a file",
            "A kept bug of a pair is judged by  ./staghorn crash check %s" % args.explored,
        )
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(
            "crash check --together: name two VMs",
            "As in  ./staghorn crash check --together --vm alpha --vm beta ... RECORDING",
        )
    for name in REFUSED:
        if getattr(args, name):
            raise UsageError(
                "crash check --together goes without --%s" % name.replace("_", "-"),
                "Check each VM alone for that:  --vm %s" % names[0],
            )
    if args.jobs != 1:
        raise UsageError(
            "crash check --together goes without --jobs: a pair takes two VMs",
            "Shards can run side by side:  --shard I/N, and crash merge afterwards",
        )
    if args.checker_vm is not None and args.checker_vm not in names:
        raise UsageError("--checker-vm %s: it is neither of the two VMs" % args.checker_vm)
    if args.checker_vm is None and peer is not None:
        raise UsageError("--peer-script goes with --checker-vm, which names the other VM")
    if args.shard:
        verdicts.shard_of(args.shard)


def checker_of(args, found):
    """The PairChecker that the options describe."""
    one = check.checker_of(args, found.sides[0])
    return pairs_lab.for_two(one, args.checker_vm, pairs_lab.peer_of(args) or "true")


class _Judges(check.Judges):
    def make(self):
        return PairLab(self.explored, self.platform, self.checker, self.say)


def _judge(found, checker, selection, args, say):
    """The result: what the journal does not have is checked; without --shard bugs get minimal
    examples."""
    platform = selection.platforms[0]
    with _Judges(found, checker, platform, 1, say) as judges:
        done = check.check(found, checker, selection, None, args, say, judges)
        told = pairs_report.result(found, checker, selection, done)
        if told["bugs"] and not args.no_reduce and not args.shard:
            if pairs_reduce.reduce_all(found, checker, told, judges.get, say):
                told = pairs_report.result(found, checker, selection, done)
            told["notes"] += reduce.notes(told["bugs"])
    return told


def run(args, say):
    """The verb; returns the exit status."""
    _require(args)
    quiet = (lambda text: None) if args.json else say
    source = pairs.Source(args.explored)
    source.require(args.vm)
    found = pairs.make(args, source, args.vm, quiet)
    checker = checker_of(args, found)
    # --limit is of the exploration here: it chooses crash points, too.
    selection = check.Selection(found, args.platform, args.promises, None, args.shard)
    if not selection.units:
        say("there is nothing to check: %s and %s have no pair of images" % tuple(found.names))
        say("on a platform that both claim" if not args.platform else "on these platforms")
        return check.NO_VERDICT
    if not selection.mine:  # so a shard that is done differs from one that failed
        say("shard %s has no pairs: those of %s are in others" % (args.shard, found.folder))
        return check.GOOD
    if args.shard:  # the files of results are those of all shards
        told = _judge(found, checker, selection, args, quiet)
        return check_report.show(told, pairs_report.lines, args.json)
    for name in (check_report.RESULT, check_report.JUNIT):
        (found.folder / name).unlink(missing_ok=True)
    return end(args, found.folder, _judge(found, checker, selection, args, quiet), say)


def end(args, folder, told, say, explored_folder=None):
    """Writes and prints a result; returns the exit status."""
    check_timeline.add_pairs(pairs.Pairs(explored_folder or folder), told)
    pairs_report.write(folder, told)
    status = check_report.show(told, pairs_report.lines, args.json)
    say("results are in %s" % folder)
    return status


def add(add_option, positive):
    """Adds the options about pairs to those of crash check."""
    add_option(
        "--together",
        action="store_true",
        help="of two VMs (--vm twice) pairs of images that one power failure of both may leave, "
        "judged in two VMs with a network between them, in shards if wanted, with minimal examples "
        "of bugs; results are in RECORDING/together-VM-VM",
    )
    add_option(
        "--checker-vm",
        metavar="NAME",
        help="with --together: the script runs in this VM only [in both, and both have to end "
        "well]",
    )
    add_option(
        "--peer-script",
        metavar="TEXT",
        help="with --checker-vm, or for a bug kept with it: what runs in the other VM at the "
        "same time; its status does not count, and it need not end",
    )
    add_option("--peer-script-file", metavar="FILE", help="the same, in a file")
    add_option(
        "--pair-strategy",
        metavar="LIST",
        help="with --together: the images of each VM, as of crash explore [that of EXPLORED, or "
        "%s]" % pairs.STRATEGY,
    )
    add_option(
        "--pair-seed",
        type=positive(int, 0, 1 << 62),
        default=pairs.SEED,
        metavar="S",
        help="with --together: which pairs are taken, if there are more than --limit (%d) allows "
        "[%%(default)s]" % pairs.PAIRS_MOST,
    )


def require_alone(args):
    """Without --together there is one VM, and nothing of the above."""
    if len(args.vm) > 1:
        raise UsageError("crash check: several --vm go with --together")
    for name in ("checker_vm", "peer_script", "peer_script_file", "pair_strategy"):
        if getattr(args, name) is not None:
            raise UsageError("--%s goes with --together" % name.replace("_", "-"))
