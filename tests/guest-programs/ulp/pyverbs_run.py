#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs rdma-core's Python tests in a VM and prints the result of each case as JSON.

pyverbs_run.py FOLDER [-x CASE]... [CASE]...: FOLDER is rdma-core's `tests`; a case is named
MODULE.CLASS.METHOD.  Without cases it runs all but those behind -x.  One line for each case goes to
standard output, {"case", "result": "ok", "skipped" or "failed", "text", "seconds"}, and {"end":
true} at the end; the tests' own output goes to standard error.
"""
import importlib.machinery
import json
import os
import signal
import sys
import time
import unittest

LIMIT = 180  # seconds of a case; then it has failed


class Late(Exception):
    pass


class Result(unittest.TestResult):
    """The result of one case."""

    word = text = None

    def say(self, word, text):
        # A failure in tearDown replaces the result; a skip there does not.
        if self.word != "failed":
            self.word, self.text = word, text

    def addSuccess(self, test):
        self.say("ok", "")

    def addSkip(self, test, reason):
        self.say("skipped", reason)

    def addError(self, test, err):
        self.say("failed", self._exc_info_to_string(err, test))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(test, err)


def load(folder):
    """All cases, as rdma-core's run_tests.py finds them."""
    sys.path.insert(0, folder)
    args_parser = importlib.import_module("args_parser")
    loader = importlib.machinery.SourceFileLoader("tests", folder + "/__init__.py")
    tests = loader.load_module()
    args_parser.parser.parse_args()
    return flat(unittest.defaultTestLoader.loadTestsFromModule(tests))


def flat(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


def late(*_):
    raise Late("not done within %d s" % LIMIT)


def main():
    folder, rest = sys.argv[1], sys.argv[2:]
    sys.argv[1:] = []
    omitted = {case for flag, case in zip(rest, rest[1:]) if flag == "-x"}
    wanted = set(rest) - omitted - {"-x"}
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGALRM, late)
    for test in load(folder):
        name = test.id().removeprefix("tests.")
        if name in omitted or (wanted and name not in wanted):
            continue
        result = Result()
        begin = time.monotonic()
        signal.alarm(LIMIT)
        test.run(result)
        signal.alarm(0)
        line = {"case": name, "result": result.word, "text": result.text}
        line["seconds"] = round(time.monotonic() - begin, 1)
        said.write(json.dumps(line) + "\n")
        said.flush()
    said.write(json.dumps({"end": True}) + "\n")
    said.flush()


if __name__ == "__main__":
    main()
