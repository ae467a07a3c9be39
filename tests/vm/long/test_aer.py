# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of the PCI link that the adapter's function reports by AER.

QEMU marks the link below a root port as active only with native hotplug, not with ACPI hotplug, and
Linux does not reset an inactive link.  So beta has native hotplug.
"""
import labtest
import lifetest

HOTPLUG = "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"


class Aer(lifetest.LifeCase):
    up_arguments = ("--mem", "512M", "--qemu-arg=beta:-global " + HOTPLUG)

    def inject(self, monitor, error, severity):
        """Injects an error, by its name in QEMU, which the kernel has to report."""
        line = {"command-line": "pcie_aer_inject_error r0 " + error}
        answer = monitor.run("human-monitor-command", **line)
        self.assertRegex(answer, "^OK id: r0 ")
        report = "PCIe Bus Error: severity=" + severity
        self.wait("beta", "dmesg | grep -qF '%s'" % report)

    def losses(self):
        words = "dmesg | grep -c 'adapter is lost: the PCI link reports a fatal error' || :"
        return int(self.lab.sh("beta", words))

    def test_errors__not_fatal(self):
        """A corrected error, and one that is not fatal, change nothing."""
        server, client = self.traffic()
        losses = self.losses()
        with self.monitor("beta") as monitor:
            self.inject(monitor, "BAD_TLP", "Correct")
            self.inject(monitor, "UNX_COMP", "Uncorrectable (Non-Fatal)")
        for each in (client, server):
            self.assertIsNone(each.process.poll(), each.output[-500:])
        self.assertEqual(self.losses(), losses)
        self.lab.sh("alpha", "pkill rping")
        self.ends(client, server)
        self.works()

    def test_errors__fatal(self):
        """The driver abandons the adapter, and starts anew once Linux has reset the link."""
        server, client = self.traffic()
        losses, recoveries = self.losses(), self.recoveries("beta")
        with self.monitor("beta") as monitor:
            self.inject(monitor, "DLP", "Uncorrectable (Fatal)")
        self.hears(server)
        self.hears(client)
        self.recovered("beta", recoveries)
        self.assertEqual(self.losses(), losses + 1)
        self.works()


if __name__ == "__main__":
    labtest.main()
