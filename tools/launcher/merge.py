# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts of several checks become one: the verb crash merge."""
from . import check, check_report, compare, verdicts
from .errors import LabError, UsageError
from .explored import IMAGES, Explored, load

JOURNALS = "verdicts*.jsonl"


def _sources(out, parts):
    """(Explored folders, journals) of what the user named."""
    folders = [Explored(out)] if (out / IMAGES).exists() else []
    journals = list(out.glob(JOURNALS)) if out.is_dir() else []
    for part in parts:
        if part.is_dir():
            folders.append(Explored(part))
            found = sorted(part.glob(JOURNALS))
            if not found:
                raise UsageError("%s has no verdicts" % part, "./staghorn crash check makes some")
            journals += found
        elif part.is_file():
            journals.append(part)
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


def _checked(folders):
    """(Explored, Checker, Selection, Marks) of the first folder that was checked."""
    for explored in folders:
        place = explored.folder / check.FOLDER
        checker, found = check.saved(place), load(place / check.SELECTION, "crash check")
        if not checker or not found:
            continue
        try:
            selection = check.Selection(explored, (), found["promises"], found["limit"], None)
            selection.take(found["platforms"])
            return explored, checker, selection, compare.restored(found["marks"], found["promises"])
        except (KeyError, TypeError):
            raise LabError("%s is not what crash check writes" % (place / check.SELECTION))
    raise UsageError("%s was not checked: it has no folder checker" % folders[0].folder)


def merge(out, parts):
    """Writes the journal out/verdicts.jsonl; returns (result, folder of the exploration)."""
    folders, journals = _sources(out, parts)
    explored, checker, selection, marks = _checked(folders)
    identity = checker.identity(explored)
    for path in journals:
        check.require_same(verdicts.read(path), identity, path)
    out.mkdir(parents=True, exist_ok=True)
    done = verdicts.merge(out / check.VERDICTS, journals)
    if marks:
        wanted = {check.key(unit) for unit in marks.units()}
        if not wanted <= set(done):
            raise LabError("no journal has the verdicts about the run's own states")
        marks.require_good(done)
    return check_report.result(explored, checker, selection, done, marks), explored.folder
