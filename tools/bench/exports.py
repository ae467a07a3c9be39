# SPDX-License-Identifier: GPL-2.0-or-later
"""Shell scripts by which VMs of the image "consumers" serve and use storage over RDMA or TCP.

They set up Linux's servers of NVMe and NFS by hand, because the units of Debian's packages expect
an init system.  Each script runs under "set -e"; for each script that serves something another one
undoes it."""

HOST_NQN = "nqn.2024-01.org.example:host"
NVME_PORT, NFS_PORT, NFS_TCP_PORT = 4420, 20049, 2049
TRANSPORTS = ("rdma", "tcp")

NVMET = "/sys/kernel/config/nvmet"


def nvme_end(transport="rdma"):
    return (
        """
cd /sys/kernel/config/nvmet
rm ports/1/subsystems/*
rmdir ports/1 subsystems/*/namespaces/1 subsystems/*
cd /
modprobe -r nvmet-%s
"""
        % transport
    )


NVME_END = nvme_end()


def nvme(nqn, address, disk, transport="rdma"):
    """Serves the block device as that subsystem; uses shared receive queues if $srq is Y."""
    subsystem = NVMET + "/subsystems/" + nqn
    return """
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
modprobe nvmet
modprobe nvmet-%(module)s
mkdir %(subsystem)s
cd %(subsystem)s
echo 1 > attr_allow_any_host
echo 5347 > attr_serial
mkdir namespaces/1
echo %(disk)s > namespaces/1/device_path
echo 5347a5a5-0000-4000-8000-000000000001 > namespaces/1/device_uuid
echo 1 > namespaces/1/enable
mkdir %(nvmet)s/ports/1
cd %(nvmet)s/ports/1
echo %(transport)s > addr_trtype
echo ipv4 > addr_adrfam
echo %(address)s > addr_traddr
echo %(port)d > addr_trsvcid
ln -s %(subsystem)s subsystems/
cd /
""" % {
        "nvmet": NVMET,
        "subsystem": subsystem,
        "disk": disk,
        "address": address,
        "port": NVME_PORT,
        "transport": transport,
        "module": "rdma use_srq=${srq:-N}" if transport == "rdma" else transport,
    }


def nvme_connect(nqn, address, *options, transport="rdma"):
    words = ("nvme connect -t", transport, "-a", address, "-s", NVME_PORT, "-n", nqn)
    return " ".join(map(str, (*words, "-q", HOST_NQN, "--nr-io-queues=2", *options)))


def nfs(folder, options="", threads=4):
    """Serves the folder as the root of NFS 4, over RDMA and TCP; options, if any, end with a
    comma."""
    return """
mkdir -p /var/lib/nfs/v4recovery
echo '%(folder)s *(rw,%(options)sno_root_squash,no_subtree_check,insecure,fsid=0)' > /etc/exports
modprobe -a nfsd rpcrdma
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
exportfs -a
rpc.mountd -N 3 -u
rpc.nfsd -N 3 --rdma=%(port)d -G 10 -L 10 %(threads)d
grep -q 'rdma %(port)d' /proc/fs/nfsd/portlist
grep -q 'tcp %(tcp)d' /proc/fs/nfsd/portlist
""" % {
        "folder": folder,
        "options": options,
        "port": NFS_PORT,
        "tcp": NFS_TCP_PORT,
        "threads": threads,
    }


def nfs_end(folder):
    """Undoes nfs(); the folder is a mount point."""
    return (
        """
rpc.nfsd 0
exportfs -au
kill $(cat /proc/[0-9]*/stat | sed -n 's/^\\([0-9]*\\) (rpc.mountd) .*/\\1/p')
umount %s
"""
        % folder
    )


def nfs_mount(address, folder, version="4.2", transport="rdma"):
    words = "mount -t nfs4 -o proto=%s,port=%d,vers=%s %s:/ %s"
    port = NFS_PORT if transport == "rdma" else NFS_TCP_PORT
    return words % (transport, port, version, address, folder)
