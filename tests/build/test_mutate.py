#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests which changes tools/mutation.py makes, and how tools/mutate judges them."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import mutation  # noqa: E402

SAMPLE = """/* a < b && c */
#define LIMIT(x) ((x) + 1 < 5)

static const struct row rows[] = {
    {1, true},
};

int f(struct s *s, int n)
{
    enum { SIZE = 4 };
    /* n < 3 && true */
    sg_assert(n < 8);
    if (n < s->limit) {
        note("n < 3 && %d", n);
        s->count = n + 1;
        g_free(s->list);
    }
    return n;
}
"""


def changed(kind):
    """The lines that mutants of that kind make of the sample's lines."""
    return {
        m.apply(SAMPLE).split("\n")[m.line - 1].strip()
        for m in mutation.of_text("a.c", SAMPLE)
        if m.kind == kind
    }


def kinds(_):
    """a comparison is turned, a check dropped, a store, a call and a free left out"""
    assert changed("comparison") == {"if (n <= s->limit) {"}, changed("comparison")
    assert changed("check dropped") == {"if (false && (n < s->limit)) {"}
    assert changed("check turned") == {"if (!(n < s->limit)) {"}
    assert changed("bound") == {"s->count = n;"}
    assert changed("arithmetic") == {"s->count = n - 1;"}
    assert changed("number") == {"s->count = n + 2;"}
    assert changed("free left out") == {";"} and changed("call left out") == {";"}
    assert changed("store left out") == {";"}


def left_alone(_):
    """comments, strings, macros, tables outside functions and assertions stay as they are"""
    lines = {m.line for m in mutation.of_text("a.c", SAMPLE)}
    text = SAMPLE.split("\n")
    touched = {text[n - 1].strip() for n in lines}
    assert touched == {
        "if (n < s->limit) {",
        'note("n < 3 && %d", n);',
        "s->count = n + 1;",
        "g_free(s->list);",
    }, touched
    for mutant in mutation.of_text("a.c", SAMPLE):
        assert mutant.kind == "call left out" or '"n < 3 && %d"' in mutant.apply(SAMPLE)


def one_change(_):
    """each mutant of each file of the core differs from it in one line"""
    for path in sorted((TOP / "hw" / "core").rglob("*.c")):
        old = path.read_text()
        for mutant in mutation.of_text(path.name, old)[::7]:
            new = mutant.apply(old)
            differing = [a for a, b in zip(old.split("\n"), new.split("\n")) if a != b]
            assert len(differing) == 1 and old.count("\n") == new.count("\n"), mutant


def replay(_):
    """the same seed draws the same mutants, another one others, none of them twice"""
    files = {"a.c": SAMPLE, "b.c": SAMPLE.replace("int f", "int g") * 3}
    first = mutation.draw(files, 7, 12)
    assert first == mutation.draw(files, 7, 12)
    assert first != mutation.draw(files, 8, 12)
    assert len(set(first)) == len(first) == 12
    everything = mutation.draw(files, 1, 10**6)
    assert len(everything) == sum(len(mutation.of_text(n, t)) for n, t in files.items())


def tool():
    """tools/mutate as a module, although its name has no suffix."""
    loader = importlib.machinery.SourceFileLoader("mutate", str(TOP / "tools" / "mutate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(module)
    return module


PROGRAM = """int printf(const char *, ...);
int main(void)
{
    int n = 1;
    if (n < 2) {
        n = 2 + 1;
    }
    return n == 3 && printf("") == 0 ? 0 : 1;
}
"""
NINJA = """rule cc
  command = cc -O1 -o $out $in
rule object
  command = cc -O1 -c -o $out $in
build a.o: object ../src/a.c
build a: cc a.o
"""


def small_tree(mutate, place):
    """A tree of one file and one program for the tool."""
    (place / "src").mkdir()
    (place / "out").mkdir()
    (place / "src" / "a.c").write_text(PROGRAM)
    (place / "out" / "build.ninja").write_text(NINJA)
    (place / "out" / "compile_commands.json").write_text(
        json.dumps([{"file": "../src/a.c", "output": "a.o"}])
    )
    tree = mutate.Tree.__new__(mutate.Tree)
    tree.place, tree.out = place, place / "out"
    tree.ninja()
    return tree


def one_at_a_time(_):
    """a mutant leaves nothing behind: the next one is one change of the original"""
    mutate = tool()
    with tempfile.TemporaryDirectory() as folder:
        tree = small_tree(mutate, Path(folder))
        tests = [("a", [str(tree.out / "a")], None)]
        before = tree.code(tree.out / "a.o")
        outcomes = set()
        for mutant in mutation.of_text("a.c", PROGRAM):
            outcome = mutate.judge(tree, mutant, tests, {"a": 0.1}, {})
            outcomes.add(outcome if isinstance(outcome, str) else outcome[0])
            assert tree.code(tree.out / "a.o") == before, mutant
            tree.ninja()
            assert subprocess.run([tree.out / "a"], check=False).returncode == 0, mutant
        assert {"killed", "same"} <= outcomes, outcomes


def up_to_date(_):
    """a copy with a mutant left in it is repaired, and is then newer than the last build"""
    mutate = tool()
    with tempfile.TemporaryDirectory() as folder:
        top, copy = Path(folder) / "top", Path(folder) / "copy"
        for name in mutate.COPIED:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(name)
        mutate.copy_changed(top, copy)
        built = (copy / "hw").stat().st_mtime_ns
        (copy / "hw").write_text("mutant")
        (copy / "old.c").write_text("of an earlier tree")
        untouched = (copy / "docs").stat().st_mtime_ns
        mutate.copy_changed(top, copy)
        assert (copy / "hw").read_text() == "hw" and (copy / "hw").stat().st_mtime_ns > built
        assert (copy / "docs").stat().st_mtime_ns == untouched
        assert not (copy / "old.c").exists()


def sanitized(_):
    """--sanitized configures the copy as the second build of `make check` is"""
    mutate = tool()
    mutate.copy_changed = lambda top, target: None
    commands = []
    mutate.Tree.run = lambda self, command, **keywords: commands.append(command)
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder) / "build"
        (build / "native" / "meson-info").mkdir(parents=True)
        (build / "native" / "meson-info" / "intro-buildoptions.json").write_text(
            json.dumps(
                [{"name": "lwip_dir", "value": "/l"}, {"name": "firmware_dir", "value": "/f"}]
            )
        )
        for place, options in (("0", mutate.PLAIN), ("san0", mutate.SANITIZED)):
            mutate.Tree(build / place, build, ["meson"], options)
    plain, checked = [c for c in commands if c[0] == "meson"]
    script = (TOP / "tools" / "build" / "run.sh").read_text()
    for option in mutate.SANITIZED:
        assert option in checked and ("optimization" in option or option in script), option
    assert not any("sanitize" in word for word in plain)


def only_what_repeats(_):
    """a program that fails once has not noticed; one that fails twice or never ends has"""
    mutate = tool()
    with tempfile.TemporaryDirectory() as folder:
        once = "test -e mark && exit 0; touch mark; exit 1"
        assert not mutate.notices(["sh", "-c", once], None, 5, folder)
        assert mutate.notices(["sh", "-c", "exit 1"], None, 5, folder)
        assert mutate.notices(["sh", "-c", "kill -SEGV $$"], None, 5, folder)
        assert mutate.notices(["sh", "-c", "while :; do :; done"], None, 1, folder)
        assert not mutate.notices(["sleep", "2"], None, 1, folder)  # of processor time


def survivors_again(_):
    """--from tries survivors of earlier results, by what they change, and keeps the others"""
    mutate = tool()
    text = "int f(int n)\n{\n    return n < 3;\n}\n"
    row = {
        "file": "a.c",
        "line": 9,
        "kind": "comparison",
        "killed_by": None,
        "change": "-    return n < 3;\n+    return n <= 3;",
    }
    gone = dict(row, change="-    return n < 4;\n+    return n <= 4;")
    killed = dict(row, killed_by="a")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        path.write_text(json.dumps({"seed": 7, "share": 33, "mutants": [killed, row, gone]}))
        sys.argv = ["mutate", "--from", str(path)]
        campaign = mutate.Campaign(mutate.arguments(), {"a.c": text})
    assert [(n, m.line) for n, m in campaign.mutants] == [(1, 3)], campaign.mutants
    assert campaign.results() == [killed, row, gone] and campaign.seed == 7


def resumed(_):
    """--resume keeps what was judged and goes on with the rest of the same draw"""
    mutate = tool()
    files = {"a.c": SAMPLE}
    sys.argv = ["mutate", "--seed", "7", "--count", "4"]
    whole = mutate.Campaign(mutate.arguments(), files)
    with tempfile.TemporaryDirectory() as folder:
        mutate.settings = lambda: Path(folder)
        (Path(folder) / "mutate").mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            for number, mutant in whole.mutants[1:3]:
                whole.note(number, mutant, ("killed", "a"))
        sys.argv.append("--resume")
        rest = mutate.Campaign(mutate.arguments(), files)
        assert rest.rows == whole.rows and len(rest.rows) == 2
        assert rest.mutants == whole.mutants[:1] + whole.mutants[3:]


def linked(_):
    """a program is concerned if it contains the object"""
    mutate = tool()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, text in (
            ("f", "int f(void) { return 1; }"),
            ("g", "int g(void) { return 1; }"),
            ("main", "int f(void); int main(void) { return f(); }"),
        ):
            (place / (name + ".c")).write_text(text)
            subprocess.run(
                ["cc", "-c", "-o", place / (name + ".o"), place / (name + ".c")], check=True
            )
        subprocess.run(["cc", "-o", place / "p", place / "main.o", place / "f.o"], check=True)
        tests = [("p", [str(place / "p")], None)]
        assert mutate.concerned(tests, place / "f.o") == tests
        assert mutate.concerned(tests, place / "g.o") == []


def refusals(_):
    """wrong arguments, and a part that no file name has, are errors with status 2"""
    tool = str(TOP / "tools" / "mutate")
    for words in (["--count", "0"], ["--jobs", "65"], ["--seed", "x"], ["--only", "nosuch"]):
        done = subprocess.run(
            [sys.executable, tool, "--list", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and done.stderr.strip(), (words, done)


if __name__ == "__main__":
    sys.exit(
        cases.run(
            [
                kinds,
                left_alone,
                one_change,
                replay,
                one_at_a_time,
                up_to_date,
                sanitized,
                only_what_repeats,
                survivors_again,
                resumed,
                linked,
                refusals,
            ]
        )
    )
