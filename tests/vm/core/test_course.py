#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/course: the judge accepts the module of each step and the solution of each exercise, and
finds the mistake of each step's twin, as the step's page says.
# timeout: 1500
# suite: full

All modules are compiled at once, and judged in one VM without a reboot.
"""
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import course_variants
import labtest

JUDGE = labtest.TOP / "docs" / "course" / "judge"
COMPILER = labtest.TOP / "tools" / "guest" / "module.sh"
PAGES = sorted((labtest.TOP / "docs" / "course").glob("[0-9]*.md"))
UNSOLVED = (1, 4, 8)  # steps whose module is judged for its exercises, too: a sample
# One step with one mistake breaks other rules as well, if the step goes on.
MORE = ("ADMIN-OPCODE", "CQ-OVERRUN", "DB-RESET", "RESET-LEFT")


class Course(labtest.LabCase):
    up_arguments = ("--vms", "alpha")
    driver_check = "strict"
    mistakes = (*{twin.finds for twin in course_variants.TWINS.values()}, *MORE)

    @classmethod
    def setUpClass(cls):
        cls.modules = Path(tempfile.mkdtemp(prefix="sg-course-"))
        cls.addClassCleanup(shutil.rmtree, cls.modules, True)
        with tempfile.TemporaryDirectory(prefix="sg-course-") as sources:
            course_variants.arrange(sources)
            cls.said = subprocess.run(
                [COMPILER, sources, cls.modules],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=900,
                check=True,
            ).stdout
        super().setUpClass()

    def judge(self, step, name, *options, status=0):
        """The lines of the judge: {name: "ok" or "not ok"}, and all of its output."""
        words = [JUDGE, str(step), str(self.modules / (name + ".ko")), "--lab", "lab", *options]
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual(done.returncode, status, done.stdout)
        lines = re.findall(r"^(ok|not ok) \d+ - (.*)$", done.stdout, re.M)
        self.assertRegex(done.stdout, r"(?m)^1\.\.%d$" % len(lines))
        return {text: word for word, text in lines}, done.stdout

    def step(self, step):
        """The module of a step has what the step demands, and its twin has not."""
        self.judge(step, "step%02d" % step)
        twin = course_variants.TWINS[step]
        page = PAGES[step - 1].read_text()
        lines, said = self.judge(step, course_variants.name_of("twin", step), status=1)
        self.assertIn(twin.finds, said)
        self.assertIn(twin.says, said)
        checker = "ok" if step == 1 else "not ok"
        self.assertEqual(lines["the driver checker reports nothing"], checker, said)
        self.assertEqual(lines["the kernel complains of nothing"], "ok", said)
        self.assertIn(twin.finds, page)
        self.assertIn(twin.says, page)
        for function in re.findall(r"%s, .* at (\w+\+0x)" % twin.finds, said):
            self.assertIn(" at " + function, page, said)

    def exercises(self, step):
        """The solutions of a step's exercises have what these demand, and the step's module has
        not, unless nothing has to be changed."""
        for (of, number), changes in course_variants.SOLUTIONS.items():
            if of != step:
                continue
            words = ("--exercise", str(number))
            solved = course_variants.name_of("solved", step, number) if changes else None
            self.judge(step, solved or "step%02d" % step, *words)
            if solved and step in UNSOLVED:
                self.judge(step, "step%02d" % step, *words, status=1)

    def test_00__compiles(self):
        """The modules are compiled without a warning."""
        words = ("is added to multiple modules",)
        found = [x for x in self.said.splitlines() if not any(word in x for word in words)]
        self.assertEqual(found, [])

    def test_00__folder(self):
        """The judge compiles a folder and its siblings."""
        words = [JUDGE, "2", course_variants.COURSE / "step02", "--lab", "lab"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok 1 - it compiles without a warning\n", done.stdout)


def add(step):
    """Adds the cases of a step."""

    def module(self):
        self.step(step)

    def exercises(self):
        self.exercises(step)

    module.__doc__ = "Step %d: the module is accepted, its twin's mistake is found." % step
    exercises.__doc__ = "Step %d: the solutions of the exercises are accepted." % step
    setattr(Course, "test_%02d__module" % step, module)
    setattr(Course, "test_%02d__exercises" % step, exercises)


for each in course_variants.TWINS:
    add(each)

if __name__ == "__main__":
    labtest.main()
