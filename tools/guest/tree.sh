# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The guest's Debian 13 tree and builds inside it.  Source it after
# tools/build/lib.sh and tools/build/apt.sh.
#
# Product guest-tree:
#   tree/      the unpacked tree in which modules and the provider are built;
#              without root its files belong to the caller, which builds do
#              not mind
#   root.img   the same tree as an ext4 image with true owners, the VMs' disk
#   vmlinuz, KERNEL (its version), PACKAGES (what was installed)
#
# Product guest-consumers, for the long tests only:
#   consumers.img   a second disk image: packages.consumers, and the modules of
#                   guest-tree's kernel
#
# Works as root (for example in a container), otherwise in user namespaces.

# The guest's architecture: what names of products end with, the prefix of its compiler, what Kbuild
# and CMake need besides, and which of the programs for tests are built.  guest_arm64 (arm64.sh)
# changes them.
# shellcheck disable=SC2034  # scripts that source this use all of them
{
    of=''
    cross=''
    triplet=x86_64-linux-gnu
    kbuild=()
    cmake_cross=()
    tree_env=()
    program_set=''
}
# The product in whose tree/ everything is compiled.
compile_tree=guest-tree

# Prints the packages of one list, one per line.
packages_of() {
    sed 's/#.*//' "$SG_TOP/tools/guest/$1" | tr -s ' ' '\n' | grep .
}

guest_packages() {
    packages_of packages | paste -s -d ,
}

consumers_packages() {
    {
        packages_of packages | grep -vxF -f <(packages_of packages.consumers | sed -n 's/^-//p')
        packages_of packages.consumers | grep -v '^-'
    } | paste -s -d ,
}

# as_owner COMMAND...: runs it in an environment in which files can have any owner.
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        unshare --map-root-user --map-auto "$@"
    fi
}

# Fails early, with a message, where mmdebstrap would fail late.
check_namespaces() {
    [ "$(id -u)" -ne 0 ] || return 0
    as_owner true 2>/dev/null && return 0
    echo "Building the guest without being root needs user namespaces and a range of"
    echo "subordinate ids.  As root, run:  usermod --add-subuids 200000-265535" \
        "--add-subgids 200000-265535 $(id -un)"
    echo "(packages uidmap and mmdebstrap installed), or build as root."
    return 1
}

# run_mmdebstrap PACKAGES LAST-STEP [OPTION...]: makes tree.tar.  It needs the machine's proxies and
# apt sources: passes both on.
run_mmdebstrap() {
    local mode=unshare proxy options=()
    local no_initramfs='echo update_initramfs=no > "$1/etc/initramfs-tools/update-initramfs.conf"'
    [ "$(id -u)" -ne 0 ] || mode=root
    proxy=$(apt-config dump --format '%f "%v";%n' Acquire::http::Proxy Acquire::https::Proxy)
    [ -z "$proxy" ] || options+=("--aptopt=$proxy")
    /usr/bin/python3 "$SG_TOP/tools/build/apt-mirror" deb "$SG_SUITE" > "$SG_OUT/sources.list"
    SOURCE_DATE_EPOCH=0 mmdebstrap --mode=$mode --variant=apt --format=tar \
        --include="$1" \
        --aptopt='APT::Install-Recommends "false"' \
        --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' "${options[@]}" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt=force-confold \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' \
        --essential-hook='mkdir -p "$1/etc/initramfs-tools"' \
        --essential-hook="$no_initramfs" \
        --customize-hook="$SG_TOP/tools/guest/$2 \"\$1\"" "${@:3}" \
        "$SG_SUITE" "$SG_OUT/tree.tar" - < "$SG_OUT/sources.list"
}

# make_image NAME [MODULES [SIZE]]: runs under as_owner, so the image keeps the tarball's owners.
# It leaves out device nodes, which only root could make and the guest's kernel makes itself.
# MODULES: a folder of kernel modules that the tarball does not have.
make_image() {
    local dir=$SG_OUT/image
    mkdir "$dir"
    tar -xpf "$SG_OUT/tree.tar" -C "$dir" --numeric-owner --exclude='./dev/*'
    if [ -n "${2:-}" ]; then
        mkdir -p "$dir/usr/lib/modules"
        cp -r --no-preserve=ownership "$2" "$dir/usr/lib/modules/"
        rm -f "$dir/usr/lib/modules/${2##*/}"/{build,source}
    fi
    rm -rf "${dir:?}"/boot/* "$dir"/var/cache/apt/* "$dir"/var/lib/apt/lists/*
    mke2fs -q -t ext4 -O ^metadata_csum,^has_journal,^ea_inode -m 0 -E root_owner=0:0 \
        -L staghorn -d "$dir" "$SG_OUT/$1" "${3:-1400M}"
    rm -rf "$dir"
}

# tree.tar becomes tree/.
unpack_tree() {
    mkdir "$SG_OUT/tree"
    if [ "$(id -u)" -eq 0 ]; then
        tar -xpf "$SG_OUT/tree.tar" -C "$SG_OUT/tree"
    else
        tar -xf "$SG_OUT/tree.tar" -C "$SG_OUT/tree" --exclude='./dev/*' --no-same-owner
        chmod -R u+rwX "$SG_OUT/tree"
    fi
}

make_tree() {
    local version
    check_namespaces
    run_mmdebstrap "$(guest_packages)" customize
    unpack_tree
    version=$(ls "$SG_OUT/tree/usr/lib/modules")
    echo "$version" > "$SG_OUT/KERNEL"
    cp "$SG_OUT/tree/boot/vmlinuz-$version" "$SG_OUT/vmlinuz"
    cp "$SG_OUT/tree/usr/share/staghorn/PACKAGES" "$SG_OUT/PACKAGES"
    export -f make_image
    as_owner bash -e -c 'make_image root.img'
    rm "$SG_OUT/tree.tar" "$SG_OUT/sources.list"
}

# The kernel is that of the base tree, whatever the mirror offers by now, because our modules fit
# that one.
make_consumers() {
    check_namespaces
    run_mmdebstrap "$(consumers_packages)" customize.consumers
    export -f make_image
    as_owner bash -e -c 'make_image consumers.img "$0"' \
        "$(sg_product guest-tree)/tree/usr/lib/modules/$(cat "$(sg_product guest-tree)/KERNEL")"
    rm "$SG_OUT/tree.tar" "$SG_OUT/sources.list"
}

guest_tree() {
    check_mmdebstrap
    # The kernel's and rdma-core's versions follow the mirror only when the
    # list of packages or this recipe changes, or the cache is emptied.
    sg_step guest-tree "installing Debian 13 for the guest" "$SG_TOP/tools/guest/packages" \
        "$SG_TOP/tools/guest/customize" @tree-2 -- make_tree
}

guest_consumers() {
    sg_step guest-consumers "installing the consumers' image" "@$(sg_product guest-tree)" \
        "$SG_TOP/tools/guest/packages.consumers" "$SG_TOP/tools/guest/customize.consumers" \
        @consumers-1 -- make_consumers
}

# driver_sources FOLDER: our driver's in FOLDER/guest-driver/kernel.
driver_sources() {
    mkdir -p "$1/guest-driver" "$1/include"
    cp -r "$SG_TOP/guest-driver/kernel" "$1/guest-driver/kernel"
    cp -r "$SG_TOP/include/staghorn" "$1/include/staghorn"
}

# build_provider SOURCE [CMAKE-ARGUMENT...]: builds rdma-core with our folder as one more provider,
# in $in_tree_work.  Compiles only what the provider needs, and its unit tests, for tests/guest,
# both with warnings as errors.  $SG_OUT gets what is to be installed, and tests.
build_provider() {
    local part
    cp -r "$1" "$in_tree_work/src"
    cp -r "$SG_TOP/guest-driver/provider" "$in_tree_work/src/providers/staghorn"
    cp -r "$SG_TOP/include" "$in_tree_work/src/providers/staghorn/include"
    for part in lib unit/provider; do
        mkdir -p "$in_tree_work/tests/$part"
        cp "$SG_TOP/tests/$part"/*.[ch] "$in_tree_work/tests/$part/"
    done
    sed -i 's|^add_subdirectory(providers/siw)|&\nadd_subdirectory(providers/staghorn)|' \
        "$in_tree_work/src/CMakeLists.txt"
    grep -q '^add_subdirectory(providers/staghorn)' "$in_tree_work/src/CMakeLists.txt"
    in_tree cmake -S src -B out -G Ninja -DCMAKE_BUILD_TYPE=Release -DNO_MAN_PAGES=1 \
        -DNO_PYVERBS=1 -DENABLE_STATIC=0 -DCMAKE_SKIP_RPATH=1 -DSTAGHORN_WERROR=1 \
        "${cmake_cross[@]}" \
        "-DSTAGHORN_TESTS=${in_tree_work#"$tree"}/tests" \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc "${@:2}"
    in_tree ninja -C out -j "$SG_JOBS" staghorn staghorn-tests
    in_tree "${cross}strip" --strip-unneeded out/lib/libstaghorn.so
    "$SG_TOP/guest-driver/provider/collect-sources" "$in_tree_work/out" "$SG_OUT" \
        "usr/lib/$triplet"
    mkdir "$SG_OUT/tests"
    cp "$in_tree_work"/out/bin/staghorn-test-* "$SG_OUT/tests/"
}

# packaged_headers RELEASE: where in the tree the headers of a kernel are, whose packages have been
# unpacked in $in_tree_work.  Their makefiles have absolute paths, which are those of an installed
# system.
packaged_headers() {
    local headers=$in_tree_work/usr/src/linux-headers-$1 inside=${in_tree_work#"$tree"}
    [ -d "$headers" ] || sg_die "the packages of the headers have no ${headers#"$in_tree_work"}"
    sed -i "s,/usr/src/,$inside/usr/src/,; s,/usr/lib/,$inside/usr/lib/," "$headers/Makefile"
    # The kernel's compiler may be another one than the guest's.
    if [ -f "$headers/.kernelvariables" ]; then
        sed -i 's/gcc-[0-9]*$/gcc/' "$headers/.kernelvariables"
    fi
    # objtool of Linux 7 asks for the limits of its stack.  There is no /proc in the tree.
    if [ ! -e "$tree/proc/self" ]; then
        mkdir -p "$tree/proc/self"
        echo '7ffc00000000-7ffd00000000 rw-p 00000000 00:00 0 [stack]' > "$tree/proc/self/maps"
    fi
    echo "${headers#"$tree"}"
}

# Writes a newc archive of the folder $1 to stdout, with everything owned by root.
pack() {
    (cd "$1" && find . -mindepth 1 | LC_ALL=C sort |
        cpio --quiet --create --format=newc --owner=0:0 --reproducible)
}

# check_config WANTED FOUND: whether each line of a configuration is in the one that the kernel's
# tools made of it.
check_config() {
    local line bad=0
    while read -r line; do
        grep -qxF "$line" "$2" || {
            echo "${1##*/}: $line took no effect: $(grep -F "${line%%=*}" "$2" || echo absent)"
            bad=1
        }
    done < <(grep '^CONFIG_' "$1")
    return $bad
}

check_mmdebstrap() {
    command -v mmdebstrap > /dev/null && command -v mke2fs > /dev/null ||
        sg_die "mmdebstrap and e2fsprogs are needed; ./configure installs them or says how"
}

# kernel_build RELEASE: where in that tree Kbuild for the guest's kernel is.
kernel_build() {
    if [ -n "$of" ]; then
        echo "/usr/src/linux-headers-$1"
    else
        echo "/usr/lib/modules/$1/build"
    fi
}

# enter_tree makes a scratch folder inside the tree: in_tree_work is its path
# outside.  in_tree COMMAND... then runs COMMAND in the tree with that folder as
# working folder.  It goes away with the (sub)shell.  Nothing is mounted when
# root builds, so a plain container or chroot is enough.
enter_tree() {
    tree=$(sg_product "$compile_tree")/tree
    in_tree_work=$(mktemp -d "$tree/build.XXXXXX")
    trap 'rm -rf "$in_tree_work"' EXIT
}

in_tree() {
    local inside=${in_tree_work#"$tree"}
    local clean=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
        "${tree_env[@]}")
    if [ "$(id -u)" -eq 0 ]; then
        chroot "$tree" "${clean[@]}" sh -e -c 'cd "$0"; exec "$@"' "$inside" "$@"
    else
        unshare --map-root-user --mount sh -e -c 'mount --rbind /dev "$0/dev"; exec chroot "$@"' \
            "$tree" "$tree" "${clean[@]}" sh -e -c 'cd "$0"; exec "$@"' "$inside" "$@"
    fi
}
