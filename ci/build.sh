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

mkdir -p "$tree/lib/pkgconfig" "$tree/bin"
ln -sfn ../include "$tree/include"

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
cp -pu "$archive" "$tree/lib/libgasnet.a"
for mode in seq par parsync; do
    ln -sfn libgasnet.so "$tree/lib/libgasnet-portals-$mode.so"
    ln -sfn libgasnet.a "$tree/lib/libgasnet-portals-$mode.a"
    ci/pkgconfig.sh "$mode" "$PWD/$tree" >"$tree/lib/pkgconfig/gasnet-portals-$mode.pc"
done
cp -pu "$out/gasnetrun" "$tree/bin/gasnetrun"
ln -sfn gasnetrun "$tree/bin/gasnetrun_portals"
