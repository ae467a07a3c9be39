# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of an exploration: one HTML file that needs no network, and JUnit.

Input is result.json of staghorn-explore (docs/crash-laboratory-points.md), with names of program
counters (explore.py).  Every text of it may come from a stranger, so all of it is escaped."""
from . import explore_timeline, pages
from .explore_timeline import event_text as _event
from .pages import attribute
from .pages import row as _row
from .pages import text as _text

STYLE = """
.good { background: #e2f2e2 } .bug { background: #f8d7d7 } .weak { background: #eee; color: #666 }
td.lane { min-width: 3.2em; text-align: center } td.at { background: #f0b060 }
td.safe { background: #7cc47c } tr.promise td { border-top: 3px solid #c00 }
td.event { background: #f4f8ff } tr.said td { border-top: 3px solid #06c }
tr.fails td { border-bottom: 3px solid #c00 }
.digits { display: inline-block; max-width: 26em; font-variant-numeric: tabular-nums }
"""
# Instead of an event: no event makes the store certain, or nobody followed it to its end.
CERTAIN = {None: "nothing in this run", "?": "not known"}


def _digits(number):
    """A number of any size, with all digits; a line may end behind each third one."""
    first = len(number) % 3
    parts = [number[:first]] if first else []
    parts += [number[at : at + 3] for at in range(first, len(number), 3)]
    return '<span class="digits">%s</span>' % "<wbr>".join(map(_text, parts))


def _verdict(result):
    count = len(result["bugs"])
    return {
        "good": "No bug: every platform that promises what the guest was told keeps all promises.",
        "bugs": "%d bug%s." % (count, "" if count == 1 else "s"),
    }.get(result["verdict"], "No verdict: nothing was promised, or nothing could be judged.")


def _platforms(result):
    yield "<h2>Platforms</h2><table>"
    yield _row(("platform", "promises", "kept", "broken", "crash points", "images"), "th")
    for each in result["platforms"]:
        total = sum(each["promises"].values())
        broken = sum((each.get("broken") or each.get("not-claimed") or {}).values())
        css = "weak" if not each["claimed"] else "bug" if broken else "good"
        of = each.get("images", {})
        images = of.get("ways", "")
        yield _row(
            (
                _text(each["platform"]) + ("" if each["claimed"] else " (not claimed)"),
                *(str(number) for number in (total, total - broken, broken)),
                str(each["crash-points"]),
                ("more than " if of.get("points-with-more-ways") else "") + _digits(str(images)),
            ),
            css=css,
        )
    yield "</table>"


def _bug(number, bug, kind):
    example = bug["example"]
    yield "<h3>%s %d: %s may be lost although it was acknowledged (%s)</h3>" % (
        kind,
        number,
        _text(bug["issuer"]["text"]),
        _text(bug["acknowledgement"]),
    )
    acknowledged, lost = example["acknowledgement"], example["lost"]
    yield "<p>Lost: %s of %s.<br>Promised to %s by event %s: %s.</p>" % (
        _event(lost),
        _text((lost or {}).get("machine", "?")),
        _text(example["promised-to"]),
        _text((acknowledged or {}).get("event", "?")),
        _event(acknowledged),
    )
    yield "<table>" + _row(("platform", "times", "it waits in", "missing", "certain behind"), "th")
    for each in bug["platforms"]:
        behind = each.get("certain-behind", "?")
        yield _row(
            (
                _text(each["platform"]) + ("" if each["claimed"] else " (not claimed)"),
                str(each["count"]),
                _text(each["stage"]),
                _text(each["missing"]),
                CERTAIN.get(behind) or "event %s" % _text(behind),
            ),
            css="" if each["claimed"] else "weak",
        )
    yield "</table>"
    yield from explore_timeline.packets(bug)
    if bug.get("image"):  # with --strategy bugs
        yield "<p>Image that shows it: <code>%s</code></p>" % _text(bug["image"])
    if "again" in bug:  # older results have none
        yield "<p>Again: <code>%s</code></p>" % _text(bug["again"])
    yield from explore_timeline.table(bug)


def _about(result):
    yield "<h2>About this run</h2><table>"
    yield _row(("target", _text(result["target"])))
    yield _row(("the guest was told", _text(result["told"])))
    yield _row(("acknowledgements", _text(", ".join(result["acknowledgements"]))))
    for each in result["traces"]:
        yield _row(
            (
                "trace of " + _text(each["machine"]),
                "%d events; %s" % (each["events"], _text(each["message"])),
            )
        )
    for script in (result.get("recording") or {}).get("scripts") or ():
        yield _row(
            ("script in " + _text(script["vm"]), "<code>%s</code>" % _text(script["command"]))
        )
    promises = result["promises"]
    yield _row(
        (
            "promises",
            "%d from %d acknowledgements" % (promises["promises"], promises["acknowledgements"]),
        )
    )
    yield "</table>"


def document(title, parts):
    """A whole HTML document; title is text, the parts are HTML."""
    return pages.document(title, parts, STYLE)


def page(result, check=""):
    """The whole report as HTML.  check: the section about a check of the images, as HTML."""
    parts = ["<p><b>%s</b></p>" % _text(_verdict(result))]
    problems = (result.get("recording") or {}).get("problems") or ()
    parts += ['<p class="note">%s</p>' % _text(note) for note in [*result["notes"], *problems]]
    parts += _platforms(result)
    if result["bugs"]:
        parts.append("<h2>Bugs</h2>")
    for number, bug in enumerate(result["bugs"], 1):
        parts += _bug(number, bug, "Bug")
    if result["not-claimed"]:
        parts.append(
            "<h2>Not claimed</h2><p>These platforms keep less than the guest was told. What they "
            "lose is no bug of the program.</p>"
        )
    for number, bug in enumerate(result["not-claimed"], 1):
        parts += _bug(number, bug, "Loss")
    if check:
        parts.append(check)
    parts += _about(result)
    return document("Crash report of %s" % result["target"], parts)


def _again(result, platform, kind):
    """The commands that show the bugs of a platform and kind of acknowledgement again."""
    return "\n".join(
        "bug %d again: %s" % (number, bug.get("again", ""))
        for number, bug in enumerate(result["bugs"], 1)
        if bug["acknowledgement"] == kind
        and platform in [each["platform"] for each in bug["platforms"]]
    )


def junit(result):
    """A test case for each platform and kind of acknowledgement."""
    cases, failures, skipped = [], 0, 0
    for each in result["platforms"]:
        broken = each.get("broken") or each.get("not-claimed") or {}
        for kind, count in each["promises"].items():
            name = attribute("%s: %s" % (each["platform"], kind))
            if not each["claimed"]:
                skipped += 1
                inner = "<skipped message=%s/>" % attribute("the platform does not claim this")
            elif broken.get(kind):
                failures += 1
                inner = "<failure message=%s>%s</failure>" % (
                    attribute("%d of %d promises are broken" % (broken[kind], count)),
                    _text(_again(result, each["platform"], kind)),
                )
            else:
                inner = ""
            cases.append("<testcase classname=%s name=%s>%s</testcase>" % ('"crash"', name, inner))
    if result["verdict"] == "none":
        failures += 1
        cases.append(
            '<testcase classname="crash" name="verdict"><error message="no verdict: nothing was '
            'promised, or nothing could be judged"/></testcase>'
        )
    return (
        '<?xml version="1.0"?>\n<testsuite name=%s tests="%d" failures="%d" skipped="%d">\n%s\n'
        % (
            attribute("crash " + result["target"]),
            len(cases),
            failures,
            skipped,
            "\n".join(cases),
        )
        + "</testsuite>\n"
    )
