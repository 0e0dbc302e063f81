#!/bin/sh
# Installs libportals3 (libraries, portals3.h, portals3.pc, the launcher ptlrun with its manual
# page) and libcnos (libraries, cnos_mpi_os.h, cnos.pc). Copies, and builds nothing.
#   ci/install-portals.sh DESTDIR PREFIX [NAME=folder]...      NAME: see ci/folders.sh
set -eu
cd "$(dirname "$0")/.."
make_first="make portals"
. ci/folders.sh
. ci/target.sh
out=${CARGO_TARGET_DIR:-target}/$released
cnos=$out/libcnos.so
[ $run_path = yes ] || cnos=$out/libcnos-system.so
built "$out/libportals3_c.so" "$out/libportals3.a" "$out/ptlrun" "$cnos" "$out/libcnos.a"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
include=$destdir$includedir
lib=$destdir$libdir
mkdir -p "$include/portals" "$include/catamount" "$lib/pkgconfig" "$destdir$mandir/man1"
install -m 644 portals/capi/include/portals3.h "$include"
install -m 644 portals/capi/include/portals/portals3.h "$include/portals"
install -m 755 "$out/libportals3_c.so" "$lib/libportals3.so.0"
ln -sfn libportals3.so.0 "$lib/libportals3.so"
install -m 644 "$out/libportals3.a" "$lib"
for package in portals3 cnos/cnos; do
    sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" -e "s|@RPATH@|$(rpath '${libdir}')|" \
        -e "s|@LIBDIR@|$(relative "$libdir" '${prefix}')|" -e "s|@INCLUDEDIR@|$(relative "$includedir" '${prefix}')|" \
        -e 's/  */ /g' portals/capi/$package.pc.in >"$lib/pkgconfig/${package##*/}.pc"
done
install -m 644 portals/capi/include/cnos_mpi_os.h "$include"
install -m 644 portals/capi/include/catamount/cnos_mpi_os.h "$include/catamount"
# rpmbuild strips executable files only.
install -m 755 "$cnos" "$lib/libcnos.so.0"
ln -sfn libcnos.so.0 "$lib/libcnos.so"
install -m 644 "$out/libcnos.a" "$lib"
tool "$out/ptlrun"
completions ptlrun
install -m 644 portals/capi/ptlrun.1 "$destdir$mandir/man1"
echo "libportals3 and libcnos installed under $destdir$prefix"
