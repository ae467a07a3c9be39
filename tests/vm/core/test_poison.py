# SPDX-License-Identifier: GPL-2.0-or-later
"""Unreadable memory, as the guest's CPUs and its kernel see it.
# suite: full
"""
import json

import labtest
import programs

DAX = "/dev/dax0.0"
DATA = 2 << 20  # offset of the guest's devices in their NVDIMMs
SIGBUS = 128 + 7
REGION = "/sys/bus/nd/devices/region%d/badblocks"


class Poison(labtest.LabCase):
    up_arguments = ("--vms", "solo", "--driver", "solo=none", "--mem", "512M") + (
        "--pmem",
        "solo:64M,policy=lose-all",
        "--pmem",
        "solo:32M",
    )

    def bad(self, *ranges):
        self.lab.run("pmem", "solo", "--set", "uncorrectable=" + ":".join(ranges))

    def dax(self, *words, status=0):
        programs.install(self.lab, "solo", "dax_store")
        return self.lab.run("exec", "solo", "--", "dax_store", DAX, *words, status=status).out

    def wait_badblocks(self, region, sector):
        """The list is filled by a worker after the machine check."""
        script = "n=0; until grep -q '^%d ' %s; do n=$((n + 1)); [ $n -lt 200 ] || exit 1; " % (
            sector,
            REGION % region,
        )
        self.lab.sh("solo", script + "sleep 0.05; done", timeout=60)

    def test_1_load__sigbus_and_bad_block(self):
        self.dax("write", 8192, "before")
        self.bad("pmem0@%#x+64" % (DATA + 20480))
        self.assertEqual(self.lab.sh("solo", "cat " + REGION % 0).strip(), "")
        self.assertEqual(self.dax("read", 8192, 6), "before\n")
        self.dax("read", 20480 + 16, 4, status=SIGBUS)
        self.wait_badblocks(0, (DATA + 20480) // 512)
        listed = json.loads(self.lab.sh("solo", "ndctl list -M -R -r region0"))
        blocks = listed[0]["badblocks"]
        self.assertEqual([(each["offset"], each["length"]) for each in blocks], [(4136, 1)])
        log = self.lab.sh("solo", "dmesg")
        self.assertIn("mce: [Hardware Error]: Machine check events logged", log)
        self.assertIn("recovery action for dax page", log.lower())

    def test_2_block_device__read_fails(self):
        script = "ndctl create-namespace -f -e namespace1.0 -m fsdax --map=mem >/dev/null"
        self.lab.sh("solo", script, timeout=120)
        self.lab.sh("solo", "dd if=/dev/zero of=/dev/pmem1 bs=4096 count=8 oflag=direct")
        self.bad("pmem0@%#x+64" % (DATA + 20480), "pmem1@%#x+64" % (DATA + 8192))
        read = "dd if=/dev/pmem1 of=/dev/null bs=512 iflag=direct count=1 skip=%d"
        for _ in range(2):  # first by a machine check, then by the list
            done = self.lab.run("exec", "solo", "--", "sh", "-c", read % 16, status=1)
            self.assertIn("Input/output error", done.err)
            self.wait_badblocks(1, (DATA + 8192) // 512)
        self.lab.sh("solo", read % 15)
        self.assertIn("16 1", self.lab.sh("solo", "cat /sys/block/pmem1/badblocks"))

    def test_3_kill__lines_stay_bad(self):
        self.dax("write", 40960, "whole")
        self.lab.run("pmem", "solo", "--persist")
        self.lab.run("cut", "solo", "--hard")
        self.lab.run("on", "solo")
        self.assertEqual(self.dax("read", 40960, 5), "whole\n")
        self.dax("read", 20480, 4, status=SIGBUS)
        self.wait_badblocks(0, (DATA + 20480) // 512)


if __name__ == "__main__":
    labtest.main()
