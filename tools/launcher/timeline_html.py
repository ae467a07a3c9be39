# SPDX-License-Identifier: GPL-2.0-or-later
"""The time line of a trace as one HTML file: a picture with a lane for each queue pair, and a table
with a column for each VM.  It needs no network, and without scripts only its filters are missing.
"""
import collections

from .pages import attribute, document, row, text
from .timeline_lines import GUEST, KINDS
from .timeline_links import links

COLOURS = {
    **{"register": "#8a8a8a", "command": "#7b4fb5", "doorbell": "#c77700", "fetch": "#2f7d32"},
    **{"sent": "#1565c0", "received": "#00a3b4", "completion": "#ad1457"},
    **{"interrupt": "#5d4037", "state": "#455a64", "guest": "#6d8f00", "error": "#d50000"},
}
WIDTH, NAMES, LANE, TOP = 1200, 190, 22, 26  # of the picture, in its units
TICKS = 10
STYLE = """
body { max-width: none } svg { width: 100%; border: 1px solid #ccc } svg text { font-size: 12px }
svg .arrow { opacity: .5 }
.dot { display: inline-block; width: .8em; height: .8em; border-radius: 50% }
label { margin-right: 1.2em; white-space: nowrap } #events td { padding: .1em .5em }
#events td.n { white-space: nowrap } #events tr.far td { border-top: 3px solid #999 }
#events b { font-weight: 600 }
"""
FAR = 1000  # microseconds without an event that the table marks
SCRIPT = """
const table = document.getElementById("events"), rows = table.tBodies[0].rows;
for (const box of document.querySelectorAll("input[type=checkbox]"))
  box.onchange = () => table.classList.toggle("no-" + box.value, !box.checked);
document.getElementById("find").oninput = (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const one of rows) one.hidden = !one.textContent.toLowerCase().includes(wanted);
};
"""


def lane_of(event):
    return event.vm, event.adapter, event.qp


def lanes(events):
    """{(VM, adapter, queue pair or None): name}, those of a VM together, its adapter's first."""
    found = {lane_of(event) for event in events}
    single = len({adapter for _, adapter, _ in found} - {"r0", GUEST}) == 0
    names = {}
    for vm, adapter, qp in sorted(found, key=lambda lane: (lane[0], lane[1], lane[2] or 0)):
        if adapter == GUEST:
            names[vm, adapter, qp] = "%s, %s" % (vm, GUEST)
            continue
        whose = vm if single else "%s %s" % (vm, adapter)
        names[vm, adapter, qp] = "%s, %s" % (whose, "adapter" if qp is None else "qp %d" % qp)
    return names


def clock_text(clock):
    """How well a guest's times are known."""
    if clock["bound_us"] is None:
        return "no tracepoint of the guest is on the time line"
    return "times of the guest are known to within %.0f us" % max(1, clock["bound_us"])


def _counts(result):
    vms = result["vms"]
    yield "<table>" + row(["", *map(text, vms), "what it is"], "th")
    for kind, meaning in KINDS.items():
        dot = '<span class="dot" style="background:%s"></span> %s' % (COLOURS[kind], kind)
        yield row([dot, *(str(vm["kinds"].get(kind, 0)) for vm in vms.values()), text(meaning)])
    yield "</table>"


def _places(events, names, begin, span):
    """(lane, x, index of the kind) of each event in the picture."""
    at = {lane: number for number, lane in enumerate(names)}
    kinds = list(KINDS)
    for event in events:
        x = NAMES + round((event.time - begin) * (WIDTH - NAMES - 10) / span)
        yield at[lane_of(event)], x, kinds.index(event.kind)


def _height(lane, kind):
    return TOP + lane * LANE + 5 + kind * (LANE - 10) / (len(KINDS) - 1)


def _dots(events, places):
    """One circle for all events of a kind that fall on one place of a lane."""
    groups = collections.OrderedDict()
    kinds = list(KINDS)
    for event, place in zip(events, places):
        groups.setdefault(place, []).append(event)
    for (lane, x, kind), group in groups.items():
        said = group[0].text if len(group) == 1 else "%d events, %s" % (len(group), group[0].text)
        yield '<circle cx="%d" cy="%.1f" r="3" fill="%s"><title>%s: %s</title></circle>' % (
            x,
            _height(lane, kind),
            COLOURS[kinds[kind]],
            kinds[kind],
            text(said),
        )


def _arrows(events, places):
    """A line for all segments that one VM sends at a place, and another one receives at a place."""
    groups = collections.OrderedDict()
    for begin, end in links(events):
        groups.setdefault((places[begin], places[end]), []).append(events[begin])
    for ((lane, x, kind), (to_lane, to_x, to_kind)), group in groups.items():
        said = group[0].segment
        if len(group) > 1:
            said = "%d segments, %s" % (len(group), said)
        yield (
            '<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" class="arrow">'
            "<title>%s</title></line>"
        ) % (x, _height(lane, kind), to_x, _height(to_lane, to_kind), COLOURS["sent"], text(said))


def _picture(events, names, begin, span):
    height = TOP + LANE * len(names) + 4
    yield '<svg viewBox="0 0 %d %d" role="img">' % (WIDTH, height)
    for tick in range(TICKS + 1):
        x = NAMES + tick * (WIDTH - NAMES - 10) // TICKS
        yield '<line x1="%d" y1="18" x2="%d" y2="%d" stroke="#ddd"/>' % (x, x, height)
        anchor = "end" if tick == TICKS else "start"
        label = "%.3f ms" % (span * tick / TICKS / 1000)
        yield '<text x="%d" y="13" text-anchor="%s">%s</text>' % (x, anchor, label)
    for number, name in enumerate(names.values()):
        y = TOP + number * LANE
        yield '<line x1="0" y1="%d" x2="%d" y2="%d" stroke="#eee"/>' % (y, WIDTH, y)
        yield '<text x="4" y="%d">%s</text>' % (y + 15, text(name))
    places = list(_places(events, names, begin, span))
    yield from _arrows(events, places)
    yield from _dots(events, places)
    yield "</svg>"


def _filters(names):
    def box(css, label):
        return '<label><input type="checkbox" value="%s" checked> %s</label>' % (css, text(label))

    yield "<p>%s</p>" % "".join(box(kind, kind) for kind in KINDS)
    yield "<p>%s</p>" % "".join(box("l%d" % i, name) for i, name in enumerate(names.values()))
    yield '<p><label>with the text <input id="find" type="search"></label></p>'


def _table(events, names, begin, vms):
    at = {lane: number for number, lane in enumerate(names)}
    heads = row(["ms", "+&#181;s", *map(text, vms)], "th")
    yield '<table id="events"><thead>%s</thead><tbody>' % heads
    before = begin
    for event in events:
        lane, passed = at[lane_of(event)], event.time - before
        before = event.time
        bare = event.qp is not None or event.adapter == GUEST
        where = "" if bare else text(event.adapter) + " "
        cell = '<td style="color:%s"><b>%s</b> %s%s</td>' % (
            COLOURS[event.kind],
            event.kind,
            where,
            text(event.text),
        )
        yield "<tr class=%s><td class=n>%.3f</td><td class=n>%s</td>%s</tr>" % (
            attribute("%s l%d%s" % (event.kind, lane, " far" if passed >= FAR else "")),
            (event.time - begin) / 1000,
            passed or "",
            "".join(cell if name == event.vm else "<td></td>" for name in vms),
        )
    yield "</tbody></table>"


def page(result):
    """The whole page; the result is as timeline.py makes it."""
    events, begin = result["events"], result["began_us"]
    names = lanes(events)
    span = max(1, (events[-1].time if events else begin) - begin)
    hidden = [*KINDS, *("l%d" % number for number in range(len(names)))]
    css = STYLE + "\n".join("#events.no-%s .%s { display: none }" % (x, x) for x in hidden)
    parts = ["<p>Lab %s, from %s. %s</p>" % tuple(map(text, _heading(result)))]
    for name, clock in result["clocks"].items():
        parts.append("<p>%s: %s.</p>" % (text(name), text(clock_text(clock))))
    parts += ['<p class="note">%s</p>' % text(note) for note in result["notes"]]
    parts += _counts(result)
    if events:
        parts += _picture(events, names, begin, span)
        parts += ["<h2>Events</h2>", *_filters(names)]
        parts += [*_table(events, names, begin, result["vms"]), "<script>%s</script>" % SCRIPT]
    return document("Time line of %s" % ", ".join(result["vms"]), parts, css)


def _heading(result):
    what = "%d events in %.3f s." % (len(result["events"]), result["seconds"])
    if result["command"]:
        what += " Meanwhile in %(command_vm)s: %(command)s (status %(status)s)." % result
    return result["lab"], result["began"], what
