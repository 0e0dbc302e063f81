#!/bin/sh
# Builds and installs libportals3: libraries, portals3.h, portals3.pc, and the launcher ptlrun
# with its manual page.
#   ci/install-portals.sh DESTDIR PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=$2
to=$1$2
. ci/target.sh
${CARGO:-cargo} build --release -p portals3-c
out=${CARGO_TARGET_DIR:-target}/$released
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
mkdir -p "$to/include/portals" "$to/lib/pkgconfig" "$to/bin" "$to/share/man/man1"
install -m 644 portals/capi/include/portals3.h "$to/include"
install -m 644 portals/capi/include/portals/portals3.h "$to/include/portals"
install -m 755 "$out/libportals3_c.so" "$to/lib/libportals3.so.0"
ln -sfn libportals3.so.0 "$to/lib/libportals3.so"
install -m 644 "$out/libportals3_c.a" "$to/lib/libportals3.a"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" portals/capi/portals3.pc.in >"$to/lib/pkgconfig/portals3.pc"
install -m 755 "$out/ptlrun" "$to/bin"
install -m 644 portals/capi/ptlrun.1 "$to/share/man/man1"
echo "libportals3 installed under $to"
