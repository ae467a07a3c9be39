# SPDX-License-Identifier: GPL-2.0-or-later
"""Private data of RFC 8797 between rpcrdma and Linux's NFS server and client, from captures.
# timeout: 1200

rpcrdma check connects to Linux's server with private data of all forms; rpcrdma serve offers all
forms to Linux's client.  rpcrdma decode reads what both sides said in the capture, and what
followed from it.  docs/rpcrdma.md says what Linux makes of them.
"""
import json
import os
import subprocess
import tempfile
import time

import labtest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

PROGRAM = labtest.TOP / "build" / "native" / "tools" / "rpcrdma" / "rpcrdma"
SERVE_PORT = 20050
# What Linux says: 4096 octets each way; R of the client, which its server leaves clear.
LINUX_CLIENT, LINUX_SERVER = "f6ab0e1801010303", "f6ab0e1801000303"
FILE = "/srv/export/checked"
SERVE = (
    ulptest.MAKE_DISK
    + """
mkfs.ext4 -q -F -b 4096 /dev/pmem0
mkdir -p /srv/export
mount /dev/pmem0 /srv/export
head -c 40000 /dev/urandom > %s
"""
    % FILE
    + exports.nfs("/srv/export")
)
# Octets of a side: what they mean (present, R, send, receive).
FORMS = {
    "": (False, False, 1024, 1024),
    "f6ab0e1801000000": (True, False, 1024, 1024),
    "f6ab0e1801000303": (True, False, 4096, 4096),
    "f6ab0e1801010303": (True, True, 4096, 4096),
    "f6ab0e1801010700": (True, True, 8192, 1024),
    "f6ab0e180100ffff": (True, False, 262144, 262144),
    "f6ab0e18010103": (False, False, 1024, 1024),
    "f6ab0e1802010303": (False, False, 1024, 1024),
    "0011223344556677": (False, False, 1024, 1024),
    "01020304f6ab0e1801010303": (True, True, 4096, 4096),
}


def meaning(side):
    """What decode made of one side's private data, as in FORMS."""
    return (
        side["present"],
        side["remote_invalidation"],
        side["send_size"],
        side["receive_size"],
    )


class PrivateData(labtest.LabCase):
    """alpha is the client, beta the server."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()  # noqa: R1732
        cls.capture = cls.folder.name + "/private.pcap"
        cls.up_arguments = (*ulptest.UP, "--capture", cls.capture)
        super().setUpClass()
        cls.lab.sh(SERVER, "set -e\n" + SERVE, timeout=ulptest.LIMIT)
        for vm in (CLIENT, SERVER):
            cls.lab.run("copy", PROGRAM, vm + ":/usr/bin/rpcrdma")
        cls.lab.sh(CLIENT, "mkdir -p /mnt/nfs; modprobe rpcrdma")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def decode(self, *ports):
        """(connections, transactions, summary) of the capture, once it no longer grows."""
        size = -1
        while size != os.path.getsize(self.capture):
            size = os.path.getsize(self.capture)
            time.sleep(1)
        words = [word for port in ports for word in ("--port", str(port))]
        done = subprocess.run(
            [PROGRAM, "decode", "--json", "--transactions", *words, self.capture],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        found = {"connection": [], "transaction": [], "finding": []}
        for each in objects[:-1]:
            for kind, value in each.items():
                found[kind].append(value)
        return found["connection"], found["transaction"], objects[-1]["summary"]

    def check_thresholds(self, connection):
        """They follow from both sides' octets, which decode has understood as FORMS says."""
        client, server = connection["client_private_data"], connection["server_private_data"]
        for side in (client, server):
            if side["octets"] in FORMS:
                self.assertEqual(meaning(side), FORMS[side["octets"]], side["octets"])
        to_server = min(client["send_size"], server["receive_size"])
        to_client = min(server["send_size"], client["receive_size"])
        self.assertEqual(connection["threshold_to_server"], to_server)
        self.assertEqual(connection["threshold_to_client"], to_client)

    def check(self, *words, status=0):
        words = ["rpcrdma", "check", "server", ulptest.ADDRESS, "--tap", *words]
        words += ["--program", "nfs", "--file", os.path.basename(FILE), "--quiet", 100]
        done = self.lab.run(
            *("exec", "-n", "--timeout", ulptest.LIMIT, CLIENT, "--", *words),
            status=status,
            timeout=ulptest.LIMIT + 30,
        )
        self.assertIn(" 0 skipped, 0 without judgement", done.out)
        return done.out

    def test_1_linux_server__each_form_of_a_client(self):
        """From absent to 262144 octets, cut off, foreign; new ones with each connection"""
        forms = ("absent", "smallest", "unequal", "sizes", "largest", "offset", "foreign")
        forms += ("version", "truncated", "reserved", "reconnect")
        cases = [word for form in forms for word in ("--case", "private-" + form)]
        with self.shows("PVT-01 PVT-06 PVT-07 PVT-08"):
            self.check(*cases)
            connections, _, summary = self.decode()
            said = {each["client_private_data"]["octets"] for each in connections}
            self.assertGreaterEqual(len(said), 25, said)
            for each in connections:
                self.assertEqual(each["server_private_data"]["octets"], LINUX_SERVER)
                self.check_thresholds(each)
            # The reserved bits are the client's, in one connection.
            self.assertEqual(summary["rules"], {"PVT-02": 1})

    def invalidated(self, octets):
        """How many Replies invalidated an STag, with a client that sends these private data."""
        self.check("--case", "result", "--private-data", octets, status=None)
        connections, calls, _ = self.decode()
        number = connections[-1]["number"]
        self.assertEqual(connections[-1]["client_private_data"]["octets"], octets)
        return [call for call in calls if call["connection"] == number and "invalidated" in call]

    def test_2_linux_server__invalidation(self):
        """R of the client alone decides; it is looked for in the first octets only"""
        with_r = self.invalidated("f6ab0e1801010303")
        self.assertGreater(len(with_r), 0)
        for call in with_r:
            self.assertIn(call["invalidated"], [chunk["stag"] for chunk in call["chunks"]])
            self.assertEqual({each["rule"] for each in call["findings"]}, {"PVT-05"})
        self.assertEqual(self.invalidated("f6ab0e1801000303"), [])
        self.assertEqual(self.invalidated("f6ab0e1802010303"), [])
        # RFC 8797 section 5.2 finds it behind other octets as well.
        self.assertEqual(self.invalidated("01020304f6ab0e1801010303"), [])

    def test_3_linux_client__each_form_of_a_server(self):
        """It connects whatever the server says, and its Calls fit what follows from that"""
        ports = {SERVE_PORT + n: octets for n, octets in enumerate(FORMS)}
        for port, octets in ports.items():
            words = ("--private-data", octets) if octets else ("--no-private-data",)
            server = self.lab.start(SERVER, "rpcrdma", "serve", "--port", port, *words)
            server.expect("listening at port %d" % port)
            # The server has no NFS, so the mount ends with an error, behind the first Call.
            mount = "mount -t nfs4 -o vers=4.1,proto=rdma,retry=0,port=%d %s:/ /mnt/nfs"
            mount = "! timeout 60 " + mount % (port, ulptest.ADDRESS)
            self.lab.sh(CLIENT, mount, timeout=ulptest.LIMIT)
            server.stop()
        connections, calls, _ = self.decode(*ports)
        for port, octets in ports.items():
            with self.subTest(octets=octets):
                ours = [c for c in connections if c["server"].endswith("port %d" % port)]
                self.assertGreaterEqual(len(ours), 1)
                for each in ours:
                    self.assertEqual(each["client_private_data"]["octets"], LINUX_CLIENT)
                    self.assertEqual(each["server_private_data"]["octets"], octets)
                    self.check_thresholds(each)
                numbers = {each["number"] for each in ours}
                said = [call for call in calls if call["connection"] in numbers]
                self.assertGreaterEqual(len(said), 1)
                for call in said:
                    self.assertEqual(call["findings"], [])


if __name__ == "__main__":
    labtest.main()
