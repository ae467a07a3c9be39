# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of crash images share: platforms, verdicts, and images of file systems in which
crash_files made files, judged in checker VMs."""
import json
from pathlib import Path

import labtest
import programs

IMAGES = 24  # that are judged at most
# With checksums a journal superblock that is half written, as it can be on an NVDIMM without a BTT,
# cannot be mounted (docs/crash-laboratory.md).
MKFS = ("-t", "ext4", "-O", "^metadata_csum")
NOWHERE = frozenset()
CACHED = frozenset(("adr,ddio=on",))  # the only one that loses caches, and leaves DMA there
ADR = frozenset(("adr,ddio=on", "adr,ddio=off"))
BUFFERED = ADR | {"eadr,ddio=on", "eadr,ddio=off"}
ALL = BUFFERED | {"whole,ddio=on", "whole,ddio=off"}  # what a VM with domain=adr claims
SCRIPT = Path(programs.SOURCES, "crash", "crash_files_check.sh")


def judge(lab, explored, status):
    """What `crash check` finds: each image is mounted, and has what was promised or not."""
    program = Path(programs.FOLDER).joinpath("crash_files").resolve()
    return judge_by(
        lab,
        explored,
        status,
        "--copy",
        "%s:/usr/bin/crash_files" % program,
        "--script-file",
        SCRIPT,
    )


def judge_by(lab, explored, status, *words, up=""):
    """What `crash check` finds with these words, which say what the checker is.

    status: that of `crash check`, 0 if all images are good, 1 if some are not.
    up: further words of the checker VM's `up`."""
    done = lab.run(
        *(
            "crash",
            "check",
            "--json",
            "--vm-arg",
            ("--timeout %d " % labtest.UP_LIMIT + up).strip(),
        ),
        *(*words, "--promises", "--no-reduce", "--timeout", 20 * labtest.SLOW, "--limit", IMAGES),
        explored,
        status=status,
        timeout=300,
    )
    return json.loads(done.out)


def verdicts(explored):
    """The lines of all journals of a folder."""
    texts = [path.read_text() for path in explored.glob("verdicts*.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def broken_promises(test, found):
    """Some images are good; the others lack promised files, and nothing else is wrong with them."""
    test.assertEqual(set(found["verdicts"]), {"good", "bug"})
    for bug in found["bugs"]:
        test.assertEqual((bug["verdict"], bug["status"]), ("bug", 1), bug)
        test.assertIn("is not as file", bug["example"]["output"])
