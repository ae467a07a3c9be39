# SPDX-License-Identifier: GPL-2.0-or-later
"""What both machines did about a lost record, and its packets in the lab's capture.
# timeout: 600
# suite: full
"""
import json
import struct
import tempfile
from pathlib import Path

import fpdu
import labtest
import programs

RECORDS = 3


def frame_of(path, number):
    """A frame of a capture by its number, as Wireshark counts."""
    data, at = Path(path).read_bytes(), 24
    for _ in range(number - 1):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return data[at + 16 : at + 16 + struct.unpack_from("<I", data, at + 8)[0]]


def payload_of(frame):
    """(source address, payload) of a TCP segment over IPv4."""
    header = 14 + (frame[14] & 15) * 4
    end = 14 + struct.unpack_from(">H", frame, 16)[0]
    return ".".join(map(str, frame[26:30])), frame[header + (frame[header + 12] >> 4) * 4 : end]


class Timeline(labtest.LabCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="sg-timeline-")
        cls.addClassCleanup(cls.place.cleanup)
        cls.capture = cls.place.name + "/lab.pcap"
        cls.up_arguments = ("--pmem", "beta:64M,domain=adr", "--capture", cls.capture)
        super().setUpClass()
        programs.install(cls.lab, "alpha", "crash_log")
        programs.install(cls.lab, "beta", "crash_server")

    def test_flush_of_the_wrong_range(self):
        """The row of each machine in order, and the packets of Write and Flush Response"""
        address, folder = programs.ADDRESS["beta"], self.place.name + "/run"
        client = "crash_log %s wrong-range %d 1" % (address, RECORDS)
        call = "for i in 1 2 3 4 5 6 7 8 9; do %s && exit; sleep 0.3; done; exit 1" % client
        words = ("crash", "record", "--output", folder)
        words += ("--", "beta", "crash_server", address, programs.DAX)
        self.lab.run(*words, "--", "alpha", "sh", "-c", call, timeout=120)
        done = self.lab.run(
            *("crash", "explore", "--json", "--target", "beta", "--domain", "adr", "--ddio", "on"),
            *("--capture", self.capture, folder),
            status=1,
        )
        bug = json.loads(done.out)["bugs"][0]
        self.check_rows(bug)
        self.check_packets(bug)
        page = Path(folder, "explored", "report.html").read_text()
        self.assertIn("<tr><th>alpha</th><th>beta</th><th>S0</th>", page)
        self.assertIn("In the capture, packet ", page)
        self.assertIn("bug 1: packet ", done.err)

    def check_rows(self, bug):
        rows = [(each["machine"], each["what"]) for each in bug["timeline"]]
        wanted = [
            ("alpha", "the request is sent"),
            ("alpha", "a Flush is sent"),
            ("beta", "the store"),
            ("beta", "a Flush begins"),
            ("beta", "a Flush of another range"),
            ("beta", "the Flush is answered"),
            ("alpha", "a Flush's completion"),
            ("alpha", "the acknowledgement"),
        ]
        places = [rows.index(each) for each in wanted]
        self.assertEqual(sorted(places[2:]), places[2:], rows)
        self.assertLess(places[0], places[2])
        causes = [bug["timeline"][place].get("cause") for place in places]
        wanted = [None, None, places[0], places[1], None, None, places[5], None]
        self.assertEqual(causes, wanted, rows)
        self.assertEqual(bug["timeline"][places[-1]]["stage-behind"], "S2")

    def check_packets(self, bug):
        found = {kind: each["packet"] for kind, each in bug["frames"].items()}
        lost, said = (found[kind]["numbers"] for kind in ("lost", "acknowledgement"))
        self.assertEqual((len(lost), len(said)), (1, 1))
        self.assertLess(lost[0], said[0])
        source, payload = payload_of(frame_of(self.capture, lost[0]))
        self.assertEqual(source, programs.ADDRESS["alpha"])
        offset = int(bug["example"]["lost"]["at"], 16)
        self.assertIn(struct.pack(">Q", offset), payload)
        source, payload = payload_of(frame_of(self.capture, said[0]))
        self.assertEqual(source, programs.ADDRESS["beta"])
        self.assertEqual(fpdu.NAMES[payload[3] & 31], "flush response")


if __name__ == "__main__":
    labtest.main()
