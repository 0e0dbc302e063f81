#!/bin/sh
# Installs the build tree.
#   ci/install.sh DESTDIR PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=$2
to=$1$2
mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/bin" "$to/share/doc/GASNet"
install -m 644 include/*.h "$to/include"
install -m 755 build/lib/libgasnet.so.0 "$to/lib"
install -m 644 build/lib/libgasnet.a "$to/lib"
ln -sfn libgasnet.so.0 "$to/lib/libgasnet.so"
for mode in seq par parsync; do
    ln -sfn libgasnet.so "$to/lib/libgasnet-portals-$mode.so"
    ln -sfn libgasnet.a "$to/lib/libgasnet-portals-$mode.a"
    ci/pkgconfig.sh "$mode" "$prefix" >"$to/lib/pkgconfig/gasnet-portals-$mode.pc"
done
install -m 755 build/bin/gasnetrun "$to/bin"
ln -sfn gasnetrun "$to/bin/gasnetrun_portals"
install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$to/share/doc/GASNet"
echo "installed under $to"
