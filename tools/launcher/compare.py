# SPDX-License-Identifier: GPL-2.0-or-later
"""What a checker prints is the semantic state: `crash check --compare`.

Behind mark k the program's state is the one that mark k names; from there on it works towards that
of mark k + 1.  So a power cut between the two has to leave one or the other.  Which states these
are, the checker says about the run's own images, those of cuts in which everything survived.

A program that keeps some of its state in ordinary memory, as a file system does, is not seen whole
in these images.  Its marks may have the state as their texts (Texts).
"""
import hashlib

from . import plans, verdicts
from .errors import LabError
from .explored import START, Unit, is_occurrence

IMAGES, TEXTS = "images", "texts"  # what says which states are right
KINDS = (("state",), ("durable", "acknowledged"))  # the second if there are none of the first
MARKS_MAX = 10000
FIRST = {"image": START, "behind": 0, "promises": 0, "plan": "", "platforms": [""]}


def marks_of(explored, trace, wanted=KINDS):
    """(events, texts) of the marks that end a step of the program: those of the first kinds of
    which there are any."""
    found = plans.marks(trace)
    for kinds in wanted:
        rows = [(event, text) for event, kind, text in found if kind in kinds]
        if rows:
            break
    if not rows:
        raise LabError(
            "the run of %s has no marks, so there are no states to compare with" % explored.target,
            "Let the program end each operation with one (docs/manual/marks.md), such as\n"
            '  sg_mark("state", "") or staghorn-mark state',
        )
    if len(rows) > MARKS_MAX:
        raise LabError("the run has %d marks, more than %d" % (len(rows), MARKS_MAX))
    return [list(each) for each in zip(*rows)]


def restored(found, promises):
    """Marks of their JSON, or None."""
    if not found:
        return None
    events = found["events"]
    if not all(isinstance(n, int) for n in events):
        raise KeyError("events")
    if how_of(found) == TEXTS:
        if len(found[TEXTS]) != len(events) or not all(isinstance(x, str) for x in found[TEXTS]):
            raise KeyError(TEXTS)
        return Texts(events, found[TEXTS], promises)
    if not all(map(is_occurrence, found["occurrences"])):
        raise KeyError("occurrences")
    return Marks(events, found["occurrences"], promises)


def how_of(found):
    """IMAGES or TEXTS of the JSON of Marks, or None."""
    return found and (TEXTS if TEXTS in found else IMAGES)


def digest_of(octets):
    """What the journal keeps of a script's output."""
    return hashlib.sha256(octets).hexdigest()[:16]


class Marks:
    """The states of a run: at its start, at each mark, and at its end.

    events: of the marks; occurrences: of their images and of that at the end, in this order."""

    def __init__(self, events, occurrences, promises=False):
        self.events, self.promises = events, promises
        self.states = [FIRST, *occurrences]
        if len(occurrences) != len(events) + 1:
            raise LabError(
                "the explorer made %d images for the run's states, not %d"
                % (*(len(occurrences), len(events) + 1),)
            )

    def settings(self):
        return {"events": self.events, "occurrences": self.states[1:]}

    def unit(self, at):
        one = self.states[at]
        return Unit(one["image"], one["promises"] if self.promises else None, (one,))

    def units(self):
        return [self.unit(at) for at in range(len(self.states))]

    def _digest(self, at, done):
        unit = self.unit(at)
        return done[verdicts.key_of({"image": unit.image, "promises": unit.promises})]["digest"]

    def step(self, behind):
        """The number of the last mark that a cut behind this event has seen; 0: none."""
        return sum(1 for event in self.events if event <= behind)

    def allows(self, behind, digest, done):
        """Whether this output is right for a cut behind this event."""
        return digest in self.allowed(behind, done)

    def allowed(self, behind, done):
        """The digests of the two states between which a cut behind this event is."""
        return self.allowed_at(self.step(behind), done)

    def allowed_at(self, step, done):
        """The digests of the state that mark `step` names, and of the next one."""
        return [self._digest(at, done) for at in (step, step + 1)]

    def needed(self, behind):
        """The numbers of the states that have to be judged for allowed()."""
        return self.step(behind), self.step(behind) + 1

    def require_good(self, done):
        """The run's own states have to be good, or the checker is wrong."""
        for at, unit in enumerate(self.units()):
            one = done.get(verdicts.key_of({"image": unit.image, "promises": unit.promises}))
            if one is None:
                raise LabError("the run's own states have not been checked")
            # Nothing may have been there at the start.
            if one["verdict"] != "good" and at:
                raise LabError(
                    "the run's own state at %s is judged as %s, with everything there: %s"
                    % (self.name(at), one["verdict"], one["output"].strip()[-200:]),
                    "The script is wrong, or the program leaves that behind",
                )

    def name(self, at):
        if not at:
            return "the start"
        return "the end" if at == len(self.states) - 1 else "mark %d" % at

    def wrong(self, unit, one, done):
        """The occurrences of a good unit whose output belongs to neither mark around them."""
        if one["verdict"] != "good":
            return []
        return [
            each
            for each in unit.occurrences
            if not self.allows(each["behind"], one["digest"], done)
        ]

    def doubtful(self, units, done):
        """The units that are good but of no right state, and were checked only once."""
        self.require_good(done)
        found = []
        for unit in units:
            one = done.get(verdicts.key_of(_members(unit)))
            if one and not one.get("confirmed") and self.wrong(unit, one, done):
                found.append(unit)
        return found


class Texts(Marks):
    """The states that marks name by their texts; the script prints the text as a line.  Before the
    first mark the state at the start is right, too, which only the script can tell."""

    def __init__(self, events, texts, promises=False):
        # pylint: disable=super-init-not-called  # there are no images of marks
        self.events, self.texts, self.promises = events, texts, promises
        self.states = [FIRST]

    def settings(self):
        return {"events": self.events, TEXTS: self.texts}

    def needed(self, behind):
        return () if self.step(behind) else (0,)

    def allowed_at(self, step, done):
        """As of Marks; behind the last mark only its own state is right."""
        rows = [] if step else [self._digest(0, done)]
        return rows + [
            digest_of(text.encode() + b"\n") for text in self.texts[max(step - 1, 0) : step + 1]
        ]


class Window:
    """The states that are right behind a first cut, for images of the recovery that was cut then.

    steps: of each event behind which the first cut may have been, the number of the last mark that
    it has seen.  Has the methods of Marks, whatever event of the recovery a cut is behind."""

    def __init__(self, steps, digests):
        self.steps, self.digests = steps, digests

    @classmethod
    def of(cls, marks, steps, done):
        """The states that are right behind all of these marks."""
        sets = [set(marks.allowed_at(step, done)) for step in steps]
        return cls(steps, sorted(set.intersection(*sets)))

    def step(self, _behind):
        return self.steps[0]

    def allowed(self, _behind, _done):
        return self.digests

    def allows(self, _behind, digest, _done):
        return digest in self.digests

    def wrong(self, unit, one, _done):
        good = one["verdict"] != "good" or one["digest"] in self.digests
        return [] if good else list(unit.occurrences)

    def doubtful(self, units, done):
        """The units that are good but of no right state, and were checked only once."""
        found = [(unit, done.get(verdicts.key_of(_members(unit)))) for unit in units]
        return [
            unit
            for unit, one in found
            if one and not one.get("confirmed") and self.wrong(unit, one, done)
        ]


def _members(unit):
    return {"image": unit.image, "promises": unit.promises}


def states(explored, platform, promises=False, how=IMAGES):
    """The Marks of an exploration; the explorer makes their images.  how: or TEXTS."""
    trace = explored.trace()
    if not trace:
        raise LabError(
            "--compare needs the recording: the trace of %s is not there"
            % (explored.target or "it"),
        )
    if how == TEXTS:
        return Texts(*marks_of(explored, trace, KINDS[:1]), promises)
    events, _ = marks_of(explored, trace)
    return Marks(events, _images(explored, events, platform), promises)


def _images(explored, events, platform):
    """The occurrences of "everything survives" before each mark, and at the end."""
    ends = [*(event - 1 for event in events), explored.events()]
    try:
        return plans.make(explored, [plans.plan(end, platform) for end in ends])
    except LabError as error:
        if "crash point" not in str(error):
            raise
    # Where nothing has changed since the crash point before, there is none.
    known = sorted(one["behind"] for one in explored.images if platform in one["platforms"])
    ends = [max([0, *(each for each in known if each <= end)]) for end in ends]
    return plans.make(explored, [plans.plan(end, platform) for end in ends])
