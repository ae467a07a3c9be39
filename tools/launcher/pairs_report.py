# SPDX-License-Identifier: GPL-2.0-or-later
"""What a check of pairs of images found: bugs with one cause are one; JSON, a report, JUnit.

Every text may come from a stranger, so all of it is escaped.
"""
import json
from html import escape

from . import check_explain, check_report, check_timeline, explore, explore_report
from .explored import load

SHOWN = check_report.IMAGES_MAX  # pairs that a bug lists, and lines of lost stores of a VM


def _events(found, findings):
    """Of each VM the events that a cut lost, by their numbers."""
    tables = []
    for k, side in enumerate(found.sides):
        numbers = set()
        for each in findings:
            numbers |= check_report.lost_of(each[3]["sides"][k])
        tables.append(check_report.events_of(side, numbers))
    return tables


def _named(names, rows):
    """The causes of both VMs, without those of a VM that lost nothing."""
    texts = [
        "%s: %s" % (name, words)
        for name, row in zip(names, rows)
        for words in row
        if row != ["nothing is lost"]
    ]
    return texts or ["nothing is lost"]


def _cause(names, occurrence, events):
    """Why the contents are not those of a cut in which everything survived, in words."""
    rows = [check_report.cause(*each) for each in zip(occurrence["sides"], events)]
    return _named(names, rows)


def _root(names, small):
    """The cause of a minimal example: what has to be lost.  If nothing has, the order is wrong."""
    rows = [
        sorted({each["issuer"] for each in lost})
        or check_report.cause({"deviations": deviations, "plan": small["plan"]}, {})
        for lost, deviations in zip(small["lost"], small["deviations"])
    ]
    return _named(names, rows)


def _bug(number, members, events, minimal):
    verdict, status, unit, one, line = check_report.example_of(members)
    lost = [
        [check_report.event_row(table[n]) for n in sorted(check_report.lost_of(side)) if n in table]
        for side, table in zip(one["sides"], events)
    ]
    listed = "deviations" in one
    return {
        "number": number,
        "verdict": verdict,
        "status": status,
        "pairs": len({each[2].image for each in members}),
        "platforms": check_report.platforms_of(members),
        "example": {
            "image": unit.image,
            "images": [side["image"] for side in one["sides"]],
            "promises": unit.promises,
            "behind": one["behind"],
            "plan": one["plan"],
            "platform": one["platforms"][0],
            "platforms": one["platforms"],
            "deviations": [side["deviations"] for side in one["sides"]] if listed else None,
            "arrivals": [side.get("arrivals", []) for side in one["sides"]],
            "lost": lost,
            "output": line["output"],
        },
        "all-pairs": sorted({each[2].image for each in members})[:SHOWN],
        "minimal": minimal.get(check_report.key_of(unit)),
    }


def _bugs(found, findings, minimal):
    findings = list(findings)
    events, names = _events(found, findings), found.names
    groups = check_report.grouped(
        *(findings, minimal),
        lambda one: _cause(names, one, events),
        lambda small: _root(names, small),
    )
    return [
        dict(_bug(number, members, events, minimal), cause=words)
        for number, (words, members) in enumerate(groups, 1)
    ]


def _notes(found, platforms):
    """What was not explored."""
    notes, whole = [], found.found
    left = int(whole["image-pairs"]) - whole["image-pairs-explored"]
    if left:
        notes.append("%d pairs of images were left out (--limit)." % left)
    rows = [row for row in whole["platforms"] if row["platform"] in platforms]
    points = sum(row["point-pairs"] - row["point-pairs-explored"] for row in rows)
    if points:
        notes.append("%d pairs of crash points were left out (--limit)." % points)
    if whole["point-pairs-contrary"]:
        notes.append(
            "%d pairs of crash points are unknown: frames of one content were sent several times."
            % whole["point-pairs-contrary"]
        )
    if whole["point-pairs-without-images"]:
        notes.append(
            "%d pairs of crash points have no images (--max-images of the exploration)."
            % whole["point-pairs-without-images"]
        )
    return notes


def result(found, checker, selection, done):
    """The content of check.json: the same for the same verdicts, in whatever order they came."""
    units = selection.mine
    checked, counts = check_report.tally(units, done)
    minimal = load(found.folder / check_report.MINIMAL, "crash check") or {}
    bugs = _bugs(found, check_report.findings(units, done), minimal)
    bugs = [check_explain.pair(bug, found) for bug in bugs]
    doubt = len(units) - len(checked) + counts["failed"] + counts["unsteady"]
    notes = check_report.notes_of(units, checked, counts, "pair")
    return {
        "version": 1,
        "verdict": "bugs" if bugs else "none" if doubt or not checked else "good",
        "run": found.run,
        "target": " and ".join(found.names),
        "machines": found.names,
        "checker": checker.settings(),
        "platforms": selection.platforms,
        "promises": selection.promises,
        "explored": {name: found.found[name] for name in found.found if name != "pairs"},
        "pairs": len(units),
        "checked": len(checked),
        "verdicts": {name: count for name, count in counts.items() if count},
        "bugs": bugs,
        "notes": notes + _notes(found, selection.platforms),
    }


def _lost_lines(told, one):
    for name, rows in zip(told["machines"], one["lost"]):
        texts = list(check_report.lost_lines(rows))
        if len(texts) > SHOWN:
            texts[SHOWN:] = ["and %d more lines, in check.json" % (len(texts) - SHOWN)]
        for text in texts:
            yield "lost by %s: %s" % (name, text)


def _place(told, one):
    """Which pair it is, in words."""
    return "; ".join(
        "%s: image %s, behind event %d" % row
        for row in zip(told["machines"], one["images"], one["behind"])
    )


def _minimal(told, bug):
    """The minimal example of a bug, in words; what has to be lost follows."""
    one = bug["minimal"]
    if not any(one["deviations"]):
        return _place(told, one) + "; nothing has to be lost"
    return "%s; %s:" % (_place(told, one), check_report.minimal_words(one))


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
        yield "  example: %s, on %s" % (_place(told, bug["example"]), bug["example"]["platform"])
        if bug["minimal"]:
            yield "  minimal: " + _minimal(told, bug)
        for text in _lost_lines(told, bug["minimal"] or bug["example"]):
            yield "    " + text
        for line in bug["example"]["output"].strip().splitlines()[-3:]:
            yield "  printed: " + line[:200]
        for text in check_explain.lines(bug):
            yield "  " + text
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
        small = _minimal(told, bug) if bug["minimal"] else "not made"
        rows = [("cause", "; ".join(bug["cause"])), ("pairs", bug["pairs"])]
        rows += [("platforms", ", ".join(bug["platforms"]))]
        rows += [("example", _place(told, bug["example"])), ("minimal", small)]
        rows += [("", text) for text in _lost_lines(told, bug["minimal"] or bug["example"])]
        rows += check_explain.rows(bug)
        cells = ("<tr><td>%s</td><td>%s</td></tr>" % (a, escape(str(b))) for a, b in rows)
        parts.append("<table>%s</table>" % "".join(cells))
        parts.append("<pre>%s</pre>" % escape(bug["example"]["output"]))
        parts += check_timeline.parts(bug)
    return explore_report.document("Crash check of " + told["target"], parts)


def write(folder, told):
    """Writes check.json, JUnit and the report."""
    explore.write(folder / check_report.RESULT, json.dumps(told, indent=1) + "\n")
    explore.write(folder / check_report.JUNIT, check_report.junit(told, "pairs"))
    explore.write(folder / explore.PAGE, page(told))
