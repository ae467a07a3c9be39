#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's rdmacm-utils between two VMs: programs over librdmacm and rsockets.

rping, rstream, riostream and rcopy check what arrives, or the test does.  ucmatose checks neither
buffers nor statuses; there the adapter's counters tell what was moved."""
# timeout: 1500
import time

import labtest
from ulptest import ProgramCase, counters, wait_for

LIMIT = 240  # seconds; other work may share the machine
V4 = {"alpha": "10.77.0.1", "beta": "10.77.0.2"}
V6 = {"alpha": "fd77::1", "beta": "fd77::2"}
# Server and client of each run.
TO_BETA, TO_ALPHA = ("beta", "alpha"), ("alpha", "beta")
CONNECTIONS = 1000 // labtest.SLOW  # of cmtime
UNSUPPORTED = "Operation not supported"
# rstream needs Writes into the peer's ring and, on iWARP (RS_OPT_MSG_SEND), an inline Send behind
# each; riostream needs Writes into what the peer has opened with riomap().
RSTREAM = (  # options of both
    ("-S", "1", "-C", "500", "-T", "v"),
    ("-S", "65536", "-C", "50", "-I", "2", "-T", "v"),
    ("-S", "4194304", "-C", "2", "-T", "v"),
    ("-S", "1000", "-C", "100", "-I", "3", "-T", "v"),
    ("-S", "100000", "-C", "20", "-T", "v", "-T", "b"),
    ("-S", "100000", "-C", "20", "-T", "v", "-T", "n"),
    ("-S", "100000", "-C", "5", "-T", "v", "-B", "4096"),
    ("-S", "100000", "-C", "20", "-T", "v", "-k", "30"),
)
RIOSTREAM = (
    ("-S", "64", "-C", "1000", "-T", "v"),
    ("-S", "65536", "-C", "50", "-I", "2", "-T", "v"),
    ("-S", "4194304", "-C", "2", "-T", "v"),
    ("-S", "100000", "-C", "20", "-T", "v", "-T", "a"),
    ("-S", "100000", "-C", "20", "-T", "v", "-T", "b"),
)
REFUSED = (  # server on beta, client on alpha, what the client says
    (("udaddy", "-b", V4["beta"]), ("udaddy", "-s", V4["beta"]), UNSUPPORTED),
    (
        ("mckey", "-m", "239.7.7.7", "-b", V4["beta"]),
        ("mckey", "-m", "239.7.7.7", "-s", "-b", V4["alpha"]),
        UNSUPPORTED,
    ),
    (("udpong", "-b", V4["beta"]), ("udpong", "-s", V4["beta"]), UNSUPPORTED),
    (("rdma_xserver", "-c", "x"), ("rdma_xclient", "-c", "x", "-s", V4["beta"]), UNSUPPORTED),
    (("ucmatose",), ("ucmatose", "-f", "gid", "-s", "fe80::1"), "No such device"),
)


class Rdmacm(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = 21000

    def start(self, vm, *words):
        return self.lab.start(vm, "timeout", LIMIT, *words)

    def listens(self, vm, server, port):
        """Waits until the server listens with rdma_cm (and TCP, if it uses that), or has ended."""
        ready = 'rdma resource show cm_id | grep LISTEN | grep -q ":%d "' % port
        deadline = time.monotonic() + LIMIT
        # The guest itself looks several times before this process looks at the server.
        script = "for n in $(seq 20); do %s && echo yes && exit; sleep 0.05; done" % ready
        while not self.lab.sh(vm, script):
            if server.process.poll() is not None:
                break
            self.assertLess(time.monotonic(), deadline, server.output)

    def new_port(self):
        type(self).port += 1
        return self.port

    def both(self, vms, server, client):
        """Starts a client when the server listens; returns statuses and outputs of both."""
        port = ("-p", self.new_port())
        waiting = self.start(vms[0], *server, *port)
        self.listens(vms[0], waiting, self.port)
        started = self.start(vms[1], *client, *port)
        return [(side.wait(LIMIT + 60), side.output) for side in (waiting, started)]

    def succeeds(self, vms, server, client):
        sides = self.both(vms, server, client)
        for status, output in sides:
            self.assertEqual(status, 0, sides)
        return [output for _, output in sides]

    def test_rping(self):
        """Reads and Writes with the data compared, over IPv4 and IPv6, in both directions

        rping -q is left out: it calls rdma_establish(), for which iw_cm has no message.  The call
        fails (Invalid argument), and rping then waits for its own thread, which waits for the
        peer."""
        runs = ((TO_BETA, V4, 64), (TO_BETA, V4, 4000), (TO_BETA, V4, 65535))
        runs += ((TO_ALPHA, V4, 4000), (TO_BETA, V6, 65535), (TO_ALPHA, V6, 64))
        for vms, addresses, size in runs:
            with self.subTest(vms=vms, address=addresses[vms[0]], size=size):
                both = ("-a", addresses[vms[0]], "-S", size, "-C", 10, "-V")
                more = ("-v", "-I", addresses[vms[1]])
                said = self.succeeds(vms, ("rping", "-s", *both), ("rping", "-c", *both, *more))
                self.assertEqual(said[1].count("ping data: rdma-ping-"), 10, said)

    def test_rping__persistent(self):
        """One server with clients of IPv4 and IPv6 at once; rping queues only three"""
        port = self.new_port()
        server = self.start("beta", "rping", "-s", "-P", "-a", "::0", "-p", port, "-V")
        self.listens("beta", server, port)
        words = ("rping", "-c", "-p", port, "-C", "20", "-V", "-S", "1000", "-a")
        clients = [self.start("alpha", *words, a["beta"]) for a in (V4, V6)]
        for client in clients:
            self.assertEqual(client.wait(LIMIT + 60), 0, client.output)
        self.assertIsNone(server.process.poll(), server.output)
        self.lab.sh("beta", "pkill -x rping")
        server.wait(LIMIT + 60)

    def test_ucmatose(self):
        """Many connections at once; -c, -C, -S; each message counted by both adapters"""
        runs = (
            (TO_BETA, V4, 200, 10, 1000),
            (TO_ALPHA, V4, 20, 100, 65536),
            (TO_BETA, V6, 20, 10, 1000, "-f", "ip", "-m"),
            (TO_BETA, V4, 5, 10, 1000, "-t", "32", "-a", "14"),
            (TO_BETA, V4, 20, 0, 0, "-P", "ib"),
        )
        for vms, addresses, connections, count, size, *more in runs:
            with self.subTest(vms=vms, connections=connections, size=size):
                both = ("-c", connections, "-C", count, "-S", size, *more)
                before = [counters(self.lab, vm) for vm in vms]
                said = self.succeeds(
                    vms,
                    ("ucmatose", "-b", addresses[vms[0]], *both),
                    ("ucmatose", "-s", addresses[vms[0]], *both),
                )
                for vm, then, text in zip(vms, before, said):
                    self.assertIn("return status 0", text)
                    self.assertNotIn("fail", text)
                    now = counters(self.lab, vm)
                    for counter in ("tx_sends", "rx_sends"):
                        self.assertEqual(now[counter] - then[counter], connections * count)
                    moved = now["tx_octets"] - then["tx_octets"]
                    self.assertGreaterEqual(moved, connections * count * size)

    def test_rcopy(self):
        """Files of several sizes, in both directions, equal at both ends

        (Not IPv6: rcopy splits at the first colon, so it takes an address for host and file.)"""
        for server, client in (TO_BETA, TO_ALPHA):
            port = self.new_port()
            waiting = self.start(server, "rcopy", "-p", port)
            self.listens(server, waiting, port)
            for size in (1, 4097, 20000003):
                with self.subTest(server=server, size=size):
                    self.lab.sh(client, "head -c %d /dev/urandom > /dev/shm/from" % size)
                    words = ("rcopy", "/dev/shm/from", V4[server] + ":/dev/shm/to", "-p", port)
                    copy = self.start(client, *words)
                    self.assertEqual(copy.wait(LIMIT + 60), 0, copy.output)
                    self.assertIn("%d bytes in" % size, copy.output)
                    hashes = [
                        self.lab.sh(vm, "sha256sum < /dev/shm/" + name)
                        for vm, name in ((client, "from"), (server, "to"))
                    ]
                    self.assertEqual(*hashes)
                    self.lab.sh(server, "rm /dev/shm/to")
            self.lab.sh(server, "pkill -x rcopy")
            waiting.wait(LIMIT + 60)

    def test_cmtime(self):
        """1,000 connections at once

        cmtime also meets its peer through TCP sockets, with the port number on which rdma_cm
        listens.  On iWARP both are TCP ports, and the adapter takes the segments.  So the test
        passes a name that is an IPv6 address for rdma_cm and an IPv4 address for cmtime's sockets.
        Then cmtime connects without queue pairs, which iw_cm refuses for any adapter."""
        hosts = "%s both.beta\n%s both.beta\n" % (V6["beta"], V4["beta"])
        for vm in TO_BETA:
            self.lab.sh(vm, "printf '%s' >> /etc/hosts" % hosts)
        words = ("timeout", LIMIT, "cmtime", "-c", CONNECTIONS, "-p", self.new_port())
        server = self.lab.start("beta", *words, "-b", "both.beta")
        self.listens("beta", server, self.port)
        ready = "ss -Htln sport = :%d | grep -q ." % self.port
        wait_for(self.lab, "beta", ready)
        client = self.lab.start("alpha", *words, "-s", "both.beta")
        self.assertEqual(client.wait(LIMIT + 60), 1, client.output)
        for side in (client, server):
            side.expect(r"(?m)^destroy qp +[0-9]+ +[0-9]+ ", LIMIT)
            self.assertRegex(side.output, r"(?m)^qp_conn +%d$" % CONNECTIONS)
        self.assertIn("test - no QPs", client.output)
        self.assertTrue(client.output.endswith("rdma_connect: Invalid argument\n"), client.output)
        self.lab.sh("beta", "pkill -x cmtime; true")
        server.wait(LIMIT + 60)

    def test_client_and_server(self):
        """rdma_client and rdma_server, rdma_xclient and rdma_xserver with reliable connections"""
        for vms in (TO_BETA, TO_ALPHA):
            for name in ("rdma_", "rdma_x"):
                with self.subTest(vms=vms, name=name):
                    client = (name + "client", "-s", V4[vms[0]])
                    for text in self.succeeds(vms, (name + "server",), client):
                        self.assertIn(": end 0", text)

    def stream(self, tool, vms, addresses, *options, of_server=()):
        before = counters(self.lab, vms[1])
        server = vms[0]
        said = self.succeeds(
            vms,
            (tool, "-b", addresses[server], *options, *of_server),
            (tool, "-s", addresses[server], *options),
        )
        for text in said:
            self.assertRegex(text, r"(?m)^custom +")
            self.assertNotIn("verification failed", text)
        value = dict(zip(options, options[1:]))
        octets = int(value["-S"]) * int(value["-C"]) * int(value.get("-I", 1))
        now = counters(self.lab, vms[1])
        for counter in ("tx_octets", "rx_octets"):
            self.assertGreaterEqual(now[counter] - before[counter], octets)

    def test_rstream(self):
        """rsockets: sizes, polling, blocking or not; both sides check each octet"""
        for options in RSTREAM:
            with self.subTest(options=options):
                self.stream("rstream", TO_BETA, V4, *options)
        # The client's last poll may find data and end of stream together, which rstream takes for
        # an error (do_poll()); so only the server polls.
        for more in (("-T", "a"), ("-T", "a", "-T", "b")):
            with self.subTest(of_server=more):
                self.stream("rstream", TO_BETA, V4, *RSTREAM[3], of_server=more)
        with self.subTest(options="to alpha"):
            self.stream("rstream", TO_ALPHA, V4, *RSTREAM[1])
        with self.subTest(options="IPv6"):
            self.stream("rstream", TO_BETA, V6, *RSTREAM[1])
        with self.subTest(options="-T r"):
            self.stream("rstream", TO_BETA, V4, *RSTREAM[1], "-T", "r")

    def test_riostream(self):
        """riowrite(): Writes into memory that the peer mapped; each octet checked"""
        for options in RIOSTREAM:
            with self.subTest(options=options):
                self.stream("riostream", TO_BETA, V4, *options)
        with self.subTest(options="to alpha, IPv6"):
            self.stream("riostream", TO_ALPHA, V6, *RIOSTREAM[1])

    def test_refused(self):
        """Datagrams, multicast, XRC and InfiniBand's addresses: an error at once, by name"""
        for server, client, text in REFUSED:
            with self.subTest(client=client):
                waiting = self.start("beta", *server)
                if server[0] != "mckey":  # the other programs wait for a peer
                    wait_for(self.lab, "beta", "pgrep -x " + server[0])
                started = self.start("alpha", *client)
                self.assertNotIn(started.wait(LIMIT + 60), (0, 124), started.output)
                self.assertIn(text, started.output)
                if server[0] == "mckey":
                    self.assertNotIn(waiting.wait(LIMIT + 60), (0, 124), waiting.output)
                    self.assertIn(text, waiting.output)
                self.lab.sh("beta", "pkill -x %s; true" % server[0])
                waiting.wait(LIMIT + 60)

    def test_zz_nothing_left(self):
        """Ended programs have no object left"""
        for vm in ("alpha", "beta"):
            script = "for o in qp mr cm_id srq pd; do rdma resource show $o; done"
            wait_for(self.lab, vm, 'test -z "$(%s)"' % script)


if __name__ == "__main__":
    labtest.main()
