#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/debugging.md promises of ./staghorn trace: two VMs on one time line.
# timeout: 300
# suite: full

rping runs between the VMs while both are traced.  Each kind of event is there for both of them, and
a segment is sent before it is received, although two QEMUs have written that.
"""
import json
import os
import subprocess
import tempfile

import labtest
import programs
import rdmatest

from launcher import timeline_lines, timeline_tap
from launcher.qmp import Monitor

COUNT = 3
# Not of an rping that succeeds, and not asked for.
NOT_HERE = {"error", "guest"}


class Timeline(labtest.LabCase):
    def events_on(self, vm):
        """Names of our events that are on in the VM's QEMU."""
        with Monitor(rdmatest.folder(self.lab), vm) as monitor:
            found = monitor.run("trace-event-get-state", name="staghorn_*")
        return {each["name"] for each in found if each["state"] == "enabled"}

    def trace(self, folder, *words):
        """A trace of both VMs as data; also page, Perfetto's file and the Common Trace Format."""
        files = ("--html", folder + "/page.html", "--perfetto", folder + "/perfetto.json")
        files += ("--ctf", folder + "/ctf")
        done = self.lab.run("trace", "alpha", "beta", *files, "--json", *words)
        return json.loads(done.out), done.err

    def test_rping__both_on_one_time_line(self):
        before = {vm: self.events_on(vm) for vm in ("alpha", "beta")}
        server = self.lab.start("beta", "rping", "-s", "-C", COUNT)
        programs.wait_listening(self.lab, "beta", server)
        command = ("--", "rping", "-c", "-v", "-a", "beta", "-C", COUNT)
        with tempfile.TemporaryDirectory() as folder:
            found, said = self.trace(folder, *command)
            page = open(folder + "/page.html", encoding="utf-8").read()
            records = json.load(open(folder + "/perfetto.json", encoding="utf-8"))["traceEvents"]
            self.assertEqual(sorted(os.listdir(folder)), ["ctf", "page.html", "perfetto.json"])
            words = ["babeltrace2", "--no-delta", folder + "/ctf"]
            lines = subprocess.run(words, capture_output=True, encoding="utf-8", check=True)
            self.assertEqual(len(lines.stdout.splitlines()), len(found["events"]), lines.stderr)
        self.assertEqual(server.wait(), 0, server.output)
        self.assertEqual((found["status"], found["notes"]), (0, []))
        self.assertIn("ping data: rdma-ping-0", said)
        for vm in ("alpha", "beta"):
            with self.subTest(vm=vm):
                kinds = set(found["vms"][vm]["kinds"])
                self.assertEqual(set(timeline_lines.KINDS) - NOT_HERE - kinds, set(), found["vms"])
                self.assertIn("%s, qp " % vm, page)
                self.assertEqual(self.events_on(vm), before[vm])
                self.assertNotIn("staghorn_flow", self.lab.run("log", vm, "--device").out)
        self.check_order(found["events"])
        self.check_spans(records)
        self.check_arrows(found["events"], records, page)

    def check_order(self, events):
        """What alpha has sent arrives at beta, not before."""
        for one, other in (("alpha", "beta"), ("beta", "alpha")):
            sent, received = (
                [each for each in events if (each["vm"], each["kind"]) == (vm, kind)]
                for vm, kind in ((one, "sent"), (other, "received"))
            )
            self.assertGreaterEqual(len(sent), COUNT)
            # One connection: TCP keeps the order of its segments.
            self.assertEqual(
                [each["text"].split(" sent ")[1] for each in sent],
                [each["text"].split(" received ")[1] for each in received],
            )
            for first, second in zip(sent, received):
                self.assertLessEqual(first["us"], second["us"], (first, second))

    def check_spans(self, records):
        """rping's requests and receives are spans, each with its completion."""
        begun = {each["id"] for each in records if each["ph"] == "b"}
        ended = {each["id"]: each["args"]["status"] for each in records if each["ph"] == "e"}
        self.assertEqual(begun, set(ended))
        self.assertGreaterEqual(list(ended.values()).count("SUCCESS"), 4 * COUNT, ended)

    def check_arrows(self, events, records, page):
        """Each segment that the one VM received is an arrow from where the other one sent it."""
        received = sum(each["kind"] == "received" for each in events)
        for phase in "sf":
            numbers = [each["id"] for each in records if each["ph"] == phase]
            self.assertEqual(len(numbers), received)
            self.assertEqual(set(numbers), set(range(1, received + 1)))
        self.assertIn('class="arrow"', page)

    def test_time__ends_by_itself(self):
        """With --for nothing needs to happen in the VMs."""
        with tempfile.TemporaryDirectory() as folder:
            found, _ = self.trace(folder, "--for", "0.5")
        self.assertGreaterEqual(found["seconds"], 0.5)
        self.assertLess(found["seconds"], 30 * labtest.SLOW)

    def test_own_events__each_in_qemu(self):
        """QEMU has each event that the trace switches on."""
        with Monitor(rdmatest.folder(self.lab), "alpha") as monitor:
            known = {x["name"] for x in monitor.run("trace-event-get-state", name="staghorn_*")}
        self.assertEqual(set(timeline_lines.EVENTS), known & set(timeline_lines.EVENTS))
        self.assertTrue(timeline_tap.own_events({"trace": []}))


if __name__ == "__main__":
    labtest.main()
