# SPDX-License-Identifier: GPL-2.0-or-later
"""Two VMs with adapters: unmodified programs, at several MTUs and settings.
# timeout: 1200
"""
import os
import tempfile
import unittest

import labtest
import rdmatest
import wire

PROGRAMS = (
    ("ib_write_bw", 65536, 500),
    ("ib_read_bw", 65536, 500),
    ("ib_send_bw", 65536, 500),
    ("ib_write_lat", 8, 500),
    ("ib_read_lat", 8, 500),
    ("ib_send_lat", 8, 500),
)


class Adapters(labtest.LabCase):
    up_arguments = ("--mtu", "9000")

    def test_device__is_seen_by_its_users(self):
        self.assertRegex(
            self.lab.sh("alpha", "rdma link"), "link staghorn0/1 state ACTIVE .*netdev"
        )
        self.assertIn("staghorn0", self.lab.sh("alpha", "ibv_devices"))
        text = self.lab.sh("alpha", "ibv_devinfo -v -d staghorn0")
        self.assertRegex(text, r"transport:\s+iWARP")
        self.assertRegex(text, r"state:\s+PORT_ACTIVE")

    def test_device__node_guids_differ(self):
        guids = {
            self.lab.sh(vm, "cat /sys/class/infiniband/staghorn0/node_guid")
            for vm in ("alpha", "beta")
        }
        self.assertEqual(len(guids), 2)
        self.assertNotIn("0000:0000:0000:0000\n", guids)

    def test_rping__both_directions_and_sizes(self):
        for server, client in (("beta", "alpha"), ("alpha", "beta")):
            for size in (23, 64, 1000, 4096, 65535):
                with self.subTest(active=client, size=size):
                    rdmatest.rping(self.lab, server, client, count=5, size=size)

    def test_perftest__mtu_1500(self):
        rdmatest.set_mtu(self.lab, 1500)
        self.programs()

    def test_perftest__mtu_9000(self):
        rdmatest.set_mtu(self.lab, 9000)
        self.programs()

    def programs(self):
        for tool, size, iterations in PROGRAMS:
            with self.subTest(tool=tool):
                rdmatest.perftest(self.lab, tool, "beta", "alpha", size, iterations)

    def test_perftest__several_queue_pairs(self):
        rdmatest.perftest(self.lab, "ib_write_bw", "beta", "alpha", 4096, 500, ("-q", "8"))

    def test_module__unloads_and_loads_again(self):
        """The NIC behind the adapter carries siw meanwhile."""
        for kind in ("siw", "staghorn"):
            for vm in ("alpha", "beta"):
                self.lab.sh(vm, "/usr/lib/staghorn/rdma " + kind)
            rdmatest.rping(self.lab, "beta", "alpha", count=3)

    def test_module__unload_ends_traffic(self):
        """rmmod while a program sends: the module goes at once, the program can be ended.

        perftest itself then waits for its peer's last words, for ever."""
        server = self.lab.start("beta", "ib_write_bw", "-R", "-F", "-d", "staghorn0", "-D", "20")
        server.expect("Waiting for client")
        client = self.lab.start(
            "alpha", "ib_write_bw", "-R", "-F", "-d", "staghorn0", "-D", "20", "10.77.0.2"
        )
        client.expect("RDMA_Write BW Test")
        self.lab.sh("alpha", "sleep 1; timeout 30 rmmod staghorn && [ ! -e /sys/module/staghorn ]")
        client.stop()
        server.stop()
        self.lab.sh("alpha", "! pgrep ib_write_bw")
        for vm in ("beta", "alpha"):
            self.lab.sh(vm, "/usr/lib/staghorn/rdma siw; /usr/lib/staghorn/rdma staghorn")
        rdmatest.rping(self.lab, "beta", "alpha", count=3)

    def test_ethernet__shares_the_port(self):
        """The NIC behind the adapter works while the adapter does."""
        server = self.lab.start("beta", "ib_send_bw", "-R", "-F", "-d", "staghorn0", "-D", "5")
        server.expect("Waiting for client")
        self.lab.start("alpha", "ib_send_bw", "-R", "-F", "-d", "staghorn0", "-D", "5", "10.77.0.2")
        self.lab.sh("alpha", "ping -c 5 -i 0.3 -W 10 beta")


class Settings(unittest.TestCase):
    def lab_with(self, *properties):
        self.folder = tempfile.TemporaryDirectory(prefix="sg-rdma-")
        self.addCleanup(self.folder.cleanup)
        lab = labtest.Lab("settings")
        self.addCleanup(lab.down)
        arguments = [word for prop in properties for word in ("--device-prop", prop)]
        lab.up("--capture", self.folder.name + "/x.pcap", *arguments)
        return lab

    def talk(self, lab):
        rdmatest.rping(lab, "beta", "alpha", count=5, size=20000)
        rdmatest.perftest(lab, "ib_send_bw", "alpha", "beta", 65536, 50)
        lab.down()
        return wire.Report(self.folder.name + "/x.pcap")

    def test_revision_1_without_crc(self):
        found = self.talk(self.lab_with("mpa-rev=1", "crc=off"))
        self.assertEqual({(request[0], request[2]) for request in found.requests}, {(1, 0)})
        self.assertEqual((found.malformed, found.crc_good, found.crc_bad), (0, 0, 0))

    def test_revision_2_with_crc(self):
        found = self.talk(self.lab_with("mpa-rev=2"))
        self.assertEqual({(request[0], request[2]) for request in found.requests}, {(2, 1)})
        self.assertEqual((found.malformed, found.crc_bad, found.errors), (0, 0, []))
        self.assertEqual(found.crc_good, found.fpdus)

    def test_one_side_without_crc(self):
        """CRC is on if either side wants it."""
        found = self.talk(self.lab_with("alpha:crc=off"))
        self.assertEqual(found.crc_good, found.fpdus)

    def test_markers(self):
        """Markers both ways; Wireshark is no judge of them, the data is."""
        lab = self.lab_with("markers=on")
        rdmatest.rping(lab, "beta", "alpha", count=5, size=20000)
        rdmatest.perftest(lab, "ib_write_bw", "beta", "alpha", 65536, 50)

    def test_wrong_property__is_named(self):
        """QEMU's own words reach the user."""
        lab = labtest.Lab("wrong")
        self.addCleanup(lab.down)
        done = lab.run("up", "--device-prop", "alpha:mpa-rev=7", status=1)
        self.assertIn("mpa-rev", done.err)
        self.assertFalse(os.path.exists(lab.state + "/labs/wrong"))
        done = lab.run("up", "--device-prop", "no-such=1", status=1)
        self.assertIn("no-such", done.err)


if __name__ == "__main__":
    labtest.main()
