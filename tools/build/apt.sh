# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Debian packages of another release, or of the machine's own, without touching
# the machine's apt.  Source it after lib.sh.
#
# Everything private is in $SG_CACHE/apt (own release: $SG_CACHE/apt-host, others:
# $SG_CACHE/apt-SUITE, their sources: $SG_CACHE/apt-src-SUITE, Debian 13 for arm64:
# $SG_CACHE/apt-arm64): a sources.list made from the
# machine's own mirror (tools/build/apt-mirror), lists, archives.  Root is not needed.  All
# functions here use the network and are meant to be called from the command of an sg_step, whose
# product then needs no network.

SG_SUITE=trixie
SG_OLD_SUITE=bookworm # source packages only

# What sg_apt uses: a folder, the packages that count as installed, and an architecture.
sg__apt_dir=$SG_CACHE/apt
sg__apt_status=/dev/null
sg__apt_arch=amd64

# apt-get or apt-cache with the private configuration.
sg_apt() {
    local tool=$1 dir=$sg__apt_dir
    shift
    "$tool" -q -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$dir/state" -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" \
        -o "Dir::State::status=$sg__apt_status" -o APT::Sandbox::User= -o Acquire::Languages=none \
        -o Acquire::Retries=3 -o APT::Update::Post-Invoke-Success= -o APT::Update::Post-Invoke= \
        -o Acquire::AllowReleaseInfoChange=true -o "APT::Architectures=$sg__apt_arch" \
        -o "APT::Architecture=$sg__apt_arch" "$@"
}

sg__sources_list() {
    local mirror=$SG_TOP/tools/build/apt-mirror
    case $sg__apt_dir in
    "$SG_CACHE"/apt-host*)
        /usr/bin/python3 "$mirror" deb "$(sg_host_suite)"
        return
        ;;
    "$SG_CACHE/apt-arm64")
        /usr/bin/python3 "$mirror" deb "$SG_SUITE"
        return
        ;;
    "$SG_CACHE"/apt-src-*)
        /usr/bin/python3 "$mirror" deb-src "${sg__apt_dir#"$SG_CACHE/apt-src-"}"
        return
        ;;
    esac
    if [ "$sg__apt_dir" != "$SG_CACHE/apt" ]; then
        /usr/bin/python3 "$mirror" deb "${sg__apt_dir#"$SG_CACHE/apt-"}"
        return
    fi
    /usr/bin/python3 "$mirror" deb "$SG_SUITE"
    /usr/bin/python3 "$mirror" deb-src "$SG_SUITE"
    /usr/bin/python3 "$mirror" deb-src "$SG_OLD_SUITE"
}

# Brings the private lists up to date, at most once an hour unless `force`.
sg_apt_update() {
    local dir=$sg__apt_dir lock
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/state"
    exec {lock}> "$dir/.lock"
    flock "$lock"
    if [ "${1:-}" != force ] && [ -n "$(find "$dir/.updated" -mmin -60 2>/dev/null)" ]; then
        exec {lock}>&-
        return 0
    fi
    sg__sources_list > "$dir/sources.list"
    sg_apt apt-get update
    touch "$dir/.updated"
    exec {lock}>&-
}

# sg_apt_source PACKAGE VERSION-PATTERN: downloads the newest source of PACKAGE whose version
# matches the shell pattern into the current folder, and unpacks it, Debian's patches applied, into
# ./src.  After a point release a mirror may name a source that it does not have yet: then the next
# older version is taken.  A missing .dsc is no error: mirrors that lose it still have the tarballs.
sg_apt_source() {
    local package=$1 pattern=$2 version versions
    sg_apt_update
    versions=$(sg__source_versions "$package" "$pattern")
    if [ -z "$versions" ]; then
        sg_apt_update force
        versions=$(sg__source_versions "$package" "$pattern")
    fi
    [ -n "$versions" ] || {
        echo "The mirror has no source of $package with a version like $pattern in $SG_SUITE."
        return 1
    }
    for version in $versions; do
        if sg__download_source "$package" "$version"; then
            sg__unpack_source "$package" "$version"
            return
        fi
        echo "The mirror does not have the source of $package $version, which its index names."
    done
    return 1
}

# sg__source_tarball PACKAGE VERSION: name of the upstream tarball, if it is in the current folder.
sg__source_tarball() {
    local plain=${2#*:}
    # shellcheck disable=SC2010  # archives' names have no newlines
    ls "$1_${plain%-*}".orig.tar.* 2>/dev/null | grep -v '\.asc$' | head -n 1
}

sg__download_source() {
    sg_apt apt-get source --download-only --only-source "$1=$2" ||
        echo "(apt could not fetch every file; continuing if the tarball is there)"
    [ -n "$(sg__source_tarball "$1" "$2")" ]
}

sg__unpack_source() {
    sg__verify_source "$1" "$2" || return
    mkdir src
    # shellcheck disable=SC2086  # options, blanks between them
    tar -xf "$(sg__source_tarball "$1" "$2")" -C src --strip-components=1 ${SG_TAR_OPTIONS:-} ||
        return
    sg__debian_patches "$1_${2#*:}.debian.tar.xz" src
    echo "$2" > VERSION
    rm -f ./*.dsc ./*.orig.tar.* ./*.debian.tar.*
}

# The versions that the lists offer and that match the pattern, newest first.
sg__source_versions() {
    local version
    sg_apt apt-cache showsrc --only-source "$1" 2>/dev/null | sed -n 's/^Version: //p' |
        sort -ruV | while read -r version; do
        # shellcheck disable=SC2254  # a pattern
        case $version in
        $2) echo "$version" ;;
        esac
    done
}

# The signed index has the hash of every file, so the .dsc is not needed.
sg__verify_source() {
    sg_apt apt-cache showsrc --only-source "$1" 2>/dev/null |
        awk -v want="$2" '
            /^$/ { version = ""; sums = 0 }
            /^Version: / { version = $2 }
            /^[^ ]/ { sums = ($1 == "Checksums-Sha256:") }
            /^ / && sums && version == want { print $1 "  " $3 }' > SHA256
    grep -q . SHA256 || return
    sha256sum --check --ignore-missing SHA256 || return
    rm SHA256
}

sg__debian_patches() {
    local patch
    [ -r "$1" ] || {
        echo "no $1: Debian's patches are left out"
        return 0
    }
    mkdir debian-files
    tar -xf "$1" -C debian-files
    if [ -r debian-files/debian/patches/series ]; then
        sed 's/#.*//; s/[[:space:]].*//; /^$/d' debian-files/debian/patches/series |
            while read -r patch; do
                patch -d "$2" -p1 -s -f --no-backup-if-mismatch \
                    < "debian-files/debian/patches/$patch" ||
                    echo "(Debian's patch $patch does not apply to the trimmed tree)"
            done
    fi
    rm -rf debian-files
}

# sg_apt_extract DIR PACKAGE...: downloads binary packages (no dependencies)
# and unpacks them into DIR, without installing anything.
sg_apt_extract() {
    local dir=$1 deb
    shift
    sg_apt_update
    mkdir -p "$dir" debs
    (cd debs && { sg_apt apt-get download "$@" ||
        { sg_apt_update force && sg_apt apt-get download "$@"; }; })
    for deb in debs/*.deb; do
        dpkg-deb -x "$deb" "$dir"
        echo "${deb##*/}" >> VERSION
    done
    rm -rf debs
}

# The machine's own release.
sg_host_suite() {
    sed -n 's/^VERSION_CODENAME=//p' /etc/os-release | tr -d '"'
}

# sg_missing PACKAGE...: those of them that the machine does not have.
sg_missing() {
    local package
    for package; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
        installed) ;;
        *) echo "$package" ;;
        esac
    done
}

# sg_apt_extract_missing DIR PACKAGE...: downloads those packages of the machine's own release that
# it does not have, with what they need and it does not have, and unpacks them into DIR.  Nothing
# is installed.
sg_apt_extract_missing() {
    local sg__apt_dir=$SG_CACHE/apt-host sg__apt_status=/var/lib/dpkg/status
    sg__extract_with_needs "$@"
}

# sg_apt_extract_foreign ARCHITECTURE DIR PACKAGE...: the same with all packages that they need, of
# the machine's own release for another architecture.
sg_apt_extract_foreign() {
    local sg__apt_dir=$SG_CACHE/apt-host-$1 sg__apt_arch=$1
    shift
    sg__extract_with_needs "$@"
}

sg__extract_with_needs() {
    local dir=$1 deb
    local command=(sg_apt apt-get -y --no-install-recommends --no-upgrade --download-only
        -o Debug::NoLocking=true -o "Dir::Cache::archives=$PWD/debs" install)
    shift
    sg_apt_update
    mkdir -p "$dir" debs/partial
    "${command[@]}" "$@" || { sg_apt_update force && "${command[@]}" "$@"; }
    for deb in debs/*.deb; do
        [ -e "$deb" ] || break
        dpkg-deb -x "$deb" "$dir"
        echo "${deb##*/}" >> VERSION
    done
    rm -rf debs
}
