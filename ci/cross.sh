#!/bin/sh
# Builds library, programs and C test programs for a target of cross/, into build-TARGET.
#   ci/cross.sh TARGET
# CROSS_CC and CROSS_CXX name the compilers, else the target file does. PORTALS_PREFIX names the
# target's libportals. With CROSS_PREFIX the result is installed there, below CROSS_DESTDIR.
# PROGRAMS names the test programs to build, all by default ("none": none).
set -eu
cd "$(dirname "$0")/.."
case $PWD in
*[[:space:]]*)
    echo "make cross: the path $PWD has a blank, so no program can be compiled against build-TARGET/ there" >&2
    echo "  Build in a folder whose path has none." >&2
    exit 2
    ;;
esac
target=${1-}
. ci/cross/target.sh

# The networks: over a libportals if one is named, else our own Portals.
PORTALS=emulation
if [ -n "${PORTALS_PREFIX-}" ]; then
    ci/cross/prefix.sh "$target" "$PORTALS_PREFIX"
    PORTALS=${NETWORK:-both}
elif [ -n "${PORTALS_INCLUDE-}${PORTALS_LIBS-}" ]; then
    PORTALS=${NETWORK:-both}
elif [ "$NETWORK" = libportals ]; then
    unfit=77
    refuse "it needs the target's libportals" "give PORTALS_PREFIX=the folder with its include and lib"
fi
ci/cross/compiler.sh "$target"

export CC="$PWD/$tree/bin/$target-cc" CXX="$PWD/$tree/bin/$target-c++" PORTALS
export CARGO_BUILD_TARGET="$RUST_TARGET" CROSS_TARGET="$target" HOSTED MODES
export SHARED STANDS_FOR HOST LAUNCHER QEMU
# Over a libportals, the programs that such a launcher starts have functions of the system.
GASNET_BUILD_LAUNCHER=
case $PORTALS:$LAUNCHER in
*:gasnetrun* | *:srun* | emulation:*) ;;
*) GASNET_BUILD_LAUNCHER=${LAUNCHER%% *} ;;
esac
export GASNET_BUILD_LAUNCHER
cpu="-Ctarget-cpu=$CPU"
case $CPU in generic*) cpu= ;; esac
[ -z "$WITHOUT" ] || cpu="$cpu -Ctarget-feature=-$WITHOUT"
# Crate sha2 would choose instructions of newer processors when it runs.
export RUSTFLAGS="${RUSTFLAGS-} $cpu -Clinker=$CC --cfg sha2_256_backend=\"soft\""
if [ -n "$GLIBC" ] && [ "${GLIBC#*.}" -lt 16 ]; then
    "$CC" -O2 -c cross/old-glibc.c -o "$tree/lib/.old-glibc.o"
    RUSTFLAGS="$RUSTFLAGS -Clink-arg=$PWD/$tree/lib/.old-glibc.o"
fi
if [ -n "$(cat "$tree/lib/.static")" ]; then
    RUSTFLAGS="$RUSTFLAGS -Ctarget-feature=+crt-static -Crelocation-model=static"
    SHARED=no
fi
# Build scripts run on this machine: its own compiler links them.
if [ "$RUST_TARGET" = "$(${RUSTC:-rustc} -vV | sed -n 's/^host: //p')" ]; then
    export "CARGO_TARGET_$(echo "$RUST_TARGET" | tr 'a-z-' 'A-Z_')_LINKER=cc"
fi
# On x86-64 the binutils of this machine serve, whatever the compiler.
if [ "${RUST_TARGET%%-*}" = "$(uname -m)" ]; then
    export NM=nm LD=ld READELF=readelf OBJCOPY=objcopy AR=ar
fi
ci/build.sh "$tree"
ci/cross/programs.sh "$target"
if [ -n "${CROSS_PREFIX-}" ]; then
    ci/install.sh "${CROSS_DESTDIR-}" "$CROSS_PREFIX" TREE="$tree"
fi
echo "$tree: $STANDS_FOR, $(cat "$tree/lib/.compiler"), network $PORTALS"
