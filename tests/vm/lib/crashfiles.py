# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of crash images share: platforms, verdicts, and images of file systems in which
crash_files made files, judged in checker VMs."""
import gzip
import json
import re
import subprocess
import tempfile
from pathlib import Path

import labtest
import programs

# Domains that are explored together; how many images are made, if not all, and judged at most.  In
# whole all that is visible survives, so each store of the run makes an image.
EXPLORED = {"adr,eadr": (None, 30), "whole": (20, 20)}
DDIO = ("on", "off")
EACH = 6  # good images of each platform, at least, if all are good
# With checksums a journal superblock that is half written, as it can be on an NVDIMM without a BTT,
# cannot be mounted (docs/crash-laboratory.md).
MKFS = ("-t", "ext4", "-O", "^metadata_csum")
SIZE = "48M"  # of a file system
MOUNT = "mount -o dax=always /dev/pmem0 /mnt"
NOWHERE = frozenset()
CACHED = frozenset(("adr,ddio=on",))  # the only one that loses caches, and leaves DMA there
ADR = frozenset(("adr,ddio=on", "adr,ddio=off"))
BUFFERED = ADR | {"eadr,ddio=on", "eadr,ddio=off"}
ALL = BUFFERED | {"whole,ddio=on", "whole,ddio=off"}  # what a VM with domain=adr claims
CLAIMED = "adr,eadr,whole"  # its domains
COPY = "%s:/usr/bin/crash_files" % Path(programs.FOLDER).joinpath("crash_files").resolve()
SCRIPT = Path(programs.SOURCES, "crash", "crash_files_check.sh")
MISSING = "is not as file"  # says crash_files of a promised file
# A cause: what was promised was in ordinary memory only when the power failed.  The other one is a
# store of the kernel to persistent memory.
UNSTORED = "nothing is lost"
BY_KERNEL = r"the store by (\w+)\Z"
JOURNAL = "__memcpy_flushcache"  # so the NVDIMM's driver stores journal and blocks


class FilesCase(labtest.LabCase):
    """Cases that record crash_files on a new ext4 with DAX each."""

    up_arguments = ("--vms", "beta", "--pmem", "beta:64M,domain=adr")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs.install(cls.lab, "beta", "crash_files")
        cls.lab.sh("beta", "ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem > /dev/null")

    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory(prefix="sg-files-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "recording"
        self.new_file_system(Path(place.name) / "image")

    def new_file_system(self, image):
        """The guest has no mkfs."""
        words = ["mke2fs", "-q", *MKFS, "-b", "4096", str(image), SIZE]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        self.lab.run(
            *("exec", "beta", "--", "sh", "-c"),
            "umount /mnt 2> /dev/null; gzip -dc | dd of=/dev/pmem0 bs=1M conv=fsync && " + MOUNT,
            stdin=None,
            input=gzip.compress(image.read_bytes(), 1),
        )

    def record(self, method, files):
        words = ("crash_files", "/mnt", method, files)
        self.lab.run("crash", "record", "--output", self.folder, "--", "beta", *words, timeout=120)
        self.lab.sh("beta", "crash_files /mnt check %d" % files)


def explore(test, folder, vm):
    """{domains: (result, folder)} of explorations of all platforms that the run of this VM claims,
    with images, and with the kernel's symbols to name who stored what images lost.

    No device writes to the persistent memory of these runs.  So the images with DDIO are those
    without it, and are judged once."""
    symbols, found, claimed = folder / "kallsyms", {}, set()
    symbols.write_text(test.lab.sh(vm, "cat /proc/kallsyms"))
    for domains, (most, _) in EXPLORED.items():
        contents = []
        for ddio in DDIO:
            out = folder / ("%s-%s" % (domains, ddio))
            words = ("--max-images", most) if most else ()
            done = test.lab.run(
                *("crash", "explore", "--json", "--target", vm, "--domain", domains, *words),
                *("--ddio", ddio, "--strategy", "random:2:1"),
                *("--kallsyms", symbols, "--output", out, folder),
                timeout=300,
            )
            result = json.loads(done.out)
            claimed |= {each["platform"] for each in result["platforms"] if each["claimed"]}
            rows = json.loads((out / "images.json").read_text())["images"]
            contents.append({(one["image"], one["promises"]) for one in rows})
            found.setdefault(domains, (result, out))
        test.assertEqual(*contents)
    test.assertEqual(claimed, ALL)
    return found


def judge(lab, explored, status, *words):
    """[(what `crash check` finds, folder)]: each image is mounted, and has what was promised or
    not.  explored: what explore() returned; words: more options of the check."""
    copy = ("--copy", COPY, "--promises")
    return judge_by(lab, explored, status, *copy, "--script-file", SCRIPT, *words)


def judge_by(lab, explored, status, *words, up=""):
    """The same with these words, which say what the checker is.

    status: that of `crash check`, 0 if all images are good, 1 if some are not.
    up: further words of the checker VM's `up`."""
    found, up = [], ("--timeout %d " % labtest.UP_LIMIT + up).strip()
    for domains, (_, out) in explored.items():
        done = lab.run(
            *("crash", "check", "--json", "--vm-arg", up, "--timeout", 20 * labtest.SLOW),
            *("--limit", EXPLORED[domains][1], *words, out),
            status=status,
            timeout=300,
        )
        found.append((json.loads(done.out), out))
    return found


def verdicts(explored):
    """The lines of all journals of a folder."""
    texts = [path.read_text() for path in explored.glob("verdicts*.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def by_platform(explored, lines=None):
    """{platform: verdicts about the images that a power cut may leave there}.

    lines: those of the journals, if they are in another folder."""
    lines = verdicts(explored) if lines is None else lines
    judged = {(one["image"], one.get("promises")): one["verdict"] for one in lines}
    found = {}
    for one in json.loads((explored / "images.json").read_text())["images"]:
        for key in {(one["image"], one["promises"]), (one["image"], None)} & set(judged):
            for name in one["platforms"]:
                found.setdefault(name, []).append(judged[key])
    return found


def _rows(judged):
    """by_platform() of all folders, with DDIO and without it."""
    rows = {}
    for _, out in judged:
        for ddio in DDIO:
            other = out.with_name("%s-%s" % (out.name.rpartition("-")[0], ddio))
            rows.update(by_platform(other, verdicts(out)))
    return rows


def all_good(test, judged):
    """All images are good, and each platform has some."""
    rows = _rows(judged)
    test.assertEqual({name for name in rows if len(rows[name]) >= EACH}, ALL, rows)
    for found, _ in judged:
        test.assertEqual(found["verdicts"], {"good": found["images"]})


def some_bad(test, judged, text, reduced=True):
    """On each platform some images are bad, since what was promised had not been stored: it may be
    in ordinary memory until somebody asks for more, whatever survives.  Where something has to be
    lost for that, the kernel has stored it; in the domain whole nothing is lost.

    text: a pattern of what the checker says of each bad one.  reduced: there are minimal examples;
    without them causes are what the examples happen to have lost besides."""
    rows = _rows(judged)
    test.assertEqual({name for name in rows if "bug" in rows[name]}, ALL, rows)
    test.assertLessEqual({verdict for name in rows for verdict in rows[name]}, {"good", "bug"})
    names, where, least = set(), set(), set()
    for bug in (bug for found, _ in judged for bug in found["bugs"]):
        test.assertEqual((bug["verdict"], bug["status"]), ("bug", 1), bug)
        test.assertRegex(bug["example"]["output"], text)
        if bug["cause"] == [UNSTORED]:
            test.assertFalse((bug["minimal"] or bug["example"])["deviations"], bug)
            where |= {name.replace("on", ddio) for name in bug["platforms"] for ddio in DDIO}
            least.add(bug["least-platform"])
        else:
            test.assertLessEqual(set(bug["platforms"]), BUFFERED)
            for cause in bug["cause"]:
                test.assertRegex(cause, BY_KERNEL)
                names.add(re.match(BY_KERNEL, cause)[1])
    if reduced:
        test.assertEqual(where, ALL)
        test.assertEqual(least, {"adr,ddio=on", "whole,ddio=on"})
    else:
        test.assertIn(JOURNAL, names)
