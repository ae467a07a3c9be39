# SPDX-License-Identifier: GPL-2.0-or-later
"""Litmus tests of persistent memory: registers next to it, disks that write to it, bad lines in it.
# timeout: 900
# suite: full
"""
import labtest
import test_litmus as litmus

DEVICE, DISK = "/dev/dax0.0", "/dev/vda"
DOORBELLS = "resource2"  # of the adapter, in sysfs

# Stores across two pages, one of which has registers; the part in memory is an ordinary store.
REGISTERS = {
    "behind-8": [litmus.Order("y7", "x0", litmus.FENCED)],
    "behind-16": [litmus.Order("y7", "x0", litmus.FENCED)],
    "before-8": litmus.before(litmus.FENCED),
    "before-16": litmus.before(litmus.FENCED),
}


class Devices(litmus.VmCase):
    up_arguments = ("--vms", "alpha", "--cpus", "2", "--mem", "512M", "--pmem") + (
        "alpha:16M,policy=random",
    )

    def judge(self, pattern, rules, *more):
        started = self.vm.run(pattern, *more)
        for domain in litmus.DOMAINS:
            self.vm.set("domain", domain)
            with self.subTest(pattern=pattern, domain=domain):
                wrong = litmus.judge(rules, domain, self.vm.instant)
                if wrong:
                    self.fail(wrong)
        self.vm.stop(started)

    def doorbells(self):
        """The adapter's doorbell pages, for a process to map; its driver is unbound."""
        script = (
            "cd /sys/bus/pci/devices; for d in *; do grep -q 0x5347 $d/device || continue; "
            "[ ! -e $d/driver ] || echo $d > $d/driver/unbind; echo 1 > $d/enable; "
            "echo /sys/bus/pci/devices/$d/%s; done"
        )
        return self.lab.sh("alpha", script % DOORBELLS).strip()

    def test_tracking_is_on_by_default(self):
        self.assertTrue(self.vm.get("cpu-tracking"))

    def test_registers__beside_persistent_memory(self):
        """QEMU does not hang, and no store to memory is missed."""
        doorbells = self.doorbells()
        for store_buffer in (False, True):
            for pattern, rules in REGISTERS.items():
                self.vm.set("store-buffer", store_buffer)
                with self.subTest(store_buffer=store_buffer):
                    self.judge(pattern, rules, doorbells)
        self.vm.set("store-buffer", False)

    def disk(self, pattern):
        """Lets the disk write; returns a function that takes an instant with many seeds."""
        self.vm.set("domain", "adr")
        self.vm.window = 0
        self.lab.run("exec", "alpha", "--", "/run/litmus", DEVICE, 0, "clear")
        self.lab.run("exec", "alpha", "--", "/run/litmus", DEVICE, 0, pattern, DISK)
        return lambda: self.vm.instant(1, 64)

    def test_disk__flushed_data_survives(self):
        look = self.disk("disk-flushed")
        for domain in litmus.FENCED:
            self.vm.set("domain", domain)
            instant = look()
            self.assertTrue(any(instant.visible))
            self.assertEqual(set(instant.outcomes), {instant.visible}, domain)

    def test_disk__data_in_the_cache_may_be_lost_in_adr_only(self):
        look = self.disk("disk")
        instant = look()
        self.assertTrue(any(instant.visible))
        self.assertIn(instant.visible, instant.outcomes)
        self.assertTrue(any(outcome != instant.visible for outcome in instant.outcomes))
        for domain in litmus.CACHED:
            self.vm.set("domain", domain)
            instant = look()
            self.assertEqual(set(instant.outcomes), {instant.visible}, domain)

    def test_disk__a_store_into_its_data_has_a_fate_of_its_own(self):
        """A CPU stores into two lines that DMA made dirty, once by a locked instruction.

        Each line is what it was, or has the DMA's data, or these and the store.
        """
        look = self.disk("disk-store")
        instant = look()
        for place, name in ((0, "x0"), (litmus.LINE, "y0")):
            line = slice(place, place + litmus.LINE)
            stored = instant.visible[line]
            placed = bytes(octet ^ 0xFF for octet in stored[:8]) + stored[8:]
            states = {bytes(litmus.LINE), placed, stored}
            self.assertEqual(len(states), 3, stored)
            self.assertEqual({outcome[line] for outcome in instant.outcomes}, states, name)
        for domain in litmus.CACHED:
            self.vm.set("domain", domain)
            instant = look()
            self.assertEqual(set(instant.outcomes), {instant.visible}, domain)

    def test_disk__survives_a_cut(self):
        instant = self.disk("disk-flushed")()
        self.assertEqual(self.vm.cut("--policy", "lose-all"), instant.visible)
        instant = self.disk("disk")()
        self.assertFalse(any(self.vm.cut("--policy", "lose-all")))

    def test_bad_lines__do_not_hide_flushes(self):
        """Loads from a page with a bad line are tracked; flushes of its other lines still count."""
        bad = "pmem0@%#x+64" % (litmus.DAX_START + 1024)
        rules = litmus.before(litmus.FENCED)
        self.vm.set("uncorrectable", bad)
        self.judge("clwb-sfence", rules)
        self.vm.set("uncorrectable", "")
        self.judge("clwb-sfence", rules)  # the page keeps its mark (domain_bad.c)


if __name__ == "__main__":
    labtest.main()
