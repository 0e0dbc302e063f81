#!/bin/sh
# Makes the archive that users link from the archive that cargo builds. It holds one object with
# everything that the interface's names need; these names are its only global definitions. So a
# program can also contain another Rust archive with its own copy of std. Debug information stays
# in the shared library.
#   ci/archive.sh CARGO-ARCHIVE TO NAMES [OBJECT]
# NAMES is a regular expression of awk for the names of the interface. OBJECT has functions that
# no C library provides.
set -eu
from=$1
to=$2
export INTERFACE="$3"
object=${4-}
# The binutils of the compiler: it may compile for another machine.
tool() {
    ${CC:-cc} -print-prog-name="$1"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
${READELF:-$(tool readelf)} -Ws "$from" 2>/dev/null |
    awk '($5 == "GLOBAL" || $5 == "WEAK") && $6 == "DEFAULT" && $7 != "UND" && $8 ~ ENVIRON["INTERFACE"] { print $8 }' | sort -u >"$work/names"
sed 's/^/-u /' "$work/names" >"$work/roots"
# Section groups are dissolved. A linker keeps only one of two groups with the same name, and
# another Rust archive has groups of the same names.
${LD:-$(tool ld)} -r --force-group-allocation --gc-sections "@$work/roots" --whole-archive "$from" ${object:+"$object"} -o "$work/all.o"
# Undefined names that only discarded sections used.
${READELF:-$(tool readelf)} -Ws "$work/all.o" |
    awk '$5 == "LOCAL" && $7 == "UND" && $8 != "" { print $8 }' >"$work/unused"
# objcopy fails silently on an empty list.
[ -s "$work/unused" ] || echo gasneti_nothing >"$work/unused"
${OBJCOPY:-$(tool objcopy)} --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd \
    --strip-symbols="$work/unused" --keep-global-symbols="$work/names" "$work/all.o" "$work/whole.o"
# In the folder of the result, since a move from another file system may end half-way.
rm -f "$to.new"
${AR:-$(tool ar)} crs "$to.new" "$work/whole.o"
mv "$to.new" "$to"
