#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the build's own tools: configure, the step runner, apt-mirror."""
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
TOOLS = TOP / "tools" / "build"
CASES = []


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def steps(folder, text, **env):
    """Starts a bash script that uses lib.sh with cache and build under `folder`."""
    script = folder / "script.sh"
    script.write_text(
        "#!/bin/bash\nSG_TOP=%s SG_BUILD=%s/build SG_CACHE=%s/cache\n"
        ". %s/lib.sh\n%s\n" % (folder, folder, folder, TOOLS, text)
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SG_")}
    return subprocess.Popen(
        ["bash", str(script)],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.STDOUT,
        env={**clean, **env},
        start_new_session=True,
    )


def finished(process):
    """(output, status) of a script."""
    output, _ = process.communicate(timeout=60)
    return output, process.returncode


def products(folder):
    """The names in the cache, temporary ones included."""
    found = [p.name for p in (folder / "cache").glob("[!.]*")]
    return found + ["tmp/" + p.name for p in (folder / "cache" / ".tmp").glob("*")]


MAKE = 'make_it() { echo made >> "$SG_TOP/made"; echo "$1" > "$SG_OUT/file"; }\n'


@case
def step__made_once(folder):
    """a step's product is made once, and found by sg_product"""
    text = MAKE + 'sg_step thing title @1 -- make_it a; cat "$(sg_product thing)/file"'
    first, status = finished(steps(folder, text))
    assert status == 0 and first.endswith("a\n"), first
    second, status = finished(steps(folder, text))
    assert status == 0 and "cached" in second and second.endswith("a\n"), second
    assert (folder / "made").read_text() == "made\n"


@case
def step__key_counts(folder):
    """another key or changed key file makes another product"""
    (folder / "input").write_text("1")
    text = MAKE + "sg_step thing title @%s input -- make_it a; sg_product thing"
    text = 'cd "$SG_TOP"\n' + text
    outputs = [finished(steps(folder, text % "1"))[0].splitlines()[-1]]
    outputs.append(finished(steps(folder, text % "2"))[0].splitlines()[-1])
    (folder / "input").write_text("2")
    outputs.append(finished(steps(folder, text % "1"))[0].splitlines()[-1])
    assert len(set(outputs)) == 3, outputs


@case
def step__failure(folder):
    """a failing step stops the script, shows its log and leaves no product"""
    text = (
        'bad() { echo some words; touch "$SG_OUT/half"; false; echo more; }\n'
        "sg_step thing title @1 -- bad\necho not reached"
    )
    output, status = finished(steps(folder, text))
    assert status == 1 and "some words" in output and "more" not in output, output
    assert "not reached" not in output and "run the same command again" in output, output
    assert products(folder) == [], products(folder)


PATCH = """--- a/file
+++ b/file
@@ -2,5 +2,5 @@
 two
 three
-four
+FOUR
 five
 six
"""


@case
def patches__without_fuzz(folder):
    """a patch of QEMU applies where its lines are as they were, and stops the build elsewhere"""
    (folder / "one.patch").write_text(PATCH)
    tree = folder / "tree"
    tree.mkdir()
    text = 'sg_apply_patches "$SG_TOP/tree" "$SG_TOP/one.patch"'
    for lines, status_wanted, fourth in [
        ("one two three four five six seven", 0, "FOUR"),
        ("one 2 three four five six seven", 1, "four"),
        ("one two three four five 6 seven", 1, "four"),
        ("zero one two three four five six", 0, "FOUR"),
    ]:
        (tree / "file").write_text(lines.replace(" ", "\n") + "\n")
        output, status = finished(steps(folder, text))
        assert status == status_wanted, (lines, output)
        assert fourth in (tree / "file").read_text().split(), lines


OTHER = """#!/bin/bash
SG_TOP=%(top)s SG_BUILD=%(top)s/build SG_CACHE=%(top)s/cache
. %(tools)s/lib.sh
sg_run other "working beside" -- sh -c '%(work)s'
"""


def other_script(folder, work):
    """A script of one step, to run beside another."""
    path = folder / "other.sh"
    path.write_text(OTHER % {"top": folder, "tools": TOOLS, "work": work})
    path.chmod(0o755)
    return path


@case
def beside__at_once(folder):
    """two scripts run at once, and what the second says is not among what the first says"""
    until = (
        "n=0; until [ -e %s ] || [ $n -ge 100 ]; do n=$((n + 1)); sleep 0.1; done; [ $n -lt 100 ]"
    )
    other = other_script(folder, "touch %s/b; %s" % (folder, until % (folder / "a")))
    mine = "sg_run mine working -- sh -c 'touch %s/a; %s'" % (folder, until % (folder / "b"))
    text = "sg_plan 2\nsg_beside %s\n%s\necho joined\nsg_join\n" % (other, mine)
    output, status = finished(steps(folder, text))
    assert status == 0, output
    lines = [line.split("] ")[-1].split(":")[0] for line in output.splitlines()]
    # The other script may need a moment longer; sg_join says so then.
    waited = [line for line in lines if "waiting for what runs beside" in line]
    assert len(waited) <= 1, output
    assert [line for line in lines if line not in waited] == ["mine", "joined", "other"], output


@case
def beside__fails(folder):
    """a failure of the other script is seen, with its log, and is this one's status"""
    other = other_script(folder, "echo what is wrong; exit 7")
    output, status = finished(steps(folder, "sg_beside %s\nsg_join\necho not reached" % other))
    assert status == 7 and "what is wrong" in output and "not reached" not in output, output


@case
def beside__interrupted(folder):
    """an interrupted script ends the other one and its step"""
    other = other_script(folder, "touch %s/begun; sleep 78.25" % folder)
    process = steps(folder, "sg_beside %s\nsg_run mine working -- sleep 78.5" % other)
    limit = time.monotonic() + 30
    while not (folder / "begun").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    output, status = finished(process)
    assert status == 130, (status, output)
    # The script does not wait for what it has ended.
    limit = time.monotonic() + 10
    words = ["pgrep", "-f", "^sleep 78[.]"]
    while subprocess.run(words, capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < limit, "a step still runs"
        time.sleep(0.05)


@case
def step__interrupted(folder):
    """an interrupted step leaves no product and no process"""
    text = (
        'slow() { touch "$SG_OUT/half" "$SG_TOP/begun"; sleep 77.25; }\n'
        "sg_step thing title @1 -- slow"
    )
    process = steps(folder, text)
    limit = time.monotonic() + 30
    while not (folder / "begun").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    output, status = finished(process)
    assert status == 130 and "interrupted" in output, (status, output)
    assert products(folder) == [], products(folder)
    left = subprocess.run(["pgrep", "-f", "^sleep 77.25$"], capture_output=True, check=False)
    assert left.returncode == 1, "the command still runs"


@case
def step__two_runs(folder):
    """two runs at once make a product once"""
    text = MAKE + "slow() { sleep 1; make_it a; }\nsg_step thing title @1 -- slow"
    (folder / "a").mkdir()
    both = [steps(folder, text), steps(folder, text)]
    assert [finished(p)[1] for p in both] == [0, 0]
    assert (folder / "made").read_text() == "made\n"


@case
def step__prunes(folder):
    """an old unused product is removed when a new one is made, others stay"""
    names = ("thing-0123456789abcdef", "other-0123456789abcdef", "thing-fedcba9876543210")
    for name in names:
        (folder / "cache" / name).mkdir(parents=True)
    for name in names[:2]:
        os.utime(folder / "cache" / name, (1, 1))
    assert finished(steps(folder, MAKE + "sg_step thing title @1 -- make_it a"))[1] == 0
    left = products(folder)
    assert names[0] not in left and names[1] in left and names[2] in left, left


@case
def local__stamped(folder):
    """a local step runs again only after its key changed or it failed"""
    text = (
        'go() { echo ran >> "$SG_TOP/ran"; [ ! -e "$SG_TOP/bad" ]; }\n'
        "sg_local thing title @%s -- go"
    )
    (folder / "bad").touch()
    assert finished(steps(folder, text % 1))[1] == 1
    (folder / "bad").unlink()
    for key in (1, 1, 2, 2):
        assert finished(steps(folder, text % key))[1] == 0
    assert (folder / "ran").read_text() == "ran\n" * 3


@case
def steps__user_without_sbin(folder):
    """a step finds the tools of /usr/sbin, which Debian's users do not have in their PATH"""
    text = "go() { command -v mke2fs; }\nsg_local thing title @1 -- go"
    output, status = finished(steps(folder, text, PATH="/usr/bin:/bin"))
    assert status == 0, output


def mirror(folder, *args):
    """Output and status of apt-mirror with `folder` as /etc/apt."""
    run = subprocess.run(
        [sys.executable, str(TOOLS / "apt-mirror"), *args],
        text=True,
        env={**os.environ, "APT_ETC": str(folder)},
        capture_output=True,
        check=False,
    )
    return run.stdout.strip(), run.returncode


@case
def mirror__one_line_form(folder):
    """the mirror is found in one-line lists, not the security or other archives"""
    (folder / "sources.list").write_text(
        "# deb http://comment.invalid/debian bookworm main\n"
        "deb http://security.invalid/debian bookworm-security main\n"
        "deb [arch=amd64 trusted=yes] http://here.invalid/debian/ bookworm main contrib\n"
    )
    assert mirror(folder, "uri") == ("http://here.invalid/debian", 0)
    line, status = mirror(folder, "deb-src", "trixie")
    assert status == 0 and line.startswith("deb-src [") and "trusted=yes" in line, line
    assert line.endswith("http://here.invalid/debian trixie main") and "amd64" not in line, line


@case
def mirror__deb822_form(folder):
    """the mirror is found in deb822 sources, disabled ones left out"""
    (folder / "sources.list.d").mkdir()
    (folder / "sources.list.d" / "debian.sources").write_text(
        "Enabled: no\nTypes: deb\nURIs: http://off.invalid/debian\nSuites: trixie\n"
        "Components: main\n\n# comment\nTypes: deb deb-src\nURIs: http://here.invalid/debian\n"
        "Suites: trixie\n trixie-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n KEY\n"
    )
    assert mirror(folder, "uri") == ("http://here.invalid/debian", 0)


@case
def mirror__none(folder):
    """no mirror is an error, with a message"""
    (folder / "sources.list").write_text("deb http://x.invalid/other stable-x main\n")
    assert mirror(folder, "uri") == ("", 1)


def source_mirror(folder, offered, stored):
    """Environment with an apt that names the versions `offered` and has those `stored`."""
    (folder / "x").write_text("content")
    pool, tools = folder / "pool", folder / "bin"
    for made in (pool, tools, folder / "cache" / "apt"):
        made.mkdir(parents=True)
    (folder / "cache" / "apt" / ".updated").touch()
    index = ""
    for version in offered:
        tarball = pool / ("thing_%s.orig.tar.gz" % version.split("-")[0])
        pack = ["tar", "-czf", tarball, "-C", folder, "--transform=s,^,t/,", "x"]
        subprocess.run(pack, check=True)
        digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
        index += "Package: thing\nVersion: %s\nChecksums-Sha256:\n %s 1 %s\n\n" % (
            version,
            digest,
            tarball.name,
        )
        if version not in stored:
            tarball.unlink()
    (folder / "index").write_text(index)
    for name, text in (
        ("apt-cache", "cat %s/index" % folder),
        ("apt-get", 'v=${!#}; v=${v#thing=}; cp %s/thing_"${v%%-*}".orig.tar.gz .' % pool),
    ):
        (tools / name).write_text("#!/bin/bash\n%s\n" % text)
        (tools / name).chmod(0o755)
    return {"PATH": "%s:%s" % (tools, os.environ["PATH"])}


def fetch_thing(folder, offered, stored):
    """Output and status of the fetch, and the version that it fetched."""
    env = source_mirror(folder, offered, stored)
    text = (
        '. %s/apt.sh\ngo() { cd "$SG_OUT"; sg_apt_source thing "1.*"; }\n'
        'sg_step thing title @1 -- go\ncat "$(sg_product thing)"/{VERSION,src/x}'
    ) % TOOLS
    return finished(steps(folder, text, **env))


@case
def source__newest(folder):
    """the newest version that matches is fetched"""
    versions = ["1.9-1", "1.10-1", "1.10~rc1-1", "2.0-1"]
    output, status = fetch_thing(folder, versions, versions)
    assert status == 0 and output.endswith("\n1.10-1\ncontent"), output


@case
def source__incomplete_mirror(folder):
    """if the mirror lacks a version that it names, the next older one is fetched"""
    output, status = fetch_thing(folder, ["1.9-1", "1.10-1"], ["1.9-1"])
    assert status == 0 and output.endswith("\n1.9-1\ncontent"), output


@case
def source__none(folder):
    """a mirror that has none of the versions is an error that names them"""
    output, status = fetch_thing(folder, ["1.9-1", "1.10-1"], [])
    assert status == 1, output
    assert "does not have the source of thing 1.10-1" in output, output
    assert "does not have the source of thing 1.9-1" in output, output


@case
def packages__missing_only(folder):
    """packages for this machine are fetched if it lacks them, and unpacked without installation"""
    made, tools = folder / "made" / "DEBIAN", folder / "bin"
    for place in (made, tools, folder / "cache" / "apt-host"):
        place.mkdir(parents=True)
    (folder / "cache" / "apt-host" / ".updated").touch()
    (made.parent / "tool").write_text("unpacked\n")
    (made / "control").write_text(
        "Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x.invalid>\n"
        "Description: x\n"
    )
    subprocess.run(
        ["dpkg-deb", "-b", made.parent, folder / "thing.deb"], check=True, stdout=subprocess.DEVNULL
    )
    fetch = "for i; do case $i in Dir::Cache::archives=*) cp $SG_TOP/thing.deb ${i#*=};; esac; done"
    for name, text in (
        ("dpkg-query", '[ "${!#}" = thing ] || echo installed'),
        ("apt-get", 'echo "$*" > $SG_TOP/words; ' + fetch),
    ):
        (tools / name).write_text("#!/bin/bash\n%s\n" % text)
        (tools / name).chmod(0o755)
    text = (
        '. %s/apt.sh\nall="there thing"\nsg_missing $all\n'
        'go() { cd "$SG_OUT"; sg_apt_extract_missing root $all; }\n'
        'sg_step thing title @1 -- go\ncat "$(sg_product thing)"/{VERSION,root/tool}'
    ) % TOOLS
    env = {"PATH": "%s:%s" % (tools, os.environ["PATH"])}
    output, status = finished(steps(folder, text, **env))
    assert status == 0 and output.startswith("thing\n"), output
    assert output.endswith("\nthing.deb\nunpacked\n"), output
    words = (folder / "words").read_text().split()
    assert {"--download-only", "Dir::State::status=/var/lib/dpkg/status"} <= set(words), words


def configure(*args):
    """Status and standard error of configure."""
    run = subprocess.run(
        [str(TOP / "configure"), *args], capture_output=True, text=True, check=False, env=os.environ
    )
    return run.returncode, run.stderr + run.stdout


@case
def configure__bad_options(folder):
    """configure refuses what it does not understand with status 2"""
    for option in (
        "--nonsense",
        "--jobs=x",
        "--jobs=0",
        "--kvm=maybe",
        "--cache",
        "--cache=",
        "--qemu-src=" + str(folder),
        "--cache=/a b",
        "extra",
    ):
        status, words = configure(option)
        assert status == 2 and words.startswith("configure: "), (option, status, words)


@case
def configure__help(_folder):
    """configure --help names every option"""
    status, words = configure("--help")
    assert status == 0
    for option in (
        "--cache=",
        "--build=",
        "--qemu-src=",
        "--enable-sanitizers",
        "--kvm=",
        "--jobs=",
    ):
        assert option in words, option


def main():
    return cases.run(CASES)


if __name__ == "__main__":
    sys.exit(main())
