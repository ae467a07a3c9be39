# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs and their options.

A lab is used by many short runs of the launcher, and Python loads what it imports in each of them.
So a module that few verbs need is imported by these.
"""
import argparse
import json
import os
import signal
import sys
import time

from . import (
    accel,
    agent,
    arch,
    debugging,
    domain,
    errors,
    firmware,
    guest,
    impair,
    iommu,
    lab,
    paths,
)
from . import plug, ports, up_options
from . import console as console_module
from .errors import LabError, UsageError
from .state import LabFolder

DESCRIPTION = """Labs of virtual machines with Staghorn adapters on one Ethernet segment.

A lab has a name (--lab NAME, before the verb); several can run at once."""

EPILOG = (
    errors.__doc__
    + """
Environment: STAGHORN_STATE (folder of labs), STAGHORN_BUILD (build folder),
STAGHORN_QEMU (QEMU binary), STAGHORN_LAB (lab without --lab), STAGHORN_KERNEL
(kernel without --kernel), STAGHORN_KEEP_LOGS (folder for the logs of a lab that
does not come up)."""
)

TRACE_TEXT = "record what the adapters of VMs do, and show it on one time line"
TORTURE_TEXT = (
    "run programs and NFS over RDMA between a VM and its peer while its adapter has faults of a "
    "seed, and demand that the kernel and RDMA live through it; the status is 1 if they do not"
)
CRASH_TEXT = "record a workload, explore the states that a power cut could leave, check them"


def say(text):
    print(errors.spoken(text), file=sys.stderr, flush=True)


def emit(args, data, text):
    """Prints the result: as JSON if asked for, otherwise as text."""
    if getattr(args, "json", False):
        print(json.dumps(data, indent=1))
    elif text:
        print(errors.spoken(text))


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP came: clean up and exit."""


def interruptible():
    """From now on a signal raises Interrupted, once; nothing interrupts the clean-up."""

    def handler(number, _frame):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, handler)


# -- verbs


def do_up(args):
    interruptible()
    start = time.monotonic()
    state = lab.up(args.lab, args, accel.choose, (lambda text: None) if args.json else say)
    seconds = round(time.monotonic() - start, 1)
    slowest = max(vm["ready_s"] for vm in state["vms"].values())
    found = lab.status(args.lab)
    lines = [
        "lab %s is up after %.1f s (VMs ready for RDMA %.1f s after power-on)"
        % (args.lab, seconds, slowest),
        *debugging.gdb_lines(found["vms"]),
    ]
    emit(args, dict(found, up_s=seconds), "\n".join(lines))
    return 0


def do_down(args):
    interruptible()
    if not lab.down(args.lab, (lambda text: None) if args.json else say):
        if not args.json:
            say("lab %s was not up" % args.lab)
    emit(args, {"lab": args.lab, "state": "down"}, "")
    return 0


def do_status(args):
    if args.all:
        found = lab.status_all()
        emit(args, found, "\n\n".join(map(_table, found)) or "no lab is up")
        return 0
    LabFolder(args.lab).require()
    found = lab.status(args.lab)
    emit(args, found, _table(found))
    return 0


def _table(found):
    lines = [
        "lab %(lab)s: %(state)s, %(accel)s, MTU %(mtu)s, %(mem_mib)s MiB and %(cpus)s CPU each, "
        "segment %(segment)s" % found
    ]
    if found["state"] in ("abandoned", "dead"):
        lines[0] += "  (clear it: ./staghorn --lab %s down)" % found["lab"]
    if found["capture"]:
        lines.append("capture: " + found["capture"])
    lines += (
        arch.lines(found["vms"]) + iommu.lines(found["vms"]) + debugging.gdb_lines(found["vms"])
    )
    for vm in found["vms"].values():
        for end, links in vm["impair"].items():
            lines += ["impaired: %s %s %s" % (end, *link) for link in links.items()]
    lines += ports.lines(found["vms"])
    rows = [("VM", "STATE", "DRIVER", "DEVICE", "ADDRESS", "MAC", "PID", "READY")]
    for name, vm in found["vms"].items():
        rows.append(
            (
                name,
                vm["state"],
                vm["driver"],
                vm["device"] or "-",
                vm["address"],
                vm["mac"],
                str(vm["pid"] or "-"),
                "%.1f s" % vm["ready_s"] if vm["ready_s"] else "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
    return "\n".join(lines)


def do_exec(args):
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("exec: no command", "./staghorn exec VM -- COMMAND...")
    try:
        return _exec(args, command)
    except LabError as error:
        if error.status != errors.TIMEOUT:
            error.status = errors.EXEC_FAILED
        raise


def _exec(args, command):
    folder = LabFolder(args.lab)
    folder.running(args.vm)
    environment = dict(item.split("=", 1) for item in args.env if "=" in item)
    terminal = tuple(reversed(os.get_terminal_size(0))) if args.tty and os.isatty(0) else (24, 80)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    session = agent.Session(
        folder,
        args.vm,
        command,
        None if args.no_input else 0,
        _to_terminal,
        environment,
        args.workdir,
        terminal if args.tty else None,
    )
    if args.tty and os.isatty(0):
        environment.setdefault("TERM", os.environ.get("TERM", "xterm"))
        signal.signal(
            signal.SIGWINCH,
            lambda *_: setattr(session, "resize", tuple(reversed(os.get_terminal_size(0)))),
        )
        with console_module._raw(0):
            return session.run(args.timeout)
    _forward_interrupts(session)
    return session.run(args.timeout)


def _to_terminal(stream, data):
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


def _forward_interrupts(session):
    """The first Ctrl-C goes to the command, the second one ends the launcher."""

    def handler(number, _frame):
        signal.signal(number, lambda *_: sys.exit(errors.INTERRUPTED))
        session.signals.append(int(number))

    signal.signal(signal.SIGINT, handler)


def do_copy(args):
    from . import transfer

    folder = LabFolder(args.lab)
    folder.require()
    start = time.monotonic()
    size = transfer.copy(folder, args.source, args.target)
    emit(args, {"bytes": size, "seconds": round(time.monotonic() - start, 3)}, "")
    return 0


def do_console(args):
    ended = console_module.console(LabFolder(args.lab), args.vm)
    if ended:
        say(ended)
    return 0


def do_log(args):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    console_module.show_log(LabFolder(args.lab), args.vm, args.follow, args.device)
    return 0


def do_cut(args):
    interruptible()
    state = lab.cut(args.lab, args.vm, args.policy, args.hard, not args.no_wait, args.timeout)
    if state is None:
        emit(args, {"vm": args.vm, "state": "off"}, "%s lost its power" % args.vm)
        return 0
    text = "%s lost its power for %.1f ms" % (args.vm, state["cut-us"] / 1e3)
    if "ready_s" in state:
        text += " and is ready after %.1f s" % state["ready_s"]
    emit(args, dict(state, vm=args.vm, state="on"), text)
    return 0


def do_pmem(args):
    folder = LabFolder(args.lab)
    domain.require(folder.running(args.vm), args.vm)
    settings = []
    for item in args.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError("pmem --set %s is not PROPERTY=VALUE" % item)
        settings.append((key, value))
    if args.arm is not None:
        settings.append(("arm", args.arm))
    if args.persist:
        settings.append(("persist", "on"))
    if args.export_log:
        settings.append(("export-log", os.path.abspath(args.export_log)))
    if settings:
        domain.change(folder, args.vm, settings)
    if args.report:
        found = domain.report(folder, args.vm, args.json)
        emit(args, found, "" if args.json else found.rstrip())
    elif args.json or not settings:
        found = domain.show(folder, args.vm)
        emit(args, found, domain.text_of(found))
    return 0


def do_link(args):
    lab.link(args.lab, args.vm, args.adapter, args.state == "up")
    emit(
        args,
        {"vm": args.vm, "adapter": args.adapter, "link": args.state},
        "%s: link of adapter %d is %s" % (args.vm, args.adapter, args.state),
    )
    return 0


def do_impair(args):
    found = lab.impair_links(args.lab, args.links, args.clear)
    emit(args, found, impair.text_of_all(found))
    return 0


def do_faults(args):
    from . import faults

    found = faults.run(LabFolder(args.lab), args)
    emit(args, found, faults.text_of(found))
    return 0


def do_torture(args):
    from . import torture

    interruptible()
    return torture.run(LabFolder(args.lab), args, say)


def do_guest(args):
    interruptible()
    return guest.run(args, emit, say)


def do_lint(args):
    from . import lint

    return lint.run(LabFolder(args.lab), args, emit)


def do_trace(args):
    from . import timeline

    return timeline.run(args, emit)


def do_unplug(args):
    plug.unplug(LabFolder(args.lab), args.vm, args.adapter)
    found = {"vm": args.vm, "adapter": args.adapter, "plugged": False}
    emit(args, found, "%s: adapter %d is unplugged" % (args.vm, args.adapter))
    return 0


def do_plug(args):
    plug.plug(LabFolder(args.lab), args.vm, args.adapter)
    found = {"vm": args.vm, "adapter": args.adapter, "plugged": True}
    emit(args, found, "%s: adapter %d is plugged in" % (args.vm, args.adapter))
    return 0


def do_reload(args):
    from . import reload

    interruptible()
    folder = LabFolder(args.lab)
    folder.require()
    with folder.lock():
        quiet = (lambda text: None) if args.json else say
        found = reload.reload(folder, args.vm, args.module, args.kill, quiet)
        folder.data["vms"][args.vm]["rdma"] = found["device"]
        folder.save()
    text = "%s: %s is ready with the new driver after %.1f s"
    emit(args, found, text % (args.vm, found["device"], found["seconds"]))
    return 0


def do_save(args):
    interruptible()
    size = lab.save(args.lab, args.vm, args.file, args.timeout, args.live)
    found = {"vm": args.vm, "state": "off", "bytes": size}
    emit(args, found, "%s is saved (%d MiB) and off" % (args.vm, size >> 20))
    return 0


def do_load(args):
    interruptible()
    seconds = lab.load(args.lab, args.vm, args.file, args.timeout)
    found = {"vm": args.vm, "state": "on", "ready_s": seconds}
    emit(args, found, "%s goes on after %.1f s" % (args.vm, seconds))
    return 0


def do_profiles(args):
    found = firmware.profiles()
    width = max(map(len, found))
    lines = ["%s  %s" % (name.ljust(width), text) for name, text in found.items()]
    emit(args, found, "\n".join(lines))
    return 0


def do_on(args):
    interruptible()
    quiet = (lambda text: None) if args.json else say
    seconds = lab.on(args.lab, args.vm, args.timeout, quiet)
    emit(
        args,
        {"vm": args.vm, "state": "on", "ready_s": seconds},
        "%s is ready after %.1f s" % (args.vm, seconds),
    )
    return 0


# -- options


def _add_up(verbs):
    parser = verbs.add_parser("up", help="start a lab and wait until RDMA is ready in all its VMs")
    up_options.add(parser)
    parser.set_defaults(run=do_up)


def _add_exec(verbs):
    parser = verbs.add_parser(
        "exec",
        help="run a command as root in a VM, and exit with its status",
        usage="staghorn [--lab NAME] exec [options] VM -- COMMAND...",
    )
    parser.add_argument("-t", "--tty", action="store_true", help="run it on a terminal")
    parser.add_argument("-n", "--no-input", action="store_true", help="give it an empty input")
    parser.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable",
    )
    parser.add_argument("-w", "--workdir", metavar="DIR", help="working folder [/root]")
    parser.add_argument("--timeout", type=float, metavar="S", help="end it after this many seconds")
    parser.add_argument("vm", metavar="VM")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    parser.set_defaults(run=do_exec)


def _add_simple(verbs, name, run, text, arguments=(), json_option=True):
    parser = verbs.add_parser(name, help=text, description=text)
    for argument, keywords in arguments:
        parser.add_argument(argument, **keywords)
    if json_option:
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)
    return parser


def _add_cut(verbs, vm):
    parser = _add_simple(
        verbs,
        "cut",
        do_cut,
        "cut the VM's power; with persistent memory (up --pmem) power comes back at once",
        vm,
    )
    parser.add_argument(
        "--policy",
        metavar="POLICY",
        help="what persistent memory keeps of the data that may be lost: lose-all, keep-all, "
        "random[:SEED], worst-for:[pmemN@]ADDRESS+LENGTH[:SEED] [the domain's property]",
    )
    parser.add_argument(
        "--hard", action="store_true", help="kill the VM's QEMU in any case; `on` starts it again"
    )
    parser.add_argument(
        "--no-wait", action="store_true", help="do not wait until the VM is ready again"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds until it must be ready")


def _add_pmem(verbs, vm):
    parser = _add_simple(
        verbs,
        "pmem",
        do_pmem,
        "show or change the VM's persistence domain, or show what its last power cut did",
        vm,
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PROPERTY=VALUE",
        help="such as domain=none, ddio=off, placement-delay=1000000; may be repeated "
        "(docs/manual/properties.md has all)",
    )
    parser.add_argument(
        "--arm",
        metavar="EVENT",
        help="cut the power at event:N, write-placed[:N], before-flush-answer[:N], "
        "after-flush-answer[:N], before-atomic-write[:N] or after-atomic-write[:N]; or off",
    )
    parser.add_argument(
        "--persist", action="store_true", help="write all visible data to the media"
    )
    parser.add_argument("--report", action="store_true", help="show the last power cut's report")
    parser.add_argument("--export-log", metavar="FILE", help="write the log of events to a file")


def _add_log(verbs, vm):
    parser = _add_simple(
        verbs,
        "log",
        do_log,
        "show what the VM wrote to its console (the newest 32 to 64 MiB are kept), or what QEMU "
        "logged about its devices",
        vm,
        False,
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the VM ends")
    parser.add_argument(
        "--device",
        action="store_true",
        help="the device log, as far as it is kept (the newest 4 to 8 MiB): the guest's and the "
        "peers' mistakes, queue pairs that went to error and why, and what up --trace asked for",
    )


def _add_reload(verbs, vm):
    parser = _add_simple(
        verbs, "reload", do_reload, "build the driver and load it into a running VM", vm
    )
    parser.add_argument("--module", metavar="FILE", help="load this file instead of building one")
    parser.add_argument(
        "--kill", action="store_true", help="end the VM's processes that use the driver"
    )


def _add_lint(verbs, vm):
    verb = _add_simple(
        verbs,
        "lint",
        do_lint,
        "show what the driver checker reports about a VM's driver (up --device-prop check=warn); "
        "the status is 1 if the driver made mistakes",
        vm,
    )
    verb.add_argument("-f", "--follow", action="store_true", help="show new reports until it ends")
    verb.add_argument(
        "--symbols",
        action="append",
        metavar="FILE",
        help="a program of the host that runs in the VM without address space randomisation "
        "(setarch -R): names its functions; repeatable",
    )


def _add_impair(verbs):
    _add_simple(
        verbs,
        "impair",
        do_impair,
        "show the impairment of links and its counters, change it, or clear it",
        [
            (
                "links",
                {
                    "nargs": "*",
                    "metavar": "LINK",
                    "help": "[VM[.N]:][rx:|tx:]NAME=VALUE[,...] as for up --impair; or without "
                    "settings, to show or clear these links",
                },
            )
        ],
    ).add_argument("--clear", action="store_true", help="stop impairing these links, or all")


def _add_faults(verbs, what):
    from . import faults

    text = "make a VM's adapter misbehave by rules, show the rules and what they did, or end them"
    faults.add(_add_simple(verbs, "faults", do_faults, text, what))


def _add_by_words(verbs, vm, words):
    """Verbs of many modules."""
    _add_torture(verbs, vm, words is None or "torture" in words)
    _add_trace(verbs, words is None or "trace" in words)
    _add_crash(verbs, words is None or "crash" in words)


def _add_torture(verbs, vm, whole):
    parser = _add_simple(verbs, "torture", do_torture, TORTURE_TEXT, vm, False)
    if whole:
        from . import torture

        torture.add(parser)


def _add_trace(verbs, whole):
    parser = _add_simple(verbs, "trace", do_trace, TRACE_TEXT)
    if whole:
        from . import timeline

        timeline.add(parser)


def _add_crash(verbs, whole):
    parser = verbs.add_parser("crash", help=CRASH_TEXT, description=CRASH_TEXT)
    if whole:
        from . import crash

        crash.add(parser)


class Parser(argparse.ArgumentParser):
    """A parser whose errors say what to do next, as the launcher's own do."""

    def format_help(self):
        return errors.spoken(super().format_help())

    def error(self, message):
        self.print_usage(sys.stderr)
        hint = errors.spoken(errors.USAGE_HINT)
        self.exit(errors.USAGE, "staghorn: %s\n  %s\n" % (message, hint))


def make_parser(words=None):
    """words: of the command line; verbs of many modules are complete only if named.  None: all."""
    parser = Parser(
        prog="staghorn",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--lab",
        default=os.environ.get("STAGHORN_LAB", "lab"),
        metavar="NAME",
        help="the lab [%(default)s]",
    )
    parser.add_argument("--version", action="version", version="Staghorn " + paths.version())
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    vm = [("vm", {"metavar": "VM"})]
    _add_up(verbs)
    _add_simple(verbs, "status", do_status, "show the lab's VMs").add_argument(
        "--all", action="store_true", help="all labs"
    )
    _add_simple(verbs, "down", do_down, "end the lab; nothing is left")
    _add_exec(verbs)
    _add_simple(
        verbs,
        "copy",
        do_copy,
        "copy a file or folder; one side, or both, is VM:PATH",
        [("source", {"metavar": "SRC"}), ("target", {"metavar": "DST"})],
    )
    _add_simple(
        verbs, "console", do_console, "use the VM's serial console; Ctrl-] leaves it", vm, False
    )
    _add_log(verbs, vm)
    _add_simple(verbs, "profiles", do_profiles, "list the capability profiles for up --profile")
    _add_cut(verbs, vm)
    _add_pmem(verbs, vm)
    which = [
        (
            "--adapter",
            {"type": int, "default": 0, "metavar": "N", "help": "which one [%(default)s]"},
        ),
    ]
    _add_simple(
        verbs, "unplug", do_unplug, "hot-unplug a VM's adapter and the NIC behind it", vm + which
    )
    _add_simple(verbs, "plug", do_plug, "plug an adapter in again and wait for RDMA", vm + which)
    _add_reload(verbs, vm)
    file = [("file", {"metavar": "FILE"})]
    limit = [("--timeout", {"type": float, "metavar": "S", "help": "seconds that it may take"})]
    _add_simple(
        verbs, "save", do_save, "write a VM's state to a file and switch it off", vm + file + limit
    ).add_argument("--live", action="store_true", help="let the guest run meanwhile")
    _add_simple(verbs, "load", do_load, "resume a saved VM", vm + file + limit)
    _add_simple(
        verbs,
        "link",
        do_link,
        "pull the Ethernet cable of a VM's adapter, or plug it in again",
        vm + [("state", {"choices": ("up", "down")})] + which,
    )
    _add_lint(verbs, vm)
    _add_impair(verbs)
    _add_faults(verbs, vm + which)
    _add_by_words(verbs, vm, words)
    guest.add(verbs, do_guest)
    _add_simple(
        verbs, "on", do_on, "switch a VM on again and wait until it is ready", vm
    ).add_argument("--timeout", type=float, metavar="S", help="seconds until it must be ready")
    return parser


def main(arguments=None):
    words = sys.argv[1:] if arguments is None else arguments
    args = make_parser(words).parse_args(words)
    try:
        return args.run(args)
    except LabError as error:
        print("staghorn: " + error.text(), file=sys.stderr)
        return error.status
    except (KeyboardInterrupt, Interrupted):
        print("staghorn: interrupted", file=sys.stderr)
        return errors.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return errors.FAILED
