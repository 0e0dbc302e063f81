#!/bin/sh
# Builds the library and its programs into a tree that looks like an installed prefix.
#   ci/build.sh build           what users get
#   ci/build.sh build-faults    the same with planted faults, for the tests
# The shared library is linked here, from the static archive: symbols of C objects are not exported from a plain cdylib,
# and rustc has no say in the soname and the version script.
set -eu
cd "$(dirname "$0")/.."
tree=$1
cargo=${CARGO:-cargo}
cc=${CC:-cc}

case $tree in
build)
    target=target
    $cargo build --release -p gasnet
    ;;
build-faults)
    # Built fast rather than built to be fast.
    target=target/faults
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        $cargo build --release -p gasnet --features faults --target-dir $target
    ;;
*)
    echo "usage: $0 build | build-faults" >&2
    exit 2
    ;;
esac
out=$target/release

[ ! -L "$tree/include" ] || rm "$tree/include"
mkdir -p "$tree/include/portals-conduit" "$tree/lib" "$tree/bin"
for header in include/*.h; do
    ln -sf "../../$header" "$tree/include"
done
ln -sf ../../../include/portals-conduit/gasnet_core.h "$tree/include/portals-conduit"

archive=$out/libgasnet.a
if [ ! -e "$tree/lib/libgasnet.so.0" ] || [ "$archive" -nt "$tree/lib/libgasnet.so.0" ] ||
    [ src/exports.map -nt "$tree/lib/libgasnet.so.0" ] || [ "$0" -nt "$tree/lib/libgasnet.so.0" ]; then
    $cc -shared -fPIC -o "$tree/lib/libgasnet.so.0.new" \
        -Wl,-soname,libgasnet.so.0 -Wl,--version-script=src/exports.map \
        -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections -Wl,--as-needed \
        -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
        -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
    mv "$tree/lib/libgasnet.so.0.new" "$tree/lib/libgasnet.so.0"
fi
ln -sfn libgasnet.so.0 "$tree/lib/libgasnet.so"
if [ ! "$tree/lib/libgasnet.a" -nt "$tree/lib/libgasnet.so.0" ] || [ ci/archive.sh -nt "$tree/lib/libgasnet.a" ]; then
    ci/archive.sh "$archive" "$tree/lib/libgasnet.so.0" "$tree/lib/libgasnet.a"
fi
ci/client-files.sh "$tree" "$PWD/$tree"
cp -pu "$out/gasnetrun" "$out/gasnet_info" "$tree/bin"
ln -sfn gasnetrun "$tree/bin/gasnetrun_portals"
