#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Admin commands of the driver fail, by the kernel's own framework (fail_admin of debugfs).
# timeout: 900

Programs may fail; the kernel must neither complain nor leak (labtest.Lab.down), an adapter that
counts as lost is recovered, and afterwards everything works as before.
"""
import re

import labtest
import lifetest
import programs

FOLDER = "/sys/kernel/debug/staghorn-%s/fail_admin"
EIO, ETIMEDOUT = 5, 110
ALL_BUT_DESTRUCTION = 0xFFFFFFFF
CREATE_CQ = 0x18
# In the order of a program that opens the device, connects and transfers.
PROGRAMS = ("verbs_abi", "verbs_memory", "verbs_queues")
READY = "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null; ls %s"


class FailAdmin(lifetest.LifeCase):
    def setUp(self):
        path = "/sys/class/infiniband/staghorn0/device"
        self.place = FOLDER % self.lab.sh("alpha", "basename $(readlink %s)" % path).strip()
        files = self.lab.sh("alpha", READY % self.place).split()
        self.assertLessEqual({"error", "opcode", "probability", "times", "interval"}, set(files))

    def inject(self, **values):
        for name, value in {"probability": 0, **values}.items():
            self.lab.sh("alpha", "echo %s > %s/%s" % (value, self.place, name))

    def fails(self, probability, times, error=EIO, opcode=ALL_BUT_DESTRUCTION):
        """From now on commands fail; the probability last, because it starts that."""
        values = {"error": error, "opcode": opcode, "times": times, "interval": 1, "verbose": 0}
        self.inject(**values)
        self.lab.sh("alpha", "echo %d > %s/probability" % (probability, self.place))

    def test_one_command__its_caller_is_told(self):
        """CREATE_CQ fails once with EIO; the next one works."""
        self.fails(100, 1, opcode=CREATE_CQ)
        words = "ibv_rc_pingpong -d staghorn0 -g 0 localhost 2>&1; :"
        self.assertIn("Couldn't create CQ", self.lab.sh("alpha", words))
        self.assertEqual(self.lab.sh("alpha", "cat %s/times" % self.place), "0\n")
        self.inject()
        self.works()

    def test_programs__random_commands_fail(self):
        """Programs run while one command in ten, then one in three, fails."""
        programs.install(self.lab, "alpha", *PROGRAMS)
        losses = self.losses()
        for probability in (10, 33):
            self.fails(probability, -1)
            for name in PROGRAMS:
                words = "timeout 100 %s %s > /tmp/%s.out 2>&1; echo $?"
                self.lab.sh("alpha", words % (name, programs.ADDRESS["alpha"], name), timeout=150)
            self.inject()
        self.assertEqual(self.losses(), losses)  # nothing had to be kept
        for name in PROGRAMS:
            done = self.lab.sh("alpha", "timeout 200 %s %s" % (name, programs.ADDRESS["alpha"]))
            self.assertNotIn("\nnot ok", "\n" + done)
        self.works()

    def losses(self):
        return int(self.lab.sh("alpha", "dmesg | grep -c 'adapter is lost' || :"))

    def test_no_answer__recovered(self):
        """A command without an answer under traffic: users are told, and the adapter comes back."""
        server, client = self.traffic()
        losses, recoveries = self.losses(), self.recoveries("alpha")
        self.fails(100, 1, error=ETIMEDOUT)
        self.lab.sh("alpha", "ibv_devinfo -v; rdma statistic show; :")
        self.hears(client)
        self.hears(server)
        self.recovered("alpha", recoveries)
        self.assertEqual(self.losses(), losses + 1)
        log = self.lab.sh("alpha", "dmesg")
        self.assertTrue(re.search("adapter is lost: an admin command has no answer", log))
        self.inject()
        self.works()


if __name__ == "__main__":
    labtest.main()
