#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of `up --kernel`, `--modules` and `--share` without a VM: what is refused, and why.

Trees, images and packages are small fakes that have what the launcher reads.
"""
import os
import shutil
import struct
import subprocess
import sys
import types
import zlib
from pathlib import Path

import cases

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
from launcher import kernel_files, options, own_kernel, proc, reload, share  # noqa: E402
from launcher.errors import LabError, UsageError  # noqa: E402

CASES = []
RELEASE = "6.12.9-mine"
SYMVERS = "0x12345678\tib_register_device\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\t\n"


def case(function):
    """Registers a test; its docstring is its name."""
    CASES.append(function)
    return function


def config_text(without=(), more="", architecture="x86"):
    """A configuration with all that our fragment has."""
    lines = ["# Linux/%s %s Kernel Configuration" % (architecture, RELEASE)]
    for part in kernel_files.parts().values():
        lines += ["CONFIG_%s=%s" % item for item in part.items() if item[0] not in without]
    return "\n".join(lines) + "\n" + more


def image(release=RELEASE, config=None, flags=1):
    """A bzImage's header, and a payload that is packed with gzip."""
    data = bytearray(0x400)
    data[0x1F1] = 1
    data[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", data, 0x206, 0x20F)
    struct.pack_into("<H", data, 0x20E, 0x100)
    words = release.encode() + b" (me@here) #1"
    data[0x300 : 0x300 + len(words)] = words
    struct.pack_into("<H", data, 0x236, flags)
    kernel = b"code"
    if config is not None:
        packer = zlib.compressobj(wbits=31)
        packed = packer.compress(config.encode()) + packer.flush()
        kernel += b"IKCFG_ST" + packed + b"IKCFG_ED"
    packer = zlib.compressobj(wbits=31)
    payload = packer.compress(kernel) + packer.flush()
    struct.pack_into("<I", data, 0x24C, len(payload))
    return bytes(data) + payload


def tree(folder, text=None, release=RELEASE, missing=()):
    """A folder that looks like a built tree."""
    files = {
        "Makefile": b"",
        ".config": (config_text() if text is None else text).encode(),
        "include/config/kernel.release": (RELEASE + "\n").encode(),
        "arch/x86/boot/bzImage": image(release),
        "Module.symvers": SYMVERS.encode(),
        "modules.order": b"drivers/infiniband/core/ib_core.o\n",
    }
    for name, data in files.items():
        if name not in missing:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return str(folder)


def refused(text, *words, modules=None, wanted=()):
    """The message of the kernel's refusal has these words; returns it."""
    try:
        own_kernel.find(str(text), modules and str(modules), wanted)
    except UsageError as error:
        for word in words:
            assert word in error.text(), (word, error.text())
        assert error.hint, error
        return error.text()
    raise AssertionError("%s was taken" % text)


@case
def tree__taken(folder):
    """a built tree with all options is taken, with its release, and nothing is said to lack"""
    facts = own_kernel.find(tree(folder), None, ["share", "pmem", "siw"])
    assert facts["kind"] == "tree" and facts["release"] == RELEASE, facts
    assert facts["lacks"] == [] and not facts["slow"] and facts["llvm"] == "", facts
    slow = own_kernel.find(tree(folder, config_text(more="CONFIG_KASAN=y\n")), None, [])
    assert slow["slow"] and slow["id"] != facts["id"]
    clang = own_kernel.find(tree(folder, config_text(more="CONFIG_CC_IS_CLANG=y\n")), None, [])
    assert clang["llvm"] == "1", clang


@case
def tree__id_follows_content(folder):
    """the id changes with a module or a symbol, not with the tree's place or the image's time"""
    place = tree(folder / "one")
    first = own_kernel.find(place, None, [])["id"]
    os.utime(folder / "one" / "arch" / "x86" / "boot" / "bzImage", (1, 1))
    assert own_kernel.find(place, None, [])["id"] == first
    assert own_kernel.find(tree(folder / "two"), None, [])["id"] == first
    (folder / "one" / "new.ko").write_bytes(b"x")
    second = own_kernel.find(place, None, [])["id"]
    (folder / "one" / "Module.symvers").write_text(SYMVERS * 2)
    assert len({first, second, own_kernel.find(place, None, [])["id"]}) == 3


@case
def tree__not_built(folder):
    """a tree in which something was not made is refused, and what to run is said"""
    for number, (missing, *words) in enumerate(
        (
            ("Makefile", "not a kernel tree"),
            (".config", "is not configured", "staghorn.config"),
            ("include/config/kernel.release", "is not built", "make -C"),
            ("arch/x86/boot/bzImage", "no kernel image", "make -C"),
            ("Module.symvers", "no Module.symvers", "bzImage modules"),
            ("modules.order", "no modules.order", "bzImage modules"),
        )
    ):
        refused(tree(folder / str(number), missing=[missing]), *words)
    refused(tree(folder / "old", release="6.12.8"), "older than its configuration")
    refused(folder / "absent", "there is no")


@case
def tree__wrong_configuration(folder):
    """another architecture, no modules, options that lack: each is named"""
    refused(tree(folder, config_text(["X86_64"], architecture="arm64")), "arm64", "x86-64")
    refused(tree(folder, config_text(["X86_64"])), "32 bits")
    refused(tree(folder, config_text(["MODULES"])), "without modules", "CONFIG_MODULES=y")
    text = refused(
        tree(folder, config_text(["OVERLAY_FS", "INFINIBAND"])),
        *("CONFIG_OVERLAY_FS=m (for boot)", "CONFIG_INFINIBAND=m (for rdma)", "staghorn.config"),
    )
    assert text.count("CONFIG_") == 2, text
    # A module cannot be where a line of the fragment says that it must be built in.
    serial = config_text(["SERIAL_8250"], "CONFIG_SERIAL_8250=m\n")
    refused(tree(folder, serial), "CONFIG_SERIAL_8250=y (for boot)")
    refused(tree(folder, config_text(more="CONFIG_MODULE_SIG_FORCE=y\n")), "no signature")
    refused(tree(folder, config_text(more="CONFIG_TRIM_UNUSED_KSYMS=y\n")), "symbols")


@case
def tree__parts(folder):
    """what only some labs need lacks only there; the rest is mentioned"""
    place = tree(folder, config_text(["9P_FS", "ACPI_NFIT", "CONFIGFS_FS", "RDMA_SIW"]))
    facts = own_kernel.find(place, None, ["siw"])
    assert facts["lacks"] == ["CONFIG_CONFIGFS_FS"] and facts["siw"] == "yes", facts
    refused(place, "CONFIG_9P_FS=m (for share)", wanted=["share"])
    refused(place, "CONFIG_ACPI_NFIT=m (for pmem)", wanted=["pmem"])
    (folder / "include/config/kernel.release").write_text("6.1.7\n")
    (folder / "arch/x86/boot/bzImage").write_bytes(image("6.1.7"))
    refused(place, "CONFIG_RDMA_SIW=m (for siw)", wanted=["siw"])
    assert own_kernel.find(place, None, [])["siw"] == ""


@case
def tree__symbols(folder):
    """modules that were built without InfiniBand are noticed"""
    place = tree(folder)
    (folder / "Module.symvers").write_text("0x1\tother\tvmlinux\tEXPORT_SYMBOL\t\n")
    refused(place, "ib_register_device", "make modules")


@case
def image__not_for_these_vms(folder):
    """a file that is no image for x86-64 is refused by what it is"""
    arm = bytearray(64)
    arm[56:60] = b"ARMd"
    for number, (data, word) in enumerate(
        (
            (b"\x7fELF" + bytes(100), "bzImage"),
            (b"\x1f\x8b" + bytes(100), "gzip"),
            (bytes(arm), "arm64"),
            (b"hello", "no Linux kernel"),
            (b"", "no Linux kernel"),
            (image(flags=0), "32-bit"),
            (image()[:0x206], "cut short"),
            (image()[:0x208], "cut short"),
            (image(release="\x01\x02"), "release"),
        )
    ):
        path = folder / str(number)
        path.write_bytes(data)
        try:
            own_kernel.find(str(path), str(folder), [])
            raise AssertionError("case %d was taken" % number)
        except UsageError as error:
            assert word in error.text(), (word, error.text())


def installed(folder, release=RELEASE):
    """A folder lib/modules/RELEASE with a link to what it was built in."""
    place = folder / "lib" / "modules" / release
    (place / "kernel").mkdir(parents=True)
    tree(folder / "headers")
    (place / "build").symlink_to(folder / "headers")
    return place


@case
def files__taken(folder):
    """an image with its modules is taken; its configuration may be in the image itself"""
    path = folder / "bzImage"
    path.write_bytes(image(config=config_text()))
    place = installed(folder)
    for given in (place, folder):
        facts = own_kernel.find(str(path), str(given), [])
        assert facts["kind"] == "files" and facts["modules"] == str(place), facts
        assert facts["build"] == str(folder / "headers"), facts
    (folder / "headers" / ".config").unlink()
    facts = own_kernel.find(str(path), str(folder), [])
    assert facts["config"] == "" and facts["text"] == config_text(), facts
    path.write_bytes(image())
    refused(path, "nothing tells how", "IKCONFIG", modules=folder)
    path.write_bytes(image(config=config_text(["VIRTIO_BLK"])))
    refused(path, "CONFIG_VIRTIO_BLK=m", modules=folder)


@case
def files__modules(folder):
    """modules that are missing, of another release, or without a build folder are refused"""
    path = folder / "bzImage"
    path.write_bytes(image(config=config_text()))
    refused(path, "needs its modules", "/lib/modules/" + RELEASE)
    (folder / "empty").mkdir()
    refused(path, "has no modules", modules=folder / "empty")
    other = installed(folder / "other", "6.1.0")
    refused(path, "of 6.1.0", RELEASE, modules=other)
    place = installed(folder)
    (place / "build").unlink()
    refused(path, "cannot be built", "ln -s", modules=place)
    refused(tree(folder / "tree"), "no meaning", modules=place)


def package(folder, name, files, **fields):
    """Makes NAME_1_amd64.deb in the folder."""
    root = folder / "root"
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (root / "DEBIAN").mkdir(parents=True)
    known = {"Package": name, "Version": "1", "Architecture": "amd64", "Maintainer": "m <m@m.m>"}
    text = "".join("%s: %s\n" % item for item in {**known, **fields}.items())
    (root / "DEBIAN" / "control").write_text(text + "Description: test\n")
    made = folder / ("%s_1_amd64.deb" % name)
    subprocess.run(["dpkg-deb", "-b", root, made], check=True, capture_output=True)
    shutil.rmtree(root)
    return made


@case
def package__of_a_kernel(folder):
    """a Debian kernel package is taken together with the packages of its headers"""
    files = {
        "boot/vmlinuz-" + RELEASE: image(),
        "boot/config-" + RELEASE: config_text().encode(),
    }
    path = package(folder, "linux-image-" + RELEASE, files)
    headers = "linux-headers-" + RELEASE
    refused(path, headers + " is not beside", "apt-get download " + headers)
    common = "linux-headers-6.12.9-common"
    first = package(folder, headers, {}, Depends="%s, linux-kbuild-6.12.9 (= 1), gcc" % common)
    text = refused(path, common, "linux-kbuild-6.12.9")
    assert headers + " " not in text, text
    rest = [package(folder, each, {}) for each in (common, "linux-kbuild-6.12.9")]
    facts = own_kernel.find(str(path), None, [])
    assert facts["kind"] == "package" and facts["release"] == RELEASE, facts
    assert facts["build"].split(":") == sorted(map(str, [first, *rest])), facts


@case
def package__in_parts(folder):
    """an image's package that only depends on others is taken together with them"""
    place = "usr/lib/modules/%s/" % RELEASE
    names = ["linux-%s-%s" % (part, RELEASE) for part in ("base", "binary", "modules")]
    depends = "linux-base (>= 4), " + ", ".join("%s (= 1)" % name for name in names)
    path = package(folder, "linux-image-" + RELEASE, {}, Depends=depends)
    package(folder, "linux-headers-" + RELEASE, {})
    refused(path, "not all of these", "apt-get download " + " ".join(names))
    files = [{place + "config": config_text().encode()}, {place + "vmlinuz": image()}, {}]
    parts = [package(folder, name, each) for name, each in zip(names, files)]
    facts = own_kernel.find(str(path), None, [])
    assert facts["image"].split(":") == [str(each) for each in (path, *parts)], facts


@case
def package__not_of_a_kernel(folder):
    """other packages, damaged ones and those of other architectures are refused"""
    refused(package(folder, "hello", {}), "has no kernel", "linux-image-RELEASE")
    refused(package(folder, "linux-image-amd64", {}), "has no kernel")
    other = package(folder, "linux-image-" + RELEASE, {}, Architecture="arm64")
    refused(other, "is for arm64")
    bad = folder / "linux-image-6.deb"
    bad.write_text("nonsense")
    refused(bad, "linux-image-6.deb")
    files = {"boot/config-" + RELEASE: config_text().encode() + os.urandom(1 << 16)}
    whole = package(folder, "linux-image-" + RELEASE, files)
    whole.write_bytes(whole.read_bytes()[: -(1 << 14)])
    refused(whole, whole.name, "Fetch the package again")


@case
def no_file__is_refused(folder):
    """a pipe, which nobody may ever write to, is refused at once wherever a file is wanted"""
    for name in ("kernel", "linux-image-6.deb", "module.ko"):
        os.mkfifo(folder / name)
    refused(folder / "kernel", "is not a file", modules=folder)
    refused(folder / "linux-image-6.deb", "is not a file")
    assert "is not a file" in reloading(str(folder / "module.ko"))
    place = Path(tree(folder / "tree"))
    (place / ".config").unlink()
    os.mkfifo(place / ".config")
    refused(place, "is not configured")


@case
def programs__that_fail(_folder):
    """a program of the host that does not end, or is not there, is an error with a text"""
    for words, text in (
        (["sleep", 60], "sleep did not end within 0.1 s"),
        (["/none/at/all"], "No such file"),
    ):
        try:
            proc.ask(words, 0.1)
            raise AssertionError(words)
        except LabError as error:
            assert text in error.text(), error.text()


@case
def option__names(_folder):
    """--kernel takes our kernels by name, and a name that is nothing is refused"""
    assert options.kernel("debug") == "debug" and options.kernel("./linux") == "./linux"
    try:
        options.kernel("bsae")
        raise AssertionError("it was taken")
    except UsageError as error:
        assert "there is no kernel bsae" in error.text() and "base, debug" in error.text()


@case
def script__fails(folder):
    """a build that fails shows its last words, and a build that cannot start is an error"""
    script = folder / "script"
    script.write_text(
        "#!/bin/sh\necho '[ 1/2] step'\necho 'driver.c:7: error: no member'\nexit 3\n"
    )
    script.chmod(0o755)
    said = []
    for command, word in (([str(script)], "driver.c:7"), ([str(folder / "none")], "No such file")):
        try:
            own_kernel.run_script(command, "the kernel", said.append)
            raise AssertionError("no error")
        except LabError as error:
            assert word in error.text(), error.text()
    assert said == ["[ 1/2] step"], said
    script.write_text("#!/bin/sh\necho '[ 1/1] step'\necho 'product: %s'\n" % folder)
    assert own_kernel.product_of(own_kernel.run_script([str(script)], "it", said.append)) == str(
        folder
    )
    for lines in ([], ["[ 1/1] step"], ["product: /nowhere"]):
        try:
            own_kernel.product_of(lines)
            raise AssertionError("%s was taken" % lines)
        except LabError as error:
            assert error.hint


# -- folders


def shared(*items, diskless=()):
    """The message of the refusal."""
    try:
        share.parse(list(items), set(diskless))
    except UsageError as error:
        assert error.hint, error
        return error.text()
    raise AssertionError("%s was taken" % (items,))


@case
def share__taken(folder):
    """a folder has a place in the guest, by its name or as told; QEMU's words fit"""
    (folder / "my work").mkdir()
    (folder / "a,b").mkdir()
    (folder / "src").mkdir()
    items = ["%s/my work:/mnt/w" % folder, "%s/a,b:/data/,ro" % folder, "%s/src" % folder]
    found = share.parse(items, set())
    assert [each["target"] for each in found] == ["/mnt/w", "/data", "/mnt/src"], found
    assert [each["read_only"] for each in found] == [False, True, False], found
    words = list(share.arguments(found))
    assert words[1].startswith("local,id=share0,path=%s/my work,security" % folder), words
    assert "/a,,b,security" in words[5] and words[5].endswith("readonly=on"), words
    assert share.kernel_arguments(found) == " sg.share=/mnt/w,/data:ro,/mnt/src"
    assert share.kernel_arguments([]) == "" and not list(share.arguments([]))


@case
def share__refused(folder):
    """what is no folder, or has no place in the guest, is refused"""
    (folder / "file").write_text("")
    (folder / "a b").mkdir()
    assert "there is no folder" in shared("%s/none" % folder)
    assert "there is no folder" in shared("")
    assert "not a folder" in shared("%s/file" % folder)
    assert "has no name" in shared("%s/a b" % folder)
    for target in ("/", "/a b", "/mnt/../etc", "/a,b"):
        assert "share: " in shared("%s:%s" % (folder, target))
    for target in ("/proc", "/usr/lib", "/dev/x"):
        assert "guest's own" in shared("%s:%s" % (folder, target))
    assert "two folders" in shared("%s:/mnt/a" % folder, "%s:/mnt/a/" % folder)
    assert "9 folders" in shared(*["%s:/mnt/%d" % (folder, n) for n in range(9)])
    assert "has no disk" in shared("%s:/mnt/a" % folder, diskless=["alpha"])


@case
def share__rights(folder):
    """without the right to write, only ,ro is taken"""
    path = folder / "mine"
    path.mkdir()
    allowed = {os.R_OK | os.X_OK: True, os.W_OK: False}
    share.os = types.SimpleNamespace(**vars(os))
    share.os.access = lambda _path, mode: allowed[mode]
    try:
        assert "Add ,ro" in shared(str(path))
        assert share.parse(["%s:/mnt/x,ro" % path], set())[0]["read_only"]
        allowed[os.R_OK | os.X_OK] = False
        assert "may not read" in shared("%s:/mnt/x,ro" % path)
    finally:
        share.os = os


@case
def up__options_that_exclude(folder):
    """up refuses options that do not go together, before it looks for the rest"""
    environment = {**os.environ, "STAGHORN_BUILD": str(folder), "STAGHORN_STATE": str(folder)}
    (folder / "firmware").mkdir()
    (folder / "firmware" / "profiles.ini").write_text("[full]\n")
    place = tree(folder / "tree")
    for words, text in (
        (("--modules", place), "--modules DIR belongs to"),
        (("--kernel", "debug", "--share", "%s:/mnt/x" % folder), "debug kernel has no 9p"),
        (("--kernel", place, "--netboot"), "boots only the kernels base and debug"),
        (("--kernel", "nonsense"), "there is no kernel nonsense"),
        (("--kernel", place, "--modules", place), "no meaning for a tree"),
    ):
        command = [str(TOP / "staghorn"), "up", *words]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2 and text in done.stderr, (words, done)
        assert not (folder / "labs").exists()


# -- reload


def reloading(*words, own=None, driver="staghorn", kernel="base"):
    """The message of reload's refusal, for a lab that seems to run."""
    lab = {"kernel": kernel, "own_kernel": own}
    folder = types.SimpleNamespace(data=lab, name="lab", running=lambda _: {"driver": driver})
    try:
        reload.reload(folder, "alpha", *words, False, lambda text: None)
    except LabError as error:
        assert error.hint, error
        return error.text()
    raise AssertionError("it was done")


@case
def reload__refused(folder):
    """reload refuses what is no module, a VM without a driver, and a tree that has changed"""
    assert "has no RDMA driver" in reloading(None, driver="none")
    assert "siw is not built" in reloading(None, driver="siw")
    assert "No such file" in reloading(str(folder / "none.ko"))
    (folder / "text.ko").write_text("hello")
    arm = b"\x7fELF\x02" + bytes(11) + b"\x01\0\xb7\0"
    (folder / "arm.ko").write_bytes(arm)
    for name in ("text.ko", "arm.ko"):
        assert "no kernel module for x86-64" in reloading(str(folder / name))
    own = own_kernel.find(tree(folder / "tree"), None, [])
    (folder / "tree" / "new.ko").write_bytes(b"x")
    assert "has changed since" in reloading(None, own=own, kernel="/cache/x")


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
