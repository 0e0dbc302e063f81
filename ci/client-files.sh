#!/bin/sh
# Writes what client builds read, for a library installed under PREFIX: link names, make
# fragments, pkg-config files, the CMake package. The templates are in ci/client.
#   ci/client-files.sh DESTDIR PREFIX [NAME=folder]...      NAME: see ci/folders.sh
# What they say of the build is what ci/build.sh has recorded in the build tree. For a target of
# cross/, files are added with which configure scripts and CMake of clients cross-compile.
set -eu
cd "$(dirname "$0")/.."
make_first=make
. ci/folders.sh
include=$destdir$includedir
lib=$destdir$libdir
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
number() { awk -v name="GASNET_RELEASE_VERSION_$1" '$2 == name { print $3 }' include/gasnet_config.h; }
major=$(number MAJOR)
release=$major.$(number MINOR).$(number PATCH)
# The libraries that a link with the archive needs in addition, and the functions of the system
# that it refers to weakly. gcc and clang add the unwinder's themselves, the right one for static
# programs and for others. A lightweight kernel has no libraries for threads, timers and shared
# objects.
portals=$(recorded LIBPORTALS)
system=$(recorded SYSTEM)
unwind=$(cat "$tree/lib/.unwind" 2>/dev/null || true)
hosted=$(recorded HOSTED yes)
of_linux="-lutil -lrt -lpthread "
[ "$hosted" = yes ] || of_linux=
static="${system:+$system }${portals:+$portals }${unwind:+$unwind }$of_linux-lm ${of_linux:+-ldl }-lc"
modes=$(recorded MODES "seq par parsync")
# The thread mode of clients that name none.
case " $modes " in *" par "*) threading=par ;; *) threading=${modes%% *} ;; esac
shared=$(recorded SHARED yes)
cc=$(recorded CC cc)
cxx=$(recorded CXX c++)
target=$(recorded CROSS_TARGET)
stands_for=$(recorded STANDS_FOR)
host=$(recorded HOST)
launcher=$(recorded LAUNCHER)
qemu=$(recorded QEMU)
if [ -n "$target" ]; then
    cc=$bindir/$target-cc
    cxx=$bindir/$target-c++
fi
processor=${host%%-*}
char_unsigned=no
case $processor in aarch64 | riscv64) char_unsigned=yes ;; esac
more=-lm
[ "$shared" = yes ] || more=$static
# link NAME: a link name of the library.
link() {
    [ "$shared" = no ] || ln -sfn libgasnet.so "$lib/lib$1.so"
    ln -sfn libgasnet.a "$lib/lib$1.a"
}
mkdir -p "$include/portals-conduit" "$lib/pkgconfig" "$lib/cmake/GASNet"
# The CMake package derives its folders from its own location, if they are below PREFIX.
back=$(back "$libdir/cmake/GASNet")
cmake_prefix=${back:+\${_gasnet_here\}/$back}

# fill MODE DEFINES THREADS TEMPLATE FILE: folders below PREFIX are written with @REFERENCE@.
fill() {
    case $4 in
    *mak.in) reference='$(GASNET_PREFIX)' folder_of_libraries='$(GASNET_LIBDIR)' ;;
    *.pc.in) reference='${prefix}' folder_of_libraries='${libdir}' ;;
    *) reference='${_gasnet_prefix}' folder_of_libraries= ;;
    esac
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@LIBDIR@|$(relative "$libdir" "$reference")|g" \
        -e "s|@INCLUDEDIR@|$(relative "$includedir" "$reference")|g" \
        -e "s|@INCLUDE@|$includedir|g" -e "s|@BINDIR@|$(relative "$bindir" "$reference")|g" \
        -e "s|@CMAKE_PREFIX@|${cmake_prefix:-$prefix}|" -e "s|@RPATH@|$(rpath "$folder_of_libraries")|" \
        -e "s|@MODE@|$1|g" -e "s|@UPPER@|$(echo "$1" | tr a-z A-Z)|g" -e "s|@DEFINES@|$2|" \
        -e "s|@THREADS@|$3|" -e "s|@VERSION@|$version|" -e "s|@RELEASE@|$release|" -e "s|@MAJOR@|$major|" \
        -e "s|@CC@|$cc|" -e "s|@CXX@|$cxx|" -e "s|@MODES@|$modes|g" -e "s|@THREADING@|$threading|g" -e "s|@STATIC@|$static|" -e "s|@MORE@|$more|" \
        -e "s|@TARGET@|$target|g" -e "s|@STANDS_FOR@|$stands_for|" -e "s|@HOST@|$host|" -e "s|@LAUNCHER@|$launcher|" \
        -e "s|@QEMU@|$qemu|" -e "s|@PROCESSOR@|$processor|" \
        -e "s|@CHAR_UNSIGNED@|$char_unsigned|" -e "s|@HOSTED@|$hosted|" -e "s|@LIBRARIES@|$libdir|" \
        -e "s|@STATIC_CMAKE@|$(echo "$static" | sed -e 's/^-l//' -e 's/ -l/ /g' -e 's/ /;/g')|" \
        -e 's/  */ /g' -e 's/ *$//' "ci/client/$4" >"$5.new"
    mv "$5.new" "$5"
}

for mode in $modes; do
    defines="-DGASNET_$(echo $mode | tr a-z A-Z)"
    threads=
    if [ $mode != seq ]; then
        defines="$defines -D_REENTRANT"
        threads=-lpthread
    fi
    link gasnet-portals-$mode
    fill $mode "$defines" "$threads" gasnet.mak.in "$include/portals-conduit/portals-$mode.mak"
    fill $mode "$defines" "$threads" gasnet.pc.in "$lib/pkgconfig/gasnet-portals-$mode.pc"
done
for mode in seq par; do
    defines=
    threads=
    if [ $mode = par ]; then
        defines="-DGASNETT_THREAD_SAFE -D_REENTRANT"
        threads=-lpthread
    fi
    link gasnet_tools-$mode
    fill $mode "$defines" "$threads" gasnet_tools.mak.in "$include/gasnet_tools-$mode.mak"
    fill $mode "$defines" "$threads" gasnet_tools.pc.in "$lib/pkgconfig/gasnet_tools-$mode.pc"
done
fill "" "" "" GASNetConfig.cmake.in "$lib/cmake/GASNet/GASNetConfig.cmake"
fill "" "" "" GASNetConfigVersion.cmake.in "$lib/cmake/GASNet/GASNetConfigVersion.cmake"
if [ -n "$target" ]; then
    for mode in $modes; do
        fill "" "" "" cross.mak.in "$include/cross.part"
        cat "$include/cross.part" >>"$include/portals-conduit/portals-$mode.mak"
    done
    rm "$include/cross.part"
    fill "" "" "" cross-configure.in "$include/portals-conduit/cross-configure-$target"
    fill "" "" "" toolchain.cmake.in "$lib/cmake/GASNet/toolchain.cmake"
fi
