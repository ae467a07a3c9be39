# SPDX-License-Identifier: GPL-2.0-or-later
"""Two VMs with adapters run unmodified programs, at several MTUs and settings.
# timeout: 1200
"""
import os
import tempfile
import unittest

import labtest
import programs
import rdmatest
import wire
from launcher.qmp import Monitor

LARGE = (  # messages of several segments at each MTU
    ("ib_write_bw", 65536, 100),
    ("ib_read_bw", 65536, 100),
    ("ib_send_bw", 65536, 100),
)
SMALL = (("ib_write_lat", 8, 100), ("ib_read_lat", 8, 100), ("ib_send_lat", 8, 100))
TO_BETA, TO_ALPHA = ("beta", "alpha"), ("alpha", "beta")  # server, client


class Adapters(labtest.LabCase):
    up_arguments = ("--mtu", "9000")
    driver_check = "strict"

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
        sizes = {TO_BETA: (23, 1000, 65535), TO_ALPHA: (64, 4096, 65535)}
        for (server, client), size in [(way, size) for way in sizes for size in sizes[way]]:
            with self.subTest(active=client, size=size):
                rdmatest.rping(self.lab, server, client, count=5, size=size)

    @labtest.long
    def test_perftest__mtu_1500(self):
        rdmatest.set_mtu(self.lab, 1500)
        self.programs(LARGE)

    def test_perftest__mtu_9000(self):
        rdmatest.set_mtu(self.lab, 9000)
        self.programs(LARGE + SMALL)

    def programs(self, runs):
        for tool, size, iterations in runs:
            with self.subTest(tool=tool):
                rdmatest.perftest(self.lab, tool, "beta", "alpha", size, iterations)

    def test_perftest__several_queue_pairs(self):
        rdmatest.perftest(self.lab, "ib_write_bw", "beta", "alpha", 4096, 100, ("-q", "8"))

    @labtest.long
    def test_routes__static_and_by_source(self):
        """A peer behind a router that is not the gateway; here the peer is the router itself."""
        add = "ip addr add %s dev $(cat /run/staghorn/port)"
        self.lab.sh("beta", (add % "10.99.0.1/24") + "; ip route add 10.98.0.1 via 10.77.0.1")
        self.lab.sh("alpha", add % "10.98.0.1/32")
        self.lab.sh("alpha", "ip route add 10.99.0.0/24 via 10.77.0.2")
        try:
            self.far_rping("10.77.0.1")
            self.lab.sh("alpha", "ip route del 10.99.0.0/24")
            self.lab.sh("alpha", "ip route add 10.99.0.0/24 via 10.77.0.2 table 77")
            self.lab.sh("alpha", "ip rule add from 10.98.0.1 table 77")
            self.far_rping("10.98.0.1")
        finally:
            self.lab.sh("alpha", "ip rule del from 10.98.0.1; ip route flush table 77; true")
            self.lab.sh("alpha", "ip route del 10.99.0.0/24; true")
            remove = "ip addr del %s dev $(cat /run/staghorn/port)"
            self.lab.sh("alpha", remove % "10.98.0.1/32")
            self.lab.sh("beta", (remove % "10.99.0.1/24") + "; ip route del 10.98.0.1")

    def far_rping(self, source):
        """Connects from this address of alpha to an address of beta in another network."""
        server = self.lab.start("beta", "rping", "-s", "-a", "10.99.0.1", "-C", "3")
        self.listening("beta")
        client = ("rping", "-c", "-I", source, "-a", "10.99.0.1", "-C", "3", "-V")
        self.lab.run("exec", "alpha", "--", *client, timeout=60)
        self.assertEqual(server.wait(60), 0)

    def listening(self, vm):
        script = "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done"
        self.lab.sh(vm, script, timeout=30)

    @labtest.long
    def test_interface__down_ends_rdma(self):
        """IPv4 addresses stay on it, but carry no traffic any more."""
        server = self.lab.start("beta", "rping", "-s", "-a", "10.77.0.2")
        self.listening("beta")
        client = self.lab.start("alpha", "rping", "-c", "-a", "10.77.0.2", "-v")
        client.expect("ping data")
        self.lab.sh("alpha", "ip link set $(cat /run/staghorn/port) down")
        try:
            client.wait(60)
            self.lab.sh("alpha", "! timeout 30 rping -s -a 10.77.0.1 -C 1")
        finally:
            self.lab.sh("alpha", "ip link set $(cat /run/staghorn/port) up")
        server.stop()
        self.lab.sh("alpha", "until ping -c 1 -W 1 beta; do sleep 0.2; done", timeout=60)
        rdmatest.rping(self.lab, "beta", "alpha", count=3)

    @labtest.long
    def test_addresses__new_ones_do_not_end_connections(self):
        """The adapter takes 16: these stay, and the log names those that are left out."""
        address = self.lab.sh(
            "beta", "ip -6 -o addr show dev $(cat /run/staghorn/port) scope global | head -n 1"
        )
        self.assertIn("inet6", address)
        address = address.split()[3].split("/")[0]
        server = self.lab.start("beta", "rping", "-s", "-a", address)
        self.listening("beta")
        client = self.lab.start("alpha", "rping", "-c", "-a", address, "-v")
        client.expect("ping data")
        many = (
            "for i in $(seq 1 20); do ip addr %s 10.96.$i.1/32 dev $(cat /run/staghorn/port); done"
        )
        self.lab.sh("alpha", many % "add")
        try:
            self.lab.sh("alpha", "dmesg | grep 'takes 16 addresses'; sleep 1")
            seen = len(client.output)
            self.lab.sh("alpha", "sleep 1")
            self.assertIsNone(client.process.poll(), client.output[-500:])
            self.assertGreater(len(client.output), seen)
        finally:
            client.stop()
            server.stop()
            self.lab.sh("alpha", many % "del")

    @labtest.long
    def test_addresses__refused(self):
        """An address that the adapter cannot have, here a second time on a VLAN, is warned of."""
        self.lab.sh(
            "alpha",
            "ip link add link $(cat /run/staghorn/port) name v5 type vlan id 5 && "
            "ip link set v5 up && ip addr add 10.77.0.1/32 dev v5",
        )
        try:
            self.lab.sh("alpha", "until dmesg | grep 'family 4 refused'; do sleep 0.2; done")
        finally:
            self.lab.sh("alpha", "ip link del v5")
        rdmatest.rping(self.lab, "beta", "alpha", count=3)

    @labtest.long
    def test_gids__change_event_only_for_addresses(self):
        watch = self.lab.start("alpha", "ibv_asyncwatch", "-d", "staghorn0")
        watch.expect("async event FD")
        port = "$(cat /run/staghorn/port)"
        self.lab.sh(
            "alpha",
            "for i in 1 2 3; do ip route add 10.95.$i.0/24 dev %s; done; sleep 1;"
            "ip route add default via 10.77.0.2 metric 9000; sleep 1;"
            "ip route del default via 10.77.0.2 metric 9000; sleep 1" % port,
        )
        self.assertNotIn("GID_CHANGE", watch.output)
        self.lab.sh("alpha", "ip addr add 10.94.0.1/32 dev %s" % port)
        watch.expect("GID_CHANGE")
        self.lab.sh("alpha", "ip addr del 10.94.0.1/32 dev %s" % port)
        watch.stop()

    def test_module__unloads_and_loads_again(self):
        """The NIC behind the adapter carries siw meanwhile."""
        for kind in ("siw", "staghorn"):
            for vm in ("alpha", "beta"):
                self.lab.sh(vm, "/usr/lib/staghorn/rdma " + kind)
            rdmatest.rping(self.lab, "beta", "alpha", count=3)

    # The kernel destroys the queue pairs of a process before it takes its doorbell page.
    @labtest.long
    @labtest.breaks("DB-GONE")
    def test_module__unload_ends_traffic(self):
        """rmmod while a program sends: the module is gone at once, and the program can be ended.

        perftest itself then waits for its peer's last message for ever."""
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

    @labtest.long
    def test_reset__lingers(self):
        """RESET of a queue pair whose peer is silent delays no other connection.

        RESET is refused after a second while TCP still has data to deliver.  It is possible when
        the peer is back, or after linger-timeout."""
        for vm in programs.ADDRESS:
            programs.install(self.lab, vm, "reset_lingers")
        self.lab.sh("alpha", "rm -f /tmp/silent")
        server = self.lab.start("beta", "reset_lingers", "7480")
        server.expect("listening")
        client = self.lab.start("alpha", "reset_lingers", "7480", programs.ADDRESS["beta"])
        client.expect("connected")
        with Monitor(rdmatest.folder(self.lab), "beta") as monitor:
            monitor.run("stop")
            try:
                self.lab.sh("alpha", "touch /tmp/silent")
                client.expect("refused", 60)
                rdmatest.rping(self.lab, "alpha", "alpha", count=3, size=4096)
                self.assertNotIn("tried", client.output)
                client.expect("tried", 120)
            finally:
                monitor.run("cont")
        client.expect("done", 120)
        self.assertEqual(client.wait(), 0)
        server.stop()
        rdmatest.rping(self.lab, "beta", "alpha", count=3)

    @labtest.long
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
        lab = labtest.Lab("lab", "strict")
        self.addCleanup(lab.down)
        arguments = [word for prop in properties for word in ("--device-prop", prop)]
        lab.up("--capture", self.folder.name + "/x.pcap", *arguments)
        return lab

    def talk(self, lab):
        rdmatest.rping(lab, "beta", "alpha", count=5, size=20000)
        rdmatest.perftest(lab, "ib_send_bw", "alpha", "beta", 65536, 20)
        lab.down()
        return wire.Report(self.folder.name + "/x.pcap")

    @labtest.long
    def test_revision_1_without_crc(self):
        found = self.talk(self.lab_with("mpa-rev=1", "crc=off"))
        self.assertEqual({(request[0], request[2]) for request in found.requests}, {(1, 0)})
        self.assertEqual((found.malformed, found.crc_good, found.crc_bad), (0, 0, 0))

    @labtest.long
    def test_revision_2_with_crc(self):
        found = self.talk(self.lab_with("mpa-rev=2"))
        self.assertEqual({(request[0], request[2]) for request in found.requests}, {(2, 1)})
        self.assertEqual((found.malformed, found.crc_bad, found.errors), (0, 0, []))
        self.assertEqual(found.crc_good, found.fpdus)

    @labtest.long
    def test_one_side_without_crc(self):
        """CRC is on if either side wants it."""
        found = self.talk(self.lab_with("alpha:crc=off"))
        self.assertEqual(found.crc_good, found.fpdus)

    @labtest.long
    def test_markers(self):
        """Markers in both directions; the data prove them, because Wireshark cannot judge them."""
        lab = self.lab_with("markers=on")
        rdmatest.rping(lab, "beta", "alpha", count=5, size=20000)
        rdmatest.perftest(lab, "ib_write_bw", "beta", "alpha", 65536, 50)

    def test_wrong_property__is_named(self):
        """QEMU's own message reaches the user."""
        lab = labtest.Lab("wrong")
        self.addCleanup(lab.down)
        done = lab.run("up", "--device-prop", "alpha:mpa-rev=7", status=1)
        self.assertIn("mpa-rev", done.err)
        self.assertFalse(os.path.exists(lab.state + "/labs/wrong"))
        done = lab.run("up", "--device-prop", "no-such=1", status=1)
        self.assertIn("no-such", done.err)


if __name__ == "__main__":
    labtest.main()
