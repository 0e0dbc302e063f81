#!/bin/sh
# Installs a build tree: copies, and builds nothing.
#   ci/install.sh DESTDIR PREFIX [NAME=folder]...      NAME: see ci/folders.sh
set -eu
cd "$(dirname "$0")/.."
make_first=make
. ci/folders.sh
programs="gasnetrun gasnet_info gasnet_trace"
[ "$(recorded HOSTED yes)" = yes ] || programs=
# shellcheck disable=SC2086 # a list of words
built "$tree/lib/libgasnet.a" $(for program in $programs; do echo "$tree/bin/$program"; done)
CC=$(recorded CC "${CC:-cc}")
target=$(recorded CROSS_TARGET)
include=$destdir$includedir
lib=$destdir$libdir
man=$destdir$mandir
mkdir -p "$include/portals-conduit" "$lib"
install -m 644 include/*.h "$include"
install -m 644 include/portals-conduit/*.h "$include/portals-conduit"
install -m 644 "$tree/lib/libgasnet.a" "$lib"
if [ -e "$tree/lib/libgasnet.so.0" ]; then
    install -m 755 "$tree/lib/libgasnet.so.0" "$lib"
    ln -sfn libgasnet.so.0 "$lib/libgasnet.so"
fi
ci/client-files.sh "$destdir" "$prefix" "$@"
for program in $programs; do
    tool "$tree/bin/$program"
done
[ -z "$programs" ] || ln -sfn gasnetrun "$destdir$bindir/gasnetrun_portals"
if [ -n "$target" ]; then
    mkdir -p "$destdir$bindir"
    install -m 755 "$tree/bin/$target-cc" "$tree/bin/$target-c++" "$destdir$bindir"
fi
for page in docs/man/*.[137]; do
    install -D -m 644 "$page" "$man/man${page##*.}/${page##*/}"
done
ln -sfn gasnetrun.1 "$man/man1/gasnetrun_portals.1"
# Each function's name leads to the page of its family.
for page in docs/man/*.3; do
    for name in $(sed -n '/^\.SH NAME/{n;s/ \\-.*//;s/,//g;p;}' "$page"); do
        [ "$name.3" = "${page##*/}" ] || ln -sfn "${page##*/}" "$man/man3/$name.3"
    done
done
completions gasnetrun gasnet_info gasnet_trace
completion_links gasnetrun gasnetrun_portals
doc=$destdir$docdir
mkdir -p "$doc"
install -m 644 *.md LICENSE-MIT LICENSE-APACHE "$doc"
# A release has the licences of its crates.
[ ! -e THIRD-PARTY.txt ] || install -m 644 THIRD-PARTY.txt "$doc"
# Pages and examples keep their folders, so that the links between them hold.
for file in examples/*.c examples/Makefile examples/*.md \
    $(find docs -name '*.md' -o -name '*.svg' -o -name '*.png'); do
    install -D -m 644 "$file" "$doc/$file"
done
echo "installed under $destdir$prefix"
