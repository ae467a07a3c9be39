# SPDX-License-Identifier: GPL-2.0-or-later
"""Two MPI ranks send each other messages of many sizes, and check them."""
from mpi4py import MPI

SIZES = (0, 1, 100, 5000, 70000, 1000003)


def pattern(rank, size):
    return bytearray((rank * 17 + i * 7 + size) & 255 for i in range(size))


def main():
    comm = MPI.COMM_WORLD
    me, total = comm.Get_rank(), comm.Get_size()
    assert total == 2
    for size in SIZES:
        got = bytearray(size)
        comm.Sendrecv(pattern(me, size), 1 - me, recvbuf=got, source=1 - me)
        assert got == pattern(1 - me, size), size
        assert comm.allreduce(size + me) == 2 * size + 1
    print("rank %d on %s has all" % (me, MPI.Get_processor_name()), flush=True)


main()
