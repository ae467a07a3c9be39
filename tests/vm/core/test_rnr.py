#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that rely on InfiniBand's "receiver not ready" and its retries.

beta's adapter waits for a receive on all connections (rnr=wait), alpha's by default only on those
that ibv_modify_qp alone made.
# timeout: 900
# suite: full
"""
import re

import labtest
import programs

LIMIT = 120  # seconds; other work may share the machine
LOOPS = 5
TRIES, CRASHED = 3, 128 + 11
DEVICE = "staghorn0"
FIO = ("fio", "--name=j", "--thread", "--ioengine=rdma", "--bs=4k", "--size=4M")
# fio's client sends regardless of what the server has posted, here a quarter of its own depth.
FIO_SERVER = ("--rw=read", "--iodepth=4")
FIO_CLIENT = ("--rw=write", "--verb=send", "--iodepth=16")
FIO_SENDS = (4 << 20) // 4096
SEND_BW = ("ib_send_bw", "-F", "-d", DEVICE, "-n", "100")
SEND_LAT = ("ib_send_lat", "-F", "-d", DEVICE, "-n", "100")
# perftest with a shared receive queue (-q 2 --use-srq) proves nothing.  On iWARP it credits the
# queue pair for which a receive was once posted, not the one that used it; a queue pair that gets
# more credits than it has sent messages waits for ever.
SHARED_SENDS = 2 * 64  # shared_queue.c


class Rnr(labtest.LabCase):
    up_arguments = ("--device-prop", "beta:rnr=wait")
    driver_check = "strict"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            for vm in programs.ADDRESS:
                programs.install(cls.lab, vm, "fio", "shared_queue")
        except BaseException:
            cls.lab.down()
            raise
        cls.port = 21000

    def counts(self, vm):
        """Counts of messages that found no receive, Terminates sent, Sends received."""
        text = self.lab.sh(vm, "rdma statistic show link %s/1" % DEVICE)
        names = ("rx_no_receive", "tx_terminates", "rx_sends")
        return [int(re.search(r"\b%s (\d+)" % name, text)[1]) for name in names]

    def both(self, server, words, more_server, more_client, ready, limit=LIMIT):
        """Runs both sides; returns their statuses and outputs, and how the server's counts grew.

        `ready` is a shell condition: the server listens.  Each side has `limit` seconds."""
        client = "alpha" if server == "beta" else "beta"
        before = self.counts(server)
        waiting = self.lab.start(server, "timeout", "-k1", str(limit), *words, *more_server)
        self.lab.sh(server, "until %s; do sleep 0.1; done" % ready, timeout=LIMIT)
        started = self.lab.start(client, "timeout", "-k1", str(limit), *words, *more_client)
        sides = [(side.wait(LIMIT + 30), side.output) for side in (started, waiting)]
        return sides, [b - a for a, b in zip(before, self.counts(server))]

    def fio(self, server, limit=LIMIT):
        type(self).port += 1
        port = "--port=%d" % self.port
        return self.both(
            server,
            (*FIO, port),
            FIO_SERVER,
            (*FIO_CLIENT, "--hostname=" + programs.ADDRESS[server]),
            "rdma resource show cm_id | grep LISTEN | grep -q :%d" % self.port,
            limit,
        )

    def perftest(self, server, *words):
        """Runs both sides, again if the client was refused, by which it crashes.

        perftest's server listens twice; its client may come in between (tools/bench/rdma.py)."""
        for _ in range(TRIES):
            sides, grown = self.perftest_once(server, *words)
            status, output = sides[0]
            if status != CRASHED or "RDMA_CM_EVENT_REJECTED" not in output:
                break
        return sides, grown

    def perftest_once(self, server, *words):
        type(self).port += 1
        ready = (
            "ss -Htln sport = :%d | grep -q . || rdma resource show cm_id | grep LISTEN | "
            "grep -q :%d" % (self.port, self.port)
        )
        address = (programs.ADDRESS[server],)
        return self.both(server, (*words, "-p", str(self.port)), (), address, ready)

    def check_well(self, sides):
        for status, output in sides:
            self.assertEqual(status, 0, sides)
            self.assertNotIn("completion status", output)

    def test_fio_send(self):
        """fio's send engine, whose client is faster than the server's receives"""
        sides, (missing, terminates, sends) = self.fio("beta")
        self.check_well(sides)
        self.assertRegex(sides[1][1], r"READ: .*io=4096KiB")
        self.assertGreater(missing, 0)
        self.assertEqual(terminates, 0)
        self.assertGreaterEqual(sends, FIO_SENDS)

    def test_fio_send__terminated(self):
        """The same with an adapter that does not wait: the connection ends, and the counter says so

        fio reports the failed completion, and then waits for ever."""
        sides, (missing, terminates, sends) = self.fio("alpha", 15)
        self.assertIn("cq completion status", sides[0][1])
        self.assertEqual((missing, terminates), (1, 1))
        self.assertLess(sends, FIO_SENDS)

    def shared_queue(self, server, way):
        type(self).port += 1
        ready = (
            "ss -Htln sport = :%d | grep -q . || rdma resource show cm_id | grep LISTEN | "
            "grep -q :%d" % (self.port, self.port)
        )
        words = ("shared_queue", way, str(self.port))
        return self.both(server, words, (), (programs.ADDRESS[server],), ready)

    def test_shared_queue(self):
        """Connections that share a receive queue, which holds one receive at most

        Those of ibv_modify_qp alone wait on each adapter, others where the property says so."""
        for server, way in (("beta", "cm"), ("beta", "qp"), ("alpha", "qp")):
            with self.subTest(server=server, way=way):
                sides, (missing, terminates, sends) = self.shared_queue(server, way)
                self.check_well(sides)
                self.assertGreater(missing, 0)
                self.assertEqual(terminates, 0)
                self.assertGreaterEqual(sends, SHARED_SENDS)

    def test_loop(self):
        """Clients that send as soon as they are connected, again and again"""
        for _ in range(LOOPS):
            for words in (SEND_LAT, SEND_BW):
                with self.subTest(words=words):
                    sides, (_, terminates, _) = self.perftest("beta", *words, "-R")
                    self.check_well(sides)
                    self.assertEqual(terminates, 0)


if __name__ == "__main__":
    labtest.main()
