# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of the PCI link, as the adapter's function reports them by AER.

QEMU marks the link below a root port as active only where it plugs devices in by itself and not
through ACPI, and Linux resets no link that is not active.  So beta has that kind of hotplug.
"""
import labtest
import lifetest

HOTPLUG = "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"


class Aer(lifetest.LifeCase):
    up_arguments = ("--mem", "512M", "--qemu-arg=beta:-global " + HOTPLUG)

    def inject(self, monitor, error, severity):
        """An error, by its name in QEMU, that the kernel has to report."""
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
        """The driver gives the adapter up, and starts anew once Linux has reset the link."""
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
