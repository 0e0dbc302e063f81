#!/bin/sh
# Installs the build tree.
#   ci/install.sh DESTDIR PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=$2
to=$1$2
for folder in include/portals-conduit lib bin share/man/man1 share/man/man7; do
    mkdir -p "$to/$folder"
done
install -m 644 include/*.h "$to/include"
install -m 644 include/portals-conduit/*.h "$to/include/portals-conduit"
install -m 755 build/lib/libgasnet.so.0 "$to/lib"
install -m 644 build/lib/libgasnet.a "$to/lib"
ln -sfn libgasnet.so.0 "$to/lib/libgasnet.so"
ci/client-files.sh "$to" "$prefix"
install -m 755 build/bin/gasnetrun build/bin/gasnet_info build/bin/gasnet_trace "$to/bin"
ln -sfn gasnetrun "$to/bin/gasnetrun_portals"
install -m 644 docs/man/*.1 "$to/share/man/man1"
ln -sfn gasnetrun.1 "$to/share/man/man1/gasnetrun_portals.1"
install -m 644 docs/man/*.7 "$to/share/man/man7"
doc=$to/share/doc/GASNet
mkdir -p "$doc"
install -m 644 *.md LICENSE-MIT LICENSE-APACHE "$doc"
# The guide and the examples keep their folders, so that links between them hold.
for file in examples/*.c examples/Makefile examples/README.md \
    docs/*.md docs/guide/*.md docs/guide/*/* docs/internals/*.md docs/internals/*/*; do
    install -D -m 644 "$file" "$doc/$file"
done
echo "installed under $to"
