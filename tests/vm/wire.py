# SPDX-License-Identifier: GPL-2.0-or-later
"""What tshark says about a capture.

Wireshark's known errors are not held against the adapter: it knows only MPA
revision 1 (its warnings about Rev and Res), and it takes the content of Sends
for RPC-over-RDMA or SMB Direct, which are therefore switched off.
"""
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


def available():
    return shutil.which("tshark") is not None


def _tshark(capture, *arguments):
    done = subprocess.run(
        [
            "tshark",
            "-r",
            capture,
            "--disable-protocol",
            "rpcordma",
            "--disable-protocol",
            "smb_direct",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise AssertionError("tshark: " + done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


class Report:
    """Counts over one capture.

    malformed: frames that a dissector gave up on; crc_good and crc_bad: FPDUs;
    opcodes: {name: segments}; requests and replies: MPA startup frames as
    (revision, markers, crc, rejected); errors: other expert errors' texts."""

    def __init__(self, capture):
        text = _tshark(capture, "-V", "-O", "iwarp_mpa,iwarp_ddp_rdmap", "-Y", "tcp")
        self.malformed = len(
            re.findall(r"^\[Malformed Packet|\[Expert Info \(Error/Malformed\)", text, re.M)
        )
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
