# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb torture on VMs: a round that is lived through, and one in which a kernel complains.
# timeout: 900
"""
import json
import os
import tempfile

import labtest
import ulptest

SEED = 8  # a slow command, an RST, a lost interrupt, memory that refuses
COMPLAINT = "WARNING: CPU: 0 PID: 1 at nowhere.c:1"


class Torture(labtest.LabCase):
    def torture(self, folder, *words, seed):
        """Starts `torture beta`; returns what runs, and a function that reads its file."""
        file = os.path.join(folder, "found.json")
        words = ("torture", "beta", "--seed", seed, "--within", "4s", "--json", file, *words)
        started = labtest.Started(self.lab.command(*words))
        self.lab.started.append(started)

        def read():
            with open(file) as found:
                return json.load(found)

        return started, read

    def test_round__is_lived_through(self):
        """The rules act, and nothing is left of them; NFS is among the work."""
        with tempfile.TemporaryDirectory() as folder:
            started, read = self.torture(folder, seed=SEED)
            self.assertEqual(started.wait(400), 0, started.output)
            found = read()
        self.assertEqual((found["peer"], found["consumer"]), ("alpha", "nfs"))
        (one,) = found["rounds"]
        self.assertEqual(one["failures"], [])
        self.assertEqual(len(one["rules"]), 4)
        self.assertGreater(sum(rule["applied"] > 0 for rule in one["rules"]), 1, one)
        self.assertIn('"rules": []', self.lab.run("faults", "--json", "beta").out)
        for vm in ("alpha", "beta"):
            ulptest.check_kernel(self.lab, vm, keep=True)

    def test_round__with_a_complaint(self):
        """A line of a kernel is a failure, with the command that has the round again."""
        with tempfile.TemporaryDirectory() as folder:
            started, read = self.torture(folder, "--keep-going", "--rules", 1, seed=3)
            # The mark of the round comes before its rules.
            self.lab.sh(
                "beta", "until dmesg | grep -q 'torture: seed 3'; do sleep 0.2; done", timeout=60
            )
            self.lab.sh("beta", "echo '%s' > /dev/kmsg" % COMPLAINT)
            self.assertEqual(started.wait(400), 1, started.output)
            found = read()
        failures = found["rounds"][0]["failures"]
        self.assertEqual([failure["kind"] for failure in failures], ["kernel"])
        self.assertIn(COMPLAINT, failures[0]["text"])
        again = "./staghorn torture beta --seed 3 --rules 1 --within 4s --peer alpha"
        self.assertEqual(failures[0]["replay"], again)
        self.assertIn("again: " + again, started.output)
        self.assertIn("round 1, seed 3: ", started.output)
        self.lab.sh("beta", "dmesg -C")


if __name__ == "__main__":
    labtest.main()
