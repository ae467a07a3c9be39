# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the user, for up --kernel (docs/own-kernel.md).

  DIR                        a built tree, or the folder of a build outside of the tree (make O=)
  FILE with --modules DIR    a bzImage, and its folder /lib/modules/RELEASE
  FILE.deb                   a Debian kernel package, with the packages of its headers beside it

`find` checks all that can be checked before anything is built, and says what lacks.  `build` runs
tools/guest/own-kernel.sh, which builds our driver (and siw) and packs modules and initramfs, in the
cache.  A kernel's facts are a dictionary of plain values, which lab.json keeps.
"""
import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import kernel_files, paths, proc
from .errors import LabError, UsageError

SCRIPT = paths.TOP / "tools" / "guest" / "own-kernel.sh"
MODULES_MAX = 100000  # files
UNPACK_S = 300  # seconds
# Members of each kernel's facts that the script gets.
WORDS = ("kind", "release", "image", "config", "modules", "build", "siw", "llvm", "id")
SLOW = ("KASAN", "PROVE_LOCKING", "KMSAN", "KCSAN")
# Options that keep our driver out, and why.
FORBIDDEN = {
    "MODULE_SIG_FORCE": "it would refuse our driver, which has no signature",
    "TRIM_UNUSED_KSYMS": "it drops the symbols that our driver needs",
}


def is_path(text):
    """Whether the value of --kernel names files, and not a kernel of ours."""
    return "/" in text or text.startswith(("~", ".")) or os.path.exists(text)


def find(text, modules, wanted):
    """The facts of a kernel.  wanted: parts of the fragment that the lab needs besides."""
    path = Path(os.path.expanduser(text)).absolute()
    if not path.exists():
        raise UsageError("--kernel: there is no %s" % path)
    if path.is_dir():
        if modules:
            raise UsageError("--modules has no meaning for a tree, which has its modules")
        facts, config = _tree(path)
    elif not path.is_file():
        raise UsageError("--kernel: %s is not a file" % path, "Give a file, or a built tree")
    elif path.suffix == ".deb":
        if modules:
            raise UsageError("--modules has no meaning for a package, which has its modules")
        facts, config = _package(path)
    else:
        facts, config = _files(path, modules)
    facts["source"] = str(path)
    return _checked(facts, config, wanted)


def _made(path, what, how):
    if not path.is_file():
        raise UsageError("--kernel: %s" % what, how)
    return path


def _tree(path):
    """A folder in which a kernel was built."""
    make = "Build it:  make -C %s -j bzImage modules" % path
    if not (path / "Makefile").exists():
        raise UsageError(
            "--kernel: %s is not a kernel tree: it has no Makefile" % path,
            "Give the folder in which make ran (with O=DIR, that folder)",
        )
    config = _made(
        path / ".config",
        "the tree %s is not configured" % path,
        "Make a .config, merge %s into it, and build it" % kernel_files.FRAGMENT,
    )
    text = kernel_files.config_of(config)
    options = kernel_files.options_of(text)
    _check_architecture(text, options, path)
    _check_modular(options)
    release = _made(
        path / "include" / "config" / "kernel.release", "the tree %s is not built" % path, make
    )
    image = path / "arch" / "x86" / "boot" / "bzImage"
    _made(image, "the tree %s has no kernel image" % path, make)
    for name in ("Module.symvers", "modules.order"):
        _made(path / name, "the modules of the tree %s are not built (no %s)" % (path, name), make)
    facts = {
        "kind": "tree",
        "release": release.read_text(errors="replace").strip(),
        "image": str(image),
        "config": str(config),
        "modules": "",
        "build": str(path),
    }
    if kernel_files.Image(image).release() != facts["release"]:
        raise UsageError("--kernel: the image of %s is older than its configuration" % path, make)
    return facts, text


def _modules_folder(text, release):
    """DIR or DIR/lib/modules/RELEASE."""
    given = Path(os.path.expanduser(text)).absolute()
    for folder in (given, given / "lib" / "modules" / release, given / release):
        if (folder / "kernel").is_dir() or (folder / "modules.order").exists():
            if folder.name != release and not (folder / "vmlinuz").exists():
                raise UsageError(
                    "--modules %s: the modules are of %s, and the kernel is %s"
                    % (text, folder.name, release),
                    "Name the folder /lib/modules/%s that belongs to the kernel" % release,
                )
            return folder
    raise UsageError(
        "--modules %s has no modules" % text,
        "Give the folder that `make modules_install INSTALL_MOD_PATH=DIR` has filled",
    )


def _files(path, modules):
    image = kernel_files.Image(path)
    release = image.release()
    if not modules:
        raise UsageError(
            "--kernel %s needs its modules" % path,
            "Add --modules DIR, the folder /lib/modules/%s of that kernel" % release,
        )
    folder = _modules_folder(modules, release)
    build = folder / "build"
    if not (build / "Makefile").exists():
        raise UsageError(
            "--modules: our driver cannot be built for %s: %s is not there" % (release, build),
            "Link it to the folder in which the kernel was built, or to its headers:  ln -s DIR %s"
            % build,
        )
    places = (
        folder / "config",
        path.with_name("config-" + release),
        path.with_name("config"),
        build / ".config",
    )
    for place in places:
        if place.exists():
            config, text = str(place), kernel_files.config_of(place)
            break
    else:
        config, text = "", image.config()
    if text is None:
        raise UsageError(
            "--kernel: nothing tells how %s was configured" % path,
            "Put its .config beside it as config-%s, or build it with CONFIG_IKCONFIG" % release,
        )
    options = kernel_files.options_of(text)
    _check_architecture(text, options, path)
    _check_modular(options)
    facts = {
        "kind": "files",
        "release": release,
        "image": str(path),
        "config": config,
        "modules": str(folder),
        "build": str(build.resolve()),
    }
    return facts, text


def _field(path, name):
    done = proc.ask(["dpkg-deb", "-f", path, name])
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise UsageError("--kernel: %s: %s" % (path, words[-1] if words else "no package"))
    return done.stdout.strip()


def _contents(path, folder, *names):
    """Unpacks members of a package into the folder."""
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as reader:
        try:
            words = ["tar", "-C", folder, "--wildcards", "-xf", "-", *names]
            proc.ask(words, UNPACK_S, stdin=reader.stdout)
        except LabError:
            reader.kill()
            raise
        said = reader.stderr.read().strip().splitlines()
    if reader.returncode:
        raise UsageError(
            "--kernel: %s: %s" % (path, said[-1] if said else "damaged"), "Fetch the package again"
        )


def _package(path):
    name, machine = _field(path, "Package"), _field(path, "Architecture")
    if machine != "amd64":
        raise UsageError("--kernel: %s is for %s; the VMs are amd64" % (path, machine))
    release = re.sub(r"^linux-image-|-unsigned$", "", name)
    if not name.startswith("linux-image-") or not kernel_files.RELEASE.match(release):
        raise UsageError(
            "--kernel: the package %s has no kernel" % name,
            "Its name must be linux-image-RELEASE; linux-image-amd64 only depends on one",
        )
    parts = _parts(path, release)
    with tempfile.TemporaryDirectory(prefix="staghorn-kernel-") as folder:
        for part in parts:
            _contents(part, folder, "./boot/*", "*/modules/%s/config" % release, "*/vmlinuz")
        config, image = _config_and_image(Path(folder), release)
        if not config.exists():
            raise UsageError("--kernel: %s has no /boot/config-%s" % (path, release))
        text = kernel_files.config_of(config)
        options = kernel_files.options_of(text)
        _check_architecture(text, options, path)
        _check_modular(options)
        kernel_files.Image(image)
    facts = {
        "kind": "package",
        "release": release,
        "image": ":".join(map(str, parts)),
        "config": "",
        "modules": "",
        "build": ":".join(map(str, _headers(path, release))),
    }
    return facts, text


def _beside(path, name):
    """The package of that name beside another one, the newest of several; or None."""
    found = sorted(path.parent.glob(name.replace("[", "[[]") + "_*.deb"))
    return found[-1] if found else None


def _config_and_image(folder, release):
    """Where they are in the unpacked packages: in /boot or, since Linux 7, with the modules."""
    if (folder / "boot" / ("config-" + release)).exists():
        return folder / "boot" / ("config-" + release), folder / "boot" / ("vmlinuz-" + release)
    modules = folder / "usr" / "lib" / "modules" / release
    if (modules / "config").exists():
        return modules / "config", modules / "vmlinuz"
    return folder / "boot" / ("config-" + release), folder / "boot" / ("vmlinuz-" + release)


def _parts(path, release):
    """The packages of a kernel.  Since Linux 7 linux-image-RELEASE only depends on them."""
    names = re.findall(
        r"\b(linux-(?:base|binary|modules)-%s)\b" % re.escape(release), _field(path, "Depends")
    )
    found = {name: _beside(path, name) for name in names}
    missing = [name for name in names if not found[name]]
    if missing:
        raise UsageError(
            "--kernel: %s depends on %s, and not all of these packages are beside it"
            % (path, ", ".join(names)),
            "Fetch them:  cd %s && apt-get download %s" % (path.parent, " ".join(missing)),
        )
    return [path, *found.values()]


def _headers(path, release):
    """The packages that modules are built with."""
    first = "linux-headers-" + release
    found, missing, todo = [], [], [first]
    while todo:
        name = todo.pop()
        package = _beside(path, name)
        if package is None:
            missing.append(name)
            continue
        found.append(package)
        words = _field(package, "Depends")
        more = re.findall(r"(linux-headers-[^ ,]+-common[^ ,]*|linux-kbuild-[^ ,]+)", words)
        todo += [word for word in more if _beside(path, word) not in found]
    if missing:
        raise UsageError(
            "--kernel: our driver cannot be built for %s: %s not beside %s"
            % (release, ", ".join(missing) + (" is" if len(missing) == 1 else " are"), path.name),
            "Fetch them:  cd %s && apt-get download %s" % (path.parent, " ".join(missing)),
        )
    return sorted(found)


# -- checks


def _check_architecture(text, options, path):
    if options.get("X86_64") != "y":
        found = kernel_files.architecture(text)
        bits = ", 32 bits" if found == "x86" else ""
        raise UsageError(
            "--kernel: %s is configured for %s%s; the VMs are x86-64" % (path, found, bits)
        )


def _check_modular(options):
    if options.get("MODULES") != "y":
        raise UsageError(
            "--kernel: the kernel is without modules, and our driver is one",
            "Configure it with CONFIG_MODULES=y",
        )


def _checked(facts, text, wanted):
    """Adds to the facts what its configuration says, or says what lacks."""
    options = kernel_files.options_of(text)
    for name, why in FORBIDDEN.items():
        if options.get(name) == "y":
            raise UsageError("--kernel: the kernel has CONFIG_%s: %s" % (name, why))
    if not kernel_files.RELEASE.match(facts["release"]):
        raise UsageError("--kernel: %r is no release of Linux" % facts["release"])
    known = kernel_files.parts()
    builds_siw = facts["release"].startswith("6.12.") and options.get("RDMA_SIW") not in ("y", "m")
    lines = []
    for part in ("boot", "rdma", *wanted):
        if part != "siw" or not builds_siw:
            lines += ["%s (for %s)" % (x, part) for x in kernel_files.lacking(options, known[part])]
    if lines:
        raise UsageError(
            "--kernel: the kernel lacks options:\n    " + "\n    ".join(lines),
            "All are in %s; merge it into the .config" % kernel_files.FRAGMENT,
        )
    symbols = Path(facts["build"]) / "Module.symvers"
    if facts["kind"] != "package" and not kernel_files.exports(symbols, "ib_register_device"):
        raise UsageError(
            "--kernel: %s does not name ib_register_device" % symbols,
            "The modules were built without CONFIG_INFINIBAND, or not at all: make modules",
        )
    facts["lacks"] = [line.split("=")[0] for line in kernel_files.lacking(options, known["more"])]
    facts["slow"] = any(options.get(name) == "y" for name in SLOW)
    facts["siw"] = "yes" if builds_siw else ""
    facts["llvm"] = "1" if options.get("CC_IS_CLANG") == "y" else ""
    facts["text"] = "" if facts["config"] else text
    facts["id"] = _identity(facts, text)
    return facts


def _stats(folder):
    """A line for each module in a folder: name, length, time."""
    count = 0
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(x for x in folders if not os.path.islink(os.path.join(base, x)))
        for name in sorted(files):
            if re.search(r"\.ko(\.xz|\.zst|\.gz)?\Z", name):
                count += 1
                if count > MODULES_MAX:
                    raise UsageError("%s has more than %d modules" % (folder, MODULES_MAX))
                found = os.stat(os.path.join(base, name))
                place = os.path.relpath(base, folder)
                yield "%s/%s %d %d" % (place, name, found.st_size, found.st_mtime_ns)


def _identity(facts, text):
    """Hash of all that the result depends on, besides our own sources.  Modules count by length and
    time, all else by content."""
    found = hashlib.sha256()
    for word in (facts["kind"], facts["release"], facts["llvm"], text):
        found.update(word.encode() + b"\0")
    if facts["kind"] == "package":
        content = facts["image"].split(":") + facts["build"].split(":")
    else:
        content = [facts["image"], os.path.join(facts["build"], "Module.symvers")]
    for path in content:
        with contextlib.suppress(FileNotFoundError):
            found.update(hashlib.sha256(Path(path).read_bytes()).digest())
    if facts["kind"] != "package":
        for line in _stats(facts["modules"] or facts["build"]):
            found.update(line.encode() + b"\n")
    return found.hexdigest()[:32]


# -- building


def build(facts, say, only=None):
    """Builds what is not in the cache; returns the product's folder.

    only="driver": just our driver; the folder has staghorn.ko."""
    with tempfile.TemporaryDirectory(prefix="staghorn-kernel-") as folder:
        words = {name: facts[name] for name in WORDS}
        if not words["config"] and facts["text"]:
            words["config"] = os.path.join(folder, "config")
            Path(words["config"]).write_text(facts["text"])
        command = [str(SCRIPT), *(["--only", only] if only else [])]
        command += ["%s=%s" % item for item in words.items()]
        return product_of(run_script(command, "the kernel %s" % facts["release"], say))


def run_script(command, what, say, show=False):
    """Runs a build script, whose steps are shown; returns its last lines.  Its failure is an error
    with these.  show: all that it says goes to the terminal instead, with the seconds that pass."""
    said = []
    try:
        child = subprocess.Popen(
            command,
            env={**os.environ, "SG_BUILD": str(paths.build())},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if show else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise LabError("%s: %s" % (command[0], error.strerror))
    try:
        for line in child.stdout or ():
            said = [*said[-60:], line.rstrip()]
            if line.startswith("["):
                say(line.rstrip())
        status = child.wait()
    except BaseException:
        child.terminate()  # the script removes what is half made
        child.wait(30)
        raise
    if status:
        why = "\n    ".join(filter(None, said)) or "the lines above say why"
        raise LabError(
            "%s cannot be prepared:\n    %s" % (what, why),
            "The whole log is in %s" % (paths.build() / "logs"),
        )
    return said


def product_of(said):
    """The folder that a script's last line names."""
    word, _, folder = said[-1].partition(": ") if said else ("", "", "")
    if word != "product" or not os.path.isdir(folder):
        raise LabError("a build script did not end as it should", "Run the same command again")
    return folder
