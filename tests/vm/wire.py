# SPDX-License-Identifier: GPL-2.0-or-later
"""What tshark says about a capture.

Wireshark's known errors are not held against the adapter: it knows only MPA
revision 1 (its warnings about Rev and Res), it takes the content of Sends
for RPC-over-RDMA or SMB Direct, and it takes a connection for another protocol's if
its ephemeral port happens to be one that it knows.  So only the protocols in question are on.
"""
import functools
import re
import shutil
import subprocess

OPCODES = {
    0: "write",
    1: "read request",
    2: "read response",
    3: "send",
    4: "send invalidate",
    5: "send se",
    6: "send se invalidate",
    7: "terminate",
}


PROTOCOLS = set(
    "frame eth ethertype ip ipv6 tcp iwarp_mpa iwarp_ddp_rdmap data pkt_comment".split()
)


def available():
    return shutil.which("tshark") is not None


@functools.cache
def _others_off():
    """Arguments that leave only PROTOCOLS on (tshark 4.0 has no option for that)."""
    listed = subprocess.run(
        ["tshark", "-G", "protocols"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    names = [line.split("\t")[2] for line in listed.stdout.decode().splitlines() if "\t" in line]
    off = [name for name in names if name not in PROTOCOLS]
    return [word for name in off for word in ("--disable-protocol", name)]


def _tshark(capture, *arguments):
    done = subprocess.run(
        ["tshark", "-r", capture, *_others_off(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise AssertionError("tshark: " + done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


class Report:
    """Counts over one capture.

    malformed: frames that a dissector gave up on, bad_frames: these in words; crc_good and
    crc_bad: FPDUs; opcodes: {name: segments}; requests and replies: MPA startup frames as
    (revision, markers, crc, rejected); errors: other expert errors' texts."""

    def __init__(self, capture):
        text = _tshark(capture, "-V", "-O", "iwarp_mpa,iwarp_ddp_rdmap", "-Y", "tcp")
        self.malformed = len(
            re.findall(r"^\[Malformed Packet|\[Expert Info \(Error/Malformed\)", text, re.M)
        )
        self.bad_frames = ""
        if self.malformed:
            self.bad_frames = _tshark(capture, "-Y", "_ws.malformed", "-V", "-x")[:20000]
        self.crc_good = len(re.findall(r"CRC check: .*Good CRC32", text))
        self.crc_bad = len(re.findall(r"CRC check: .*Bad CRC32", text))
        self.fpdus = len(re.findall(r"^ +ULPDU length: ", text, re.M))
        self.errors = re.findall(r"\[Expert Info \(Error/[^]]*\]", text)
        self.opcodes = {}
        for number in re.findall(r"OpCode: .*\(0x0*([0-9a-f]+)\)", text):
            name = OPCODES.get(int(number, 16), number)
            self.opcodes[name] = self.opcodes.get(name, 0) + 1
        self.requests = self._startup(capture, "req")
        self.replies = self._startup(capture, "rep")

    @staticmethod
    def _startup(capture, key):
        text = _tshark(
            capture,
            "-Y",
            "iwarp_mpa.key." + key,
            "-T",
            "fields",
            "-e",
            "iwarp_mpa.rev",
            "-e",
            "iwarp_mpa.marker_flag",
            "-e",
            "iwarp_mpa.crc_flag",
            "-e",
            "iwarp_mpa.rej_flag",
        )
        truth = {"0": 0, "1": 1, "False": 0, "True": 1}
        return [
            (int(fields[0]), *(truth[field] for field in fields[1:4]))
            for fields in (line.split("\t") for line in text.splitlines())
            if len(fields) >= 4
        ]
