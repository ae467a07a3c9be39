# SPDX-License-Identifier: GPL-2.0-or-later
"""A few rounds of the demo's scenario: alpha writes a log into beta's NVDIMM until a power cut.
# timeout: 1200
# suite: full
"""
import sys

import labtest
import programs

sys.path.insert(0, str(labtest.TOP / "tools"))

from bench import scenario  # noqa: E402
from launcher import agent  # noqa: E402
from launcher.state import LabFolder  # noqa: E402

DELAYS = (0.1, 0.5, 0.9, 1.3)
POLICIES = ("random:20", "lose-all", "random:21", "worst-for:pmem0@0x201000+0x200000")


class Scenario(labtest.LabCase):
    up_arguments = ("--pmem", "beta:64M,domain=adr")
    sessions = iter(range(1, 1000))

    def play(self, *arguments, **keywords):
        found = scenario.play(self.lab.name, next(self.sessions), *arguments, **keywords)
        print("# %s" % found)
        self.assertGreater(found.acknowledged, 100)
        return found

    def test_flushed__every_acknowledged_record_is_there(self):
        """FLU-07/12/26/36: through random cuts nothing acknowledged is lost, nothing is torn."""
        for delay, policy in zip(DELAYS, POLICIES):
            with self.subTest(delay=delay, policy=policy):
                found = self.play(True, delay, policy=policy)
                self.assertEqual((found.lost, found.broken), (0, 0), found)
                self.assertGreaterEqual(found.tail, found.acknowledged)

    def test_flushed__cut_at_the_worst_moments(self):
        """FLU-07/26: the power is cut at an event, right before or after a promise is made."""
        for arm in (
            "before-flush-answer:401",
            "after-flush-answer:402",
            "before-atomic-write:203",
            "after-atomic-write:204",
            "write-placed:205",
        ):
            with self.subTest(arm=arm):
                found = self.play(True, 0, policy="lose-all", arm=arm)
                self.assertEqual((found.lost, found.broken), (0, 0), found)
                self.assertLess(found.acknowledged, 210)

    def test_not_flushed__some_are_lost(self):
        """The same writer without Flush loses records, so a cut does lose data."""
        for policy in ("random:1", "lose-all"):
            with self.subTest(policy=policy):
                self.assertGreater(self.play(False, 0.5, policy=policy).lost, 0)

    def test_not_flushed__all_kept(self):
        """A cut may keep everything; then the writer without Flush loses nothing."""
        found = self.play(False, 0.3, policy="keep-all")
        self.assertEqual((found.lost, found.broken), (0, 0), found)

    def test_judge__sees_a_spoilt_record(self):
        """log_check finds damage: one octet of one record is enough."""
        folder = LabFolder(self.lab.name)
        session = next(self.sessions)
        scenario.install(folder, "beta")
        scenario.install(folder, "alpha")
        server = scenario.start_server(folder)
        try:
            words = ["log_writer", "10.77.0.2", str(session), "--seconds", "0.3"]
            status, out, error = agent.capture(folder, "alpha", words, timeout=60)
            self.assertEqual(status, 0, out + error)
        finally:
            server.stop()
        acknowledged = int(out.split("acknowledged ")[1].split()[0])
        self.assertEqual(scenario.check(folder, session, acknowledged)[1:], [0, 0])
        programs.install(self.lab, "beta", "pmem_local")
        self.lab.sh("beta", "pmem_local write %s %d 8 1" % (scenario.DEVICE, 4096 + 128 * 7 + 64))
        self.assertEqual(scenario.check(folder, session, acknowledged)[1:], [1, 1])


if __name__ == "__main__":
    labtest.main()
