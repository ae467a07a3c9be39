# SPDX-License-Identifier: GPL-2.0-or-later
"""rpcrdma over siw, another RDMA device: it judges there as it does over the adapter.
# timeout: 1800

Both VMs have siw alone.  siw does not read a first message that arrives before its queue pair has
the socket, and then there is no answer (see test_interop).  So a case that is not judged as it
should be is repeated, by itself, up to REPEATS times; each time is printed.  A rule that is really
broken is broken in each run.
"""
import types

import labtest
import rpcrdmatest
import test_rpcrdma_client as linux
import ulptest
from rdmatest import exports
from test_rpcrdma import LINUX_BREAKS
from ulptest import CLIENT, SERVER

REPEATS = 4
# Deciseconds after which Linux's client takes a connection for dead that has no answer: longer than
# any case is silent, and shorter than the judge waits for a Call.
TIMEO = ",timeo=150"
ECHO_PORT, JUDGE_PORT = 20050, 20051
# `rpcrdma call` ends with status 2 if its first connection fails, as one does of which siw loses a
# message; then it is tried again.
CALL = """
for n in $(seq %d); do
    rpcrdma call "$1" --count 0 --seconds 600
    status=$?
    [ $status = 2 ] || break
    sleep 1
done
exit $status
""" % (
    REPEATS + 1
)
# These need memory windows of type 2, which siw does not have.
NO_WINDOWS = {"private-invalidation", "private-invalidation-xid"}
# Linux's server ends the connection right behind the ERR_CHUNK for a Position beyond the message.
# Over the adapter the ERR_CHUNK arrives, over siw it mostly does not.
ENDS_AT_ONCE = {"position-beyond": {"RPC-36"}}
# A case of eleven connections, of which siw mostly loses one if the machine is busy.
MANY_CONNECTIONS = {"private-sizes": {"RPC-43"}}
# Of Linux's client over siw a sample is judged: of each kind of case one that any Call suits, and
# all in which it breaks a rule.  All others are judged over the adapter.  client-invalidation is
# not among them: siw ends the connection behind the judge's first Send with Invalidate.
SAMPLE = (
    *("client-first-credit", "client-calls", "client-result", "client-long-reply"),
    *("client-threshold", "client-no-private", "client-grant-one", "client-grant-change"),
    *("client-spare-long", "client-short", "client-version", "client-other-handle"),
    *("client-unknown-xid", "client-err-chunk", "client-reverse-null"),
    *linux.LINUX_BREAKS,
)
SERVE = (
    "mkdir -p /srv/export\nmount -t tmpfs -o size=16M tmpfs /srv/export\n"
    "head -c 40000 /dev/urandom > /srv/export/checked\n"
) + exports.nfs("/srv/export")


class Siw(labtest.LabCase):
    """alpha is the client, beta the server."""

    up_arguments = (*ulptest.IMAGE, "--driver", "siw")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for vm in (CLIENT, SERVER):
            cls.lab.run("copy", rpcrdmatest.PROGRAM, vm + ":/usr/bin/rpcrdma")

    def check(self, target, breaks, *more, unsure=types.MappingProxyType({})):
        """Runs all cases, and repeats those that are not judged as they should be.

        unsure: {case: rules that it may break besides, or not}."""

        def is_right(report, name):
            expected = (breaks.get(name), unsure.get(name, breaks.get(name)))
            return report.broken.get(name) in expected and name not in report.troubled

        _, report = rpcrdmatest.check_server(self.lab, target, *more)
        self.assertGreaterEqual(report.cases, 50, report.text)
        names = report.troubled | report.broken.keys() | breaks.keys()
        for name in sorted(name for name in names if not is_right(report, name)):
            for _ in range(REPEATS):
                print(
                    "# repeated: %s, %s" % (name, sorted(report.broken.get(name, {"no verdict"})))
                )
                _, again = rpcrdmatest.check_server(self.lab, target, "--case", name, *more)
                if is_right(again, name):
                    report.skipped |= again.skipped & {name}
                    break
            else:
                self.fail(again.text)
        return report

    def test_our_server__keeps_all_rules(self):
        """rpcrdma check server, and rpcrdma serve"""
        server = self.lab.start(SERVER, "rpcrdma", "serve", "--port", ECHO_PORT)
        server.expect("listening at port %d" % ECHO_PORT)
        report = self.check("%s:%d" % (ulptest.ADDRESS, ECHO_PORT), {}, unsure=MANY_CONNECTIONS)
        self.assertEqual(report.skipped, NO_WINDOWS, report.text)
        server.stop()

    def test_server_of_linux__breaks_the_same_rules(self):
        """As over the adapter, but for what needs memory windows"""
        self.lab.sh(SERVER, "set -e\n" + SERVE, timeout=ulptest.LIMIT)
        breaks = {name: LINUX_BREAKS[name] for name in LINUX_BREAKS.keys() - NO_WINDOWS}
        words = ("--program", "nfs", "--file", "checked")
        # The judge waits for the end of the server's grace period, if siw brings it an answer.
        for _ in range(REPEATS):
            _, ready = rpcrdmatest.check_server(
                self.lab, ulptest.ADDRESS, "--case", "result", *words
            )
            if ready.passed:
                break
        unsure = {**ENDS_AT_ONCE, **MANY_CONNECTIONS}
        report = self.check(ulptest.ADDRESS, breaks, *words, unsure=unsure)
        self.assertEqual(report.skipped, NO_WINDOWS | {"results"}, report.text)

    def test_our_client__keeps_all_rules(self):
        """rpcrdma check client, and rpcrdma call"""
        words = ("rpcrdma", "check", "client", "--port", JUDGE_PORT, "--tap")
        judge = self.lab.start(SERVER, *words)
        judge.expect("listening at port %d" % JUDGE_PORT)
        target = "%s:%d" % (ulptest.ADDRESS, JUDGE_PORT)
        client = self.lab.start(CLIENT, "sh", "-c", CALL, "call", target)
        status = judge.wait(3 * ulptest.LIMIT)
        client.stop()
        report = rpcrdmatest.Report(judge.output)
        found = (status, report.broken, report.troubled)
        self.assertEqual(found, (0, {}, set()), report.text + client.output)
        # A client that siw leaves without its first Reply calls again only when a case is over.
        self.assertGreater(len(report.passed), linux.CASES * 3 // 4, report.text)


class LinuxClient(labtest.LabCase):
    """alpha has Linux's client, beta the judge, in VMs of their own: the mount is dead at the
    end."""

    up_arguments = Siw.up_arguments

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run("copy", rpcrdmatest.PROGRAM, SERVER + ":/usr/bin/rpcrdma")
        linux.prepare(cls.lab)

    def test_client_of_linux__breaks_the_same_rules(self):
        """As over the adapter, in a sample, if siw brings it a first Reply"""
        status, report = linux.check(self.lab, TIMEO, *SAMPLE, mounts=REPEATS)
        self.assertEqual((status, report.cases, report.complete()), (1, len(SAMPLE), True))
        unjudged = report.skipped | report.troubled
        print("# not judged: %s" % (" ".join(sorted(unjudged)) or "none"))
        judged = {name: x for name, x in linux.LINUX_BREAKS.items() if name not in unjudged}
        self.assertEqual(linux.all_steady(report), judged, report.text)
        self.assertGreater(len(SAMPLE) - len(unjudged), len(SAMPLE) * 3 // 4, report.text)


if __name__ == "__main__":
    labtest.main()
