#!/bin/sh
# Builds libportals3, its launcher ptlrun, and libcnos, for ci/install-portals.sh.
set -eu
cd "$(dirname "$0")/.."
. ci/target.sh
${CARGO:-cargo} build --locked --release -p portals3-c
out=${CARGO_TARGET_DIR:-target}/$released
# What portals3.h declares.
ci/archive.sh "$out/libportals3_c.a" "$out/libportals3.a" '^(Ptl[A-Z]|ptl_)'
# One object for all forms of libcnos. libcnos.so finds libportals3.so next to itself.
# libcnos-system.so has no run path: it is for folders that the dynamic linker searches.
# CPPFLAGS, CFLAGS and LDFLAGS are the user's. The archive has object code for any compiler.
cc=${CC:-cc}
# shellcheck disable=SC2086 # flags
$cc -std=gnu99 -Wall -Wextra -Werror -O2 ${CPPFLAGS-} ${CFLAGS-} -fno-lto -fPIC -I portals/capi/include -c -o "$out/cnos.o" \
    portals/capi/cnos/cnos.c
# link NAME [FLAG]
link() {
    # shellcheck disable=SC2086 # flags
    $cc -shared ${LDFLAGS-} -o "$out/$1" -Wl,-soname,libcnos.so.0 -Wl,-z,defs,-z,now "$out/cnos.o" \
        "$out/libportals3_c.so" ${2-}
}
# shellcheck disable=SC2016 # for the linker
link libcnos.so '-Wl,-rpath,$ORIGIN'
link libcnos-system.so
rm -f "$out/libcnos.a"
"${AR:-$($cc -print-prog-name=ar)}" crs "$out/libcnos.a" "$out/cnos.o"
