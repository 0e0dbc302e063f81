#!/bin/sh
# Counts the instructions of the hottest paths (capi-tests/bench/paths.c) under valgrind, which
# repeat exactly, and compares them with ci/instructions.tsv. A row more than 3 % and 2
# instructions above its count fails.
#   ci/instructions.sh            compares
#   ci/instructions.sh --write    writes the table, and that of docs/internals/speed.md
set -eu
cd "$(dirname "$0")/.."
table=ci/instructions.tsv
times=200
dir=build/instructions
command -v valgrind >/dev/null || {
    echo "valgrind is not installed (Debian package valgrind)"
    exit 77
}
rm -rf $dir
mkdir -p $dir
${CC:-cc} -O2 -std=gnu99 -D_GNU_SOURCE=1 -DGASNET_SEQ -Ibuild/include capi-tests/bench/paths.c -o $dir/paths \
    -Lbuild/lib -Wl,-rpath,"$PWD/build/lib" -lgasnet

# counts PATH NAME=VALUE...: a text line per function path_*: its name, the path, the instructions
# of one pass.
counts() {
    path=$1
    shift
    env GASNET_PSHM_NODES=2 "$@" timeout 300 valgrind --tool=callgrind --callgrind-out-file="$dir/$path.%p" \
        --toggle-collect='path_*' $dir/paths $times >$dir/$path.log 2>&1 || {
        cat $dir/$path.log >&2
        exit 1
    }
    for file in "$dir/$path".[0-9]*; do
        callgrind_annotate --inclusive=yes --threshold=100 "$file" 2>/dev/null |
            sed -n "s/^ *\([0-9,]*\) .*:path_\([a-z0-9_]*\) \[.*/\2 $path \1/p" | tr -d ,
    done | awk -v n=$times '{ printf "%s\t%s\t%d\n", $1, $2, $3 / n + 0.5 }'
}

# The names of the paths are those of the glossary in ARCHITECTURE.md. Active messages always go
# through the conduit, so they are not counted for `cross-mapped`.
{
    counts cross-mapped GASNET_SUPERNODE_MAXSIZE=0 | grep -E '^(put|get|ex_put|ex_fadd|ex_any)'
    counts portals GASNET_SUPERNODE_MAXSIZE=1
    counts events GASNET_SUPERNODE_MAXSIZE=1 GASNET_PORTAL_AT_ONCE=0
} | sort >$dir/now.tsv
if [ "${1:-}" = --write ]; then
    cp $dir/now.tsv $table
    exec ci/speed-table.sh --write
fi
# Each row of the table must have been counted.
join -t "$(printf '\t')" -a 1 -e 0 -o 0,1.2,2.2 \
    $(awk -F'\t' -v OFS='\t' '{ print $1 "/" $2, $3 > ("'$dir'/was") } END { print "'$dir'/was" }' $table) \
    $(awk -F'\t' -v OFS='\t' '{ print $1 "/" $2, $3 > ("'$dir'/is") } END { print "'$dir'/is" }' $dir/now.tsv) |
    awk -F'\t' '
        { printf "%-32s %8d instructions, %8d in the table\n", $1, $3, $2 }
        $3 == 0 { print "    was not counted"; bad = 1 }
        $3 > $2 * 1.03 + 2 {
            print "    costs more than before: make it cheaper, or say why and run ci/instructions.sh --write"
            bad = 1
        }
        END { exit bad }'
