# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads captures with tshark.

Known errors of Wireshark do not count.  It knows only MPA revision 1, hence its warnings about Rev
and Res.  It takes the content of Sends for RPC-over-RDMA or SMB Direct, and guesses a connection's
protocol from the number of its ephemeral port; so only the protocols in question are enabled.
"""
import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "wireshark" / "staghorn.lua"
SCRIPT_2000 = SCRIPT.with_name("rdma_tcp_2000.lua")

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


PLACEMENT = {
    0x8: "immediate",
    0x9: "immediate se",
    0xA: "atomic request",
    0xB: "atomic response",
    0xC: "flush request",
    0xD: "flush response",
    0xE: "verify request",
    0xF: "verify response",
    0x10: "atomic write request",
    0x11: "atomic write response",
}


PROTOCOLS = set(
    "frame eth ethertype ip ipv6 tcp iwarp_mpa iwarp_ddp_rdmap data pkt_comment".split()
)


def available():
    return shutil.which("tshark") is not None


@functools.cache
def _others_off(*more):
    """Arguments that enable only PROTOCOLS (and `more`); tshark 4.0 has no option for that."""
    options = subprocess.run(["tshark", "--help"], capture_output=True, check=True).stdout
    if b"--only-protocols" in options:
        only = PROTOCOLS.union(more) - {"pkt_comment"}  # it cannot be disabled
        return ["--only-protocols", ",".join(sorted(only))]
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
    """The counts of one capture.

    malformed: frames on which a dissector gave up, bad_frames: their descriptions; crc_good and
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


def _decoded(capture, script, protocol, columns):
    """Lines with these fields of the frames that one of our dissectors knows."""
    words = [word for name in columns for word in ("-e", name)]
    # As root, tshark 4.4 silently ignores all scripts.
    root = os.geteuid() == 0
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if root else {}
    with tempfile.TemporaryDirectory() as folder, open(capture, "rb") as octets:
        copy = Path(shutil.copy(script, folder))
        copy.parent.chmod(0o755)
        copy.chmod(0o644)
        done = subprocess.run(
            ["tshark", "-X", "lua_script:%s" % copy, "-r", "-", *_others_off(protocol)]
            + ["-Y", protocol, "-T", "fields", *words],
            stdin=octets,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "HOME": folder},
            **nobody,
        )
    if done.returncode:
        raise AssertionError("tshark: " + done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


class Placement:
    """The findings of tools/wireshark/staghorn.lua in one capture.

    messages: {name: how many}; flags: {disposition flags of Flush Requests: how many};
    malformed: numbers of frames with a message that the draft does not allow.  (The Report of such
    a capture counts Atomic Write Responses as malformed and uses other names.)"""

    def __init__(self, capture):
        wrong = ["staghorn." + name for name in ("short", "long", "header", "value")]
        columns = ["frame.number", "staghorn.opcode", "staghorn.flags"] + wrong
        self.messages, self.flags, self.malformed = {}, {}, []
        for line in _decoded(capture, SCRIPT, "staghorn", columns).splitlines():
            number, opcodes, flags, *bad = line.split("\t")
            for opcode in filter(None, opcodes.split(",")):
                name = PLACEMENT[int(opcode, 16)]
                self.messages[name] = self.messages.get(name, 0) + 1
            for word in filter(None, flags.split(",")):
                self.flags[int(word, 16)] = self.flags.get(int(word, 16), 0) + 1
            if any(bad):
                self.malformed.append(int(number))


class Segments2000:
    """The findings of tools/wireshark/rdma_tcp_2000.lua in one capture.

    types: {type of message: segments}; setups: kinds of setup messages, in order; streams: how
    many Connection IDs there are; malformed: numbers of frames with an impossible length."""

    def __init__(self, capture):
        names = ("type", "kind", "conn_id", "short")
        columns = ["frame.number"] + ["rdma_tcp_2000." + name for name in names]
        self.types, self.setups, self.malformed, found = {}, [], [], set()
        for line in _decoded(capture, SCRIPT_2000, "rdma_tcp_2000", columns).splitlines():
            number, types, kinds, conn_ids, short = line.split("\t")
            self.malformed += [int(number)] if short else []
            for word in filter(None, types.split(",")):
                self.types[int(word)] = self.types.get(int(word), 0) + 1
            self.setups += [int(word) for word in kinds.split(",") if word]
            found.update(filter(None, conn_ids.split(",")))
        self.streams = len(found)
