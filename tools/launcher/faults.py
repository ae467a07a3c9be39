# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on demand (docs/manual/faults.md): the verb faults.

The rules are a property of each adapter; QEMU checks them and keeps them until it ends.
"""
import json
from pathlib import Path

from .errors import LabError, UsageError
from .qmp import Monitor

HINT = "docs/manual/faults.md has the grammar, and what a driver sees"


def add(parser):
    """The options of the verb."""
    parser.add_argument(
        "rules",
        nargs="*",
        metavar="RULE",
        help="a rule such as 'command op=REG_MR fail nth=3'; the new rules replace the old ones",
    )
    parser.add_argument("--file", metavar="FILE", help="read rules from a file, one in a line")
    parser.add_argument("--clear", action="store_true", help="end all rules")
    parser.add_argument("--show", action="store_true", help="only show the rules and their counts")


def wanted(args):
    """The text of the rules; None: change nothing."""
    asked = [bool(args.rules or args.file), args.clear, args.show]
    if sum(asked) > 1:
        raise UsageError("faults takes rules, --clear or --show, one of them", HINT)
    if args.clear:
        return ""
    if not asked[0]:
        return None
    lines = list(args.rules)
    if args.file:
        try:
            lines.append(Path(args.file).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("faults --file %s: %s" % (args.file, error))
    return "\n".join(lines)


def exchange(folder, vm, text, adapter=0):
    """Sets the rules; returns the state of the old ones."""
    path = "r%d" % adapter
    with Monitor(folder, vm) as monitor:
        state = json.loads(monitor.run("qom-get", path=path, property="faults-state"))
        monitor.run("qom-set", path=path, property="faults", value=text)
    return state


def run(folder, args):
    """Sets the rules, if there are any; returns what is in force."""
    vm = folder.running(args.vm)
    if vm["driver"] != "staghorn" or not 0 <= args.adapter <= len(vm["adapters"]):
        raise UsageError("%s has no Staghorn adapter %d" % (args.vm, args.adapter))
    text = wanted(args)
    path = "r%d" % args.adapter
    with Monitor(folder, args.vm) as monitor:
        if text is not None:
            try:
                monitor.run("qom-set", path=path, property="faults", value=text)
            except LabError as error:
                raise UsageError(str(error), HINT)
        state = json.loads(monitor.run("qom-get", path=path, property="faults-state"))
    return dict(state, vm=args.vm, adapter=args.adapter)


def text_of(found):
    """The result of `run` as text."""
    who = "%s, adapter %d" % (found["vm"], found["adapter"])
    if not found["rules"]:
        return "%s: no faults" % who
    lines = ["%s: %d fault rules" % (who, len(found["rules"]))]
    for rule in found["rules"]:
        counts = "applied %d" % rule["applied"]
        if rule["seen"]:
            counts += " of %d" % rule["seen"]
        lines.append("  %s: %s%s" % (rule["rule"], counts, ", spent" if rule["spent"] else ""))
    if found["late"]:
        lines.append("  interrupts that wait: %d" % found["late"])
    return "\n".join(lines)
