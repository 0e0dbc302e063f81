#!/bin/sh
# Writes TREE/bin/TARGET-cc and TARGET-c++, the C and C++ compilers of a target with their flags.
# Refuses a compiler that cannot make programs of the target's level. CROSS_CC names the
# compiler; else the target file does. `zig cc` is fetched by pip, into build/zig.
#   ci/cross/compiler.sh TARGET
set -eu
cd "$(dirname "$0")/../.."
target=$1
. ci/cross/target.sh
compiler=${CROSS_CC:-$COMPILER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Fetches the compiler of cross/zig.txt, once.
zig() {
    version=$(sed -n 's/^ziglang==\([0-9.]*\).*/\1/p' cross/zig.txt)
    zig=$PWD/build/zig/$version
    [ ! -x "$zig/ziglang/zig" ] || return 0
    command -v python3 >/dev/null 2>&1 ||
        refuse "no compiler is given, and python3 is missing, whose pip fetches one" "give CC=, or install python3"
    rm -rf "$zig.new"
    mkdir -p "$zig.new"
    python3 -m pip download --quiet --no-deps --only-binary :all: --require-hashes -r cross/zig.txt -d "$zig.new" >"$work/pip" 2>&1 || {
        cat "$work/pip" >&2
        unfit=77
        refuse "pip could not fetch ziglang $version, the C compiler that serves where CC= is not given" \
            "give CC=, or put the wheel into a folder and set PIP_FIND_LINKS to it"
    }
    python3 -m zipfile -e "$zig.new"/*.whl "$zig.new"
    rm "$zig.new"/*.whl
    chmod +x "$zig.new/ziglang/zig"
    rm -rf "$zig"
    mv "$zig.new" "$zig"
}

# compiler_script NAME COMMAND...: a script that adds the target's flags. Zig's compiler has its
# own linker, and takes no Rust names of targets.
compiler_script() {
    name=$work/$1
    shift
    {
        echo '#!/bin/sh'
        echo "# The compiler for $target ($STANDS_FOR): a file of libgasnet's cross-build."
        if [ -n "$zig" ]; then
            # A cache of the user's home would not be the build's.
            echo ": \"\${ZIG_GLOBAL_CACHE_DIR:=$zig/cache}\" \"\${ZIG_LOCAL_CACHE_DIR:=$zig/cache}\""
            echo 'export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR'
            # shellcheck disable=SC2016 # for the script that is written
            {
                echo 'check='
                echo 'for word; do'
                echo '    shift'
                echo '    case $word in'
                echo '    --target=* | -fuse-ld=* | -B/*/gcc-ld) ;;'
                echo '    -fsyntax-only) check=yes ;;'
                echo '    *) set -- "$@" "$word" ;;'
                echo '    esac'
                echo 'done'
                echo 'if [ -n "$check" ]; then'
                echo '    # Zig fails because there is no object.'
                echo '    object=$(mktemp)'
                echo '    trap '"'rm -f \"\$object\"'"' EXIT'
                echo '    trap '"'exit 130'"' INT TERM HUP'
                echo "    $* -c -o \"\$object\" \"\$@\""
                echo '    exit'
                echo 'fi'
            }
        fi
        echo "exec $* \"\$@\""
    } >"$name"
    chmod +x "$name"
}

zig=
case $compiler in
zig)
    zig
    # Without -O it would check for undefined behaviour.
    # shellcheck disable=SC2154 # set by `zig`
    flags="-target ${HOST%%-*}-linux-gnu.$GLIBC -mcpu=$(echo "$CPU" | tr - _)${WITHOUT:+-$WITHOUT} -fno-sanitize=undefined"
    compiler_script "$target-cc" "'$zig/ziglang/zig' cc $flags"
    compiler_script "$target-c++" "'$zig/ziglang/zig' c++ $flags"
    ;;
*)
    command -v "${compiler%% *}" >/dev/null 2>&1 ||
        refuse "there is no compiler ${compiler%% *}" "install it, or give another: CC=\"compiler options\""
    # Cray's C++ driver is CC.
    cxx=${CROSS_CXX:-$(echo "$compiler" | awk -v plain="${CRAYPE_VERSION:+CC}" '{
        for (i = 1; i <= NF && $i !~ /^-/; i++) {
            name = $i
            sub(/.*\//, "", name)
            folder = substr($i, 1, length($i) - length(name))
            if (sub(/^cc($|-)/, (plain ? plain : "c++") substr(name, 3, 1), name) || sub(/gcc/, "g++", name) || sub(/clang/, "clang++", name)) {
                $i = folder name
                break
            }
        }
        print
    }')}
    command -v "${cxx%% *}" >/dev/null 2>&1 ||
        echo "*** make cross TARGET=$target: warning: there is no C++ compiler ${cxx%% *}, which $target-c++ runs; give CXX=" >&2
    compiler_script "$target-cc" "$compiler"
    compiler_script "$target-c++" "$cxx"
    ;;
esac
cc=$work/$target-cc

# The C library that it compiles for, and the processor: what it predefines.
cat >"$work/level.c" <<'END'
#include <stdio.h>
#ifdef __linux__
GASNET_LINUX
#endif
#if defined(__x86_64__)
GASNET_ARCH x86_64
#elif defined(__aarch64__)
GASNET_ARCH aarch64
#elif defined(__riscv)
GASNET_ARCH riscv64gc
#endif
#ifdef __GLIBC__
GASNET_GLIBC __GLIBC__ __GLIBC_MINOR__
#endif
#ifdef __SSE3__
GASNET_CPU SSE3
#endif
#ifdef __SSE4A__
GASNET_CPU SSE4a
#endif
#ifdef __POPCNT__
GASNET_CPU POPCNT
#endif
#ifdef __SSSE3__
GASNET_CPU SSSE3
#endif
#ifdef __SSE4_1__
GASNET_CPU SSE4.1
#endif
#ifdef __AVX__
GASNET_CPU AVX
#endif
END
unable() {
    refuse "$compiler cannot compile for $STANDS_FOR: $1" \
        "give another compiler, CC=\"compiler options\"$([ "$COMPILER" != zig ] || echo ', or none: zig cc then serves')"
}
if ! "$cc" -E -P "$work/level.c" >"$work/level" 2>"$work/errors"; then
    unable "$(grep -m 1 . "$work/errors" || echo "it failed without a message")"
fi
grep -q '^GASNET_LINUX' "$work/level" || unable "its programs are not for Linux"
arch=$(sed -n 's/^GASNET_ARCH //p' "$work/level")
[ "$arch" = "${RUST_TARGET%%-*}" ] || unable "its programs are for ${arch:-an unknown processor}, not for ${RUST_TARGET%%-*}"
glibc=$(sed -n 's/^GASNET_GLIBC \([0-9]*\) \([0-9]*\)$/\1.\2/p' "$work/level")
if [ -n "$GLIBC" ]; then
    [ -n "$glibc" ] || unable "its C library is not glibc"
    if [ "${glibc#*.}" -gt "${GLIBC#*.}" ]; then
        unable "it links glibc $glibc, the target has $GLIBC"
    fi
fi
beyond=
for feature in $(sed -n 's/^GASNET_CPU //p' "$work/level"); do
    case $CPU:$feature in
    barcelona:SSE3 | barcelona:POPCNT) ;;
    *) beyond="$beyond $feature" ;;
    esac
done
[ -z "$beyond" ] || unable "it compiles for a processor newer than $CPU, with$beyond; add -march=$CPU${WITHOUT:+ -mno-$WITHOUT} to it"

# What a program that links the archive needs for the unwinder; gcc and clang add it themselves.
echo 'extern int _Unwind_Backtrace(void *, void *); int main(void) { return _Unwind_Backtrace((void *)0, (void *)0); }' >"$work/unwind.c"
unwind=none
for library in "" -lgcc_s -lgcc_eh -lunwind; do
    if "$cc" -w "$work/unwind.c" -o "$work/unwind" ${library:+"$library"} 2>"$work/errors"; then
        unwind=$library
        break
    fi
done
[ "$unwind" != none ] || unable "it cannot link a program: $(grep -m 1 -i error "$work/errors" || grep -m 1 . "$work/errors")"

mkdir -p "$tree/bin" "$tree/lib"
for script in "$target-cc" "$target-c++"; do
    # An equal file keeps its age.
    cmp -s "$work/$script" "$tree/bin/$script" || cp "$work/$script" "$tree/bin"
done
echo "$unwind" >"$tree/lib/.unwind"
# A compiler that links statically, as Cray's do, makes programs without an interpreter.
static=
if ! ${READELF:-readelf} -lW "$work/unwind" | grep -q ' INTERP '; then static=yes; fi
echo "$static" >"$tree/lib/.static"
echo "${zig:+zig cc }${zig##*/}${compiler#zig}${glibc:+, glibc $glibc}, CPU $CPU${static:+, static programs}" >"$tree/lib/.compiler"
echo "$target: compiler $(cat "$tree/lib/.compiler")"
