#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the driver shows of itself: tracepoints, its health reporter, details of resources.
# timeout: 400
# suite: full

docs/manual/driver.md, "The Linux driver", describes all of it.  The last case is trace --guest: the
guests' tracepoints lie between what the adapters do.
"""
import json
import os
import re
import struct
import tempfile

import labtest
import lifetest
import programs

COUNT = 3
INSTANCE = "/sys/kernel/tracing/instances/test"
RECORD = r"""
set -e
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
rmdir %(at)s 2>/dev/null || :
mkdir %(at)s
echo 8192 > %(at)s/buffer_size_kb
echo 1 > %(at)s/events/staghorn/enable
"""
# Words of struct sgh_raw_qp (docs/manual/driver.md), by their numbers.
QPN, STATE, IB_STATE, SQ_ENTRIES, RQ_ENTRIES, CONN, CONN_STATE = 1, 2, 3, 8, 12, 19, 20
RTS, IB_RTS, ESTABLISHED = 1, 3, 4


class Tracepoints(lifetest.LifeCase):
    def setUp(self):
        self.device = self.lab.sh(
            "alpha", "basename $(readlink /sys/class/infiniband/staghorn0/device)"
        ).strip()

    # -- tracepoints

    def recorded(self, action):
        """Fields of each of the driver's events in alpha during the action: [(name, text)]."""
        where = {"at": INSTANCE}
        self.lab.sh("alpha", RECORD % where)
        action()
        text = self.lab.sh("alpha", "cat %(at)s/trace; rmdir %(at)s" % where)
        return re.findall(r"\d+\.\d{6}: (sgh_\w+): %s: (.*)" % re.escape(self.device), text)

    def rping(self):
        server = self.lab.start("beta", "rping", "-s", "-C", COUNT)
        programs.wait_listening(self.lab, "beta", server)
        self.lab.sh("alpha", "rping -c -a beta -C %d" % COUNT)
        self.assertEqual(server.wait(), 0, server.output)

    def test_events__of_an_rping(self):
        """Commands with their answers, the connection's states and events, in their order."""
        found = self.recorded(self.rping)
        begun, ended = {}, []
        for name, text in found:
            if name == "sgh_command_begin":
                opcode, index = re.fullmatch(r"(\w+) index (\d+)", text).groups()
                self.assertNotIn(index, begun)
                begun[index] = opcode
            if name == "sgh_command_end":
                form = r"(\w+) index (\d+) id (0x[0-9a-f]+) status (\d+), (\d+) ns"
                opcode, index, number, status, ns = re.fullmatch(form, text).groups()
                self.assertEqual(begun[index], opcode)
                self.assertEqual(status, "0", text)
                self.assertLess(0, int(ns))
                ended.append((opcode, int(number, 16)))
        numbers = dict(ended)
        # What made the queue pair tells its number, which the later commands name.
        qpn, conn = numbers["CREATE_QP"], numbers["CONNECT"]
        self.assertEqual(numbers["DESTROY_QP"], qpn)
        self.assertEqual(numbers["CM_DATA"], conn)
        self.assertEqual(numbers["DEREG_MR"] in [n for o, n in ended if o == "REG_MR"], True)
        texts = [text for name, text in found if name == "sgh_conn_state"]
        self.assertEqual(texts[0], "conn 0 qp 0: NEW -> CONNECTING")
        self.assertIn("conn %d qp %d: CONNECTING -> ESTABLISHED" % (conn, qpn), texts)
        self.assertIn("conn %d qp %d: ESTABLISHED -> GONE" % (conn, qpn), texts)
        events = [text for name, text in found if name == "sgh_async_event"]
        self.assertRegex(events[0], r"CM_REPLY id 0x%x conn %d aux \d+ status 0" % (qpn, conn))
        self.assertRegex(events[-1], r"CM_CLOSED id 0x[0-9a-f]+ conn %d " % conn)
        upcalls = [text.split()[2] for name, text in found if name == "sgh_upcall"]
        self.assertEqual((upcalls[0], upcalls[-1]), ("CONNECT_REPLY", "CLOSE"))
        names = [name for name, _ in found]
        self.assertLess(names.index("sgh_async_event"), names.index("sgh_upcall"))
        states = [text for name, text in found if name == "sgh_qp_state"]
        self.assertTrue(states and all(each.startswith("qp %d: -> " % qpn) for each in states))

    def test_events__kernel_and_pages(self):
        """Doorbells of a consumer in the kernel, and faults of on-demand regions."""
        programs.install(self.lab, "beta", "mpe_server")
        programs.install(self.lab, "alpha", "verbs_memory")
        server = self.lab.start("beta", "mpe_server", "10.77.0.2")
        server.expect("ready")
        module = os.path.realpath(programs.MODULES + "/kmpe.ko")
        self.lab.run("copy", module, "alpha:/tmp/kmpe.ko")

        def action():
            self.lab.sh("alpha", "insmod /tmp/kmpe.ko server=10.77.0.2 && rmmod kmpe")
            words = "verbs_memory %s 'odp: a region'" % programs.ADDRESS["alpha"]
            self.assertIn("\nok 1 - ", "\n" + self.lab.sh("alpha", words, timeout=200))

        found = self.recorded(action)
        server.stop()
        bells = [text for name, text in found if name == "sgh_doorbell"]
        form = r"(SQ|RQ|SRQ|CQ_ARM) number 0x[0-9a-f]+ index \d+"
        for text in bells:
            self.assertRegex(text, "^%s$" % form)
        self.assertEqual({text.split()[0] for text in bells}, {"SQ", "SRQ"})
        faults = [text for name, text in found if name == "sgh_page_fault"]
        ends = [text for name, text in found if name == "sgh_page_fault_end"]
        self.assertTrue(faults)
        for text in faults:
            self.assertRegex(text, r"^stag 0x[0-9a-f]+ pages \d+ to \d+, (read|write)$")
        for text in ends:
            self.assertRegex(text, r"^stag 0x[0-9a-f]+ mapped up to page \d+, \d+ left: -?\d+$")
        done = [text for text in ends if text.endswith(", 0 left: 0")]
        self.assertEqual({text.split()[1] for text in done}, {text.split()[1] for text in faults})

    # -- devlink

    def devlink(self, *words, status=0):
        return self.lab.sh(
            "alpha", "devlink health %s 2>&1" % " ".join(words).replace("DEV", self.device), status
        )

    def reporter(self):
        """The reporter's row in `devlink health show`."""
        found = json.loads(self.devlink("show pci/DEV reporter fatal -jp"))["health"]
        ((one,),) = found.values()
        self.assertEqual(one["reporter"], "fatal")
        return one

    def test_health__diagnose_and_dump(self):
        """Of an adapter that is well."""
        one = self.reporter()
        self.assertEqual((one["state"], one["auto_recover"]), ("healthy", True))
        found = json.loads(self.devlink("diagnose pci/DEV reporter fatal -jp"))
        self.assertEqual((found["state"], found["status"] & 3), ("up", 1), found)
        self.assertEqual(found["commands"], found["commands_answered"])
        text = self.devlink("dump show pci/DEV reporter fatal -jp")
        self.assertIn('"state": "up"', text)
        self.assertIn('"completion_event_queues"', text)
        self.devlink("dump clear pci/DEV reporter fatal")

    def lose(self, server):
        """The adapter of alpha is lost under traffic, and its users are told."""
        watch = self.lab.start("alpha", "ibv_asyncwatch", "-d", "staghorn0")
        watch.expect("async event FD", 60)
        words = ("rping", "-c", "-a", lifetest.BETA, "-S", "4096", "-C", lifetest.FOREVER)
        client = self.lab.start("alpha", *words)
        server.expect("server ping data", 60)
        self.devlink("test pci/DEV reporter fatal")
        watch.expect("IBV_EVENT_DEVICE_FATAL", lifetest.TOLD)
        return watch, client

    def serving(self):
        server = self.lab.start("beta", "rping", "-s", "-a", lifetest.BETA, "-v", "-S", "4096")
        programs.wait_listening(self.lab, "beta", server)
        return server

    def test_health__recovers_by_itself(self):
        """A loss is counted, dumped and recovered from."""
        before, recoveries = self.reporter(), self.recoveries("alpha")
        server = self.serving()
        watch, client = self.lose(server)
        self.hears(client)
        self.hears(server)
        self.recovered("alpha", recoveries)
        watch.stop()
        self.works()
        one = self.reporter()
        self.assertEqual(one["state"], "healthy")
        for each in ("error", "recover"):
            self.assertEqual(one[each], before[each] + 1)
        text = self.devlink("dump show pci/DEV reporter fatal -jp")
        self.assertRegex(text, r'"state": "lost"')
        self.assertIn('"why": "a test of its recovery"', text)
        self.assertRegex(text, r'"queue_pairs": \[ *\{\s*"qpn": \d+')
        self.devlink("dump clear pci/DEV reporter fatal")

    def test_health__recovered_by_hand(self):
        """Without auto_recover the adapter stays lost until the administrator recovers it."""
        recoveries = self.recoveries("alpha")
        self.devlink("set pci/DEV reporter fatal auto_recover false")
        try:
            server = self.serving()
            watch, client = self.lose(server)
            self.hears(server)
            script = "devlink health show pci/%s reporter fatal | grep -q 'state error'"
            self.wait("alpha", script % self.device)
            found = json.loads(self.devlink("diagnose pci/DEV reporter fatal -jp"))
            self.assertEqual(found["state"], "lost", found)
            self.assertEqual(found["last_loss"]["why"], "a test of its recovery")
            self.assertIn("lost already", self.devlink("test pci/DEV reporter fatal", status=1))
            self.assertEqual(self.recoveries("alpha"), recoveries)
            watch.stop()
            # The process sleeps for completions until its device is removed.
            self.assertIsNone(client.process.poll(), client.output)
        finally:
            self.devlink("set pci/DEV reporter fatal auto_recover true")
            self.devlink("recover pci/DEV reporter fatal")
            self.devlink("dump clear pci/DEV reporter fatal")
        self.hears(client)
        self.assertEqual(self.recoveries("alpha"), recoveries + 1)
        self.assertEqual(self.reporter()["state"], "healthy")
        self.works()

    # -- rdma resource

    def test_resources__details(self):
        """-dd and -r tell state, depths and connection of rping's objects."""
        server = self.serving()
        words = ("rping", "-c", "-a", lifetest.BETA, "-S", "4096", "-C", lifetest.FOREVER)
        client = self.lab.start("alpha", *words)
        server.expect("server ping data", 60)
        (qp,) = json.loads(self.lab.sh("alpha", "rdma -jdd resource show qp"))
        expected = {"drv_state": "RTS", "drv_conn_state": "ESTABLISHED", "drv_rendezvous": "none"}
        self.assertEqual({key: qp.get(key) for key in expected}, expected, qp)
        self.assertRegex(qp["drv_peer"], r"^10\.77\.0\.2:\d+$")
        self.assertGreater(qp["drv_sq_entries"], 0)
        (cq, *_) = json.loads(self.lab.sh("alpha", "rdma -jdd resource show cq"))
        self.assertGreaterEqual(cq["drv_entries"], 16)
        mrs = json.loads(self.lab.sh("alpha", "rdma -jdd resource show mr"))
        self.assertTrue(all(mr["drv_page_size"] >= 4096 for mr in mrs), mrs)
        ids = json.loads(self.lab.sh("alpha", "rdma -jdd resource show cm_id"))
        (one,) = [each for each in ids if each.get("drv_conn")]
        self.assertEqual((one["drv_qpn"], one["drv_conn"]), (qp["lqpn"], qp["drv_conn"]))
        listeners = json.loads(self.lab.sh("beta", "rdma -jdd resource show cm_id"))
        self.assertTrue(any(each.get("drv_listener") for each in listeners), listeners)
        raw = self.raw("qp")
        self.assertEqual(raw[0], 4 * len(raw))
        wanted = {QPN: qp["lqpn"], STATE: RTS, IB_STATE: IB_RTS, CONN_STATE: ESTABLISHED}
        wanted.update({SQ_ENTRIES: qp["drv_sq_entries"], RQ_ENTRIES: qp["drv_rq_entries"]})
        wanted[CONN] = qp["drv_conn"]
        self.assertEqual({word: raw[word] for word in wanted}, wanted)
        self.assertEqual(self.raw("cq")[0], 32)
        self.assertEqual(self.raw("mr")[0], 56)
        self.lab.sh("alpha", "pkill rping")
        self.ends(client, server)

    def raw(self, kind):
        """The words of the first object's raw dump."""
        found = json.loads(self.lab.sh("alpha", "rdma -jr resource show " + kind))
        data = bytes(found[0]["data"])
        return struct.unpack("<%dI" % (len(data) // 4), data)

    # -- trace --guest

    def test_trace__guests_between_the_adapters(self):
        """A command of the driver lies around what the adapter does for it, on both VMs."""
        server = self.lab.start("beta", "rping", "-s", "-C", COUNT)
        programs.wait_listening(self.lab, "beta", server)
        with tempfile.TemporaryDirectory() as folder:
            words = ("--guest", "--html", folder + "/page.html", "--json", "--", "rping")
            done = self.lab.run("trace", "alpha", "beta", *words, "-c", "-a", "beta", "-C", COUNT)
            page = open(folder + "/page.html", encoding="utf-8").read()
        self.assertEqual(server.wait(), 0, server.output)
        found = json.loads(done.out)
        self.assertEqual((found["status"], found["notes"]), (0, []))
        self.assertIn("alpha, guest", page)
        for vm in ("alpha", "beta"):
            with self.subTest(vm=vm):
                clock = found["clocks"][vm]
                print("# %s: %s" % (vm, clock))
                self.assertLessEqual({"staghorn", "rdma_cma"}, set(clock["systems"]))
                self.assertLess(clock["bound_us"], 50000)
                self.assertGreater(clock["limits"], 0)
                self.check_order(vm, [each for each in found["events"] if each["vm"] == vm])
        names = {each["name"] for each in found["events"] if each["kind"] == "guest"}
        self.assertIn("cm_event_handler", names)
        self.assertEqual(self.lab.sh("alpha", "ls /sys/kernel/tracing/instances").split(), [])

    def check_order(self, vm, events):
        """Begin, doorbell, answer, end: of CREATE_QP, which is there once."""

        def place(kind, pattern):
            found = [
                n
                for n, e in enumerate(events)
                if e["kind"] == kind and re.search(pattern, e["text"])
            ]
            self.assertEqual(len(found), 1, (vm, kind, pattern))
            return found[0]

        begin = place("guest", r"^sgh_command_begin: \S+: CREATE_QP ")
        index = int(re.search(r"index (\d+)", events[begin]["text"])[1])
        bell = place("register", r"^ADMIN_DB becomes 0x%x\b" % index)
        answer = place("command", r"admin: CREATE_QP: status 0")
        end = place("guest", r"^sgh_command_end: \S+: CREATE_QP ")
        self.assertEqual(sorted([begin, bell, answer, end]), [begin, bell, answer, end])


if __name__ == "__main__":
    labtest.main()
