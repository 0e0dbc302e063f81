#!/bin/sh
# Builds and installs libportals3 (libraries, portals3.h, portals3.pc, the launcher ptlrun with its
# manual page) and libcnos (libraries, cnos_mpi_os.h, cnos.pc).
#   ci/install-portals.sh DESTDIR PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=$2
to=$1$2
. ci/target.sh
${CARGO:-cargo} build --release -p portals3-c
out=${CARGO_TARGET_DIR:-target}/$released
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
mkdir -p "$to/include/portals" "$to/include/catamount" "$to/lib/pkgconfig" "$to/bin" "$to/share/man/man1"
install -m 644 portals/capi/include/portals3.h "$to/include"
install -m 644 portals/capi/include/portals/portals3.h "$to/include/portals"
install -m 755 "$out/libportals3_c.so" "$to/lib/libportals3.so.0"
ln -sfn libportals3.so.0 "$to/lib/libportals3.so"
install -m 644 "$out/libportals3_c.a" "$to/lib/libportals3.a"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" portals/capi/portals3.pc.in >"$to/lib/pkgconfig/portals3.pc"
install -m 755 "$out/ptlrun" "$to/bin"

install -m 644 portals/capi/include/cnos_mpi_os.h "$to/include"
install -m 644 portals/capi/include/catamount/cnos_mpi_os.h "$to/include/catamount"
# One object for both libraries. libcnos.so finds libportals3.so next to itself.
cc=${CC:-cc}
$cc -std=gnu99 -Wall -Wextra -Werror -O2 -fPIC -I portals/capi/include -c -o "$out/cnos.o" portals/capi/cnos/cnos.c
$cc -shared -o "$to/lib/libcnos.so.0" -Wl,-soname,libcnos.so.0 -Wl,-z,defs,-z,now "$out/cnos.o" "$to/lib/libportals3.so.0" \
    '-Wl,-rpath,$ORIGIN'
chmod 644 "$to/lib/libcnos.so.0"
ln -sfn libcnos.so.0 "$to/lib/libcnos.so"
rm -f "$to/lib/libcnos.a"
"${AR:-$($cc -print-prog-name=ar)}" crs "$to/lib/libcnos.a" "$out/cnos.o"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" portals/capi/cnos/cnos.pc.in >"$to/lib/pkgconfig/cnos.pc"
install -m 644 portals/capi/ptlrun.1 "$to/share/man/man1"
echo "libportals3 and libcnos installed under $to"
