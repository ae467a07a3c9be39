#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Packs what has been built as Debian packages of the machine's release: tools/packaging/deb.sh
#
# $SG_BUILD/debs gets them.  The tree in which debian/rules runs is $SG_BUILD/deb/staghorn-VERSION;
# its debian/products has what `make deb` has built before: programs, adapter (its firmware),
# provider.  Its debian/changelog is made here, because meson.build has the version.
SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$SG_TOP/tools/build/lib.sh"
. "$SG_TOP/tools/build/apt.sh"

# What debian/rules and the launcher's package need of the tree.
files=(CHANGELOG.md README.md meson.build staghorn debian docs guest-driver include tools
    tests/lib/tap.h tests/unit/provider)

version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" "$SG_TOP/meson.build")
suite=$(sg_host_suite)
release=$(sed -n 's/^VERSION_ID=//p' /etc/os-release | tr -d '"')
folder=$SG_BUILD/deb/staghorn-$version

sg_plan 3

# The date is that of the sources, so that the same sources make the same packages.
changelog() {
    local date
    date=$(git -C "$SG_TOP" log -1 --format=%aD 2>/dev/null) || date=
    cat << END
staghorn ($version~deb$release) $suite; urgency=medium

  * Version $version for Debian $release; CHANGELOG.md in /usr/share/doc/staghorn
    has the changes.

 -- $(sed -n 's/^Maintainer: //p' "$folder/debian/control")  ${date:-$(date -R)}
END
}

# Puts NAME into the folder of programs, without symbols that nothing needs.
program() {
    install -D -m 755 "$1" "$folder/debian/products/programs/${1##*/}"
}

make_tree() {
    local products=$folder/debian/products
    rm -rf "$folder"
    mkdir -p "$folder"
    tar -C "$SG_TOP" --exclude=__pycache__ --exclude='*.pyc' -cf - "${files[@]}" |
        tar -C "$folder" -xf -
    program "$SG_BUILD/qemu/qemu-system-x86_64"
    program "$SG_BUILD/firmware/sg-flash"
    program "$SG_BUILD/deb-native/hw/explore/staghorn-explore"
    program "$SG_BUILD/deb-native/hw/print/staghorn-trace"
    mkdir -p "$products/adapter"
    cp "$SG_BUILD"/firmware/profiles.ini "$SG_BUILD"/firmware/*.flash "$products/adapter/"
    changelog > "$folder/debian/changelog"
    [ -z "$provider" ] || add_provider
}

# The interface of libibverbs that a provider uses may change with each version.
add_provider() {
    local number next
    number=$(cat "$provider/VERSION")
    next=${number%.*}.$((${number##*.} + 1))
    cp -r "$provider/root" "$folder/debian/products/provider"
    printf 'rdma-core:Version=%s~\nrdma-core:Next=%s~\n' "$number" "$next" \
        > "$folder/debian/products/rdma-core.substvars"
}

build_packages() {
    local profiles=
    [ -n "$provider" ] || profiles=pkg.staghorn.noprovider
    make_tree
    cd "$folder"
    rm -f ../*.deb ../*.changes ../*.buildinfo
    DEB_BUILD_OPTIONS="noautodbgsym parallel=$SG_JOBS" DEB_BUILD_PROFILES=$profiles \
        dpkg-buildpackage -b -us -uc
    rm -rf "$SG_BUILD/debs"
    mkdir "$SG_BUILD/debs"
    mv ../*.deb ../*.changes ../*.buildinfo "$SG_BUILD/debs/"
}

check_packages() {
    lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$SG_BUILD"/debs/*.changes
}

provider=
"$SG_TOP/tools/packaging/provider.sh"
case $? in
0) provider=$SG_BUILD/deb/provider ;;
77) sg_note "The provider is left out, as the lines above say why; RDMA_CORE=DIR names a source." ;;
*) exit 1 ;;
esac
sg_run deb "making the packages" -- build_packages
sg_run deb-lintian "examining them with lintian" -- check_packages
for deb in "$SG_BUILD"/debs/*.deb; do
    sg_note "$deb"
done
sg_note "To try them in a fresh chroot: tools/packaging/try-debs"
