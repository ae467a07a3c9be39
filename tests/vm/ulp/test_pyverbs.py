#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own Python tests, unmodified, against docs/pyverbs.md.

They come from rdma-core's source and run in a VM with two adapters and Debian's pyverbs.  The
document says whether each test class runs, why each skipped case is skipped, and which cases are
left out; this test compares it with the source and with the results.
"""
# timeout: 1500
import ast
import json
from pathlib import Path

import labtest
from programs import BUILD, SOURCES

SOURCE = Path(BUILD) / "products/src-rdma-core/src/tests"
DOCUMENT = labtest.TOP / "docs/pyverbs.md"
RUNS, NEVER = "runs", "not applicable"
HUGE_PAGES = 64
LIMIT = 1200  # seconds of all cases


def tables():
    """The rows of the document's tables, by heading: [first cell, second, third]."""
    found, heading = {}, None
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found.setdefault(heading, []).append(cells)
    return found


def source_cases():
    """{module.Class: [method, ...]} of rdma-core's source."""
    found = {}
    for path in sorted(SOURCE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                methods = [m.name for m in node.body if isinstance(m, ast.FunctionDef)]
                methods = [name for name in methods if name.startswith("test")]
                if methods:
                    found["%s.%s" % (path.stem, node.name)] = methods
    return found


class Pyverbs(labtest.LabCase):
    up_arguments = ("--vms", "alpha", "--image", "consumers", "--adapter", "alpha")
    up_arguments += ("--mem", "1536M")

    @classmethod
    def setUpClass(cls):
        cls.source = source_cases()
        rows = tables()
        cls.classes = {row[0]: row[1] for row in rows["Classes"]}
        cls.skips = {(row[0], row[1]): row[2] for row in rows["Cases that skip themselves"]}
        cls.omitted = ["%s.%s" % (row[0], row[1]) for row in rows["Cases that are left out"]]
        super().setUpClass()
        cls.lab.run("copy", SOURCE, "alpha:/root/tests")
        cls.lab.run("copy", SOURCES / "ulp/pyverbs_run.py", "alpha:/root/run.py")
        cls.lab.sh("alpha", "echo %d > /proc/sys/vm/nr_hugepages" % HUGE_PAGES)
        cls.cases = cls.run_cases([word for case in cls.omitted for word in ("-x", case)])
        # The cases depend on real time, for which this machine may be too slow: failed cases run
        # again.
        failed = [name for name, row in cls.cases.items() if row["result"] == "failed"]
        if failed:
            print("# a second time: " + " ".join(failed))
            for name in failed:
                print("\n".join("#   " + s[:200] for s in cls.cases[name]["text"].splitlines()))
            cls.cases.update(cls.run_cases(failed))
        slowest = sorted(cls.cases.values(), key=lambda row: -row["seconds"])[:5]
        print("# slowest: " + ", ".join("%(case)s %(seconds)s s" % row for row in slowest))

    @classmethod
    def run_cases(cls, arguments):
        """{case: the runner's line}; the runner must have finished."""
        words = ("python3", "-W", "ignore", "/root/run.py", "/root/tests", *arguments)
        words = ("exec", "-n", "--timeout", LIMIT, "alpha", "--", *words)
        done = cls.lab.run(*words, status=None, timeout=LIMIT + 60)
        rows = [json.loads(line) for line in done.out.splitlines()]
        if not rows or "end" not in rows[-1]:
            tail = "\n".join((done.out + done.err).splitlines()[-40:])
            raise AssertionError("the tests did not end: status %d\n%s" % (done.returncode, tail))
        return {row["case"]: row for row in rows[:-1]}

    def rows_of(self, verdict):
        """(class, {method: result}) of the document's classes of this kind."""
        for name, said in self.classes.items():
            if said == verdict:
                rows = {
                    c.rsplit(".", 1)[1]: row
                    for c, row in self.cases.items()
                    if c.rsplit(".", 1)[0] == name
                }
                yield name, rows

    def test_document_is_complete(self):
        """Every class of the source has a row, and every row has a class."""
        self.assertEqual(sorted(self.classes), sorted(self.source))
        self.assertLessEqual(set(self.classes.values()), {RUNS, NEVER})
        for name, method in list(self.skips) + [c.rsplit(".", 1) for c in self.omitted]:
            with self.subTest(case="%s.%s" % (name, method)):
                self.assertIn(method, self.source.get(name, ()))
                self.assertEqual(self.classes[name], RUNS)

    def test_every_case_was_run(self):
        """All cases pass, except those that the document leaves out."""
        every = {"%s.%s" % (name, m) for name, found in self.source.items() for m in found}
        self.assertEqual(set(self.cases), every - set(self.omitted))
        ok = sum(row["result"] == "ok" for row in self.cases.values())
        print("# %d cases, %d of them passed" % (len(self.cases), ok))

    def test_none_fails(self):
        for name, row in self.cases.items():
            with self.subTest(case=name):
                self.assertIn(row["result"], ("ok", "skipped"), row["text"])

    def test_classes_that_run(self):
        """At least one case of each class passes; each skipped case has a row with the reason."""
        for name, rows in self.rows_of(RUNS):
            with self.subTest(name=name):
                self.assertIn("ok", [row["result"] for row in rows.values()])
            for method, row in rows.items():
                with self.subTest(case="%s.%s" % (name, method)):
                    self.assertEqual(
                        row["result"] == "skipped", (name, method) in self.skips, row["text"]
                    )

    def test_classes_that_are_not_applicable(self):
        """None of their cases runs; otherwise the document claims too little."""
        for name, rows in self.rows_of(NEVER):
            with self.subTest(name=name):
                self.assertEqual({row["result"] for row in rows.values()}, {"skipped"})

    def test_zz_nothing_left(self):
        """No object outlives its program, and the kernel has not complained."""
        self.assertEqual(self.lab.sh("alpha", "rdma resource show qp").strip(), "")
        self.assertNotRegex(self.lab.sh("alpha", "dmesg"), r"WARNING:|BUG:|Oops")


if __name__ == "__main__":
    labtest.main()
