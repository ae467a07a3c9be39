# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of rpcrdma in VMs: the program, its TAP, and what it decodes of a capture."""
import json
import os
import re
import subprocess
import time

import labtest
import ulptest

PROGRAM = labtest.TOP / "build" / "native" / "tools" / "rpcrdma" / "rpcrdma"


class Report:
    """What `rpcrdma check --tap` says of each case, by id."""

    def __init__(self, text):
        self.text = text
        self.passed, self.skipped, self.broken = set(), set(), {}
        self.troubled = set()  # cases without a judgement
        self.details = {}  # what is said of each case before its line
        rules, lines = set(), []  # of the case whose line comes next
        for line in text.splitlines():
            rule = re.match(r"# ((?:RPC|PVT)-\d\d) \(RFC", line)
            case = re.match(r"(not )?ok \d+ - ([a-z0-9-]+): [^#]*(# SKIP)?", line)
            lines.append(line)
            if rule:
                rules.add(rule[1])
            elif case:
                self._enter(case, rules)
                self.details[case[2]] = "\n".join(lines)
                rules, lines = set(), []
        self.cases = int(re.search(r"^1\.\.(\d+)$", text, re.M)[1])

    def _enter(self, case, rules):
        if case[1]:
            if rules:
                self.broken[case[2]] = rules
            else:
                self.troubled.add(case[2])
        else:
            (self.skipped if case[3] else self.passed).add(case[2])

    def complete(self):
        """Whether there is a line for each case."""
        lines = len(self.passed) + len(self.skipped) + len(self.broken) + len(self.troubled)
        return lines == self.cases


def check_server(lab, target, *more):
    """(status, the report) of rpcrdma check server in the client's VM; each case has a line."""
    words = ["rpcrdma", "check", "server", target, "--tap", "--quiet", 100, "--wait", 2000]
    done = lab.run(
        *("exec", "-n", "--timeout", ulptest.LIMIT, ulptest.CLIENT, "--", *words, *more),
        status=None,
        timeout=ulptest.LIMIT + 30,
    )
    assert not done.err, done.err
    report = Report(done.out)
    assert report.complete(), done.out
    return done.returncode, report


def settled(capture):
    """Waits until the file no longer grows."""
    size = -1
    while size != os.path.getsize(capture):
        size = os.path.getsize(capture)
        time.sleep(1)


def decode(capture, *ports):
    """(status, the objects of --json) for the capture, once it no longer grows."""
    settled(capture)
    words = [word for port in ports for word in ("--port", str(port))]
    done = subprocess.run(
        [PROGRAM, "decode", "--json", "--transactions", *words, capture],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]
