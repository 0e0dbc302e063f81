#!/bin/sh
# Uses every name of ci/names-ex.tsv in the shape that the table gives, as C99 and C++11, and
# compares with the exports of the shared library. Prints how many names exist, and why others
# do not.
set -eu
cd "$(dirname "$0")/.."
table=ci/names-ex.tsv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
lib=build/lib/libgasnet.so
{
    printf '#include <gasnetex.h>\n#include <gasnet_portable_platform.h>\n#include <gasnet_tools.h>\n'
    awk -F'\t' '
        /^#/ { next }
        { printf "#line %d \"%s\"\n", NR, $1 }
        $2 == "constant" { printf "#ifndef %s\n#error is no macro\n#endif\n", $1 }
        $2 == "absent" { printf "#ifdef %s\n#error is there, but absent in the table\n#endif\n", $1 }
        $2 == "value" { printf "enum { row_%d = (int)%s };\n", NR, $1 }
        $2 == "type" { printf "extern %s row_%d; typedef char size_%d[sizeof(%s)];\n", $1, NR, NR, $1 }
        $2 == "function" { printf "void row_%d(void); void row_%d(void) { (void)(%s); }\n", NR, NR, $1 }
        $2 == "inline" && $1 ~ /[0-9](_v2)?$/ && $1 !~ /(Medium|Long|Short)_v2$/ {
            printf "void row_%d(void); void row_%d(void) { (void)(%s); }\n", NR, NR, $1
            next
        }
        $2 == "inline" { printf "#ifndef %s\n#error is no macro\n#endif\n", $1 }' $table
} >"$work/a.c"
cp "$work/a.c" "$work/a.cc"
failed=0
for mode in SEQ PAR; do
    gcc -std=c99 -w -Iinclude -DGASNET_$mode -fsyntax-only "$work/a.c" || failed=1
    g++ -std=c++11 -w -Iinclude -DGASNET_$mode -fsyntax-only "$work/a.cc" || failed=1
done
if [ -e $lib ]; then
    ${NM:-nm} -D --defined-only --without-symbol-versions $lib | awk '$3 ~ /^gex_/ { print $3 }' | sort >"$work/exported"
    awk -F'\t' '$2 == "function" && $1 ~ /^gex_/ { print $1 }' $table | sort >"$work/functions"
    comm -3 "$work/functions" "$work/exported" >"$work/differ"
    if [ -s "$work/differ" ]; then
        echo "ci/names-ex.sh: functions of the table alone, and exports that it lacks:" >&2
        cat "$work/differ" >&2
        failed=1
    fi
fi
[ $failed = 0 ]
awk -F'\t' '
    /^#/ { next }
    $2 == "absent" { reason[$3]++; absent++; next }
    { n++ }
    END {
        printf "ci/names-ex.sh: %d names, %d absent:\n", n + absent, absent
        for (r in reason) printf "    %d: %s\n", reason[r], r | "sort -k 1,1nr"
    }' $table
