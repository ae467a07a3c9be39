# SPDX-License-Identifier: GPL-2.0-or-later
"""IPv6, VLANs, loopback, several adapters, eight VMs, changes under traffic, dead peers.
# timeout: 1500
"""
import concurrent.futures
import itertools
import re
import shlex
import time
import unittest

import labtest
import rdmatest
import ulptest

PEER_TIMEOUT = 12  # seconds; of each VM's first adapter
LISTENS = "until rdma resource show cm_id | grep -q 'LISTEN.*:%d '; do sleep 0.3; done"
PORTS = itertools.count(7300)  # the previous server may not have released its port
TRIES = 6  # a client may come when rdma_cm lists the listener, and the adapter does not yet listen


def pings(text):
    return len(re.findall(r"^(?:server )?ping data: ", text, re.M))


def serve(lab, vm, address, *words):
    """An rping server that listens on its own port."""
    port = next(PORTS)
    found = lab.start(vm, "rping", "-s", "-a", address, "-p", port, "-v", "-V", *words)
    found.port = port
    lab.sh(vm, LISTENS % port, timeout=60)
    return found


def rping(lab, server, client, address, count=5, size=1000, listen=None, words=()):
    """rping with validation to that address; all data must come back."""
    numbers = ("-C", count, "-S", size)
    waiting = serve(lab, server, listen or address, *numbers)
    command = ("rping", "-c", "-a", address, "-p", waiting.port, "-v", "-V", *numbers, *words)
    for _ in range(TRIES):
        time.sleep(0.2)
        out = lab.sh(client, shlex.join(map(str, command)) + " 2>&1", status=None, timeout=60)
        if "REJECTED" not in out:
            break
    waiting.stop()
    assert pings(out) == count, "%s from %s:\n%s" % (address, client, out)


def unreachable(lab, client, address, port):
    """A client that must fail to connect, for whatever reason."""
    words = ("rping", "-c", "-a", address, "-p", port, "-C", 1)
    done = lab.run("exec", "-n", "--timeout", 40, client, "--", *words, status=None)
    assert pings(done.out) == 0 and done.returncode != 0, done.out + done.err


class Traffic:
    """rping with validation that goes on until it is stopped; each ping prints its data."""

    def __init__(self, lab, server, client, address, size=4000):
        words = ("-C", 10000000, "-S", size)
        self.server = serve(lab, server, address, *words)
        for _ in range(TRIES):
            time.sleep(0.2)
            self.client = lab.start(
                *(client, "rping", "-c", "-a", address, "-p", self.server.port),
                *("-v", "-V", *words),
            )
            try:
                self.client.expect("ping data", 30)
                return
            except AssertionError:
                if "REJECTED" not in self.client.output:
                    raise
        raise AssertionError(self.client.output)

    def goes_on(self, more=10, timeout=60):
        target = pings(self.client.output) + more
        deadline = time.monotonic() + timeout
        while pings(self.client.output) < target:
            if self.client.process.poll() is not None:
                raise AssertionError("the client has ended:\n" + self.client.output[-500:])
            if time.monotonic() > deadline:
                raise AssertionError("%d more pings did not come" % more)
            time.sleep(0.1)

    def ends(self, timeout):
        """Waits until the client ends by itself; returns the seconds."""
        start = time.monotonic()
        self.client.wait(timeout)
        return time.monotonic() - start

    def stop(self):
        self.client.stop()
        self.server.stop()


def link_local(lab, vm, port="eth0"):
    return lab.sh(vm, "ip -6 -br addr show dev %s scope link" % port).split()[2].split("/")[0]


class TwoVms(ulptest.ProgramCase):
    """Each VM has an adapter on the common segment and one on another; beta has a third."""

    up_arguments = (
        *("--mtu", "9000", "--mem", "512M", "--device-prop", "peer-timeout=%d" % PEER_TIMEOUT),
        *("--adapter", "segment=west,max-qp=100,peer-timeout=600", "--adapter", "beta:max-qp=200"),
    )

    def counter(self, vm, device, name):
        return int(
            self.lab.sh(vm, "cat /sys/class/infiniband/%s/ports/1/hw_counters/%s" % (device, name))
        )

    # -- several adapters

    def devices(self, vm):
        """RDMA devices in the order of their ports; they are named in the order of registration."""
        return self.lab.sh(vm, "cat /run/staghorn/devices").split()

    def test_adapters__each_has_its_port_and_properties(self):
        devices = self.devices("beta")
        self.assertEqual(len(set(devices)), 3)
        text = self.lab.sh("beta", "rdma link")
        for number, device in enumerate(devices):
            self.assertRegex(text, "%s/1 state ACTIVE .*netdev eth%d" % (device, number))
        limits = [
            int(re.search(r"max_qp:\s+(\d+)", self.lab.sh("beta", "ibv_devinfo -v -d " + d))[1])
            for d in devices
        ]
        self.assertGreater(limits[0], 1000)
        self.assertLessEqual(limits[1], 100)
        self.assertTrue(100 < limits[2] <= 200, limits)

    def test_adapters__the_second_one_carries_its_own_traffic(self):
        devices = self.devices("beta")
        before = [self.counter("beta", d, "rx_fpdus") for d in devices]
        rping(self.lab, "beta", "alpha", "10.77.1.2")
        after = [self.counter("beta", d, "rx_fpdus") for d in devices]
        self.assertEqual((after[0], after[2]), (before[0], before[2]))
        self.assertGreater(after[1], before[1])

    def test_adapters__two_on_one_segment(self):
        """beta's third adapter is on the segment of the first ones, with its own network."""
        self.lab.sh("alpha", "ip addr add 10.77.2.1/24 dev eth0")
        rping(self.lab, "beta", "alpha", "10.77.2.2")
        rping(self.lab, "beta", "alpha", "10.77.0.2")
        self.lab.sh("alpha", "ip addr del 10.77.2.1/24 dev eth0")

    # -- IPv6

    def test_ipv6__global_and_any_listener(self):
        rping(self.lab, "beta", "alpha", "fd77::2", size=60000)
        rping(self.lab, "alpha", "beta", "fd77::1")
        rping(self.lab, "beta", "alpha", "fd77::2", listen="::0")
        rping(self.lab, "beta", "alpha", "10.77.0.2", listen="::0")
        rping(self.lab, "beta", "alpha", "10.77.0.2", listen="0.0.0.0")

    def test_ipv6__link_local(self):
        rping(self.lab, "beta", "alpha", link_local(self.lab, "beta") + "%eth0")

    def test_ipv6__perftest(self):
        for tool in ("ib_write_bw", "ib_send_lat"):
            with self.subTest(tool=tool):
                words = (rdmatest.folder(self.lab), tool, "beta", "alpha", 8192, 200)
                extra = ("-p", str(next(PORTS)), "--ipv6-addr")
                text = rdmatest.rdma.perftest_output(*words, extra, address="fd77::2")[1]
                self.assertRegex(text, r"(?m)^\s*8192\s+200\s")

    def test_ipv6__address_goes_with_its_connections(self):
        self.lab.sh("beta", "ip addr add fd99::2/64 dev eth0 nodad")
        self.lab.sh("alpha", "ip addr add fd99::1/64 dev eth0 nodad")
        traffic = Traffic(self.lab, "beta", "alpha", "fd99::2")
        traffic.goes_on()
        self.lab.sh("beta", "ip addr del fd99::2/64 dev eth0")
        self.assertLess(traffic.ends(60), 45)
        self.lab.sh("alpha", "ip addr del fd99::1/64 dev eth0")
        traffic.stop()

    # -- VLANs

    def vlan(self, vm, ident, host):
        script = (
            "ip link add link eth0 name eth0.%d type vlan id %d; ip addr add 10.88.5.%d/24 dev "
            "eth0.%d; ip addr add fd88::%d/64 dev eth0.%d nodad; ip link set eth0.%d up"
        )
        self.lab.sh(vm, script % (ident, ident, host, ident, host, ident, ident))
        # Neighbour discovery needs the link-local address, which is tentative at first.
        self.lab.sh(
            vm,
            "n=0; while ip -6 addr show dev eth0.%d | grep -q tentative; do n=$((n + 1)); "
            "[ $n -lt 200 ] || exit 1; sleep 0.1; done" % ident,
        )

    def test_vlan__tagged_traffic(self):
        self.vlan("alpha", 5, 1)
        self.vlan("beta", 5, 2)
        try:
            rping(self.lab, "beta", "alpha", "10.88.5.2", size=60000)
            rping(self.lab, "beta", "alpha", "fd88::2")
            # The same link-local address is on eth0 and eth0.5: the scope tells them apart.
            address = link_local(self.lab, "beta", "eth0.5")
            self.assertEqual(address, link_local(self.lab, "beta"))
            rping(self.lab, "beta", "alpha", address + "%eth0.5")
            rping(self.lab, "beta", "alpha", address + "%eth0")
            rping(self.lab, "beta", "alpha", "10.77.0.2")
            # The peer leaves its VLAN: nothing reaches it on another one.
            self.lab.sh("alpha", "ip link del eth0.5")
            self.vlan("alpha", 6, 1)
            waiting = serve(self.lab, "beta", "10.88.5.2")
            unreachable(self.lab, "alpha", "10.88.5.2", waiting.port)
            waiting.stop()
        finally:
            self.lab.sh(
                "alpha", "ip link del eth0.5 2>/dev/null; ip link del eth0.6 2>/dev/null; :"
            )
            self.lab.sh("beta", "ip link del eth0.5")

    # -- loopback

    def test_loopback__one_adapter_and_two(self):
        self.lab.sh("beta", "ip addr add 10.77.0.102/24 dev eth0")
        for address, words in (
            ("10.77.0.2", ()),
            ("10.77.0.102", ("-I", "10.77.0.2")),
            ("fd77::2", ()),
            (link_local(self.lab, "beta") + "%eth0", ()),
        ):
            with self.subTest(address=address):
                rping(self.lab, "beta", "beta", address, size=30000, words=words)
        rping(self.lab, "beta", "alpha", "10.77.0.102")
        self.lab.sh("beta", "ip addr del 10.77.0.102/24 dev eth0")

    # -- changes under traffic

    def test_mtu__changes_under_traffic(self):
        for address in ("10.77.0.2", "fd77::2"):
            traffic = Traffic(self.lab, "beta", "alpha", address, size=20000)
            for alpha, beta in ((1500, 1500), (9000, 1500), (1500, 9000), (1300, 4000)):
                with self.subTest(address=address, alpha=alpha, beta=beta):
                    self.lab.sh("alpha", "ip link set eth0 mtu %d" % alpha)
                    self.lab.sh("beta", "ip link set eth0 mtu %d" % beta)
                    traffic.goes_on()
            traffic.stop()
        rdmatest.set_mtu(self.lab, 9000)

    def port_state(self, vm, state):
        self.lab.sh(
            vm,
            "n=0; until rdma link show $(cat /run/staghorn/rdma)/1 | grep -q 'state %s'; "
            "do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1; done" % state,
        )

    def test_link__down_and_up_under_traffic(self):
        watch = self.lab.start("beta", "ibv_asyncwatch", "-d", self.devices("beta")[0])
        watch.expect("async event FD")
        traffic = Traffic(self.lab, "beta", "alpha", "10.77.0.2")
        for vm in ("beta", "alpha"):
            self.lab.run("link", vm, "down")
            self.port_state(vm, "DOWN")
            self.assertIn("NO-CARRIER", self.lab.sh(vm, "ip -br link show dev eth0"))
            self.lab.run("link", vm, "up")
            self.port_state(vm, "ACTIVE")
            traffic.goes_on(timeout=90)
        watch.expect(r"(?s)PORT_ERR.*PORT_ACTIVE")
        traffic.stop()

    def test_link__down_for_good(self):
        """Connections time out on both sides; afterwards new ones work."""
        traffic = Traffic(self.lab, "beta", "alpha", "10.77.0.2")
        traffic.goes_on()
        self.lab.run("link", "beta", "down")
        seconds = traffic.ends(90)
        self.assertTrue(PEER_TIMEOUT / 2 <= seconds <= PEER_TIMEOUT + 30, seconds)
        traffic.server.expect("DISCONNECT", 60)
        traffic.stop()
        self.lab.run("link", "beta", "up")
        self.port_state("beta", "ACTIVE")
        rping(self.lab, "beta", "alpha", "10.77.0.2")

    def test_z_peer__killed_while_idle(self):
        """An idle connection is kept as long as the peer is alive; its death is noticed."""
        server = serve(self.lab, "alpha", "10.77.0.1", "-C", 10000000)
        time.sleep(0.5)
        words = ("-a", "10.77.0.1", "-p", server.port, "-v", "-C", 10000000)
        client = self.lab.start("beta", "rping", "-c", *words)
        client.expect("ping data", 30)
        self.lab.sh("beta", "killall -STOP rping || pkill -STOP -x rping")
        time.sleep(2 * PEER_TIMEOUT)
        self.assertNotIn("DISCONNECT", server.output)
        ulptest.check_kernel(self.lab, "beta")
        self.lab.run("cut", "beta", "--hard")
        start = time.monotonic()
        server.expect("DISCONNECT", PEER_TIMEOUT + 60)
        self.assertLess(time.monotonic() - start, PEER_TIMEOUT + 30)
        client.stop()
        server.stop()


class EightVms(ulptest.ProgramCase):
    vms = "abcdefgh"
    up_arguments = ("--vms", ",".join(vms), "--mem", "384M", "--cpus", "1")

    def test_segment__everybody_talks_at_once(self):
        """A ring: each VM serves the next one, all at the same time."""
        names = "abcdefgh"
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            runs = [
                pool.submit(
                    rping,
                    self.lab,
                    server,
                    names[(i + 1) % len(names)],
                    "10.77.0.%d" % (i + 1) if i % 2 else "fd77::%d" % (i + 1),
                    size=5000,
                )
                for i, server in enumerate(names)
            ]
            for run in runs:
                run.result()

    def test_segment__one_adapter_for_all(self):
        """Seven servers in one VM, a client in each of the others, at the same time."""
        names = "bcdefgh"
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            runs = [pool.submit(rping, self.lab, "a", vm, "10.77.0.1") for vm in names]
            for run in runs:
                run.result()


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    labtest.main()
