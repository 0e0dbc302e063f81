#!/bin/sh
# Builds libportals3, its launcher ptlrun, and libcnos, for ci/install-portals.sh.
set -eu
cd "$(dirname "$0")/.."
. ci/target.sh
${CARGO:-cargo} build --locked --release -p portals3-c
out=${CARGO_TARGET_DIR:-target}/$released
# One object for both libraries. libcnos.so finds libportals3.so next to itself.
cc=${CC:-cc}
$cc -std=gnu99 -Wall -Wextra -Werror -O2 -fPIC -I portals/capi/include -c -o "$out/cnos.o" portals/capi/cnos/cnos.c
$cc -shared -o "$out/libcnos.so" -Wl,-soname,libcnos.so.0 -Wl,-z,defs,-z,now "$out/cnos.o" "$out/libportals3_c.so" \
    '-Wl,-rpath,$ORIGIN'
rm -f "$out/libcnos.a"
"${AR:-$($cc -print-prog-name=ar)}" crs "$out/libcnos.a" "$out/cnos.o"
