# SPDX-License-Identifier: GPL-2.0-or-later
"""A bug as one file: what judges it, the image, its base, and the expected verdict.

docs/bug-format.md has the format.  A file may come from a stranger: it is read with bounds, and
what it has is refused unless all of it makes sense.  Its script runs in a VM only.
keep_judge.py judges it again.
"""
import hashlib
import json
import os
import re
import shlex
import struct
import tempfile
import zlib
from pathlib import Path

from . import check, check_report, explore, images, keep_pairs, pairs_lab, recoveries
from .errors import LabError, UsageError
from .explored import IMAGES, PROMISES, START, Explored, extent_of, is_occurrence, load
from .options import KERNELS
from .pairs import Pairs

MAGIC, VERSION = b"SGKEPT\r\n", 3
VERSIONS = (1, 2, VERSION)
ABSENT = {1: ("recovery", "together"), 2: ("together",), VERSION: ()}  # members of later versions
OPENING = struct.Struct(
    "<8sIIQQ32s"
)  # magic, version, 0, octets of the head and behind it, SHA-256
PAGE = 4096
PIECE = 1 << 16
HEAD_MAX = 16 << 20
FILE_MAX = 2 << 30
PART_MAX = 4 << 30  # octets of an unpacked part
# Options of `up` that a kept bug may have: no other makes the host do what its author wants.
VM_OPTIONS = ("--image", "--kernel", "--accel", "--boot-snapshot", "--timeout")
VM_VALUES = re.compile(
    "(%s|[0-9.]+)\\Z" % "|".join((*images.IMAGES, *KERNELS, "auto", "tcg", "kvm"))
)
NESTED_MAX = 1 << 20  # images and recoveries of a recovery bug


def foreign(vm_arguments):
    """The first word that is not one of VM_OPTIONS or a value of one, or None.  Files of the host
    are no values."""
    try:
        words = [word for text in vm_arguments for word in shlex.split(text)]
    except ValueError:
        return vm_arguments[0]
    for word in words:
        option, equals, value = word.partition("=")
        good = option in VM_OPTIONS and (not equals or VM_VALUES.match(value))
        if not good and not VM_VALUES.match(word):
            return word
    return None


# -- writing


def _pages(path):
    """The pages of a base that are not zero, each behind its number."""
    with open(path, "rb") as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // PAGE * PAGE
            except OSError:
                return  # nothing but a hole follows
            page = os.pread(file.fileno(), PAGE, at)
            if page.strip(b"\0"):
                yield struct.pack("<Q", at // PAGE) + page.ljust(PAGE, b"\0")
            at += PAGE


def _octets(path):
    with open(path, "rb") as file:
        while part := file.read(PIECE):
            yield part


def _pack(name, pieces, out):
    """Appends a part, packed; returns its row of the head."""
    packer, size, begin = zlib.compressobj(9), 0, out.tell()
    for piece in pieces:
        size += len(piece)
        out.write(packer.compress(piece))
    out.write(packer.flush())
    return {"name": name, "octets": size, "packed": out.tell() - begin}


def _bug(explored, number, recovery):
    """(content of check.json, bug) of a number.  recovery: of those of recoveries."""
    path = explored.folder / check_report.RESULT
    found = load(path, "crash check")
    if found is None:
        raise UsageError(
            "%s was not checked" % explored.folder, "./staghorn crash check finds its bugs"
        )
    try:
        rows = (found.get("nested") or {"bugs": []})["bugs"] if recovery else found["bugs"]
        bugs = [bug for bug in rows if bug["number"] == number]
        if not bugs:
            what = "recovery bug" if recovery else "bug"
            raise UsageError("%s has %d %ss, and no %s %d" % (path, len(rows), what, what, number))
        return found, bugs[0]
    except (KeyError, TypeError, AttributeError):
        raise LabError("%s is not what crash check writes" % path)


def _allowed(bug, explored):
    """The digests of right states around the crash point, for a bug of --compare."""
    if bug["verdict"] != check_report.STATE:
        return None
    if not bug.get("allowed"):
        raise LabError("%s does not say which states are right" % explored.folder)
    return bug["allowed"]


def _side(explored, example):
    """What a head says of the VM."""
    return {
        "told": str(explored.result.get("told", "")),
        "occurrence": {
            "image": example["image"],
            "behind": example["behind"],
            "promises": example["promises"] or 0,
            "plan": example["plan"],
            "platforms": [example["platform"]],
        },
        "promises": explored.promises()[: example["promises"] or 0],
    }


def _extents(explored):
    return [
        {"name": x.name, "address": x.address, "size": x.size, "hash": x.hash}
        for x in explored.extents
    ]


def _head(explored, checker, bug):
    example, settings = dict(bug["example"], **(bug["minimal"] or {})), checker.settings()
    told = example["promises"] is not None
    if isinstance(explored, Pairs):
        first, second = keep_pairs.sides(explored, example, told)
        two = keep_pairs.together(explored, settings, second)
        rows = enumerate(map(_extents, explored.sides))
        extents = [dict(one, side=k) for k, row in rows for one in row]
        target = two["machines"][0]
    else:
        first, two, extents = _side(explored, example), None, _extents(explored)
        target = explored.target
    return {
        "extents": extents,
        "run": explored.run,
        "target": target,
        **first,
        "checker": settings,
        "expected": {
            "verdict": bug["verdict"],
            "status": bug["status"],
            "allowed": _allowed(bug, explored),
        },
        "with-promises": told,
        "cause": bug["cause"],
        "together": two,
    }


def _recovery(found, bug, head):
    """What a bug of a recovery needs to be repeated: the cuts before the last one, and how their
    recoveries were explored."""
    strategy, limits = found["nested"]["strategy"], found["nested"]["limits"]
    if not recoveries.STRATEGIES.match(strategy):
        raise UsageError("crash keep: a kept bug cannot have the strategy %s" % strategy)
    last = head["occurrence"]
    cuts = [
        {
            **{name: one[name] for name in ("image", "behind", "plan")},
            "promises": last["promises"],
            "platforms": list(dict.fromkeys([one["platform"], *last["platforms"]])),
        }
        for one in bug["cuts"]
    ]
    return {
        "cuts": cuts,
        "strategy": strategy,
        "images": min(limits["images"], NESTED_MAX),
        "recoveries": min(limits["recoveries"], NESTED_MAX),
        "step": bug["step"],
    }


def _files(explored, bug, head):
    """[(part, path or "")]: the image that is judged; that of the second VM or of the first cut."""
    image = head["occurrence"]["image"]
    if head["together"]:
        second = head["together"]["occurrence"]["image"]
        return [("image", explored.path(0, image)), ("second", explored.path(1, second))]
    if not head["recovery"]:
        return [("image", explored.path(image))]
    inner = Explored(explored.folder / bug["folder"] / "explored")
    first = head["recovery"]["cuts"][0]["image"]
    return [("image", inner.path(image)), ("first", explored.path(first))]


def _saved(explored, found):
    """The checker of a result, if it may be kept."""
    restore = pairs_lab.restored if isinstance(explored, Pairs) else check.restored
    checker = check.saved(explored.folder / check.FOLDER, restore)
    if not checker or checker.settings() != found["checker"]:
        raise LabError("%s has another checker than its results" % explored.folder)
    word = foreign(checker.vm_arguments)
    if word:
        raise UsageError(
            "crash keep: the checker's VM had %s, which a kept bug cannot have" % word,
            "It can have " + ", ".join(VM_OPTIONS),
        )
    return checker


def keep(explored, number, output, recovery=False):
    """Writes the file of a bug, or of one of a recovery; returns its octets."""
    found, bug = _bug(explored, number, recovery)
    checker = _saved(explored, found)
    try:
        head = _head(explored, checker, bug)
        head["recovery"] = _recovery(found, bug, head) if recovery else None
    except (KeyError, TypeError):
        raise LabError("%s is not what crash check writes" % explored.folder)
    try:
        with tempfile.TemporaryFile() as parts:
            rows = []
            for name, path in _files(explored, bug, head):
                rows.append(_pack(name, _octets(path) if path else (), parts))
            for i, (file, _) in enumerate(checker.copies):
                rows.append(_pack("copy-%d" % i, _octets(file), parts))
            for i, extent in enumerate(explored.extents):
                rows.append(_pack("base-%d" % i, _pages(extent.file), parts))
            text = json.dumps(dict(head, parts=rows)).encode()
            return _write(Path(output), text, parts)
    except OSError as error:
        raise LabError("crash keep: %s: %s" % (error.filename or output, error.strerror))


def _write(path, text, parts):
    digest, size = hashlib.sha256(text), parts.tell()
    parts.seek(0)
    while piece := parts.read(PIECE):
        digest.update(piece)
    new = path.with_name(path.name + ".new")
    with open(new, "wb") as file:
        file.write(OPENING.pack(MAGIC, VERSION, 0, len(text), size, digest.digest()))
        file.write(text)
        parts.seek(0)
        while piece := parts.read(PIECE):
            file.write(piece)
    os.replace(new, path)
    return OPENING.size + len(text) + size


# -- reading


def _wrong(path, why):
    return LabError("%s %s" % (path, why))


def _opened(path, file):
    """The head of a file whose checksum is right; the file is behind it."""
    opening = file.read(OPENING.size)
    if len(opening) < OPENING.size or opening[:8] != MAGIC:
        raise _wrong(path, "is no file of crash keep")
    _, version, zero, head, rest, digest = OPENING.unpack(opening)
    if version not in VERSIONS or zero:
        raise _wrong(path, "has version %d, and this program knows 1 to %d" % (version, VERSION))
    if head > HEAD_MAX or rest > FILE_MAX:
        raise _wrong(path, "is larger than a kept bug may be")
    found = hashlib.sha256()
    left = head + rest
    while left:
        piece = file.read(min(PIECE, left))
        if not piece:
            raise _wrong(path, "is cut short")
        found.update(piece)
        left -= len(piece)
    if file.read(1) or found.digest() != digest:
        raise _wrong(path, "is damaged")
    file.seek(OPENING.size)
    try:
        text = json.loads(file.read(head))
    except (ValueError, RecursionError):
        text = None
    if not isinstance(text, dict):
        raise _wrong(path, "has a head that is not JSON")
    text.update(dict.fromkeys(ABSENT[version]))
    return text


def _unpacked(path, file, row, limit):
    """The octets of a part, in pieces."""
    unpacker, left, size = zlib.decompressobj(), row["packed"], 0
    while left or unpacker.unconsumed_tail:
        piece = unpacker.unconsumed_tail
        if not piece:
            piece = file.read(min(PIECE, left))
            left -= len(piece)
            if not piece:
                raise _wrong(path, "is cut short")
        part = unpacker.decompress(piece, PIECE)
        size += len(part)
        if size > min(row["octets"], limit):
            raise _wrong(path, "has a part %s that is too long" % row["name"])
        if unpacker.eof and (left or unpacker.unused_data):
            raise _wrong(path, "has octets behind its part %s" % row["name"])
        yield part
    if not unpacker.eof or size != row["octets"]:
        raise _wrong(path, "has a part %s that is cut short" % row["name"])


def _unpack_base(path, pieces, target, size):
    """Writes the pages of a base; they ascend."""
    rest, last = b"", -1
    with open(target, "wb") as out:
        out.truncate(size)
        for piece in pieces:
            rest += piece
            while len(rest) >= 8 + PAGE:
                number = struct.unpack_from("<Q", rest)[0]
                if not last < number < size // PAGE:
                    raise _wrong(path, "has a base with a page %d, which cannot be" % number)
                os.pwrite(out.fileno(), rest[8 : 8 + PAGE], number * PAGE)
                last, rest = number, rest[8 + PAGE :]
    if rest:
        raise _wrong(path, "has a base with half a page")


def _is_recovery(found):
    """Whether the head's member `recovery` has what _recovery() writes."""
    if found is None:
        return True
    cuts, numbers = found["cuts"], [found["images"], found["recoveries"]]
    good = isinstance(found["strategy"], str) and recoveries.STRATEGIES.match(found["strategy"])
    good = good and 1 <= len(cuts) <= recoveries.DEPTH_MAX and all(map(is_occurrence, cuts))
    good = good and not any("outer" in one or "deviations" in one for one in cuts)
    good = good and all(type(n) is int and 1 <= n <= NESTED_MAX for n in numbers)
    return good and (found["step"] is None or type(found["step"]) is int)


def _is_checker(one):
    """Whether the head's member `checker` has what Checker.settings() writes."""
    copies, words = one["copies"], one["vm-arguments"]
    texts = [one["script"], one["setup"], one["memory"], *words]
    good = len(copies) <= check.COPIES_MAX and all(isinstance(text, str) for text in texts)
    good = good and all(each["path"].startswith("/") for each in copies)
    good = good and all(0 <= each["mode"] <= 0o777 for each in copies)
    good = good and not foreign(words) and isinstance(one["cpus"], int)
    return good and 0 < one["timeout"] <= 86400


def _checked_head(path, head):
    """The head, whose members have their types; else an error."""
    try:
        names = ["image", *(["second"] if head["together"] is not None else [])]
        names += ["first"] if head["recovery"] is not None else []
        names += ["copy-%d" % i for i in range(len(head["checker"]["copies"]))]
        names += ["base-%d" % i for i in range(len(head["extents"]))]
        rows = head["parts"]
        good = [row["name"] for row in rows] == names
        for row in rows:
            good = good and all(
                isinstance(row[key], int) and 0 <= row[key] <= PART_MAX
                for key in ("octets", "packed")
            )
        good = good and is_occurrence(head["occurrence"]) and "outer" not in head["occurrence"]
        good = good and _is_checker(head["checker"]) and _is_recovery(head["recovery"])
        good = good and isinstance(head["expected"]["verdict"], str)
        good = good and isinstance(head["promises"], list)
        good = good and all(isinstance(each, dict) for each in head["promises"])
        good = good and isinstance(head["expected"]["allowed"] or [], list)
        good = good and keep_pairs.is_together(head)
    except (KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise _wrong(path, "has a head that crash keep does not write")
    return head


def _unpack_parts(path, file, head, places, folder):
    """Writes the parts to where they belong, which is within the places and the folder."""
    one = {"image": (0, head["occurrence"])}
    if head["together"]:
        one["second"] = (1, head["together"]["occurrence"])
    if head["recovery"]:
        one["first"] = (0, head["recovery"]["cuts"][0])
    for row in head["parts"]:
        kind, _, number = row["name"].partition("-")
        pieces = _unpacked(path, file, row, PART_MAX)
        if kind == "base":
            extent = head["extents"][int(number)]
            target = places[extent.get("side", 0)] / extent["file"]
            _unpack_base(path, pieces, target, extent["size"])
            continue
        if kind == "copy":
            target = folder / check.FOLDER / number
        else:
            side, occurrence = one[kind]
            target = places[side] / "images" / (occurrence["image"] + ".image")
        with open(target, "wb") as out:
            for piece in pieces:
                out.write(piece)
        if kind == "copy":
            target.chmod(head["checker"]["copies"][int(number)]["mode"])
        elif occurrence["image"] == START:
            target.unlink()  # the content at the start has no image
    if file.read(1):
        raise _wrong(path, "has octets behind its parts")


def unpack(path, folder):
    """Unpacks a file to a folder as `crash explore` makes one, or to one of pairs (pairs.py);
    returns (head, Checker)."""
    path, folder = Path(path), Path(folder)
    with open(path, "rb") as file:
        head = _checked_head(path, _opened(path, file))
        rows = keep_pairs.places_of(head, folder)
        (folder / check.FOLDER).mkdir()
        for place, *_ in rows:
            (place / "images").mkdir(parents=True)
            (place / "base").mkdir()
        for i, one in enumerate(head["extents"]):
            one["file"] = "base/%d.raw" % i
            extent_of(one, folder)
        _unpack_parts(path, file, head, [row[0] for row in rows], folder)
    for side, (place, name, occurrence, promises) in enumerate(rows):
        extents = [one for one in head["extents"] if one.get("side", 0) == side]
        found = {"version": 1, "run": head["run"], "target": name, "extents": extents}
        explore.write(place / IMAGES, json.dumps({**found, "images": [occurrence]}))
        explore.write(place / PROMISES, json.dumps({"promises": promises}))
    if head["together"]:
        keep_pairs.write(head, folder)
    return head, _checker(head, folder)


def _checker(head, folder):
    one = head["checker"]
    copies = [(folder / check.FOLDER / str(i), x["path"]) for i, x in enumerate(one["copies"])]
    if head["together"]:
        return pairs_lab.restored(keep_pairs.settings_of(head), copies)
    return check.restored(one, copies)
