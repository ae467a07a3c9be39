#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of docs/course without VMs: files, links, reports that pages show, the judge's errors."""
import re
import subprocess
import sys
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
PAGES = sorted((TOP / "docs" / "course").glob("[0-9]*.md"))
CODE = TOP / "guest-driver" / "course"
JUDGE = TOP / "docs" / "course" / "judge"
CASES = []

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / "tools"), str(TOP / "tests" / "vm" / "lib"), str(TOP / "tests" / "style")]

import course_variants  # noqa: E402
import example  # noqa: E402
from course import exercises, judge, steps  # noqa: E402


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def section(page, title):
    """The text of a section of a page."""
    found = re.search(r"^## %s\n(.*?)(?=^## |\Z)" % title, page.read_text(), re.M | re.S)
    assert found, (page.name, title)
    return found[1]


@case
def steps__have_their_files(_folder):
    """each step has a page, a module with a Kbuild, and demands"""
    numbers = [int(page.name[:2]) for page in PAGES]
    assert numbers == sorted(steps.STEPS) == list(range(1, 11)), numbers
    assert {path.name for path in CODE.glob("step*")} == {"step%02d" % n for n in numbers}
    for number in numbers:
        folder = CODE / ("step%02d" % number)
        assert (folder / "main.c").exists() and (folder / "Kbuild").exists(), folder
        assert steps.STEPS[number], number


@case
def kbuilds__agree(_folder):
    """a step's Kbuild has the files that the one for all steps has"""
    text = (CODE / "Kbuild").read_text()
    values = dict(re.findall(r"^([\w-]+) := (.*)$", text, re.M))

    def expanded(name):
        words = re.sub(r"\$\((\w+)\)", lambda m: " ".join(expanded(m[1])), values[name])
        return words.split()

    for number in steps.STEPS:
        folder = "step%02d" % number
        own = " ".join(
            re.findall(r"^course-y \S+ (.*)$", (CODE / folder / "Kbuild").read_text(), re.M)
        )
        places = {str((CODE / folder / one).resolve().relative_to(CODE)) for one in own.split()}
        assert places == set(expanded(folder + "-y")), folder
        for one in places:
            assert (CODE / one).with_suffix(".c").exists(), one


@case
def pages__show_the_code(_folder):
    """each page shows code of its step, and as it is"""
    for page in PAGES:
        assert "guest-driver/course/step%s/" % page.name[:2] in page.read_text(), page.name
        assert not example.examine(page), page.name


@case
def code__is_shown(_folder):
    """each file of code that a step adds is on its page"""
    for path in CODE.glob("step*/*.c"):
        page = next(x for x in PAGES if x.name[:2] == path.parent.name[4:])
        shown = "%s/%s:" % (path.parent.name, path.name)
        in_main = path.name == "main.c" and int(page.name[:2]) > 3
        assert shown in page.read_text() or in_main, (page.name, shown)


@case
def mistakes__are_on_the_pages(_folder):
    """each page shows the report of its twin's mistake, whose rule the manual has"""
    manual = (TOP / "docs" / "manual" / "checker.md").read_text()
    assert sorted(course_variants.TWINS) == sorted(steps.STEPS)
    for number, twin in course_variants.TWINS.items():
        text = section(PAGES[number - 1], "What goes wrong")
        assert twin.finds in text, (number, twin.finds)
        assert twin.says in text, (number, twin.says)
        if number > 1:
            assert twin.says and "| %s |" % twin.finds in manual, twin.finds
    for page in PAGES:
        for rule in re.findall(r"\b[A-Z]+(?:-[A-Z]+)+\b", section(page, "What goes wrong")):
            assert rule in ("MSI-X",) or "| %s |" % rule in manual, (page.name, rule)


@case
def variants__fit_the_code(_folder):
    """what twins and solutions change is in the code once"""
    names = []
    for name, _, changes in course_variants.variants():
        names.append(name)
        for file, each in changes.items():
            assert course_variants.text_of(file, each) != (CODE / file).read_text(), (name, file)
    assert len(names) == len(set(names)) > len(steps.STEPS)


@case
def exercises__are_on_the_pages(_folder):
    """each page has as many exercises as the judge knows, and each has a solution"""
    for page in PAGES:
        number = int(page.name[:2])
        title = "Exercises?" if number else ""
        found = [int(x) for x in re.findall(r"^(\d)\. ", section(page, title), re.M)]
        assert found == sorted(exercises.EXERCISES[number]), page.name
        for each in found:
            assert (number, each) in course_variants.SOLUTIONS, (number, each)


@case
def links__lead_somewhere(_folder):
    """links of the pages name files and headings that exist"""
    sys.path.append(str(TOP / "tests" / "style"))
    for page in [*PAGES, TOP / "docs" / "course" / "README.md"]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), (page.name, target)
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
                known = {re.sub(r"[^\w\- ]", "", x.lower()).replace(" ", "-") for x in headings}
                assert anchor in known, (page.name, target)


@case
def overview__lists_the_pages(_folder):
    """the overview links each page"""
    text = (TOP / "docs" / "course" / "README.md").read_text()
    assert re.findall(r"^\| \[\d+\]\((\S+)\)", text, re.M) == [page.name for page in PAGES]


@case
def judge__refuses_arguments(folder):
    """the judge refuses steps, exercises, files and folders that there are not, with status 2"""
    (folder / "text.ko").write_text("no module")
    (folder / "empty").mkdir()
    for words, said in (
        (["0", folder], "there is no step 0"),
        (["11", folder], "there is no step 11"),
        (["x", folder], "there is no step x"),
        (["1"], "the following arguments are required"),
        (["1", folder / "absent.ko"], "No such file"),
        (["1", folder / "text.ko"], "no kernel module"),
        (["1", folder / "empty"], "neither Kbuild nor Makefile"),
        (["1", CODE / "step01", "--exercise", "9"], "step 1 has no exercise 9: 1"),
        (["1", CODE / "step01", "--nonsense"], "unrecognized arguments"),
    ):
        done = subprocess.run(
            [JUDGE, *map(str, words)], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 2 and said in done.stderr, (words, done)
        assert not done.stdout, (words, done)


@case
def judge__copies_siblings(folder):
    """of a folder the judge also compiles what its Kbuild names beside it, and nothing else"""
    for name in ("mine", "other", "more"):
        (folder / name).mkdir()
    (folder / "mine" / "Kbuild").write_text("course-y := main.o ../other/x.o ../absent/y.o\n")
    assert judge.siblings(folder / "mine") == [folder / "other"]


class FakeBench:
    """A bench on which nothing is loaded."""

    place = "/sys/none"

    def __init__(self, said, device):
        self.said, self.log = said, device

    def messages(self):
        return self.said

    def device(self):
        return self.log

    def get(self, _name):
        return 8


@case
def demands__judge(_folder):
    """demands find what is there, and say what is missing"""
    line = "1.0 staghorn_%s r0: %s\n"
    log = "".join(
        line % ("reg_write", "register 0x%x becomes 0x%x, 4 octets" % row)
        for row in ((8, 2), (0x80, 4096), (0x90, 16), (0xA8, 64), (8, 1), (0x94, 33), (0x98, 33))
    )
    log += 33 * (line % ("detail", "admin: NOP: status 0, id 0x0"))
    run = steps.Run(FakeBench("x: vectors 4\nx: vectors 8\nx: ready\n", log), "x")
    run.look()
    for demand in (steps.vectors, steps.is_reset, steps.enabled, steps.commands, steps.consumed):
        assert demand(run) == "", demand.__doc__
    assert steps.ends_in_reset(run) and steps.caps(run) and steps.tests_dma(run)
    run = steps.Run(
        FakeBench("x: vectors 4\n", log.replace("0x98 becomes 0x21", "0x98 becomes 0x20")), "x"
    )
    run.look()
    for demand in (steps.vectors, steps.enabled, steps.consumed):
        assert demand(run), demand.__doc__


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
