#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the Makefile's targets do: tools/build/run.sh TARGET
#
#= make demo        build everything, boot two VMs, show RDMA between them
#= make check       build everything, test each area: before each commit
#= make check-full  make check, and all long tests in VMs: what CI runs
#= make check-fast  only tests without QEMU and VMs, with fewer seeds: unit, simulation, style
#= make check-file  only the tests of FILE=hw/core/verbs/queues/sq.c, or of all changed files
#= make check-debug test verbs, life cycle and ULPs on the debug kernel (DEBUG=test_nfs: only this)
#= make check-kernels  driver and provider for other Debian releases (KERNELS="bookworm sid")
#= make check-big-endian  unit tests, simulator and provider as programs for s390x, in QEMU
#= make check-arm64 RDMA between an arm64 and an x86-64 VM
#= make check-targets  whether the device compiles for each target of QEMU that has PCI
#= make lint        style, formatters, linters, checkpatch, sparse
#= make format      format C and Python (FILES=...; default: all of the tree)
#= make compdb      build/compile_commands.json, for editors: core, tests, device, driver, provider
#= make coverage    measure how much of each layer the unit and simulation tests reach
#= make bench       measure, compare with siw; status 1 if a target of scale or loss is missed
#= make fuzz        fuzz the parsers (FUZZ_SECONDS=60 for each)
#= make mutate      break the core on purpose, see which tests notice (MUTATE="--seed 2 --count 9")
#= make all         build everything
#= make native      only build the core, its tests and its benchmarks for this machine
#= make deb         Debian packages for the release of this machine, in build/debs
#= make deps        only fetch third-party sources
#= make guest       only build the guest image
#= make consumers   only build the guest images, including the ULP image
#= make debug-kernel  only build the guest image and the debug kernel
#= make guest-arm64  only build QEMU and guest for arm64 VMs (up --arch)
#= make clean       empty the build folder (settings and cache stay)
#= ./configure --help explains the settings
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/sources.sh"

# Two runs in one build folder would disturb each other.
lock_build() {
    mkdir -p "$SG_BUILD"
    exec {build_lock}> "$SG_BUILD/.lock"
    if ! flock -n "$build_lock"; then
        echo "Another run works in $SG_BUILD; waiting for it ..."
        flock "$build_lock"
    fi
    export SG_BUILD_LOCK=$build_lock
}

unlock_build() {
    exec {build_lock}>&-
}

fetch_all() {
    sg_tool_meson
    sg_source_qemu
    sg_source_lwip
    sg_source_rdma_core
    sg_source_siw
    sg_source_fio
    sg_tool_firmware
    sg_tool_schedulers
}

# setup_native FOLDER MESON-OPTION...: (re)configures our own meson project.
setup_native() {
    local folder=$SG_BUILD/$1
    shift
    if [ -e "$folder/build.ninja" ]; then
        CC=$SG_BUILD/bin/cc sg_meson setup --reconfigure "$folder" "$SG_TOP" "$@" && return 0
        rm -rf "$folder"
    fi
    CC=$SG_BUILD/bin/cc sg_meson setup "$folder" "$SG_TOP" "$@"
}

# The set of meson.build files is a key: meson itself does not notice a new one.
configure_native() {
    local name=$1 files
    shift
    files=$(cd "$SG_TOP" && find hw include tests tools -name meson.build | sort | tr '\n' ' ')
    set -- "$@" -Dlwip_dir="$(sg_product src-lwip)/src" \
        -Dfirmware_dir="$(sg_product firmware)/share"
    sg_write_cc
    sg_local "$name-configure" "configuring" "@$(sg_product meson)" "@$SG_TOP" "@$files" "@$*" \
        -- setup_native "$name" "$@"
}

# build_native NAME [TARGET...]: builds everything, or these targets.
build_native() {
    local name=$1
    shift
    sg_run "$name" "building" -- ninja -C "$SG_BUILD/$name" -j "$SG_JOBS" "$@"
}

configure_plain() {
    configure_native native -Dsuites=unit,sim -Dqemu="$SG_BUILD/qemu/qemu-system-x86_64"
}

native_plain() {
    configure_plain
    build_native native
}

native_sanitized() {
    configure_native native-san -Dsuites=unit,sim,qtest -Dsanitized=true \
        -Db_sanitize=address,undefined -Db_lundef=false \
        -Dqemu="$SG_BUILD/qemu-san/qemu-system-x86_64"
    build_native native-san
}

# The programs of the packages, with the flags that Debian's packages have.
native_packaged() {
    local flag
    for flag in CFLAGS CPPFLAGS LDFLAGS; do
        export "$flag=$(dpkg-buildflags --get $flag)"
    done
    configure_native deb-native -Dsuites=unit -Db_pie=true -Dwerror=false
    unset CFLAGS CPPFLAGS LDFLAGS
    build_native deb-native hw/explore/staghorn-explore hw/print/staghorn-trace
}

packages() {
    native_packaged
    run_part tools/packaging/deb.sh
}

# Default builds do not need these packages.
require_deb() {
    local missing
    [ "$SG_SANITIZERS" = 0 ] ||
        sg_die "QEMU would have sanitizers; run ./configure without --enable-sanitizers"
    # shellcheck disable=SC2086  # words: packages
    missing=$(sg_missing ${SG_DEB_PACKAGES:-} | tr '\n' ' ')
    [ -z "$missing" ] || sg_die "make deb needs packages that are missing: $missing" \
        "As root, run:  ./configure --enable-deb   (or apt-get install $missing)"
    case $(sg_host_suite) in
    bookworm | trixie) ;;
    *) sg_die "make deb makes packages for Debian 12 and 13; this is $(sg_host_suite)" ;;
    esac
}

# Scripts of other folders continue the progress numbering.
run_part() {
    local part=$1
    shift
    [ -x "$SG_TOP/$part" ] || sg_die "$part is missing from this tree"
    "$SG_TOP/$part" "$@" || exit $?
}

# A lab of three VMs, or with a capture, has its hub in the QEMU for x86-64.
arm64_parts() {
    run_part tools/build/qemu.sh plain arm64
    run_part firmware/build.sh
    run_part tools/guest/build.sh --arch arm64
}

run_check() {
    unlock_build
    echo
    /usr/bin/python3 "$SG_TOP/tools/build/check" "$@"
    exit $?
}

# The libraries of the suite's rdma-core; none if it is that of the guest, or its source is missing.
libraries_of() {
    [ ! -e "$SG_BUILD/products/guest-rdma-core-$1" ] || sg_product "guest-rdma-core-$1"
}

# The tests of verbs, life cycle, NFS and NVMe on the kernel of a suite.
check_kernel() {
    SG_RDMA_CORE=$(libraries_of "$1") \
        STAGHORN_KERNEL=$(echo "$(sg_product "kernel-image-$1")"/linux-image-*.deb) \
        /usr/bin/python3 "$SG_TOP/tools/build/check" --suite vm --suite full --patience 2 \
        test_verbs test_lifecycle test_nfs test_nvme
}

# What was compiled, and the tests on each kernel; the table at the end has one line for each.
run_kernels() {
    local suite status=0 table
    unlock_build
    if SG_RDMA_CORES="sid bookworm" /usr/bin/python3 "$SG_TOP/tools/build/check" --suite full \
        test_kernels; then
        table="compiled: passed"$'\n'
    else
        table="compiled: failed"$'\n'
        status=1
    fi
    for suite in ${KERNELS:-bookworm trixie-backports sid}; do
        echo
        echo "Linux $(cat "$(sg_product "kernel-headers-$suite")/KERNEL")"
        if [ ! -e "$(sg_product "kernel-driver-$suite")/staghorn.ko" ]; then
            table+="$suite: the driver does not compile"$'\n'
            status=1
        elif check_kernel "$suite"; then
            table+="$suite: passed"$'\n'
        else
            table+="$suite: failed"$'\n'
            status=1
        fi
    done
    printf '\n%s' "$table"
    exit $status
}

target=${1:-help}
case $target in
help)
    sed -n 's/^#= //p' "$0"
    ;;
deps)
    lock_build
    sg_plan 8
    fetch_all
    ;;
guest)
    lock_build
    run_part tools/guest/build.sh
    ;;
consumers)
    lock_build
    run_part tools/guest/build.sh --with consumers
    ;;
all | demo | bench)
    lock_build
    parts=()
    case $target in
    demo) sg_plan 24 ;;
    all) sg_plan 28 ;;
    bench)
        sg_plan 33
        parts=(--with consumers)
        ;;
    esac
    run_part tools/build/qemu.sh
    run_part firmware/build.sh
    run_part tools/guest/build.sh "${parts[@]}"
    [ "$target" = demo ] || run_part tools/guest/netboot.sh
    [ "$target" = demo ] || native_plain
    unlock_build
    case $target in
    demo) run_part tools/demo ;;
    bench)
        run_part tools/bench/bench
        run_part tools/bench/bench-curves
        run_part tools/bench/bench-consumers
        run_part tools/bench/bench-ethernet
        run_part tools/bench/bench-pmem
        run_part tools/bench/bench-checker
        run_part tools/bench/bench-record
        run_part tools/bench/bench-core "$SG_BUILD/native/tests/bench/bench_core" \
            "$SG_BUILD/bench/core.json"
        run_part tools/bench/bench-scale "$SG_BUILD/native/tests/bench/bench_scale" \
            "$SG_BUILD/bench/scale.json"
        run_part tools/bench/bench-loss "$SG_BUILD/native/tests/bench/bench_loss" \
            "$SG_BUILD/bench/loss.json"
        run_part tools/bench/bench-explore "$SG_BUILD/native/tests/unit/crash/bench-explore" \
            "$SG_BUILD/native/hw/explore/staghorn-explore" "$SG_BUILD/bench/explore.json"
        run_part tools/bench/bench-rpcrdma
        run_part tools/bench/bench-wires-vm
        run_part tools/bench/bench-wires "$SG_BUILD/native/tests/bench/bench_wires" \
            "$SG_BUILD/native/tests/bench/bench_core" "$SG_BUILD/bench/wires.json"
        ;;
    esac
    ;;
check | check-full)
    [ "${SG_DEB:-0}" = 0 ] || require_deb
    deb_steps=$([ "${SG_DEB:-0}" = 0 ] && echo 0 || echo 6)
    lock_build
    case $target in
    check)
        sg_plan $((25 + deb_steps))
        parts=()
        ;;
    check-full)
        sg_plan $((37 + deb_steps))
        parts=(--with consumers)
        ;;
    esac
    # Both sides need these.
    sg_tool_meson
    sg_source_lwip
    sg_beside "$SG_TOP/tools/build/qemu.sh" plain sanitized
    run_part firmware/build.sh
    run_part tools/guest/build.sh "${parts[@]}"
    run_part tools/guest/netboot.sh
    # full/test_kernels says what is missing.
    [ "$target" = check ] || "$SG_TOP/tools/guest/kernels.sh" || :
    [ "$target" = check ] || "$SG_TOP/tools/guest/providers.sh" sid || :
    [ "$target" = check ] || sg_tool_schedulers
    native_plain
    native_sanitized
    sg_join
    [ "${SG_DEB:-0}" = 0 ] || packages
    case $target in
    check) run_check ;;
    check-full) run_check --full ;;
    esac
    ;;
debug-kernel)
    lock_build
    sg_plan 21
    run_part tools/guest/build.sh
    run_part tools/guest/debug-kernel.sh
    ;;
check-debug)
    lock_build
    sg_plan 33
    run_part tools/build/qemu.sh
    run_part firmware/build.sh
    run_part tools/guest/build.sh --with consumers
    run_part tools/guest/debug-kernel.sh
    # shellcheck disable=SC2086  # words: parts of programs' names
    run_check --debug ${DEBUG:-}
    ;;
check-kernels)
    lock_build
    sg_plan 49
    run_part tools/build/qemu.sh
    run_part firmware/build.sh
    run_part tools/guest/build.sh --with consumers
    # shellcheck disable=SC2086  # words: suites
    run_part tools/guest/kernels.sh --images ${KERNELS:-bookworm trixie-backports sid}
    "$SG_TOP/tools/guest/providers.sh" --libraries || :
    run_kernels
    ;;
deb)
    require_deb
    lock_build
    sg_plan 15
    run_part tools/build/qemu.sh
    run_part firmware/build.sh
    sg_tool_firmware
    packages
    ;;
native)
    lock_build
    sg_plan 6
    sg_tool_meson
    sg_source_lwip
    sg_tool_firmware
    sg_tool_schedulers
    native_plain
    ;;
check-fast)
    lock_build
    sg_plan 5
    sg_tool_meson
    sg_source_lwip
    sg_tool_firmware
    native_plain
    run_check --fast --suite style --suite build --suite unit --suite sim
    ;;
check-file)
    lock_build
    sg_plan 6
    sg_tool_meson
    sg_source_lwip
    sg_tool_firmware
    sg_tool_schedulers
    configure_plain
    chosen=(--changed)
    [ -z "${FILE:-}" ] || chosen=(--file "$FILE")
    # Each word is a target of ninja.
    targets=$(/usr/bin/python3 "$SG_TOP/tools/build/check" "${chosen[@]}" --targets) || exit 2
    # shellcheck disable=SC2086
    [ -z "$targets" ] || build_native native $targets
    run_check --fast "${chosen[@]}"
    ;;
check-big-endian)
    lock_build
    sg_plan 7
    run_part tools/build/big-endian.sh
    run_check --suite big-endian
    ;;
check-targets)
    lock_build
    sg_plan 6
    run_part tools/build/qemu.sh targets
    ;;
guest-arm64)
    lock_build
    sg_plan 25
    arm64_parts
    ;;
check-arm64)
    lock_build
    sg_plan 42
    arm64_parts
    run_part tools/guest/build.sh
    run_check --suite arm64
    ;;
lint)
    lock_build
    sg_plan 7
    . "$SG_TOP/tools/guest/tree.sh"
    guest_tree
    sg_tool_meson
    sg_source_lwip
    sg_source_siw
    sg_tool_firmware
    native_plain
    run_check --suite style --suite lint
    ;;
format)
    # shellcheck disable=SC2086  # words: files
    run_part tools/build/format ${FILES:-}
    ;;
compdb)
    lock_build
    sg_plan 16
    run_part tools/build/qemu.sh --compile
    run_part tools/guest/compdb.sh
    sg_tool_firmware
    native_plain
    run_part tools/build/compdb
    ;;
coverage)
    lock_build
    sg_plan 5
    sg_tool_meson
    sg_source_lwip
    sg_tool_firmware
    # -O0, so that each line is counted by itself; "sanitized" only because it means fewer seeds.
    configure_native coverage -Dsuites=unit,sim -Db_coverage=true -Dbuildtype=debug -Dsanitized=true
    build_native coverage
    run_part tools/build/coverage "$SG_BUILD/coverage"
    ;;
fuzz)
    run_part tools/fuzz
    ;;
mutate)
    lock_build
    sg_plan 5
    sg_tool_meson
    sg_source_lwip
    sg_tool_firmware
    native_plain
    # shellcheck disable=SC2086  # words: options of tools/mutate
    run_part tools/mutate ${MUTATE:-}
    ;;
clean)
    lock_build
    find "$SG_BUILD" -mindepth 1 -maxdepth 1 ! -name .lock ! -name 'config.*' -exec rm -rf {} +
    echo "emptied $SG_BUILD (the settings stay); the cache $SG_CACHE stays too"
    ;;
*)
    sg_die "unknown target $target; see make help"
    ;;
esac
