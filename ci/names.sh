#!/bin/sh
# Compiles ci/names.c, which uses the names of the headers as clients do, as C99 and C++98 in
# every mode. Looks for the strings that client build systems grep for in objects. Links, if the
# shared library is built.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
warn="-Wall -Wextra -pedantic -Werror -O1 -Iinclude"
cp ci/names.c "$work/names.cc"

for mode in -DGASNET_SEQ -DGASNET_PARSYNC -DGASNET_PAR "-DGASNET_PAR -DGASNET_SEGMENT_LARGE -DGASNET_DEBUG" \
    -DTOOLS_ONLY "-DTOOLS_ONLY -DGASNETT_THREAD_SAFE"; do
    # shellcheck disable=SC2086
    for compile in "gcc -std=c99" "gcc -std=gnu17" "g++ -std=c++98" "g++ -std=c++17" "clang -std=c99" "clang++ -std=c++98"; do
        command -v "${compile%% *}" >/dev/null || continue
        source=ci/names.c
        case $compile in *++*) source=$work/names.cc ;; esac
        $compile $warn $mode -c "$source" -o "$work/names.o"
        case $mode in -DTOOLS_ONLY*) continue ;; esac
        for text in 'GASNetConfig: (client) RELEASE=' 'GASNetConduitName: PORTALS ' 'GASNetThreadModel: GASNET_'; do
            if ! grep -aq "[$]$text" "$work/names.o"; then
                echo "ci/names.sh: an object of $compile $mode has no string '$text'" >&2
                exit 1
            fi
        done
    done
done

for name in MAJOR MINOR PATCH; do
    awk -v n="GASNET_RELEASE_VERSION_$name" '
        index($0, n) { lines++; number = $3 }
        END { if (lines != 1 || number !~ /^[0-9]+$/) { print "gasnet_config.h: " n ": " lines " lines"; exit 1 } }
    ' include/gasnet_config.h
done

tools=$(sed -n 's/^#define GASNETT_SPEC_VERSION_[MAJORIN]* //p' include/gasnet_tools.h | paste -sd.)
grep -q "tools, $tools |" docs/guide/versions.md || {
    echo "docs/guide/versions.md does not say 'tools, $tools', the version in gasnet_tools.h" >&2
    exit 1
}

lib=build/lib/libgasnet.so
if [ -e $lib ]; then
    echo 'int tools_names(void); int gasnet_names(int, char **);
        int main(int argc, char **argv) { return argc > 9 ? tools_names() + gasnet_names(argc, argv) : 0; }' >"$work/main.c"
    gcc -DGASNET_PAR -Iinclude -c ci/names.c -o "$work/names.o"
    gcc "$work/main.c" "$work/names.o" -o "$work/names" -Lbuild/lib -lgasnet -Wl,-rpath,"$PWD/build/lib"
    "$work/names"
    echo "ci/names.sh: every name has its shape, and links"
else
    echo "ci/names.sh: every name has its shape (no library built to link with)"
fi
