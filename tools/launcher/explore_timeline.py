# SPDX-License-Identifier: GPL-2.0-or-later
"""The timelines of a report: a row for each event, a column for each machine, and the stages of the
octets that may be lost.

Texts of a result may come from a stranger, so all of them are escaped."""
from .pages import row, text

STAGES = ("S0", "S1", "S2'", "S2", "S3", "certain")
SHOWN = ("addr", "len", "qpn", "wr-id", "ordinal", "name", "text")


def event_text(event):
    """One event in a line."""
    if not event:
        return "an event that is not known"
    where = event.get("symbol") or event.get("at", "")
    words = [text(event["kind"])]
    for name in SHOWN:
        if name in event:
            words.append("%s=%s" % (name, text(event[name])))
    if where:
        words.append("at <code>%s</code>" % text(where))
    return " ".join(words)


def _rows(bug):
    """The timeline; of an older result, or a bug without one, the story."""
    if bug.get("timeline"):
        return bug["timeline"], bug.get("timeline-omitted")
    steps = [
        dict(step, machine=step.get("event", {}).get("machine", ""))
        for step in bug.get("story", ())
    ]
    return steps, bug.get("story-omitted")


def machines(rows):
    """The machines of a timeline in the order in which they appear."""
    return list(dict.fromkeys(each["machine"] for each in rows))


def _lanes(stage):
    for lane in STAGES:
        css = ("safe" if lane == "certain" else "at") if lane == stage else ""
        yield '<td class="lane %s">%s</td>' % (css, "&#9679;" if lane == stage else "")


def _cell(step, rows):
    """What happened, where it came from, and the event itself."""
    event = step.get("event") or {}
    parts = ["<b>%s</b> %s" % (text(event.get("event", "")), text(step["what"]))]
    cause = step.get("cause")
    if isinstance(cause, int) and 0 <= cause < len(rows):
        sender = rows[cause]
        number = (sender.get("event") or {}).get("event", "?")
        parts.append("&#8592; event %s of %s" % (text(number), text(sender["machine"])))
    parts.append("<small>%s</small>" % event_text(event))
    return "<br>".join([*parts, *(["<b>the power fails</b>"] if step.get("power-fails") else [])])


def _css(step):
    if step.get("power-fails"):
        return "fails"
    what = step["what"]
    return "promise" if "promised" in what else "said" if what == "the acknowledgement" else ""


def _alike(one, other):
    """Do two rows say the same of different events, and nothing of messages?"""
    same = [one.get(name) == other.get(name) for name in ("machine", "what", "stage-behind")]
    return all(same) and "cause" not in one and "cause" not in other


def _runs(rows):
    """Rows that say the same, one behind the other, together; marks stay by themselves."""
    causes = {each.get("cause") for each in rows}
    found, joins = [], False
    for number, each in enumerate(rows):
        alone = number in causes or (each.get("event") or {}).get("kind") == "mark"
        alone = alone or bool(each.get("power-fails"))
        if joins and not alone and _alike(found[-1][-1], each):
            found[-1].append(each)
        else:
            found.append([each])
        joins = not alone
    return found


def _more(run):
    """What stands for the rows of a run behind its first one."""
    if len(run) == 1:
        return ""
    last = (run[-1].get("event") or {}).get("event", "?")
    return "<br>%d times, the last is event %s" % (len(run), text(last))


def table(bug):
    """All machines side by side, from the first event to the last; then the stage behind each."""
    rows, omitted = _rows(bug)
    if not rows:
        return
    names = machines(rows)
    yield "<table>" + row([*map(text, names), *STAGES], "th")
    for run in _runs(rows):
        step = run[0]
        cell = '<td class="event">%s%s</td>' % (_cell(step, rows), _more(run))
        cells = "".join(cell if name == step["machine"] else "<td></td>" for name in names)
        css = _css(step)
        yield "<tr%s>%s%s</tr>" % (
            ' class="%s"' % css if css else "",
            cells,
            "".join(_lanes(step["stage-behind"])),
        )
    yield "</table>"
    if omitted:
        yield "<p>%d more events are left out.</p>" % omitted


WHAT = {"lost": "what may be lost", "acknowledgement": "the acknowledgement"}


def packet_texts(bug):
    """Sentences about the packets of the capture."""
    for kind, frames in (bug.get("frames") or {}).items():
        found = frames.get("packet")
        if found:
            yield "packet %s brought %s to %s" % (
                " or ".join(map(str, found["numbers"])),
                WHAT.get(kind, kind),
                frames["machine"],
            )


def packets(bug):
    """The same for the report."""
    sentences = [text(each) for each in packet_texts(bug)]
    if sentences:
        yield "<p>In the capture, %s.</p>" % "; ".join(sentences)
