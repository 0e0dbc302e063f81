#!/bin/sh
# Makes the oldest Debian system that this machine's apt sources serve (mmdebstrap), and installs
# a cross-built tree there, as a binary release is installed. Runs test programs as jobs there.
# Needs root; ends with 77 where something is missing. SUITES names the suites to try, the oldest
# first.
#   ci/cross/chroot.sh TARGET
set -eu
cd "$(dirname "$0")/../.."
target=$1
. ci/cross/target.sh
lacking() {
    echo "$1"
    exit 77
}
[ "$(id -u)" = 0 ] || lacking "a chroot needs root"
command -v mmdebstrap >/dev/null 2>&1 || lacking "mmdebstrap is not installed: Debian package mmdebstrap"
unshare --mount true 2>/dev/null || lacking "this root may not mount"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
root=$work/root

# The mirror of this machine's Debian sources; the first suite that it serves.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -n -e 's|^URIs: *\([^ ]*/debian\)/* *$|\1|p' -e 's|^deb .*\(http[^ ]*/debian\)/* .*|\1|p' | head -n 1)
[ -n "$mirror" ] || lacking "no Debian mirror is in the apt sources"
suite=
for candidate in ${SUITES:-jessie stretch buster bullseye bookworm trixie}; do
    if mmdebstrap --quiet --variant=extract --include=libc6,libgcc-s1,dash,coreutils,bash "$candidate" "$root" "$mirror" >"$work/log" 2>&1 ||
        mmdebstrap --quiet --variant=extract --include=libc6,libgcc1,dash,coreutils,bash "$candidate" "$root" "$mirror" >"$work/log" 2>&1; then
        suite=$candidate
        break
    fi
    rm -rf "$root"
done
[ -n "$suite" ] || lacking "mmdebstrap can make no system from $mirror: $(grep '^E:' "$work/log" | tail -n 1)"

prefix=/opt/gasnet
ci/install.sh "$root" $prefix TREE="$tree" KEEP_DEBUG=1 >/dev/null
cp -r "$tree/tests" "$root$prefix/tests"
cat >"$root/tests.sh" <<'END'
set -u
[ -d /proc/self ] || { echo "/proc cannot be mounted"; exit 77; }
failed=0
jobs=0
job() {
    jobs=$((jobs + 1))
    timeout -k 5 120 /opt/gasnet/bin/gasnetrun -n "$@" >/tmp/output 2>&1 || {
        failed=$((failed + 1))
        echo "failed: gasnetrun -n $*"
        cat /tmp/output
    }
}
for mode in seq par; do
    for ranks in 1 2 4; do
        for program in "testhello" "testsmall 20 2048" "testam 10 4096" "testcore1 20" "testbarrier 20" "testhsl" "testvis" "testcoll 20"; do
            # shellcheck disable=SC2086 # a program and its arguments
            [ ! -x /opt/gasnet/tests/$mode/${program%% *} ] || job $ranks /opt/gasnet/tests/$mode/$program
        done
    done
done
/opt/gasnet/bin/gasnet_info >/tmp/output 2>&1 || { failed=$((failed + 1)); cat /tmp/output; }
left=$(ls /dev/shm 2>/dev/null)
[ -z "$left" ] || { failed=$((failed + 1)); echo "left behind: $left"; }
echo "$jobs jobs, $failed failed"
[ $failed = 0 ]
END
glibc=$(find "$root" -name libc.so.6 | head -n 1)
glibc=$(grep -ao 'GNU C Library .* version [0-9.]*[0-9]' "$(readlink -f "$glibc")" | sed 's/.* //')
mkdir -p "$root/dev/shm" "$root/proc" "$root/tmp"
result=$(unshare --mount --propagation private sh -c '
    mount -t tmpfs shm "$1/dev/shm"
    # In a container only the /proc that exists can be had.
    mount --rbind /proc "$1/proc"
    for device in null zero urandom; do [ -e "$1/dev/$device" ] || : >"$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done
    exec chroot "$1" sh /tests.sh' sh "$root") || {
    code=$?
    echo "$result"
    exit $code
}
echo "summary: $suite, glibc $glibc: $(echo "$result" | tail -n 1)"
