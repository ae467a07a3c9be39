#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's unmodified TCP programs over the adapter, by rdma-core's preload library.

alpha is the client, beta the server.  The adapter's counters tell what it moved; the kernel's list
of connections proves that its TCP was not used."""
# timeout: 900
import re
import time

import labtest
from ulptest import ProgramCase, counters, wait_empty, wait_for

LIMIT = 150  # seconds; other work may share the machine
PRELOAD = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
ADDRESS, ADDRESS6 = "10.77.0.2", "fd77::2"
SIZE = 32 << 20
IPERF_OCTETS = 16 << 20
IPERF_PORTS = {"": 5001, "-V": 5002}
PROXY = 1080
KEEPALIVE = 2  # seconds
DATA, EMPTY, GOT = "/root/data", "/root/empty", "/root/got"
# The same on both sides, so that each can compare what it got.
MAKE_DATA = 'import random; open("%s", "wb").write(random.Random(7).randbytes(%d))' % (DATA, SIZE)
# A connection that exists before accept() is called gets a descriptor that the library's select()
# mistakes for another one.  So the server has to be inside accept() first: then the process has the
# right number of substitute descriptors for rsockets, which are all opened on /dev/null.
IN_ACCEPT = "pid=$(cat /root/%s.pid) && test $(readlink /proc/$pid/fd/* | grep -cx /dev/null) -ge 2"
CLIENTS = {  # program, as a sender and as a receiver; it takes {host} and {port}
    "netcat": (
        "nc.traditional -q 0 {host} {port} < " + DATA,
        "nc.traditional {host} {port} < %s > %s" % (EMPTY, GOT),
    ),
    "socat": (
        "socat -u OPEN:%s TCP4:{host}:{port}" % DATA,
        "socat -u TCP4:{host}:{port} CREATE:%s" % GOT,
    ),
    # through the proxy's connection to its own adapter
    "proxy": (
        "socat -u OPEN:%s SOCKS5-CONNECT:{proxy}:{host}:{port},socksport=%d" % (DATA, PROXY),
        "socat -u SOCKS5-CONNECT:{proxy}:{host}:{port},socksport=%d CREATE:%s" % (PROXY, GOT),
    ),
}


class Rsockets(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for vm in ("alpha", "beta"):
            cls.lab.sh(vm, "python3 -c '%s' && : > %s" % (MAKE_DATA, EMPTY))
            wait_for(cls.lab, vm, "! ip -6 addr show tentative | grep -q inet6", LIMIT)
        cls.port = 7000

    def tearDown(self):
        super().tearDown()
        for vm in ("alpha", "beta"):
            self.lab.sh(
                vm, 'pkill -x "nc.traditional|socat|iperf|microsocks"; rm -f %s' % GOT, None
            )
            wait_empty(self.lab, vm)

    def start(self, vm, name, words, seconds=120):
        """Starts a shell command with the library; its process id is in /root/NAME.pid."""
        script = "echo $$ > /root/%s.pid; LD_PRELOAD=%s exec %s" % (name, PRELOAD, words)
        self.lab.sh(vm, "rm -f /root/%s.pid" % name)
        return self.lab.start(vm, "timeout", seconds, "sh", "-c", script)

    def listen(self, words):
        """Starts netcat as a server on beta's next port; it is in accept() on return."""
        type(self).port += 1
        server = self.start("beta", "server", words.format(port=self.port))
        try:
            wait_for(self.lab, "beta", IN_ACCEPT % "server", LIMIT)
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, server.output))
        return server

    def serve(self, name, words, port):
        """A server on beta that accepts connections one after the other."""
        self.start("beta", name, words, 600)
        line = "state LISTEN .*comm %s .*:%d( |$)" % (name, port)
        wait_for(self.lab, "beta", 'rdma resource show cm_id | grep -Eq "%s"' % line, LIMIT)

    def finish(self, *running):
        for each in running:
            self.assertEqual(each.wait(LIMIT), 0, each.output)

    def no_tcp(self):
        """Checks that there is no TCP connection; the driver's sockets for ports do not count."""
        for vm in ("alpha", "beta"):
            found = self.lab.sh(vm, "ss -Htn | sed /^UNCONN/d")
            self.assertNotRegex(found, r"10\.77\.0\.|fd77:")

    def moves(self, program, least=SIZE, **where):
        """Sends all of DATA to beta, then to alpha."""
        sender, receiver = CLIENTS[program]
        runs = (
            ("nc.traditional -l -p {port} < %s > %s" % (EMPTY, GOT), sender, "beta", "tx_octets"),
            ("nc.traditional -l -q 0 -p {port} < %s" % DATA, receiver, "alpha", "rx_octets"),
        )
        for listening, words, reader, counter in runs:
            with self.subTest(program=program, counter=counter, **where):
                before = counters(self.lab, "alpha")
                server = self.listen(listening)
                words = words.format(host=ADDRESS, port=self.port, **where)
                self.finish(self.start("alpha", "client", words), server)
                self.lab.sh(reader, "cmp %s %s && rm %s" % (DATA, GOT, GOT))
                after = counters(self.lab, "alpha")
                self.assertGreaterEqual(after[counter] - before[counter], least)
                self.assertEqual(after["protocol_errors"], before["protocol_errors"])

    def test_netcat(self):
        """netcat to netcat, both directions, compared"""
        self.moves("netcat")

    def test_socat(self):
        """socat and netcat, both directions, compared"""
        self.moves("socat")

    def test_proxy(self):
        """A SOCKS proxy in between, over IPv6 and IPv4, both directions, compared"""
        self.serve("microsocks", "microsocks -i :: -p %d" % PROXY, PROXY)
        for proxy in ("[%s]" % ADDRESS6, ADDRESS):
            self.moves("proxy", proxy=proxy)

    def test_iperf(self):
        """iperf, both directions, IPv4 and IPv6, one and four connections"""
        for family, port in IPERF_PORTS.items():
            self.serve("iperf", "iperf -s -p %d %s" % (port, family), port)
        for family, port in IPERF_PORTS.items():
            host = ADDRESS6 if family else ADDRESS
            for way, counter in (("", "tx_octets"), ("-R", "rx_octets"), ("-P 4", "tx_octets")):
                with self.subTest(host=host, way=way):
                    before = counters(self.lab, "alpha")
                    words = "iperf -c %s -p %d -n %d %s %s"
                    words %= (host, port, IPERF_OCTETS, family, way)
                    client = self.start("alpha", "client", words)
                    self.finish(client)
                    count = 4 if way == "-P 4" else 1
                    found = re.findall(r"(?m)^\[ +\*?\d+\].*sec +(\S+) MBytes", client.output)
                    self.assertEqual(len(found), count, client.output)
                    moved = counters(self.lab, "alpha")[counter] - before[counter]
                    self.assertGreaterEqual(moved, count * IPERF_OCTETS)

    def test_who(self):
        """While it runs, the program has a queue pair, and TCP has no connection"""
        server = self.listen("nc.traditional -l -p {port} < %s > /dev/null" % EMPTY)
        words = "nc.traditional %s %d < /dev/zero" % (ADDRESS, self.port)
        client = self.start("alpha", "client", words)
        mine = 'rdma resource show qp | grep -q "state RTS .*comm nc.traditional"'
        wait_for(self.lab, "alpha", mine, LIMIT)
        before = counters(self.lab, "alpha")["tx_octets"]
        deadline = time.monotonic() + LIMIT
        while counters(self.lab, "alpha")["tx_octets"] - before < SIZE:
            self.assertLess(time.monotonic(), deadline, client.output)
            time.sleep(0.1)
        self.no_tcp()
        # The client is killed: its server reads to the end.
        self.lab.sh("alpha", "kill -9 $(cat /root/client.pid)")
        client.wait(LIMIT)
        self.assertNotEqual(server.wait(LIMIT), 124, server.output)

    def test_server_killed(self):
        """Readers and writers end when their server is killed; rsockets notice it by keepalive"""
        self.lab.sh("alpha", "sysctl -qw net.ipv4.tcp_keepalive_time=%d" % KEEPALIVE)
        for words in (
            "nc.traditional -k {host} {port} < " + EMPTY,
            "nc.traditional -k {host} {port} < /dev/zero",
            "socat -u TCP4:{host}:{port},keepalive STDOUT",
        ):
            with self.subTest(words=words):
                # This server sends nothing and does not end by itself.
                server = self.listen("nc.traditional -l -p {port} < %s > /dev/null" % EMPTY)
                words = words.format(host=ADDRESS, port=self.port)
                client = self.start("alpha", "client", words, 600)
                wait_for(self.lab, "beta", 'rdma resource show qp | grep -q "state RTS"', LIMIT)
                self.lab.sh("beta", "kill -9 $(cat /root/server.pid)")
                server.wait(LIMIT)
                status = client.wait(LIMIT)
                self.assertNotEqual(status, 124, client.output)

    def test_refused(self):
        """If no rsocket listens the library tries TCP, and the program is refused"""
        client = self.start("alpha", "client", "socat -u OPEN:%s TCP4:%s:9" % (DATA, ADDRESS))
        self.assertEqual(client.wait(LIMIT), 1, client.output)
        self.assertIn("Connection refused", client.output)


if __name__ == "__main__":
    labtest.main()
