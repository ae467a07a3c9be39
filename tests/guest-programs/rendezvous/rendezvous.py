#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the rendezvous that two programs cannot arrange: this one has both queue pairs.

The queue pairs are on one adapter, and connect by ibv_modify_qp alone.  The program runs in a VM
with python3-pyverbs: rendezvous.py [CASE]...  Without CASE it runs all cases but `off`, which needs
the driver's rendezvous_port=0.  Each case prints `ok NAME`, or `not ok NAME` and why; the exit
status is 1 if a case failed."""
import errno
import os
import subprocess
import sys
import time
import traceback

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

DEVICE = os.environ.get("RDMA_DEVICE", "staghorn0")
SIZE = 64
INIT = e.IBV_QP_STATE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS
RTR = (
    e.IBV_QP_STATE
    | e.IBV_QP_AV
    | e.IBV_QP_PATH_MTU
    | e.IBV_QP_DEST_QPN
    | e.IBV_QP_RQ_PSN
    | e.IBV_QP_MAX_DEST_RD_ATOMIC
    | e.IBV_QP_MIN_RNR_TIMER
)
RTS = (
    e.IBV_QP_STATE
    | e.IBV_QP_TIMEOUT
    | e.IBV_QP_RETRY_CNT
    | e.IBV_QP_RNR_RETRY
    | e.IBV_QP_SQ_PSN
    | e.IBV_QP_MAX_QP_RD_ATOMIC
)


class End:
    """A queue pair with its own completion queue and memory."""

    def __init__(self, gid_index=1):
        self.ctx = Context(name=DEVICE)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 32)
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        self.mr = MR(self.pd, SIZE, access)
        cap = QPCap(max_send_wr=8, max_recv_wr=8)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        self.qp = QP(self.pd, init)
        self.gid_index = gid_index
        self.gid = self.ctx.query_gid(1, gid_index)
        self.psn = 0x1234 + self.qp.qp_num
        self.timeout = 14
        self.retries = 7
        self.rnr_retries = 7
        self.rnr_timer = 12
        self.path_mtu = e.IBV_MTU_1024
        self.path = {}  # of AHAttr
        self.route = {}  # of GlobalRoute

    @property
    def number(self):
        return self.qp.qp_num

    def init(self):
        attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
        self.qp.modify(attr, INIT)

    def rtr_attr(self, number, gid, psn):
        attr = QPAttr(qp_state=e.IBV_QPS_RTR, port_num=1)
        attr.path_mtu = self.path_mtu
        attr.dest_qp_num = number
        attr.rq_psn = psn
        attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer = self.rnr_timer
        route = GlobalRoute(dgid=gid, sgid_index=self.gid_index, **self.route)
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, **self.path)
        return attr

    def rtr(self, peer, number=None, gid=None, psn=None):
        number = peer.number if number is None else number
        psn = peer.psn if psn is None else psn
        self.qp.modify(self.rtr_attr(number, gid or peer.gid, psn), RTR)

    def rts(self):
        attr = QPAttr(qp_state=e.IBV_QPS_RTS)
        attr.timeout = self.timeout
        attr.retry_cnt = self.retries
        attr.rnr_retry = self.rnr_retries
        attr.sq_psn = self.psn
        attr.max_rd_atomic = 1
        self.qp.modify(attr, RTS)

    def connect(self, peer, **keywords):
        self.init()
        self.rtr(peer, **keywords)
        self.rts()

    def to(self, state):
        self.qp.modify(QPAttr(qp_state=state), e.IBV_QP_STATE)

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state

    def recv(self, wr_id):
        sge = SGE(self.mr.buf, SIZE, self.mr.lkey)
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[sge]))

    def send(self, wr_id, text="x"):
        self.mr.write(text, len(text))
        sge = SGE(self.mr.buf, len(text), self.mr.lkey)
        self.qp.post_send(SendWR(wr_id=wr_id, num_sge=1, sg=[sge], opcode=e.IBV_WR_SEND))

    def poll(self, limit=30):
        """The next completion: (wr_id, status)."""
        deadline = time.monotonic() + limit
        while True:
            count, wcs = self.cq.poll()
            if count:
                return wcs[0].wr_id, wcs[0].status
            assert time.monotonic() < deadline, "no completion in %d s" % limit
            time.sleep(0.001)

    def silent(self, seconds):
        """Checks that nothing completes for so long."""
        time.sleep(seconds)
        count, wcs = self.cq.poll()
        assert not count, "wr_id %d, status %d" % (wcs[0].wr_id, wcs[0].status)

    def close(self):
        self.ctx.close()


def equal(have, want):
    assert have == want, "is %r, not %r" % (have, want)


def pair(swapped, **keywords):
    """Two ends; the first one connects or, if swapped, waits.  Their numbers decide that."""
    low, high = sorted((End(**keywords), End(**keywords)), key=lambda end: end.number)
    return (high, low) if swapped else (low, high)


def talk(one, other):
    """A message in each direction."""
    for a, b in ((one, other), (other, one)):
        b.recv(100)
        a.send(200, "hello")
        equal(a.poll(), (200, e.IBV_WC_SUCCESS))
        equal(b.poll(), (100, e.IBV_WC_SUCCESS))
        equal(b.mr.read(5, 0), b"hello")


def refused(action, *arguments, **keywords):
    try:
        action(*arguments, **keywords)
    except PyverbsRDMAError:
        return
    raise AssertionError("was not refused")


def each_role(body):
    for swapped in (False, True):
        one, other = pair(swapped)
        body(one, other)
        one.close()
        other.close()


def case_states():
    one, other = pair(False)
    equal(one.state(), e.IBV_QPS_INIT)  # as all iWARP adapters report for a new one
    one.to(e.IBV_QPS_RESET)
    equal(one.state(), e.IBV_QPS_RESET)
    one.init()
    equal(one.state(), e.IBV_QPS_INIT)
    one.rtr(other)
    equal(one.state(), e.IBV_QPS_RTR)
    other.init()
    other.rtr(one)
    time.sleep(0.5)
    equal(one.state(), e.IBV_QPS_RTR)
    one.rts()
    equal(one.state(), e.IBV_QPS_RTS)
    other.rts()
    talk(one, other)
    attr = one.qp.query(e.IBV_QP_STATE)[0]
    equal(attr.dest_qp_num, other.number)
    equal(attr.rq_psn, other.psn)
    equal(attr.sq_psn, one.psn)
    equal((attr.timeout, attr.retry_cnt, attr.rnr_retry), (14, 7, 7))
    one.to(e.IBV_QPS_ERR)
    equal(one.state(), e.IBV_QPS_ERR)
    one.to(e.IBV_QPS_RESET)
    equal(one.state(), e.IBV_QPS_RESET)


def case_masks():
    """Transitions that ib_modify_qp_is_ok() refuses, and destinations that do not exist."""
    one, other = pair(False)
    refused(one.rtr, other)  # not in INIT
    one.init()
    refused(one.rts)
    attr = one.rtr_attr(other.number, other.gid, 1)
    for bit in (e.IBV_QP_AV, e.IBV_QP_DEST_QPN, e.IBV_QP_RQ_PSN, e.IBV_QP_MIN_RNR_TIMER):
        refused(one.qp.modify, attr, RTR & ~bit)
    refused(one.qp.modify, attr, RTR | e.IBV_QP_TIMEOUT)
    refused(one.rtr, one)  # a connection to itself
    for gid in (
        "0000:0000:0000:0000:0000:0000:0000:0000",
        "ff02:0000:0000:0000:0000:0000:0000:0001",
    ):
        refused(one.rtr, other, gid=GID(gid))
    bad = one.rtr_attr(other.number, other.gid, 1)
    bad.ah_attr = AHAttr(port_num=1, is_global=0, dlid=1)
    refused(one.qp.modify, bad, RTR)
    bad = one.rtr_attr(other.number, other.gid, 1)
    bad.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=other.gid, sgid_index=16))
    refused(one.qp.modify, bad, RTR)
    one.rtr(other)
    refused(one.init)
    other.connect(one)
    one.rts()
    refused(one.rtr, other)
    talk(one, other)


def case_early():
    """One end has posted work and is in RTR long before the other; it waits, as on InfiniBand."""

    def body(one, other):
        one.init()
        one.recv(1)
        one.rtr(other)
        time.sleep(1.5)
        other.connect(one)
        other.send(2)
        equal(other.poll(), (2, e.IBV_WC_SUCCESS))
        equal(one.poll(), (1, e.IBV_WC_SUCCESS))
        one.rts()
        talk(one, other)

    each_role(body)


def case_posted_before():
    """Sends posted in RTS before the connection is established are sent then, in order."""

    def body(one, other):
        other.init()
        for i in range(4):
            other.recv(i)
        one.connect(other)
        for i in range(4):
            one.send(10 + i)
        one.silent(0.3)
        other.rtr(one)
        for i in range(4):
            equal(one.poll(), (10 + i, e.IBV_WC_SUCCESS))
            equal(other.poll(), (i, e.IBV_WC_SUCCESS))

    each_role(body)


def case_idle_waits():
    """Without a Send no retries are counted: 8 s are longer than the shortest limit."""

    def body(one, other):
        one.timeout, one.retries = 1, 0
        one.connect(other)
        time.sleep(8)
        equal(one.state(), e.IBV_QPS_RTS)
        other.connect(one)
        talk(one, other)

    each_role(body)


def case_absent():
    """A peer never comes: after all retries a Send ends with RETRY_EXC, the rest is flushed."""

    def body(one, other):
        for timeout, retries, low, high in ((1, 0, 3.9, 15), (20, 1, 8.5, 25)):
            one.timeout, one.retries = timeout, retries
            one.connect(other)
            one.recv(1)
            one.send(2)
            one.send(3)
            start = time.monotonic()
            equal(one.poll(60), (2, e.IBV_WC_RETRY_EXC_ERR))
            took = time.monotonic() - start
            assert low <= took <= high, "%.1f s" % took
            equal(one.poll(), (3, e.IBV_WC_WR_FLUSH_ERR))
            equal(one.poll(), (1, e.IBV_WC_WR_FLUSH_ERR))
            equal(one.state(), e.IBV_QPS_ERR)
            one.to(e.IBV_QPS_RESET)
        one.timeout, one.retries = 14, 7
        one.connect(other)
        other.connect(one)
        talk(one, other)

    each_role(body)


def case_unknown_peer():
    """An end that expects a third one refuses a request of another; it accepts the third."""

    def body(one, other):
        third = End()
        other.recv(1)
        other.connect(third)
        one.timeout, one.retries = 1, 0
        one.connect(other)
        one.send(2)
        equal(one.poll(60), (2, e.IBV_WC_RETRY_EXC_ERR))
        other.silent(0.1)
        third.connect(other)
        third.send(3)
        equal(third.poll(), (3, e.IBV_WC_SUCCESS))
        equal(other.poll(), (1, e.IBV_WC_SUCCESS))
        third.close()

    each_role(body)


def case_wrong_number():
    """The peer's queue pair does not exist; then, the first PSNs do not match."""

    def body(one, other):
        one.timeout = 1
        one.connect(other, number=0xABCDEF)
        one.send(1)
        equal(one.poll(60), (1, e.IBV_WC_RETRY_EXC_ERR))
        one.to(e.IBV_QPS_RESET)
        one.connect(other)
        other.connect(one, psn=77)
        one.send(2)
        equal(one.poll(60), (2, e.IBV_WC_RETRY_EXC_ERR))

    each_role(body)


def case_restart():
    """Both ends are reset, in some rounds through ERR, and connected again, ten times."""
    one, other = pair(False)
    for turn in range(10):
        one.psn = other.psn = 1000 + turn
        first, second = (one, other) if turn % 2 else (other, one)
        first.connect(second)
        second.connect(first)
        talk(one, other)
        first.recv(5)
        first.to(e.IBV_QPS_RESET)
        if turn % 3 == 0:
            second.to(e.IBV_QPS_ERR)
        second.to(e.IBV_QPS_RESET)
        equal(one.state(), e.IBV_QPS_RESET)


def case_peer_leaves():
    """The receives of the remaining end are not flushed; its first Send fails."""

    def body(one, other):
        one.connect(other)
        other.connect(one)
        talk(one, other)
        one.recv(1)
        other.close()
        one.silent(1)
        equal(one.state(), e.IBV_QPS_RTS)
        one.send(2)
        equal(one.poll(), (2, e.IBV_WC_RETRY_EXC_ERR))
        equal(one.poll(), (1, e.IBV_WC_WR_FLUSH_ERR))
        equal(one.state(), e.IBV_QPS_ERR)

    each_role(body)


def gids():
    found = {}
    with Context(name=DEVICE) as ctx:
        for index in range(ctx.query_port(1).gid_tbl_len):
            gid = ctx.query_gid(1, index).gid
            if gid.replace("0", "").replace(":", ""):
                found[index] = gid
    return found


def case_gids():
    """Each GID of the port can be used for a connection within the adapter."""
    for index, gid in gids().items():
        print("# entry %d: %s" % (index, gid), flush=True)
        one, other = pair(index % 2, gid_index=index)
        one.connect(other)
        other.connect(one)
        talk(one, other)
        one.close()
        other.close()


PATHS = (  # AHAttr, GlobalRoute, (path MTU, RNR timer, RNR retries, retries)
    (
        {"sl": 5, "dlid": 0x1235, "src_path_bits": 3, "static_rate": 7},
        {"hop_limit": 1, "traffic_class": 0xA5, "flow_label": 0x54321},
        (e.IBV_MTU_256, 1, 1, 1),
    ),
    (
        {"sl": 15, "dlid": 0xFFFF, "src_path_bits": 0x7F, "static_rate": 0xFF},
        {"hop_limit": 255, "traffic_class": 0xFF, "flow_label": 0xFFFFF},
        (e.IBV_MTU_4096, 31, 0, 7),
    ),
)


def case_path():
    """Attributes that mean nothing on TCP are accepted, and have no effect."""

    def body(one, other):
        for end, (path, route, others) in zip((one, other), PATHS):
            end.path, end.route = path, route
            end.path_mtu, end.rnr_timer, end.rnr_retries, end.retries = others
        one.connect(other)
        other.connect(one)
        talk(one, other)
        for end, (_, _, others) in zip((one, other), PATHS):
            attr = end.qp.query(e.IBV_QP_STATE)[0]
            have = attr.path_mtu, attr.min_rnr_timer, attr.rnr_retry, attr.retry_cnt
            equal(have, others)

    each_role(body)


def case_off():
    """With rendezvous_port=0 RTR is refused, and the queue pair keeps its state."""
    one, other = pair(False)
    one.init()
    try:
        one.rtr(other)
    except PyverbsRDMAError as error:
        equal(error.error_code, errno.EOPNOTSUPP)
    else:
        raise AssertionError("was not refused")
    equal(one.state(), e.IBV_QPS_INIT)


def ip(*words):
    subprocess.run(["ip", "addr", *words], check=True)


def netdev():
    base = "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0" % DEVICE
    with open(base, encoding="ascii") as file:
        return file.read().strip()


def case_gid_change():
    """An address comes and goes, with an event each time; the other entries keep their places."""
    before = gids()
    mapped = "0000:0000:0000:0000:0000:ffff:0a4d:0063"
    with Context(name=DEVICE) as ctx:
        for verb, there in (("add", True), ("del", False)):
            ip(verb, "10.77.0.99/24", "dev", netdev())
            event = ctx.get_async_event()
            equal(event.event_type, e.IBV_EVENT_GID_CHANGE)
            event.ack()
            after = gids()
            equal(mapped in after.values(), there)
            for index, gid in before.items():
                equal(after[index], gid)


def main():
    cases = {name[5:]: body for name, body in globals().items() if name.startswith("case_")}
    failed = 0
    for name in sys.argv[1:] or (name for name in cases if name != "off"):
        try:
            cases[name]()
            print("ok %s" % name, flush=True)
        except Exception:  # the other cases run all the same
            failed = 1
            print("not ok %s" % name, flush=True)
            print(
                "".join("# %s\n" % line for line in traceback.format_exc().split("\n")), flush=True
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
