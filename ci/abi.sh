#!/bin/sh
# The C interface is that of ci/abi: the exported symbols of the shared library, and the types
# of the headers. The types are those of a shared object that names every exported function and
# variable through the headers, as abidw (Debian: abigail-tools) describes it. A structure
# changed on purpose must be reported, or the check is worthless.
#   ci/abi.sh            compares; ends with 77 where abidiff is not installed
#   ci/abi.sh --write    writes ci/abi again, for an intended change (docs/guide/versions.md)
#   ci/abi.sh --release  compares ci/abi with that of the last release: what a linked program needs
#                        may change only together with the soname. Ends with 77 before the first.
#   HEADERS=dir LIB=file ci/abi.sh ...    of other headers and another library
set -eu
cd "$(dirname "$0")/.."
headers=${HEADERS:-include}
lib=${LIB:-build/lib/libgasnet.so.0}
command -v abidiff >/dev/null || {
    echo "abidiff is not installed (Debian package abigail-tools)"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
export LC_ALL=C

if [ "${1:-}" = --release ]; then
    # Where a clone has no tags: the commit that gave the changelog its newest section of a release.
    version=$(sed -n 's/^## \[\([0-9][0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
    tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null ||
        git log --format=%H -S"## [$version]" -- CHANGELOG.md 2>/dev/null | tail -n 1)
    if [ -z "$tag" ]; then
        echo "the history of this clone has no release"
        exit 77
    fi
    soname() { sed -n 's/.*-soname,\(libgasnet\.so\.[0-9]*\).*/\1/p'; }
    interface() { sed -n 's/^#define GASNETI_ABI  *//p'; }
    before=$(git show "$tag:ci/build.sh" | soname)
    now=$(soname <ci/build.sh)
    for file in symbols.txt types.xml; do
        git show "$tag:ci/abi/$file" >"$work/$file"
    done
    if [ "$before" != "$now" ]; then
        echo "the soname is $now, that of $tag was $before: a linked program needs nothing of it"
        exit
    fi
    failed=0
    gone=$(comm -23 "$work/symbols.txt" ci/abi/symbols.txt)
    [ -z "$gone" ] || {
        echo "exported by $tag, and no longer: $gone"
        failed=1
    }
    # abidiff leaves out changes that no program notices.
    abidiff --no-added-syms --suppressions ci/abi/release.abignore "$work/types.xml" ci/abi/types.xml ||
        failed=1
    [ "$(git show "$tag:include/gasnet_client.h" | interface)" = "$(interface <include/gasnet_client.h)" ] || {
        echo "the interface number differs from that of $tag"
        failed=1
    }
    [ $failed = 0 ] || echo "programs that are linked with $tag would not run: raise the soname (docs/guide/versions.md)"
    exit $failed
fi

${NM:-nm} -D --defined-only "$lib" | awk '$2 != "A" { sub(/@@.*/, "", $3); print $3, ($2 == "T" ? "function" : "data") }' |
    sort >"$work/symbols"

# describe HEADERS OUTPUT: what the headers say of each exported symbol.
describe() {
    {
        for header in gasnet gasnet_coll gasnet_vis gasnetex gasnet_tools gasnet_trace; do
            echo "#include <$header.h>"
        done
        # The parentheses keep a macro of the same name from being used.
        awk '{ printf "#line 1 \"%s\"\nextern __typeof__(&(%s)) abi_%s;\n__typeof__(&(%s)) abi_%s = &(%s);\n", $1, $1, $1, $1, $1, $1 }' \
            "$work/declared"
    } >"$work/abi.c"
    ${CC:-cc} -w -g -O0 -std=gnu99 -fPIC -shared -DGASNET_PAR -I"$1" "$work/abi.c" -o "$work/abi.so" &&
        abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-parameter-names \
            --out-file "$2" "$work/abi.so"
}

# Symbols that no header declares: only inline code and the Makefile's checks know them.
cp "$work/symbols" "$work/declared"
until describe "$headers" "$work/now.xml" 2>"$work/err"; do
    sed -n "s/.*error: '\([a-z_A-Z0-9]*\)' undeclared.*/\1/p" "$work/err" | sort -u >"$work/undeclared"
    if [ ! -s "$work/undeclared" ]; then
        cat "$work/err" >&2
        exit 1
    fi
    awk 'NR == FNR { undeclared[$1]; next } !($1 in undeclared)' "$work/undeclared" "$work/declared" >"$work/rest"
    mv "$work/rest" "$work/declared"
done

if [ "${1:-}" = --write ]; then
    mkdir -p ci/abi
    cp "$work/symbols" ci/abi/symbols.txt
    # A record of the same interface is the same file, wherever it was made.
    sed "s|$work/||" "$work/now.xml" >ci/abi/types.xml
    exit
fi

failed=0
if ! diff -u ci/abi/symbols.txt "$work/symbols"; then
    echo "ci/abi.sh: the exported symbols differ from ci/abi/symbols.txt; see docs/guide/versions.md" >&2
    failed=1
fi
if ! abidiff ci/abi/types.xml "$work/now.xml"; then
    echo "ci/abi.sh: the headers' types differ from ci/abi/types.xml; see docs/guide/versions.md" >&2
    failed=1
fi

# A field more in a structure that clients allocate.
cp -r "$headers" "$work/planted"
sed -i 's/^} gasnet_seginfo_t;/  int planted;\n&/' "$work/planted/gasnet_common.h"
if cmp -s "$headers/gasnet_common.h" "$work/planted/gasnet_common.h"; then
    echo "ci/abi.sh: found no structure to plant a field into" >&2
    exit 1
fi
describe "$work/planted" "$work/planted.xml"
if abidiff "$work/now.xml" "$work/planted.xml" >/dev/null; then
    echo "ci/abi.sh: abidiff does not report a planted field" >&2
    failed=1
fi
echo "ci/abi.sh: $(wc -l <"$work/symbols") exported symbols, $(wc -l <"$work/declared") of them described by the headers"
exit $failed
