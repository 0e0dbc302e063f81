#!/bin/sh
# Builds for a target of cross/, and checks what this machine can show of it. Each check is a line.
# The last line is their sum, as that of a Rust test.
#   ci/cross-check.sh TARGET           all, with the build that users get
#   ci/cross-check.sh TARGET sample    for `make check`: a faster build, and a few test programs
#
# A check that must find something is also run on a planted fault, which it must find.
set -u
cd "$(dirname "$0")/.."
target=${1-}
sample=${2-}
. ci/cross/target.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
log=$work
progress() { :; }
ended() { :; }
. ci/steps.sh

# The last line, and the exit code.
finish() {
    result=ok
    [ $failed = 0 ] || result=FAILED
    echo "test result: $result. $passed passed; $failed failed; 0 ignored"
    [ $failed = 0 ]
    exit
}

# finds TEXT COMMAND...: the command fails and prints TEXT.
finds() {
    text=$1
    shift
    ! "$@" >"$work/found" 2>&1 || {
        echo "it passed, but must fail: $*"
        return 1
    }
    grep -q -- "$text" "$work/found" || {
        echo "it does not name '$text':"
        cat "$work/found"
        return 1
    }
}

# The sample: a faster build, and a few programs.
if [ -n "$sample" ]; then
    export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0
    export PROGRAMS="testhello testsmall testam testexit testhsl testcoll"
fi
# A system without processes gets no programs here: the tests `lightweight::` run them.
if [ $HOSTED = no ]; then
    export PROGRAMS=none
    [ -n "${PORTALS_PREFIX-}" ] || [ ! -e build-libportals/portals/lib ] || export PORTALS_PREFIX="$PWD/build-libportals/portals"
fi
step build ci/cross.sh "$target"
if [ $code = 77 ]; then
    # Two lines: what is missing, and the remedy.
    tail -n 2 "$output" | sed 's/^\*\*\* *//' | paste -s -d ';' | sed 's/;/; /'
    exit 77
fi
[ $code = 0 ] || finish
cc=$PWD/$tree/bin/$target-cc

# Outside names and versions of glibc.
step names ci/cross/names.sh "$target"
planted_name() {
    echo 'extern int planted_name(void); int gasneti_planted(void); int gasneti_planted(void) { return planted_name(); }' >"$work/name.c"
    "$cc" -c "$work/name.c" -o "$work/name.o" && cp "$tree/lib/libgasnet.a" "$work" && ar r "$work/libgasnet.a" "$work/name.o" &&
        finds planted_name ci/cross/names.sh "$target" "$work/libgasnet.a"
}
step planted_name planted_name
planted_version() {
    echo 'int main(void) { return 0; }' >"$work/version.c"
    cc "$work/version.c" -o "$work/version" && finds 'GLIBC_2' ci/cross/names.sh "$target" "$work/version"
}
if [ -n "$GLIBC" ]; then step planted_version planted_version; fi

# Instructions. An emulator must refuse what the check finds.
case $CPU in
generic*) skip "$target instructions" "there is no list of them for this processor" ;;
*)
    set -- "$tree/lib/libgasnet.a"
    programs="$tree/tests/*/test*"
    [ -z "$sample" ] || programs=$tree/tests/par/testsmall
    for file in "$tree"/lib/libgasnet.so.0 "$tree"/bin/gasnet* $programs; do
        [ ! -f "$file" ] || [ -L "$file" ] || set -- "$@" "$file"
    done
    step instructions ci/cross/cpu.sh "$CPU" "$@"
    young=popcnt
    [ "$CPU" != barcelona ] || young=pshufb
    planted_instruction() {
        {
            echo 'int main(int argc, char **argv) { (void)argv;'
            [ $young != popcnt ] || echo '__asm__ volatile("popcnt %0, %0" : "+r"(argc));'
            [ $young != pshufb ] || echo '__asm__ volatile("pshufb %%mm0, %%mm1" : : : "mm0", "mm1");'
            echo 'return argc > 9; }'
        } >"$work/young.c"
        "$cc" -O1 "$work/young.c" -o "$work/young" && finds "$young" ci/cross/cpu.sh "$CPU" "$work/young"
    }
    step planted_instruction planted_instruction
    ;;
esac

# The files by which clients build: make, configure and CMake.
make_fragment() {
    printf 'include %s/include/portals-conduit/portals-seq.mak\nall: ; $(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) %s -o %s $(GASNET_LDFLAGS) $(GASNET_LIBS)\nrun: ; @echo $(GASNET_RUN)\n' \
        "$PWD/$tree" capi-tests/clients/hello.c "$work/hello" >"$work/Makefile"
    make -s -f "$work/Makefile" all && ci/cross/names.sh "$target" "$work/hello" &&
        [ "$(make -s -f "$work/Makefile" run)" = "$LAUNCHER" ]
}
# For a lightweight kernel, which has none of Linux's libraries for threads, timers and shared
# objects: a static program, by this machine's compiler, since zig cc links none. It has no
# functions of the system, so it starts only if the user says that it is alone.
make_static() {
    printf 'include %s/include/portals-conduit/portals-seq.mak\nflags: ; @echo $(GASNET_CPPFLAGS) $(GASNET_CFLAGS)\nlibs: ; @echo $(GASNET_STATIC_LIBS)\nrun: ; @echo $(GASNET_RUN)\n' \
        "$PWD/$tree" >"$work/Makefile"
    libs=$(make -s -f "$work/Makefile" libs)
    case " $libs " in
    *" -lpthread "* | *" -ldl "* | *" -lrt "* | *" -lutil "*)
        echo "the fragment names a library that $STANDS_FOR lacks: $libs"
        return 1
        ;;
    esac
    # shellcheck disable=SC2046,SC2086 # flags; gcc adds the library of its unwinder
    cc -static $(make -s -f "$work/Makefile" flags) capi-tests/clients/hello.c -o "$work/hello" \
        $(echo "$libs" | sed 's/ -lunwind / /; s/ -lgcc_s / /') &&
        finds 'joins no job' "$work/hello" && GASNET_SPAWN_CONTROL=ALONE "$work/hello" &&
        [ "$(make -s -f "$work/Makefile" run)" = "$LAUNCHER" ]
}
if [ $HOSTED = yes ]; then
    step make_fragment make_fragment
elif [ "$(cc -print-file-name=libc.a)" = libc.a ]; then
    skip "$target make_static" "libc.a is not installed: Debian package libc6-dev"
else
    step make_static make_static
fi
answers() {
    (
        unset CC CXX
        # shellcheck disable=SC1090,SC2154 # written by ci/client-files.sh
        . "$PWD/$tree/include/portals-conduit/cross-configure-$target"
        for type in char short int long "long long" "void *" "size_t" "ptrdiff_t" float double; do
            eval "size=\$ac_cv_sizeof_$(echo "$type" | sed -e 's/void \*/void_p/' -e 's/ /_/g')"
            echo "char c$((number = ${number:-0} + 1))[sizeof($type) == $size ? 1 : -1];"
        done >"$work/sizes"
        # shellcheck disable=SC2154
        [ "$ac_cv_c_char_unsigned" = no ] && sign='<' || sign='>'
        (echo '#include <stddef.h>' && cat "$work/sizes" && echo "char sign[(char)-1 $sign 0 ? 1 : -1];") >"$work/sizes.c"
        # shellcheck disable=SC2154
        "$CC" -c "$work/sizes.c" -o "$work/sizes.o" && [ "$ac_cv_func_fork_works$ac_cv_func_mmap_fixed_mapped" = "$HOSTED$HOSTED" ]
    )
}
step answers_for_configure answers
[ $HOSTED = yes ] || finish
if command -v cmake >/dev/null 2>&1; then
    # The sample has no C++ program: zig would first compile the C++ library.
    clients=capi-tests/clients
    if [ -n "$sample" ]; then
        clients=$work/clients
        mkdir "$clients"
        cp capi-tests/clients/hello.c "$clients"
        {
            echo 'cmake_minimum_required(VERSION 3.13)'
            echo 'project(hello C)'
            echo 'find_package(GASNet REQUIRED)'
            echo 'add_executable(seq hello.c)'
            echo 'target_link_libraries(seq GASNet::portals-seq)'
        } >"$clients/CMakeLists.txt"
    fi
    with_cmake() {
        cmake -S "$clients" -B "$work/cmake" -DCMAKE_TOOLCHAIN_FILE="$PWD/$tree/lib/cmake/GASNet/toolchain.cmake" &&
            cmake --build "$work/cmake" -j 2 && ci/cross/names.sh "$target" "$work/cmake/seq" &&
            { [ -n "$sample" ] || ci/cross/names.sh "$target" "$work/cmake/cxx"; }
    }
    step cmake with_cmake
else
    skip "$target cmake" "cmake is not installed: Debian package cmake"
fi

# The launcher of this build, where this machine can run it.
native=
[ "${RUST_TARGET%%-*}" != "$(uname -m)" ] || native=yes
launcher() { timeout -k 5 120 $1 "$tree/bin/gasnetrun" -n 2 "$tree/tests/seq/testsmall" 20 2048; }
if [ -n "$native" ]; then step gasnetrun launcher ""; fi

# The C test programs, at 1, 2 and 4 ranks. They run in the emulator of the target's processor,
# and on this processor as on the target's kernel.
runs() {
    for mode in seq par; do
        case " $MODES " in *" $mode "*) ;; *) continue ;; esac
        # An older kernel than 2.6.27 cannot serve the threads of this machine's C library.
        through=$2
        if [ "$1" = kernel ]; then
            level=$KERNEL
            [ $mode != par ] || case $level in 2.6.1*) level=2.6.27 ;; esac
            through="$work/underkernel $level"
        fi
        names=${PROGRAMS:-$(cd "$tree/tests/$mode" && echo test*)}
        # The emulator's own work would count as CPU time of waiting ranks.
        if [ "$1" = emulator ]; then names=$(echo "$names" | sed 's/\<testidle\>//'); fi
        if [ "$1$mode" = emulatorpar ] && [ -n "$misaligned" ]; then names=$(echo "$names" | sed 's/\<testtools\>//'); fi
        for ranks in 1 2 4; do
            step "programs $mode, $ranks ranks, ${through#"$work/"}" programs $mode $ranks "$through" "$names"
        done
    done
}
# programs MODE RANKS THROUGH NAMES
programs() {
    TREE="$tree" BUILT="$tree/tests/$1" THROUGH="$3" ONLY="$4" SECONDS=300 \
        "${CARGO:-cargo}" run --quiet -p capi-tests --bin check-programs -- capi-tests "$2" "$1" || return
    sed -n 's/^check-programs .* processes: \([0-9]* passed\).*, \([0-9]* skipped\)$/summary: \1, \2/p' "$output"
}
if command -v "${QEMU%% *}" >/dev/null 2>&1; then
    refused_instruction() {
        # shellcheck disable=SC2086 # a command with options
        $QEMU "$work/young" 2>&1
        [ $? = 132 ]
    }
    case $CPU in generic*) ;; *) step refused_instruction refused_instruction ;; esac
    # QEMU before version 9 starts signal handlers with a misaligned stack. Their aligned stores
    # then fault, as in the children of testtools that abort (PAR).
    {
        echo '#include <signal.h>'
        echo '#include <stdint.h>'
        echo 'static void h(int s) { (void)s; _Exit((uintptr_t)__builtin_frame_address(0) % 16 ? 8 : 0); }'
        echo 'int main(void) { signal(SIGUSR1, h); raise(SIGUSR1); return 1; }'
    } | sed '1i #include <stdlib.h>' >"$work/aligned.c"
    misaligned=
    "$cc" -O1 -fno-omit-frame-pointer "$work/aligned.c" -o "$work/aligned"
    # shellcheck disable=SC2086 # a command with options
    $QEMU "$work/aligned" || {
        misaligned=yes
        [ -n "$sample" ] || skip "$target testtools par" "this ${QEMU%% *} gives signal handlers a misaligned stack"
    }
    runs emulator "$QEMU"
else
    skip "$target emulator" "${QEMU%% *} is not installed: Debian package qemu-user"
fi
if [ -n "$native" ] && [ -z "$sample" ]; then
    if cc -std=gnu99 -O2 -w -D_GNU_SOURCE capi-tests/underkernel.c -o "$work/underkernel"; then
        step "gasnetrun, underkernel $KERNEL" launcher "$work/underkernel $KERNEL"
        runs kernel ""
    else
        skip "$target kernel" "capi-tests/underkernel.c does not compile"
    fi
fi

# An older system.
if [ "$target" = x86_64-old ] && [ -z "$sample" ]; then step chroot ci/cross/chroot.sh "$target"; fi

finish
