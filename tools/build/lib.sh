# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Step runner for all build scripts: source it from a bash script.
#
#     SG_TOP=$(cd "$(dirname "$0")/../.." && pwd)
#     . "$SG_TOP/tools/build/lib.sh"
#
# What a step is.  A step has a name, a title and a command; it runs with its
# output in a log file and prints one line, "[ 3/12] qemu: building ... 214 s".
# There are three kinds, by where the result lives:
#
#   sg_step NAME "title" KEY... -- COMMAND...
#       The result is a folder in the cache, $SG_CACHE/NAME-<hash of the keys>,
#       shared by all clones.  COMMAND fills $SG_OUT, an empty temporary folder
#       that is renamed into place when COMMAND succeeds, so that a product is
#       either complete or absent (Ctrl-C, a full disk and a power cut
#       included).  Two runs at once are serialised by a lock per product.
#       Afterwards SG_OUT names the product, and so does `sg_product NAME`.
#       A product is moved after it was made: it must not contain its own path.
#       Products that were not used for a month are removed when a new one is made.
#
#   sg_local NAME "title" KEY... -- COMMAND...
#       The result is somewhere in the build folder; COMMAND is skipped while
#       the keys are those of its last success.
#
#   sg_run NAME "title" -- COMMAND...
#       Always runs (for ninja and the like, which know what is up to date).
#
# Most of a step that configures or links keeps one processor busy, so scripts whose results do not
# depend on each other run at once: sg_beside SCRIPT..., and later sg_join.
#
# Keys: a path of a file (its contents count), of a folder (all files beneath
# it), or `@text` (the text itself: a version, an option, another product's
# path).  COMMAND may be a shell function; it runs in a subshell with `set -e`
# (so long as the step itself is not part of a condition: no `sg_step ... || x`).
# A failing step ends the script with the command's status.
#
# Variables for the scripts, from build/config.sh (written by configure):
# SG_TOP, SG_BUILD, SG_CACHE, SG_JOBS, SG_KVM, SG_SANITIZERS, SG_QEMU_SRC.
# With SG_VERBOSE=1 the commands' output goes to the terminal as well.

if [ -z "${BASH_VERSION:-}" ]; then
    echo "tools/build/lib.sh needs bash; start the script with #!/bin/bash" >&2
    exit 2
fi

: "${SG_TOP:?set SG_TOP before sourcing lib.sh}"
if [ -z "${SG_BUILD:-}" ]; then
    SG_BUILD=$(cat "$SG_TOP/.build-dir" 2>/dev/null || echo "$SG_TOP/build")
fi
if [ -r "$SG_BUILD/config.sh" ]; then
    # shellcheck source=/dev/null  # configure writes it
    . "$SG_BUILD/config.sh"
    if [ "${SG_CONFIGURED_TOP:-$SG_TOP}" != "$SG_TOP" ]; then
        echo "This tree was configured at $SG_CONFIGURED_TOP and then moved or copied;" >&2
        echo "run ./configure again (with --build=DIR if you use that)." >&2
        exit 1
    fi
fi
: "${SG_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/staghorn}"
: "${SG_JOBS:=$(nproc)}"
: "${SG_KVM:=auto}"
: "${SG_SANITIZERS:=0}"
: "${SG_QEMU_SRC:=}"
export SG_TOP SG_BUILD SG_CACHE SG_JOBS SG_KVM SG_SANITIZERS SG_QEMU_SRC
export LC_ALL=C.UTF-8
# mke2fs and depmod are there, and Debian's users do not have it in their PATH.
case :$PATH: in
*:/usr/sbin:*) ;;
*) export PATH=$PATH:/usr/sbin:/sbin ;;
esac
SG_LOGS=$SG_BUILD/logs

# The child that runs now (a process group of its own), and the half-made
# product to remove if it has to be stopped.
sg__child=
sg__tick=
sg__half=
# A script that runs beside this one (sg_beside).
sg__other=

sg_die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

sg_note() {
    echo "        $*"
}

# sg_plan TOTAL: say how many steps this run has.  Only the outermost script's
# call counts: scripts started by it continue its numbering.
sg_plan() {
    [ -z "${SG_PLAN_FILE:-}" ] || return 0
    mkdir -p "$SG_BUILD"
    SG_PLAN_FILE=$SG_BUILD/.plan.$$
    export SG_PLAN_FILE
    echo "0 $1" > "$SG_PLAN_FILE"
    sg__plan_owner=$$
}

# Prints "[ 3/12] " and advances; prints nothing without a plan.
sg__number() {
    local n total
    [ -n "${SG_PLAN_FILE:-}" ] && [ -r "$SG_PLAN_FILE" ] || return 0
    read -r n total < "$SG_PLAN_FILE"
    n=$((n + 1))
    [ "$n" -le "$total" ] || total=$n
    echo "$n $total" > "$SG_PLAN_FILE"
    printf '[%2d/%d] ' "$n" "$total"
}

sg__stop_child() {
    [ -z "$sg__tick" ] || kill "$sg__tick" 2>/dev/null
    sg__tick=
    if [ -n "$sg__child" ]; then
        kill -TERM -- "-$sg__child" 2>/dev/null
        sleep 0.3
        kill -KILL -- "-$sg__child" 2>/dev/null
        sg__child=
    fi
}

# Its own trap ends its step.  What it said may be why this script ends.
sg__stop_other() {
    [ -n "$sg__other" ] || return 0
    cat "$sg__other_log" >&2
    kill -TERM -- "-$sg__other" 2>/dev/null
    wait "$sg__other" 2>/dev/null
    sg__other=
}

sg__cleanup() {
    sg__stop_child
    sg__stop_other
    [ -z "$sg__half" ] || sg__remove "$sg__half"
    sg__half=
    [ "${sg__plan_owner:-}" != "$$" ] || rm -f "$SG_PLAN_FILE"
}

sg__interrupted() {
    trap '' INT TERM HUP
    printf '\n%s: interrupted; finished steps are kept\n' "${0##*/}" >&2
    exit 130
}

trap sg__cleanup EXIT
trap sg__interrupted INT TERM HUP

# Package tools may leave read-only folders within their folders.
sg__remove() {
    rm -rf "$1" 2>/dev/null && return 0
    chmod -R u+rwX "$1" 2>/dev/null
    rm -rf "$1"
}

# sg_key NAME KEY...: the 16 hexadecimal digits that identify the result.
sg_key() {
    local item name=$1
    shift
    {
        echo "$name"
        for item in "$@"; do
            case $item in
            @*) printf 'text %s\n' "${item#@}" ;;
            *) sg__hash_path "$item" || exit 1 ;;
            esac
        done
    } | sha256sum | cut -c1-16
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

# The clone's own path must not enter the key: name files relative to SG_TOP.
sg__hash_path() {
    if [ -d "$1" ]; then
        printf 'folder %s\n' "${1#"$SG_TOP"/}"
        (cd "$1" && find . -name __pycache__ -prune -o -type f -print0 | LC_ALL=C sort -z |
            xargs -0r sha256sum)
    elif [ -r "$1" ]; then
        printf 'file %s %s\n' "${1#"$SG_TOP"/}" "$(sha256sum < "$1")"
    else
        echo "key file missing: $1" >&2
        return 1
    fi
}

# Splits "KEY... -- COMMAND..." into the arrays sg__keys and sg__command.
sg__split() {
    sg__keys=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        sg__keys+=("$1")
        shift
    done
    [ "${1:-}" = -- ] || sg_die "internal: a step without --"
    shift
    sg__command=("$@")
}

# Shows the seconds while a step runs, on a terminal only.
sg__ticker() {
    local line=$1 start=$2
    while sleep 1; do
        printf '\r%s %d s' "$line" $((SECONDS - start))
    done
}

# sg__execute NAME "line" COMMAND...: run with log and clock; leaves the exit
# status in sg__status.  Never call it (or a step) as part of a condition:
# bash would then ignore `set -e` inside COMMAND.
sg__execute() {
    local name=$1 line=$2 start=$SECONDS log
    shift 2
    log=$SG_LOGS/$name.log
    mkdir -p "$SG_LOGS" || sg_die "cannot write $SG_LOGS"
    printf '%s' "$line"
    [ -z "${SG_VERBOSE:-}" ] || echo
    set -m
    if [ -n "${SG_VERBOSE:-}" ]; then
        (set -e; trap - EXIT INT TERM HUP; "$@") < /dev/null > >(tee "$log") 2>&1 &
    else
        (set -e; trap - EXIT INT TERM HUP; "$@") < /dev/null > "$log" 2>&1 &
    fi
    sg__child=$!
    if [ -t 1 ] && [ -z "${SG_VERBOSE:-}" ]; then
        (trap - EXIT INT TERM HUP; sg__ticker "$line" "$start") &
        sg__tick=$!
    fi
    set +m
    wait "$sg__child"
    sg__status=$?
    sg__child=
    if [ -n "$sg__tick" ]; then
        kill "$sg__tick" 2>/dev/null
        wait "$sg__tick" 2>/dev/null
        sg__tick=
        printf '\r%s' "$line"
    fi
    if [ "$sg__status" -eq 0 ]; then
        printf ' %d s\n' $((SECONDS - start))
        return 0
    fi
    printf ' FAILED after %d s\n' $((SECONDS - start))
    sg__explain "$name" "$log" "$sg__status"
}

sg__explain() {
    local name=$1 log=$2 status=$3 free where
    {
        echo
        echo "---- last lines of $log"
        tail -n 30 "$log"
        echo "----"
        echo "Step \"$name\" failed with status $status."
        for where in "$SG_BUILD" "$SG_CACHE"; do
            free=$(df -Pk "$where" 2>/dev/null | awk 'NR == 2 { print $4 }')
            [ "${free:-999999999}" -ge 500000 ] ||
                echo "The disk of $where is full or nearly so ($free KiB free): make room."
        done
        echo "Once the cause is removed, run the same command again: finished steps are kept."
    } >&2
}

# sg_step NAME "title" KEY... -- COMMAND...   (see the top of this file)
sg_step() {
    local name=$1 title=$2 key product number
    shift 2
    sg__split "$@"
    key=$(sg_key "$name" "${sg__keys[@]}") || sg_die "step $name: cannot compute its key"
    product=$SG_CACHE/$name-$key
    number=$(sg__number)
    mkdir -p "$SG_CACHE/.locks" "$SG_CACHE/.tmp" "$SG_BUILD/products" ||
        sg_die "cannot write in $SG_CACHE; choose another with ./configure --cache=DIR"
    if [ ! -d "$product" ]; then
        sg__make_product "$name" "$number$name: $title ..." "$product"
    else
        printf '%s%s: %s ... cached\n' "$number" "$name" "$title"
    fi
    touch -c "$product"
    ln -sfn "$product" "$SG_BUILD/products/$name"
    export SG_OUT=$product
}

sg__make_product() {
    local name=$1 line=$2 product=$3 lock
    exec {lock}> "$SG_CACHE/.locks/${product##*/}" || sg_die "cannot lock in $SG_CACHE/.locks"
    if ! flock -n "$lock"; then
        echo "$line waits for another run that makes it"
        flock "$lock"
    fi
    if [ -d "$product" ]; then
        echo "$line cached"
        exec {lock}>&-
        return 0
    fi
    sg__half=$SG_CACHE/.tmp/${product##*/}
    sg__remove "$sg__half"
    mkdir "$sg__half" || sg_die "cannot write in $SG_CACHE/.tmp"
    SG_OUT=$sg__half
    sg__execute "$name" "$line" sg__without_lock "$lock" "${sg__command[@]}"
    [ "$sg__status" -eq 0 ] || exit "$sg__status"
    sync -f "$sg__half" 2>/dev/null
    mv -T "$sg__half" "$product" || sg_die "cannot move $sg__half to $product"
    sg__half=
    exec {lock}>&-
    sg__prune "$name"
}

# Removes products of this step that no run has used for a month.
sg__prune() {
    find "$SG_CACHE" -maxdepth 1 -type d -mtime +30 -name "$1-????????????????" \
        -exec chmod -R u+rwX {} + -exec rm -rf {} + 2>/dev/null
    return 0
}

# The command must not inherit the lock: a daemon it leaves would hold it.
sg__without_lock() {
    local fd=$1
    shift
    export SG_OUT
    exec {fd}>&-
    "$@"
}

# sg_local NAME "title" KEY... -- COMMAND...   (see the top of this file)
sg_local() {
    local name=$1 title=$2 key stamp number
    shift 2
    sg__split "$@"
    key=$(sg_key "$name" "${sg__keys[@]}") || sg_die "step $name: cannot compute its key"
    stamp=$SG_BUILD/stamps/$name
    number=$(sg__number)
    mkdir -p "$SG_BUILD/stamps"
    if [ -r "$stamp" ] && [ "$(cat "$stamp")" = "$key" ]; then
        printf '%s%s: %s ... up to date\n' "$number" "$name" "$title"
        return 0
    fi
    rm -f "$stamp"
    sg__execute "$name" "$number$name: $title ..." "${sg__command[@]}"
    [ "$sg__status" -eq 0 ] || exit "$sg__status"
    echo "$key" > "$stamp"
}

# sg_run NAME "title" -- COMMAND...   (see the top of this file)
sg_run() {
    local name=$1 title=$2
    shift 2
    sg__split "$@"
    sg__execute "$name" "$(sg__number)$name: $title ..." "${sg__command[@]}"
    [ "$sg__status" -eq 0 ] || exit "$sg__status"
}

# sg_beside SCRIPT...: starts a script of steps beside this one, which needs none of its results.
# Its steps have no numbers: two writers would disturb each other in the plan.
sg_beside() {
    sg__other_log=$SG_LOGS/beside.out
    mkdir -p "$SG_LOGS" || sg_die "cannot write $SG_LOGS"
    set -m
    SG_PLAN_FILE=/nonexistent "$@" < /dev/null > "$sg__other_log" 2>&1 &
    sg__other=$!
    set +m
}

# sg_join: waits for it and prints what it said; a failure ends this script, too.
sg_join() {
    local status
    ! kill -0 "$sg__other" 2>/dev/null || sg_note "waiting for what runs beside: $sg__other_log"
    wait "$sg__other"
    status=$?
    sg__other=
    cat "$sg__other_log"
    [ "$status" -eq 0 ] || exit "$status"
}

# sg_product NAME: path of the product that this clone's last run of the step
# NAME made or found.
sg_product() {
    local path
    path=$(readlink "$SG_BUILD/products/$1") && [ -d "$path" ] ||
        sg_die "product $1 is not built; run: make -C $SG_TOP deps"
    echo "$path"
}

# sg_apply_patches TREE PATCH...: applies them without fuzz: a hunk that would land on similar lines
# elsewhere might compile and mean something else, so it stops the build instead.
sg_apply_patches() {
    local tree=$1 patch
    shift
    for patch in "$@"; do
        echo "applying $patch"
        patch -d "$tree" -p1 -s -F0 --no-backup-if-mismatch < "$patch" || return 1
    done
}
