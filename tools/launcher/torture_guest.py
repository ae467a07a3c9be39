# SPDX-License-Identifier: GPL-2.0-or-later
"""What torture runs in its VMs: programs of verbs and rdma_cm, NFS over RDMA, and questions.

Everything that the faults can stop has a time limit of its own.  What programs say is ignored,
because a fault may end any of them; the exception is a file with another content.
"""
from . import agent, options, torture_judge
from .errors import LabError

PORT = 7401  # of the first program; each has its own
NFS_PORT = 20049
RUN = 8  # seconds that a program may take
QUESTION = 60  # seconds that an answer may take
SERVED, MOUNTED = "/run/torture-served", "/run/torture-mounted"
# Programs: the words of a server, and of a client behind the server's address.
PROGRAMS = (
    (
        "rping -s -a %(here)s -p %(port)d -C 30 -S 4096 -V",
        "rping -c -a %(there)s -p %(port)d -C 30 -S 4096 -V",
    ),
    (
        "ib_write_bw -R -F -p %(port)d -s 8192 -n 300",
        "ib_write_bw -R -F -p %(port)d -s 8192 -n 300 %(there)s",
    ),
    (
        "ibv_rc_pingpong -g 1 -p %(port)d -n 200",
        "ibv_rc_pingpong -g 1 -p %(port)d -n 200 %(there)s",
    ),
)
LOOP = "while [ $(date +%%s) -lt $end ]; do timeout -k 2 %d %s > /dev/null 2>&1; sleep 0.2; done &"
SERVE = """set -e
mkdir -p %(folder)s /var/lib/nfs/v4recovery
mountpoint -q %(folder)s || mount -t tmpfs -o size=64m torture %(folder)s
modprobe -a nfsd rpcrdma
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
if [ "$(cat /proc/fs/nfsd/threads)" != 0 ]; then # perhaps ours, of an earlier run
    exportfs | grep -q '%(folder)s'
    exit
fi
exportfs -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:%(folder)s'
rpc.mountd -N 3 -u
rpc.nfsd -N 3 --rdma=%(port)d -G 10 -L 10 2
"""
STOP_SERVING = """rpc.nfsd 0; exportfs -au
pkill -x rpc.mountd; umount %(folder)s; :
"""
MOUNT = (
    "{ mountpoint -q %(folder)s || timeout -k 2 20 mount -t nfs4 -o proto=rdma,port=%(port)d,"
    "vers=4.2,soft,timeo=30,retrans=1 %(there)s:/ %(folder)s; }"
)
# Writes a file and reads it again from the server.  Errors are permitted, wrong octets are not.
FILE = """mkdir -p %(folder)s
file() {
    %(mount)s || return 1
    head -c 300000 /dev/urandom > /run/torture-a
    there=%(folder)s/file
    timeout -k 2 15 dd if=/run/torture-a of=$there bs=64k conv=fsync 2> /dev/null || return 1
    timeout -k 2 15 dd if=$there of=/run/torture-b bs=64k iflag=direct 2> /dev/null || return 1
    cmp -s /run/torture-a /run/torture-b || { echo '%(corrupt)s'; return 1; }
}
leave() {
    ! mountpoint -q %(folder)s || timeout -k 2 20 umount %(folder)s || umount -f -l %(folder)s
}
"""
RELOAD = """modprobe -r staghorn
modprobe staghorn && /usr/lib/staghorn/rdma staghorn"""
# For a report: tasks that wait uninterruptibly, and where.
BLOCKED = """for task in /proc/[0-9]*/task/[0-9]*; do
    grep -q '^State:.D' $task/status 2> /dev/null || continue
    echo "$(cat $task/comm) $task"; cat $task/stack
done 2> /dev/null"""
LEAKS = """cd /sys/kernel/debug 2> /dev/null && [ -e kmemleak ] || exit 0
echo scan > kmemleak && sleep 6 && echo scan > kmemleak && cat kmemleak"""


class Guest:
    """A VM.  side: 0 or 1, not its peer's; here, there: its own address, and the peer's."""

    def __init__(self, folder, name, side, here, there):
        self.folder, self.name, self.side = folder, name, side
        self.words = {"there": there, "here": here}

    def sh(self, script, limit=QUESTION):
        """(status, output) of a script; a LabError if it does not end in time."""
        limit *= options.patience(self.folder.data)
        words = ["sh", "-c", script]
        status, out, error = agent.capture(self.folder, self.name, words, timeout=limit)
        return status, out + error

    # ---- the kernel consumer ----

    def serve(self):
        """Serves a folder by NFS over RDMA; "nfs", or "none" if the guest cannot."""
        status, _ = self.sh(SERVE % {"folder": SERVED, "port": NFS_PORT})
        return "none" if status else "nfs"

    def stop_serving(self):
        self.sh(STOP_SERVING % {"folder": SERVED})

    def file_functions(self):
        """Shell functions: file() writes a file and reads it, leave() unmounts."""
        words = {"folder": MOUNTED, "port": NFS_PORT, "corrupt": torture_judge.CORRUPT}
        words["mount"] = MOUNT % {**words, **self.words}
        return FILE % words

    def connect(self):
        """Mounts the peer's folder, and uses it, before there are faults.  Modules are loaded here,
        because that may take longer than a mount may."""
        script = "modprobe -a nfs nfsv4 rpcrdma\n" + self.file_functions() + "file || file || file"
        status, text = self.sh(script, 5 * QUESTION)
        if status:
            raise LabError("%s: NFS fails without faults: %s" % (self.name, text.strip()))

    # ---- the work ----

    def work_script(self, seconds, consumer=None):
        """Programs for so many seconds, again and again: servers for the peer and clients of its
        servers; with a consumer also files."""
        ports = PORT + self.side * len(PROGRAMS), PORT + (1 - self.side) * len(PROGRAMS)
        lines = ["exec < /dev/null", "end=$(($(date +%%s) + %d))" % seconds]
        for number, (server, client) in enumerate(PROGRAMS):
            for words, port in zip((server, client), ports):
                lines.append(LOOP % (RUN, words % {**self.words, "port": port + number}))
        if consumer == "nfs":
            lines.append(self.file_functions())
            lines.append("while [ $(date +%s) -lt $end ]; do file; sleep 0.2; done")
            lines.append("leave")
        return "\n".join([*lines, "wait"])

    def trouble(self, peer, consumer):
        """Why rdma_cm or the kernel consumer does not work to the peer; "": both do."""
        port = PORT + 2 * len(PROGRAMS)
        # The server ends by itself; one of an earlier attempt would take the port.
        server = "pkill -x rping; sleep 0.1; setsid timeout -k 2 30 rping -s -a %s -p %d -C 3 "
        server += "< /dev/null > /dev/null 2>&1 & sleep 0.5"
        client = "/usr/lib/staghorn/rdma staghorn 2>&1 || exit 1; n=0; "
        client += "until timeout -k 2 15 rping -c -a %s -p %d -C 3 -V > /dev/null 2>&1; do "
        client += "n=$((n + 1)); [ $n -lt 5 ] || { echo rping fails; exit 1; }; sleep 0.5; done\n"
        script = client % (self.words["there"], port)
        if consumer == "nfs":
            script += self.file_functions()
            script += "file 2>&1 || { echo NFS fails; leave; exit 1; }\nleave"
        try:
            peer.sh(server % (peer.words["here"], port))
            status, text = self.sh(script, 3 * QUESTION)
        except LabError as error:
            return str(error)
        return text.strip() or "status %d" % status if status else ""

    # ---- questions ----

    def reload(self):
        """The driver anew: it has all its attempts to bring the adapter up."""
        status, text = self.sh(RELOAD, 2 * QUESTION)
        if status:
            raise LabError("%s: the driver cannot be loaded again: %s" % (self.name, text.strip()))

    def reset(self):
        """Resets the function: the driver starts anew, and all connections end."""
        self.sh("echo 1 > /sys/class/infiniband/$(cat /run/staghorn/rdma)/device/reset")

    def mark(self, seed):
        self.sh("echo '%s%d' > /dev/kmsg" % (torture_judge.MARK, seed))

    def log(self):
        """The kernel's log of the round."""
        return torture_judge.since_mark(self.sh("dmesg")[1])

    def resources(self):
        _, text = self.sh("cat /run/staghorn/rdma 2> /dev/null; echo; rdma resource show")
        return torture_judge.resources(text, text.split("\n", 1)[0].strip())

    def blocked(self):
        """Tasks that wait uninterruptibly, with their stacks."""
        try:
            return self.sh(BLOCKED)[1]
        except LabError as error:
            return str(error)

    def leaks(self):
        """Memory of our driver that nobody has a pointer to."""
        _, text = self.sh(LEAKS)
        parts = text.split("unreferenced object ")[1:]
        return "".join("unreferenced object " + part for part in parts if "[staghorn]" in part)
