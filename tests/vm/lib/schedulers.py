# SPDX-License-Identifier: GPL-2.0-or-later
"""GNU parallel, a private Slurm of one node, and the examples of docs/crash-laboratory.md.

The programs are Debian's: what the machine lacks is in build/products/schedulers (tools/build/
sources.sh).  Slurm runs as the user who runs the test, with its own folder, munge key, socket and
ports, so it does not touch the machine's.  A "host" of GNU parallel is this one: a small script
in the place of ssh starts the command in a new environment, as a login would.
"""
import contextlib
import getpass
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
DOCUMENT = TOP / "docs" / "crash-laboratory.md"
SECTION = "### Many images\n"
DOCUMENTED = 8  # shards
LIMIT = 60  # seconds until Slurm is ready, and until a job that was killed has ended
STOP = 10  # seconds until a daemon has ended

CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=5
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=one Default=YES MaxTime=INFINITE State=UP
"""


def build():
    """The build folder."""
    if os.environ.get("SG_BUILD"):
        return Path(os.environ["SG_BUILD"])
    chosen = TOP / ".build-dir"
    return Path(chosen.read_text().strip()) if chosen.exists() else TOP / "build"


def examples():
    """The examples of the document: {"parallel": script, "array.sh": file, "slurm": script}."""
    text = DOCUMENT.read_text(encoding="utf-8").split(SECTION)[1].split("\n### ")[0]
    found = {}
    for block in text.split("```\n")[1::2]:
        words = block.split()
        name = {"parallel": "parallel", "#!/bin/sh": "array.sh", "sbatch": "slurm"}[words[0]]
        assert name not in found, "two examples for " + name
        found[name] = block
    return found


def in_shards(text, count):
    """An example for another number of shards than the document's."""
    if count == DOCUMENTED:
        return text
    numbers = " ".join(map(str, range(1, count + 1)))
    for old, new in (
        ("::: 1 2 3 4 5 6 7 8\n", "::: %s\n" % numbers),
        ("--shard {}/8 ", "--shard {}/%d " % count),
        ("--array=1-8\n", "--array=1-%d\n" % count),
    ):
        text = text.replace(old, new)
    assert "8" not in re.sub(r"--copy \S+", "", text), text
    return text


class Programs:
    """Where the programs are, and the environment in which they run; both in a folder."""

    def __init__(self, folder):
        root = build() / "products" / "schedulers" / "root"
        if not root.is_dir():
            raise AssertionError("there is no %s; run: make -C %s native" % (root, TOP))
        self.folder, self.root = folder, root
        for name in ("parallel", "bin"):
            (folder / name).mkdir()
        path = [root / "usr" / "bin", root / "usr" / "sbin", os.environ["PATH"], "/usr/sbin"]
        theirs = ("SLURM_", "SBATCH_", "PARALLEL")  # settings of the user, who may be a job
        self.environment = {
            **{name: x for name, x in os.environ.items() if not name.startswith(theirs)},
            "PATH": ":".join(map(str, path)),
            "PARALLEL_HOME": str(folder / "parallel"),
            "PARALLEL_SSH": str(self._remote_shell()),
        }

    def _remote_shell(self):
        """Makes a program with ssh's arguments that starts a command on this host."""
        kept = ("PATH", "HOME", "USER", "PYTHON", "STAGHORN_", "SG_", "XDG_", "TMPDIR", "LANG")
        words = ["%s=%s" % each for each in os.environ.items() if each[0].startswith(kept)]
        quoted = " ".join(shlex.quote(word) for word in [*words, "SHELL=/bin/sh"])
        path = self.folder / "remote-shell"
        path.write_text(
            "#!/bin/sh\n# HOST [--] COMMAND...\n"
            'shift\n[ "$1" != -- ] || shift\ncd "$HOME" || exit\nexec env -i %s /bin/sh -c "$*"\n'
            % quoted
        )
        path.chmod(0o700)
        return path

    def find(self, name):
        """The path of a program.  Debian calls those of Slurm NAME-wlm, too, but they themselves
        insist on NAME."""
        link = self.folder / "bin" / name
        if not link.is_symlink():
            both = (shutil.which(x, path=self.environment["PATH"]) for x in (name + "-wlm", name))
            found = next(filter(None, both), None)
            assert found, "there is no program %s" % name
            link.symlink_to(found)
        return str(link)


def free_ports(count):
    """Ports on which nobody listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_for(condition, limit, text):
    """Returns the first result of condition() that is true."""
    deadline = time.monotonic() + limit
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(
                "%s: not within %d s" % (text() if callable(text) else text, limit)
            )
        time.sleep(0.05)
    return found


class Slurm:
    """A Slurm of one node with two processors; use with `with`."""

    def __init__(self, programs):
        self.programs, self.folder = programs, programs.folder / "slurm"
        self.folder.mkdir(mode=0o700)
        libraries = programs.root / "usr" / "lib" / "x86_64-linux-gnu"
        self.environment = {
            **programs.environment,
            "LD_LIBRARY_PATH": "%s:%s" % (libraries, libraries / "slurm-wlm"),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "SBATCH_EXPORT": "ALL,LD_LIBRARY_PATH=",  # jobs get the test's environment without it
        }
        self.daemons = []
        self._configure(libraries / "slurm-wlm")

    def _configure(self, plugins):
        port, node_port = free_ports(2)
        text = CONFIGURATION.format(
            host=socket.gethostname().split(".")[0],
            user=getpass.getuser(),
            folder=self.folder,
            port=port,
            node_port=node_port,
        )
        if plugins.is_dir():  # else Slurm is installed, and knows
            text += "PluginDir=%s\n" % plugins
        (self.folder / "slurm.conf").write_text(text)
        # Newer ones want control groups even where nothing uses them; older ones do not know that
        # they can do without.
        version = re.match(r"slurm\S* (\d+)\.", self.run("slurmd", "-V"))
        if int(version[1]) >= 23:
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        (self.folder / "plugstack.conf").write_text("")
        for name in ("controller", "node"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    def _start(self, name, *words):
        with open(self.folder / (name + ".out"), "wb") as output:
            self.daemons.append(
                subprocess.Popen(
                    [self.programs.find(name), *map(str, words)],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )

    def _words(self):
        """The last lines of all logs."""
        found = []
        for path in sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-8:]
            found += ["%s: %s" % (path.name, line) for line in lines]
        return "Slurm is not ready:\n" + "\n".join(found)

    def _ready(self):
        if any(each.poll() is not None for each in self.daemons):
            raise AssertionError(self._words())
        return "idle" in self.run("sinfo", "-h", "-o", "%T", check=False)

    def __enter__(self):
        place = self.folder
        options = ["--%s=%s/munge.%s" % (x, place, x) for x in ("socket", "pid-file", "log-file")]
        options.append("--seed-file=%s/munge.seed" % place)
        try:
            self._start(
                "munged", "--foreground", "--force", "--key-file", place / "munge.key", *options
            )
            wait_for((place / "munge.socket").exists, LIMIT, self._words)
            self._start("slurmctld", "-D", "-c", "-f", place / "slurm.conf")
            step = self.programs.find("slurmstepd")
            self._start("slurmd", "-D", "-N", "one", "-d", step, "-f", place / "slurm.conf")
            wait_for(self._ready, LIMIT, self._words)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if len(self.daemons) == 3:
            with contextlib.suppress(AssertionError, subprocess.SubprocessError):
                self.run("scancel", "--signal=KILL", "--full", "--user", getpass.getuser())
                self.wait_end()
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(STOP)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, name, *words, check=True):
        """Runs a program of Slurm; returns its output."""
        done = subprocess.run(
            [self.programs.find(name), *words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError("%s %s: %s%s" % (name, words, done.stdout, done.stderr))
        return done.stdout

    def wait_end(self, limit=LIMIT):
        """Waits until there is no job."""
        wait_for(lambda: not self.run("squeue", "-h").strip(), limit, self._jobs)

    def _jobs(self):
        return "jobs are left:\n" + self.run("squeue", check=False)


class Work:
    """A folder in which the examples run: it has ./staghorn, judge.sh and run/explored."""

    def __init__(self, folder, shards, limit):
        self.folder, self.shards, self.limit = folder, shards, limit
        self.explored = folder / "run" / "explored"
        self.programs = Programs(folder)
        self.examples = {name: in_shards(each, shards) for name, each in examples().items()}
        (folder / "array.sh").write_text(self.examples["array.sh"])

    def start(self, script, environment=None):
        """Starts a script in the folder."""
        return subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=self.folder,
            env=environment or self.programs.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, child, status):
        """Waits for the end of a script, whose status is checked unless it is None; returns its
        output."""
        output, _ = child.communicate(timeout=self.limit)
        assert status in (None, child.returncode), (child.returncode, output)
        return output

    def run(self, script, status, environment=None):
        return self.finish(self.start(script, environment), status)

    def journal(self, shard):
        """The lines of a shard that are whole."""
        path = self.explored / ("verdicts-%d-of-%d.jsonl" % (shard, self.shards))
        return path.read_bytes().split(b"\n")[:-1] if path.exists() else []

    def images(self):
        """The images of all journals, each as often as it is there."""
        lines = [x for i in range(1, self.shards + 1) for x in self.journal(i)]
        return [json.loads(line)["image"] for line in lines]

    def wait_lines(self, shard, count):
        """Waits until a shard has verdicts; returns them."""
        wait_for(
            lambda: len(self.journal(shard)) >= count,
            self.limit,
            "%d verdicts of shard %d" % (count, shard),
        )
        return self.journal(shard)

    def processes(self, shard):
        """The ids of the checks of a shard."""
        words, found = b"--shard\0%d/%d\0" % (shard, self.shards), []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if words in Path("/proc", entry, "cmdline").read_bytes():
                    if os.path.samefile("/proc/%s/cwd" % entry, self.folder):
                        found.append(int(entry))
        return found

    def kill(self, shard):
        """Kills the check of a shard, which has no time to do anything about it."""
        found = self.processes(shard)
        assert len(found) == 1, found
        os.kill(found[0], signal.SIGKILL)
