# SPDX-License-Identifier: GPL-2.0-or-later
"""Impaired links: the option --impair, QEMU's arguments for it, and changes at run time.

    [VM[.N]:][rx:|tx:]NAME=VALUE[,NAME=VALUE...]

rx stands for frames that the VM's uplink N receives from the segment, tx for frames that it sends.
A VM without a direction means both directions, and without N each of its uplinks.  Without a VM the
whole segment is meant: each VM's rx, so that a frame is impaired once on its way.

Each link with settings is an object filter-staghorn-impair of the VM's QEMU at the uplink's network
back end; docs/manual/properties.md has its properties.  QEMU's tx means frames that a back end
sends to the VM.
"""
import hashlib
import re
from fractions import Fraction

from . import proc, segment
from .errors import UsageError
from .qmp import Monitor

TYPE = "filter-staghorn-impair"
DIRECTIONS = ("rx", "tx")
QUEUE = {"rx": "tx", "tx": "rx"}  # QEMU's names
ODDS = ("loss", "duplicate", "corrupt", "reorder")
NAMES = (*ODDS, "delay", "rate", "queue", "seed")
ALWAYS = 10**6
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
DELAY_MAX = 10 * 10**9
RATES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
RATE_RANGE = (10**3, 10**12)
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20}
QUEUE_MAX = 64 << 20
SEED_MAX = 2**64 - 1
COUNTERS = (
    "frames",
    "passed",
    "lost",
    "duplicated",
    "corrupted",
    "reordered",
    "dropped",
    "overflowed",
    "waiting",
)
NUMBER = r"(\d+(?:\.\d+)?)"


# -- values


def _odds(text):
    match = re.match(NUMBER + r"%\Z", text)
    value = Fraction(match[1]) * ALWAYS / 100 if match else -1
    if not 0 <= value <= ALWAYS or value.denominator != 1:
        raise ValueError("is not a share such as 1% or 0.0001%, 0% to 100%")
    return int(value)


def _time(text):
    match = re.match(NUMBER + r"(ns|us|ms|s)\Z", text)
    value = Fraction(match[1]) * TIMES[match[2]] if match else -1
    if not 0 <= value <= DELAY_MAX or value.denominator != 1:
        raise ValueError("is not a time such as 5ms or 200us, 0s to 10s")
    return int(value)


def _delay(text):
    """'5ms', '5ms±1ms' or '5ms+-1ms' to (delay, jitter) in ns."""
    mean, _, spread = text.replace("+-", "±").partition("±")
    delay, jitter = _time(mean), _time(spread) if "±" in text or "+-" in text else 0
    if jitter > delay:
        raise ValueError("varies by more than it is")
    return delay, jitter


def _rate(text):
    match = re.match(NUMBER + r"([kMG]?)(?:bit)?\Z", text)
    value = Fraction(match[1]) * RATES[match[2]] if match else -1
    in_range = RATE_RANGE[0] <= value <= RATE_RANGE[1]
    if value != 0 and not in_range or value.denominator != 1:
        raise ValueError("is not a rate in bit/s such as 100M or 2.5G, 1k to 1000G, or 0 for none")
    return int(value)


def _queue(text):
    match = re.match(r"(\d+)([KM]?)\Z", text)
    value = int(match[1]) * SIZES[match[2]] if match else 0
    if not 1 <= value <= QUEUE_MAX:
        raise ValueError("is not a number of octets such as 64K, up to 64M")
    return value


def _seed(text):
    if not re.match(r"\d{1,20}\Z", text) or int(text) > SEED_MAX:
        raise ValueError("is not a number, 0 to %d" % SEED_MAX)
    return int(text)


def _settings(item, text):
    """'loss=1%,delay=5ms' to {'loss': 10000, 'delay': 5000000, 'jitter': 0}."""
    found = {}
    parsers = {"delay": _delay, "rate": _rate, "queue": _queue, "seed": _seed}
    for setting in text.split(","):
        name, equals, value = setting.partition("=")
        if name not in NAMES or not equals:
            raise UsageError(
                "--impair %s: %s is not NAME=VALUE" % (item, setting or "nothing"),
                "Names: " + ", ".join(NAMES),
            )
        try:
            parsed = parsers.get(name, _odds)(value)
        except ValueError as error:
            raise UsageError("--impair %s: %s %s %s" % (item, name, value or "nothing", error))
        if name == "delay":
            found["delay"], found["jitter"] = parsed
        else:
            found[name] = parsed
    return found


def _unit(value, units):
    """1500000 to '1.5ms'."""
    fit = [(scale, name) for name, scale in units.items() if scale <= value] or [
        (1, next(name for name, scale in units.items() if scale == 1))
    ]
    scale, name = max(fit)
    whole = Fraction(value, scale)
    text = str(whole.numerator) if whole.denominator == 1 else ("%.9f" % float(whole)).rstrip("0")
    return text + name


def text_of(settings):
    """The settings as on the command line; '' for none."""
    words = []
    for name in ODDS:
        if settings.get(name):
            share = "%.4f" % (settings[name] * 100 / ALWAYS)
            words.append("%s=%s%%" % (name, share.rstrip("0").rstrip(".")))
    if settings.get("delay"):
        jitter = settings.get("jitter")
        spread = "±" + _unit(jitter, TIMES) if jitter else ""
        words.append("delay=" + _unit(settings["delay"], TIMES) + spread)
    if settings.get("rate"):
        words.append("rate=" + _unit(settings["rate"], RATES))
    if settings.get("queue"):
        size = settings["queue"]
        name = next(n for n in ("M", "K", "") if size % SIZES[n] == 0)
        words.append("queue=%d%s" % (size // SIZES[name], name))
    if words or "seed" in settings:
        words.append("seed=%d" % settings.get("seed", 1))
    return ",".join(words)


# -- links


def _ends(vms, name):
    return [segment.end_name(name, n) for n in range(1 + len(vms[name]["adapters"]))]


def targets(item, words, vms):
    """['beta', 'rx'] to [('beta', 'rx'), ('beta.1', 'rx')]."""
    words = list(words)
    directions = None
    if words and words[-1] in DIRECTIONS and (len(words) > 1 or words[-1] not in vms):
        directions = [words.pop()]
    if len(words) > 1:
        raise UsageError("--impair %s is not [VM[.N]:][rx:|tx:]NAME=VALUE,..." % item)
    if not words:
        ends = [end for name in vms for end in _ends(vms, name)]
        return [(end, direction) for end in ends for direction in directions or ["rx"]]
    name, point, number = words[0].partition(".")
    if name not in vms:
        raise UsageError("--impair: there is no VM %r; there are %s" % (name, ", ".join(vms)))
    ends = _ends(vms, name)
    if point:
        if number not in map(str, range(len(ends))):
            raise UsageError("--impair: VM %s has no adapter %s" % (name, number))
        ends = [ends[int(number)]]
    return [(end, direction) for end in ends for direction in directions or DIRECTIONS]


def everything(vms):
    """All links."""
    return [(end, way) for name in vms for end in _ends(vms, name) for way in DIRECTIONS]


def split(item, vms):
    """(targets, settings) of 'beta:rx:loss=1%'; settings is None if there are none."""
    *words, last = item.split(":")
    if "=" not in last and (last or not words):
        return targets(item, [*words, last], vms), None
    return targets(item, words, vms), _settings(item, last)


def merge(state, wanted, settings):
    """Merges settings; later ones override earlier ones of the same name."""
    for end, direction in wanted:
        state.setdefault(end, {}).setdefault(direction, {}).update(settings)


def parse(items, vms):
    """['loss=1%', 'beta:rx:delay=5ms'] to {'beta': {'rx': {'loss': 10000, ...}}}."""
    state = {}
    for item in items or []:
        wanted, settings = split(item, vms)
        if settings is None:
            raise UsageError("--impair %s is not [VM[.N]:][rx:|tx:]NAME=VALUE,..." % item)
        merge(state, wanted, settings)
    return state


# -- QEMU's objects


def _number(end):
    return int(end.partition(".")[2] or 0)


def ident(end, direction):
    return "impair%d-%s" % (_number(end), direction)


def properties(end, direction, settings):
    """QEMU's names and values; each link has its own seed, derived from the user's."""
    words = "%d/%s/%s" % (settings.get("seed", 1), end, direction)
    digest = hashlib.sha256(words.encode()).digest()
    found = {name: settings.get(name, 0) for name in (*ODDS, "delay", "jitter", "rate")}
    found["queue-limit"] = settings.get("queue", 0)
    found["seed"] = int.from_bytes(digest[:8], "big") >> 1
    return found


def _links(lab, name):
    """(end, direction, settings) of the VM's links that have settings."""
    for end, directions in lab.get("impair", {}).items():
        if end.partition(".")[0] == name:
            for direction, settings in directions.items():
                yield end, direction, settings


def arguments(lab, name):
    """QEMU's arguments for the VM."""
    for end, direction, settings in _links(lab, name):
        words = "%s,id=%s,netdev=up%d,queue=%s" % (
            TYPE,
            ident(end, direction),
            _number(end),
            QUEUE[direction],
        )
        for each in properties(end, direction, settings).items():
            words += ",%s=%d" % each
        yield from ("-object", words)


def _apply(monitor, end, direction, settings, restart):
    wanted = properties(end, direction, settings)
    there = {each["name"] for each in monitor.run("qom-list", path="/objects")}
    if ident(end, direction) not in there:
        place = {"netdev": "up%d" % _number(end), "queue": QUEUE[direction]}
        words = {"qom-type": TYPE, "id": ident(end, direction), **place, **wanted}
        monitor.run("object-add", **words)
        return
    for name, value in wanted.items():
        if name != "seed" or restart:
            path = "/objects/" + ident(end, direction)
            monitor.run("qom-set", path=path, property=name, value=value)


def change(folder, wanted, settings):
    """Sets or clears (None) the settings of these links; VMs that are off get them with power."""
    state = folder.data.setdefault("impair", {})
    for end, direction in wanted:
        if settings is None:
            state.get(end, {}).pop(direction, None)
        else:
            merge(state, [(end, direction)], settings)
        vm = end.partition(".")[0]
        if proc.alive(folder.data["vms"][vm]["process"]):
            with Monitor(folder, vm) as monitor:
                now = state.get(end, {}).get(direction, {})
                _apply(monitor, end, direction, now, settings is None or "seed" in settings)
    for end in [end for end, directions in state.items() if not directions]:
        del state[end]
    folder.save()


def show(folder, wanted):
    """Settings and counters of those links that have any."""
    state = folder.data.get("impair", {})
    found = {}
    for end, direction in wanted:
        vm = end.partition(".")[0]
        settings = state.get(end, {}).get(direction, {})
        counters = None
        if proc.alive(folder.data["vms"][vm]["process"]):
            with Monitor(folder, vm) as monitor:
                there = {each["name"] for each in monitor.run("qom-list", path="/objects")}
                if ident(end, direction) in there:
                    path = "/objects/" + ident(end, direction)
                    both = monitor.run("qom-get", path=path, property="counters")
                    counters = both[QUEUE[direction]]
        if settings or counters:
            found.setdefault(end, {})[direction] = {
                "settings": text_of(settings),
                "counters": counters,
            }
    return found


def text_of_all(found):
    """The result of `show` as text."""
    lines = []
    for end, directions in found.items():
        for direction, link in directions.items():
            lines.append("%s %s: %s" % (end, direction, link["settings"] or "not impaired"))
            counters = link["counters"]
            if counters:
                words = ["%d %s" % (counters[name], name) for name in COUNTERS if counters[name]]
                lines.append("  " + (", ".join(words) or "no frames"))
    return "\n".join(lines) or "no link is impaired"


def summary(lab, name):
    """The VM's links and their settings, for `status`."""
    found = {}
    for end, direction, settings in _links(lab, name):
        if text_of(settings):
            found.setdefault(end, {})[direction] = text_of(settings)
    return found
