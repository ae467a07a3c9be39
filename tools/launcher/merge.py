# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts of several checks become one: the verb crash merge.

Recoveries that were cut are joined with their folders (EXPLORED/nested), which may be those of
several copies.  With --reads the explorer makes the images of the last round again, OUT/reads.
"""
import os
import secrets
import shutil
from argparse import Namespace
from collections import namedtuple

from . import check, check_nested, check_reads, check_report, compare, nested_result, recoveries
from . import verdicts
from .errors import LabError, UsageError
from .explored import IMAGES, Explored, load

PIECE = 1 << 16

# What is joined.  explored: a class for its folders, which have this file; restored(): makes a
# checker of its settings; result(): as check_report.result().  check_pairs.py has one for pairs.
Kind = namedtuple("Kind", "explored file restored result")
ONE = Kind(Explored, IMAGES, check.restored, check_report.result)


def _sources(out, parts, pattern, kind=ONE):
    """(explored folders, journals) of what the user named.  pattern: of journals in a folder."""
    folders = [kind.explored(out)] if (out / kind.file).exists() else []
    journals = list(out.glob(pattern)) if out.is_dir() else []
    for part in parts:
        if part.is_dir():
            folders.append(kind.explored(part))
            found = sorted(part.glob(pattern))
            if not found:
                raise UsageError("%s has no verdicts" % part, "./staghorn crash check makes some")
            journals += found
        elif part.is_file():
            journals += [] if part.match(check_nested.JOURNALS) else [part]
        else:
            raise UsageError("there is no %s" % part)
    if not folders:
        raise UsageError(
            "crash merge: no folder with images is named, so nobody knows what was to be checked",
            "Name the one that was checked, too",
        )
    first = folders[0]
    for each in folders[1:]:
        if (each.run, each.images) != (first.run, first.images):
            raise UsageError("%s and %s have other images" % (first.folder, each.folder))
    unique = {path.resolve(): path for path in journals}
    return folders, list(unique.values())


def _saved(folders, pattern, kind=ONE):
    """(explored, Checker, content of selection.json) of the first folder that was checked."""
    for explored in folders:
        for place in sorted(explored.folder.glob(pattern)):
            checker = check.saved(place, kind.restored)
            found = load(place / check.SELECTION, "crash check")
            if checker and found:
                return explored, checker, found, place / check.SELECTION
    raise UsageError("%s was not checked: it has no folder checker" % folders[0].folder)


def checked(folders, kind=ONE):
    """(explored, Checker, Selection, Marks) of the first folder that was checked."""
    explored, checker, found, path = _saved(folders, check.FOLDER, kind)
    try:
        selection = check.Selection(explored, (), found["promises"], found["limit"], None)
        selection.take(found["platforms"])
        selection.nested = recoveries.settings_restored(found.get("nested"))
        return explored, checker, selection, compare.restored(found["marks"], found["promises"])
    except (KeyError, TypeError):
        raise LabError("%s is not what crash check writes" % path)


# -- recoveries


def _copy(source, target):
    """Copies a file; holes stay holes."""
    with open(source, "rb") as old, open(target, "wb") as new:
        size, at = os.fstat(old.fileno()).st_size, 0
        new.truncate(size)
        while at < size:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole follows
            end = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            part = os.pread(old.fileno(), min(PIECE, end - at), at)
            os.pwrite(new.fileno(), part, at)
            at += len(part)


def _fetch(source, target):
    """Copies a file or a folder that is not there yet, whole or not at all."""
    new = target.with_name(".%s.%s" % (target.name, secrets.token_hex(4)))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if source.is_dir():
            shutil.copytree(source, new, copy_function=_copy)
        else:
            _copy(source, new)
        os.replace(new, target)
    finally:
        if new.is_dir():
            shutil.rmtree(new, ignore_errors=True)
        new.unlink(missing_ok=True)


def _fetch_all(out, folders, names):
    """Brings the folders of these recoveries, and images of their next depth, from copies."""
    target = out / recoveries.FOLDER
    for old in target.glob(".*"):  # of a merge that was killed
        shutil.rmtree(old, ignore_errors=True)
    for explored in folders:
        source = explored.folder / recoveries.FOLDER
        if not source.is_dir() or source.resolve() == target.resolve():
            continue
        wanted = [source / name for name in names]
        wanted += (source / recoveries.IMAGES).glob("*.image")
        for path in wanted:
            place = target / path.relative_to(source)
            if path.exists() and not place.exists():
                _fetch(path, place)


def _nested(out, folders, journals, parts):
    """The member `nested` of the result."""
    explored, checker, selection, marks, done = parts
    identity = checker.identity(explored) + selection.nested.identity()
    for path in journals:
        check.require_same(verdicts.read(path), identity, path)
    lines = verdicts.merge(out / check_nested.JOURNAL, journals)
    if (out / IMAGES).exists():
        names = [name for name, one in lines.items() if one["verdict"] == "bug"]
        _fetch_all(out, folders, names)
        explored = Explored(out)
    first = recoveries.first_level(explored, selection.units, done, marks)
    levels = recoveries.Levels(first, selection.nested, lines, explored.folder)
    return nested_result.Result(levels, selection.nested, explored.folder).result()


def merge(out, parts, kind=ONE):
    """Writes the journal out/verdicts.jsonl; returns (result, folder of the exploration)."""
    folders, journals = _sources(out, parts, check.JOURNALS, kind)
    explored, checker, selection, marks = checked(folders, kind)
    identity = checker.identity(explored)
    for path in journals:
        check.require_same(verdicts.read(path), identity, path)
    out.mkdir(parents=True, exist_ok=True)
    done, more = verdicts.merge(out / check.VERDICTS, journals), {}
    if marks:
        wanted = {check.key(unit) for unit in marks.units()}
        if not wanted <= set(done):
            raise LabError("no journal has the verdicts about the run's own states")
        marks.require_good(done)
    if selection.nested:
        named = [each for each in [out, *parts] if each.is_dir()]
        found = [path for each in named for path in sorted(each.glob(check_nested.JOURNALS))]
        found += [x for x in parts if x.is_file() and x.match(check_nested.JOURNALS)]
        unique = list({path.resolve(): path for path in found}.values())
        rest = explored, checker, selection, marks, done
        more["nested"] = _nested(out, folders, unique, rest)
    if (out / kind.file).exists():  # so that `crash keep` finds it
        checker.save(out / check.FOLDER)
        selection.save(out / check.FOLDER, marks)
    found = kind.result(explored, checker, selection, done, marks, more)
    return found, explored.folder


# -- what checkers read


def _options(found):
    """The options of a check with --reads, of its selection.json."""
    return Namespace(
        platform=found["platforms"],
        promises=found["promises"],
        limit=found["limit"],
        compare=compare.how_of(found["marks"]),
        **dict(shard=None, journal=None, nested=False, nested_depth=None, wait=0.0),
    )


def merge_reads(out, parts):
    """Writes OUT/reads: the exploration of the last round, and its journal; as merge()."""
    pattern = "%s/%s" % (check_reads.FOLDERS, check.JOURNALS)
    folders, journals = _sources(out, parts, pattern)
    _, checker, found, path = _saved(folders, "%s/%s" % (check_reads.FOLDERS, check.FOLDER))
    named = [each for each in folders if each.traces()] or folders
    try:
        options = _options(found)
    except (KeyError, TypeError):
        raise LabError("%s is not what crash check writes" % path)
    rounds = check_reads.Rounds(
        *(named[0], checker, options, lambda text: None), out=out, journals=journals
    )
    rounds.run()
    place = rounds.folder
    checker.save(place / check.FOLDER)
    rounds.selection.save(place / check.FOLDER, rounds.marks)
    verdicts.merge(place / check.VERDICTS, journals)
    more = {"reads": rounds.info}
    parts = rounds.explored, checker, rounds.selection, rounds.done, rounds.marks
    return check_report.result(*parts, more), place
