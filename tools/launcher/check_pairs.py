# SPDX-License-Identifier: GPL-2.0-or-later
"""`crash check --together`: pairs of crash images of two VMs are judged by scripts in two VMs.

The script runs in both VMs at once, and both have to end with status 0; or in the VM of
--checker-vm, while --peer-script runs in the other one.
"""
import json
from html import escape
from pathlib import Path

from . import check, check_report, explore, explore_report, pairs, plans, verdicts
from .check_run import Run
from .errors import UsageError
from .pairs_lab import PairLab

REFUSED = ("reads", "nested", "nested_depth", "shard", "compare")
PAIRS_SHOWN = 20  # pairs that a bug lists


class PairChecker(check.Checker):
    """What judges a pair.  vm: the only VM whose script's status counts, or None; peer: what runs
    in the other one then."""

    def __init__(self, script, setup, copies, vm, peer, **settings):
        super().__init__(script, setup, copies, **settings)
        self.vm, self.peer = vm, peer
        check.Checker(peer)  # has no wrong lines

    def counts(self, name):
        return self.vm in (None, name)

    def script_of(self, name):
        return self.script if self.counts(name) else self.peer

    def settings(self):
        return {**super().settings(), "checker-vm": self.vm, "peer-script": self.peer}


def _peer_of(args):
    if args.peer_script is not None and args.peer_script_file is not None:
        raise UsageError("crash check: --peer-script and --peer-script-file exclude each other")
    if args.peer_script_file is not None:
        return check.read_text(args.peer_script_file, "--peer-script-file")
    return args.peer_script


def _require(args):
    """Refuses what pairs do not have."""
    names, peer = args.vm, _peer_of(args)
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
        raise UsageError("crash check --together goes without --jobs: a pair takes two VMs")
    if args.checker_vm is not None and args.checker_vm not in names:
        raise UsageError("--checker-vm %s: it is neither of the two VMs" % args.checker_vm)
    if args.checker_vm is None and peer is not None:
        raise UsageError("--peer-script goes with --checker-vm, which names the other VM")
    if Path(args.explored).is_file():
        raise UsageError("crash check --together needs a recording, not a file")


def checker_of(args, found):
    """The PairChecker that the options describe."""
    one = check.checker_of(args, found.sides[0])
    return PairChecker(
        *(one.script, one.setup, one.copies, args.checker_vm, _peer_of(args) or "true"),
        timeout=one.timeout,
        memory=one.memory,
        cpus=one.cpus,
        vm_arguments=one.vm_arguments,
    )


def judge(found, checker, units, args, say):
    """Checks what the journal does not have; returns {key: verdict}."""
    identity = checker.identity(found)
    checker.save(found.folder / check.FOLDER)
    path = Path(args.journal or found.folder / check.VERDICTS)
    with verdicts.Journal(path) as journal:
        check.require_same(journal.done, identity, path)
        todo = check.left(units, journal.done)
        if todo:
            with PairLab(found, checker, say) as lab:
                run = Run(lab, found, (), checker.timeout, args.repeat, identity)
                run.run(todo, journal, say, len(units))
        return dict(journal.done)


def run(args, say):
    """The verb; returns the exit status."""
    _require(args)
    quiet = (lambda text: None) if args.json else say
    source = pairs.Source(args.explored)
    source.require(args.vm)
    found = pairs.make(args, source, args.vm, quiet)
    checker = checker_of(args, found)
    units = found.units(args.promises)
    if not units:
        say("there is nothing to check: %s and %s have no pair of images" % tuple(found.names))
        say("on a platform that both claim" if not args.platform else "on these platforms")
        return check.NO_VERDICT
    for name in (check_report.RESULT, check_report.JUNIT):
        (found.folder / name).unlink(missing_ok=True)
    done = judge(found, checker, units, args, quiet)
    told = result(found, checker, units, done, args.promises)
    write(found, told)
    if args.json:
        print(json.dumps(told, indent=1))
    else:
        for line in lines(told):
            print(line)
    say("results are in %s" % found.folder)
    return {"good": check.GOOD, "bugs": check.BUGS}.get(told["verdict"], check.NO_VERDICT)


# -- the result


def _events(found, members):
    """Of each VM the events that a cut lost, by their numbers."""
    tables = []
    for k, side in enumerate(found.sides):
        numbers = set()
        for _, unit, _ in members:
            numbers |= check_report.lost_of(_smallest(unit)["sides"][k])
        tables.append(plans.events(side.trace(), numbers, side.symbols()))
    return tables


def _deviations(one):
    return sum(len(each.get("deviations", each["plan"].split())) for each in one["sides"])


def _smallest(unit):
    """The occurrence with the fewest deviations; of several, the first."""
    return min(unit.occurrences, key=_deviations)


def _cause(found, unit, events):
    """Why the contents are not those of a cut in which everything survived, in words."""
    texts = []
    for name, side, table in zip(found.names, _smallest(unit)["sides"], events):
        words = check_report.cause(side, table)
        texts += [] if words == ["nothing is lost"] else ["%s: %s" % (name, x) for x in words]
    return texts or ["nothing is lost"]


def _bug(found, number, group, events):
    verdict, unit, line = min(
        group, key=lambda x: (_deviations(_smallest(x[1])), _smallest(x[1])["behind"], x[1].image)
    )
    one = _smallest(unit)
    rows = [
        [check_report.event_row(table[n]) for n in sorted(check_report.lost_of(side)) if n in table]
        for side, table in zip(one["sides"], events)
    ]
    platforms = {name for each in group for x in each[1].occurrences for name in x["platforms"]}
    return {
        "number": number,
        "verdict": verdict,
        "status": line["status"],
        "pairs": len({each[1].image for each in group}),
        "platforms": sorted(platforms),
        "cause": _cause(found, unit, events),
        "example": {
            "image": "+".join(side["image"] for side in one["sides"]),
            "images": [side["image"] for side in one["sides"]],
            "behind": one["behind"],
            "plan": one["plan"],
            "platform": one["platforms"][0],
            "platforms": one["platforms"],
            "lost": rows,
            "output": line["output"],
        },
        "all-pairs": sorted({each[1].image for each in group})[:PAIRS_SHOWN],
    }


def _bugs(found, units, done):
    """One bug for each verdict, status and cause."""
    bad = [(done[check.key(unit)], unit) for unit in units if check.key(unit) in done]
    bad = [(one["verdict"], unit, one) for one, unit in bad if one["verdict"] in verdicts.BUGS]
    events, groups = _events(found, bad), {}
    for each in bad:
        key = (each[0], str(each[2]["status"]), tuple(_cause(found, each[1], events)))
        groups.setdefault(key, []).append(each)
    rows = sorted(groups.values(), key=lambda x: min(_smallest(each[1])["behind"] for each in x))
    return [_bug(found, number, group, events) for number, group in enumerate(rows, 1)]


def _notes(found, missing, counts, checked):
    notes = []
    if missing:
        notes.append("%d pairs have not been checked." % missing)
    if counts["unsteady"]:
        notes.append("%d pairs were judged differently when checked twice." % counts["unsteady"])
    if counts["failed"]:
        notes.append("%d checks failed, so there is no verdict." % counts["failed"])
    if checked and not counts["good"] and not counts["unsteady"]:
        notes.append("No pair is good, so the checker may be wrong.")
    left = int(found.found["image-pairs"]) - found.found["image-pairs-explored"]
    if left:
        notes.append("%d pairs of images were left out (--limit)." % left)
    points = sum(x["point-pairs"] - x["point-pairs-explored"] for x in found.found["platforms"])
    if points:
        notes.append("%d pairs of crash points were left out (--limit)." % points)
    if found.found["point-pairs-contrary"]:
        notes.append(
            "%d pairs of crash points are unknown: frames of one content were sent several times."
            % found.found["point-pairs-contrary"]
        )
    if found.found["point-pairs-without-images"]:
        notes.append(
            "%d pairs of crash points have no images (--max-images of the exploration)."
            % found.found["point-pairs-without-images"]
        )
    return notes


def result(found, checker, units, done, promises=False):
    """The content of check.json: the same for the same verdicts, in whatever order they came."""
    checked = [done[check.key(unit)] for unit in units if check.key(unit) in done]
    counts = {name: sum(one["verdict"] == name for one in checked) for name in verdicts.VERDICTS}
    bugs = _bugs(found, units, done)
    missing = len(units) - len(checked)
    doubt = missing + counts["failed"] + counts["unsteady"]
    return {
        "version": 1,
        "verdict": "bugs" if bugs else "none" if doubt or not checked else "good",
        "run": found.run,
        "target": " and ".join(found.names),
        "machines": found.names,
        "checker": checker.settings(),
        "platforms": found.platforms,
        "promises": promises,
        "explored": {name: found.found[name] for name in found.found if name != "pairs"},
        "pairs": len(units),
        "checked": len(checked),
        "verdicts": {name: count for name, count in counts.items() if count},
        "bugs": bugs,
        "notes": _notes(found, missing, counts, checked),
    }


def _lost_lines(told, bug):
    for name, rows in zip(told["machines"], bug["example"]["lost"]):
        for text in list(check_report.lost_lines(rows))[:PAIRS_SHOWN]:
            yield "%s: %s" % (name, text)


def _example(told, bug):
    """Which pair it is, in words."""
    example = bug["example"]
    return "; ".join(
        "%s: image %s, behind event %d" % row
        for row in zip(told["machines"], example["images"], example["behind"])
    )


def lines(told):
    """The result as text for a terminal."""
    counts = ", ".join("%d %s" % (count, name) for name, count in told["verdicts"].items())
    yield "%d pairs of images of %s on %s checked: %s" % (
        *(told["checked"], told["target"], ", ".join(told["platforms"]), counts or "none"),
    )
    yield "%s consistent cuts, %d pairs of crash points, %s pairs of images" % (
        " + ".join(each["cuts"] for each in told["explored"]["platforms"] if each["point-pairs"]),
        sum(each["point-pairs"] for each in told["explored"]["platforms"]),
        told["explored"]["image-pairs"],
    )
    for bug in told["bugs"]:
        yield ""
        yield "Bug %d: %s (%d pair%s)" % (
            *(bug["number"], check_report.describe(bug)),
            *(bug["pairs"], "" if bug["pairs"] == 1 else "s"),
        )
        yield "  cause: " + "; ".join(bug["cause"])
        yield "  example: %s, on %s" % (_example(told, bug), bug["example"]["platform"])
        for text in _lost_lines(told, bug):
            yield "    lost by " + text
        for line in bug["example"]["output"].strip().splitlines()[-3:]:
            yield "  printed: " + line[:200]
    yield from told["notes"]


def page(told):
    """The report as HTML; every text may come from a stranger."""
    parts = ["<p>%s</p>" % escape(line) for line in list(lines(told))[:2]]
    checker = told["checker"]
    parts.append("<pre>%s</pre>" % escape(checker["script"]))
    if checker["checker-vm"]:
        parts.append("<p>It runs in %s; in the other VM runs:</p>" % escape(checker["checker-vm"]))
        parts.append("<pre>%s</pre>" % escape(checker["peer-script"]))
    parts += ['<p class="note">%s</p>' % escape(note) for note in told["notes"]]
    for bug in told["bugs"]:
        parts.append("<h3>Bug %d: %s</h3>" % (bug["number"], escape(check_report.describe(bug))))
        rows = [("cause", "; ".join(bug["cause"])), ("pairs", bug["pairs"])]
        rows += [("platforms", ", ".join(bug["platforms"])), ("example", _example(told, bug))]
        rows += [("lost by", text) for text in _lost_lines(told, bug)]
        cells = ("<tr><td>%s</td><td>%s</td></tr>" % (a, escape(str(b))) for a, b in rows)
        parts.append("<table>%s</table>" % "".join(cells))
        parts.append("<pre>%s</pre>" % escape(bug["example"]["output"]))
    return explore_report.document("Crash check of " + told["target"], parts)


def write(found, told):
    """Writes check.json, JUnit and the report."""
    explore.write(found.folder / check_report.RESULT, json.dumps(told, indent=1) + "\n")
    explore.write(found.folder / check_report.JUNIT, check_report.junit(told, "pairs"))
    explore.write(found.folder / explore.PAGE, page(told))


def add(add_option, positive):
    """Adds the options about pairs to those of crash check."""
    add_option(
        "--together",
        action="store_true",
        help="of two VMs (--vm twice) pairs of images that one power failure of both may leave, "
        "judged in two VMs with a network between them; results are in RECORDING/together-VM-VM",
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
        help="with --checker-vm: what runs in the other VM at the same time; its status does not "
        "count, and it need not end",
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
