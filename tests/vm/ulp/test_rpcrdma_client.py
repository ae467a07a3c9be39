# SPDX-License-Identifier: GPL-2.0-or-later
"""rpcrdma check client, with Linux's NFS/RDMA client as the one that is examined.
# timeout: 1500

beta serves a folder in memory by Linux's NFS server over TCP, and `rpcrdma check client` relays
from RDMA to it, but for the message of the case that is running.  alpha mounts that, and calls all
the time, with Calls of each kind that a case waits for.  docs/rpcrdma.md says what Linux does
against the letter; anything else fails.
"""
import re

import labtest
import rpcrdmatest
import ulptest
from rdmatest import exports
from ulptest import CLIENT, SERVER

CASES = 47
PORT = 20051
# Cases in which Linux's client breaks a rule, and the rules.
LINUX_BREAKS = {
    "client-other-chunk": {"RPC-37"},
    "client-no-message": {"RPC-37"},
    "client-reverse-first": {"RPC-22"},
}
# Likewise, but not in each run: on a connection that it has made anew, Linux's client repeats all
# Calls that are open, without waiting for the first Reply.  How many are open when a connection
# ends depends on what its threads do at that instant, and whether the first Reply has come before
# the second Call depends on the machine.  So each case that begins with such a connection may find
# it, but not the very first one, in which the client has one thread.
AT_RECONNECT, FIRST = "RPC-05", "client-first-credit"
# A Reply with a bad header makes its Call fail with EIO.  If it comes before the client's thread
# waits for it, this thread forgets the error, finds a Reply of no octets, and ends the connection.
BAD_HEADER = re.compile(
    r"client-(cut-list|huge-count|flag|procedure|read-list|nomsg|msgp|done|unknown-error|cut-error)"
)
ENDED = "the client ended the connection"
# Cases that wait for a Call of a certain size or with certain chunks.  A slow machine's client may
# make none while the judge waits for it (30 s): the judge then says so, and judges nothing.
RARE = re.compile(r"client-(full-reply|returned-|unused-chunk|short)")
# Linux's client ends the connection at a long verifier.  Whether the first Reply of these cases has
# one that is too long, so that they are skipped, or only the second one, depends on the Calls.
VERIFIER = re.compile(r"client-full-reply")
SERVE = """
mkdir -p /srv/export
mount -t tmpfs -o size=16M tmpfs /srv/export
cd /srv/export
head -c 40001 /dev/urandom > large
head -c 4096 /dev/urandom > small
mkdir short long
ln -s some/where/else link
for n in $(seq 40); do echo x > long/a-rather-long-name-of-a-file-so-that-the-list-is-long-$n; done
cd /
""" + exports.nfs(
    "/srv/export"
)
MOUNT = "mkdir -p /mnt/nfs; mount -t nfs4 -o proto=rdma,port=%d,vers=4.1,noac%%s %s:/ /mnt/nfs" % (
    PORT,
    ulptest.ADDRESS,
)
# Lists, attributes and links past the caches; READs with a Write chunk of one and of two segments
# (1 MiB that begins within a page has 257 of them), of results that would fit inline, and READs
# whose Replies nearly fill inline thresholds of 4096 and 1024 octets: Linux's client leaves room
# for a Write chunk's segments, and offers a chunk if the Reply might not fit then.  Errors are no
# news here: some cases give a Call one.
WORK = """
import mmap, os, threading
memory = [mmap.mmap(-1, 2 << 20) for _ in range(4)]
def read(name, octets, n, at=0):
    file = os.open(name, os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(file, [memoryview(memory[n])[at : at + octets]], 0)
    finally:
        os.close(file)
works = [
    lambda n: os.stat("large"),
    lambda n: read("large", 1 << 20, n, 512),
    lambda n: read("small", 3840, n),
    lambda n: os.listdir("long"),
    lambda n: read("small", 768, n),
    lambda n: os.readlink("link"),
    lambda n: read("small", 8192, n),
    lambda n: os.listdir("short"),
]
def work(n):
    turn = 2 * n
    while True:
        turn += 1
        try:
            if turn % len(works) == 0:
                with open("/proc/sys/vm/drop_caches", "w") as file:
                    file.write("3")
            works[turn % len(works)](n)
        except OSError:
            pass
os.chdir("/mnt/nfs")
for n in range(4):
    threading.Thread(target=work, args=[n]).start()
"""


def prepare(lab):
    """The server's VM exports a folder, and the client's has the transport."""
    lab.sh(SERVER, "set -e\n" + SERVE, timeout=ulptest.LIMIT)
    lab.sh(CLIENT, "modprobe rpcrdma")


def check(lab, options="", *cases, mounts=1):
    """(status, report) of a judge whose client is Linux's, mounted with these options besides.
    cases: ids; none: all.  mounts: how often it is tried."""
    words = ["rpcrdma", "check", "client", "--program", "nfs", "--port", PORT, "--tap"]
    words += [word for case in cases for word in ("--case", case)]
    judge = lab.start(SERVER, *words)
    judge.expect("listening at port %d" % PORT)
    tries = "for n in $(seq %d); do { %s; } && exit; done; exit 1" % (mounts, MOUNT % options)
    lab.sh(CLIENT, tries, timeout=mounts * ulptest.LIMIT)
    lab.start(CLIENT, "python3", "-c", WORK)
    status = judge.wait(3 * ulptest.LIMIT)
    return status, rpcrdmatest.Report(judge.output)


def steady(report, name):
    """The rules that the client breaks in this case, without what a new connection explains."""
    if BAD_HEADER.fullmatch(name) and ENDED in report.details[name]:
        return set()
    reconnected = name != FIRST and "# connected: " in report.details[name]
    return report.broken[name] - ({AT_RECONNECT} if reconnected else set())


def all_steady(report):
    """{case: such rules} of the cases in which it breaks one."""
    found = {name: steady(report, name) for name in report.broken if not VERIFIER.match(name)}
    return {name: rules for name, rules in found.items() if rules}


class Client(labtest.LabCase):
    """alpha has Linux's client, beta the judge; both use the adapter."""

    up_arguments = ulptest.IMAGE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("copy", rpcrdmatest.PROGRAM, SERVER + ":/usr/bin/rpcrdma")
        prepare(cls.lab)

    def test_linux__departs_here_only(self):
        """All cases"""
        status, report = check(self.lab)
        self.assertEqual((report.cases, report.complete()), (CASES, True), report.text)
        self.assertEqual([name for name in report.skipped if not RARE.match(name)], [], report.text)
        self.assertEqual(report.troubled, set(), report.text)
        self.assertEqual(status, 1, report.text)
        judged = {name: rules for name, rules in LINUX_BREAKS.items() if name not in report.skipped}
        self.assertEqual(all_steady(report), judged, report.text)


if __name__ == "__main__":
    labtest.main()
