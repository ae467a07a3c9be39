# SPDX-License-Identifier: GPL-2.0-or-later
"""Connection setup with siw: one adapter for each policy, each side active in turn.
# timeout: 900

alpha has eight adapters that differ in how they set up connections, beta has siw, which uses MPA
revision 2, requests no CRC and no markers, has its own limits, and as responder accepts a Write or
a Read as the ready-to-receive message, never a Send.  A table has the outcome of each pair:

    data      rping works; its Reads, Writes and Sends are validated at both ends
    no reads  the connection is established, but siw answers each Read with a Terminate: revision 1
              has no depths, and siw then assumes that no Reads were granted
    refused   one side refuses the other; both are told, nothing hangs

The startup frames, and the initiator's first message, are read from a capture, because the data
would also arrive with other choices.
"""
import os
import re
import tempfile
import time
from dataclasses import dataclass

import fpdu
import labtest
import ulptest


@dataclass
class Row:
    """An adapter, and the outcomes with it."""

    properties: str
    asking: str  # outcome if alpha connects to siw; None: not tried
    answering: str  # outcome if siw connects to alpha
    offered: tuple = ("write", "read")  # the first messages that alpha's Request offers
    taken: tuple = ("write",)  # those that siw's Reply accepts
    first: str = "empty write"  # alpha's first message

    def flags(self):
        """CRC and Markers in alpha's startup frames."""
        crc = 0 if "crc=off" in self.properties else fpdu.CRC
        return crc | (fpdu.MARKERS if "markers=on" in self.properties else 0)

    def revision(self):
        return 1 if "mpa-rev=1" in self.properties else 2


NOTHING = {"offered": (), "taken": (), "first": "send"}  # rping's own first message
TABLE = (
    Row("first-fpdu-delay=50", "data", "data"),
    Row("crc=off,first-fpdu-delay=50", "data", "data"),
    # siw rejects a Request with the M flag, and closes the connection on a Reply with it.
    Row("markers=on", "refused", "refused", taken=(), first=""),
    # An adapter of revision 1 does not know siw's Request.
    Row("mpa-rev=1,first-fpdu-delay=50", "no reads", "refused", **NOTHING),
    Row("peer-to-peer=off,crc=off,first-fpdu-delay=50", "data", "data", **NOTHING),
    Row(
        "rtr-write=off,first-fpdu-delay=50",
        *("data", "data", ("read",), ("read",), "empty read request"),
    ),
    # siw answers an offer of Send alone with Write: they have nothing in common, and our first FPDU
    # is the Terminate 2/0/07 (RFC 6581 section 9.2).  Linux 6.12 does not survive that: siw takes
    # the Terminate for the message that establishes the connection, closes at once, and iw_cm hits
    # a BUG (iwcm.c:964) in beta's kernel.  So this is tested only between adapters
    # (unit/proto/mpa_pairs).  As initiator siw does not request the peer-to-peer model.
    Row("rtr-write=off,rtr-read=off,rtr-send=on", None, "data"),
    Row("max-ird=1,max-ord=1,first-fpdu-delay=50", "data", "data"),
)
PINGS = 5
TRIES = 4  # siw sometimes misses the first FPDU
# perftest connects twice, and its client does not wait until the server listens for the second
# time.  The slower the server's VM is, the more often this gives "Connection refused".
RACES = 12


class MpaSiw(ulptest.ProgramCase):
    up_arguments = (
        *("--driver", "beta=siw", "--mem", "512M"),
        *(word for row in TABLE[:1] for word in ("--device-prop", "alpha:" + row.properties)),
        *(word for row in TABLE[1:] for word in ("--adapter", "alpha:" + row.properties)),
    )
    port = 7200

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sg-mpa-siw-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.capture = cls.folder.name + "/x.pcap"
        cls.up_arguments = (*cls.up_arguments, "--capture", cls.capture)
        super().setUpClass()
        # siw has one port, which has an address in the network of each adapter.
        words = ["ip addr add 10.77.%d.2/24 dev eth0" % n for n in range(1, len(TABLE))]
        cls.lab.sh("beta", "; ".join(words))

    def serve(self, vm, *command):
        """Starts a server on its own port and waits until it listens; returns it and the port."""
        MpaSiw.port += 1
        found = self.lab.start(vm, *command, "-p", str(self.port))
        listens = "until rdma resource show cm_id | grep -q ':%d.*LISTEN\\|LISTEN.*:%d'; do "
        self.lab.sh(vm, listens % (self.port, self.port) + "sleep 0.1; done", timeout=60)
        time.sleep(0.2)
        return found, str(self.port)

    def ping(self, server, client, address):
        """One rping; returns the output of client and server."""
        words = ("-a", address, "-v", "-V", "-C", str(PINGS), "-S", "20000")
        waiting, port = self.serve(server, "rping", "-s", *words)
        command = ("exec", "-n", "--timeout", 30, client, "--", "rping", "-c", *words, "-p", port)
        done = self.lab.run(*command, status=None)
        waiting.stop()
        return done.out + done.err, waiting.output

    def outcome(self, server, client, address):
        text, _ = self.ping(server, client, address)
        if len(re.findall("^ping data: ", text, re.M)) == PINGS:
            return "data", text
        if re.search("REJECTED|CONNECT_ERROR|connect error", text):
            return "refused", text
        return ("no reads" if "DISCONNECT EVENT" in text else "hang"), text

    def perftest(self, tool, server, client, address, theirs=(), ours=()):
        """One run, with more arguments for server and client; returns status and text."""
        words = ("-R", "-F", "-s", "4096", "-n", "50")
        waiting, port = self.serve(server, tool, *words, *theirs)
        command = ("exec", "-n", "--timeout", 60, client, "--", tool, *words, *ours)
        command += ("-p", port, address)
        done = self.lab.run(*command, status=None)
        waiting.stop()
        return done.returncode, done.out + done.err + waiting.output

    def judge(self, expected, server, client, address):
        """Tries until it ends as expected; returns the ports of all tries."""
        ports = []
        for _ in range(TRIES):
            found, text = self.outcome(server, client, address)
            ports.append(self.port)
            if found == expected:
                break
        self.assertEqual(found, expected, text)
        return ports

    def setups(self):
        """The starts of the connections so far, from the capture, by the listening port."""
        size = -1
        while size != os.path.getsize(self.capture):
            size = os.path.getsize(self.capture)
            time.sleep(0.5)  # another process writes it
        found = {}
        for each in fpdu.setups(self.capture):
            found.setdefault(int(each.responder.split(":")[1]), []).append(each)
        return found

    def check_asked(self, row, setups):
        """Checks alpha's Requests, siw's Replies, and the first messages."""
        for each in setups:
            said = each.request
            self.assertEqual(
                (said.revision, said.flags & (fpdu.CRC | fpdu.MARKERS), said.ready),
                (row.revision(), row.flags(), row.offered),
                each,
            )
            self.assertEqual(said.peer_to_peer, row.offered != (), each)
            self.assertEqual(said.depths, (1, 1) if row.revision() == 2 else (), each)
            if each.reply and row.asking != "refused":
                self.assertEqual(each.reply.ready, row.taken, each)
                self.assertEqual(each.reply.depths, said.depths, each)
            if row.offered:
                self.assertIn(each.first_kind, (row.first, ""), each)
        self.assertIn(row.first, [each.first_kind for each in setups if each.reply], setups)

    def check_answered(self, row, setups):
        """Checks siw's Requests, which do not use the peer-to-peer model, and alpha's Replies."""
        for each in setups:
            self.assertEqual((each.request.revision, each.request.peer_to_peer), (2, False), each)
            if row.revision() == 1:
                self.assertIsNone(each.reply, each)
            elif each.reply:
                said = each.reply
                self.assertEqual(
                    (said.revision, said.flags & (fpdu.CRC | fpdu.MARKERS | fpdu.REJECT)),
                    (2, row.flags()),
                    each,
                )
                self.assertEqual((said.peer_to_peer, said.ready, said.depths), (False, (), (1, 1)))
        if row.answering == "data":
            self.assertIn("send", [each.first_kind for each in setups], setups)
        elif row.revision() == 2:
            self.assertTrue([each for each in setups if each.reply], setups)
        self.assertTrue(setups)

    def tearDown(self):
        super().tearDown()
        text = self.lab.sh("alpha", "rdma link")
        self.assertEqual(text.count("state ACTIVE"), len(TABLE), text)

    def test_alpha_connects(self):
        """MP2-01 MP2-10 MP2-13 MP2-15 MP2-19 MP2-20 MP2-21 each policy, alpha connects to siw"""
        tried = {}
        for number, row in enumerate(TABLE):
            if row.asking is None:
                continue
            with self.subTest(properties=row.properties):
                tried[number] = self.judge(row.asking, "beta", "alpha", "10.77.%d.2" % number)
        setups = self.setups()
        for number, ports in tried.items():
            found = [each for port in ports for each in setups.get(port, ())]
            with self.subTest(properties=TABLE[number].properties, wire=True):
                self.check_asked(TABLE[number], found)

    def test_siw_connects(self):
        """MP2-02 MP2-11 MP2-17 MP2-21 MP2-24 MP2-26 each policy, siw connects to alpha"""
        tried = {}
        for number, row in enumerate(TABLE):
            with self.subTest(properties=row.properties):
                tried[number] = self.judge(row.answering, "alpha", "beta", "10.77.%d.1" % number)
        setups = self.setups()
        for number, ports in tried.items():
            found = [each for port in ports for each in setups.get(port, ())]
            with self.subTest(properties=TABLE[number].properties, wire=True):
                self.check_answered(TABLE[number], found)

    def test_revision_1_without_reads(self):
        """With revision 1 Sends and Writes work"""
        number = next(n for n, row in enumerate(TABLE) if row.asking == "no reads")
        for tool in ("ib_send_bw", "ib_write_bw"):
            for _ in range(TRIES):
                status, text = self.perftest(tool, "beta", "alpha", "10.77.%d.2" % number)
                if status == 0:
                    break
            self.assertEqual(status, 0, text)

    def reads(self, number, depth, server, client, host, granted):
        """ib_read_bw with so many Reads in flight; repeated if siw fails, or if it is refused."""
        address = "10.77.%d.%d" % (number, host)
        hiccups = races = 0
        while True:
            status, text = self.perftest(
                "ib_read_bw", server, client, address, ("-o", granted), ("-o", depth)
            )
            if "Connection refused" in text:
                races += 1
            else:
                hiccups += 1
            if status == 0 or hiccups == TRIES or races == RACES:
                return status, text

    def test_depths(self):
        """RDM-53 RDM-54 MP2-07 MP2-08 depths that programs ask for, limited by either side"""
        few = len(TABLE) - 1
        tried = {}
        for number, depth, server, client, host, granted, answer in (
            (0, "1", "beta", "alpha", 2, "1", (1, 1)),
            (0, "16", "beta", "alpha", 2, "16", (16, 16)),
            # siw's program grants 2; siw itself grants everything requested, and accepts 2.
            (0, "16", "beta", "alpha", 2, "2", (16, 2)),
            (0, "16", "alpha", "beta", 1, "16", (16, 16)),
            (few, "1", "beta", "alpha", 2, "16", (1, 1)),
            (few, "16", "alpha", "beta", 1, "1", (1, 1)),  # our Reply says 1, and siw respects it
        ):
            with self.subTest(adapter=number, depth=depth, active=client, granted=granted):
                status, text = self.reads(number, depth, server, client, host, granted)
                self.assertEqual(status, 0, text)
                tried[self.port] = (int(depth), answer)
        setups = self.setups()
        for port, (depth, answer) in tried.items():
            # perftest's first connection, by which its ends agree, requests no Reads at all.
            found = [each for each in setups[port] if each.request.depths != (0, 0)]
            with self.subTest(wire=port):
                self.assertEqual(
                    [(each.request.depths, each.reply.depths) for each in found],
                    [((depth, depth), answer)],
                )

    def test_more_than_the_adapter_has(self):
        """RDM-54 a program that requests more Reads in flight than the adapter has gets an error"""
        status, text = self.perftest(
            "ib_read_bw", "beta", "alpha", "10.77.%d.2" % (len(TABLE) - 1), (), ("-o", "16")
        )
        self.assertNotEqual(status, 0)
        self.assertIn("Invalid argument", text)


if __name__ == "__main__":
    labtest.main()
