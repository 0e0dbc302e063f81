#!/bin/sh
# Builds libportals3, its launcher ptlrun, and libcnos, for ci/install-portals.sh. LIBDIR is the
# folder where the libraries will be, if it is known.
set -eu
cd "$(dirname "$0")/.."
. ci/target.sh
${CARGO:-cargo} build --locked --release -p portals3-c
out=${CARGO_TARGET_DIR:-target}/$released
# One object for both libraries. libcnos.so finds libportals3.so next to itself, if not in a folder
# of the system. CPPFLAGS, CFLAGS and LDFLAGS are the user's.
cc=${CC:-cc}
set -- "" /usr LIBDIR="${LIBDIR-}"
. ci/folders.sh
[ -n "${LIBDIR-}" ] || run_path=yes
# shellcheck disable=SC2086 # flags
$cc -std=gnu99 -Wall -Wextra -Werror -O2 ${CPPFLAGS-} ${CFLAGS-} -fPIC -I portals/capi/include -c -o "$out/cnos.o" \
    portals/capi/cnos/cnos.c
# shellcheck disable=SC2016,SC2046,SC2086 # for the linker; flags
$cc -shared ${LDFLAGS-} -o "$out/libcnos.so" -Wl,-soname,libcnos.so.0 -Wl,-z,defs,-z,now "$out/cnos.o" \
    "$out/libportals3_c.so" $(rpath '$ORIGIN')
rm -f "$out/libcnos.a"
"${AR:-$($cc -print-prog-name=ar)}" crs "$out/libcnos.a" "$out/cnos.o"
