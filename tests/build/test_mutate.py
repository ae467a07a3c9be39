#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The maker of mutants (tools/mutation.py): what it changes, and what it leaves alone."""
import subprocess
import sys
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
    """New texts of the sample's lines by mutants of that kind."""
    return {m.apply(SAMPLE).split("\n")[m.line - 1].strip()
            for m in mutation.of_text("a.c", SAMPLE) if m.kind == kind}


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
    assert touched == {"if (n < s->limit) {", 'note("n < 3 && %d", n);', "s->count = n + 1;",
                       "g_free(s->list);"}, touched
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


def refusals(_):
    """wrong arguments and a part that no file has are said, with status 2"""
    tool = str(TOP / "tools" / "mutate")
    for words in (["--count", "0"], ["--jobs", "65"], ["--seed", "x"], ["--only", "nosuch"]):
        done = subprocess.run([sys.executable, tool, "--list", *words], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 2 and done.stderr.strip(), (words, done)


if __name__ == "__main__":
    sys.exit(cases.run([kinds, left_alone, one_change, replay, refusals]))
