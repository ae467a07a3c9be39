# SPDX-License-Identifier: GPL-2.0-or-later
"""What a check found: bugs with one cause are one; JSON, a section of the report, JUnit.

Every text may come from a stranger, so all of it is escaped.
"""
import itertools
import json
from html import escape

from . import check_explain, check_timeline, explore, explore_report, messages, pages, plans
from . import verdicts
from .check_explain import Explainer
from .errors import LabError
from .explored import load

RESULT, JUNIT, MINIMAL = "check.json", "check-junit.xml", "minimal.json"
STATE = "state"  # the kind of a bug that --compare finds
IMAGES_MAX = 20  # images that a bug lists
LINES_MAX = 20  # lines about its lost stores in the text
MESSAGES_MAX = 5  # messages that the text names, of neighbours
WHAT = {
    "bug": "the checker ended with status %s",
    "hang": "the checker did not end",
    "oops": "the guest's kernel reported a mistake",
    "panic": "the guest's kernel panicked",
    "machine-check": "the guest read memory that cannot be read",
    "reboot": "the guest rebooted",
    "off": "the guest switched itself off",
    STATE: "neither the state of mark %s nor that of the next one",
}


# -- findings: (verdict, status, unit, occurrence, line of the journal)


def key_of(unit):
    return verdicts.key_of({"image": unit.image, "promises": unit.promises})


def _deviations(one):
    """How many deviations an occurrence has; what is not listed is guessed from its plan."""
    return len(one.get("deviations", one["plan"].split()))


def _smallest(occurrences):
    """The occurrence with the fewest deviations; of several, the first."""
    return min(occurrences, key=_deviations)


def findings(units, done, marks=None):
    """All that is bad."""
    for unit in units:
        one = done.get(key_of(unit))
        if not one:
            continue
        if one["verdict"] in verdicts.BUGS:
            yield one["verdict"], one["status"], unit, _smallest(unit.occurrences), one
        elif marks:
            wrong = marks.wrong(unit, one, done)
            if wrong:
                yield STATE, one["status"], unit, _smallest(wrong), one


def lost_of(occurrence):
    """The numbers of the events that a cut lost."""
    numbers = set()
    for each in occurrence.get("deviations", ()):
        numbers |= {n for n in each.get("lost") or () if isinstance(n, int)}
    return numbers


def events_of(explored, numbers):
    """{number: event} of the target's trace, with names of functions, messages and packets."""
    events = plans.events(explored.trace(), numbers, explored.symbols(), explored.kallsyms())
    messages.name(explored, events)
    return events


def cause(occurrence, events):
    """Why the content is not that of a cut in which everything survived, in words."""
    found = sorted({plans.issuer(events[n]) for n in lost_of(occurrence) if n in events})
    if found:
        return found
    if occurrence.get("deviations"):
        return sorted({"a %s" % each.get("what", "change") for each in occurrence["deviations"]})
    if occurrence.get("deviations") == []:
        return ["nothing is lost"]
    return ["plan " + occurrence["plan"]]


def example_of(members):
    """The finding with the fewest deviations; of several, the first."""
    return min(members, key=lambda x: (_deviations(x[3]), x[3]["behind"], x[2].image))


def platforms_of(members):
    """All platforms on which findings are."""
    rows = [one["platforms"] for each in members for one in each[2].occurrences]
    return sorted({name for row in rows for name in row})


def _bug(number, members, events, minimal, marks, done):
    verdict, status, unit, occurrence, line = example_of(members)
    return {
        "number": number,
        "verdict": verdict,
        "status": status,
        "images": len({each[2].image for each in members}),
        "platforms": platforms_of(members),
        "example": {
            "image": unit.image,
            "promises": unit.promises,
            "behind": occurrence["behind"],
            "in-force": occurrence["promises"],
            "plan": occurrence["plan"],
            "platform": occurrence["platforms"][0],
            "platforms": occurrence["platforms"],
            "deviations": occurrence.get("deviations"),
            "arrivals": occurrence.get("arrivals", []),
            "lost": [event_row(events[n]) for n in sorted(lost_of(occurrence)) if n in events],
            "output": line["output"],
        },
        "all-images": sorted({each[2].image for each in members})[:IMAGES_MAX],
        "minimal": minimal.get(key_of(unit)),
        "allowed": marks.allowed(occurrence["behind"], done) if verdict == STATE else None,
        "step": marks.step(occurrence["behind"]) if verdict == STATE else None,
    }


EVENT = ("number", "kind", "addr", "len", "message", "packets", "packets-sought")


def event_row(event):
    found = {name: event[name] for name in EVENT if name in event}
    return {**found, "issuer": plans.issuer(event)}


def _groups(found, cause_of):
    """Findings with one verdict, status and cause, as lists."""
    groups = {}
    for members in found:
        key = (members[0][0], str(members[0][1]), tuple(cause_of(members)))
        groups.setdefault(key, []).extend(members)
    return list(groups.values())


def grouped(found, minimal, cause_of, root_of):
    """[(cause, findings)]: one for each verdict, status and cause.  Groups whose minimal examples
    have one cause are one.

    cause_of(occurrence), root_of(minimal example): in words; the latter may have none."""

    def root(members):
        example = example_of(members)
        small = minimal.get(key_of(example[2]))
        return (small and root_of(small)) or cause_of(example[3])

    groups = _groups([[each] for each in found], lambda members: cause_of(members[0][3]))
    groups = _groups(groups, root)
    groups.sort(key=lambda members: min(each[3]["behind"] for each in members))
    return [(root(members), members) for members in groups]


def bugs(found, explored, minimal, marks=None, done=None):
    """The bugs of findings."""
    found = list(found)
    numbers = set().union(*(lost_of(each[3]) for each in found))
    events = events_of(explored, numbers)

    def root_of(small):
        needed = sorted({each["issuer"] for each in small["lost"]})
        return needed or ([] if small.get("deviations") else cause(small, {}))

    groups = grouped(found, minimal, lambda one: cause(one, events), root_of)
    return [
        dict(_bug(n, members, events, minimal, marks, done), cause=words)
        for n, (words, members) in enumerate(groups, 1)
    ]


def tally(units, done):
    """(lines of the journal about these units, {verdict: how many})."""
    checked = [done[key_of(unit)] for unit in units if key_of(unit) in done]
    return checked, {
        name: sum(one["verdict"] == name for one in checked) for name in verdicts.VERDICTS
    }


def notes_of(units, checked, counts, what="image"):
    """Why the verdict is less than it seems."""
    notes = []
    if len(units) > len(checked):
        notes.append("%d %ss have not been checked." % (len(units) - len(checked), what))
    if counts["unsteady"]:
        notes.append(
            "%d %ss were judged differently when checked twice." % (counts["unsteady"], what)
        )
    if counts["failed"]:
        notes.append("%d checks failed, so there is no verdict." % counts["failed"])
    if checked and not counts["good"] and not counts["unsteady"]:
        notes.append("No %s is good, so the checker may be wrong." % what)
    return notes


def result(explored, checker, selection, done, marks=None, more=None):
    """The content of check.json: the same for the same verdicts, in whatever order they came.

    more: what --reads or --nested found besides, by its name; its notes join the result's."""
    units = selection.mine
    checked, counts = tally(units, done)
    minimal = load(explored.folder / MINIMAL, "crash check") or {}
    found = bugs(findings(units, done, marks), explored, minimal, marks, done)
    explainer = Explainer(explored)
    found = [explainer.image(bug) for bug in found]
    more = explainer.more(more or {})
    parts = list(more.values())
    doubt = len(units) - len(checked) + counts["failed"] + counts["unsteady"]
    doubt += sum(part.get("doubt", 0) for part in parts)
    bad = found or any(part.get("bugs") for part in parts)
    verdict = "bugs" if bad else "none" if doubt or not checked else "good"
    notes = notes_of(units, checked, counts)
    for part in parts:
        notes += part["notes"]
    return {
        "version": 1,
        "verdict": verdict,
        "run": explored.run,
        "target": explored.target,
        "checker": checker.settings(),
        **selection.settings(),
        "compare": len(marks.events) if marks else None,
        "images": len(units),
        "images-explored": len(explored.images),
        "checked": len(checked),
        "verdicts": {name: count for name, count in counts.items() if count},
        "bugs": found,
        "notes": notes,
        **more,
    }


# -- text


def describe(bug):
    """What was found, in words."""
    text = WHAT[bug["verdict"]]
    number = bug["step"] if bug["verdict"] == STATE else bug["status"]
    return text % number if "%s" in text else text


def lost_lines(rows):
    """Lost stores in words: neighbours of one issuer together."""
    for issuer, group in itertools.groupby(rows, key=lambda row: row["issuer"]):
        group = list(group)
        first, last = group[0], group[-1]
        text = "event %d" % first["number"]
        if len(group) > 1:
            text = "events %d to %d" % (first["number"], last["number"])
        places = sorted(row["addr"] for row in group if "addr" in row)
        if places:
            text += ", from address %#x on" % places[0]
        yield text + ": " + issuer
        yield from _message_lines(group)


def _message_lines(rows):
    """The messages of lost placements: each once, however many segments it has."""
    texts = [message_text(row) for row in rows if "message" in row]
    texts = list(dict.fromkeys(texts))
    yield from ("  " + text for text in texts[:MESSAGES_MAX])
    if len(texts) > MESSAGES_MAX:
        yield "  and %d more messages" % (len(texts) - MESSAGES_MAX)


def message_text(row):
    """The message of a lost store in words, and its packets; "" if it has none."""
    if "message" not in row:
        return ""
    numbers = " or ".join(map(str, row.get("packets", ())))
    if not row.get("packets-sought", True):
        numbers = "not looked for"
    return messages.text(row["message"]) + (", packet " + numbers if numbers else "")


def minimal_words(one):
    """What follows of a minimal example: what has to be lost, or what is enough."""
    if one.get("shown", True):
        return "all of these have to be lost"
    return "these suffice; %d rounds did not show that all have to be lost" % one["rounds"]


def _first_lost(rows):
    """Lost stores for a terminal, as many as it may have."""
    texts = list(lost_lines(rows))
    yield from ("    " + text for text in texts[:LINES_MAX])
    if len(texts) > LINES_MAX:
        yield "    and %d more lines, in the report" % (len(texts) - LINES_MAX)


def lines(found):
    """The result as text for a terminal."""
    yield "%d images of %s checked: %s" % (
        found["checked"],
        ", ".join(found["platforms"]),
        ", ".join("%d %s" % (count, name) for name, count in found["verdicts"].items()) or "none",
    )
    if "reads" in found:
        yield "%(rounds)d rounds; the checker reads %(lines)d lines in %(ranges)d ranges" % (
            found["reads"]
        )
    for bug in found["bugs"]:
        example = bug["example"]
        yield ""
        yield "Bug %d: %s (%d image%s)" % (
            *(bug["number"], describe(bug), bug["images"], "" if bug["images"] == 1 else "s"),
        )
        yield "  cause: " + "; ".join(bug["cause"])
        yield "  example: image %s, behind event %d, %s, plan %s" % (
            *(example["image"], example["behind"], example["platform"], example["plan"]),
        )
        if bug["minimal"]:
            small = bug["minimal"]
            yield "  minimal: image %s; %s:" % (small["image"], minimal_words(small))
        yield from _first_lost((bug["minimal"] or example)["lost"])
        for line in example["output"].strip().splitlines()[-3:]:
            yield "  printed: " + line[:200]
        for text in check_explain.lines(bug):
            yield "  " + text
    yield from _nested_lines(found.get("nested"))
    for note in found["notes"]:
        yield note


def _nested_lines(found):
    """What became of recoveries that were cut."""
    if not found:
        return
    yield ""
    yield "%d recoveries recorded, %d images of them checked: %s" % (
        *(found["recoveries"], found["images"]),
        ", ".join("%d %s" % (count, name) for name, count in found["verdicts"].items()) or "none",
    )
    for depth, one in enumerate(found["depths"], 1):
        if found["depth"] > 1:
            yield "  depth %d: %d recoveries, %d images" % (
                *(depth, one["recoveries"], one["images"]),
            )
    for bug in found["bugs"]:
        second = bug["minimal"] or bug["example"]
        yield ""
        yield "Recovery bug %d: %s (%d images of %d recoveries)" % (
            *(bug["number"], describe(bug), bug["images"], bug["recoveries"]),
        )
        yield "  cause: " + "; ".join(bug["cause"])
        for number, cut in enumerate(bug["cuts"], 1):
            yield "  cut %d: image %s, behind event %d, %s, plan %s" % (
                *(number, cut["image"], cut["behind"], cut["platform"], cut["plan"]),
            )
        yield "  cut %d: image %s, behind event %d of %s/%s, plan %s" % (
            *(bug["depth"] + 1, second["image"], second["behind"]),
            *(bug["folder"], "recovery.trace", second["plan"]),
        )
        yield from _first_lost(second["lost"])
        for line in bug["example"]["output"].strip().splitlines()[-3:]:
            yield "  printed: " + line[:200]
        for text in check_explain.lines(bug):
            yield "  " + text


# -- HTML


def _row(*cells):
    return "<tr>%s</tr>" % "".join("<td>%s</td>" % escape(str(each)) for each in cells)


def _minimal(bug):
    small = bug["minimal"]
    return "%s; %s" % (small["image"], minimal_words(small)) if small else "not made"


def section(found):
    """A section of the report."""
    counts = "".join(_row(name, count) for name, count in found["verdicts"].items())
    parts = [
        "<h2>Images judged by a checker</h2>",
        "<p>%d of %d images on %s.</p>"
        % (found["checked"], found["images"], escape(", ".join(found["platforms"]))),
        "<pre>%s</pre>" % escape(found["checker"]["script"]),
        "<table>%s</table>" % counts,
    ]
    parts += ['<p class="note">%s</p>' % escape(note) for note in found["notes"]]
    for bug in found["bugs"]:
        example = bug["example"]
        parts.append("<h3>Judged %d: %s</h3>" % (bug["number"], escape(describe(bug))))
        parts.append(
            "<table>%s</table>"
            % "".join(
                (
                    _row("cause", "; ".join(bug["cause"])),
                    _row("images", bug["images"]),
                    _row("platforms", ", ".join(bug["platforms"])),
                    _row("example", "%(image)s, behind event %(behind)d, plan %(plan)s" % example),
                    _row("minimal", _minimal(bug)),
                    *(_row(*each) for each in check_explain.rows(bug)),
                )
            )
        )
        lost = (bug["minimal"] or example)["lost"]
        parts.append(
            "<table>%s</table>"
            % "".join(
                _row(
                    *(each["number"], each["kind"], each["issuer"]),
                    *(hex(each.get("addr", 0)), message_text(each)),
                )
                for each in lost
            )
        )
        parts.append("<pre>%s</pre>" % escape(example["output"]))
        parts += check_timeline.parts(bug)
    parts += _nested_parts(found.get("nested"))
    return "\n".join(parts)


def _nested_parts(found):
    """The part of the section about recoveries."""
    if not found:
        return
    yield "<p>%d recoveries recorded, %d images of them.</p>" % (
        *(found["recoveries"], found["images"]),
    )
    for bug in found["bugs"]:
        last = bug["minimal"] or bug["example"]
        text = "%(image)s, behind event %(behind)d, plan %(plan)s"
        cuts = enumerate([*bug["cuts"], last], 1)
        yield "<h3>Recovery %d: %s</h3>" % (bug["number"], escape(describe(bug)))
        rows = (
            _row("cause", "; ".join(bug["cause"])),
            _row("recoveries", bug["recoveries"]),
            *(_row("cut %d" % number, text % cut) for number, cut in cuts),
            _row("recording", bug["folder"]),
            *(_row(*each) for each in check_explain.rows(bug)),
        )
        yield "<table>%s</table>" % "".join(rows)
        yield "<pre>%s</pre>" % escape("\n".join(lost_lines(last["lost"])))
        yield "<pre>%s</pre>" % escape(bug["example"]["output"])
        yield from check_timeline.parts(bug)


def _junit_bug(bug, kind):
    """The test case of a bug."""
    name = "%s %d: %s" % (kind, bug["number"], "; ".join(bug["cause"]))
    message = "%s, image %s" % (describe(bug), bug["example"]["image"])
    case = '<testcase classname="crash-check" name=%s><failure message=%s>%s</failure></testcase>'
    words = pages.text("\n".join(check_explain.lines(bug)))
    return case % (pages.attribute(name), pages.attribute(message), words)


def junit(found, what="images"):
    """A test case for each bug, and one for the check."""
    attribute = pages.attribute
    nested = (found.get("nested") or {"bugs": ()})["bugs"]
    cases = [_junit_bug(bug, "bug") for bug in found["bugs"]]
    cases += [_junit_bug(bug, "recovery bug") for bug in nested]
    name = "%d %s" % (found["checked"], what)
    inner = ""
    if found["verdict"] == "none":
        inner = "<error message=%s/>" % attribute(" ".join(found["notes"]) or "nothing was checked")
    cases.append(
        '<testcase classname="crash-check" name=%s>%s</testcase>' % (*(attribute(name), inner),)
    )
    failures = len(found["bugs"]) + len(nested)
    return (
        '<?xml version="1.0"?>\n<testsuite name=%s tests="%d" failures="%d" errors="%d">\n%s\n'
        "</testsuite>\n"
        % (
            attribute("crash check " + found["target"]),
            len(cases),
            failures,
            found["verdict"] == "none",
            "\n".join(cases),
        )
    )


def show(found, lines_of, as_json):
    """Prints a result, as JSON or as text; returns the exit status."""
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        for line in lines_of(found):
            print(line)
    return {"good": explore.GOOD, "bugs": explore.BUGS}.get(found["verdict"], explore.NO_VERDICT)


def write(folder, found, explored_folder=None):
    """Writes check.json, JUnit, and the report anew, with the section about the check.

    explored_folder: the exploration, if it is in another folder."""
    explore.write(folder / RESULT, json.dumps(found, indent=1) + "\n")
    explore.write(folder / JUNIT, junit(found))
    explored = load((explored_folder or folder) / explore.RESULT)
    if explored:
        try:
            text = explore_report.page(explored, section(found))
        except (KeyError, TypeError, AttributeError):
            raise LabError("%s is not what the explorer writes" % (folder / explore.RESULT))
    else:
        text = explore_report.document("Crash check of " + found["target"], [section(found)])
    explore.write(folder / explore.PAGE, text)
