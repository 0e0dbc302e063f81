#!/bin/sh
# What `make cross` refuses, it refuses before it builds, with a line that says what is wrong and
# one that says what to do. It refuses unknown targets, compilers that cannot do the target's
# level, and folders without a libportals. A refusal changes no file.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work" cross/wrong.target' EXIT
trap 'exit 130' INT TERM HUP
cases=0

# refused TEXT... -- ARGUMENTS: `make cross` with these arguments fails, and prints each text.
refused() {
    : >"$work/texts"
    while [ "$1" != -- ]; do
        echo "$1" >>"$work/texts"
        shift
    done
    shift
    cases=$((cases + 1))
    if env -u CC -u CXX -u PORTALS_PREFIX make -s cross "$@" >"$work/output" 2>&1; then
        echo "make cross $*: it is not refused"
        exit 1
    fi
    while read -r text; do
        grep -qF -- "$text" "$work/output" || {
            echo "make cross $*: no line has '$text':"
            cat "$work/output"
            exit 1
        }
    done <"$work/texts"
    ! grep -q Compiling "$work/output" || {
        echo "make cross $*: it began to build"
        exit 1
    }
}

refused "no target is given" "crayxt-cnl  " "x86_64-old  " -- TARGET=
refused "TARGET=crayxt: there is no such target" "crayxt-cnl3  " -- TARGET=crayxt
refused "TARGET=../Cargo: there is no such target" -- TARGET=../Cargo
refused "PORTALS_PREFIX=$work has no libportals" "$work/include/portals/portals3.h" "$work/lib64/libportals.a" "give the folder" -- \
    TARGET=crayxt-cnl PORTALS_PREFIX="$work"
mkdir -p "$work/include" "$work/lib"
: >"$work/include/portals3.h"
refused "none of these files exists: $work/lib/libportals3.so" -- TARGET=crayxt-cnl PORTALS_PREFIX="$work"
refused "there is no compiler nosuch-cc" 'CC="compiler options"' -- TARGET=crayxt-cnl CC="nosuch-cc -O2"
refused "cc -no-such-option cannot compile for" -- TARGET=crayxt-cnl CC="cc -no-such-option"
if [ "$(uname -m)" = x86_64 ]; then
    refused "cc cannot compile for Cray XT4 and XT5 under CNL 2.0: it links glibc 2." "the target has 2.4" "zig cc" -- TARGET=crayxt-cnl CC=cc
    refused "newer than x86-64, with SSE3" "-march=x86-64" -- TARGET=cray-linux CC="cc -march=nehalem"
fi
rustc=${RUSTC:-rustc}
for pair in aarch64:aarch64-unknown-linux-gnu riscv64:riscv64gc-unknown-linux-gnu; do
    ls "$($rustc --print target-libdir --target "${pair#*:}")"/libstd-*.rlib >/dev/null 2>&1 ||
        refused "Rust's library for ${pair#*:} is not installed" "rustup target add ${pair#*:}" -- TARGET="${pair%:*}"
done
refused "it needs the target's libportals" "give PORTALS_PREFIX" -- TARGET=crayxt-catamount
# A target file is no program.
printf 'CPU=k8\nGLIBC=$(touch %s/ran)\n' "$work" >cross/wrong.target
refused "cross/wrong.target:2 is neither a comment nor NAME=value" -- TARGET=wrong
[ ! -e "$work/ran" ] || {
    echo "a command of a target file ran"
    exit 1
}
# Every target says what it stands for, and has its list of names.
rm cross/wrong.target
for file in cross/*.target; do
    grep -q '^STANDS_FOR="' "$file" || {
        echo "$file: STANDS_FOR is missing"
        exit 1
    }
    [ -f "${file%.target}.symbols" ] || {
        echo "${file%.target}.symbols is missing"
        exit 1
    }
done
echo "ci/cross/refusals.sh: $cases refusals"
