#!/bin/sh
# Builds the library and its programs into a tree that looks like an installed prefix.
#   ci/build.sh build             what users get
#   ci/build.sh build-faults      the same with planted faults, for the tests
#   ci/build.sh build-libportals  over libportals3 in build-libportals/portals, and the emulation
#   ci/build.sh build-address     with AddressSanitizer, for ci/sanitize.sh, which sets the flags
#   ci/build.sh build-contrary    over libportals-contrary only, an imitation of other vendors'
#   ci/build.sh build-lightweight over the libportals3 of build-libportals only, the archive for a
#                                 system that has nothing else (HOSTED=no; for static programs)
#   ci/build.sh build-TARGET      for a target of cross/, with the variables that ci/cross.sh sets
# The networks of `build` follow from PORTALS:
#   emulation   our own Portals only
#   libportals  a libportals only, found by PORTALS_INCLUDE and PORTALS_LIBS, by PORTALS_PREFIX,
#               or by pkg-config portals3
#   both        chosen at run time by GASNET_NETWORK
#
# Unset, it is both if one of these variables is set, or if pkg-config knows a portals3 that is not
# our own libportals3. Otherwise it is emulation. For another machine: ci/target.sh. The shared
# library is linked here, from the static archive. A plain cdylib does not export the symbols of C
# objects, and rustc offers no control of the soname and the version script.
set -eu
cd "$(dirname "$0")/.."
tree=$1
cargo=${CARGO:-cargo}
cc=${CC:-cc}
. ci/target.sh
networks=$(ci/networks.sh)
features=
defaults=
defs=-Wl,-z,defs

if [ ! -f "cross/${tree#build-}.target" ]; then
    HOSTED=yes SHARED=yes MODES="seq par parsync" CROSS_TARGET= STANDS_FOR= HOST= LAUNCHER= QEMU=
fi
case $tree in
build)
    target=target
    ;;
build-faults)
    target=target/faults
    networks=emulation
    features=faults
    ;;
build-address)
    target=target/address
    networks=emulation
    # The program that loads the library has the sanitizer's functions.
    defs=
    ;;
build-libportals)
    target=target/libportals
    networks=both
    export PORTALS_PREFIX="$PWD/$tree/portals" PORTALS_INCLUDE= PORTALS_LIBS=
    ;;
build-lightweight)
    target=target/lightweight
    networks=libportals
    HOSTED=no SHARED=no MODES=seq
    export PORTALS_PREFIX="$PWD/build-libportals/portals" PORTALS_INCLUDE= PORTALS_LIBS=
    ;;
build-contrary)
    # The dependencies and libportals3 are those of build-libportals.
    target=target/libportals
    networks=libportals
    export PORTALS_PREFIX="$PWD/$tree/portals" PORTALS_INCLUDE= PORTALS_LIBS=
    ;;
*)
    if [ ! -f "cross/${tree#build-}.target" ]; then
        echo "usage: $0 build | build-faults | build-address | build-libportals | build-contrary | build-lightweight | build-TARGET" >&2
        exit 2
    fi
    target=target/${tree#build-}
    ;;
esac
if [ "$tree" != build ] && [ ! -f "cross/${tree#build-}.target" ]; then
    # Test trees: a short build matters more than fast code.
    export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0
fi
case $tree in
build-faults | build-libportals | build-contrary | build-lightweight)
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    ;;
esac
case $tree in
build-libportals)
    CARGO_TARGET_DIR=$target ci/build-portals.sh
    CARGO_TARGET_DIR=$target ci/install-portals.sh "" "$PORTALS_PREFIX"
    ;;
build-lightweight)
    mkdir -p "$tree"
    ln -sfn ../build-libportals/portals "$tree/portals"
    ;;
build-contrary)
    CARGO_TARGET_DIR=$target ci/build-portals.sh
    CARGO_TARGET_DIR=$target ci/install-portals.sh "" "$PWD/$tree/below"
    mkdir -p "$PORTALS_PREFIX/lib" "$PORTALS_PREFIX/include/portals"
    cp -pu capi-tests/contrary/include/portals/*.h "$PORTALS_PREFIX/include/portals"
    $cc -std=gnu99 -Wall -Wextra -Werror -O2 -shared -fPIC -o "$PORTALS_PREFIX/lib/libportals.so" \
        -I capi-tests/contrary/include -I "$tree/below/include" capi-tests/contrary/contrary.c capi-tests/contrary/below.c \
        capi-tests/contrary/connect.c \
        -Wl,-rpath,"$PWD/$tree/below/lib" -ldl
    ;;
esac
case $networks in
emulation)
    unset PORTALS_INCLUDE PORTALS_LIBS PORTALS_PREFIX
    ;;
libportals)
    features=$features,libportals
    [ "$HOSTED" = no ] || features=$features,hosted
    defaults=--no-default-features
    ;;
both)
    features=$features,libportals
    ;;
*)
    echo "PORTALS=$networks: give emulation, libportals or both" >&2
    exit 2
    ;;
esac
out=$target/$released
mkdir -p "$tree/lib/pkgconfig" "$tree/bin" "$target"
programs="gasnetrun gasnet_info gasnet_trace"
[ "$HOSTED" = yes ] || programs=
# shellcheck disable=SC2086 # nothing or a flag
$cargo build --locked --release -p gasnet --lib $(for program in $programs; do echo "--bin $program"; done) --features "$features" $defaults --target-dir $target \
    --message-format=json-render-diagnostics >"$target/build.json"

# The build script that made the binding to a libportals also wrote the flags that link it.
portals_libs=
system_libs=
sed -n 's/.*"reason":"build-script-executed".*"out_dir":"\([^"]*\)".*/\1/p' "$target/build.json" >"$target/out_dirs"
while read -r dir; do
    if [ "$networks" != emulation ] && [ -e "$dir/libportals.link" ]; then
        portals_libs=$(cat "$dir/libportals.link")
        system_libs=$(cat "$dir/libportals.system")
        # A test compares it with the header.
        cp "$dir/portals3.rs" "$tree/lib/.libportals.rs"
    fi
done <"$target/out_dirs"

[ ! -L "$tree/include" ] || rm "$tree/include"
mkdir -p "$tree/include/portals-conduit" "$tree/lib" "$tree/bin"
for header in include/*.h; do
    ln -sf "../../$header" "$tree/include"
done
ln -sf ../../../include/portals-conduit/gasnet_core.h "$tree/include/portals-conduit"
# Links to headers that were removed.
find -L "$tree/include" -type l -exec rm {} +

archive=$out/libgasnet.a
# What the tree is made of, recorded once it is made; ci/install.sh and ci/client-files.sh read it.
# It decides what is made anew: cargo keeps the archive of each configuration with its old time.
record=$tree/lib/.built
cat >"$record.new" <<END
ARCHIVE=$(stat -c '%i %y %s' "$archive")
SCRIPTS=$(cat src/exports.map ci/build.sh ci/archive.sh cross/lightweight.c | cksum)
COMPILER=$(cat "$tree/lib/.compiler" 2>/dev/null || true)
CC=$cc
CXX=${CXX:-c++}
LDFLAGS=${LDFLAGS-}
LIBPORTALS=$portals_libs
SYSTEM=$system_libs
HOSTED=$HOSTED
SHARED=$SHARED
MODES=$MODES
CROSS_TARGET=$CROSS_TARGET
STANDS_FOR=$STANDS_FOR
HOST=$HOST
LAUNCHER=$LAUNCHER
QEMU=$QEMU
END
made=yes
[ "$SHARED" = no ] || [ -e "$tree/lib/libgasnet.so.0" ] || made=
[ -e "$tree/lib/libgasnet.a" ] && cmp -s "$record.new" "$record" || made=
if [ -z "$made" ]; then
    rm -f "$record"
    # Some targets have no shared libraries.
    if [ "$SHARED" = no ]; then
        rm -f "$tree"/lib/libgasnet*.so*
    else
        # shellcheck disable=SC2086 # these are flags; LDFLAGS are the user's
        $cc -shared -fPIC ${LDFLAGS-} -o "$tree/lib/libgasnet.so.0.new" \
            -Wl,-soname,libgasnet.so.0 -Wl,--version-script=src/exports.map \
            -Wl,-z,nodelete $defs -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections -Wl,--as-needed \
            -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $portals_libs \
            -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
        mv "$tree/lib/libgasnet.so.0.new" "$tree/lib/libgasnet.so.0"
        ln -sfn libgasnet.so.0 "$tree/lib/libgasnet.so"
    fi
    instead=
    if [ "$HOSTED" = no ]; then
        instead=$tree/lib/.lightweight.o
        $cc -std=gnu99 -O2 -Wall -Wextra -fPIC -ffunction-sections -c cross/lightweight.c -o "$instead"
    fi
    # What src/exports.map exports.
    ci/archive.sh "$archive" "$tree/lib/libgasnet.a" '^(gasnet[it]?|gex)_' $instead
fi
mv "$record.new" "$record"
ci/client-files.sh "" "$PWD/$tree" TREE="$tree"
for program in $programs; do
    cmp -s "$out/$program" "$tree/bin/$program" && continue
    cp -p "$out/$program" "$tree/bin/$program.new"
    mv "$tree/bin/$program.new" "$tree/bin/$program"
done
[ -z "$programs" ] || ln -sfn gasnetrun "$tree/bin/gasnetrun_portals"
