#!/bin/sh
# Installs a build tree: `build`, or the one named, of a cross-build.
#   ci/install.sh DESTDIR PREFIX [TREE]
set -eu
cd "$(dirname "$0")/.."
prefix=$2
to=$1$2
tree=${3:-build}
for folder in include/portals-conduit lib bin; do
    mkdir -p "$to/$folder"
done
install -m 644 include/*.h "$to/include"
install -m 644 include/portals-conduit/*.h "$to/include/portals-conduit"
install -m 644 "$tree/lib/libgasnet.a" "$to/lib"
if [ -e "$tree/lib/libgasnet.so.0" ]; then
    install -m 755 "$tree/lib/libgasnet.so.0" "$to/lib"
    ln -sfn libgasnet.so.0 "$to/lib/libgasnet.so"
fi
ci/client-files.sh "$to" "$prefix" "$tree"
for program in gasnetrun gasnet_info gasnet_trace; do
    install -m 755 "$tree/bin/$program" "$to/bin"
done
ln -sfn gasnetrun "$to/bin/gasnetrun_portals"
for page in docs/man/*.[137]; do
    install -D -m 644 "$page" "$to/share/man/man${page##*.}/${page##*/}"
done
ln -sfn gasnetrun.1 "$to/share/man/man1/gasnetrun_portals.1"
# Each function's name leads to the page of its family.
for page in docs/man/*.3; do
    for name in $(sed -n '/^\.SH NAME/{n;s/ \\-.*//;s/,//g;p;}' "$page"); do
        ln -sfn "$(basename "$page")" "$to/share/man/man3/$name.3"
    done
done
doc=$to/share/doc/GASNet
mkdir -p "$doc"
install -m 644 *.md LICENSE-MIT LICENSE-APACHE "$doc"
# Pages and examples keep their folders, so that the links between them hold.
for file in examples/*.c examples/Makefile examples/*.md \
    $(find docs -name '*.md' -o -name '*.svg' -o -name '*.png'); do
    install -D -m 644 "$file" "$doc/$file"
done
echo "installed under $to"
