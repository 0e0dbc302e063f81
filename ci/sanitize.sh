#!/bin/sh
# Runs tests under a sanitizer of the stable toolchain, or under valgrind.
#   ci/sanitize.sh address [PART...]   AddressSanitizer over portals3, conduit, programs
#   ci/sanitize.sh thread [PART...]    ThreadSanitizer over portals3, conduit
#   ci/sanitize.sh valgrind            memcheck over C programs
# The programs of C run as jobs of two ranks on two paths, `cross-mapped` and `events`. The
# sanitizers need RUSTC_BOOTSTRAP; ends with 77 where the tools are not installed. TREE is the
# build tree for valgrind (build). Logs are in soak/sanitize.
#
# Leaks are not reported: the library never frees buffers that peers may still write.
#
# ThreadSanitizer needs a standard library that is built with it, from the sources
# (rustup component add rust-src). Ranks of the tests are threads. It takes a word by its address,
# so `--cfg tsan` maps each memory file once (sys/src/one_mapping.rs). No race is suppressed.
# ThreadSanitizer does not see fences; models/ checks the files that have them over loom (rings of
# events in models/src/portals, locks, lists and credits in models/src/conduit). The random inputs
# are left out.
set -eu
cd "$(dirname "$0")/.."
what=${1-}
[ -n "$what" ] && shift
cargo=${CARGO:-cargo}
. ci/sanitizer-build.sh
logs=$PWD/soak/sanitize
mkdir -p "$logs"
failed=
# How the first line of a report looks.
reports='WARNING: ThreadSanitizer|ERROR: AddressSanitizer|^==[0-9]+== [A-Z]'

# chosen PART [WORD...]: whether the words name the part, or there are none.
chosen() {
    part=$1
    shift
    [ $# = 0 ] && return
    case " $* " in *" $part "*) ;; *) return 1 ;; esac
}

# checked NAME COMMAND...: one run. A report of the tool
# fails it. Both the exit code and the report itself count, since a rank ends with the code of
# its job.
checked() {
    log=$logs/$what-$1.log
    run=$1
    shift
    if "$@" >"$log" 2>&1 && ! grep -qE "$reports" "$log"; then
        result=$(grep -E '^test result|: PASS$' "$log" | tail -n 1)
        case $result in '' | *' 0 passed'*) failed="$failed $run" result="FAILED: no test ran" ;; esac
        echo "$what: $run: $result"
    else
        failed="$failed $run"
        echo "$what: $run FAILED:"
        grep -E -A 25 "$reports|panicked at|FAILED" "$log" | head -n 80
    fi
}

# How cargo builds the standard library, and further tests of portals3.
std=
more=

# built PART ARG...: sets $programs to those that cargo builds. A build that fails, or that makes
# none, fails the part.
built() {
    part=$1
    shift
    # shellcheck disable=SC2086 # words
    programs=$(test_programs "target/$what" $std "$@") && [ -n "$programs" ] && return
    failed="$failed $part"
    programs=
    echo "$what: $part FAILED: its tests were not built"
}

# rust_tests SKIP PART...: the tests of portals3 and of the conduit, of the parts that are chosen.
rust_tests() {
    skip=$1
    shift
    if chosen portals3 "$@"; then
        # shellcheck disable=SC2086 # words
        built portals3 -p portals3 --lib --test interface --test stress $more
        for program in $programs; do
            # shellcheck disable=SC2086 # words
            checked "$(basename "$program" | sed 's/-[0-9a-f]*$//')" in_folder portals timeout 900 "$program" $skip
        done
    fi
    if chosen conduit "$@"; then
        built conduit -p gasnet --lib
        for program in $programs; do
            # shellcheck disable=SC2086 # words
            checked conduit timeout 1800 "$program" conduit $skip
        done
    fi
}

in_folder() {
    (cd "$1" && shift && exec "$@")
}

# c_program TREE NAME COMPILER...: compiles a program of capi-tests against a tree.
c_program() {
    tree=$1
    name=$2
    shift 2
    mkdir -p "$tree/programs"
    # shellcheck disable=SC2046 # words
    "$@" -g -O1 -o "$tree/programs/$name" "capi-tests/$name.c" \
        $(PKG_CONFIG_PATH=$tree/lib/pkgconfig ${PKG_CONFIG:-pkg-config} --cflags --libs gasnet-portals-par) -lpthread
}

case $what in
address)
    instrumented address
    export ASAN_OPTIONS=detect_leaks=0
    rust_tests "--skip fuzz_" "$@"
    if chosen programs "$@"; then
        command -v clang >/dev/null || {
            echo "clang is not installed (Debian package clang)"
            exit 77
        }
        CARGO_BUILD_TARGET=$host ci/build.sh build-address >"$logs/build-address.log" 2>&1 || {
            tail -n 30 "$logs/build-address.log"
            exit 1
        }
        for name in testsmall testam testvis testcoll testhsl testthreads testqueue testbarrier; do
            c_program build-address $name clang -fsanitize=address
            checked $name-cross-mapped timeout 300 build-address/bin/gasnetrun -n 2 build-address/programs/$name
            checked $name-events env GASNET_SUPERNODE_MAXSIZE=1 GASNET_PORTAL_AT_ONCE=0 \
                timeout 300 build-address/bin/gasnetrun -n 2 build-address/programs/$name
        done
    fi
    ;;
thread)
    [ -d "$(${RUSTC:-rustc} --print sysroot)/lib/rustlib/src/rust/library" ] || {
        echo "the sources of the standard library are not installed (rustup component rust-src)"
        exit 77
    }
    instrumented thread --cfg tsan
    # cargo would build a standard library of each kind of panic, and link both.
    export CARGO_PROFILE_DEV_PANIC=unwind TSAN_OPTIONS=history_size=4
    std=-Zbuild-std
    more="--test conformance"
    rust_tests "--skip fuzz_" "$@"
    ;;
valgrind)
    command -v valgrind >/dev/null || {
        echo "valgrind is not installed (Debian package valgrind)"
        exit 77
    }
    tree=${TREE:-build}
    for name in testsmall testam testhsl testvis testcoll; do
        c_program "$tree" $name "${CC:-cc}"
        for path in cross-mapped events; do
            settings="GASNET_PSHM_NODES=2"
            [ $path = cross-mapped ] || settings="$settings GASNET_SUPERNODE_MAXSIZE=1 GASNET_PORTAL_AT_ONCE=0"
            # shellcheck disable=SC2086 # words
            checked $name-$path env $settings timeout 900 valgrind -q --error-exitcode=99 "$tree/programs/$name"
        done
    done
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
[ -z "$failed" ] || {
    echo "failed:$failed"
    exit 1
}
