#!/bin/sh
# Makes the archive that users link from the one that cargo builds: one object that holds what GASNet's names need, whose
# only global definitions are these names. So a program may contain another Rust archive, whose std is then
# its own, and what the library does not use is not in it. Debug information stays in the shared library.
#   ci/archive.sh CARGO-ARCHIVE SHARED-LIBRARY TO
set -eu
from=$1
shared=$2
to=$3
# The tools that belong to the compiler, whose machine need not be this one.
tool() {
    ${CC:-cc} -print-prog-name="$1"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${NM:-$(tool nm)} -D --defined-only --without-symbol-versions "$shared" | awk '$3 ~ /^gasnet/ { print $3 }' >"$work/names"
sed 's/^/-u /' "$work/names" >"$work/roots"
# Groups are dissolved: another archive has a group of the same name, of which a linker would keep only one.
${LD:-$(tool ld)} -r --force-group-allocation --gc-sections "@$work/roots" --whole-archive "$from" -o "$work/all.o"
# Undefined names of what was left out.
${READELF:-$(tool readelf)} -Ws "$work/all.o" |
    awk '$5 == "LOCAL" && $7 == "UND" && $8 != "" { print $8 }' >"$work/unused"
# objcopy fails for an empty list, without a word.
[ -s "$work/unused" ] || echo gasneti_nothing >"$work/unused"
${OBJCOPY:-$(tool objcopy)} --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd \
    --strip-symbols="$work/unused" --keep-global-symbols="$work/names" "$work/all.o" "$work/libgasnet.o"
rm -f "$work/libgasnet.a"
${AR:-$(tool ar)} crs "$work/libgasnet.a" "$work/libgasnet.o"
mv "$work/libgasnet.a" "$to"
